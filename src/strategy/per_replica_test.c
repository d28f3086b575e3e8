/*
 * Values put together from one per replica, and taken apart again.
 */
#include <lockstep/strategy.h>
#include <lockstep/variable.h>

#include "base/status.h"
#include "tensor/test_support.h"
#include "tensor/value.h"

static ls_strategy *replicas(int n)
{
    ls_strategy *s =
        ls_mirrored(LS_MIRRORED(.devices = n > 1 ? "/cpu:0,/cpu:1" : "/cpu:0", .replicas = n));
    assert_non_null(s);
    return s;
}

static void refused(const void *result, ls_status want, const char *text)
{
    assert_null(result);
    if (!strstr(ls_error_text(), text))
        fail_msg("'%s' lacks '%s'", ls_error_text(), text);
    failed(want);
}

/* {"a": i, "b": [10 i, x]}: x is one tensor for all. */
static ls_value *nest(int i, ls_tensor *x)
{
    ls_value *list = ls_tensors(2, (ls_tensor *[]){ ls_scalar(LS_F32, 10 * i), x });
    return ls_dict(2, (const char *[]){ "a", "b" },
                   (ls_value *[]){ ls_leaf(ls_scalar(LS_F32, i)), list });
}

static void a_nest_goes_together_and_comes_apart(void **state)
{
    (void)state;
    ls_strategy *s = replicas(3);
    LS_FRAME {
        ls_tensor *x = ls_scalar(LS_F32, 7);
        ls_value *v = ls_per_replica(s, (ls_value *[]){ nest(0, x), nest(1, x), nest(2, x) });
        assert_int_equal(ls_kind_of(v), LS_DICT);
        assert_int_equal(ls_spread_of(v), LS_SPREAD_PER_REPLICA); /* x too: it was said to be */
        assert_int_equal(ls_components(v), 3);
        ls_value *list = ls_local_results(s, v);
        assert_int_equal(ls_length(list), 3);
        for (int i = 0; i < 3; i++) {
            ls_value *mine = ls_child(list, i);
            assert_int_equal(ls_spread_of(mine), LS_SPREAD_PLAIN);
            assert_true(ls_to_float(ls_leaf_tensor(ls_get(mine, "a"))) == (float)i);
            assert_true(ls_to_float(ls_item(ls_get(mine, "b"), 0)) == (float)(10 * i));
            assert_true(ls_to_float(ls_item(ls_get(mine, "b"), 1)) == 7);
            const char *device = ls_device_of(ls_leaf_tensor(ls_get(mine, "a")));
            assert_non_null(strstr(device, i == 2 ? "CPU:1" : "CPU:0"));
        }
    }
    ls_strategy_free(s);
}

static void one_replica_is_per_replica_too(void **state)
{
    (void)state;
    ls_strategy *s = replicas(1);
    LS_FRAME {
        ls_value *v = ls_per_replica(s, (ls_value *[]){ ls_leaf(ls_scalar_int(LS_I32, 3)) });
        assert_int_equal(ls_spread_of(v), LS_SPREAD_PER_REPLICA);
        assert_string_equal(ls_describe(ls_reduce(s, LS_MEAN, v, LS_NO_AXIS)), "f64[]");
        assert_int_equal(ls_to_int(ls_reduce(s, LS_SUM, v, LS_NO_AXIS)), 3);
        assert_int_equal(ls_to_int(ls_item(ls_local_results(s, v), 0)), 3);
    }
    ls_strategy_free(s);
}

static void a_plain_value_is_its_own_result(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2);
    LS_FRAME {
        ls_tensor *x = ls_scalar(LS_F32, 7);
        ls_value *list = ls_local_results(s, nest(1, x));
        assert_int_equal(ls_length(list), 1);
        assert_int_equal(ls_kind_of(ls_child(list, 0)), LS_DICT);
        ls_value *mixed = ls_list(
            2, (ls_value *[]){ ls_leaf(x),
                               ls_per_replica(s, (ls_value *[]){ nest(0, x), nest(1, x) }) });
        list = ls_local_results(s, mixed);
        assert_int_equal(ls_length(list), 2); /* plain leaves in each */
        assert_true(ls_to_float(ls_item(ls_child(list, 1), 0)) == 7);
        assert_int_equal(ls_length(ls_local_results(s, ls_list(0, NULL))), 1);
        ls_value *mirrored = ls__leaf_spread(LS_SPREAD_MIRRORED, 2, (ls_tensor *[]){ x, x });
        list = ls_local_results(s, mirrored);
        assert_int_equal(ls_length(list), 2);
        assert_true(ls_to_float(ls_item(list, 1)) == 7);
    }
    ls_strategy_free(s);
}

