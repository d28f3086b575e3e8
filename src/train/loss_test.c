/*
 * Losses scaled for replicas: TensorFlow's numbers, any number of replicas eager and traced,
 * gradients, and what is refused.
 */
#include <lockstep/loss.h>
#include <lockstep/ops.h>
#include <lockstep/strategy.h>
#include <lockstep/tape.h>

#include <math.h>

#include "tensor/test_support.h"

static void is(ls_tensor *t, double want)
{
    if (!t)
        fail_msg("%s", ls_error_report());
    assert_int_equal(ls_rank(t), 0);
    if (!(fabs(ls_to_double(t) - want) <= 1e-6 * fabs(want)))
        fail_msg("%.9g, not %.9g", ls_to_double(t), want);
}

static void refused(const void *result, ls_status want, const char *text)
{
    assert_null(result);
    if (!strstr(ls_error_text(), text))
        fail_msg("'%s' lacks '%s'", ls_error_text(), text);
    assert_true(strlen(ls_error_hint()) > 0);
    failed(want);
}

static ls_tensor *losses(ls_dtype dtype)
{
    return ls_cast(ls_from(LS_F32, LS_DIMS(3, 2), (float[]){ 0.5f, 1.25f, 2, -3, 0.125f, 7 }),
                   dtype);
}

/* Numbers of tf.nn.compute_average_loss and tf.nn.scale_regularization_loss. */
static void as_tensorflow(void **state)
{
    (void)state;
    static const ls_dtype floats[] = { LS_F32, LS_F64 };
    for (int i = 0; i < 2; i++)
        LS_FRAME {
            ls_tensor *l = losses(floats[i]);
            is(ls_compute_average_loss(l, 0), 2.625);
            is(ls_compute_average_loss(l, 24), 0.328125);
            is(ls_scale_regularization_loss(l), 7.875);
            assert_int_equal(ls_dtype_of(ls_compute_average_loss(l, 24)), floats[i]);

            ls_tensor *rows = ls_from(LS_F32, LS_DIMS(3), (float[]){ 1, 0.5f, 2 });
            is(ls_compute_weighted_average_loss(l, rows, 0), 5.1666665);
            is(ls_compute_weighted_average_loss(l, ls_expand_dims(rows, -1), 0), 5.1666665);
            ls_tensor *one =
                ls_squeeze(ls_slice(l, 2, (int64_t[]){ 0, 0 }, (int64_t[]){ 3, 1 }), LS_AXES(-1));
            is(ls_compute_weighted_average_loss(one, ls_expand_dims(rows, -1), 5), 0.35);
            ls_tensor *mask = ls_from(LS_BOOL, LS_DIMS(3, 1), (bool[]){ true, false, true });
            is(ls_compute_weighted_average_loss(l, mask, 0), 2.9583333);
            is(ls_compute_weighted_average_loss(l, ls_scalar(LS_F32, 2), 24), 0.65625);
        }
}

static void bf16_divides_by_the_exact_number(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *each = ls_cast(ls_ones(LS_F32, LS_DIMS(256)), LS_BF16);
        ls_tensor *loss = ls_compute_average_loss(each, 257);
        is(loss, 0.99609375); /* bf16 has no 257, and 256 would give 1 */
        assert_int_equal(ls_dtype_of(loss), LS_BF16);
    }
}

static void no_rows_have_no_loss(void **state)
{
    (void)state;
    LS_FRAME {
        is(ls_compute_average_loss(ls_zeros(LS_F32, LS_DIMS(0)), 0), 0);
        is(ls_compute_average_loss(ls_zeros(LS_F32, LS_DIMS(0, 3)), 8), 0);
        is(ls_compute_weighted_average_loss(ls_zeros(LS_F32, LS_DIMS(0, 3)),
                                            ls_zeros(LS_F32, LS_DIMS(0)), 0),
           0);
    }
}

/* ---- replicas ------------------------------------------------------------------------------- */

/* (inferred batch, batch of 6, weighted, penalty, d inferred / dx) of two rows. */
static ls_value *step(ls_value *arguments, void *user)
{
    (void)arguments, (void)user;
    double first = ls_replica_id(ls_get_replica_context()) + 1;
    ls_tensor *x =
        ls_add(ls_from(LS_F64, LS_DIMS(2), (double[]){ 0, 10 }), ls_scalar(LS_F64, first));
    ls_tape *tape = ls_tape_open();
    ls_tensor *out[5];
    out[0] = ls_compute_average_loss(ls_square(x), 0);
    out[1] = ls_compute_average_loss(x, 6);
    out[2] =
        ls_compute_weighted_average_loss(x, ls_from(LS_I32, LS_DIMS(2), (int32_t[]){ 1, 3 }), 0);
    out[3] = ls_scale_regularization_loss(ls_from(LS_F64, LS_DIMS(2), (double[]){ 1, 2 }));
    out[4] = ls_gradient(tape, out[0], x);
    return ls_tensors(5, out);
}

