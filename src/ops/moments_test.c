/*
 * Moments merged over replicas: what golden cases, which have two replicas at most, cannot show.
 */
#include "ops/moments.h"

#include "tensor/test_support.h"

/* Far from zero the squares of the values would cancel; deviations do not. */
static void far_from_zero(void **state)
{
    (void)state;
    LS_FRAME {
        float x[2][2] = { { 100000.0f, 100001.0f }, { 100002.0f, 100003.0f } };
        ls__moments each[2], all;
        for (int r = 0; r < 2; r++)
            assert_int_equal(ls__batch_moments(ls_from(LS_F32, LS_DIMS(2, 1), x[r]), &each[r]),
                             LS_OK);
        ls_tensor *parts[] = { each[0].mean,     each[1].mean, each[0].variance,
                               each[1].variance, each[0].rows, each[1].rows };
        assert_int_equal(ls__merge_moments(2, parts, &all), LS_OK);
        assert_true(ls_to_double(all.mean) == 100001.5);
        assert_true(ls_to_double(all.variance) == 1.25);
        assert_true(ls_to_double(all.rows) == 4);
    }
}

/* Not even where the formula would overflow; and what has no rows has no moments. */
static void parts_without_rows_do_not_count(void **state)
{
    (void)state;
    static const double mean = 1e200, variance = 1e300, stray = 5;
    for (int with = 0; with <= 3; with++)
        LS_FRAME {
            ls_tensor *parts[9];
            for (int r = 0; r < 3; r++) {
                parts[r] = ls_from(LS_F64, LS_DIMS(1), r == with ? &mean : &stray);
                parts[3 + r] = ls_from(LS_F64, LS_DIMS(1), r == with ? &variance : &stray);
                parts[6 + r] = ls_scalar(LS_F64, r == with ? 2 : 0);
            }
            ls__moments all;
            assert_int_equal(ls__merge_moments(3, parts, &all), LS_OK);
            assert_true(ls_to_double(all.mean) == (with < 3 ? mean : 0));
            assert_true(ls_to_double(all.variance) == (with < 3 ? variance : 0));
            assert_true(ls_to_double(all.rows) == (with < 3 ? 2 : 0));
        }
}

/* ((0 + 1) + (2 + 3)) + 4, told by bits: replica 3's mean is lost in replica 2's, or not. */
static void merged_in_the_order_of_the_tree(void **state)
{
    (void)state;
    static const double means[] = { 1, 0.1, 1e17, 0.3, -7 };
    static const double rows[] = { 3, 1, 2, 5, 4 };
    LS_FRAME {
        ls_tensor *parts[15];
        double m[5], n[5];
        for (int r = 0; r < 5; r++) {
            parts[r] = ls_from(LS_F64, LS_DIMS(1), &means[r]);
            parts[5 + r] = ls_zeros(LS_F64, LS_DIMS(1));
            parts[10 + r] = ls_scalar(LS_F64, rows[r]);
            m[r] = means[r];
            n[r] = rows[r];
        }
        static const int pairs[][2] = { { 0, 1 }, { 2, 3 }, { 0, 2 }, { 0, 4 } };
        for (int i = 0; i < 4; i++) {
            int a = pairs[i][0], b = pairs[i][1];
            m[a] += (m[b] - m[a]) * (n[b] / (n[a] + n[b]));
            n[a] += n[b];
        }
        ls__moments all;
        assert_int_equal(ls__merge_moments(5, parts, &all), LS_OK);
        double got = ls_to_double(all.mean);
        assert_memory_equal(&got, &m[0], sizeof got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(far_from_zero, clean),
        cmocka_unit_test_setup(parts_without_rows_do_not_count, clean),
        cmocka_unit_test_setup(merged_in_the_order_of_the_tree, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
