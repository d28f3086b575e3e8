/*
 * Distributed variables beyond the table of writes: components, rows, saving and restoring on as
 * many replicas or others, life after the strategy.
 */
#include "strategy/strategy_support.h"

#include <stdio.h>

static ls_variable *make(ls_strategy *s, const char *name, bool on_read, ls_aggregation aggregation,
                         ls_tensor *initial)
{
    ls_variable *v = NULL;
    LS_SCOPE (s)
        v = ls_variable_with(
            LS_VARIABLE(.synchronization = on_read ? LS_SYNC_ON_READ : LS_SYNC_ON_WRITE,
                        .aggregation = aggregation),
            name, initial);
    GAVE(v);
    return v;
}

/* Makes replica i's copy of an ON_READ variable first + more i. */
typedef struct filling {
    ls_variable *v;
    double first, more;
} filling;

static ls_value *fill_step(ls_value *arguments, void *user)
{
    const filling *f = user;
    return ls_assign(f->v, my_number(f->first, f->more)) ? NULL : arguments;
}

static void fill(ls_strategy *s, ls_variable *v, double first, double more)
{
    GAVE(ls_run_eager(s, fill_step, &(filling){ v, first, more }, nothing()));
}

/* ---- components --------------------------------------------------------------------------- */

static void check_components(ls_strategy *s, int n, bool traced)
{
    (void)traced;
    for (int on_read = 0; on_read < 2; on_read++) {
        ls_variable *v = make(s, "w", on_read, LS_AGGREGATE_SUM, ls_scalar(LS_F32, 2));
        assert_int_equal(ls_variable_components(v), n);
        assert_ptr_equal(ls_value_container(v), v);
        for (int i = 0; i < n; i++) {
            ls_variable *c = ls_variable_component(v, i);
            char name[32] = "w";
            if (i)
                snprintf(name, sizeof name, "w/replica_%d", i);
            GAVE(c);
            assert_string_equal(ls_variable_name(c), name);
            assert_ptr_equal(ls_value_container(c), v);
            assert_ptr_equal(ls_variable_component(v, i), c); /* its own identity */
            assert_ptr_equal(ls_variable_strategy(c), s);
            for (int j = 0; j < i; j++)
                assert_ptr_not_equal(ls_variable_component(v, j), c);
        }
        assert_null(ls_variable_component(v, n));
        char text[32];
        snprintf(text, sizeof text, "%d", n);
        FAILS(LS_INVALID, "'w'", text);
        assert_null(ls_variable_component(v, -1));
        FAILS(LS_INVALID, "'w'", "-1");
        ls_value *list = ls_local_results(s, ls_variable_leaf(v));
        GAVE(list);
        assert_int_equal(ls_length(list), n);
        for (int i = 0; i < n; i++)
            assert_ptr_equal(ls_leaf_variable(ls_child(list, i)), ls_variable_component(v, i));
        ls_variable_free(v);
    }
    /* A variable without a strategy is its only component. */
    ls_variable *plain = ls_variable_new("p", ls_scalar(LS_F32, 1), true);
    assert_int_equal(ls_variable_components(plain), 1);
    assert_ptr_equal(ls_variable_component(plain, 0), plain);
    assert_ptr_equal(ls_value_container(plain), plain);
    ls_variable_free(plain);
}

EVERYWHERE(components_are_handles_with_names_and_a_container, check_components)

/* ---- rows ------------------------------------------------------------------------------------ */

typedef ls_status (*scatter_fn)(ls_variable *v, ls_tensor *rows, ls_tensor *values);
static const scatter_fn scatters[] = { ls_scatter_add, ls_scatter_sub, ls_scatter_update,
                                       ls_scatter_min, ls_scatter_max };
static const char *const scatter_names[] = { "scatter_add", "scatter_sub", "scatter_update",
                                             "scatter_min", "scatter_max" };

static ls_tensor *column(float a, float b, float c)
{
    return ls_from(LS_F32, LS_DIMS(3, 1), (float[]){ a, b, c });
}

typedef struct scattering {
    ls_variable *v;
    int which;
} scattering;

/* Replica i gives 4 (i + 1) to row 1, and to row 2. */
static ls_value *scatter_step(ls_value *arguments, void *user)
{
    const scattering *c = user;
    float x = 4.0f * (float)(my_id() + 1);
    ls_tensor *rows = ls_from(LS_I64, LS_DIMS(2), (int64_t[]){ 1, 2 });
    ls_tensor *values = ls_from(LS_F32, LS_DIMS(2, 1), (float[]){ x, x });
    return scatters[c->which](c->v, rows, values) ? NULL : arguments;
}

