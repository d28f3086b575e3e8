/*
 * ls_reduce and ls_gather_replicas: the cases T01 to T05, T17 and T38 of TensorFlow's own tests,
 * dtypes, sparse values, and what is refused.
 */
#include <lockstep/device.h>
#include <lockstep/ops.h>
#include <lockstep/strategy.h>
#include <lockstep/tape.h>
#include <lockstep/variable.h>

#include "tensor/test_support.h"
#include "tensor/value.h"

static ls_strategy *replicas(int n)
{
    ls_strategy *s =
        ls_mirrored(LS_MIRRORED(.devices = n > 1 ? "/cpu:0,/cpu:1" : "/cpu:0", .replicas = n));
    assert_non_null(s);
    return s;
}

static ls_tensor *vector(ls_dtype dtype, int n, const double *values)
{
    return ls_cast(ls_from(LS_F64, LS_DIMS(n), values), dtype);
}

static ls_value *pair(ls_strategy *s, ls_tensor *a, ls_tensor *b)
{
    return ls_per_replica(s, (ls_value *[]){ ls_leaf(a), ls_leaf(b) });
}

static void holds(const ls_tensor *t, const char *spec, int n, const double *want)
{
    if (!t)
        fail_msg("%s", ls_error_report());
    assert_string_equal(ls_describe(t), spec);
    ls_tensor *wide = ls_cast(ls_densify((ls_tensor *)t), LS_F64);
    const double *got = ls_data(wide);
    assert_int_equal(ls_count(wide), n);
    for (int i = 0; i < n; i++)
        if (got[i] != want[i])
            fail_msg("element %d is %.17g, not %.17g", i, got[i], want[i]);
}

#define HOLDS(t, spec, ...)                                                                        \
    holds(t, spec, (int)(sizeof((double[]){ __VA_ARGS__ }) / sizeof(double)),                      \
          (double[]){ __VA_ARGS__ })

static void refused(const void *result, ls_status want, const char *text)
{
    assert_null(result);
    if (!strstr(ls_error_text(), text))
        fail_msg("'%s' lacks '%s'", ls_error_text(), text);
    assert_true(strlen(ls_error_hint()) > 0);
    failed(want);
}

/* ---- the cases ------------------------------------------------------------------------------ */

static ls_value *its_number(int replica, int n, void *user)
{
    assert_int_equal(n, *(int *)user);
    return ls_leaf(ls_scalar_int(LS_I32, replica));
}

static void T01_sum_of_the_replica_numbers(void **state)
{
    (void)state;
    for (int n = 1; n <= 7; n++) {
        ls_strategy *s = replicas(n);
        LS_FRAME {
            ls_value *ids = ls_distribute_values(s, its_number, &n);
            HOLDS(ls_reduce(s, LS_SUM, ids, LS_NO_AXIS), "i32[]", n * (n - 1) / 2);
            HOLDS(ls_reduce(s, LS_MEAN, ids, LS_NO_AXIS), "f64[]", n * (n - 1) / 2 / (double)n);
            HOLDS(ls_reduce(s, LS_ONLY_FIRST, ids, LS_NO_AXIS), "i32[]", 0);
        }
        assert_int_equal(ls_strategy_free(s), LS_OK);
    }
}

static void T02_over_replicas_and_over_an_axis(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2);
    LS_FRAME {
        ls_value *v = pair(s, vector(LS_F32, 4, (double[]){ 0, 1, 2, 3 }),
                           vector(LS_F32, 4, (double[]){ 4, 5, 6, 7 }));
        HOLDS(ls_reduce(s, LS_SUM, v, LS_NO_AXIS), "f32[4]", 4, 6, 8, 10);
        HOLDS(ls_reduce(s, LS_MEAN, v, LS_NO_AXIS), "f32[4]", 2, 3, 4, 5);
        HOLDS(ls_reduce(s, LS_SUM, v, 0), "f32[]", 28);
        HOLDS(ls_reduce(s, LS_MEAN, v, 0), "f32[]", 3.5);
        HOLDS(ls_reduce(s, LS_MEAN, v, -1), "f32[]", 3.5);
        HOLDS(ls_gather_replicas(s, v, 0), "f32[8]", 0, 1, 2, 3, 4, 5, 6, 7);
    }
    ls_strategy_free(s);
}