static void sums_over_replicas_are_the_loss_of_the_batch(void **state)
{
    (void)state;
    for (int v = 1; v <= 3; v++)
        for (int traced = 0; traced < 2; traced++)
            LS_FRAME {
                ls_strategy *s = ls_mirrored(LS_MIRRORED(.replicas = v));
                ls_function *f = ls_trace(step, NULL);
                ls_value *got = traced ? ls_run(s, f, ls_list(0, NULL))
                                       : ls_run_eager(s, step, NULL, ls_list(0, NULL));
                double squares = 0, sum = 0, weighted = 0;
                for (int r = 1; r <= v; r++) {
                    squares += r * r + (10 + r) * (10 + r);
                    sum += 10 + 2 * r;
                    weighted += r + 3 * (10 + r);
                }
                if (!got)
                    fail_msg("%s", ls_error_report());
                is(ls_reduce(s, LS_SUM, ls_child(got, 0), LS_NO_AXIS), squares / (2 * v));
                is(ls_reduce(s, LS_SUM, ls_child(got, 1), LS_NO_AXIS), sum / 6);
                is(ls_reduce(s, LS_SUM, ls_child(got, 2), LS_NO_AXIS), weighted / (2 * v));
                is(ls_reduce(s, LS_SUM, ls_child(got, 3), LS_NO_AXIS), 3);
                ls_value *last = v == 1 ? got : ls_child(ls_local_results(s, got), v - 1);
                double slope[2];
                assert_int_equal(ls_copy_out(ls_item(last, 4), slope, sizeof slope), LS_OK);
                assert_true(fabs(slope[1] - 2.0 * (10 + v) / (2 * v)) < 1e-12);
                ls_function_free(f);
                ls_strategy_free(s);
            }
}

/* ---- refused ------------------------------------------------------------------------------------ */

static void a_replica_is_wanted_where_they_are_counted(void **state)
{
    (void)state;
    ls_strategy *s = ls_mirrored(LS_MIRRORED(.replicas = 2));
    LS_SCOPE (s) {
        ls_tensor *l = losses(LS_F32);
        refused(ls_compute_average_loss(l, 0), LS_STATE, "cross-replica context");
        refused(ls_compute_weighted_average_loss(l, l, 0), LS_STATE, "cross-replica context");
        refused(ls_scale_regularization_loss(l), LS_STATE, "cross-replica context");
        is(ls_compute_average_loss(l, 24), 0.328125); /* nothing to count */
    }
    ls_strategy_free(s);
}

static void bad_arguments(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *l = losses(LS_F32), *whole = ls_cast(l, LS_I32);
        refused(ls_compute_average_loss(l, -1), LS_INVALID, "batch of -1");
        refused(ls_compute_average_loss(l, INT64_MIN), LS_INVALID, "batch of -9223372036854775808");
        is(ls_compute_average_loss(l, INT64_MAX), 7.875 / 9223372036854775807.0);
        refused(ls_compute_average_loss(whole, 0), LS_SHAPE, "i32[3,2]");
        refused(ls_scale_regularization_loss(whole), LS_SHAPE, "i32[3,2]");
        refused(ls_compute_average_loss(ls_scalar(LS_F32, 1), 0), LS_SHAPE, "rank 1 or more");
        static const int64_t wrong[][2] = { { 2, 2 }, { 3, 3 }, { 1, 4 } };
        for (int i = 0; i < 3; i++)
            refused(ls_compute_weighted_average_loss(l, ls_ones(LS_F32, 2, wrong[i]), 0), LS_SHAPE,
                    "weights are f32[");
        refused(ls_compute_weighted_average_loss(l, ls_ones(LS_F32, LS_DIMS(2)), 0), LS_SHAPE,
                "weights are f32[2], per_example is f32[3,2]");
        refused(ls_compute_weighted_average_loss(l, ls_ones(LS_F32, LS_DIMS(1, 3, 2)), 0), LS_SHAPE,
                "f32[1,3,2]");
    }
}

static void nothing_is_not_optional(void **state)
{
    (void)state;
    LS_FRAME {
        assert_null(ls_compute_average_loss(NULL, 1));
        assert_non_null(strstr(ls_error_text(), "per_example"));
        failed(LS_INVALID);
        assert_null(ls_compute_weighted_average_loss(losses(LS_F32), NULL, 1));
        assert_non_null(strstr(ls_error_text(), "weights"));
        failed(LS_INVALID);
        assert_null(ls_scale_regularization_loss(NULL));
        failed(LS_INVALID);
        /* An error on the way in comes out. */
        assert_null(ls_compute_average_loss(ls_reshape(losses(LS_F32), LS_DIMS(7)), 1));
        assert_non_null(strstr(ls_error_text(), "reshape"));
        failed(LS_SHAPE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(as_tensorflow, clean),
        cmocka_unit_test_setup(bf16_divides_by_the_exact_number, clean),
        cmocka_unit_test_setup(no_rows_have_no_loss, clean),
        cmocka_unit_test_setup(sums_over_replicas_are_the_loss_of_the_batch, clean),
        cmocka_unit_test_setup(a_replica_is_wanted_where_they_are_counted, clean),
        cmocka_unit_test_setup(bad_arguments, clean),
        cmocka_unit_test_setup(nothing_is_not_optional, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
