/*
 * Do the random programs find anything? This is built from its own copy of src/strategy with
 * LS__DEFECTS (src/strategy/defect.h), and switches the defects on one by one: each must be
 * found by one of the first programs, eager and traced alike, as a log that differs or as a
 * hang; without one, nothing is.
 *
 * Each search has a process of its own, which ends at the first program that finds something.
 *
 *     random_defects_test DEFECT-NUMBER WAYS [SEED [COUNT]]        (WAYS: 1 eager, 2 traced)
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "random_strategies/check.h"
#include "strategy/defect.h"
#include "tensor/test_support.h"

/* A program takes milliseconds; a hang is found sooner here than where none is expected. */
enum { PROGRAMS = 200, SECONDS = 3, SECONDS_WITHOUT = 30, FOUND = 1, HUNG = 3 };

int ls__defect = LS__NO_DEFECT;
void (*ls__alter_schedule)(struct ls__schedule *schedule);

static const char *const names[] = {
    [LS__NO_DEFECT] = "none",
    [LS__LOST_CANCEL] = "lost cancel",
    [LS__SWAPPED_RESULTS] = "swapped results",
    [LS__WRONG_ORDER] = "wrong order",
    [LS__WRONG_ARGUMENT] = "wrong argument",
    [LS__LOST_UNDO] = "lost undo",
    [LS__HIGHEST_ERROR] = "highest error",
    [LS__MERGED_TWICE] = "merged twice",
    [LS__FIRST_FOR_ALL] = "first for all",
    [LS__LOST_ERROR] = "lost error",
    [LS__MEAN_BY_DEVICES] = "mean by devices",
    [LS__DRAWS_BY_DEVICE] = "draws by device",
    [LS__STEP_AFTER_FAILURE] = "step after failure",
};
enum { DEFECTS = sizeof names / sizeof *names };

/* In the child. Ends the process with FOUND or 0; the alarm ends it with HUNG. */
static void look_for(int defect, rs_ways ways, uint64_t first, uint64_t count)
{
    rs_seen seen = { 0 };
    ls__defect = defect;
    for (uint64_t seed = first; seed < first + count; seed++) {
        rs_watch(seed, defect ? SECONDS : SECONDS_WITHOUT);
        const char *wrong = rs_check(seed, ways, false, &seen);
        if (!wrong)
            continue;
        fprintf(stderr, "%s: found by program %llu: %s\n", names[defect], (unsigned long long)seed,
                wrong);
        _exit(FOUND);
    }
    _exit(0);
}

static int result_of(int defect, rs_ways ways)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        look_for(defect, ways, 1, PROGRAMS);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_nothing_is_found_without_a_defect(void **state)
{
    (void)state;
    assert_int_equal(result_of(LS__NO_DEFECT, RS_ALL_WAYS), 0);
}

static const char *as_text(int result)
{
    return result == FOUND ? "found" : result == HUNG ? "hangs" : result ? "crashes" : "MISSED";
}

static void test_every_defect_is_found(void **state)
{
    int missed = 0;
    (void)state;
    for (int d = LS__NO_DEFECT + 1; d < DEFECTS; d++) {
        int eager = result_of(d, RS_EAGER), traced = result_of(d, RS_TRACED);
        print_message("%s: eager %s, traced %s\n", names[d], as_text(eager), as_text(traced));
        missed += !eager || !traced;
    }
    assert_int_equal(missed, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_nothing_is_found_without_a_defect, clean),
        cmocka_unit_test_setup(test_every_defect_is_found, clean),
    };
    if (argc > 2)
        look_for(atoi(argv[1]), (rs_ways)atoi(argv[2]), argc > 3 ? strtoull(argv[3], NULL, 10) : 1,
                 argc > 4   ? strtoull(argv[4], NULL, 10)
                 : argc > 3 ? 1
                            : PROGRAMS);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