static void check_scatter_in_replicas(ls_strategy *s, int n, bool traced)
{
    static const ls_aggregation aggregations[] = { LS_AGGREGATE_NONE, LS_AGGREGATE_SUM,
                                                   LS_AGGREGATE_MEAN, LS_AGGREGATE_ONLY_FIRST };
    double sum = 4 * n * (n + 1) / 2;
    for (int a = 0; a < 4; a++)
        for (int which = 0; which < 5; which++)
            for (int on_read = 0; on_read < 2; on_read++) {
                scattering c = { make(s, "tab", on_read, aggregations[a], column(0, 10, 20)),
                                 which };
                bool combined = a == 1 || a == 2;
                ls_value *v = run_step(s, traced, scatter_step, &c, number(1));
                double x = a == 3 ? 4 : a == 2 ? sum / n : sum, r1 = 10, r2 = 20;
                if (on_read || (which >= 2 && combined)) {
                    assert_null(v);
                    FAILS(LS_UNSUPPORTED, "tab", scatter_names[which],
                          on_read  ? "ON_READ"
                          : a == 1 ? "SUM"
                                   : "MEAN");
                } else if (a == 0) {
                    if (n > 1) {
                        assert_null(v);
                        FAILS(LS_INVALID, "tab", "aggregation");
                    }
                    ls_error();
                    ls_variable_free(c.v);
                    continue;
                } else {
                    GAVE(v);
                    double one[] = { 10 + x, 10 - x, 4, 4, 10 };
                    double two[] = { 20 + x, 20 - x, 4, 4, 20 };
                    r1 = one[which], r2 = two[which];
                }
                HOLDS(ls_read(ls_variable_component(c.v, n - 1)), 0, r1, r2);
                ls_variable_free(c.v);
            }
}

EVERYWHERE(rows_of_all_replicas_are_taken_in_order, check_scatter_in_replicas)

static void check_scatter_outside(ls_strategy *s, int n, bool traced)
{
    (void)n, (void)traced;
    ls_tensor *rows = ls_from(LS_I32, LS_DIMS(3), (int32_t[]){ 2, 0, 2 });
    ls_tensor *values = column(5, 1, 30);
    static const double want[5][3] = {
        { 1, 10, 55 }, { -1, 10, -15 }, { 1, 10, 30 }, { 0, 10, 5 }, { 1, 10, 30 }
    };
    for (int which = 0; which < 5; which++) {
        ls_variable *v = make(s, "tab", false, LS_AGGREGATE_NONE, column(0, 10, 20));
        OK(scatters[which](v, rows, values));
        holds_all(__FILE__, __LINE__, ls_read(v), 3, want[which]);
        /* Nothing is written when a row is not there. */
        static const int64_t bad[] = { 3, -1, INT64_MAX };
        for (int i = 0; i < 3; i++) {
            ls_tensor *out = ls_from(LS_I64, LS_DIMS(3), (int64_t[]){ 0, 1, bad[i] });
            char text[32];
            snprintf(text, sizeof text, "%lld", (long long)bad[i]);
            assert_int_equal(scatters[which](v, out, values), LS_INVALID);
            FAILS(LS_INVALID, text, "row");
            holds_all(__FILE__, __LINE__, ls_read(v), 3, want[which]);
        }
        assert_int_equal(scatters[which](v, rows, ls_zeros(LS_F32, LS_DIMS(3, 2))), LS_SHAPE);
        FAILS(LS_SHAPE, "tab");
        assert_int_equal(scatters[which](v, rows, ls_zeros(LS_F64, LS_DIMS(3, 1))), LS_SHAPE);
        FAILS(LS_SHAPE, "f64");
        ls_variable_free(v);
    }
}

EVERYWHERE(rows_that_repeat_take_effect_in_order_and_bad_ones_write_nothing, check_scatter_outside)

/* ---- saving ------------------------------------------------------------------------------------- */

static const ls_aggregation combining[] = { LS_AGGREGATE_SUM, LS_AGGREGATE_MEAN,
                                            LS_AGGREGATE_ONLY_FIRST };

enum { KINDS = 5 }; /* ON_WRITE; ON_READ with each aggregation; without */

static void make_all(ls_strategy *s, ls_variable **all)
{
    static const char *const names[] = { "written", "sum", "mean", "first", "none" };
    for (int i = 0; i < KINDS; i++)
        all[i] = make(s, names[i], i > 0, i == 0 || i == 4 ? LS_AGGREGATE_NONE : combining[i - 1],
                      ls_scalar(LS_F32, 0));
}