static void T03_sizes_that_differ_along_the_axis(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2);
    LS_FRAME {
        ls_value *v = pair(s, vector(LS_F32, 4, (double[]){ 0, 1, 2, 3 }),
                           vector(LS_F32, 2, (double[]){ 4, 5 }));
        refused(ls_reduce(s, LS_SUM, v, LS_NO_AXIS), LS_SHAPE,
                "ls_reduce: replica 0 has f32[4], replica 1 f32[2]");
        HOLDS(ls_reduce(s, LS_SUM, v, 0), "f32[]", 15);
        HOLDS(ls_reduce(s, LS_MEAN, v, 0), "f32[]", 2.5);
        HOLDS(ls_gather_replicas(s, v, -1), "f32[6]", 0, 1, 2, 3, 4, 5);
        ls_value *empty =
            pair(s, vector(LS_F32, 2, (double[]){ 4, 5 }), ls_zeros(LS_F32, LS_DIMS(0)));
        HOLDS(ls_reduce(s, LS_MEAN, empty, 0), "f32[]", 4.5);
    }
    ls_strategy_free(s);
}

static ls_value *number_times(int replica, int n, void *user)
{
    (void)n;
    ls_tensor *t = ls_full(LS_F32, LS_DIMS(replica + 1), replica);
    return ls_leaf(ls_cast(t, *(ls_dtype *)user));
}

static void T04_means_of_integers_are_true_quotients(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        ls_dtype dtype = i ? LS_I32 : LS_F32;
        ls_strategy *two = replicas(2), *three = replicas(3);
        LS_FRAME {
            ls_value *v = ls_distribute_values(two, number_times, &dtype);
            HOLDS(ls_reduce(two, LS_SUM, v, 0), i ? "i32[]" : "f32[]", 2);
            HOLDS(ls_reduce(two, LS_MEAN, v, 0), i ? "f64[]" : "f32[]", i ? 2.0 / 3 : 2.0f / 3);
            v = ls_distribute_values(three, number_times, &dtype);
            HOLDS(ls_reduce(three, LS_SUM, v, 0), i ? "i32[]" : "f32[]", 8);
            HOLDS(ls_reduce(three, LS_MEAN, v, 0), i ? "f64[]" : "f32[]", i ? 8.0 / 6 : 8.0f / 6);
        }
        ls_strategy_free(two);
        ls_strategy_free(three);
    }
}

static void T05_the_same_on_each(void **state)
{
    (void)state;
    for (int n = 1; n <= 4; n++) {
        ls_strategy *s = replicas(n);
        LS_FRAME {
            ls_value *each[4];
            for (int i = 0; i < n; i++)
                each[i] = ls_leaf(vector(LS_F32, 2, (double[]){ 1, 2 }));
            ls_value *v = ls_per_replica(s, each);
            HOLDS(ls_reduce(s, LS_MEAN, v, 0), "f32[]", 1.5);
            HOLDS(ls_reduce(s, LS_SUM, v, 0), "f32[]", 3 * n);
        }
        ls_strategy_free(s);
    }
}

