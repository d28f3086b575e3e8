/*
 * Writing rows of variables: what each function does to rows, in order; rows of all replicas; and
 * that a call which is refused has written nothing.
 */
#include <math.h>

#include "strategy/variable_test_support.h"

typedef ls_status (*scatter_fn)(ls_variable *v, ls_tensor *rows, ls_tensor *values);
static const scatter_fn scatters[] = { ls_scatter_add, ls_scatter_sub, ls_scatter_update,
                                       ls_scatter_min, ls_scatter_max };

static ls_tensor *ids(int64_t a, int64_t b, int64_t c)
{
    return ls_from(LS_I64, LS_DIMS(3), (int64_t[]){ a, b, c });
}

/* [n, 2] of x, x + 1, x + 2... in `dtype`. */
static ls_tensor *counted(ls_dtype dtype, int64_t n, double x)
{
    float out[32];
    for (int64_t i = 0; i < 2 * n; i++)
        out[i] = (float)(x + (double)i);
    ls_tensor *t = ls_from(LS_F32, LS_DIMS(n, 2), out);
    return dtype == LS_F32 ? t : ls_cast(t, dtype);
}

static void has(ls_tensor *t, int n, const double *want)
{
    t = ls_dtype_of(t) == LS_F64 ? t : ls_cast(t, LS_F64);
    const double *got = ls_data(t);
    assert_int_equal(ls_count(t), n);
    for (int i = 0; i < n; i++)
        if (got[i] != want[i] && !(isnan(got[i]) && isnan(want[i])))
            fail_msg("element %d is %g, not %g", i, got[i], want[i]);
}

static void rows_that_repeat_take_effect_in_order(void **state)
{
    (void)state;
    /* Rows of 10.. : {10 11} {12 13} {14 15}; values {2 3} {4 5} {16 17} to rows 2, 0, 2. */
    static const double want[5][6] = { { 14, 16, 12, 13, 32, 35 },
                                       { 6, 6, 12, 13, -4, -5 },
                                       { 4, 5, 12, 13, 16, 17 },
                                       { 4, 5, 12, 13, 2, 3 },
                                       { 10, 11, 12, 13, 16, 17 } };
    const ls_dtype dtypes[] = { LS_F32, LS_F64, LS_BF16, LS_I32, LS_I64, LS_U8 };
    for (int d = 0; d < 6; d++)
        for (int k = 0; k < 5; k++)
            LS_FRAME {
                ls_variable *v = ls_variable_new("v", counted(dtypes[d], 3, 10), true);
                ls_tensor *values = ls_concat(
                    2, (ls_tensor *[]){ counted(dtypes[d], 2, 2), counted(dtypes[d], 1, 16) }, 0);
                ls_tensor *rows = k % 2 ? ls_cast(ids(2, 0, 2), LS_I32) : ids(2, 0, 2);
                assert_int_equal(scatters[k](v, rows, values), LS_OK);
                double expect[6];
                for (int i = 0; i < 6; i++)
                    expect[i] =
                        dtypes[d] == LS_U8 && want[k][i] < 0 ? want[k][i] + 256 : want[k][i];
                has(ls_read(v), 6, expect);
                ls_variable_free(v);
            }
}

