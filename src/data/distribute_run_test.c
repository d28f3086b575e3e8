/*
 * Strategies that run on distributed datasets: traced and eager steps, replicas that have nothing, the
 * same results on any placement, so many steps made ahead.
 */
#include <sched.h>
#include <stdatomic.h>

#include "data/distribute_test_support.h"

/* ---- T50: the sum of squares by a variable that is summed up ----------------------------------- */

static ls_value *add_squares(ls_value *batch, void *user)
{
    ls_variable *total = user;
    ls_tensor *x = ls_cast(ls_leaf_tensor(batch), LS_F32);
    ls_assign_add(total, ls_sum(ls_mul(x, x), LS_ALL_AXES, false));
    return ls_list(0, NULL);
}

static ls_variable *sum_variable(ls_strategy *s)
{
    ls_variable *v = NULL;
    LS_SCOPE (s)
        v = ls_variable_with(
            LS_VARIABLE(.synchronization = LS_SYNC_ON_READ, .aggregation = LS_AGGREGATE_SUM),
            "total", ls_scalar(LS_F32, 0));
    assert_non_null(v);
    return v;
}

static void t50_sum_of_squares(void **state)
{
    (void)state;
    for (int pipelines = 1; pipelines <= 2; pipelines++)
        for (int traced = 0; traced < 2; traced++) {
            ls_strategy *s = strategy_of(pipelines, 2, false);
            LS_FRAME {
                ls_variable *total = sum_variable(s);
                ls_function *step = traced ? ls_trace(add_squares, total) : NULL;
                ls_dataset *d =
                    ls_with_auto_shard(ls_batch(ls_range(0, 10, 1), 4), LS_AUTO_SHARD_DATA);
                LS_FOR_EACH (batch, ls_distribute(s, d))
                    assert_non_null(traced ? ls_run(s, step, batch)
                                           : ls_run_eager(s, add_squares, total, batch));
                assert_int_equal(ls_error_pending(), LS_OK);
                assert_float_equal(ls_to_float(ls_read(total)), 285, 0);
                ls_function_free(step);
                ls_variable_free(total);
            }
            free_strategy(s);
        }
}

/* ---- training ----------------------------------------------------------------------------------- */

typedef struct model {
    ls_variable *w, *b;
    ls_optimizer *sgd;
} model;

static ls_value *train_step(ls_value *batch, void *user)
{
    model *m = user;
    ls_tensor *x = ls_item(batch, 0), *y = ls_item(batch, 1);
    ls_tape *tape = ls_tape_open();
    ls_tensor *guess = ls_dense(x, ls_read(m->w), ls_read(m->b));
    ls_tensor *loss = ls_compute_average_loss(ls_mse(guess, y), 7);
    ls_minimize(m->sgd, tape, loss, 2, (ls_variable *[]){ m->w, m->b });
    return ls_leaf(loss);
}

static ls_value *line(void)
{
    float x[17], y[17];
    for (int i = 0; i < 17; i++) {
        x[i] = (float)i / 16;
        y[i] = 2 * x[i] + 1;
    }
    return ls_tensors(2, (ls_tensor *[]){ ls_from(LS_F32, LS_DIMS(17, 1), x),
                                          ls_from(LS_F32, LS_DIMS(17, 1), y) });
}

/* Trains on batches of 7, 7 and 3 of 17 rows: replicas have 2 2 2 1, then 2 1 0 0. The weights. */
static void train(const char *devices, int pipelines, bool traced, float *out)
{
    ls_strategy *s =
        ls_mirrored(LS_MIRRORED(.devices = devices, .replicas = 4, .input_pipelines = pipelines));
    model m = { 0 };
    LS_FRAME {
        LS_SCOPE (s) {
            m.w = ls_variable_new("w", ls_zeros(LS_F32, LS_DIMS(1, 1)), true);
            m.b = ls_variable_new("b", ls_zeros(LS_F32, LS_DIMS(1)), true);
        }
        m.sgd = ls_sgd(LS_SGD(.rate = 0.2));
        ls_function *step = ls_trace(train_step, &m);
        ls_dataset *d =
            ls_distribute(s, ls_with_auto_shard(ls_batch(ls_make_numpy_dataset(s, line()), 7),
                                                LS_AUTO_SHARD_DATA));
        for (int epoch = 0; epoch < 3; epoch++)
            LS_FOR_EACH (batch, d)
                assert_non_null(traced ? ls_run(s, step, batch)
                                       : ls_run_eager(s, train_step, &m, batch));
        if (ls_error_pending())
            fail_msg("%s", ls_error_report());
        assert_int_equal(ls_steps(s), 9);
        out[0] = ls_to_float(ls_read(m.w));
        out[1] = ls_to_float(ls_read(m.b));
        ls_function_free(step);
        ls_optimizer_free(m.sgd);
        ls_variable_free(m.w);
        ls_variable_free(m.b);
    }
    free_strategy(s);
}