static void T17_values_that_all_replicas_share(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2), *one = replicas(1);
    LS_FRAME {
        ls_value *five = ls_leaf(ls_scalar(LS_F32, 5)), *zero = ls_leaf(ls_scalar(LS_F32, 0));
        refused(ls_reduce(s, LS_SUM, five, LS_NO_AXIS), LS_INVALID,
                "ls_reduce: the SUM over 2 replicas of a plain value (f32[])");
        HOLDS(ls_reduce(s, LS_MEAN, five, LS_NO_AXIS), "f32[]", 5);
        HOLDS(ls_reduce(s, LS_ONLY_FIRST, five, LS_NO_AXIS), "f32[]", 5);
        HOLDS(ls_reduce(s, LS_SUM, zero, LS_NO_AXIS), "f32[]", 0);
        HOLDS(ls_reduce(s, LS_SUM, ls_leaf(ls_scalar_int(LS_I64, 0)), LS_NO_AXIS), "i64[]", 0);
        HOLDS(ls_reduce(one, LS_SUM, five, LS_NO_AXIS), "f32[]", 5);
        refused(ls_reduce(s, LS_SUM, ls_leaf(ls_zeros(LS_F32, LS_DIMS(1))), LS_NO_AXIS), LS_INVALID,
                "plain value (f32[1])");

        ls_tensor *t = vector(LS_F32, 2, (double[]){ 1, 2 });
        ls_value *mirrored = ls__leaf_spread(LS_SPREAD_MIRRORED, 2, (ls_tensor *[]){ t, t });
        HOLDS(ls_reduce(s, LS_MEAN, mirrored, LS_NO_AXIS), "f32[2]", 1, 2);
        refused(ls_reduce(s, LS_SUM, mirrored, LS_NO_AXIS), LS_INVALID, "mirrored value (f32[2])");
        HOLDS(ls_reduce(s, LS_MEAN, mirrored, 0), "f32[]", 1.5);
        refused(ls_reduce(s, LS_SUM, mirrored, 0), LS_INVALID, "mirrored value (f32[2])");
        HOLDS(ls_gather_replicas(s, mirrored, 0), "f32[4]", 1, 2, 1, 2);
        HOLDS(ls_reduce(s, LS_MEAN, ls_leaf(t), 0), "f32[]", 1.5);
        HOLDS(ls_gather_replicas(s, ls_leaf(t), 0), "f32[2]", 1, 2);
        HOLDS(ls_reduce(one, LS_SUM, ls_leaf(t), 0), "f32[]", 3);
    }
    ls_strategy_free(s);
    ls_strategy_free(one);
}

static void T38_the_first_only(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2);
    LS_FRAME {
        ls_value *v = pair(s, ls_scalar(LS_F32, 3), ls_scalar(LS_F32, 8));
        HOLDS(ls_reduce(s, LS_ONLY_FIRST, v, LS_NO_AXIS), "f32[]", 3);
    }
    ls_strategy_free(s);
}

/* ---- more -------------------------------------------------------------------------------------- */

static void sums_have_the_order_of_the_tree(void **state)
{
    (void)state;
    ls_strategy *s = replicas(5);
    LS_FRAME {
        ls_value *each[5];
        for (int i = 0; i < 5; i++)
            each[i] = ls_leaf(ls_full(LS_F32, LS_DIMS(1), i ? 1 : 16777216));
        ls_value *v = ls_per_replica(s, each);
        HOLDS(ls_reduce(s, LS_SUM, v, LS_NO_AXIS), "f32[1]", 16777220); /* 16777216 in a row */
        HOLDS(ls_reduce(s, LS_SUM, v, 0), "f32[]", 16777220);
    }
    ls_strategy_free(s);
}

static void the_result_is_on_the_current_device(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2);
    LS_FRAME {
        ls_value *v = pair(s, ls_scalar(LS_F32, 3), ls_scalar(LS_F32, 8));
        assert_non_null(strstr(ls_device_of(ls__leaf_component(v, 1)), "CPU:1"));
        LS_DEVICE ("/cpu:1") {
            ls_tensor *t = ls_reduce(s, LS_SUM, v, LS_NO_AXIS);
            assert_non_null(strstr(ls_device_of(t), "CPU:1"));
        }
        assert_non_null(strstr(ls_device_of(ls_reduce(s, LS_SUM, v, LS_NO_AXIS)), "CPU:0"));
    }
    ls_strategy_free(s);
}

