/*
 * ls_update and what goes with it: once per cell, what may be written, and how results come back.
 */
#include "strategy/strategy.h"
#include "strategy/variable_test_support.h"

enum { V = 3 };

static ls_variable *make(ls_strategy *s, const ls_variable_options *options, const char *name)
{
    ls_variable *v = NULL;
    LS_SCOPE (s)
        v = ls_variable_with(options, name, number(1));
    assert_non_null(v);
    return v;
}

/* What the functions of these tests see and do. */
typedef struct job {
    ls_variable *v, *other;
    int calls, component; /* of the last call */
    char device[V][LS_DEVICE_NAME_MAX];
    ls_value *arguments;
    bool group;
} job;

/* c += x, through the component; gives what it is then. */
static ls_value *add_argument(ls_variable *c, ls_value *arguments, void *user)
{
    job *j = user;
    assert_true(ls_in_cross_replica_context());
    strcpy(j->device[j->calls], ls_device_current());
    j->calls++;
    j->component = c->replica;
    ls_tensor *x = ls_item(arguments, 0);
    assert_string_equal(ls_device_of(x), ls_device_current());
    if (ls_assign_add(c, ls_add(x, ls_mul(number(0), ls_read(c)))))
        return NULL;
    return ls_tensors(1, (ls_tensor *[]){ ls_read(c) });
}

static void a_shared_variable_is_updated_once(void **state)
{
    (void)state;
    ls_strategy *s = replicas(V);
    LS_FRAME {
        ls_variable *v = make(s, NULL, "w");
        job j = { .v = v };
        ls_tensor *x = number(4);
        ls_value *result = ls_update(s, v, add_argument, &j, ls_tensors(1, &x), true);
        assert_non_null(result);
        assert_int_equal(j.calls, 1);
        holds(ls_read(v), 5);
        assert_int_equal(ls_spread_of(result), LS_SPREAD_MIRRORED);
        assert_int_equal(ls_components(result), V);
        const char *const *devices = ls_worker_devices(s, NULL);
        for (int i = 0; i < V; i++) {
            ls_tensor *mine = ls_item(ls_select(result, i), 0);
            holds(mine, 5);
            assert_string_equal(ls_device_of(mine), devices[i]);
        }
        ls_value *list = ls_update(s, v, add_argument, &j, ls_tensors(1, &x), false);
        assert_int_equal(j.calls, 2);
        assert_int_equal(ls_length(list), V);
        for (int i = 0; i < V; i++)
            holds(ls_item(ls_child(list, i), 0), 9);
        assert_int_equal(ls_spread_of(list), LS_SPREAD_PLAIN);
        ls_variable_free(v);
    }
    ls_strategy_free(s);
}

static void copies_are_updated_each_on_its_device(void **state)
{
    (void)state;
    ls_strategy *s = replicas(V);
    LS_FRAME {
        ls_variable *v = make(s, LS_VARIABLE(.synchronization = LS_SYNC_ON_READ), "n");
        for (int i = 0; i < V; i++)
            assert_int_equal(ls_assign(ls_variable_component(v, i), number(10 * i)), LS_OK);
        job j = { .v = v };
        ls_value *x = ls_mirror_to(s, number(4), ls_at_variable(v));
        ls_value *result = ls_update(s, v, add_argument, &j, ls_list(1, &x), true);
        assert_non_null(result);
        assert_int_equal(j.calls, V);
        const char *const *devices = ls_worker_devices(s, NULL);
        for (int i = 0; i < V; i++) {
            assert_true(copy_of(v, i) == (float)(10 * i + 4));
            assert_string_equal(j.device[i], devices[i]);
            holds(ls_item(ls_select(result, i), 0), 10 * i + 4);
        }
        j.calls = 0;
        ls_value *list = ls_update(s, v, add_argument, &j, ls_list(1, &x), false);
        holds(ls_item(ls_child(list, 2), 0), 28);
        ls_variable_free(v);
    }
    ls_strategy_free(s);
}

