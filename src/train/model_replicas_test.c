/*
 * A model with every kind of layer trains in replicas: V = 1, 2, 3, on one device and on two, eager
 * and traced. Wherever replicas live, every variable, the loss and the metrics have the same bits; so
 * they have when a step is replayed without passes, and near ones with them. Replicas differ in
 * rows, and one may have none.
 */
#include <lockstep.h>
#include <math.h>
#include <stdlib.h>

#include "tensor/test_support.h"

enum { ROWS = 7, STEPS = 3, MOST_NUMBERS = 2048 };

typedef struct job {
    ls_model *m;
    ls_optimizer *adam;
    ls_metric *loss, *hits;
} job;

static ls_model *make_model(bool sync)
{
    ls_model *m = ls_model_new(LS_MODEL(.input = "f32[8,8,2]"));
    ls_conv_layer(m, LS_CONV_LAYER(.filters = 4, .no_bias = true, .padding = LS_SAME,
                                   .initial = ls_he_normal));
    ls_batch_norm_layer(m, LS_BATCH_NORM_LAYER(.momentum = 0.5, .sync = sync));
    ls_activation_layer(m, ls_relu);
    ls_max_pool_layer(m, 2);
    ls_conv_layer(m, LS_CONV_LAYER(.filters = 5, .activation = ls_relu));
    ls_avg_pool_layer(m, 2);
    ls_flatten_layer(m);
    ls_dropout_layer(m, 0.25);
    ls_layer_norm_layer(m, NULL, 0);
    ls_dense_layer(m, LS_DENSE_LAYER(.units = 3));
    return m;
}

static ls_value *step(ls_value *batch, void *user)
{
    job *j = user;
    ls_tensor *x = ls_item(batch, 0), *y = ls_item(batch, 1);
    ls_tape *tape = ls_tape_open();
    ls_tensor *logits = ls_model_forward(j->m, x, true);
    ls_tensor *each = ls_model_loss(j->m)(logits, y);
    ls_tensor *loss = ls_compute_average_loss(each, ROWS);
    ls_minimize(j->adam, tape, loss, ls_model_count(j->m), ls_model_variables(j->m));
    ls_metric_add(j->loss, each, NULL);
    ls_metric_update(j->hits, logits, y);
    return ls_leaf(loss);
}

/* The first replica has most of the rows, the middle one of three has none. */
static ls_value *rows_of(int replica, int replicas, void *user)
{
    static const int shares[4][3] = { { 0 }, { ROWS }, { 5, 2 }, { 4, 0, 3 } };
    const int turn = *(const int *)user;
    int from = 0, count = shares[replicas][replica];
    for (int i = 0; i < replica; i++)
        from += shares[replicas][i];
    float x[ROWS * 128];
    int32_t y[ROWS];
    for (int i = 0; i < count * 128; i++)
        x[i] = (float)((from * 128 + i) * 37 % 101 + turn * (i % 3)) / 50 - 1;
    for (int i = 0; i < count; i++)
        y[i] = (from + i + turn) % 3;
    return ls_tensors(2, (ls_tensor *[]){ ls_from(LS_F32, LS_DIMS(count, 8, 8, 2), x),
                                          ls_from(LS_I32, LS_DIMS(count), y) });
}

typedef enum mode { EAGER, PLAIN_TRACE, TRACE } mode;

typedef struct outcome {
    int count;
    float numbers[MOST_NUMBERS];
    double loss, hits;
    int64_t samples;
} outcome;

static void train(job *j, ls_strategy *s, mode how)
{
    ls_function *f =
        how == EAGER ? NULL : ls_trace_with(LS_TRACE(.off = how == TRACE ? "" : "all"), step, j);
    for (int k = 0; k < STEPS; k++)
        LS_FRAME {
            ls_value *rows = ls_distribute_values(s, rows_of, &k);
            if (!(f ? ls_run(s, f, rows) : ls_run_eager(s, step, j, rows)))
                fail_msg("%s", ls_error_report());
        }
    ls_function_free(f);
}

static void run(int replicas, const char *devices, mode how, bool sync, outcome *out)
{
    memset(out, 0, sizeof *out);
    ls_random_seed(1);
    ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = devices, .replicas = replicas));
    job j = { .m = make_model(sync), .adam = ls_adam(LS_ADAM(.rate = 0.01)) };
    LS_SCOPE (s) {
        assert_int_equal(ls_model_build(j.m), LS_OK);
        j.loss = ls_mean_metric("loss");
        j.hits = ls_accuracy("hits");
    }
    train(&j, s, how);
    for (int i = 0; i < ls_model_count(j.m); i++)
        LS_FRAME {
            ls_tensor *t = ls_read(ls_model_variables(j.m)[i]);
            assert_true(out->count + ls_count(t) <= MOST_NUMBERS);
            ls_copy_out(t, out->numbers + out->count, ls_size_in_bytes(t));
            out->count += (int)ls_count(t);
        }
    out->loss = ls_metric_result(j.loss);
    out->hits = ls_metric_result(j.hits);
    out->samples = ls_metric_samples(j.hits);
    ls_metric_free(j.loss);
    ls_metric_free(j.hits);
    ls_optimizer_free(j.adam);
    ls_model_free(j.m);
    assert_int_equal(ls_strategy_free(s), LS_OK);
    assert_int_equal(out->samples, STEPS * ROWS);
}

static void near(const outcome *a, const outcome *b)
{
    assert_float_equal(a->loss, b->loss, 1e-4);
    for (int i = 0; i < a->count; i++)
        assert_float_equal(a->numbers[i], b->numbers[i], 2e-3);
}

static void everywhere_the_same(void **state)
{
    (void)state;
    static outcome one, other; /* large */
    for (int v = 1; v <= 3; v++)
        for (int sync = 0; sync < 2; sync++) {
            run(v, "/cpu:0", EAGER, sync, &one);
            assert_true(one.loss > 0 && isfinite(one.loss));
            run(v, "/cpu:0", PLAIN_TRACE, sync, &other);
            assert_memory_equal(&one, &other, sizeof one);
            if (v > 1) {
                run(v, "/cpu:0,/cpu:1", EAGER, sync, &other);
                assert_memory_equal(&one, &other, sizeof one);
            }
            run(v, "/cpu:0", TRACE, sync, &other);
            near(&one, &other);
            if (v > 1) {
                run(v, "/cpu:0,/cpu:1", TRACE, sync, &one);
                assert_memory_equal(&one, &other, sizeof one);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(everywhere_the_same, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