static void a_middle_axis(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2);
    LS_FRAME {
        ls_value *v = pair(s, ls_ones(LS_I64, LS_DIMS(2, 3, 1)), ls_ones(LS_I64, LS_DIMS(2, 5, 1)));
        HOLDS(ls_reduce(s, LS_SUM, v, 1), "i64[2,1]", 8, 8);
        HOLDS(ls_reduce(s, LS_MEAN, v, -2), "f64[2,1]", 1, 1);
        refused(ls_reduce(s, LS_SUM, v, 0), LS_SHAPE,
                "replica 0 has i64[2,3,1], replica 1 i64[2,5,1]");
        refused(ls_gather_replicas(s, v, 2), LS_SHAPE,
                "ls_gather_replicas: replica 0 has i64[2,3,1]");
        assert_string_equal(ls_describe(ls_gather_replicas(s, v, 1)), "i64[2,8,1]");
    }
    ls_strategy_free(s);
}

static ls_tensor *sparse(ls_dtype rows, int64_t a, int64_t b, float x, float y)
{
    ls_tensor *r = ls_cast(ls_from(LS_I64, LS_DIMS(2), (int64_t[]){ a, b }), rows);
    return ls_sparse(r, ls_from(LS_F32, LS_DIMS(2, 1), (float[]){ x, y }), 4);
}

static void sparse_tensors_are_joined(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2);
    LS_FRAME {
        ls_value *v = pair(s, sparse(LS_I64, 3, 1, 10, 20), sparse(LS_I64, 3, 0, 30, 40));
        ls_tensor *sum = ls_reduce(s, LS_SUM, v, LS_NO_AXIS);
        assert_true(ls_is_sparse(sum));
        HOLDS(ls_sparse_rows(sum), "i64[4]", 3, 1, 3, 0);
        HOLDS(ls_sparse_values(sum), "f32[4,1]", 10, 20, 30, 40);
        HOLDS(sum, "f32[4,1]", 40, 20, 0, 40);
        HOLDS(ls_sparse_values(ls_reduce(s, LS_MEAN, v, LS_NO_AXIS)), "f32[4,1]", 5, 10, 15, 20);
        HOLDS(ls_reduce(s, LS_SUM, v, 0), "f32[1]", 100);
        HOLDS(ls_reduce(s, LS_MEAN, v, 0), "f32[1]", 12.5);
        refused(ls_gather_replicas(s, v, 0), LS_UNSUPPORTED, "replica 0 has a sparse tensor");
        v = pair(s, sparse(LS_I64, 3, 1, 10, 20), sparse(LS_I32, 3, 0, 30, 40));
        HOLDS(ls_sparse_rows(ls_reduce(s, LS_SUM, v, LS_NO_AXIS)), "i64[4]", 3, 1, 3, 0);
        v = pair(s, sparse(LS_I64, 3, 1, 10, 20),
                 ls_ones(LS_F32, LS_DIMS(4, 1))); /* one is dense */
        sum = ls_reduce(s, LS_SUM, v, LS_NO_AXIS);
        assert_false(ls_is_sparse(sum));
        HOLDS(sum, "f32[4,1]", 1, 21, 1, 11);
    }
    ls_strategy_free(s);
}

static void gradients_flow_through(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2);
    LS_FRAME {
        ls_tensor *a = vector(LS_F64, 4, (double[]){ 0, 1, 2, 3 });
        ls_tensor *b = vector(LS_F64, 2, (double[]){ 4, 5 });
        ls_tape *tape = ls_tape_open();
        ls_tensor *mean = ls_reduce(s, LS_MEAN, pair(s, a, b), 0);
        HOLDS(ls_gradient(tape, ls_square(mean), b), "f64[2]", 5.0 / 6, 5.0 / 6);
    }
    ls_strategy_free(s);
}

