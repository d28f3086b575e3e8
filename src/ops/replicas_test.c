/*
 * sum_replicas as a row: order, means, dtypes, gradients, and what it says of replicas that
 * differ. The kernels' bits: kernels/replicas_test.c.
 */
#include "ops/replicas.h"

#include <lockstep/ops.h>
#include <lockstep/tape.h>

#include "tensor/test_support.h"

static ls_tensor *floats(int n, const float *values)
{
    return ls_from(LS_F32, LS_DIMS(n), values);
}

static void adds_in_the_order_of_the_tree(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *big = ls_scalar(LS_F32, 16777216), *one = ls_scalar(LS_F32, 1);
        ls_tensor *xs[] = { big, one, one, one, one };
        assert_true(ls_to_float(ls__sum_replicas(LS_SUM, 5, xs)) ==
                    16777220); /* 16777216 in a row */
        assert_true(ls_to_float(ls__sum_replicas(LS_SUM, 3, xs)) == 16777216);
        ls_tensor *ys[] = { floats(2, (float[]){ 1, 2 }), floats(2, (float[]){ 3, 5 }),
                            floats(2, (float[]){ 6, 1 }) };
        float out[2];
        ls_tensor *mean = ls__sum_replicas(LS_MEAN, 3, ys);
        assert_int_equal(ls_copy_out(mean, out, sizeof out), LS_OK);
        assert_true(out[0] == 10.0f / 3 && out[1] == 8.0f / 3);
        assert_true(ls_to_float(ls__sum_replicas(LS_MEAN, 1, &big)) == 16777216);
        ls_tensor *none = ls_zeros(LS_F32, LS_DIMS(0, 3));
        assert_string_equal(
            ls_describe(ls__sum_replicas(LS_MEAN, 2, (ls_tensor *[]){ none, none })), "f32[0,3]");
    }
    assert_int_equal(ls_error_pending(), LS_OK);
}

static void integers_wrap_and_their_means_are_f64(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *a = ls_scalar_int(LS_I32, INT32_MAX), *b = ls_scalar_int(LS_I32, 2);
        ls_tensor *sum = ls__sum_replicas(LS_SUM, 2, (ls_tensor *[]){ a, b });
        assert_string_equal(ls_describe(sum), "i32[]");
        assert_int_equal(ls_to_int(sum), INT32_MIN + 1);
        ls_tensor *three = ls_scalar_int(LS_I32, 3);
        ls_tensor *mean = ls__sum_replicas(LS_MEAN, 2, (ls_tensor *[]){ three, b });
        assert_string_equal(ls_describe(mean), "f64[]");
        assert_true(ls_to_double(mean) == 2.5);
        ls_tensor *byte = ls_scalar_int(LS_U8, 200);
        assert_int_equal(ls_to_int(ls__sum_replicas(LS_SUM, 2, (ls_tensor *[]){ byte, byte })),
                         144);
        ls_tensor *long_one = ls_scalar_int(LS_I64, -7);
        assert_true(ls_to_double(
                        ls__sum_replicas(LS_MEAN, 2, (ls_tensor *[]){ long_one, long_one })) == -7);
    }
}

/* In bf16 a 1 is lost beside 256; summed in f32 the four of them are not. */
static void bf16_is_rounded_once(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *big = ls_scalar(LS_BF16, 256), *half = ls_scalar(LS_BF16, 0.5);
        ls_tensor *xs[] = { big, half, half, half, half };
        ls_tensor *sum = ls__sum_replicas(LS_SUM, 5, xs);
        assert_string_equal(ls_describe(sum), "bf16[]");
        assert_true(ls_to_float(sum) == 258);
    }
}

static void every_replica_gets_the_gradient(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *xs[3];
        for (int i = 0; i < 3; i++)
            xs[i] = ls_scalar(LS_F64, i + 1);
        ls_tape *tape = ls_tape_open();
        ls_tensor *sum = ls_square(ls__sum_replicas(LS_SUM, 3, xs));   /* 36 */
        ls_tensor *mean = ls_square(ls__sum_replicas(LS_MEAN, 3, xs)); /* 4 */
        for (int i = 0; i < 3; i++) {
            assert_true(ls_to_double(ls_gradient(tape, sum, xs[i])) == 12);
            ls_tensor *slope = ls_gradient(tape, mean, xs[i]);
            assert_true(ls_to_double(slope) == 4.0 / 3);
            assert_true(ls_to_double(ls_gradient(tape, slope, xs[2])) == 2.0 / 3 / 3);
        }
        ls_tensor *twice[] = { xs[0], xs[0] };
        assert_true(ls_to_double(ls_gradient(tape, ls__sum_replicas(LS_SUM, 2, twice), xs[0])) ==
                    2);
    }
}

static void replicas_that_differ_are_named(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *four = ls_zeros(LS_F32, LS_DIMS(4)), *two = ls_zeros(LS_F32, LS_DIMS(2));
        assert_null(ls__sum_replicas(LS_SUM, 2, (ls_tensor *[]){ four, two }));
        assert_string_equal(ls_error_text(),
                            "sum_replicas: replica 0 has f32[4], replica 1 f32[2]");
        failed(LS_SHAPE);
        ls_tensor *wide = ls_zeros(LS_F64, LS_DIMS(4));
        assert_null(ls__sum_replicas(LS_SUM, 4, (ls_tensor *[]){ four, four, wide, four }));
        assert_string_equal(
            ls_error_text(),
            "sum_replicas: replicas 0 to 1 have f32[4], replica 2 f64[4], replica 3 f32[4]");
        failed(LS_SHAPE);
        ls_tensor *many[64];
        for (int i = 0; i < 64; i++)
            many[i] = ls_zeros(LS_F32, LS_DIMS(i + 1));
        assert_null(ls__sum_replicas(LS_SUM, 64, many));
        assert_non_null(strstr(ls_error_text(), "replica 1 f32[2], "));
        assert_non_null(strstr(ls_error_text(), ", ..."));
        failed(LS_SHAPE);
        ls_tensor *yes = ls_ones(LS_BOOL, LS_DIMS(1));
        assert_null(ls__sum_replicas(LS_SUM, 2, (ls_tensor *[]){ yes, yes }));
        assert_non_null(strstr(ls_error_text(), "bool"));
        failed(LS_SHAPE);
        assert_null(ls__sum_replicas(LS_ONLY_FIRST, 1, &four));
        assert_non_null(strstr(ls_error_text(), "op 3 is neither SUM (1) nor MEAN (2)"));
        failed(LS_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(adds_in_the_order_of_the_tree, clean),
        cmocka_unit_test_setup(integers_wrap_and_their_means_are_f64, clean),
        cmocka_unit_test_setup(bf16_is_rounded_once, clean),
        cmocka_unit_test_setup(every_replica_gets_the_gradient, clean),
        cmocka_unit_test_setup(replicas_that_differ_are_named, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