static void odd_shapes_and_values(void **state)
{
    (void)state;
    LS_FRAME {
        ls_variable *v = ls_variable_new("v", ls_zeros(LS_F32, LS_DIMS(4)), true);
        float x[] = { NAN, 1, -1 };
        assert_int_equal(ls_scatter_min(v, ids(1, 2, 3), ls_from(LS_F32, LS_DIMS(3), x)), LS_OK);
        has(ls_read(v), 4, (double[]){ 0, (double)NAN, 0, -1 });
        x[0] = 5; /* NaN stays, like in ls_maximum */
        assert_int_equal(ls_scatter_max(v, ids(1, 2, 3), ls_from(LS_F32, LS_DIMS(3), x)), LS_OK);
        has(ls_read(v), 4, (double[]){ 0, (double)NAN, 1, -1 });
        assert_int_equal(ls_scatter_min(v, ids(1, 2, 3), ls_from(LS_F32, LS_DIMS(3), x)), LS_OK);
        has(ls_read(v), 4, (double[]){ 0, (double)NAN, 1, -1 });
        ls_variable_free(v);

        v = ls_variable_new("b", ls_zeros(LS_BOOL, LS_DIMS(3, 1)), false);
        assert_int_equal(ls_scatter_update(v, ids(0, 2, 0), ls_ones(LS_BOOL, LS_DIMS(3, 1))),
                         LS_OK);
        has(ls_read(v), 3, (double[]){ 1, 0, 1 });
        assert_int_equal(ls_scatter_add(v, ids(0, 2, 0), ls_ones(LS_BOOL, LS_DIMS(3, 1))),
                         LS_SHAPE);
        failed(LS_SHAPE);
        ls_variable_free(v);

        v = ls_variable_new("e", ls_zeros(LS_F32, LS_DIMS(0, 4)), true);
        ls_tensor *no_rows = ls_zeros(LS_I32, LS_DIMS(0));
        assert_int_equal(ls_scatter_add(v, no_rows, ls_zeros(LS_F32, LS_DIMS(0, 4))), LS_OK);
        assert_int_equal(ls_scatter_add(v, ids(0, 0, 0), ls_zeros(LS_F32, LS_DIMS(3, 4))),
                         LS_INVALID);
        said(LS_INVALID, "row 0 at position 0, the variable has none", "variable 'e'");
        ls_variable_free(v);
    }
}

/* What was read before stays; the values may be a read of the variable itself. */
static void values_may_be_the_variable(void **state)
{
    (void)state;
    LS_FRAME {
        ls_variable *v = ls_variable_new("v", counted(LS_F32, 3, 0), true);
        ls_tensor *before = ls_read(v);
        assert_int_equal(ls_scatter_update(v, ids(1, 2, 0), ls_read(v)), LS_OK);
        has(ls_read(v), 6, (double[]){ 4, 5, 0, 1, 2, 3 });
        has(before, 6, (double[]){ 0, 1, 2, 3, 4, 5 });
        ls_variable_free(v);
        v = ls_variable_new("i", ids(2, 0, 1), true); /* rows and values */
        assert_int_equal(ls_scatter_update(v, ls_read(v), ls_read(v)), LS_OK);
        has(ls_read(v), 3, (double[]){ 0, 1, 2 });
        ls_variable_free(v);
    }
}

static void what_does_not_fit_writes_nothing(void **state)
{
    (void)state;
    LS_FRAME {
        ls_variable *v = ls_variable_new("v", counted(LS_F32, 3, 0), true);
        uint64_t version = ls__cell_version(v->cells[0]);
        ls_tensor *values = counted(LS_F32, 3, 7);
        for (int k = 0; k < 5; k++) {
            assert_int_equal(scatters[k](v, ids(0, 1, 3), values), LS_INVALID);
            said(LS_INVALID, "row 3 at position 2, the variable's are 0 to 2", "variable 'v'");
            assert_int_equal(scatters[k](v, ids(0, -1, 2), values), LS_INVALID);
            said(LS_INVALID, "row -1 at position 1", NULL);
            assert_int_equal(scatters[k](v, ids(0, 1, 2), counted(LS_F32, 2, 7)), LS_SHAPE);
            said(LS_SHAPE, "3 rows of a variable of f32[3,2] are f32[3,2], not f32[2,2]", NULL);
            assert_int_equal(scatters[k](v, ids(0, 1, 2), counted(LS_F64, 3, 7)), LS_SHAPE);
            said(LS_SHAPE, "not f64[3,2]", NULL);
            assert_int_equal(scatters[k](v, ls_zeros(LS_F32, LS_DIMS(3)), values), LS_SHAPE);
            failed(LS_SHAPE);
            assert_int_equal(scatters[k](v, ls_zeros(LS_I32, LS_DIMS(3, 1)), values), LS_SHAPE);
            failed(LS_SHAPE);
            assert_int_equal(scatters[k](v, NULL, values), LS_INVALID);
            said(LS_INVALID, "ls_scatter_", "rows");
            assert_int_equal(scatters[k](v, ids(0, 1, 2), NULL), LS_INVALID);
            said(LS_INVALID, "ls_scatter_", "values");
            assert_int_equal(scatters[k](NULL, ids(0, 1, 2), values), LS_INVALID);
            failed(LS_INVALID);
        }
        assert_true(ls__cell_version(v->cells[0]) == version);
        ls_variable_free(v);
        v = ls_variable_new("s", number(1), true);
        assert_int_equal(ls_scatter_add(v, ids(0, 0, 0), ls_zeros(LS_F32, LS_DIMS(3))), LS_SHAPE);
        said(LS_SHAPE, "a variable of f32[] has no rows", NULL);
        ls_variable_free(v);
    }
}