static void free_all(ls_variable **all)
{
    for (int i = 0; i < KINDS; i++)
        ls_variable_free(all[i]);
}

static ls_value *save_from(int n)
{
    ls_strategy *s = replicas_on(n, n > 1 ? 2 : 1);
    ls_variable *all[KINDS];
    make_all(s, all);
    OK(ls_assign(all[0], ls_scalar(LS_F32, 7)));
    for (int i = 1; i < KINDS; i++)
        fill(s, all[i], i, 10);
    ls_value *saved = ls_variables_save(KINDS, all);
    GAVE(saved);
    free_all(all);
    free_strategy(s);
    return saved;
}

static void check_saving(ls_strategy *s, int n, bool traced)
{
    if (traced)
        return;
    for (int from = 1; from <= 3; from++) {
        ls_value *saved = save_from(from);
        double ids = from * (from - 1) / 2;
        assert_int_equal(ls_kind_of(saved), LS_DICT);
        assert_int_equal(ls_length(saved), 4 + 4 * from);
        HOLDS(ls_leaf_tensor(ls_get(saved, "written")), 7);
        HOLDS(ls_leaf_tensor(ls_get(saved, "sum")), from + 10 * ids);
        HOLDS(ls_leaf_tensor(ls_get(saved, "mean")), 2 + 10 * ids / from);
        HOLDS(ls_leaf_tensor(ls_get(saved, "first")), 3);
        for (int i = 0; i < from; i++) {
            char key[32];
            snprintf(key, sizeof key, "none/replica_%d", i);
            HOLDS(ls_leaf_tensor(ls_get(saved, key)), 4 + 10 * i);
        }
        ls_variable *all[KINDS];
        make_all(s, all);
        for (int i = 1; i < KINDS; i++)
            fill(s, all[i], -1, 0);
        if (from == n) {
            OK(ls_variables_restore(KINDS, all, saved));
            for (int i = 1; i < KINDS; i++)
                for (int r = 0; r < n; r++)
                    HOLDS(ls_read(ls_variable_component(all[i], r)), i + 10 * r);
        } else {
            OK(ls_variables_restore(KINDS - 1, all, saved));
            for (int r = 0; r < n; r++) {
                HOLDS(ls_read(ls_variable_component(all[1], r)), (from + 10 * ids) / n);
                HOLDS(ls_read(ls_variable_component(all[2], r)), 2 + 10 * ids / from);
                HOLDS(ls_read(ls_variable_component(all[3], r)), 3);
            }
            /* Without an aggregation there is nothing to restore from. */
            fill(s, all[1], -1, 0);
            assert_int_equal(ls_variables_restore(KINDS, all, saved), LS_NOT_FOUND);
            FAILS(LS_NOT_FOUND, "none");
            HOLDS(ls_read(ls_variable_component(all[1], n - 1)), -1); /* all or nothing */
        }
        HOLDS(ls_read(all[0]), 7);
        free_all(all);
    }
}

EVERYWHERE(saved_on_some_replicas_restored_on_others, check_saving)

static ls_value *save_here(ls_value *arguments, void *user)
{
    return ls_variables_save(1, (ls_variable **)&user) ? arguments : NULL;
}

static ls_value *restore_here(ls_value *arguments, void *user)
{
    return ls_variables_restore(1, (ls_variable **)&user,
                                ls_dict(1, (const char *[]){ "a" }, &arguments))
               ? NULL
               : arguments;
}

