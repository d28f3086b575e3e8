/*
 * extended.h: destinations, batches, updates of variables, colocation.
 */
#include "strategy/strategy_support.h"

#include <stdio.h>

static ls_variable *make(ls_strategy *s, const char *name, bool on_read)
{
    ls_variable *v = NULL;
    LS_SCOPE (s)
        v = ls_variable_with(
            LS_VARIABLE(.synchronization = on_read ? LS_SYNC_ON_READ : LS_SYNC_ON_WRITE,
                        .aggregation = LS_AGGREGATE_SUM),
            name, ls_scalar(LS_F32, 1));
    GAVE(v);
    return v;
}

/* ---- destinations ------------------------------------------------------------------------ */

static void check_destinations(ls_strategy *s, int n, bool traced)
{
    (void)traced;
    ls_value *x = numbers(s, 1, 1), *plain = number(0);
    ls_variable *v = make(s, "v", false);
    ls_variable *out = ls_variable_new("out", ls_scalar(LS_F32, 1), true);
    double sum = n * (n + 1) / 2;
    struct {
        ls_destination *to;
        bool mirrored;
    } rows[] = {
        { ls_at_value(x), true },
        { ls_at_variable(v), true },
        { ls_at_value(plain), false },
        { ls_at_device("/cpu:0"), false },
        { ls_at_device("CPU:1"), false },
        { ls_at_value(ls_mirror_to(s, ls_scalar(LS_F32, 1), ls_at_value(x))), true },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        GAVE(rows[i].to);
        ls_value *r = ls_reduce_to(s, LS_SUM, x, rows[i].to);
        GAVE(r);
        HOLDS_EACH(r, n, sum, 0);
        ls_spread want = rows[i].mirrored && n > 1 ? LS_SPREAD_MIRRORED : LS_SPREAD_PLAIN;
        if (n > 1)
            assert_int_equal(ls_spread_of(r), want);
        ls_value *m = ls_mirror_to(s, ls_scalar(LS_F32, 4), rows[i].to);
        HOLDS_EACH(m, n, 4, 0);
        if (n > 1)
            assert_int_equal(ls_spread_of(m), want);
        assert_null(ls_mirror_to(s, NULL, rows[i].to));
        FAILS(LS_INVALID, "tensor");
    }
    /* A mirrored result is as good as any argument of a run, and as a mean. */
    ls_value *m = ls_reduce_to(s, LS_SUM, x, ls_at_value(x));
    HOLDS(ls_reduce(s, LS_MEAN, m, LS_NO_AXIS), sum);

    assert_null(ls_at_device("/cpu:0,/cpu:1"));
    FAILS(LS_INVALID, "/cpu:0,/cpu:1", "one");
    assert_null(ls_at_device(""));
    FAILS(LS_INVALID, "device");
    assert_null(ls_at_device("banana"));
    FAILS(LS_INVALID, "banana");
    assert_null(ls_at_value(nothing()));
    FAILS(LS_INVALID, "list of 0");
    assert_null(ls_reduce_to(s, LS_SUM, x, NULL));
    FAILS(LS_INVALID, "destination");
    ls_variable_free(v);
    ls_variable_free(out);
}

EVERYWHERE(results_are_mirrored_or_plain_as_their_destination_is, check_destinations)

static void check_batches(ls_strategy *s, int n, bool traced)
{
    (void)traced;
    enum { MANY = 40 };
    ls_value *values[MANY];
    ls_destination *to[MANY];
    for (int i = 0; i < MANY; i++) {
        values[i] = numbers(s, i, 1);
        to[i] = i % 3 ? ls_at_value(values[i]) : ls_at_device("/cpu:0");
    }
    ls_value *sums = ls_batch_reduce_to(s, LS_SUM, MANY, values, to);
    GAVE(sums);
    assert_int_equal(ls_kind_of(sums), LS_LIST);
    assert_int_equal(ls_length(sums), MANY);
    for (int i = 0; i < MANY; i++)
        HOLDS_EACH(ls_child(sums, i), n, n * i + n * (n - 1) / 2, 0);
    ls_value *none = ls_batch_reduce_to(s, LS_SUM, 0, NULL, NULL);
    GAVE(none);
    assert_int_equal(ls_length(none), 0);
    assert_null(ls_batch_reduce_to(s, LS_SUM, -1, values, to));
    FAILS(LS_INVALID, "-1");
    assert_null(ls_batch_reduce_to(s, LS_SUM, 2, NULL, to));
    FAILS(LS_INVALID, "values");
    assert_null(ls_batch_reduce_to(s, LS_SUM, 2, values, NULL));
    FAILS(LS_INVALID, "destinations");
    values[7] = NULL;
    assert_null(ls_batch_reduce_to(s, LS_SUM, MANY, values, to));
    FAILS(LS_INVALID, "7");
    values[7] = values[6];
    to[9] = NULL;
    assert_null(ls_batch_reduce_to(s, LS_SUM, MANY, values, to));
    FAILS(LS_INVALID, "9");
}

