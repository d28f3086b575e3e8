/*
 * Distributed variables: the whole table of synchronization x aggregation x context x write, then
 * what a table does not say. Saving, scatter and components: variables_more_test.c.
 */
#include "strategy/strategy_support.h"

#include <stdio.h>

typedef ls_status (*write_fn)(ls_variable *v, ls_tensor *value);
static const write_fn writes[] = { ls_assign, ls_assign_add, ls_assign_sub };
static const char *const write_names[] = { "assign", "assign_add", "assign_sub" };

static const ls_aggregation aggregations[] = { LS_AGGREGATE_NONE, LS_AGGREGATE_SUM,
                                               LS_AGGREGATE_MEAN, LS_AGGREGATE_ONLY_FIRST };

enum { START = 10 };

/* What a write makes of `was`. */
static double op(int write, double was, double x)
{
    return write == 0 ? x : write == 1 ? was + x : was - x;
}

static ls_variable *make(ls_strategy *s, bool on_read, ls_aggregation aggregation)
{
    ls_variable *v = NULL;
    LS_SCOPE (s)
        v = ls_variable_with(
            LS_VARIABLE(.synchronization = on_read ? LS_SYNC_ON_READ : LS_SYNC_ON_WRITE,
                        .aggregation = aggregation),
            "vee", ls_scalar(LS_F32, START));
    GAVE(v);
    assert_int_equal(ls_variable_aggregation(v), aggregation);
    assert_int_equal(ls_variable_synchronization(v), on_read ? LS_SYNC_ON_READ : LS_SYNC_ON_WRITE);
    return v;
}

/* Each component, and what cross-replica context makes of them. */
static void components_hold(ls_variable *v, int n, const double *want)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        holds_all(__FILE__, __LINE__, ls_read(ls_variable_component(v, i)), 1, &want[i]);
        sum += want[i];
    }
    if (ls_variable_synchronization(v) == LS_SYNC_ON_WRITE) {
        HOLDS(ls_read(v), want[0]);
        return;
    }
    switch (ls_variable_aggregation(v)) {
    case LS_AGGREGATE_NONE:
        if (n == 1)
            break; /* there is nothing to combine: the component was read above */
        assert_null(ls_read(v));
        FAILS(LS_INVALID, "'vee'", "aggregation");
        break;
    case LS_AGGREGATE_SUM:
        HOLDS(ls_read(v), sum);
        break;
    case LS_AGGREGATE_MEAN:
        HOLDS(ls_read(v), sum / n);
        break;
    default:
        HOLDS(ls_read(v), want[0]);
    }
}

/* ---- in replicas ------------------------------------------------------------------------ */

typedef struct attempt {
    ls_variable *v;
    int write;
    bool same; /* all replicas write the argument, else each id + 1 */
} attempt;

static ls_value *write_in_replica(ls_value *arguments, void *user)
{
    const attempt *a = user;
    ls_tensor *x = a->same ? ls_leaf_tensor(arguments) : my_number(1, 1);
    return writes[a->write](a->v, x) ? NULL : ls_leaf(ls_read(a->v));
}

/* What replica i's component holds afterwards; false: an error. */
static bool replica_row(bool on_read, ls_aggregation aggregation, const attempt *a, int n, int i,
                        double *want)
{
    double own = a->same ? 3 : i + 1, sum = a->same ? 3.0 * n : n * (n + 1) / 2.0;
    if (on_read) {
        *want = op(a->write, START, own);
        return true;
    }
    switch (aggregation) {
    case LS_AGGREGATE_NONE:
        *want = START;
        return false;
    case LS_AGGREGATE_SUM:
        *want = a->same && n > 1 ? START : op(a->write, START, sum);
        return !a->same || n == 1;
    case LS_AGGREGATE_MEAN:
        *want = op(a->write, START, sum / n);
        return true;
    default:
        *want = op(a->write, START, a->same ? 3 : 1);
        return true;
    }
}

