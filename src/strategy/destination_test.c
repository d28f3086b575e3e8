/*
 * Values combined and brought to a destination: mirrored or plain, nests, batches (T15), sparse
 * leaves, and what is refused.
 */
#include <lockstep/extended.h>
#include <lockstep/ops.h>
#include <lockstep/tape.h>

#include "tensor/tensor.h"
#include "tensor/test_support.h"
#include "tensor/value.h"

static ls_strategy *replicas(int n)
{
    ls_strategy *s =
        ls_mirrored(LS_MIRRORED(.devices = n > 1 ? "/cpu:0,/cpu:1" : "/cpu:0", .replicas = n));
    assert_non_null(s);
    return s;
}

static ls_value *pair(ls_strategy *s, ls_tensor *a, ls_tensor *b)
{
    return ls_per_replica(s, (ls_value *[]){ ls_leaf(a), ls_leaf(b) });
}

static ls_value *numbers(ls_strategy *s, float a, float b)
{
    return pair(s, ls_scalar(LS_F32, (double)a), ls_scalar(LS_F32, (double)b));
}

static void refused(const void *result, ls_status want, const char *text)
{
    assert_null(result);
    if (!strstr(ls_error_text(), text))
        fail_msg("'%s' lacks '%s'", ls_error_text(), text);
    failed(want);
}

/* Mirrored: the number, in one memory, on the devices of the replicas. */
static void mirrored(const ls_value *leaf, float want)
{
    if (!leaf)
        fail_msg("%s", ls_error_report());
    assert_int_equal(ls_spread_of(leaf), LS_SPREAD_MIRRORED);
    assert_int_equal(ls_components(leaf), 2);
    for (int i = 0; i < 2; i++) {
        ls_tensor *t = ls__leaf_component(leaf, i);
        assert_true(ls_to_float(t) == want);
        assert_non_null(strstr(ls_device_of(t), i ? "CPU:1" : "CPU:0"));
        assert_ptr_equal(t->storage, ls__leaf_component(leaf, 0)->storage);
    }
}

static void plain(const ls_value *leaf, float want, const char *device)
{
    if (!leaf)
        fail_msg("%s", ls_error_report());
    assert_int_equal(ls_spread_of(leaf), LS_SPREAD_PLAIN);
    assert_true(ls_to_float(ls_leaf_tensor(leaf)) == want);
    assert_non_null(strstr(ls_device_of(ls_leaf_tensor(leaf)), device));
}

static void the_destination_says_mirrored_or_plain(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2);
    ls_variable *w = NULL, *outside = NULL;
    LS_FRAME {
        outside = ls_variable_new("outside", ls_scalar(LS_F32, 0), true);
        LS_SCOPE (s)
            w = ls_variable_new("w", ls_scalar(LS_F32, 0), true);
        ls_value *v = numbers(s, 1, 2);
        mirrored(ls_reduce_to(s, LS_SUM, v, ls_at_variable(w)), 3);
        mirrored(ls_reduce_to(s, LS_MEAN, v, ls_at_value(v)), 1.5f);
        mirrored(ls_reduce_to(s, LS_ONLY_FIRST, v, ls_at_value(ls_variable_leaf(w))), 1);
        plain(ls_reduce_to(s, LS_SUM, v, ls_at_device("/cpu:1")), 3, "CPU:1");
        plain(ls_reduce_to(s, LS_SUM, v, ls_at_device("cpu:5")), 3, "CPU:5");
        ls_tensor *there = ls_copy_to(ls_scalar(LS_F32, 0), "/cpu:1");
        plain(ls_reduce_to(s, LS_SUM, v, ls_at_value(ls_leaf(there))), 3, "CPU:1");
        plain(ls_reduce_to(s, LS_SUM, v, ls_at_variable(outside)), 3, "CPU:0");

        mirrored(ls_mirror_to(s, ls_scalar(LS_F32, 8), ls_at_variable(w)), 8);
        plain(ls_mirror_to(s, ls_scalar(LS_F32, 8), ls_at_device("/cpu:1")), 8, "CPU:1");

        /* What is mirrored already, or plain, is its own mean. */
        ls_value *m = ls_mirror_to(s, ls_scalar(LS_F32, 8), ls_at_value(v));
        mirrored(ls_reduce_to(s, LS_MEAN, m, ls_at_value(v)), 8);
        mirrored(ls_reduce_to(s, LS_MEAN, ls_leaf(there), ls_at_value(v)), 0);
        mirrored(ls_reduce_to(s, LS_SUM, ls_leaf(there), ls_at_value(v)), 0); /* the number 0 */
        refused(ls_reduce_to(s, LS_SUM, m, ls_at_value(v)), LS_INVALID,
                "ls_reduce_to: the SUM over 2 replicas of a mirrored value");
    }
    ls_variable_free(w);
    ls_variable_free(outside);
    ls_strategy_free(s);
}

