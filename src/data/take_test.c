/*
 * ls_take and ls_skip against a plain loop; what fails counts; what is not wanted is not made.
 */
#include "data/stage_test.h"

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* All of `count`, then n of them; -1: all. */
static void parts_of_a_range(void **state)
{
    (void)state;
    static const int64_t counts[] = { 0, 1, 5, 300 }, sizes[] = { -1, 0, 1, 4, 5, 6, 299, 301 };
    enum { COUNTS = sizeof counts / sizeof *counts, SIZES = sizeof sizes / sizeof *sizes };
    int64_t all[300];
    for (int i = 0; i < 300; i++)
        all[i] = i;
    for (int c = 0; c < COUNTS; c++)
        for (int k = 0; k < SIZES; k++)
            LS_FRAME {
                ls_dataset *d = ls_range(0, counts[c], 1);
                const int64_t n = sizes[k] < 0 ? counts[c] : least(sizes[k], counts[c]);
                assert_int_equal(ls_cardinality(ls_take(d, sizes[k])), n);
                assert_int_equal(ls_cardinality(ls_skip(d, sizes[k])), counts[c] - n);
                expect(ls_take(d, sizes[k]), (int)n, all);
                expect(ls_skip(d, sizes[k]), (int)(counts[c] - n), all + n);
                expect(ls_unbatch(ls_batch(ls_take(d, sizes[k]), 7)), (int)n,
                       all); /* many at once */
                expect(ls_take(ls_skip(d, sizes[k]), 3), (int)least(3, counts[c] - n), all + n);
            }
}

/* An element that failed is one of those that are taken, or left out. */
static void failures_count(void **state)
{
    (void)state;
    LS_FRAME {
        int64_t got[8];
        ls_dataset *d = WATCH(.count = 8, .fail_every = 3); /* 2 and 5 fail */
        assert_int_equal(run(ls_take(d, 4), 8, got), 3);
        assert_true(got[0] == 0 && got[1] == 1 && got[2] == 3);
        assert_int_equal(run(ls_skip(d, 3), 8, got), 4);
        assert_true(got[0] == 3 && got[1] == 4 && got[2] == 6 && got[3] == 7);
    }
}

static int64_t made;

static ls_status count_up(void *state, ls_value **out)
{
    (void)state;
    if (made == 1000) /* what is endless would not come back */
        return LS_END;
    *out = ls_leaf(ls_scalar_int(LS_I64, made++));
    return LS_OK;
}

static void what_is_not_wanted_is_not_made(void **state)
{
    (void)state;
    LS_FRAME {
        ls_dataset *d = ls_generate(LS_GENERATOR(.next = count_up));
        made = 0;
        expect(ls_skip(d, -1), 0, NULL);
        expect(ls_take(d, 0), 0, NULL);
        assert_int_equal(made, 0);
        EXPECT(ls_take(d, 3), 0, 1, 2);
        assert_int_equal(made, 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(parts_of_a_range, clean),
        cmocka_unit_test_setup(failures_count, clean),
        cmocka_unit_test_setup(what_is_not_wanted_is_not_made, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