static void what_is_refused(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2), *three = replicas(3);
    LS_FRAME {
        ls_tensor *x = ls_scalar(LS_F32, 1);
        ls_value *v = pair(s, x, x), *list = ls_list(2, (ls_value *[]){ v, v });
        ls_value *dict = ls_dict(1, (const char *[]){ "loss" }, &v);
        refused(ls_reduce(s, (ls_reduce_op)LS_AGGREGATE_SUM, v, LS_NO_AXIS), LS_INVALID,
                "ls_reduce: op 17 is the aggregation LS_AGGREGATE_SUM");
        refused(ls_reduce(s, (ls_reduce_op)LS_AGGREGATE_NONE, v, LS_NO_AXIS), LS_INVALID,
                "op 0 is the aggregation LS_AGGREGATE_NONE");
        refused(ls_reduce(s, (ls_reduce_op)42, v, LS_NO_AXIS), LS_INVALID,
                "op 42 is no ls_reduce_op");
        refused(ls_reduce(s, LS_SUM, list, LS_NO_AXIS), LS_INVALID, "the value is a list of 2");
        refused(ls_reduce(s, LS_SUM, dict, LS_NO_AXIS), LS_INVALID, "the value is a dict of 1");
        refused(ls_reduce(s, LS_SUM, v, 0), LS_INVALID, "axis 0 of a rank-0 value (f32[])");
        refused(ls_reduce(s, LS_MEAN, ls_leaf(x), -1), LS_INVALID, "axis -1 of a rank-0 value");
        refused(ls_reduce(s, LS_MEAN, ls_leaf(ls_ones(LS_F32, LS_DIMS(2, 2))), 2), LS_INVALID,
                "axis 2 of a rank-2 value (f32[2,2])");
        refused(ls_reduce(s, LS_MEAN, ls_leaf(ls_ones(LS_F32, LS_DIMS(2))), -2), LS_INVALID,
                "axis -2 of a rank-1 value");
        refused(ls_reduce(s, LS_ONLY_FIRST, v, 0), LS_INVALID, "ONLY_FIRST with axis 0");
        ls_value *ranks = pair(s, ls_ones(LS_F32, LS_DIMS(2, 2)), ls_ones(LS_F32, LS_DIMS(2)));
        refused(ls_reduce(s, LS_SUM, ranks, -1), LS_SHAPE,
                "replica 0 has f32[2,2], replica 1 f32[2]");
        ls_value *dtypes = pair(s, x, ls_scalar(LS_F64, 1));
        refused(ls_reduce(s, LS_MEAN, dtypes, LS_NO_AXIS), LS_SHAPE,
                "replica 0 has f32[], replica 1 f64[]");
        ls_tensor *yes = ls_ones(LS_BOOL, LS_SCALAR);
        refused(ls_reduce(s, LS_SUM, pair(s, yes, yes), LS_NO_AXIS), LS_SHAPE,
                "ls_reduce: the replicas have bool[], which cannot be added up");
        refused(ls_reduce(three, LS_SUM, v, LS_NO_AXIS), LS_INVALID,
                "a value of 2 components, the strategy has 3 replicas");
        refused(ls_gather_replicas(s, v, 0), LS_INVALID, "axis 0 of a rank-0 value");
        refused(ls_gather_replicas(s, v, LS_NO_AXIS), LS_INVALID, "LS_NO_AXIS");
        assert_null(ls_reduce(s, LS_SUM, NULL, LS_NO_AXIS));
        assert_non_null(strstr(ls_error_text(), "ls_reduce: the value is NULL"));
        failed(LS_INVALID);
        assert_null(ls_reduce(NULL, LS_SUM, v, LS_NO_AXIS));
        failed(LS_INVALID);
        LS_SCOPE (three) {
            refused(ls_reduce(s, LS_SUM, v, LS_NO_AXIS), LS_STATE, "ls_reduce");
            refused(ls_gather_replicas(s, v, 0), LS_STATE, "ls_gather_replicas");
        }
        HOLDS(ls_reduce(s, LS_SUM, v, LS_NO_AXIS), "f32[]", 2); /* and it goes on */
    }
    ls_strategy_free(s);
    ls_strategy_free(three);
}