static void a_nest_keeps_its_structure(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2);
    LS_FRAME {
        ls_value *nest = ls_dict(2, (const char *[]){ "b", "a" },
                                 (ls_value *[]){ numbers(s, 1, 2), numbers(s, 3, 5) });
        ls_value *sum = ls_reduce_to(s, LS_SUM, nest, ls_at_value(ls_get(nest, "a")));
        mirrored(ls_get(sum, "a"), 8);
        mirrored(ls_get(sum, "b"), 3);
    }
    ls_strategy_free(s);
}

static void T15_dense_and_sparse_in_one_batch(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2);
    LS_FRAME {
        ls_tensor *sparse[2];
        for (int i = 0; i < 2; i++)
            sparse[i] = ls_sparse(ls_from(LS_I64, LS_DIMS(1), (int64_t[]){ 2 - i }),
                                  ls_full(LS_F32, LS_DIMS(1, 1), 5 + i), 3);
        ls_value *values[4] = { numbers(s, 1, 3), pair(s, sparse[0], sparse[1]), numbers(s, 2, 4),
                                pair(s, sparse[1], sparse[0]) };
        ls_destination *to[4];
        for (int i = 0; i < 4; i++)
            to[i] = ls_at_value(values[i]);
        ls_value *out = ls_batch_reduce_to(s, LS_SUM, 4, values, to);
        assert_int_equal(ls_length(out), 4);
        mirrored(ls_child(out, 0), 4);
        mirrored(ls_child(out, 2), 6);
        for (int k = 1; k < 4; k += 2)
            for (int i = 0; i < 2; i++) {
                ls_tensor *t = ls__leaf_component(ls_child(out, k), i);
                assert_true(ls_is_sparse(t));
                const int64_t *rows = ls_data(ls_sparse_rows(t));
                const float *x = ls_data(ls_sparse_values(t));
                assert_true(rows[0] == (k == 1 ? 2 : 1) && rows[1] == (k == 1 ? 1 : 2));
                assert_true(x[0] == (k == 1 ? 5 : 6) && x[1] == (k == 1 ? 6 : 5));
                assert_string_equal(ls_device_of(ls_sparse_rows(t)), ls_device_of(t));
            }
        ls_value *mean = ls_reduce_to(s, LS_MEAN, values[1], ls_at_device("/cpu:0"));
        assert_true(((const float *)ls_data(ls_sparse_values(ls_leaf_tensor(mean))))[1] == 3);
        assert_int_equal(ls_length(ls_batch_reduce_to(s, LS_SUM, 0, NULL, NULL)), 0);

        to[2] = NULL;
        refused(ls_batch_reduce_to(s, LS_SUM, 4, values, to), LS_INVALID,
                "value 2: ls_batch_reduce_to: the destination is NULL");
        refused(ls_batch_reduce_to(s, LS_SUM, 2, NULL, to), LS_INVALID, "2 values in NULL");
        refused(ls_batch_reduce_to(s, LS_SUM, -1, values, to), LS_INVALID, "-1 values");
    }
    ls_strategy_free(s);
}

static void one_replica(void **state)
{
    (void)state;
    ls_strategy *s = replicas(1);
    ls_variable *w = NULL;
    LS_FRAME {
        LS_SCOPE (s)
            w = ls_variable_new("w", ls_scalar(LS_F32, 0), true);
        ls_value *x = ls_leaf(ls_scalar(LS_F32, 4));
        ls_value *y = ls_reduce_to(s, LS_SUM, x, ls_at_variable(w));
        assert_int_equal(ls_spread_of(y), LS_SPREAD_MIRRORED);
        assert_true(ls_to_float(ls__leaf_component(y, 0)) == 4);
        plain(ls_reduce_to(ls_default_strategy(), LS_MEAN, x, ls_at_value(x)), 4, "CPU:0");
    }
    ls_variable_free(w);
    ls_strategy_free(s);
}

