/*
 * Single numbers of every dtype, into tensors and out of them: conversions round,
 * truncate and saturate as ls_cast does.
 */
#include <lockstep/tensor.h>

#include <math.h>

#include "tensor/test_support.h"

static const ls_dtype numeric[] = { LS_F32, LS_F64, LS_I32, LS_I64, LS_U8, LS_BOOL, LS_BF16 };
enum { N_NUMERIC = sizeof numeric / sizeof *numeric };

static double stored(ls_dtype dtype, double value)
{
    double got = ls_to_double(ls_scalar(dtype, value));
    assert_int_equal(ls_error_pending(), LS_OK);
    return got;
}

static void scalars_convert(void **state)
{
    (void)state;
    static const struct {
        ls_dtype dtype;
        double given, want;
    } table[] = {
        { LS_F32, 1.5, 1.5 },
        { LS_F32, 1e300, INFINITY },
        { LS_F32, 16777217, 16777216 },
        { LS_F64, 1e300, 1e300 },
        { LS_I32, 3.99, 3 },
        { LS_I32, -3.99, -3 },
        { LS_I32, 1e20, INT32_MAX },
        { LS_I32, -1e20, INT32_MIN },
        { LS_I32, 2147483648.0, INT32_MAX },
        { LS_I32, INFINITY, INT32_MAX },
        { LS_I32, NAN, 0 },
        { LS_I64, -7.9, -7 },
        { LS_I64, -1e30, (double)INT64_MIN },
        { LS_I64, 1e30, (double)INT64_MAX },
        { LS_I64, NAN, 0 },
        { LS_U8, 255.9, 255 },
        { LS_U8, 300, 255 },
        { LS_U8, -5, 0 },
        { LS_U8, -0.5, 0 },
        { LS_U8, NAN, 0 },
        { LS_BOOL, 0, 0 },
        { LS_BOOL, -0.0, 0 },
        { LS_BOOL, 0.25, 1 },
        { LS_BOOL, -3, 1 },
        { LS_BOOL, NAN, 1 },
        { LS_BF16, 1.5, 1.5 },
        { LS_BF16, 1.00390625, 1 }, /* a tie goes to even */
        { LS_BF16, 1.01171875, 1.015625 },
        { LS_BF16, 3.4e38, INFINITY },
        { LS_BF16, -INFINITY, -INFINITY },
    };
    LS_FRAME {
        for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
            double got = stored(table[i].dtype, table[i].given);
            if (got != table[i].want)
                fail_msg("%s of %g: %g, not %g", ls_dtype_name(table[i].dtype), table[i].given, got,
                         table[i].want);
        }
        assert_true(isnan(stored(LS_F32, NAN)) && isnan(stored(LS_F64, NAN)));
        assert_true(isnan(stored(LS_BF16, NAN)));

        /* Whole numbers that a double cannot hold. */
        static const int64_t whole[] = { INT64_MAX, INT64_MIN, ((int64_t)1 << 53) + 1, -1, 0 };
        for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
            assert_true(ls_to_int(ls_scalar_int(LS_I64, whole[i])) == whole[i]);
        assert_int_equal(ls_to_int(ls_scalar_int(LS_I32, -12)), -12);
        assert_int_equal(ls_to_int(ls_scalar_int(LS_U8, 200)), 200);
        assert_int_equal(ls_to_int(ls_scalar_int(LS_BOOL, 256)), 1);
        assert_int_equal(ls_to_int(ls_scalar_int(LS_BOOL, 0)), 0);
        assert_true(ls_to_double(ls_scalar_int(LS_F32, 16777217)) == 16777216);
        assert_true(ls_to_double(ls_scalar_int(LS_F64, 1 << 30)) == 1 << 30);
        assert_true(ls_to_double(ls_scalar_int(LS_BF16, 257)) == 256);
        assert_int_equal(ls_error_pending(), LS_OK);
    }
}

static void reading_one_number(void **state)
{
    (void)state;
    LS_FRAME {
        for (int i = 0; i < N_NUMERIC; i++) {
            ls_tensor *t = ls_full(numeric[i], LS_DIMS(1, 1, 1), 1);
            assert_true(ls_to_float(t) == 1.0f);
            assert_true(ls_to_double(t) == 1.0);
            assert_int_equal(ls_to_int(t), 1);
            ls_tensor *two = ls_full(numeric[i], LS_DIMS(2), 1);
            assert_true(isnan(ls_to_float(two)));
            assert_int_not_equal(ls_error(), LS_OK);
            assert_true(isnan(ls_to_double(two)));
            assert_int_not_equal(ls_error(), LS_OK);
            assert_int_equal(ls_to_int(two), 0);
            assert_int_not_equal(ls_error(), LS_OK);
        }
        /* To an integer: truncates and saturates. */
        assert_int_equal(ls_to_int(ls_scalar(LS_F64, -2.9)), -2);
        assert_true(ls_to_int(ls_scalar(LS_F64, 1e19)) == INT64_MAX);
        assert_true(ls_to_int(ls_scalar(LS_F32, -INFINITY)) == INT64_MIN);
        assert_true(ls_to_int(ls_scalar(LS_F64, 9223372036854775808.0)) == INT64_MAX);
        assert_int_equal(ls_to_int(ls_scalar(LS_F32, NAN)), 0);
        assert_true(ls_to_float(ls_scalar(LS_F64, 1e300)) == INFINITY);
        assert_int_equal(ls_error_pending(), LS_OK);
    }
}

static void fills(void **state)
{
    (void)state;
    LS_FRAME {
        for (int i = 0; i < N_NUMERIC; i++) {
            /* Sizes around vector widths and the steps of a doubling fill. */
            for (int64_t n = 1; n <= 130; n = n < 20 ? n + 1 : n + 37) {
                unsigned char bytes[8 * 130];
                size_t size = ls_dtype_size(numeric[i]);
                ls_tensor *one = ls_scalar(numeric[i], 1);
                char element[8];
                assert_int_equal(ls_copy_out(one, element, size), LS_OK);
                assert_int_equal(
                    ls_copy_out(ls_ones(numeric[i], LS_DIMS(n)), bytes, size * (size_t)n), LS_OK);
                for (int64_t k = 0; k < n; k++)
                    assert_memory_equal(bytes + size * (size_t)k, element, size);
                assert_int_equal(
                    ls_copy_out(ls_zeros(numeric[i], LS_DIMS(n)), bytes, size * (size_t)n), LS_OK);
                for (size_t k = 0; k < size * (size_t)n; k++)
                    assert_int_equal(bytes[k], 0);
            }
        }
        float f[3];
        assert_int_equal(ls_copy_out(ls_full(LS_F32, LS_DIMS(3), -2.5), f, sizeof f), LS_OK);
        assert_true(f[0] == -2.5f && f[1] == -2.5f && f[2] == -2.5f);
        assert_int_equal(ls_to_int(ls_full(LS_U8, LS_SCALAR, 1000)), 255);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(scalars_convert, clean),
        cmocka_unit_test_setup(reading_one_number, clean),
        cmocka_unit_test_setup(fills, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