static void check_in_replica(ls_strategy *s, int n, bool traced)
{
    for (int row = 0; row < 8; row++)
        for (int k = 0; k < 6; k++) {
            bool on_read = row / 4;
            ls_aggregation aggregation = aggregations[row % 4];
            if (n == 1 && !on_read && aggregation == LS_AGGREGATE_NONE)
                continue; /* nothing to combine: the library may allow it */
            attempt a = { make(s, on_read, aggregation), k % 3, k / 3 };
            double want[MOST_REPLICAS];
            bool works = true;
            for (int i = 0; i < n; i++)
                works = replica_row(on_read, aggregation, &a, n, i, &want[i]);
            ls_value *seen = run_step(s, traced, write_in_replica, &a, number(3));
            if (works) {
                if (!seen)
                    fail_msg("row %d, %s: %s", row, write_names[a.write], ls_error_report());
                for (int i = 0; i < n; i++) /* a read in a replica is its own */
                    holds_all(__FILE__, __LINE__, part(seen, i), 1, &want[i]);
            } else {
                if (seen)
                    fail_msg("row %d, %s%s went well", row, write_names[a.write],
                             a.same ? " of one tensor" : "");
                FAILS(LS_INVALID, "vee", write_names[a.write], aggregation ? "SUM" : "aggregation",
                      "replica");
            }
            components_hold(a.v, n, want);
            ls_variable_free(a.v);
        }
}

EVERYWHERE(the_table_of_writes_in_replicas, check_in_replica)

/* ---- in cross-replica context ------------------------------------------------------------- */

typedef enum from { OUTSIDE, IN_SCOPE, IN_MERGE, FROMS } from;

static ls_value *write_merge(ls_strategy *s, ls_value *arguments, void *user)
{
    (void)s;
    const attempt *a = user;
    return writes[a->write](a->v, ls_leaf_tensor(arguments)) ? NULL : arguments;
}

static ls_value *write_in_merge(ls_value *arguments, void *user)
{
    return ls_merge_call(ls_get_replica_context(), write_merge, user, arguments);
}

static bool write_from(ls_strategy *s, bool traced, from where, attempt *a)
{
    if (where == IN_MERGE)
        return run_step(s, traced, write_in_merge, a, number(6));
    if (where == OUTSIDE)
        return writes[a->write](a->v, ls_scalar(LS_F32, 6)) == LS_OK;
    ls_status st = LS_STATE;
    LS_SCOPE (s)
        st = writes[a->write](a->v, ls_scalar(LS_F32, 6));
    return st == LS_OK;
}

static void check_cross_replica(ls_strategy *s, int n, bool traced)
{
    for (int row = 0; row < 8; row++)
        for (int k = 0; k < 3 * FROMS; k++) {
            bool on_read = row / 4;
            ls_aggregation aggregation = aggregations[row % 4];
            attempt a = { make(s, on_read, aggregation), k % 3, false };
            bool spread = on_read && aggregation == LS_AGGREGATE_SUM;
            bool works = !(spread && a.write > 0);
            double want[MOST_REPLICAS];
            for (int i = 0; i < n; i++)
                want[i] = !works ? START : spread ? 6.0 / n : op(a.write, START, 6);
            bool well = write_from(s, traced, (from)(k / 3), &a);
            if (well != works)
                fail_msg("row %d, %s, from %d: %s", row, write_names[a.write], k / 3,
                         ls_error_report());
            if (!well)
                FAILS(LS_INVALID, "'vee'", write_names[a.write], "SUM");
            components_hold(a.v, n, want);
            ls_variable_free(a.v);
        }
}

EVERYWHERE(the_table_of_writes_in_cross_replica_context, check_cross_replica)

/* ---- values, local writes, variables in sums -------------------------------------------------- */

typedef struct assigned {
    ls_variable *v;
    ls_value *value; /* NULL: what the replica was given */
} assigned;

static ls_value *assign_argument(ls_value *arguments, void *user)
{
    const assigned *a = user;
    return ls_assign_value(a->v, arguments) ? NULL : nothing();
}

