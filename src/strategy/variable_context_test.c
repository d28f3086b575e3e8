/*
 * Where variables may be read and written: components, distributed values, strategies that are
 * mixed or gone; and that what a replica reads is its own.
 */
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

/* ---- reading ------------------------------------------------------------------------------- */

static ls_value *read_twice(ls_value *arguments, void *user)
{
    (void)arguments;
    ls_tensor *a = ls_read(user), *b = ls_read(user);
    assert_string_equal(ls_device_of(a), ls_device_current());
    ls_tape *tape = ls_tape_open();
    ls_tensor *y = ls_mul(ls_read(user), a);
    return ls_tensors(3, (ls_tensor *[]){ a, b, ls_gradient(tape, y, ls_read(user)) });
}

static void what_a_replica_reads_is_its_own(void **state)
{
    (void)state;
    ls_strategy *s = replicas(V);
    LS_FRAME {
        ls_variable *v = make(s, NULL, "v"), *plain = ls_variable_new("p", number(1), true);
        ls_variable *const both[] = { v, plain };
        for (int k = 0; k < 2; k++) {
            ls_value *results = runs(s, read_twice, both[k]);
            for (int i = 0; i < 3; i++)
                assert_int_equal(ls_spread_of(ls_child(results, i)), LS_SPREAD_PER_REPLICA);
            for (int r = 0; r < V; r++)
                holds(ls_item(ls_select(results, r), 2), 2); /* every read is the same value */
        }
        ls_variable_free(v);
        ls_variable_free(plain);
    }
    ls_strategy_free(s);
}

/* ---- components -------------------------------------------------------------------------------- */

typedef struct job {
    ls_variable *v;
    int shift; /* which component: that of replica id + shift */
    bool write;
    ls_status (*fn)(ls_variable *, ls_tensor *);
} job;

static ls_value *use_component(ls_value *arguments, void *user)
{
    (void)arguments;
    const job *j = user;
    ls_variable *c = ls_variable_component(j->v, (my_id() + j->shift) % V);
    if (j->write && ls_assign(c, number(10 + my_id())))
        return NULL;
    ls_tensor *x = ls_read(c);
    return x ? ls_leaf(x) : NULL;
}

static void a_replica_has_its_own_component_of_copies(void **state)
{
    (void)state;
    ls_strategy *s = replicas(V);
    LS_FRAME {
        ls_variable *const copies[] = {
            make(s, LS_VARIABLE(.synchronization = LS_SYNC_ON_READ), "n"),
            make(s, LS_VARIABLE(.local_writes = true), "n"),
        };
        for (int k = 0; k < 2; k++) {
            job j = { .v = copies[k], .write = true };
            ls_value *results = runs(s, use_component, &j);
            for (int r = 0; r < V; r++) {
                assert_true(copy_of(copies[k], r) == (float)(10 + r));
                holds(ls_leaf_tensor(ls_select(results, r)), 10 + r);
            }
            j.shift = 1;
            assert_null(run(s, use_component, &j));
            said(LS_STATE,
                 "ls_assign: 'n/replica_1' is the copy of replica 1, and this is replica 0",
                 "use variable 'n'");
            j.write = false;
            assert_null(run(s, use_component, &j));
            said(LS_STATE, "ls_read: 'n/replica_1' is the copy of replica 1, and this is replica 0",
                 "use variable 'n'");
            /* Cross-replica context sees them all. */
            assert_int_equal(ls_assign(ls_variable_component(copies[k], 2), number(5)), LS_OK);
            assert_true(copy_of(copies[k], 1) == 11 && copy_of(copies[k], 2) == 5);
            ls_variable_free(copies[k]);
        }
    }
    ls_strategy_free(s);
}

static void a_shared_component_is_read_and_not_written(void **state)
{
    (void)state;
    ls_strategy *s = replicas(V);
    LS_FRAME {
        ls_variable *v = make(s, LS_VARIABLE(.aggregation = LS_AGGREGATE_MEAN), "w");
        job j = { .v = v, .shift = 1 };
        ls_value *results = runs(s, use_component, &j);
        holds(ls_leaf_tensor(ls_select(results, 0)), 1);
        j.write = true;
        assert_null(run(s, use_component, &j));
        said(LS_STATE,
             "ls_assign: 'w/replica_1' is a component of variable 'w', which all replicas",
             "ls_update");
        assert_int_equal(ls_assign(ls_variable_component(v, 0), number(2)), LS_STATE);
        said(LS_STATE, "ls_assign: 'w' is a component of variable 'w'", "write the variable");
        holds(ls_read(v), 1);
        ls_variable_free(v);
    }
    ls_strategy_free(s);
}

/* ---- distributed values -------------------------------------------------------------------------- */

static ls_value *id_leaf(int replica, int count, void *user)
{
    (void)count;
    (void)user;
    return ls_leaf(number(replica + 1));
}

