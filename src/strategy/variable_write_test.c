/*
 * Reading and writing variables where a strategy is: every row of the table of synchronizations
 * and aggregations, in each context, eager and traced; and what is refused.
 */
#include "strategy/variable_test_support.h"

enum { V = 3 };

typedef ls_status (*write_fn)(ls_variable *v, ls_tensor *value);
static const write_fn writes[] = { ls_assign, ls_assign_add, ls_assign_sub };
static const char *const write_names[] = { "ls_assign", "ls_assign_add", "ls_assign_sub" };

static ls_variable *make(ls_strategy *s, ls_synchronization sync, ls_aggregation aggregation,
                         double initial)
{
    ls_variable *v = NULL;
    LS_SCOPE (s)
        v = ls_variable_with(LS_VARIABLE(.synchronization = sync, .aggregation = aggregation), "v",
                             number(initial));
    assert_non_null(v);
    return v;
}

/* What a step of these tests does, on every replica. */
typedef struct job {
    ls_variable *v;
    write_fn write;
    ls_tensor *same; /* written by all, or NULL: id + 1 */
    ls_status got[V];
} job;

static ls_value *write_own(ls_value *arguments, void *user)
{
    (void)arguments;
    job *j = user;
    ls_tensor *x = j->same ? j->same : number(my_id() + 1);
    j->got[my_id()] = j->write(j->v, x);
    ls_tensor *after = ls_read(j->v);
    return after ? ls_leaf(after) : NULL;
}

/* ---- ON_WRITE ------------------------------------------------------------------------------ */

/* x_i is 1, 2, 3, and the variable 1. */
static void on_write_is_combined_and_written_once(void **state)
{
    (void)state;
    const struct {
        ls_aggregation aggregation;
        double want[3]; /* assign, add, sub */
    } rows[] = { { LS_AGGREGATE_SUM, { 6, 7, -5 } },
                 { LS_AGGREGATE_MEAN, { 2, 3, -1 } },
                 { LS_AGGREGATE_ONLY_FIRST, { 1, 2, 0 } } };
    ls_strategy *s = replicas(V);
    for (int r = 0; r < 3; r++)
        for (int w = 0; w < 3; w++)
            LS_FRAME {
                ls_variable *v = make(s, LS_SYNC_ON_WRITE, rows[r].aggregation, 1);
                job j = { .v = v, .write = writes[w] };
                ls_value *after = runs(s, write_own, &j);
                for (int i = 0; i < V; i++) {
                    assert_int_equal(j.got[i], LS_OK);
                    holds(ls_leaf_tensor(ls_select(after, i)), rows[r].want[w]);
                    holds(ls_read(ls_variable_component(v, i)), rows[r].want[w]);
                }
                holds(ls_read(v), rows[r].want[w]);
                /* Cross-replica: every copy, without scaling. */
                assert_int_equal(ls_assign(v, number(1)), LS_OK);
                LS_SCOPE (s)
                    assert_int_equal(writes[w](v, number(5)), LS_OK);
                holds(ls_read(v), w == 0 ? 5 : w == 1 ? 6 : -4);
                ls_variable_free(v);
            }
    ls_strategy_free(s);
}

static void without_aggregation_a_replica_does_not_write(void **state)
{
    (void)state;
    ls_strategy *s = replicas(V), *one = replicas(1);
    for (int w = 0; w < 3; w++)
        LS_FRAME {
            ls_variable *v = make(s, LS_SYNC_AUTO, LS_AGGREGATE_NONE, 1);
            job j = { .v = v, .write = writes[w] };
            assert_null(run(s, write_own, &j));
            assert_non_null(strstr(ls_error_text(), "variable 'v' has no aggregation"));
            assert_non_null(strstr(ls_error_text(), write_names[w]));
            said(LS_INVALID, "make it with .aggregation", ".local_writes");
            holds(ls_read(v), 1);
            assert_int_equal(writes[w](v, number(5)), LS_OK);
            holds(ls_read(v), w == 0 ? 5 : w == 1 ? 6 : -4);
            ls_variable_free(v);
            v = make(one, LS_SYNC_AUTO, LS_AGGREGATE_NONE, 1); /* the same with one replica */
            j.v = v;
            assert_null(run(one, write_own, &j));
            said(LS_INVALID, "variable 'v' has no aggregation", NULL);
            ls_variable_free(v);
        }
    ls_strategy_free(s);
    ls_strategy_free(one);
}

/* T33, T35. */
static ls_value *write_id(ls_value *arguments, void *user)
{
    (void)arguments;
    job *j = user;
    j->write(j->v, number(my_id()));
    return none();
}

static ls_value *write_five(ls_value *arguments, void *user)
{
    (void)arguments;
    job *j = user;
    j->write(j->v, number(5));
    return none();
}