/* ---- replicas ------------------------------------------------------------------------------- */

enum { V = 3 };

typedef struct job {
    ls_variable *v;
    scatter_fn scatter;
    int bad; /* the replica with a row that is not there; -1: none */
    bool same;
    ls_tensor *rows, *values;
} job;

/* Replica r: row r gets 10 (r + 1), row 0 gets r + 1. */
static ls_value *scatter_own(ls_value *arguments, void *user)
{
    (void)arguments;
    job *j = user;
    int r = my_id();
    float x[] = { 10 * (float)(r + 1), (float)(r + 1) };
    int32_t rows[] = { j->bad == r ? 99 : r, 0 };
    if (j->same)
        j->scatter(j->v, j->rows, j->values);
    else
        j->scatter(j->v, ls_from(LS_I32, LS_DIMS(2), rows), ls_from(LS_F32, LS_DIMS(2), x));
    return none();
}

static ls_variable *make(ls_strategy *s, const ls_variable_options *options)
{
    ls_variable *v = NULL;
    LS_SCOPE (s)
        v = ls_variable_with(options, "v", ls_zeros(LS_F32, LS_DIMS(3)));
    assert_non_null(v);
    return v;
}

static void rows_of_all_replicas_are_taken(void **state)
{
    (void)state;
    const struct {
        ls_aggregation aggregation;
        scatter_fn scatter;
        double want[3];
    } rows[] = {
        { LS_AGGREGATE_SUM, ls_scatter_add, { 16, 20, 30 } },
        { LS_AGGREGATE_SUM, ls_scatter_sub, { -16, -20, -30 } },
        { LS_AGGREGATE_MEAN, ls_scatter_add, { 0, 0, 10 } }, /* by V; the first two below */
        { LS_AGGREGATE_ONLY_FIRST, ls_scatter_add, { 11, 0, 0 } },
        { LS_AGGREGATE_ONLY_FIRST, ls_scatter_update, { 1, 0, 0 } },
        { LS_AGGREGATE_ONLY_FIRST, ls_scatter_max, { 10, 0, 0 } },
        { LS_AGGREGATE_ONLY_FIRST, ls_scatter_min, { 0, 0, 0 } },
    };
    ls_strategy *s = replicas(V);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        LS_FRAME {
            ls_variable *v = make(s, LS_VARIABLE(.aggregation = rows[i].aggregation));
            job j = { .v = v, .scatter = rows[i].scatter, .bad = -1 };
            double want[3];
            memcpy(want, rows[i].want, sizeof want);
            if (rows[i].aggregation == LS_AGGREGATE_MEAN) {
                float sum = 10.0f / 3 + 1.0f / 3;
                sum += 2.0f / 3;
                sum += 3.0f / 3;
                want[0] = (double)sum;
                want[1] = (double)(20.0f / 3);
            }
            runs(s, scatter_own, &j);
            has(ls_read(v), 3, want);
            ls_variable_free(v);
        }
    LS_FRAME { /* one tensor for all is each one's */
        ls_variable *v = make(s, LS_VARIABLE(.aggregation = LS_AGGREGATE_SUM));
        job j = { .v = v, .scatter = ls_scatter_add, .bad = -1, .same = true };
        j.rows = ls_from(LS_I32, LS_DIMS(1), (int32_t[]){ 1 });
        j.values = ls_ones(LS_F32, LS_DIMS(1));
        runs(s, scatter_own, &j);
        has(ls_read(v), 3, (double[]){ 0, 3, 0 });
        ls_variable_free(v);
    }
    ls_strategy_free(s);
}

/* The rows of a variable go round, one place on. */
static ls_value *turn(ls_value *arguments, void *user)
{
    (void)arguments;
    ls_scatter_update(user, ids(1, 2, 0), ls_read(user));
    return none();
}

