/*
 * Random datasets (random_datasets/program.h). What one gives must be
 *
 *   - what the oracle says, element by element, in both of two epochs;
 *   - the same with any number of threads, with two iterators at once, after ls_rewind;
 *   - the same from every position on, restored into a dataset that was built anew; and the bytes of a
 *     position must not depend on threads;
 *   - split over replicas and pipelines as input.h says, where it ends with a batch.
 *
 * A dataset that takes too long is taken for one that hangs, and ends the test. Seeds that failed
 * are done again, with all that is to be known, by
 *
 *     random_datasets_test SEED [COUNT]
 */
#include <stdio.h>
#include <stdlib.h>

#include "random_datasets/check.h"
#include "tensor/test_support.h"

enum { ENOUGH = 80 }; /* for some of everything */

static uint64_t first_seed = 1;
static int datasets = RD_DATASETS;
static bool by_hand;

static void test_datasets(void **state)
{
    (void)state;
    int bad = 0;
    rd_seen seen = { 0 };
    for (int i = 0; i < datasets && (bad < 5 || by_hand); i++) {
        uint64_t seed = first_seed + (uint64_t)i;
        rd_watch(seed, RD_SECONDS);
        const char *wrong = rd_check(seed, by_hand && datasets == 1, &seen);
        if (!wrong)
            continue;
        print_error("dataset %llu: %s\nagain: random_datasets_test %llu\n",
                    (unsigned long long)seed, wrong, (unsigned long long)seed);
        bad++;
    }
    rd_watch(0, 0);
    print_message("%d datasets (%d left out): %d elements, %d failures, %d shuffles, %d positions, "
                  "%d splits\n",
                  seen.programs, seen.left_out, seen.elements, seen.failures, seen.shuffles,
                  seen.positions, seen.splits);
    assert_int_equal(bad, 0);
    if (by_hand || datasets < ENOUGH)
        return;
    assert_true(seen.elements > 6 * datasets && seen.positions > 8 * datasets);
    assert_true(seen.failures > datasets / 20 && seen.shuffles > datasets / 4);
    assert_true(seen.splits > datasets / 20);
    for (int code = 0; code < RD_CODES; code++)
        assert_true(seen.codes[code] > 0);
}

static int begin(void **state)
{
    (void)state;
    return rd_files_begin() ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    rd_files_end();
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test_setup(test_datasets, clean) };
    if (argc > 1) {
        first_seed = strtoull(argv[1], NULL, 10);
        datasets = argc > 2 ? atoi(argv[2]) : 1;
        by_hand = true;
    }
    return cmocka_run_group_tests(tests, begin, end);
}