static ls_value *id_leaf(int replica, int count, void *user)
{
    (void)count;
    (void)user;
    return ls_leaf(number(replica));
}

static ls_value *give_null(ls_variable *c, ls_value *arguments, void *user)
{
    (void)c;
    (void)arguments;
    (void)user;
    return NULL;
}

static ls_value *fail_inside(ls_variable *c, ls_value *arguments, void *user)
{
    (void)arguments;
    (void)user;
    ls_assign(c, ls_zeros(LS_F32, LS_DIMS(2)));
    return none();
}

static void what_is_refused_says_where(void **state)
{
    (void)state;
    ls_strategy *s = replicas(V), *two = replicas(2);
    LS_FRAME {
        job j = { .calls = 0 };
        ls_variable *v = make(s, NULL, "w"), *foreign = make(two, NULL, "f");
        ls_value *spread = ls_distribute_values(s, id_leaf, NULL), *plain = ls_leaf(number(1));
        ls_value *nest =
            ls_dict(2, (const char *[]){ "a", "b" },
                    (ls_value *[]){ plain, ls_list(2, (ls_value *[]){ plain, spread }) });
        assert_null(ls_update(s, v, add_argument, &j, nest, true));
        said(LS_INVALID, "ls_update: 'arguments.b[1]' is per-replica", "ls_reduce_to");
        assert_null(ls_update(s, v, add_argument, &j, NULL, true));
        said(LS_INVALID, "ls_update: the arguments are NULL", "ls_list(0, NULL)");
        assert_null(ls_update(s, v, NULL, &j, none(), true));
        said(LS_INVALID, "ls_update: the function is NULL", NULL);
        assert_null(ls_update(s, NULL, add_argument, &j, none(), true));
        said(LS_INVALID, "ls_update: the variable is NULL", NULL);
        assert_null(ls_update(s, foreign, add_argument, &j, none(), true));
        said(LS_INVALID, "variable 'f' was not made in the scope of", "LS_SCOPE");
        assert_null(ls_update(s, ls_variable_component(v, 1), add_argument, &j, none(), true));
        said(LS_INVALID, "'w/replica_1' is a component of variable 'w'", "ls_value_container");
        assert_null(ls_update(s, v, give_null, &j, none(), true));
        said(LS_INVALID, "ls_update of variable 'w': the function returned NULL",
             "ls_list(0, NULL)");
        assert_null(ls_update(s, v, fail_inside, &j, none(), true));
        said(LS_SHAPE, "ls_update of variable 'w': ls_assign: variable 'w'", "cannot take f32[2]");
        assert_int_equal(j.calls, 0);
        ls_value *mirrored = ls_mirror_to(two, number(1), ls_at_variable(foreign));
        assert_null(ls_update(s, v, add_argument, &j, mirrored, true));
        said(LS_INVALID, "ls_update: a value of 2 components, the strategy has 3 replicas",
             "as many replicas");
        LS_SCOPE (two) {
            assert_null(ls_update(s, v, add_argument, &j, none(), true));
            said(LS_STATE, "ls_update: mixing strategies", NULL);
        }
        holds(ls_read(v), 1);
        ls_variable_free(v);
        ls_variable_free(foreign);
    }
    ls_strategy_free(s);
    ls_strategy_free(two);
}

/* ---- which variables the function may write --------------------------------------------------- */

static ls_value *write_other(ls_variable *c, ls_value *arguments, void *user)
{
    (void)arguments;
    job *j = user;
    if (ls_assign_add(ls_value_container(c), number(1)) || ls_assign_add(j->other, number(10)))
        return NULL;
    return ls_leaf(ls_read(j->other));
}

static ls_value *write_neighbour(ls_variable *c, ls_value *arguments, void *user)
{
    (void)arguments;
    job *j = user;
    if (ls_assign(ls_variable_component(j->v, (c->replica + 1) % V), number(1)))
        return NULL;
    return none();
}