static void replicas_may_give_the_variable_itself(void **state)
{
    (void)state;
    ls_strategy *s = replicas(V);
    LS_FRAME {
        ls_variable *v = NULL;
        LS_SCOPE (s)
            v = ls_variable_with(LS_VARIABLE(.aggregation = LS_AGGREGATE_ONLY_FIRST), "v",
                                 counted(LS_F32, 3, 0));
        runs(s, turn, v);
        has(ls_read(v), 6, (double[]){ 4, 5, 0, 1, 2, 3 });
        ls_variable_free(v);
    }
    ls_strategy_free(s);
}

static void what_replicas_cannot_scatter(void **state)
{
    (void)state;
    ls_strategy *s = replicas(V);
    LS_FRAME {
        ls_variable *none_of = make(s, NULL);
        ls_variable *sum = make(s, LS_VARIABLE(.aggregation = LS_AGGREGATE_SUM));
        job j = { .v = none_of, .scatter = ls_scatter_add, .bad = -1 };
        assert_null(run(s, scatter_own, &j));
        said(LS_INVALID, "ls_scatter_add: variable 'v' has no aggregation", ".local_writes");
        j = (job){ .v = sum, .scatter = ls_scatter_min, .bad = -1 };
        assert_null(run(s, scatter_own, &j));
        said(LS_UNSUPPORTED, "ls_scatter_min: variable 'v' has aggregation SUM", "ls_scatter_add");
        j = (job){ .v = sum, .scatter = ls_scatter_add, .bad = 2 };
        assert_null(run(s, scatter_own, &j));
        said(LS_INVALID, "row 99 at position", "0 to 2");
        has(ls_read(sum), 3, (double[]){ 0, 0, 0 });
        ls_variable_free(none_of);
        ls_variable_free(sum);
        ls_variable *plain = ls_variable_new("p", ls_zeros(LS_F32, LS_DIMS(3)), true);
        j = (job){ .v = plain, .scatter = ls_scatter_add, .bad = -1 };
        assert_null(run(s, scatter_own, &j));
        said(LS_STATE, "ls_scatter_add: replica 0 of 3 writes variable 'p'", "LS_SCOPE");
        ls_variable_free(plain);
    }
    ls_strategy_free(s);
}

static void kinds_that_have_no_rows_to_write(void **state)
{
    (void)state;
    ls_strategy *s = replicas(V);
    LS_FRAME {
        ls_tensor *values = ls_ones(LS_F32, LS_DIMS(3));
        ls_variable *on_read = make(s, LS_VARIABLE(.synchronization = LS_SYNC_ON_READ));
        ls_variable *sum = make(s, LS_VARIABLE(.aggregation = LS_AGGREGATE_SUM));
        ls_variable *mean = make(s, LS_VARIABLE(.aggregation = LS_AGGREGATE_MEAN));
        ls_variable *local = make(s, LS_VARIABLE(.local_writes = true));
        for (int k = 0; k < 5; k++) {
            assert_int_equal(scatters[k](on_read, ids(0, 1, 2), values), LS_UNSUPPORTED);
            said(LS_UNSUPPORTED, "variable 'v' is LS_SYNC_ON_READ", "ON_WRITE");
            ls_status want = k < 2 ? LS_OK : LS_UNSUPPORTED;
            assert_int_equal(scatters[k](sum, ids(0, 1, 2), values), want);
            assert_int_equal(ls_error(), want);
            assert_int_equal(scatters[k](mean, ids(0, 1, 2), values), want);
            assert_int_equal(ls_error(), want);
        }
        assert_int_equal(ls_scatter_add(local, ids(0, 0, 2), values), LS_OK);
        for (int i = 0; i < V; i++)
            has(ls_read(ls_variable_component(local, i)), 3, (double[]){ 2, 0, 1 });
        ls_variable_free(on_read);
        ls_variable_free(sum);
        ls_variable_free(mean);
        ls_variable_free(local);
    }
    ls_strategy_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(rows_that_repeat_take_effect_in_order, clean),
        cmocka_unit_test_setup(odd_shapes_and_values, clean),
        cmocka_unit_test_setup(values_may_be_the_variable, clean),
        cmocka_unit_test_setup(what_does_not_fit_writes_nothing, clean),
        BOTH(rows_of_all_replicas_are_taken),
        BOTH(replicas_may_give_the_variable_itself),
        BOTH(what_replicas_cannot_scatter),
        cmocka_unit_test_setup(kinds_that_have_no_rows_to_write, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
