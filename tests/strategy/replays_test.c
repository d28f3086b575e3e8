/*
 * A traced step run again and again: with other values, other shapes, on other strategies; replays
 * that fail in some replicas. What it does is what the C function does eagerly.
 */
#include "strategy/strategy_support.h"

#include <stdio.h>

typedef struct model {
    ls_variable *mirrored, *own, *mean;
    int calls, merges;
} model;

static model make_model(ls_strategy *s)
{
    model m = { 0 };
    LS_SCOPE (s) {
        m.mirrored = ls_variable_with(LS_VARIABLE(.aggregation = LS_AGGREGATE_SUM), "mirrored",
                                      ls_scalar(LS_F32, 1));
        m.own = ls_variable_with(
            LS_VARIABLE(.synchronization = LS_SYNC_ON_READ, .aggregation = LS_AGGREGATE_SUM), "own",
            ls_scalar(LS_F32, 0));
        m.mean = ls_variable_with(LS_VARIABLE(.aggregation = LS_AGGREGATE_MEAN), "mean",
                                  ls_scalar(LS_F32, 0));
    }
    GAVE(m.mean);
    return m;
}

static void free_model(model *m)
{
    ls_variable_free(m->mirrored);
    ls_variable_free(m->own);
    ls_variable_free(m->mean);
}

/* ---- a step with everything in it ----------------------------------------------------- */

static ls_value *halve(ls_strategy *s, ls_value *arguments, void *user)
{
    model *m = user;
    m->merges++;
    ls_tensor *sum = ls_reduce(s, LS_SUM, arguments, LS_NO_AXIS);
    if (ls_assign_add(m->mirrored, sum))
        return NULL;
    return ls_leaf(ls_scale(sum, 0.5));
}

static ls_value *everything(ls_value *arguments, void *user)
{
    model *m = user;
    if (my_id() == 0)
        m->calls++;
    ls_replica *r = ls_get_replica_context();
    ls_tensor *x = ls_sum(ls_leaf_tensor(arguments), LS_ALL_AXES, false);
    ls_tensor *all = ls_leaf_tensor(ls_all_reduce(r, LS_SUM, ls_leaf(x)));
    if (ls_assign_add(m->own, x) || ls_assign(m->mean, x))
        return NULL;
    ls_value *half = ls_merge_call(r, halve, m, ls_leaf(x));
    return ls_list(5, (ls_value *[]){ ls_leaf(all), half, ls_leaf(ls_read(m->own)),
                                      ls_leaf(ls_read(m->mean)), ls_leaf(ls_read(m->mirrored)) });
}

/* Replica i has rows[i] rows of the number `value` + i. */
typedef struct batch {
    double value;
    const int *rows;
} batch;

static ls_value *rows_of(int replica, int replicas, void *user)
{
    (void)replicas;
    const batch *b = user;
    return ls_leaf(ls_full(LS_F32, LS_DIMS(b->rows[replica]), b->value + replica));
}

static void check_replays(ls_strategy *s, int n, bool traced)
{
    static const int even[] = { 2, 2, 2, 2, 2 }, last[] = { 2, 2, 1, 1, 0 },
                     none[] = { 1, 0, 0, 0, 0 };
    const int *const shapes[] = { even, even, last, even, none, last, none };
    model m = make_model(s);
    ls_function *f = ls_trace(everything, &m);
    double own[MOST_REPLICAS] = { 0 }, mirrored = 1;
    for (int step = 0; step < 7; step++)
        LS_FRAME {
            batch b = { step + 1, shapes[step] };
            ls_value *x = ls_distribute_values(s, rows_of, &b);
            ls_value *v = traced ? ls_run(s, f, x) : ls_run_eager(s, everything, &m, x);
            GAVE(v);
            double sum = 0;
            for (int i = 0; i < n; i++) {
                double mine = b.rows[i] * (b.value + i);
                sum += mine, own[i] += mine;
            }
            mirrored += sum;
            for (int i = 0; i < n; i++) {
                HOLDS(part(ls_child(v, 0), i), sum);
                HOLDS(part(ls_child(v, 1), i), sum / 2);
                HOLDS(part(ls_child(v, 2), i), own[i]);
                HOLDS(part(ls_child(v, 3), i), sum / n);
                HOLDS(part(ls_child(v, 4), i), mirrored);
            }
            HOLDS(ls_read(m.mirrored), mirrored);
            assert_int_equal(ls_steps(s), step + 1);
        }
    /* The C functions ran while tracing only: for each vector of shapes at most. */
    if (traced) {
        assert_in_range(m.calls, 1, 3);
        assert_in_range(m.merges, 1, 3);
    }
    ls_function_free(f);
    free_model(&m);
}

EVERYWHERE(a_replay_does_what_the_function_does, check_replays)

/* ---- replays that fail -------------------------------------------------------------------- */