static void other_variables_in_an_update(void **state)
{
    (void)state;
    ls_strategy *s = replicas(V);
    LS_FRAME {
        ls_variable *a = make(s, NULL, "a"), *b = make(s, NULL, "b");
        ls_variable *m = make(s, LS_VARIABLE(.synchronization = LS_SYNC_ON_READ), "m");
        ls_variable *n = make(
            s, LS_VARIABLE(.synchronization = LS_SYNC_ON_READ, .aggregation = LS_AGGREGATE_SUM),
            "n");
        job j = { .v = a, .other = b }; /* shared, shared: once */
        holds(ls_item(ls_list(1, (ls_value *[]){ ls_select(
                                     ls_update(s, a, write_other, &j, none(), true), 2) }),
                      0),
              11);
        holds(ls_read(a), 2);
        j = (job){ .v = a, .other = n }; /* copies: the one call stands for all replicas */
        assert_non_null(ls_update(s, a, write_other, &j, none(), true));
        for (int i = 0; i < V; i++)
            assert_true(copy_of(n, i) == 11);
        j = (job){ .v = m, .other = n }; /* copies with copies */
        assert_non_null(ls_update(s, m, write_other, &j, none(), true));
        for (int i = 0; i < V; i++)
            assert_true(copy_of(m, i) == 2 && copy_of(n, i) == 21);
        j = (job){ .v = m, .other = a }; /* V calls would add to one cell */
        assert_null(ls_update(s, m, write_other, &j, none(), true));
        said(LS_STATE, "'a' cannot be written in ls_update of variable 'm', component 0", NULL);
        j = (job){ .v = n };
        assert_null(ls_update(s, n, write_neighbour, &j, none(), true));
        said(LS_STATE, "'n/replica_1' cannot be written in ls_update of variable 'n', component 0",
             "the component it is given");
        j = (job){ .v = a };
        assert_null(ls_update(s, a, write_neighbour, &j, none(), true));
        said(LS_STATE, "'a/replica_1' cannot be written in ls_update of variable 'a'", NULL);
        ls_variable_free(a);
        ls_variable_free(b);
        ls_variable_free(m);
        ls_variable_free(n);
    }
    ls_strategy_free(s);
}

/* ---- in a merge function ------------------------------------------------------------------------ */

static ls_value *descend(ls_variable *c, ls_value *arguments, void *user)
{
    (void)user;
    if (ls_assign_sub(c, ls_mul(number(0.5), ls_leaf_tensor(arguments))))
        return NULL;
    return ls_leaf(ls_read(c));
}

static ls_value *apply(ls_strategy *s, ls_value *gradient, void *user)
{
    ls_variable *v = user;
    ls_value *sum = ls_reduce_to(s, LS_SUM, gradient, ls_at_variable(v));
    return sum ? ls_update(s, v, descend, NULL, sum, true) : NULL;
}

static ls_value *step(ls_value *arguments, void *user)
{
    (void)arguments;
    ls_tensor *g = ls_mul(number(my_id() + 1), ls_read(user));
    return ls_merge_call(ls_get_replica_context(), apply, user, ls_leaf(g));
}

/* The program that extended.h opens with. */
static void an_optimizer_of_ones_own(void **state)
{
    (void)state;
    ls_strategy *s = replicas(V);
    LS_FRAME {
        ls_variable *v = make(s, NULL, "w");
        ls_value *after = runs(s, step, v);
        holds(ls_read(v), 1 - 0.5 * 6);
        for (int i = 0; i < V; i++)
            holds(ls_leaf_tensor(ls_select(after, i)), -2);
        ls_variable_free(v);
    }
    ls_strategy_free(s);
}

static ls_value *select_sum(ls_strategy *s, ls_value *x, void *user)
{
    ls_value *sum = ls_reduce_to(s, LS_SUM, x, ls_at_variable(user));
    ls_tensor *mine = sum ? ls_leaf_tensor(ls_select(sum, s->replicas - 1)) : NULL;
    return mine ? ls_leaf(ls_add(mine, mine)) : NULL;
}