static void a_destination_goes_with_its_frame(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2);
    LS_FRAME {
        ls_destination *gone = NULL;
        LS_FRAME
            gone = ls_at_device("/cpu:1");
        ls_value *v = numbers(s, 1, 2);
        refused(ls_reduce_to(s, LS_SUM, v, gone), LS_INVALID,
                "ls_reduce_to: the destination's frame has closed");
        assert_non_null(strstr(ls_error_hint(), "make it in the frame that uses it"));
        refused(ls_batch_reduce_to(s, LS_SUM, 1, &v, &gone), LS_INVALID, "frame has closed");
        refused(ls_mirror_to(s, ls_scalar(LS_F32, 1), gone), LS_INVALID, "frame has closed");
        refused(ls_mirror_to(s, ls_scalar(LS_F32, 1), (ls_destination *)v), LS_INVALID,
                "the destination's frame has closed"); /* something else is there */
    }
    ls_strategy_free(s);
}

static void what_is_refused(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2), *three = replicas(3);
    LS_FRAME {
        ls_value *v = numbers(s, 1, 2);
        ls_destination *here = ls_at_device("/cpu:0");
        refused(ls_at_device(NULL), LS_INVALID, "ls_at_device: the device is NULL");
        refused(ls_at_device(""), LS_INVALID, "ls_at_device: the device is empty");
        refused(ls_at_device("/cpu:0,/cpu:1"), LS_INVALID, "'/cpu:0,/cpu:1' is a list");
        refused(ls_at_device("nonsense"), LS_INVALID, "nonsense");
        refused(ls_at_value(ls_list(1, &v)), LS_INVALID, "ls_at_value: the value is a list of 1");
        refused(ls_at_value(NULL), LS_INVALID, "ls_at_value: the value is NULL");
        refused(ls_at_variable(NULL), LS_INVALID, "ls_at_variable: the variable is NULL");
        refused(ls_reduce_to(s, LS_SUM, v, NULL), LS_INVALID,
                "ls_reduce_to: the destination is NULL");
        refused(ls_reduce_to(s, LS_SUM, v, ls_at_device("?")), LS_INVALID, "'?'"); /* passed on */
        refused(ls_reduce_to(s, (ls_reduce_op)LS_AGGREGATE_MEAN, v, here), LS_INVALID,
                "ls_reduce_to: op 18 is the aggregation LS_AGGREGATE_MEAN");
        refused(ls_reduce_to(three, LS_SUM, v, here), LS_INVALID, "a value of 2 components");
        refused(ls_reduce_to(three, LS_MEAN, ls_leaf(ls_scalar(LS_F32, 1)), ls_at_value(v)),
                LS_INVALID, "a destination of 2 replicas, the strategy has 3");
        refused(ls_reduce_to(s, LS_SUM, NULL, here), LS_INVALID, "ls_reduce_to: the value is NULL");
        ls_value *shapes = pair(s, ls_scalar(LS_F32, 1), ls_zeros(LS_F32, LS_DIMS(2)));
        refused(ls_reduce_to(s, LS_SUM, shapes, here), LS_SHAPE,
                "ls_reduce_to: replica 0 has f32[], replica 1 f32[2]");
        refused(ls_mirror_to(s, NULL, here), LS_INVALID, "ls_mirror_to: the tensor is NULL");
        refused(ls_mirror_to(s, ls_scalar(LS_F32, 1), NULL), LS_INVALID, "the destination is NULL");
        LS_SCOPE (three) {
            refused(ls_reduce_to(s, LS_SUM, v, here), LS_STATE, "ls_reduce_to");
            refused(ls_batch_reduce_to(s, LS_SUM, 1, &v, &here), LS_STATE, "ls_batch_reduce_to");
            refused(ls_mirror_to(s, ls_scalar(LS_F32, 1), here), LS_STATE, "ls_mirror_to");
        }

        assert_int_equal(ls_group(s, v), LS_OK);
        assert_int_equal(ls_group(s, ls_list(0, NULL)), LS_OK);
        assert_int_equal(ls_group(s, NULL), LS_INVALID);
        failed(LS_INVALID);
        assert_int_equal(ls_group(three, v), LS_INVALID);
        failed(LS_INVALID);
    }
    ls_strategy_free(s);
    ls_strategy_free(three);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_destination_says_mirrored_or_plain, clean),
        cmocka_unit_test_setup(a_nest_keeps_its_structure, clean),
        cmocka_unit_test_setup(T15_dense_and_sparse_in_one_batch, clean),
        cmocka_unit_test_setup(one_replica, clean),
        cmocka_unit_test_setup(a_destination_goes_with_its_frame, clean),
        cmocka_unit_test_setup(what_is_refused, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