/* The hint of the call that failed. */
static void hinted(const void *result, const char *hint)
{
    assert_null(result);
    assert_string_equal(ls_error_hint(), hint);
    failed(LS_INVALID);
}

static void each_function_hints_at_what_it_offers(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2), *three = replicas(3);
    LS_FRAME {
        ls_value *v = pair(s, ls_scalar(LS_F32, 1), ls_scalar(LS_F32, 2)), *list = ls_list(1, &v);
        hinted(ls_reduce(s, LS_SUM, v, 0),
               "a single number has no axis; LS_NO_AXIS reduces over replicas alone");
        hinted(ls_gather_replicas(s, v, 0),
               "a single number has no axis; ls_reshape(x, LS_DIMS(1)) makes one of it");
        hinted(ls_reduce(s, LS_SUM, list, LS_NO_AXIS),
               "call it for each of its leaves (ls_child, ls_get); ls_reduce_to maps over a nest");
        hinted(ls_gather_replicas(s, list, 0), "call it for each of its leaves (ls_child, ls_get)");
        hinted(ls_reduce(s, (ls_reduce_op)42, v, LS_NO_AXIS),
               "the op is LS_SUM, LS_MEAN or LS_ONLY_FIRST");
        hinted(ls_reduce(three, LS_SUM, v, LS_NO_AXIS),
               "a distributed value goes to strategies of as many replicas as it has components");
        ls_value *rows = pair(s, ls_reshape(ls_scalar(LS_F32, 1), LS_DIMS(1)),
                              ls_reshape(ls_scalar(LS_F32, 2), LS_DIMS(1)));
        HOLDS(ls_gather_replicas(s, rows, 0), "f32[2]", 1, 2); /* as the hint says */
    }
    ls_strategy_free(s);
    ls_strategy_free(three);
}

static void ops_have_names(void **state)
{
    (void)state;
    ls_reduce_op op = LS_SUM;
    assert_int_equal(ls_reduce_op_named("mean", &op), LS_OK);
    assert_int_equal(op, LS_MEAN);
    assert_int_equal(ls_reduce_op_named("SUM", &op), LS_OK);
    assert_int_equal(op, LS_SUM);
    assert_int_equal(ls_reduce_op_named("Only_First", &op), LS_OK);
    assert_int_equal(op, LS_ONLY_FIRST);
    assert_int_equal(ls_reduce_op_named("max", &op), LS_INVALID);
    assert_string_equal(ls_error_text(), "ls_reduce_op_named: no op 'max'");
    failed(LS_INVALID);
    assert_int_equal(ls_reduce_op_named(NULL, &op), LS_INVALID);
    failed(LS_INVALID);
    assert_int_equal(op, LS_ONLY_FIRST);
    assert_string_equal(ls_reduce_op_name(LS_MEAN), "MEAN");
    assert_string_equal(ls_reduce_op_name((ls_reduce_op)17), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(T01_sum_of_the_replica_numbers, clean),
        cmocka_unit_test_setup(T02_over_replicas_and_over_an_axis, clean),
        cmocka_unit_test_setup(T03_sizes_that_differ_along_the_axis, clean),
        cmocka_unit_test_setup(T04_means_of_integers_are_true_quotients, clean),
        cmocka_unit_test_setup(T05_the_same_on_each, clean),
        cmocka_unit_test_setup(T17_values_that_all_replicas_share, clean),
        cmocka_unit_test_setup(T38_the_first_only, clean),
        cmocka_unit_test_setup(sums_have_the_order_of_the_tree, clean),
        cmocka_unit_test_setup(the_result_is_on_the_current_device, clean),
        cmocka_unit_test_setup(a_middle_axis, clean),
        cmocka_unit_test_setup(sparse_tensors_are_joined, clean),
        cmocka_unit_test_setup(gradients_flow_through, clean),
        cmocka_unit_test_setup(what_is_refused, clean),
        cmocka_unit_test_setup(each_function_hints_at_what_it_offers, clean),
        cmocka_unit_test_setup(ops_have_names, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