static ls_value *count_step(ls_value *arguments, void *user)
{
    (void)arguments;
    ls_assign_add(user, ls_scalar_int(LS_I64, 1));
    return none();
}

static void T33_mean_of_two_and_T35_global_step(void **state)
{
    (void)state;
    const struct {
        ls_step step;
        write_fn write;
        double initial, want;
    } rows[] = { { write_id, ls_assign, 1, 0.5 },     { write_id, ls_assign_add, 1, 1.5 },
                 { write_id, ls_assign_sub, 5, 4.5 }, { write_five, ls_assign, 1, 5 },
                 { write_five, ls_assign_add, 1, 6 }, { write_five, ls_assign_sub, 5, 0 } };
    ls_strategy *s = replicas(2);
    LS_FRAME {
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            ls_variable *v = make(s, LS_SYNC_AUTO, LS_AGGREGATE_MEAN, rows[i].initial);
            job j = { .v = v, .write = rows[i].write };
            runs(s, rows[i].step, &j);
            holds(ls_read(v), rows[i].want);
            ls_variable_free(v);
        }
        ls_variable *step = NULL;
        LS_SCOPE (s)
            step = ls_variable_with(LS_VARIABLE(.aggregation = LS_AGGREGATE_ONLY_FIRST),
                                    "global_step", ls_scalar_int(LS_I64, 0));
        runs(s, count_step, step);
        holds(ls_read(step), 1); /* not 2 */
        runs(s, count_step, step);
        holds(ls_read(step), 2);
        ls_variable_free(step);
    }
    ls_strategy_free(s);
}

static void one_tensor_for_all_has_a_mean_and_no_sum(void **state)
{
    (void)state;
    ls_strategy *s = replicas(V);
    LS_FRAME {
        job j = { .write = ls_assign_add, .same = number(4) };
        ls_variable *sum = make(s, LS_SYNC_AUTO, LS_AGGREGATE_SUM, 1);
        ls_variable *mean = make(s, LS_SYNC_AUTO, LS_AGGREGATE_MEAN, 1);
        j.v = sum;
        assert_null(run(s, write_own, &j));
        said(LS_INVALID, "ls_assign_add of variable 'v'", "SUM");
        holds(ls_read(sum), 1);
        j.v = mean;
        runs(s, write_own, &j);
        holds(ls_read(mean), 5);
        ls_variable_free(sum);
        ls_variable_free(mean);
    }
    ls_strategy_free(s);
}

/* ---- a copy for each replica ------------------------------------------------------------------ */

static void on_read_replicas_write_their_own(void **state)
{
    (void)state;
    const struct {
        ls_aggregation aggregation;
        double combined; /* of 1, 2, 3 */
    } rows[] = { { LS_AGGREGATE_NONE, 0 },
                 { LS_AGGREGATE_SUM, 6 },
                 { LS_AGGREGATE_MEAN, 2 },
                 { LS_AGGREGATE_ONLY_FIRST, 1 } };
    ls_strategy *s = replicas(V);
    for (int r = 0; r < 4; r++)
        for (int w = 0; w < 3; w++)
            LS_FRAME {
                ls_variable *v = make(s, LS_SYNC_ON_READ, rows[r].aggregation, 1);
                job j = { .v = v, .write = writes[w] };
                ls_value *after = runs(s, write_own, &j);
                for (int i = 0; i < V; i++) {
                    double want = w == 0 ? i + 1 : w == 1 ? 1 + i + 1 : 1 - (i + 1);
                    assert_true((double)copy_of(v, i) == want);
                    holds(ls_leaf_tensor(ls_select(after, i)), want);
                    holds(ls_read(ls_variable_component(v, i)), want);
                }
                if (w == 0 && rows[r].combined != 0)
                    holds(ls_read(v), rows[r].combined);
                if (rows[r].aggregation == LS_AGGREGATE_NONE) {
                    assert_null(ls_read(v));
                    said(LS_INVALID, "variable 'v' is LS_SYNC_ON_READ and has no aggregation",
                         "ls_variable_component");
                }
                ls_variable_free(v);
            }
    ls_strategy_free(s);
}

static void on_read_cross_replica_writes_every_copy(void **state)
{
    (void)state;
    const ls_aggregation aggregations[] = { LS_AGGREGATE_NONE, LS_AGGREGATE_SUM, LS_AGGREGATE_MEAN,
                                            LS_AGGREGATE_ONLY_FIRST };
    ls_strategy *s = replicas(V);
    for (int r = 0; r < 4; r++)
        for (int w = 0; w < 3; w++)
            LS_FRAME {
                bool sum = aggregations[r] == LS_AGGREGATE_SUM;
                ls_variable *v = make(s, LS_SYNC_ON_READ, aggregations[r], 1);
                ls_status st = writes[w](v, number(6));
                double want = w == 0 ? 6 : w == 1 ? 7 : -5;
                if (sum && w > 0) {
                    assert_int_equal(st, LS_INVALID);
                    said(LS_INVALID, write_names[w], "aggregation SUM");
                    want = 1;
                } else {
                    assert_int_equal(st, LS_OK);
                }
                for (int i = 0; i < V; i++)
                    assert_true((double)copy_of(v, i) == (sum && w == 0 ? want / V : want));
                if (w == 0 && aggregations[r])
                    holds(ls_read(v), 6);
                ls_variable_free(v);
            }
    ls_strategy_free(s);
}