static void check_restore_errors(ls_strategy *s, int n, bool traced)
{
    ls_variable *two[2] = { make(s, "a", false, LS_AGGREGATE_NONE, ls_scalar(LS_F32, 1)),
                            make(s, "b", false, LS_AGGREGATE_NONE, ls_scalar(LS_F32, 2)) };
    ls_value *nine = number(9), *flat = ls_leaf(ls_zeros(LS_F32, LS_DIMS(3)));
    const char *keys[] = { "a", "b", "other" };
    assert_int_equal(ls_variables_restore(2, two, ls_dict(1, keys, &nine)), LS_NOT_FOUND);
    FAILS(LS_NOT_FOUND, "'b'");
    HOLDS(ls_read(two[0]), 1);
    assert_int_equal(ls_variables_restore(2, two, ls_dict(2, keys, (ls_value *[]){ nine, flat })),
                     LS_SHAPE);
    FAILS(LS_SHAPE, "'b'", "f32[3]");
    assert_int_equal(
        ls_variables_restore(
            2, two, ls_dict(2, keys, (ls_value *[]){ nine, ls_leaf(ls_scalar(LS_F64, 1)) })),
        LS_SHAPE);
    FAILS(LS_SHAPE, "'b'", "f64");
    HOLDS(ls_read(two[0]), 1);
    OK(ls_variables_restore(2, two, ls_dict(3, keys, (ls_value *[]){ nine, nine, flat })));
    HOLDS(ls_read(two[0]), 9);
    assert_null(ls_variables_save(2, (ls_variable *[]){ two[0], two[0] }));
    FAILS(LS_INVALID, "'a'");
    assert_int_equal(ls_length(ls_variables_save(0, NULL)), 0);
    assert_null(run_step(s, traced, save_here, two[0], number(1)));
    FAILS(LS_STATE, "replica", replica_named(0, n));
    assert_null(run_step(s, traced, restore_here, two[0], number(1)));
    FAILS(LS_STATE, "replica", replica_named(0, n));
    assert_null(ls_variables_save(1, (ls_variable *[]){ NULL }));
    FAILS(LS_INVALID, "variable");
    assert_null(ls_variables_save(-1, two));
    FAILS(LS_INVALID, "-1");
    assert_int_equal(ls_variables_restore(2, two, NULL), LS_INVALID);
    FAILS(LS_INVALID, "saved");
    assert_int_equal(ls_variables_restore(2, two, nine), LS_INVALID);
    FAILS(LS_INVALID, "dict");
    HOLDS(ls_read(two[0]), 9);
    ls_variable_free(two[0]);
    ls_variable_free(two[1]);
}

EVERYWHERE(what_is_missing_or_does_not_fit_is_named_and_nothing_written, check_restore_errors)

/* ---- variables of no strategy ---------------------------------------------------------------- */

static ls_value *read_it(ls_value *arguments, void *user)
{
    (void)arguments;
    return ls_leaf(ls_read(user));
}

static ls_value *write_it(ls_value *arguments, void *user)
{
    return ls_assign(user, ls_scalar(LS_F32, 3)) ? NULL : arguments;
}

/* Replicas may read it; which of them would be its writer? */
static void check_of_no_strategy(ls_strategy *s, int n, bool traced)
{
    ls_variable *v = ls_variable_new("lone", ls_scalar(LS_F32, 2), true);
    HOLDS_EACH(run_step(s, traced, read_it, v, nothing()), n, 2, 0);
    ls_value *written = run_step(s, traced, write_it, v, number(1));
    if (n > 1) {
        assert_null(written);
        FAILS(LS_STATE, "'lone'", "replica 0", "scope");
    }
    HOLDS(ls_read(v), n > 1 ? 2 : 3);
    LS_SCOPE (s) {
        OK(ls_assign(v, ls_scalar(LS_F32, 4)));
        HOLDS(ls_read(v), 4);
    }
    ls_variable_free(v);
}

EVERYWHERE(a_variable_of_no_strategy_is_not_written_by_replicas, check_of_no_strategy)

/* ---- after the strategy ---------------------------------------------------------------------------- */

static void variables_outlive_their_strategy_to_be_read_and_freed(void **state)
{
    (void)state;
    for (int on_read = 0; on_read < 2; on_read++)
        LS_FRAME {
            ls_strategy *s = replicas_on(3, 2);
            ls_variable *v = make(s, "late", on_read, LS_AGGREGATE_SUM, ls_scalar(LS_F32, 2));
            free_strategy(s);
            HOLDS(ls_read(v), on_read ? 6 : 2);
            HOLDS(ls_read(ls_variable_component(v, 1)), 2);
            assert_string_equal(ls_variable_name(v), "late");
            assert_int_equal(ls_assign(v, ls_scalar(LS_F32, 3)), LS_STATE);
            FAILS(LS_STATE, "'late'", "strategy");
            assert_int_equal(ls_assign_add(v, ls_scalar(LS_F32, 3)), LS_STATE);
            FAILS(LS_STATE, "'late'");
            HOLDS(ls_read(v), on_read ? 6 : 2);
            ls_variable_free(v);
        }
    ls_variable_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(components_are_handles_with_names_and_a_container),
        TEST(rows_of_all_replicas_are_taken_in_order),
        TEST(rows_that_repeat_take_effect_in_order_and_bad_ones_write_nothing),
        TEST(saved_on_some_replicas_restored_on_others),
        TEST(what_is_missing_or_does_not_fit_is_named_and_nothing_written),
        TEST(a_variable_of_no_strategy_is_not_written_by_replicas),
        TEST(variables_outlive_their_strategy_to_be_read_and_freed),
    };
    return RUN_TESTS(tests);
}
