/*
 * Batch norm layers: what they do to their moving statistics, alone and in replicas, against plain C
 * loops; V = 1, 2, 3 on one device and on two have the same bits, traced or eager, with and
 * without `sync`; rows of any number, and none.
 */
#include <lockstep.h>
#include <math.h>
#include <string.h>

#include "tensor/test_support.h"
#include "train/model.h"

enum { CHANNELS = 3, MOST_REPLICAS = 3, MOST_ROWS = 4, STEPS = 3 };

static const double momentum = 0.75, epsilon = 1e-2;

static ls_model *norm_model(bool sync)
{
    ls_model *m = ls_model_new(LS_MODEL(.input = "f32[3]"));
    ls_batch_norm_layer(m, LS_BATCH_NORM_LAYER(.name = "norm", .momentum = momentum,
                                               .epsilon = epsilon, .sync = sync));
    return m;
}

/* ---- alone ------------------------------------------------------------------------------------ */

static void moves_its_statistics(void **state)
{
    (void)state;
    LS_FRAME {
        ls_model *m = ls_model_new(LS_MODEL(.input = "f32[1]"));
        ls_layer *norm = ls_batch_norm_layer(m, NULL);
        assert_int_equal(ls_model_build(m), LS_OK);
        ls_variable *mean = ls_layer_variable(norm, "mean");
        ls_variable *variance = ls_layer_variable(norm, "variance");
        assert_false(ls_variable_trainable(mean));
        ls_tensor *x = ls_from(LS_F32, LS_DIMS(4, 1), (float[]){ 2, 4, 6, 8 }); /* mean 5, var 5 */
        float y[4], still[4];
        ls_copy_out(ls_model_forward(m, x, false), still, sizeof still);
        assert_float_equal(still[0], 2 / sqrt(1.001), 1e-5); /* mean 0, variance 1 */
        assert_float_equal(ls_to_float(ls_read(mean)), 0, 0);
        ls_copy_out(ls_model_forward(m, x, true), y, sizeof y);
        assert_float_equal(y[3], 3 / sqrt(5.001), 1e-5);
        assert_float_equal(ls_to_float(ls_read(mean)), 0.05, 1e-6);
        assert_float_equal(ls_to_float(ls_read(variance)), 1.04, 1e-6);
        ls_model_forward(m, x, true);
        assert_float_equal(ls_to_float(ls_read(mean)), 0.0995, 1e-6);
        assert_non_null(ls_model_forward(m, ls_zeros(LS_F32, LS_DIMS(0, 1)), true));
        assert_float_equal(ls_to_float(ls_read(mean)), 0.0995, 1e-6); /* no rows, no step */
        ls_copy_out(ls_model_forward(m, x, false), y, sizeof y);
        assert_float_equal(y[0], (2 - 0.0995) / sqrt(1.0796 + 0.001), 1e-5);
        ls_model_free(m);
    }
}

/* Of bf16 rows: the statistics are f32, and 0.99 of them is not rounded to all. */
static void bf16_has_exact_statistics(void **state)
{
    (void)state;
    LS_FRAME {
        ls_model *m = ls_model_new(LS_MODEL(.input = "bf16[1]"));
        ls_layer *norm = ls_batch_norm_layer(m, NULL);
        assert_int_equal(ls_model_build(m), LS_OK);
        ls_tensor *x = ls_full(LS_BF16, LS_DIMS(4, 1), 3);
        for (int i = 0; i < 300; i++)
            LS_FRAME
                assert_int_equal(ls_dtype_of(ls_model_forward(m, x, true)), LS_BF16);
        float mean = ls_to_float(ls_read(ls_layer_variable(norm, "mean")));
        assert_float_equal(mean, 3 * (1 - pow(0.99, 300)), 1e-4);
        assert_int_equal(ls_dtype_of(ls_model_forward(m, x, false)), LS_BF16);
        ls_model_free(m);
    }
}

/* ---- in replicas -------------------------------------------------------------------------------- */

/* What a run of some steps is: how many rows each replica has in each step. */
typedef struct plan {
    int replicas;
    bool sync;
    int rows[STEPS][MOST_REPLICAS];
} plan;

static float number(int step, int replica, int row, int channel)
{
    return (float)((7 * step + 5 * replica + 3 * row + 2 * channel) % 11) / 4 - (float)channel;
}

typedef struct turn {
    const plan *p;
    int step;
} turn;

static ls_value *rows_of(int replica, int replicas, void *user)
{
    (void)replicas;
    const turn *t = user;
    float x[MOST_ROWS * CHANNELS];
    int rows = t->p->rows[t->step][replica];
    for (int i = 0; i < rows; i++)
        for (int c = 0; c < CHANNELS; c++)
            x[i * CHANNELS + c] = number(t->step, replica, i, c);
    ls_tensor *tensor = ls_from(LS_F32, LS_DIMS(rows, CHANNELS), x);
    return ls_tensors(1, &tensor);
}

static ls_value *train(ls_value *arguments, void *user)
{
    ls_tensor *y = ls_model_forward(user, ls_item(arguments, 0), true);
    return y ? ls_leaf(y) : NULL;
}