static ls_value *assign_whole(ls_strategy *s, ls_value *whole, void *user)
{
    (void)s;
    return ls_assign(user, ls_leaf_tensor(ls_select(whole, 0))) ? NULL : none();
}

static ls_value *meet_to_assign(ls_value *whole, void *user)
{
    return ls_merge_call(ls_get_replica_context(), assign_whole, user, whole);
}

/* Replica 0 has what the division leaves over. */
static void a_sum_of_integers_is_what_was_assigned(void **state)
{
    (void)state;
    static const struct {
        ls_dtype dtype;
        int64_t whole, first, other;
    } rows[] = { { LS_I32, 7, 3, 2 },
                 { LS_I32, -7, -3, -2 },
                 { LS_I32, 2, 2, 0 },
                 { LS_I32, 6, 2, 2 },
                 { LS_I32, INT32_MIN, -715827884, -715827882 },
                 { LS_I64, INT64_MAX, 3074457345618258603, 3074457345618258602 },
                 { LS_U8, 254, 86, 84 } };
    ls_strategy *s = replicas(V);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int inside = 0; inside < 2; inside++)
            LS_FRAME {
                ls_variable *v = NULL;
                LS_SCOPE (s)
                    v = ls_variable_with(LS_VARIABLE(.synchronization = LS_SYNC_ON_READ,
                                                     .aggregation = LS_AGGREGATE_SUM),
                                         "n", ls_zeros(rows[i].dtype, LS_SCALAR));
                ls_tensor *whole = ls_scalar_int(rows[i].dtype, rows[i].whole);
                if (inside)
                    assert_non_null(run_with(s, meet_to_assign, v, ls_leaf(whole)));
                else
                    assert_int_equal(ls_assign(v, whole), LS_OK);
                for (int k = 0; k < V; k++)
                    assert_int_equal(ls_to_int(ls_read(ls_variable_component(v, k))),
                                     k ? rows[i].other : rows[i].first);
                assert_int_equal(ls_to_int(ls_read(v)), rows[i].whole);
                ls_variable_free(v);
            }
    ls_strategy_free(s);
}

static void more_replicas_than_a_u8_counts(void **state)
{
    (void)state;
    ls_strategy *s = replicas(300);
    LS_FRAME {
        ls_variable *v = NULL;
        LS_SCOPE (s)
            v = ls_variable_with(
                LS_VARIABLE(.synchronization = LS_SYNC_ON_READ, .aggregation = LS_AGGREGATE_SUM),
                "n", ls_zeros(LS_U8, LS_SCALAR));
        assert_int_equal(ls_assign(v, ls_scalar_int(LS_U8, 255)), LS_OK);
        holds(ls_read(ls_variable_component(v, 0)), 255);
        holds(ls_read(ls_variable_component(v, 299)), 0);
        holds(ls_read(v), 255);
        ls_variable_free(v);
    }
    ls_strategy_free(s);
}

static void local_writes_part_the_copies(void **state)
{
    (void)state;
    ls_strategy *s = replicas(V);
    LS_FRAME {
        ls_variable *v = NULL;
        LS_SCOPE (s)
            v = ls_variable_with(LS_VARIABLE(.local_writes = true), "v", number(1));
        job j = { .v = v, .write = ls_assign_add };
        runs(s, write_own, &j);
        for (int i = 0; i < V; i++)
            assert_true(copy_of(v, i) == (float)(i + 2));
        holds(ls_read(v), 2); /* the first's, whatever the placement */
        assert_int_equal(ls_assign(v, number(9)), LS_OK);
        for (int i = 0; i < V; i++)
            assert_true(copy_of(v, i) == 9);
        ls_variable_free(v);
    }
    ls_strategy_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(on_write_is_combined_and_written_once),
        BOTH(without_aggregation_a_replica_does_not_write),
        BOTH(T33_mean_of_two_and_T35_global_step),
        BOTH(one_tensor_for_all_has_a_mean_and_no_sum),
        BOTH(on_read_replicas_write_their_own),
        cmocka_unit_test_setup(on_read_cross_replica_writes_every_copy, clean),
        BOTH(a_sum_of_integers_is_what_was_assigned),
        cmocka_unit_test_setup(more_replicas_than_a_u8_counts, clean),
        BOTH(local_writes_part_the_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
