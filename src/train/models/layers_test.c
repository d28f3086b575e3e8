/* Layers in replicas: moving statistics are each replica's own, and 0 rows change none. */
#include <lockstep/function.h>
#include <lockstep/strategy.h>
#include <lockstep/value.h>

#include "tensor/test_support.h"
#include "train/models/layers.h"

enum { REPLICAS = 2, CHANNELS = 3 };

static ls_value *step(ls_value *arguments, void *user)
{
    ls_tensor *y = ls__batch_norm(user, ls_item(arguments, 0), true);
    return y ? ls_leaf(y) : NULL;
}

/* Replica 0 has four rows of 1, 2, 3 and twice that, replica 1 has none. */
static ls_value *rows_of(int replica, int replicas, void *user)
{
    (void)replicas;
    (void)user;
    const float x[] = { 1, 2, 3, 3, 6, 9 };
    ls_tensor *t = ls_from(LS_F32, LS_DIMS(replica ? 0 : 2, CHANNELS), x);
    return ls_tensors(1, &t);
}

static void statistics_of(ls_strategy *s, bool traced)
{
    ls__layers l = { .variables = NULL };
    ls__batch_norm_layer norm;
    LS_SCOPE (s)
        norm = ls__batch_norm_new(&l, "norm", CHANNELS);
    assert_int_equal(l.status, LS_OK);
    ls_function *f = ls_trace(step, &norm);
    LS_FRAME {
        ls_value *rows = ls_distribute_values(s, rows_of, NULL);
        assert_non_null(traced ? ls_run(s, f, rows) : ls_run_eager(s, step, &norm, rows));
        float mean[CHANNELS];
        for (int r = 0; r < REPLICAS; r++) {
            ls_tensor *own = ls_read(ls_variable_component(norm.mean, r));
            assert_int_equal(ls_copy_out(own, mean, sizeof mean), LS_OK);
            for (int c = 0; c < CHANNELS; c++)
                assert_float_equal(mean[c], r ? 0 : 0.02 * (c + 1), 1e-6);
        }
        ls_copy_out(ls_read(norm.mean), mean, sizeof mean); /* the mean of both */
        assert_float_equal(mean[1], 0.02, 1e-6);
    }
    ls_function_free(f);
    ls__layers_free(&l);
}

static void batch_norm_in_replicas(void **state)
{
    (void)state;
    for (int devices = 1; devices <= REPLICAS; devices++)
        for (int traced = 0; traced < 2; traced++) {
            ls_strategy *s =
                ls_mirrored(LS_MIRRORED(.devices = devices == 1 ? "/cpu:0" : "/cpu:0,/cpu:1",
                                        .replicas = REPLICAS));
            assert_non_null(s);
            statistics_of(s, traced);
            assert_int_equal(ls_strategy_free(s), LS_OK);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(batch_norm_in_replicas, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