EVERYWHERE(a_batch_gives_its_results_in_order, check_batches)

/* ---- updates ------------------------------------------------------------------------------- */

typedef struct updates {
    int calls;
    ls_variable *v, *at[MOST_REPLICAS];
    bool fail;
} updates;

static ls_value *add_it(ls_variable *component, ls_value *arguments, void *user)
{
    updates *u = user;
    if (u->calls < MOST_REPLICAS)
        u->at[u->calls] = component;
    u->calls++;
    if (ls_assign_add(component, ls_item(arguments, 0)))
        return NULL;
    return u->fail ? fail_here("in_update") : ls_leaf(ls_read(component));
}

static void check_update(ls_strategy *s, int n, bool traced)
{
    (void)traced;
    ls_value *per = numbers(s, 1, 1);
    ls_value *three = ls_mirror_to(s, ls_scalar(LS_F32, 3), ls_at_value(per)), *plain = number(3);
    for (int k = 0; k < 8; k++) {
        bool on_read = k & 1, group = k & 2;
        ls_value *arguments = ls_list(1, k & 4 ? &plain : &three);
        updates u = { .v = make(s, "v", on_read) };
        ls_value *r = ls_update(s, u.v, add_it, &u, arguments, group);
        GAVE(r);
        /* Once per copy: these devices share memory, so that is one, or one per replica. */
        assert_int_equal(u.calls, on_read ? n : 1);
        for (int i = 0; i < u.calls; i++)
            assert_ptr_equal(u.at[i], ls_variable_component(u.v, i));
        for (int i = 0; i < n; i++)
            HOLDS(ls_read(ls_variable_component(u.v, i)), 4);
        if (group) {
            HOLDS_EACH(r, n, 4, 0);
            if (n > 1)
                assert_int_equal(ls_spread_of(r), LS_SPREAD_MIRRORED);
        } else {
            assert_int_equal(ls_length(r), n);
            HOLDS(ls_item(r, n - 1), 4);
        }
        if (n > 1) {
            assert_null(ls_update(s, u.v, add_it, &u, ls_list(1, &per), group));
            FAILS(LS_INVALID, "arguments[0]", "per-replica", "ls_reduce_to");
            HOLDS(ls_read(ls_variable_component(u.v, 0)), 4);
        }
        u.fail = true;
        assert_null(ls_update(s, u.v, add_it, &u, arguments, group));
        FAILS(LS_NOT_FOUND, "in_update");
        ls_variable_free(u.v);
    }
    assert_false(ls_has_strategy());
}

EVERYWHERE(an_update_is_called_once_per_copy, check_update)

/* The header's example: a step's gradients, applied by a merge. */
static ls_value *descend(ls_variable *component, ls_value *arguments, void *user)
{
    (void)user;
    return ls_assign_sub(component, ls_scale(ls_leaf_tensor(arguments), 0.5)) ? NULL : nothing();
}

static ls_value *apply(ls_strategy *s, ls_value *gradient, void *user)
{
    ls_value *sum = ls_reduce_to(s, LS_SUM, gradient, ls_at_variable(user));
    return ls_update(s, user, descend, NULL, sum, true);
}

static ls_value *train(ls_value *arguments, void *user)
{
    (void)arguments;
    if (!ls_merge_call(ls_get_replica_context(), apply, user, ls_leaf(my_number(2, 2))))
        return NULL;
    return ls_leaf(ls_read(user));
}

static void check_train(ls_strategy *s, int n, bool traced)
{
    ls_variable *v = make(s, "v", false);
    ls_function *f = ls_trace(train, v);
    double want = 1;
    for (int step = 0; step < 3; step++) {
        want -= 0.5 * (n * (n + 1));
        ls_value *r = traced ? ls_run(s, f, nothing()) : ls_run_eager(s, train, v, nothing());
        HOLDS_EACH(r, n, want, 0);
        HOLDS(ls_read(v), want);
    }
    ls_function_free(f);
    ls_variable_free(v);
}