/* 12 / x of integers, after a write of every kind: fails where x is 0. */
static ls_value *divide(ls_value *arguments, void *user)
{
    model *m = user;
    ls_tensor *one = my_number(1, 0);
    if (ls_assign_add(m->own, one) || ls_assign_add(m->mirrored, one))
        return NULL;
    ls_tensor *q = ls_div(ls_scalar_int(LS_I32, 12), ls_leaf_tensor(arguments));
    return ls_all_reduce(ls_get_replica_context(), LS_SUM, ls_leaf(q));
}

static ls_value *zero_where(int replica, int replicas, void *user)
{
    (void)replicas;
    return ls_leaf(ls_scalar_int(LS_I32, *(int *)user & 1 << replica ? 0 : replica + 1));
}

static void check_failing_replays(ls_strategy *s, int n, bool traced)
{
    model m = make_model(s);
    ls_function *f = ls_trace(divide, &m);
    double sum = 0;
    int good = 0;
    for (int i = 0; i < n; i++)
        sum += 12 / (i + 1);
    for (int mask = 0; mask < 1 << n; mask++)
        LS_FRAME {
            ls_value *x = ls_distribute_values(s, zero_where, &mask);
            ls_value *v = traced ? ls_run(s, f, x) : ls_run_eager(s, divide, &m, x);
            int lowest = 0;
            while (lowest < n && !(mask & 1 << lowest))
                lowest++;
            if (mask) {
                assert_null(v);
                FAILS(LS_INVALID, replica_named(lowest, n), "div");
                /* It goes on. */
                v = traced ? ls_run(s, f, ls_distribute_values(s, zero_where, &(int){ 0 }))
                           : ls_run_eager(s, divide, &m,
                                          ls_distribute_values(s, zero_where, &(int){ 0 }));
            }
            good++;
            HOLDS_EACH(v, n, sum, 0);
            HOLDS(ls_read(m.own), good * n);
            HOLDS(ls_read(m.mirrored), 1 + good * n);
            assert_int_equal(ls_steps(s), good);
        }
    ls_function_free(f);
    free_model(&m);
}

EVERYWHERE(a_replay_that_fails_names_the_lowest_replica_and_did_not_happen, check_failing_replays)

/* ---- one function, many strategies ------------------------------------------------------------ */

static ls_value *sum_of_ids(ls_value *arguments, void *user)
{
    (void)user;
    ls_tensor *x = ls_add(ls_leaf_tensor(arguments), my_number(0, 1));
    return ls_all_reduce(ls_get_replica_context(), LS_SUM, ls_leaf(x));
}

static void a_function_runs_on_any_number_of_strategies(void **state)
{
    (void)state;
    ls_function *f = ls_trace(sum_of_ids, NULL);
    for (int turn = 0; turn < 3; turn++)
        LS_FRAME {
            ls_strategy *a = replicas_on(2, 2), *b = replicas_on(3, 1);
            for (int again = 0; again < 2; again++) {
                HOLDS_EACH(ls_run(a, f, number(1)), 2, 3, 0);
                HOLDS_EACH(ls_run(b, f, number(2)), 3, 9, 0);
                HOLDS(ls_leaf_tensor(ls_function_call(f, number(5))), 5);
            }
            free_strategy(a);
            HOLDS_EACH(ls_run(b, f, number(2)), 3, 9, 0);
            free_strategy(b);
        }
    ls_function_free(f);
}

static ls_value *call_inner(ls_value *arguments, void *user)
{
    return ls_function_call(user, arguments);
}

static ls_value *run_inner(ls_strategy *s, ls_value *arguments, void *user)
{
    return ls_run(s, user, arguments);
}

static ls_value *merge_inner(ls_value *arguments, void *user)
{
    return ls_merge_call(ls_get_replica_context(), run_inner, user, arguments);
}

static void check_functions_inside(ls_strategy *s, int n, bool traced)
{
    /* Called by a replica, it is part of it: replica context and all. */
    ls_function *f = ls_trace(sum_of_ids, NULL);
    double sum = n + n * (n - 1) / 2;
    for (int again = 0; again < 2; again++)
        HOLDS_EACH(run_step(s, traced, call_inner, f, number(1)), n, sum, 0);
    for (int again = 0; again < 2; again++)
        HOLDS_EACH(run_step(s, traced, merge_inner, f, number(1)), n, sum, 0);
    ls_function_free(f);
}

EVERYWHERE(traced_functions_inside_steps_and_merges, check_functions_inside)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_replay_does_what_the_function_does),
        TEST(a_replay_that_fails_names_the_lowest_replica_and_did_not_happen),
        TEST(a_function_runs_on_any_number_of_strategies),
        TEST(traced_functions_inside_steps_and_merges),
    };
    return RUN_TESTS(tests);
}