static void check_values(ls_strategy *s, int n, bool traced)
{
    ls_value *per = numbers(s, 1, 1);
    ls_value *mirrored = ls_mirror_to(s, ls_scalar(LS_F32, 8), ls_at_value(per));
    for (int row = 0; row < 8; row++) {
        assigned a = { make(s, row / 4, aggregations[row % 4]), NULL };
        if (n > 1) {
            assert_int_equal(ls_assign_value(a.v, per), LS_INVALID);
            FAILS(LS_INVALID, "'vee'", "replica");
            double start[MOST_REPLICAS];
            for (int i = 0; i < n; i++)
                start[i] = START;
            components_hold(a.v, n, start);
        }
        if (row < 4) {
            OK(ls_assign_value(a.v, mirrored));
            HOLDS(ls_read(a.v), 8);
            OK(ls_assign_value(a.v, number(9)));
            HOLDS(ls_read(a.v), 9);
        }
        assert_int_equal(ls_assign_value(a.v, pair(per, per)), LS_INVALID);
        FAILS(LS_INVALID, "leaf");
        if (row == 1) { /* the sum of what the replicas have */
            GAVE(run_step(s, traced, assign_argument, &a, per));
            HOLDS(ls_read(a.v), n * (n + 1) / 2);
        }
        ls_variable_free(a.v);
    }
}

EVERYWHERE(per_replica_values_are_for_replicas, check_values)

static void check_local_writes(ls_strategy *s, int n, bool traced)
{
    attempt a = { .write = 0 };
    LS_SCOPE (s)
        a.v = ls_variable_with(LS_VARIABLE(.local_writes = true), "vee", ls_scalar(LS_F32, START));
    GAVE(a.v);
    for (a.write = 0; a.write < 3; a.write++) {
        ls_value *seen = run_step(s, traced, write_in_replica, &a, number(3));
        double first = a.write == 0 ? 1 : a.write == 1 ? START + 1 : START - 1;
        double each = a.write == 2 ? -1 : 1;
        HOLDS_EACH(seen, n, first, each);
        for (int i = 0; i < n; i++)
            HOLDS(ls_read(ls_variable_component(a.v, i)), first + each * i);
        HOLDS(ls_read(a.v), first); /* replica 0's */
        OK(ls_assign(a.v, ls_scalar(LS_F32, START)));
        for (int i = 0; i < n; i++)
            HOLDS(ls_read(ls_variable_component(a.v, i)), START);
    }
    ls_variable_free(a.v);
}

EVERYWHERE(local_writes_are_of_one_copy, check_local_writes)

typedef struct summed {
    ls_variable *v;
    bool leaf;
} summed;

static ls_value *sum_variable(ls_value *arguments, void *user)
{
    (void)arguments;
    const summed *m = user;
    return ls_all_reduce(ls_get_replica_context(), LS_SUM,
                         m->leaf ? ls_variable_leaf(m->v) : ls_leaf(ls_read(m->v)));
}

static void check_summed(ls_strategy *s, int n, bool traced)
{
    for (int k = 0; k < 4; k++) {
        summed m = { make(s, k / 2, LS_AGGREGATE_SUM), k % 2 };
        HOLDS_EACH(run_step(s, traced, sum_variable, &m, nothing()), n, START * n, 0);
        ls_variable_free(m.v);
    }
}

EVERYWHERE(an_all_reduce_of_a_variable_is_the_sum, check_summed)

/* ---- making them ------------------------------------------------------------------------------- */