static void training_is_the_same_everywhere(void **state)
{
    (void)state;
    float want[2], got[2];
    train("/cpu:0", 1, true, want);
    assert_true(want[0] > 0.1f && want[1] > 0.1f); /* it did learn something */
    for (int traced = 0; traced < 2; traced++) {
        train("/cpu:0", 1, traced, got);
        assert_memory_equal(got, want, sizeof want);
        train("/cpu:0,/cpu:1", 1, traced, got);
        assert_memory_equal(got, want, sizeof want);
    }
}

/* Other rows for other replicas, so other sums; the same ones on any placement. */
static void several_pipelines_train_the_same_everywhere(void **state)
{
    (void)state;
    float want[2], got[2];
    train("/cpu:0", 2, true, want);
    train("/cpu:0,/cpu:1", 2, true, got);
    assert_memory_equal(got, want, sizeof want);
}

/* ---- ls_run_next ---------------------------------------------------------------------------------- */

static ls_value *rows_of(ls_value *batch, void *user)
{
    (void)user;
    return ls_leaf(ls_scalar_int(LS_I64, ls_dim(ls_leaf_tensor(batch), 0)));
}

static void runs_take_the_next(void **state)
{
    (void)state;
    ls_strategy *s = strategy_of(1, 3, false);
    LS_FRAME {
        ls_iterator *it = ls_make_dataset_iterator(s, ls_batch(ls_range(0, 8, 1), 6));
        assert_int_equal(ls_initialize(it), LS_OK);
        static const int64_t want[] = { 6, 2 };
        for (int i = 0; i < 2; i++) {
            ls_value *rows = ls_run_next(s, rows_of, NULL, ls_next_of, it);
            assert_int_equal(ls_to_int(ls_reduce(s, LS_SUM, rows, LS_NO_AXIS)), want[i]);
        }
        assert_null(ls_run_next(s, rows_of, NULL, ls_next_of, it));
        assert_int_equal(ls_error(), LS_END);
        ls_iterator_free(it);
    }
    free_strategy(s);
}

/* ---- ahead --------------------------------------------------------------------------------------- */

static _Atomic int64_t made;

static ls_value *count_made(ls_value *v, void *user)
{
    (void)user;
    made++;
    return v;
}

static ls_dataset *counted(int64_t batch)
{
    ls_dataset *d = ls_batch(ls_range(0, 10000, 1), batch);
    return ls_map(d, LS_MAP(.fn = count_made, .spec = batch == 8 ? "i64[8]" : "i64[2]"));
}

static ls_dataset *counted_for_each(const ls_input_context *c, void *user)
{
    (void)c, (void)user;
    return counted(2);
}

/* Takes so many steps, and gives the threads time; what is made is for no more than `most` elements of
 * each pipeline beyond those taken. */
static void made_ahead(ls_dataset *d, int steps, int64_t taken, int64_t most)
{
    made = 0;
    ls_iterator *it = ls_iterate(d);
    for (int i = 0; i < steps; i++)
        LS_FRAME {
            ls_value *v = NULL;
            assert_int_equal(ls_next(it, &v), LS_OK);
        }
    while (made < taken + most / 2)
        sched_yield();
    for (int i = 0; i < 2000; i++)
        sched_yield();
    assert_true(made <= taken + most);
    ls_iterator_free(it);
}

/* .prefetch counts steps: of a batch that lasts for P steps there is one in P. */
static void so_many_steps_are_made_ahead(void **state)
{
    (void)state;
    enum { P = 2, EACH = 2, STEPS = 10 };
    static const int prefetch[] = { -1, 1, 8 };
    for (int i = 0; i < 3; i++)
        LS_FRAME {
            ls_strategy *s = strategy_ahead(P, EACH, prefetch[i]);
            const int64_t n = prefetch[i] < 0 ? 0 : prefetch[i];
            ls_dataset *off = ls_with_auto_shard(counted(8), LS_AUTO_SHARD_OFF);
            made_ahead(ls_distribute(s, off), STEPS, STEPS, P * ((n + P - 1) / P));
            ls_dataset *data = ls_with_auto_shard(counted(8), LS_AUTO_SHARD_DATA);
            made_ahead(ls_distribute(s, data), STEPS, STEPS, n); /* read once for all */
            made_ahead(ls_distribute_from_function(s, counted_for_each, NULL), STEPS,
                       P * EACH * STEPS, P * EACH * n);
            free_strategy(s);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(t50_sum_of_squares, clean),
        cmocka_unit_test_setup(training_is_the_same_everywhere, clean),
        cmocka_unit_test_setup(several_pipelines_train_the_same_everywhere, clean),
        cmocka_unit_test_setup(runs_take_the_next, clean),
        cmocka_unit_test_setup(so_many_steps_are_made_ahead, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
