/*
 * Making variables: in a scope, outside of all, and inside a step; what options are refused.
 */
#include "strategy/variable_test_support.h"

static void outside_of_scopes_a_variable_is_plain(void **state)
{
    (void)state;
    LS_FRAME {
        ls_variable *v = ls_variable_new("w", number(3), true);
        assert_null(v->strategy);
        assert_ptr_equal(ls_variable_strategy(v), ls_default_strategy());
        assert_int_equal(ls_variable_components(v), 1);
        assert_ptr_equal(ls_variable_component(v, 0), v);
        assert_ptr_equal(ls_value_container(v), v);
        assert_null(ls_variable_component(v, 1));
        said(LS_INVALID, "component 1 of variable 'w'", "component 0 alone");
        ls_variable_free(v);
        LS_SCOPE (ls_default_strategy())
            v = ls_variable_with(LS_VARIABLE(.synchronization = LS_SYNC_ON_READ), "n", number(1));
        assert_null(v->strategy);
        holds(ls_read(v), 1); /* one copy: nothing to combine */
        ls_variable_free(v);
    }
}

static void in_a_scope_it_has_a_component_per_replica(void **state)
{
    (void)state;
    size_t before = memory();
    ls_strategy *s = replicas(3);
    LS_FRAME {
        ls_variable *v = NULL;
        LS_SCOPE (s)
            v = ls_variable_new("w", number(3), true);
        assert_ptr_equal(ls_variable_strategy(v), s);
        assert_int_equal(ls_variable_components(v), 3);
        assert_int_equal(v->n_cells, 1);
        const char *const names[] = { "w", "w/replica_1", "w/replica_2" };
        for (int i = 0; i < 3; i++) {
            ls_variable *c = ls_variable_component(v, i);
            assert_ptr_not_equal(c, v);
            assert_string_equal(ls_variable_name(c), names[i]);
            assert_ptr_equal(ls_value_container(c), v);
            assert_ptr_equal(ls__variable_cell(c, i), v->cells[0]);
            assert_int_equal(ls_variable_components(c), 1);
            assert_ptr_equal(ls_variable_component(c, 0), c);
            assert_ptr_equal(ls_variable_strategy(c), s);
            holds(ls_read(c), 3);
        }
        assert_null(ls_variable_component(v, 3));
        said(LS_INVALID, "component 3 of variable 'w'", "from 0 to 2");
        assert_null(ls_variable_component(v, -1));
        failed(LS_INVALID);
        assert_ptr_equal(ls_value_container(v), v);
        ls_variable_set_trainable(v, false);
        assert_false(ls_variable_trainable(ls_variable_component(v, 2)));
        ls_variable_free(v);
    }
    assert_int_equal(ls_strategy_free(s), LS_OK);
    assert_int_equal(memory(), before);
}

static void copies_start_alike(void **state)
{
    (void)state;
    ls_strategy *s = replicas(3);
    LS_FRAME {
        ls_variable *v = NULL, *local = NULL;
        LS_SCOPE (s) {
            v = ls_variable_with(LS_VARIABLE(.synchronization = LS_SYNC_ON_READ), "n", number(7));
            local = ls_variable_with(LS_VARIABLE(.local_writes = true), "l", number(8));
        }
        assert_int_equal(ls_variable_synchronization(v), LS_SYNC_ON_READ);
        assert_int_equal(ls_variable_synchronization(local), LS_SYNC_ON_WRITE); /* never AUTO */
        assert_int_equal(v->n_cells, 3);
        assert_int_equal(local->n_cells, 3);
        for (int i = 0; i < 3; i++) {
            assert_true(copy_of(v, i) == 7 && copy_of(local, i) == 8);
            assert_ptr_equal(ls_variable_component(v, i)->cells[0], v->cells[i]);
            assert_string_equal(ls__cell_name(v->cells[i]), ls_variable_component(v, i)->name);
            for (int k = 0; k < i; k++)
                assert_ptr_not_equal(v->cells[i], v->cells[k]);
        }
        ls_variable_free(v);
        ls_variable_free(local);
    }
    ls_strategy_free(s);
}