/* Mean and variance of each replica, and what all read. */
typedef struct outcome {
    float mean[MOST_REPLICAS + 1][CHANNELS], variance[MOST_REPLICAS + 1][CHANNELS];
} outcome;

static void note(ls_variable *v, int replicas, float out[MOST_REPLICAS + 1][CHANNELS])
{
    for (int r = 0; r < replicas; r++)
        assert_int_equal(ls_copy_out(ls_read(ls_variable_component(v, r)), out[r], sizeof out[r]),
                         LS_OK);
    assert_int_equal(ls_copy_out(ls_read(v), out[MOST_REPLICAS], sizeof out[0]), LS_OK);
}

static void run_plan(const plan *p, const char *devices, bool traced, outcome *out)
{
    memset(out, 0, sizeof *out);
    ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = devices, .replicas = p->replicas));
    assert_non_null(s);
    ls_model *m = norm_model(p->sync);
    LS_SCOPE (s)
        assert_int_equal(ls_model_build(m), LS_OK);
    ls_function *f = ls_trace(train, m);
    for (int k = 0; k < STEPS; k++)
        LS_FRAME {
            ls_value *rows = ls_distribute_values(s, rows_of, &(turn){ p, k });
            if (!(traced ? ls_run(s, f, rows) : ls_run_eager(s, train, m, rows)))
                fail_msg("%s", ls_error_report());
        }
    LS_FRAME {
        note(ls_model_variables(m)[2], p->replicas, out->mean);
        note(ls_model_variables(m)[3], p->replicas, out->variance);
    }
    ls_function_free(f);
    ls_model_free(m);
    assert_int_equal(ls_strategy_free(s), LS_OK);
}

/* Of replica `first` to `last` together. */
static int moments(const plan *p, int step, int first, int last, int c, double *mean, double *var)
{
    double sum = 0, squares = 0;
    int n = 0;
    for (int r = first; r <= last; r++)
        for (int i = 0; i < p->rows[step][r]; i++, n++) {
            double x = (double)number(step, r, i, c);
            sum += x;
            squares += x * x;
        }
    *mean = n ? sum / n : 0;
    *var = n ? squares / n - *mean * *mean : 0;
    return n;
}

/* What the header promises, in plain C. */
static void expect(const plan *p, const outcome *got)
{
    for (int c = 0; c < CHANNELS; c++) {
        double mean[MOST_REPLICAS] = { 0 }, variance[MOST_REPLICAS] = { 0 }, sums[2] = { 0 };
        for (int r = 0; r < p->replicas; r++) {
            variance[r] = 1;
            for (int k = 0; k < STEPS; k++) {
                double a, b;
                int first = p->sync ? 0 : r, last = p->sync ? p->replicas - 1 : r;
                if (!moments(p, k, first, last, c, &a, &b))
                    continue;
                mean[r] = momentum * mean[r] + (1 - momentum) * a;
                variance[r] = momentum * variance[r] + (1 - momentum) * b;
            }
            assert_float_equal(got->mean[r][c], mean[r], 1e-5);
            assert_float_equal(got->variance[r][c], variance[r], 1e-5);
            sums[0] += mean[r] / p->replicas;
            sums[1] += variance[r] / p->replicas;
        }
        assert_float_equal(got->mean[MOST_REPLICAS][c], sums[0], 1e-5);
        assert_float_equal(got->variance[MOST_REPLICAS][c], sums[1], 1e-5);
    }
}

static void statistics_in_replicas(void **state)
{
    (void)state;
    static const int rows[STEPS][MOST_REPLICAS] = { { 4, 2, 1 }, { 3, 0, 4 }, { 0, 0, 0 } };
    for (int v = 1; v <= MOST_REPLICAS; v++)
        for (int sync = 0; sync < 2; sync++) {
            plan p = { .replicas = v, .sync = sync };
            memcpy(p.rows, rows, sizeof rows);
            outcome first, other;
            run_plan(&p, "/cpu:0", false, &first);
            expect(&p, &first);
            run_plan(&p, "/cpu:0", true, &other);
            assert_memory_equal(&first, &other, sizeof first);
            if (v == 1)
                continue;
            run_plan(&p, "/cpu:0,/cpu:1", false, &other);
            assert_memory_equal(&first, &other, sizeof first);
            run_plan(&p, "/cpu:0,/cpu:1", true, &other);
            assert_memory_equal(&first, &other, sizeof first);
        }
}

/* Replica 0 may be the one without rows; with `sync` it has the statistics all the same. */
static void no_rows_on_the_first(void **state)
{
    (void)state;
    for (int sync = 0; sync < 2; sync++)
        for (int traced = 0; traced < 2; traced++) {
            plan p = { .replicas = 2, .sync = sync, .rows = { { 0, 4 }, { 2, 2 }, { 0, 1 } } };
            outcome got;
            run_plan(&p, "/cpu:0,/cpu:1", traced, &got);
            expect(&p, &got);
            if (sync)
                assert_memory_equal(got.mean[0], got.mean[MOST_REPLICAS], sizeof got.mean[0]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(moves_its_statistics, clean),
        cmocka_unit_test_setup(bf16_has_exact_statistics, clean),
        cmocka_unit_test_setup(statistics_in_replicas, clean),
        cmocka_unit_test_setup(no_rows_on_the_first, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