static void a_variable_comes_apart_into_components(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2);
    ls_variable *w = NULL;
    LS_FRAME {
        LS_SCOPE (s)
            w = ls_variable_new("w", ls_scalar(LS_F32, 1), true);
        ls_value *leaf = ls_variable_leaf(w);
        ls_value *list = ls_local_results(s, leaf);
        assert_int_equal(ls_length(list), 2);
        for (int i = 0; i < 2; i++)
            assert_ptr_equal(ls_leaf_variable(ls_child(list, i)), ls_variable_component(w, i));
        ls_value *v = ls_per_replica(s, (ls_value *[]){ leaf, leaf });
        assert_ptr_equal(ls_leaf_variable(v), w);
        refused(ls_per_replica(s, (ls_value *[]){ leaf, ls_leaf(ls_scalar(LS_F32, 1)) }),
                LS_INVALID, "replica 1 has a variable where another has something else");
        assert_true(ls_to_float(ls_reduce(s, LS_MEAN, leaf, LS_NO_AXIS)) == 1);
        refused(ls_reduce(s, LS_SUM, leaf, LS_NO_AXIS), LS_INVALID, "mirrored value (f32[])");
    }
    ls_variable_free(w);
    ls_strategy_free(s);
}

static void an_on_read_variable_is_per_replica(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2);
    ls_variable *seen = NULL;
    LS_FRAME {
        LS_SCOPE (s)
            seen = ls_variable_with(
                LS_VARIABLE(.synchronization = LS_SYNC_ON_READ, .aggregation = LS_AGGREGATE_MEAN),
                "seen", ls_scalar(LS_F32, 3));
        ls_value *leaf = ls_variable_leaf(seen);
        assert_true(ls_to_float(ls_reduce(s, LS_SUM, leaf, LS_NO_AXIS)) == 6);
        assert_true(ls_to_float(ls_reduce(s, LS_ONLY_FIRST, leaf, LS_NO_AXIS)) == 3);
    }
    ls_variable_free(seen);
    ls_strategy_free(s);
}

static ls_value *fails_on_1(int replica, int n, void *user)
{
    (void)n;
    ++*(int *)user;
    if (replica == 1)
        ls__fail(LS_IO, "no such file");
    return replica == 1 ? NULL : ls_leaf(ls_scalar(LS_F32, 0));
}

static ls_value *gives_nothing(int replica, int n, void *user)
{
    (void)replica;
    (void)n;
    (void)user;
    return NULL;
}

static ls_value *asks_another(int replica, int n, void *user)
{
    (void)n;
    assert_true(ls_in_cross_replica_context());
    assert_ptr_equal(ls_get_strategy(), user);
    return ls_leaf(ls_scalar(LS_F32, replica));
}

static void what_is_refused(void **state)
{
    (void)state;
    ls_strategy *s = replicas(3), *two = replicas(2);
    LS_FRAME {
        int calls = 0;
        ls_value *x = ls_leaf(ls_scalar(LS_F32, 1)), *pair = ls_list(2, (ls_value *[]){ x, x });
        refused(ls_distribute_values(s, fails_on_1, &calls), LS_IO,
                "ls_distribute_values, replica 1: no such file");
        assert_int_equal(calls, 2);
        refused(ls_distribute_values(s, gives_nothing, NULL), LS_INVALID,
                "replica 0: the function returned NULL");
        refused(ls_distribute_values(s, NULL, NULL), LS_INVALID, "the function is NULL");
        assert_non_null(ls_distribute_values(s, asks_another, s));
        refused(ls_per_replica(s, NULL), LS_INVALID, "values is NULL, wants 3");
        refused(ls_per_replica(s, (ls_value *[]){ x, x, NULL }), LS_INVALID,
                "the value of replica 2 is NULL");
        refused(ls_per_replica(s, (ls_value *[]){ x, pair, x }), LS_INVALID,
                "replica 1 differs from replica 0");
        ls_value *v = ls_per_replica(two, (ls_value *[]){ x, x });
        refused(ls_per_replica(s, (ls_value *[]){ x, x, v }), LS_INVALID,
                "replica 2 has a value of 2 components");
        refused(ls_local_results(s, ls_list(1, &v)), LS_INVALID,
                "ls_local_results: a value of 2 components, the strategy has 3 replicas");
        refused(ls_local_results(s, NULL), LS_INVALID, "ls_local_results: the value is NULL");
        refused(ls_local_results(NULL, x), LS_INVALID, "the strategy is NULL");
        LS_SCOPE (two) {
            refused(ls_per_replica(s, (ls_value *[]){ x, x, x }), LS_STATE, "ls_per_replica");
            refused(ls_local_results(s, x), LS_STATE, "ls_local_results");
        }
    }
    ls_strategy_free(s);
    ls_strategy_free(two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_nest_goes_together_and_comes_apart, clean),
        cmocka_unit_test_setup(one_replica_is_per_replica_too, clean),
        cmocka_unit_test_setup(a_plain_value_is_its_own_result, clean),
        cmocka_unit_test_setup(a_variable_comes_apart_into_components, clean),
        cmocka_unit_test_setup(an_on_read_variable_is_per_replica, clean),
        cmocka_unit_test_setup(what_is_refused, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