static void trainable_unless_it_is_read_by_summing(void **state)
{
    (void)state;
    const struct {
        ls_synchronization sync;
        ls_trainable asked;
        bool want;
    } cases[] = {
        { LS_SYNC_AUTO, LS_TRAINABLE_DEFAULT, true },
        { LS_SYNC_AUTO, LS_FROZEN, false },
        { LS_SYNC_ON_WRITE, LS_TRAINABLE_DEFAULT, true },
        { LS_SYNC_ON_WRITE, LS_TRAINABLE, true },
        { LS_SYNC_ON_READ, LS_TRAINABLE_DEFAULT, false },
        { LS_SYNC_ON_READ, LS_TRAINABLE, true },
        { LS_SYNC_ON_READ, LS_FROZEN, false },
    };
    LS_FRAME {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            ls_variable *v = ls_variable_with(
                LS_VARIABLE(.synchronization = cases[i].sync, .trainable = cases[i].asked), "v",
                number(0));
            assert_int_equal(ls_variable_trainable(v), cases[i].want);
            ls_variable_free(v);
        }
        ls_variable *v = ls_variable_with(NULL, "v", number(0));
        assert_true(ls_variable_trainable(v));
        assert_int_equal(ls_variable_aggregation(v), LS_AGGREGATE_NONE);
        ls_variable_free(v);
    }
}

static void refuse(const ls_variable_options *o, ls_dtype dtype, const char *part,
                   const char *other)
{
    assert_null(ls_variable_with(o, "v", ls_zeros(dtype, LS_SCALAR)));
    said(LS_INVALID, part, other);
}

static void bad_options_are_named(void **state)
{
    (void)state;
    size_t before = memory();
    LS_FRAME {
        refuse(&(ls_variable_options){ .size = 3 }, LS_F32, "options of 3 bytes",
               "ls_variable_init");
        refuse(LS_VARIABLE(.synchronization = LS_SYNC_NONE), LS_F32,
               "NONE variable synchronization is not supported", "variable 'v'");
        refuse(LS_VARIABLE(.synchronization = (ls_synchronization)9), LS_F32,
               "synchronization 9 of variable 'v'", "LS_SYNC_ON_READ");
        refuse(LS_VARIABLE(.aggregation = (ls_aggregation)44), LS_F32,
               "aggregation 44 of variable 'v'", "LS_AGGREGATE_NONE");
        refuse(LS_VARIABLE(.aggregation = (ls_aggregation)LS_SUM), LS_F32,
               "aggregation 1 of variable 'v' is LS_SUM, an ls_reduce_op", "LS_AGGREGATE_SUM");
        refuse(LS_VARIABLE(.aggregation = (ls_aggregation)LS_ONLY_FIRST), LS_F32,
               "is LS_ONLY_FIRST", "LS_AGGREGATE_ONLY_FIRST");
        refuse(LS_VARIABLE(.aggregation = LS_AGGREGATE_MEAN), LS_I64, "variable 'v' of i64[]",
               "MEAN");
        refuse(LS_VARIABLE(.aggregation = LS_AGGREGATE_MEAN), LS_BOOL, "variable 'v' of bool[]",
               "MEAN");
        refuse(LS_VARIABLE(.trainable = (ls_trainable)5), LS_F32, "trainable 5", "LS_FROZEN");
        refuse(LS_VARIABLE(.local_writes = true, .synchronization = LS_SYNC_ON_READ), LS_F32,
               ".local_writes of variable 'v', which is LS_SYNC_ON_READ", "without an aggregation");
        refuse(LS_VARIABLE(.local_writes = true, .aggregation = LS_AGGREGATE_SUM), LS_F32,
               ".local_writes of variable 'v', which is aggregated", NULL);
        for (int d = LS_F32; d <= LS_BF16; d++) {
            bool real = d == LS_F32 || d == LS_F64 || d == LS_BF16;
            ls_variable *v = ls_variable_with(LS_VARIABLE(.aggregation = LS_AGGREGATE_MEAN), "v",
                                              ls_zeros((ls_dtype)d, LS_SCALAR));
            assert_int_equal(v != NULL, real);
            ls_variable_free(v);
            ls_error();
        }
        ls_variable_options o;
        memset(&o, 0xFF, sizeof o);
        ls_variable_init(NULL);
        ls_variable_init(&o);
        ls_variable *v = ls_variable_with(&o, "v", number(1));
        assert_non_null(v);
        ls_variable_free(v);
        assert_null(ls_variable_with(NULL, "", number(1)));
        said(LS_INVALID, "ls_variable_with: a variable of f32[] without a name", NULL);
    }
    assert_int_equal(memory(), before);
}