static void a_mirrored_value_goes_to_each_copy(void **state)
{
    (void)state;
    ls_strategy *s = replicas(V);
    LS_FRAME {
        ls_variable *w = make(s, NULL, "w");
        ls_variable *n = make(s, LS_VARIABLE(.synchronization = LS_SYNC_ON_READ), "n");
        ls_value *spread = ls_distribute_values(s, id_leaf, NULL);
        ls_value *mirrored = ls_mirror_to(s, number(7), ls_at_variable(w));
        assert_int_equal(ls_assign_value(w, spread), LS_INVALID);
        said(LS_INVALID, "ls_assign_value: variable 'w': expected the value to be mirrored",
             "ls_reduce");
        assert_int_equal(ls_assign_value(n, spread), LS_INVALID);
        said(LS_INVALID, "ls_assign_value: variable 'n': expected the value to be mirrored", NULL);
        assert_int_equal(ls_assign_value(w, mirrored), LS_OK);
        assert_int_equal(ls_assign_value(n, mirrored), LS_OK);
        holds(ls_read(w), 7);
        for (int i = 0; i < V; i++)
            assert_true(copy_of(n, i) == 7);
        assert_int_equal(ls_assign_value(w, ls_leaf(number(3))), LS_OK);
        holds(ls_read(w), 3);
        assert_int_equal(ls_assign_value(w, none()), LS_INVALID);
        said(LS_INVALID, "the value is a list or dict, wants a leaf", NULL);
        assert_int_equal(ls_assign_value(w, ls_variable_leaf(n)), LS_INVALID);
        said(LS_INVALID, "the value is a variable, wants a leaf", NULL);
        assert_int_equal(ls_assign_value(w, NULL), LS_INVALID);
        said(LS_INVALID, "ls_assign_value: variable 'w': the value is NULL", NULL);
        holds(ls_read(w), 3);
        ls_variable_free(w);
        ls_variable_free(n);
    }
    ls_strategy_free(s);
}

/* ---- what does not fit ------------------------------------------------------------------------------- */

static ls_value *write_odd(ls_value *arguments, void *user)
{
    (void)arguments;
    ls_assign(user, my_id() == 1 ? ls_zeros(LS_F32, LS_DIMS(2)) : number(1));
    return none();
}

static ls_value *write_null(ls_value *arguments, void *user)
{
    (void)arguments;
    ls_assign(user, my_id() == 2 ? NULL : number(1));
    return none();
}

static void a_replica_whose_value_does_not_fit_is_named(void **state)
{
    (void)state;
    ls_strategy *s = replicas(V);
    LS_FRAME {
        ls_variable *v = make(s, LS_VARIABLE(.aggregation = LS_AGGREGATE_MEAN), "w");
        assert_null(run(s, write_odd, v));
        said(LS_SHAPE, "replica 1: ", "variable 'w': a variable of f32[] cannot take f32[2]");
        assert_null(run(s, write_null, v));
        said(LS_INVALID, "replica 2: ", "variable 'w': the value is NULL");
        holds(ls_read(v), 1);
        ls_variable_free(v);
    }
    ls_strategy_free(s);
}

static ls_value *add_one(ls_value *arguments, void *user)
{
    (void)arguments;
    ls_assign_add(user, number(1));
    return none();
}

static void a_variable_of_no_strategy_is_not_for_replicas(void **state)
{
    (void)state;
    ls_strategy *s = replicas(V), *one = replicas(1);
    LS_FRAME {
        ls_variable *v = ls_variable_new("p", number(1), true);
        assert_null(run(s, add_one, v));
        said(LS_STATE, "replica 0 of 3 writes variable 'p', which belongs to no strategy",
             "LS_SCOPE");
        holds(ls_read(v), 1);
        runs(one, add_one, v);
        holds(ls_read(v), 2);
        LS_SCOPE (s)
            assert_int_equal(ls_assign_add(v, number(1)), LS_OK);
        holds(ls_read(v), 3);
        ls_variable_free(v);
    }
    ls_strategy_free(s);
    ls_strategy_free(one);
}

static ls_value *read_it(ls_value *arguments, void *user)
{
    (void)arguments;
    ls_tensor *x = ls_read(user);
    return x ? ls_leaf(x) : NULL;
}

static void strategies_do_not_mix(void **state)
{
    (void)state;
    ls_strategy *s = replicas(V), *other = replicas(2);
    LS_FRAME {
        ls_variable *v = make(s, LS_VARIABLE(.aggregation = LS_AGGREGATE_MEAN), "w");
        LS_SCOPE (other) {
            assert_null(ls_read(v));
            said(LS_STATE, "ls_read: mixing strategies: variable 'w'", NULL);
            assert_int_equal(ls_assign(v, number(1)), LS_STATE);
            said(LS_STATE, "ls_assign: mixing strategies: variable 'w'", NULL);
        }
        assert_null(run(other, read_it, v));
        said(LS_STATE, "ls_read: mixing strategies: variable 'w'", NULL);
        holds(ls_read(v), 1); /* no strategy here: its own is entered */
        ls_variable_free(v);
    }
    ls_strategy_free(s);
    ls_strategy_free(other);
}

static void a_variable_outlives_its_strategy(void **state)
{
    (void)state;
    ls_strategy *s = replicas(V);
    LS_FRAME {
        ls_variable *w = make(s, NULL, "w");
        ls_variable *n = make(
            s, LS_VARIABLE(.synchronization = LS_SYNC_ON_READ, .aggregation = LS_AGGREGATE_SUM),
            "n");
        assert_int_equal(ls_strategy_free(s), LS_OK);
        holds(ls_read(w), 1);
        holds(ls_read(n), 3);
        holds(ls_read(ls_variable_component(n, 2)), 1);
        assert_int_equal(ls_assign(w, number(2)), LS_STATE);
        said(LS_STATE, "ls_assign: the strategy of variable 'w' was freed", "read and freed only");
        assert_int_equal(ls_assign_add(n, number(2)), LS_STATE);
        said(LS_STATE, "ls_assign_add: the strategy of variable 'n' was freed", NULL);
        ls_variable_free(w);
        ls_variable_free(n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(what_a_replica_reads_is_its_own),
        BOTH(a_replica_has_its_own_component_of_copies),
        BOTH(a_shared_component_is_read_and_not_written),
        cmocka_unit_test_setup(a_mirrored_value_goes_to_each_copy, clean),
        BOTH(a_replica_whose_value_does_not_fit_is_named),
        BOTH(a_variable_of_no_strategy_is_not_for_replicas),
        BOTH(strategies_do_not_mix),
        cmocka_unit_test_setup(a_variable_outlives_its_strategy, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