static ls_value *step_that_selects(ls_value *arguments, void *user)
{
    (void)arguments;
    ls_tensor *x = ls_mul(number(my_id() + 1), ls_read(user));
    return ls_merge_call(ls_get_replica_context(), select_sum, user, ls_leaf(x));
}

static void a_merge_function_may_select(void **state)
{
    (void)state;
    for (int count = 1; count <= V; count += V - 1) {
        ls_strategy *s = replicas(count);
        LS_FRAME {
            ls_variable *v = make(s, NULL, "w");
            ls_value *twice = runs(s, step_that_selects, v);
            holds(ls_leaf_tensor(ls_select(twice, 0)), count * (count + 1));
            ls_variable_free(v);
        }
        ls_strategy_free(s);
    }
}

static ls_value *update_inside(ls_value *arguments, void *user)
{
    job *j = user;
    return ls_update(ls_get_strategy(), j->v, add_argument, j, arguments, true);
}

static void a_replica_cannot_update(void **state)
{
    (void)state;
    ls_strategy *s = replicas(V);
    LS_FRAME {
        job j = { .v = make(s, NULL, "w") };
        assert_null(run(s, update_inside, &j));
        said(LS_STATE, "ls_update: called by replica 0", "ls_merge_call");
        ls_variable_free(j.v);
    }
    ls_strategy_free(s);
}

/* ---- the rest ------------------------------------------------------------------------------------ */

static ls_value *count_calls(ls_value *arguments, void *user)
{
    job *j = user;
    j->calls++;
    strcpy(j->device[0], ls_device_current());
    return j->other && ls_assign_add(j->other, number(1)) ? NULL : arguments;
}

static void without_a_variable_once_per_memory(void **state)
{
    (void)state;
    ls_strategy *s = replicas(V);
    LS_FRAME {
        job j = { .other = make(s, NULL, "w") };
        int count;
        const char *const *devices = ls_non_slot_devices(s, &count);
        ls_value *result =
            ls_update_non_slot(s, count, devices, count_calls, &j, ls_leaf(number(3)), true);
        assert_int_equal(j.calls, 1);
        assert_string_equal(j.device[0], devices[0]);
        assert_int_equal(ls_spread_of(result), LS_SPREAD_MIRRORED);
        holds(ls_leaf_tensor(ls_select(result, 2)), 3);
        holds(ls_read(j.other), 2);
        result = ls_update_non_slot(s, 1, devices + 1, count_calls, &j, ls_leaf(number(3)), false);
        assert_int_equal(ls_length(result), V);
        assert_string_equal(j.device[0], devices[1]);
        assert_null(ls_update_non_slot(s, 0, devices, count_calls, &j, none(), true));
        said(LS_INVALID, "ls_update_non_slot: 0 devices", "ls_non_slot_devices");
        assert_null(
            ls_update_non_slot(s, 1, (const char *[]){ "/cpu:7" }, count_calls, &j, none(), true));
        said(LS_INVALID, "'/cpu:7' is no device of", "ls_non_slot_devices");
        assert_null(ls_update_non_slot(s, 1, devices, NULL, &j, none(), true));
        said(LS_INVALID, "ls_update_non_slot: the function is NULL", NULL);
        ls_value *spread = ls_distribute_values(s, id_leaf, NULL);
        assert_null(ls_update_non_slot(s, 1, devices, count_calls, &j, spread, true));
        said(LS_INVALID, "ls_update_non_slot: 'arguments' is per-replica", NULL);
        ls_variable_free(j.other);
    }
    ls_strategy_free(s);
}

static void the_default_strategy_updates_plain_variables(void **state)
{
    (void)state;
    LS_FRAME {
        ls_strategy *s = ls_default_strategy();
        ls_variable *v = ls_variable_new("w", number(1), true);
        job j = { .v = v };
        ls_tensor *x = number(4);
        ls_value *result = ls_update(s, v, add_argument, &j, ls_tensors(1, &x), true);
        holds(ls_item(result, 0), 5);
        holds(ls_read_var(s, v), 5);
        ls_variable_free(v);
    }
}