static void components_are_not_freed(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2);
    LS_FRAME {
        ls_variable *v = NULL;
        LS_SCOPE (s)
            v = ls_variable_new("w", number(3), true);
        ls_variable_free(ls_variable_component(v, 1));
        said(LS_INVALID, "'w/replica_1' is component 1 of variable 'w'", "free the variable");
        holds(ls_read(v), 3);
        ls_variable_free(v);
    }
    ls_strategy_free(s);
}

/* ---- inside a step ------------------------------------------------------------------------ */

enum { V = 3 };

typedef struct made {
    ls_variable *first[V], *second[V], *copies[V];
    int64_t odd_size; /* of replica 2's */
    const char *odd_name;
} made;

static ls_value *make_some(ls_value *arguments, void *user)
{
    (void)arguments;
    made *m = user;
    int id = my_id();
    m->first[id] = ls_variable_new("w", number(10 + id), true);
    m->second[id] = ls_variable_new("w", number(20 + id), true);
    m->copies[id] = ls_variable_with(
        LS_VARIABLE(.synchronization = LS_SYNC_ON_READ, .aggregation = LS_AGGREGATE_SUM), "n",
        number(30 + id));
    return ls_tensors(2, (ls_tensor *[]){ ls_read(m->first[id]), ls_read(m->copies[id]) });
}

static ls_value *free_it(ls_value *arguments, void *user)
{
    (void)arguments;
    if (my_id() == ls_num_replicas(ls_get_strategy()) - 1)
        ls_variable_free(user);
    return none();
}

static ls_value *freeze_it(ls_value *arguments, void *user)
{
    (void)arguments;
    ls_variable_set_trainable(user, false);
    return none();
}

static ls_value *freeze_in_merge(ls_strategy *s, ls_value *arguments, void *user)
{
    (void)s;
    return freeze_it(arguments, user);
}

static ls_value *meet_to_freeze(ls_value *arguments, void *user)
{
    return ls_merge_call(ls_get_replica_context(), freeze_in_merge, user, arguments);
}

static void one_of_several_replicas_neither_frees_nor_freezes(void **state)
{
    (void)state;
    ls_strategy *s = replicas(V), *alone = replicas(1);
    LS_FRAME {
        ls_variable *v = NULL, *plain = ls_variable_new("p", number(4), true);
        LS_SCOPE (s)
            v = ls_variable_new("w", number(3), true);
        ls_variable *both[] = { v, plain };
        for (int i = 0; i < 2; i++) {
            assert_null(run(s, free_it, both[i]));
            said(LS_STATE, "ls_variable_free: called by replica 2 of 3, for all of them",
                 "free it after the run");
            holds(ls_read(both[i]), i ? 4 : 3);
            assert_null(run(s, freeze_it, both[i]));
            said(LS_STATE, "ls_variable_set_trainable: called by replica 0 of 3, for all of them",
                 "set it between steps, or in a merge function");
            assert_true(ls_variable_trainable(both[i]));
        }
        runs(s, meet_to_freeze, v);
        assert_false(ls_variable_trainable(v));
        runs(alone, freeze_it, plain); /* one replica shares with nobody */
        assert_false(ls_variable_trainable(plain));
        runs(alone, free_it, plain);
        ls_variable_free(v);
    }
    ls_strategy_free(s);
    ls_strategy_free(alone);
}

static void replica_0_makes_what_all_get(void **state)
{
    (void)state;
    size_t before = memory();
    ls_strategy *s = replicas(V);
    made m = { .odd_size = 0 };
    LS_FRAME {
        ls_value *results = runs(s, make_some, &m);
        for (int i = 0; i < V; i++) {
            assert_ptr_equal(m.first[i], m.first[0]);
            assert_ptr_equal(m.second[i], m.second[0]);
            assert_ptr_equal(m.copies[i], m.copies[0]);
            holds(ls_item(ls_select(results, i), 0), 10);
            holds(ls_item(ls_select(results, i), 1), 30); /* replica 0's, on all */
        }
        assert_ptr_not_equal(m.first[0], m.second[0]);
        assert_ptr_equal(ls_variable_strategy(m.first[0]), s);
        assert_int_equal(ls_variable_components(m.first[0]), V);
        holds(ls_read(m.second[0]), 20);
        holds(ls_read(m.copies[0]), 90);
    }
    ls_variable_free(m.first[0]);
    ls_variable_free(m.second[0]);
    ls_variable_free(m.copies[0]);
    ls_strategy_free(s);
    assert_int_equal(memory(), before);
}

