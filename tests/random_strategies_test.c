/*
 * Random programs for strategies (random_strategies/program.h), on many placements. What a
 * program does, its log, must be the same
 *
 *   - on 1, 2, 3 and 8 devices, with replicas side by side or one after another, and again;
 *   - eager and traced;
 *   - as the oracle predicts: values, spreads, variables, steps, which error of which replica.
 *
 * A program that takes too long is taken for one that hangs, and ends the test. Seeds that
 * failed are done again, with their logs, by
 *
 *     random_strategies_test SEED [COUNT]
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "random_strategies/check.h"
#include "tensor/test_support.h"

#if defined(__has_feature) /* clang says it in this way, gcc in the other */
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#elif __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
enum { PROGRAMS = 35 };
#elif defined(__SANITIZE_ADDRESS__) || !defined(__OPTIMIZE__)
enum { PROGRAMS = 70 };
#elif defined(__clang__) || !defined(LS_HAVE_DNNL) /* another build: some of the same */
enum { PROGRAMS = 100 };
#else
enum { PROGRAMS = 350 };
#endif

enum { SECONDS_OF_A_PROGRAM = 30 };

static uint64_t first_seed = 1;
static int programs = PROGRAMS;
static bool by_hand;

static void test_programs(void **state)
{
    (void)state;
    int bad = 0;
    rs_seen seen = { 0 };
    for (int i = 0; i < programs && (bad < 5 || by_hand); i++) {
        uint64_t seed = first_seed + (uint64_t)i;
        rs_watch(seed, SECONDS_OF_A_PROGRAM);
        const char *wrong = rs_check(seed, RS_ALL_WAYS, by_hand && programs == 1, &seen);
        if (!wrong)
            continue;
        print_error("program %llu: %s\nagain: random_strategies_test %llu\n",
                    (unsigned long long)seed, wrong, (unsigned long long)seed);
        bad++;
    }
    rs_watch(0, 0);
    print_message("%d programs: %d runs went well, %d failed; %d traced\n", programs, seen.well,
                  seen.failed, seen.traced);
    assert_int_equal(bad, 0);
    if (by_hand)
        return;
    assert_true(seen.well > 2 * programs && seen.failed > programs / 2);
    assert_true(seen.traced > programs / 2);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test_setup(test_programs, clean) };
    if (argc > 1) {
        first_seed = strtoull(argv[1], NULL, 10);
        programs = argc > 2 ? atoi(argv[2]) : 1;
        by_hand = true;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