static ls_value *read_var_inside(ls_value *arguments, void *user)
{
    (void)arguments;
    ls_tensor *x = ls_read_var(ls_get_strategy(), user);
    return x ? ls_leaf(x) : NULL;
}

static void read_var_and_created_in_scope(void **state)
{
    (void)state;
    ls_strategy *s = replicas(V), *two = replicas(2);
    LS_FRAME {
        ls_variable *w = make(s, NULL, "w"), *plain = ls_variable_new("p", number(1), true);
        ls_variable *n = make(
            s, LS_VARIABLE(.synchronization = LS_SYNC_ON_READ, .aggregation = LS_AGGREGATE_SUM),
            "n");
        holds(ls_read_var(s, w), 1);
        holds(ls_read_var(s, n), 3);
        assert_null(ls_read_var(two, n));
        said(LS_INVALID, "ls_read_var: variable 'n' was not made in the scope of", NULL);
        assert_null(run(s, read_var_inside, n));
        said(LS_STATE, "ls_read_var: called by replica 0", NULL);
        assert_true(ls_variable_created_in_scope(s, w));
        assert_true(ls_variable_created_in_scope(s, ls_variable_component(w, 1)));
        assert_false(ls_variable_created_in_scope(two, w));
        assert_false(ls_variable_created_in_scope(s, plain));
        assert_true(ls_variable_created_in_scope(ls_default_strategy(), plain));
        assert_false(ls_variable_created_in_scope(NULL, w));
        ls_variable_free(w);
        ls_variable_free(n);
        ls_variable_free(plain);
    }
    ls_strategy_free(s);
    ls_strategy_free(two);
}

static void colocation_is_begun_and_ended_in_a_scope(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2), *other = replicas(2);
    LS_FRAME {
        ls_variable *v = make(s, NULL, "w"), *plain = ls_variable_new("p", number(1), true);
        assert_int_equal(ls_colocate_begin(s, v), LS_STATE);
        said(LS_STATE, "ls_colocate_begin: not inside the scope of", "LS_SCOPE");
        LS_SCOPE (s) {
            assert_int_equal(ls_colocate_begin(s, v), LS_OK);
            assert_int_equal(ls_colocate_begin(s, v), LS_OK);
            ls_variable *slot = ls_variable_new("w/m", number(0), false);
            assert_ptr_equal(ls_variable_strategy(slot), s);
            ls_variable_free(slot);
            assert_int_equal(ls_colocate_end(s), LS_OK);
            assert_int_equal(ls_colocate_end(s), LS_OK);
            assert_int_equal(ls_colocate_end(s), LS_STATE);
            said(LS_STATE, "ls_colocate_end: none was begun", NULL);
            assert_int_equal(ls_colocate_begin(s, plain), LS_INVALID);
            said(LS_INVALID, "variable 'p' was not made in the scope of", NULL);
            assert_int_equal(ls_colocate_begin(s, v), LS_OK);
        }
        LS_SCOPE (other) { /* what another scope left open is not this one's */
            assert_int_equal(ls_colocate_end(other), LS_STATE);
            failed(LS_STATE);
        }
        ls_variable_free(v);
        ls_variable_free(plain);
    }
    ls_strategy_free(s);
    ls_strategy_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_shared_variable_is_updated_once, clean),
        cmocka_unit_test_setup(copies_are_updated_each_on_its_device, clean),
        cmocka_unit_test_setup(what_is_refused_says_where, clean),
        cmocka_unit_test_setup(other_variables_in_an_update, clean),
        BOTH(an_optimizer_of_ones_own),
        BOTH(a_merge_function_may_select),
        BOTH(a_replica_cannot_update),
        cmocka_unit_test_setup(without_a_variable_once_per_memory, clean),
        cmocka_unit_test_setup(the_default_strategy_updates_plain_variables, clean),
        BOTH(read_var_and_created_in_scope),
        cmocka_unit_test_setup(colocation_is_begun_and_ended_in_a_scope, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