EVERYWHERE(gradients_are_applied_in_a_merge_step_after_step, check_train)

static ls_value *count_devices(ls_value *arguments, void *user)
{
    ++*(int *)user;
    return arguments;
}

static void check_non_slot(ls_strategy *s, int n, bool traced)
{
    (void)traced;
    int count = 0, calls = 0;
    const char *const *devices = ls_non_slot_devices(s, &count);
    ls_value *grouped =
        ls_update_non_slot(s, count, devices, count_devices, &calls, number(5), true);
    GAVE(grouped);
    assert_int_equal(calls, 1); /* one memory */
    HOLDS_EACH(grouped, n, 5, 0);
    ls_value *list = ls_update_non_slot(s, count, devices, count_devices, &calls, number(5), false);
    GAVE(list);
    assert_int_equal(ls_kind_of(list), LS_LIST);
    if (n > 1) {
        assert_null(
            ls_update_non_slot(s, count, devices, count_devices, &calls, numbers(s, 0, 1), true));
        FAILS(LS_INVALID, "replica");
    }
    assert_null(ls_update_non_slot(s, 1, (const char *[]){ "/cpu:77" }, count_devices, &calls,
                                   number(1), true));
    FAILS(LS_INVALID, "77");
    assert_null(ls_update_non_slot(s, -1, devices, count_devices, &calls, number(1), true));
    FAILS(LS_INVALID, "-1");
    assert_null(ls_update_non_slot(s, count, NULL, count_devices, &calls, number(1), true));
    FAILS(LS_INVALID, "devices");
    OK(ls_group(s, grouped));
}

EVERYWHERE(an_update_without_a_variable_is_called_once_per_memory, check_non_slot)

/* ---- placing like another ---------------------------------------------------------------------- */

static void check_colocate(ls_strategy *s, int n, bool traced)
{
    (void)n, (void)traced;
    ls_variable *v = make(s, "v", false), *slot = NULL, *foreign;
    ls_strategy *other = replicas_on(2, 1);
    foreign = make(other, "foreign", false);
    ls_variable *plain = ls_variable_new("plain", ls_scalar(LS_F32, 1), true);
    assert_int_equal(ls_colocate_begin(s, v), LS_STATE);
    FAILS(LS_STATE, "scope");
    LS_SCOPE (s) {
        OK(ls_colocate_begin(s, v));
        OK(ls_colocate_begin(s, v));
        slot = ls_variable_new("slot", ls_scalar(LS_F32, 0), false);
        OK(ls_colocate_end(s));
        OK(ls_colocate_end(s));
        assert_int_equal(ls_colocate_end(s), LS_STATE);
        ls_error();
        assert_int_equal(ls_colocate_begin(s, foreign), LS_INVALID);
        FAILS(LS_INVALID, "'foreign'", "strategy");
        assert_int_equal(ls_colocate_begin(s, plain), LS_INVALID);
        FAILS(LS_INVALID, "'plain'", "strategy");
        assert_int_equal(ls_colocate_begin(s, NULL), LS_INVALID);
        ls_error();
    }
    GAVE(slot);
    assert_ptr_equal(ls_variable_strategy(slot), s);
    assert_true(ls_variable_created_in_scope(s, slot));
    assert_false(ls_variable_created_in_scope(s, foreign));
    assert_false(ls_variable_created_in_scope(s, plain));
    ls_variable *all[] = { v, slot, foreign, plain };
    for (int i = 0; i < 4; i++)
        ls_variable_free(all[i]);
    free_strategy(other);
}

EVERYWHERE(variables_are_placed_like_one_of_this_strategy_only, check_colocate)

static void check_read_var(ls_strategy *s, int n, bool traced)
{
    (void)traced;
    ls_variable *a = make(s, "a", false), *b = make(s, "b", true);
    HOLDS(ls_read_var(s, a), 1);
    HOLDS(ls_read_var(s, b), n);
    ls_variable_free(a);
    ls_variable_free(b);
}

EVERYWHERE(read_var_combines_what_is_combined_on_reading, check_read_var)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(results_are_mirrored_or_plain_as_their_destination_is),
        TEST(a_batch_gives_its_results_in_order),
        TEST(an_update_is_called_once_per_copy),
        TEST(gradients_are_applied_in_a_merge_step_after_step),
        TEST(an_update_without_a_variable_is_called_once_per_memory),
        TEST(variables_are_placed_like_one_of_this_strategy_only),
        TEST(read_var_combines_what_is_combined_on_reading),
    };
    return RUN_TESTS(tests);
}
