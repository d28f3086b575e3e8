/*
 * Losses of each row: what is refused, and that a model trains with each. Their numbers and gradients
 * are held against Keras by tests/golden_test.c.
 */
#include <lockstep.h>
#include <math.h>

#include "tensor/test_support.h"

static const ls_loss_fn all[] = { ls_mae, ls_huber, ls_hinge, ls_binary_xent, ls_kl_divergence };
static const char *const names[] = { "ls_mae", "ls_huber", "ls_hinge", "ls_binary_xent",
                                     "ls_kl_divergence" };
enum { LOSSES = sizeof all / sizeof *all };

static void refused(const void *result, ls_status want, const char *who)
{
    assert_null(result);
    if (!strstr(ls_error_text(), who))
        fail_msg("'%s' lacks '%s'", ls_error_text(), who);
    failed(want);
}

static void bad_arguments(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *x = ls_ones(LS_F32, LS_DIMS(4, 2));
        for (int i = 0; i < LOSSES; i++) {
            refused(all[i](x, ls_ones(LS_F32, LS_DIMS(4))), LS_SHAPE, names[i]);
            refused(all[i](x, ls_ones(LS_F32, LS_DIMS(4, 1))), LS_SHAPE, names[i]); /* no stretch */
            refused(all[i](x, ls_ones(LS_F64, LS_DIMS(4, 2))), LS_SHAPE, names[i]);
            refused(all[i](ls_cast(x, LS_I32), ls_cast(x, LS_I32)), LS_SHAPE, names[i]);
            refused(all[i](ls_scalar(LS_F32, 1), ls_scalar(LS_F32, 1)), LS_SHAPE, names[i]);
            refused(all[i](NULL, x), LS_INVALID, names[i]);
            refused(all[i](x, NULL), LS_INVALID, names[i]);
            refused(all[i](ls_reshape(x, LS_DIMS(3)), x), LS_SHAPE, "reshape"); /* comes out */
        }
        refused(ls_huber_delta(x, x, 0), LS_INVALID, "delta 0");
        refused(ls_huber_delta(x, x, NAN), LS_INVALID, "delta");
        refused(ls_huber_delta(x, x, INFINITY), LS_INVALID, "delta");
        refused(ls_huber_delta(x, NULL, 1), LS_INVALID, "labels");
        refused(ls_smooth_labels(NULL, 0.1), LS_INVALID, "labels");
        refused(ls_smooth_labels(ls_cast(x, LS_I32), 0.1), LS_SHAPE, "i32[4,2]");
        refused(ls_smooth_labels(ls_scalar(LS_F32, 1), 0.1), LS_SHAPE, "f32[]");
        refused(ls_smooth_labels(ls_ones(LS_F32, LS_DIMS(4, 0)), 0.1), LS_SHAPE, "f32[4,0]");
        refused(ls_smooth_labels(x, -0.1), LS_INVALID, "amount -0.1");
        refused(ls_smooth_labels(x, 1.1), LS_INVALID, "amount");
        refused(ls_smooth_labels(x, NAN), LS_INVALID, "amount");
    }
}

static void delta_of_one(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *x = ls_random_uniform(LS_F32, LS_DIMS(8, 3), -3, 3),
                  *y = ls_zeros(LS_F32, LS_DIMS(8, 3));
        assert_memory_equal(ls_data(ls_huber(x, y)), ls_data(ls_huber_delta(x, y, 1)), 32);
    }
}

typedef struct job {
    ls_model *m;
    ls_optimizer *sgd;
} job;

static ls_value *step(ls_value *batch, void *user)
{
    job *j = user;
    ls_tape *tape = ls_tape_open();
    ls_tensor *outputs = ls_model_forward(j->m, ls_item(batch, 0), true);
    ls_tensor *loss = ls_compute_average_loss(ls_model_loss(j->m)(outputs, ls_item(batch, 1)), 0);
    ls_minimize(j->sgd, tape, loss, ls_model_count(j->m), ls_model_variables(j->m));
    return ls_leaf(loss);
}

/* Two rows that a dense layer can tell apart: each loss falls to a tenth. */
static void each_teaches(void **state)
{
    (void)state;
    for (int i = 0; i < LOSSES; i++)
        LS_FRAME {
            ls_random_seed(1);
            job j = { .m = ls_model_new(
                          LS_MODEL(.input = "f32[2]", .label = "f32[2]", .loss = all[i])),
                      .sgd = ls_adam(LS_ADAM(.rate = 0.1)) };
            ls_dense_layer(j.m, LS_DENSE_LAYER(.units = 2, .activation = all[i] == ls_kl_divergence
                                                                             ? ls_sigmoid
                                                                             : NULL));
            assert_int_equal(ls_model_build(j.m), LS_OK);
            float low = all[i] == ls_hinge ? -1 : 0;
            ls_tensor *x = ls_from(LS_F32, LS_DIMS(2, 2), (float[]){ 1, 0, 0, 1 });
            ls_tensor *y = ls_from(LS_F32, LS_DIMS(2, 2), (float[]){ 1, low, low, 1 });
            ls_function *f = ls_trace(step, &j);
            float first = 0, last = 0;
            for (int k = 0; k < 200; k++)
                LS_FRAME {
                    ls_value *loss = ls_function_call(f, ls_tensors(2, (ls_tensor *[]){ x, y }));
                    last = ls_to_float(ls_leaf_tensor(loss));
                    first = k ? first : last;
                }
            if (!(last < first / 10))
                fail_msg("%s went from %g to %g", names[i], (double)first, (double)last);
            ls_function_free(f);
            ls_optimizer_free(j.sgd);
            ls_model_free(j.m);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(bad_arguments, clean),
        cmocka_unit_test_setup(delta_of_one, clean),
        cmocka_unit_test_setup(each_teaches, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