static void check_making(ls_strategy *s, int n, bool traced)
{
    (void)n;
    if (traced)
        return;
    ls_tensor *x = ls_scalar(LS_F32, 1);
    LS_SCOPE (s) {
        assert_null(ls_variable_with(LS_VARIABLE(.synchronization = LS_SYNC_NONE), "odd", x));
        FAILS(LS_INVALID, "NONE", "'odd'", "synchronization");
        assert_null(
            ls_variable_with(LS_VARIABLE(.synchronization = (ls_synchronization)77), "odd", x));
        FAILS(LS_INVALID, "77", "'odd'", "synchronization");
        assert_null(ls_variable_with(LS_VARIABLE(.aggregation = (ls_aggregation)LS_SUM), "odd", x));
        FAILS(LS_INVALID, "1", "'odd'", "aggregation");
        assert_null(ls_variable_with(LS_VARIABLE(.trainable = (ls_trainable)77), "odd", x));
        FAILS(LS_INVALID, "77", "'odd'", "trainable");
        static const ls_dtype integers[] = { LS_I32, LS_I64, LS_U8 };
        for (int i = 0; i < 3; i++)
            for (int on_read = 0; on_read < 2; on_read++) {
                assert_null(ls_variable_with(
                    LS_VARIABLE(.synchronization = on_read ? LS_SYNC_ON_READ : LS_SYNC_AUTO,
                                .aggregation = LS_AGGREGATE_MEAN),
                    "odd", ls_scalar(integers[i], 1)));
                FAILS(LS_INVALID, "'odd'", "MEAN", ls_dtype_name(integers[i]));
            }
        ls_variable_options o;
        ls_variable_init(&o);
        assert_int_equal(o.size, sizeof o);
        o.size = 3;
        assert_null(ls_variable_with(&o, "odd", x));
        FAILS(LS_INVALID, "bytes");

        static const struct {
            ls_synchronization sync;
            ls_trainable asked;
            bool is;
        } rows[] = { { LS_SYNC_AUTO, LS_TRAINABLE_DEFAULT, true },
                     { LS_SYNC_ON_WRITE, LS_TRAINABLE_DEFAULT, true },
                     { LS_SYNC_ON_WRITE, LS_FROZEN, false },
                     { LS_SYNC_ON_READ, LS_TRAINABLE_DEFAULT, false },
                     { LS_SYNC_ON_READ, LS_TRAINABLE, true },
                     { LS_SYNC_ON_READ, LS_FROZEN, false } };
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            ls_variable *v = ls_variable_with(
                LS_VARIABLE(.synchronization = rows[i].sync, .trainable = rows[i].asked), "t", x);
            GAVE(v);
            assert_int_equal(ls_variable_trainable(v), rows[i].is);
            assert_int_equal(ls_variable_synchronization(v),
                             rows[i].sync == LS_SYNC_ON_READ ? LS_SYNC_ON_READ : LS_SYNC_ON_WRITE);
            for (int k = 0; k < n; k++)
                assert_int_equal(ls_variable_trainable(ls_variable_component(v, k)), rows[i].is);
            ls_variable_set_trainable(v, !rows[i].is);
            assert_int_equal(ls_variable_trainable(v), !rows[i].is);
            ls_variable_free(v);
        }
        ls_variable *v = ls_variable_with(NULL, "defaults", x);
        GAVE(v);
        assert_true(ls_variable_trainable(v));
        assert_int_equal(ls_variable_aggregation(v), LS_AGGREGATE_NONE);
        ls_variable_free(v);
    }
    /* Outside: of the default strategy. */
    ls_variable *v = ls_variable_with(NULL, "out", x);
    assert_ptr_equal(ls_variable_strategy(v), ls_default_strategy());
    assert_false(ls_variable_created_in_scope(s, v));
    OK(ls_assign_add(v, x));
    HOLDS(ls_read(v), 2);
    ls_variable_free(v);
}

EVERYWHERE(modes_that_make_no_sense_are_refused_and_defaults_are_known, check_making)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_table_of_writes_in_replicas),
        TEST(the_table_of_writes_in_cross_replica_context),
        TEST(per_replica_values_are_for_replicas),
        TEST(local_writes_are_of_one_copy),
        TEST(an_all_reduce_of_a_variable_is_the_sum),
        TEST(modes_that_make_no_sense_are_refused_and_defaults_are_known),
    };
    return RUN_TESTS(tests);
}