static ls_value *make_odd(ls_value *arguments, void *user)
{
    made *m = user;
    bool odd = my_id() == 2;
    (void)arguments;
    m->first[my_id()] = ls_variable_new(odd && m->odd_name ? m->odd_name : "w",
                                        ls_ones(LS_F32, LS_DIMS(odd ? m->odd_size : 4)), true);
    return none();
}

static void replicas_that_make_another_are_named(void **state)
{
    (void)state;
    ls_strategy *s = replicas(V);
    made m = { .odd_size = 5 };
    LS_FRAME {
        assert_null(run(s, make_odd, &m));
        said(LS_SHAPE, "variable 'w' is f32[4] on replica 0, and f32[5] on replica 2",
             "replica 2: ");
        holds(ls_sum(ls_read(m.first[0]), LS_ALL_AXES, false), 4); /* made for good */
        ls_variable_free(m.first[0]);

        m = (made){ .odd_size = 4, .odd_name = "u" };
        assert_null(run(s, make_odd, &m));
        said(LS_STATE, "replica 2 makes variable 'u'", "by name and order");
        ls_variable_free(m.first[0]);
    }
    ls_strategy_free(s);
}

static ls_value *make_of_a_symbol(ls_value *arguments, void *user)
{
    (void)user;
    ls_variable_free(ls_variable_new("w", ls_item(arguments, 0), true));
    return none();
}

static void an_initial_value_is_known(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2);
    LS_FRAME {
        ls_tensor *x = number(1);
        ls_function *f = ls_trace(make_of_a_symbol, NULL);
        assert_null(ls_run(s, f, ls_tensors(1, &x)));
        said(LS_STATE, "the initial value of 'w' is not known", "make variables before the step");
        ls_function_free(f);
    }
    ls_strategy_free(s);
}

/* ---- as leaves ------------------------------------------------------------------------------ */

static ls_value *return_variables(ls_value *arguments, void *user)
{
    ls_variable *v = user;
    ls_variable *given = ls_leaf_variable(ls_child(arguments, 0));
    return ls_list(2, (ls_value *[]){ ls_variable_leaf(given),
                                      ls_variable_leaf(ls_variable_component(v, my_id())) });
}

static void variables_go_in_and_out_of_steps(void **state)
{
    (void)state;
    ls_strategy *s = replicas(V);
    LS_FRAME {
        ls_variable *v = NULL;
        LS_SCOPE (s)
            v = ls_variable_new("w", number(1), true);
        ls_value *leaf = ls_variable_leaf(v);
        assert_int_equal(ls_kind_of(leaf), LS_LEAF);
        ls_value *results = ls_run_eager(s, return_variables, v, ls_list(1, &leaf));
        assert_ptr_equal(ls_leaf_variable(ls_child(results, 0)), v);
        assert_ptr_equal(ls_leaf_variable(ls_child(results, 1)), v); /* components: their whole */
        assert_null(ls_leaf_variable(ls_leaf(number(1))));
        said(LS_INVALID, "ls_leaf_variable: the value is no variable", "ls_variable_leaf");
        assert_null(ls_variable_leaf(NULL));
        failed(LS_INVALID);
        ls_variable_free(v);
    }
    ls_strategy_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(outside_of_scopes_a_variable_is_plain, clean),
        cmocka_unit_test_setup(in_a_scope_it_has_a_component_per_replica, clean),
        cmocka_unit_test_setup(copies_start_alike, clean),
        cmocka_unit_test_setup(trainable_unless_it_is_read_by_summing, clean),
        cmocka_unit_test_setup(bad_options_are_named, clean),
        cmocka_unit_test_setup(components_are_not_freed, clean),
        BOTH(one_of_several_replicas_neither_frees_nor_freezes),
        BOTH(replica_0_makes_what_all_get),
        BOTH(replicas_that_make_another_are_named),
        cmocka_unit_test_setup(an_initial_value_is_known, clean),
        cmocka_unit_test_setup(variables_go_in_and_out_of_steps, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
