/*
 * ls_all_reduce in replicas, eager and traced: the cases T08 and T09, order, sparse leaves, what
 * all replicas share, and what is refused.
 */
#include <lockstep/extended.h>
#include <lockstep/ops.h>
#include <lockstep/tape.h>

#include "tensor/test_support.h"
#include "tensor/value.h"

static ls_strategy *replicas(int n)
{
    ls_strategy *s =
        ls_mirrored(LS_MIRRORED(.devices = n > 1 ? "/cpu:0,/cpu:1" : "/cpu:0", .replicas = n));
    assert_non_null(s);
    return s;
}

static ls_value *run(bool traced, ls_strategy *s, ls_step step, void *user, ls_value *arguments)
{
    if (!traced)
        return ls_run_eager(s, step, user, arguments);
    ls_function *f = ls_trace(step, user);
    ls_value *first = ls_run(s, f, arguments);
    ls_value *again = first ? ls_run(s, f, arguments) : NULL; /* replayed */
    ls_function_free(f);
    return again;
}

static void refused(const void *result, ls_status want, const char *text)
{
    assert_null(result);
    if (!strstr(ls_error_text(), text))
        fail_msg("'%s' lacks '%s'", ls_error_text(), text);
    failed(want);
}

static void holds(const ls_value *leaf, int replica, const char *spec, int n, const double *want)
{
    if (!leaf)
        fail_msg("%s", ls_error_report());
    ls_tensor *t = ls__leaf_component(leaf, replica);
    assert_string_equal(ls_describe(t), spec);
    ls_tensor *wide = ls_cast(ls_densify(t), LS_F64);
    const double *got = ls_data(wide);
    for (int i = 0; i < n; i++)
        if (got[i] != want[i])
            fail_msg("replica %d: element %d is %.17g, not %.17g", replica, i, got[i], want[i]);
}

#define HOLDS(leaf, replica, spec, ...)                                                            \
    holds(leaf, replica, spec, (int)(sizeof((double[]){ __VA_ARGS__ }) / sizeof(double)),          \
          (double[]){ __VA_ARGS__ })

static ls_value *numbers(ls_strategy *s, ls_dtype dtype, const double *x)
{
    ls_value *each[8];
    for (int i = 0; i < ls_num_replicas(s); i++)
        each[i] = ls_leaf(ls_scalar(dtype, x[i]));
    return ls_per_replica(s, each);
}

/* The all-reduce of the arguments. */
static ls_value *all_reduce(ls_value *arguments, void *user)
{
    return ls_all_reduce(ls_get_replica_context(), *(ls_reduce_op *)user, arguments);
}

/* ---- the cases --------------------------------------------------------------------------- */

static ls_value *nest(float a, float b, float c)
{
    return ls_dict(2, (const char *[]){ "a", "b" },
                   (ls_value *[]){ ls_leaf(ls_scalar(LS_F32, (double)a)),
                                   ls_leaf(ls_from(LS_F32, LS_DIMS(2), (float[]){ b, c })) });
}

static void T08_a_nest_in_one_meeting(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2);
    for (int traced = 0; traced < 2; traced++)
        LS_FRAME {
            ls_value *x = ls_per_replica(s, (ls_value *[]){ nest(1, 39, 2), nest(3, 3, 41) });
            ls_reduce_op op = LS_SUM;
            ls_value *sum = run(traced, s, all_reduce, &op, x);
            op = LS_MEAN;
            ls_value *mean = run(traced, s, all_reduce, &op, x);
            for (int r = 0; r < 2; r++) {
                HOLDS(ls_get(sum, "a"), r, "f32[]", 4);
                HOLDS(ls_get(sum, "b"), r, "f32[2]", 42, 43);
                HOLDS(ls_get(mean, "a"), r, "f32[]", 2);
                HOLDS(ls_get(mean, "b"), r, "f32[2]", 21, 21.5);
            }
        }
    ls_strategy_free(s);
}

/* dy/dx of y = all_reduce(x) c. */
static ls_value *slope(ls_value *c, void *user)
{
    ls_tensor *x = ls_scalar(LS_F32, 42);
    ls_tape *tape = ls_tape_open();
    ls_value *sum = ls_all_reduce(ls_get_replica_context(), *(ls_reduce_op *)user, ls_leaf(x));
    ls_tensor *y = ls_mul(ls_leaf_tensor(sum), ls_leaf_tensor(c));
    ls_tensor *dx = ls_gradient(tape, y, x);
    return ls_leaf(dx);
}

static void T09_the_gradient_is_the_same_all_reduce(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2), *one = replicas(1);
    for (int traced = 0; traced < 2; traced++)
        LS_FRAME {
            ls_reduce_op op = LS_SUM;
            ls_value *c = numbers(s, LS_F32, (double[]){ 1, 3 });
            ls_value *sum = run(traced, s, slope, &op, c);
            op = LS_MEAN;
            ls_value *mean = run(traced, s, slope, &op, c);
            for (int r = 0; r < 2; r++) {
                HOLDS(sum, r, "f32[]", 4);
                HOLDS(mean, r, "f32[]", 2);
            }
            HOLDS(run(traced, one, slope, &op, ls_leaf(ls_scalar(LS_F32, 4))), 0, "f32[]", 4);
        }
    ls_strategy_free(s);
    ls_strategy_free(one);
}

/* y = c (sum x)^2 with x = id + 1: dy/dx_i = sum_j 2 c_j S; again: d(dx_i)/dx_i. */
static ls_value *curvature(ls_value *c, void *user)
{
    (void)user;
    ls_replica *me = ls_get_replica_context();
    ls_tensor *x = ls_scalar(LS_F64, ls_replica_id(me) + 1);
    ls_tape *tape = ls_tape_open();
    ls_tensor *sum = ls_leaf_tensor(ls_all_reduce(me, LS_SUM, ls_leaf(x)));
    ls_tensor *dx = ls_gradient(tape, ls_mul(ls_square(sum), ls_leaf_tensor(c)), x);
    return ls_tensors(2, (ls_tensor *[]){ dx, ls_gradient(tape, dx, x) });
}

static void gradients_of_gradients(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2);
    for (int traced = 0; traced < 2; traced++)
        LS_FRAME {
            ls_value *c = numbers(s, LS_F64, (double[]){ 1, 3 });
            ls_value *out = run(traced, s, curvature, NULL, c);
            for (int r = 0; r < 2; r++) {
                HOLDS(ls_child(out, 0), r, "f64[]", 2 * 3 * (1 + 3));
                /* Of both replicas' dx, each of which holds x through the sum. */
                HOLDS(ls_child(out, 1), r, "f64[]", 2 * 2 * (1 + 3));
            }
        }
    ls_strategy_free(s);
}

/* ---- more ------------------------------------------------------------------------------------ */

static void sums_have_the_order_of_the_tree(void **state)
{
    (void)state;
    ls_strategy *s = replicas(5);
    LS_FRAME {
        ls_reduce_op op = LS_SUM;
        ls_value *x = numbers(s, LS_F32, (double[]){ 16777216, 1, 1, 1, 1 });
        ls_value *sum = ls_run_eager(s, all_reduce, &op, x);
        for (int r = 0; r < 5; r++)
            HOLDS(sum, r, "f32[]", 16777220); /* 16777216 in a row */
        op = LS_MEAN;
        ls_value *whole = numbers(s, LS_I32, (double[]){ 1, 2, 3, 4, 6 });
        HOLDS(ls_run_eager(s, all_reduce, &op, whole), 3, "f64[]", 3.2);
    }
    ls_strategy_free(s);
}

typedef struct shared {
    ls_tensor *constant;
    ls_variable *w;
} shared;

static ls_value *sum_of_shared(ls_value *arguments, void *user)
{
    const shared *m = user;
    ls_replica *me = ls_get_replica_context();
    ls_value *all =
        ls_list(3, (ls_value *[]){ ls_leaf(m->constant), ls_variable_leaf(m->w), arguments });
    return ls_all_reduce(me, LS_SUM, all);
}

static void what_all_share_counts_for_each(void **state)
{
    (void)state;
    ls_strategy *s = replicas(4);
    shared m = { NULL, NULL };
    LS_FRAME {
        LS_SCOPE (s)
            m.w = ls_variable_new("w", ls_scalar(LS_F32, 1), true);
        m.constant = ls_scalar(LS_F32, 10);
        for (int traced = 0; traced < 2; traced++) {
            ls_value *sum = run(traced, s, sum_of_shared, &m, ls_leaf(ls_scalar(LS_F32, 100)));
            for (int r = 0; r < 4; r++) {
                HOLDS(ls_child(sum, 0), r, "f32[]", 40);
                HOLDS(ls_child(sum, 1), r, "f32[]", 4); /* tensorflow#45026 gave 1 */
                HOLDS(ls_child(sum, 2), r, "f32[]", 400);
            }
        }
    }
    ls_variable_free(m.w);
    ls_strategy_free(s);
}

static ls_value *joined_rows(ls_value *arguments, void *user)
{
    (void)arguments;
    ls_replica *me = ls_get_replica_context();
    int id = ls_replica_id(me);
    ls_tensor *x = ls_sparse(ls_from(LS_I64, LS_DIMS(1), (int64_t[]){ 2 - id }),
                             ls_full(LS_F32, LS_DIMS(1, 1), 6 + 2 * id), 3);
    ls_tensor *y = ls_leaf_tensor(ls_all_reduce(me, *(ls_reduce_op *)user, ls_leaf(x)));
    return ls_tensors(2, (ls_tensor *[]){ ls_sparse_rows(y), ls_sparse_values(y) });
}

static void sparse_leaves_are_joined(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2);
    for (int traced = 0; traced < 2; traced++)
        LS_FRAME {
            ls_reduce_op op = LS_MEAN;
            ls_value *out = run(traced, s, joined_rows, &op, ls_list(0, NULL));
            for (int r = 0; r < 2; r++) {
                HOLDS(ls_child(out, 0), r, "i64[2]", 2, 1);
                HOLDS(ls_child(out, 1), r, "f32[2,1]", 3, 4);
            }
        }
    ls_strategy_free(s);
}

/* Rows 2 and 1 of a table, sparse on replica 0 alone: dx of sum(all_reduce(table)^2). */
static ls_value *slope_of_a_table(ls_value *x, void *user)
{
    (void)user;
    ls_replica *me = ls_get_replica_context();
    int id = ls_replica_id(me);
    ls_tensor *row = ls_from(LS_I64, LS_DIMS(1), (int64_t[]){ 2 - id });
    ls_tape *tape = ls_tape_open();
    ls_tensor *values = ls_reshape(ls_scale(ls_leaf_tensor(x), 2), LS_DIMS(1, 1));
    ls_tensor *table = ls_sparse(row, values, 3);
    ls_value *sum = ls_all_reduce(me, LS_SUM, ls_leaf(id ? ls_densify(table) : table));
    return ls_leaf(ls_gradient(tape, ls_square(ls_leaf_tensor(sum)), ls_leaf_tensor(x)));
}

static void a_sparse_leaf_among_dense_ones_is_made_dense(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2);
    for (int traced = 0; traced < 2; traced++)
        LS_FRAME {
            ls_value *x = numbers(s, LS_F32, (double[]){ 1, 2 });
            ls_value *dx = run(traced, s, slope_of_a_table, NULL, x);
            HOLDS(dx, 0, "f32[]", 16);
            HOLDS(dx, 1, "f32[]", 32);
        }
    ls_strategy_free(s);
}

static void one_replica_has_the_sum(void **state)
{
    (void)state;
    LS_FRAME {
        ls_replica *me = ls_get_replica_context();
        ls_tensor *x = ls_scalar(LS_F32, 5);
        ls_tape *tape = ls_tape_open();
        ls_value *sum = ls_all_reduce(me, LS_SUM, ls_leaf(x));
        HOLDS(sum, 0, "f32[]", 5);
        HOLDS(ls_leaf(ls_gradient(tape, ls_square(ls_leaf_tensor(sum)), x)), 0, "f32[]", 10);
        HOLDS(ls_all_reduce(me, LS_MEAN, ls_leaf(ls_scalar_int(LS_I32, 7))), 0, "f64[]", 7);
        HOLDS(ls_all_reduce(me, LS_SUM, ls_leaf(ls_scalar_int(LS_I32, 7))), 0, "i32[]", 7);
        assert_int_equal(ls_length(ls_all_reduce(me, LS_SUM, ls_list(0, NULL))), 0);
    }
}

/* ---- errors ---------------------------------------------------------------------------------- */

static ls_value *of_other_shapes(ls_value *arguments, void *user)
{
    (void)user;
    ls_replica *me = ls_get_replica_context();
    ls_tensor *x = ls_zeros(LS_F32, LS_DIMS(ls_replica_id(me) == 1 ? 2 : 4));
    ls_value *more = ls_list(2, (ls_value *[]){ arguments, ls_leaf(x) });
    return ls_all_reduce(me, LS_SUM, more);
}

static ls_value *of_other_dtypes(ls_value *arguments, void *user)
{
    (void)arguments;
    (void)user;
    ls_replica *me = ls_get_replica_context();
    return ls_all_reduce(me, LS_MEAN, ls_leaf(ls_scalar(ls_replica_id(me) ? LS_F64 : LS_F32, 1)));
}

static ls_value *with_other_ops(ls_value *arguments, void *user)
{
    (void)user;
    ls_replica *me = ls_get_replica_context();
    return ls_all_reduce(me, ls_replica_id(me) ? LS_MEAN : LS_SUM, arguments);
}

static ls_value *of_nothing(ls_value *arguments, void *user)
{
    (void)arguments;
    return ls_all_reduce(ls_get_replica_context(), LS_SUM, user);
}

static ls_value *without_context(ls_value *arguments, void *user)
{
    (void)user;
    return ls_all_reduce(NULL, LS_SUM, arguments);
}

static ls_value *of_a_bool(ls_value *arguments, void *user)
{
    (void)arguments;
    (void)user;
    return ls_all_reduce(ls_get_replica_context(), LS_SUM, ls_leaf(ls_ones(LS_BOOL, LS_SCALAR)));
}

static ls_value *of_a_string(ls_value *arguments, void *user)
{
    (void)arguments;
    (void)user;
    return ls_all_reduce(ls_get_replica_context(), LS_MEAN,
                         ls_leaf(ls_from_strings(LS_DIMS(1), (const void *[]){ "a" }, NULL)));
}

static ls_value *reduces_in_a_replica(ls_value *arguments, void *user)
{
    return ls_leaf(ls_reduce(user, LS_SUM, arguments, LS_NO_AXIS));
}

static void what_is_refused(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2);
    LS_FRAME {
        ls_value *x = numbers(s, LS_F32, (double[]){ 1, 2 });
        for (int traced = 0; traced < 2; traced++) {
            refused(run(traced, s, of_other_shapes, NULL, x), LS_SHAPE,
                    "ls_all_reduce(SUM): leaf 1 of 2: replica 0 has f32[4], replica 1 f32[2]");
            refused(run(traced, s, of_other_dtypes, NULL, x), LS_SHAPE,
                    "ls_all_reduce(MEAN): the value: replica 0 has f32[], replica 1 f64[]");
            refused(run(traced, s, with_other_ops, NULL, x), LS_STATE,
                    "replica 0 came to ls_all_reduce(SUM); replica 1 came to ls_all_reduce(MEAN)");
        }
        ls_reduce_op op = LS_ONLY_FIRST;
        refused(ls_run_eager(s, all_reduce, &op, x), LS_INVALID,
                "ls_all_reduce: ONLY_FIRST adds nothing up");
        op = (ls_reduce_op)LS_AGGREGATE_SUM;
        refused(ls_run_eager(s, all_reduce, &op, x), LS_INVALID,
                "ls_all_reduce: op 17 is the aggregation LS_AGGREGATE_SUM");
        refused(ls_run_eager(s, of_nothing, NULL, x), LS_INVALID,
                "ls_all_reduce: the value is NULL");
        refused(ls_run_eager(s, without_context, NULL, x), LS_INVALID, "ls_all_reduce");
        refused(ls_run_eager(s, of_a_bool, NULL, x), LS_SHAPE,
                "replica 0: ls_all_reduce: bool[], which cannot be added up");
        assert_string_equal(ls_error_hint(), "numbers are added up; ls_cast makes some of bools");
        refused(ls_run_eager(s, of_a_string, NULL, x), LS_SHAPE,
                "replica 0: ls_all_reduce: bytes[1], which cannot be added up");
        refused(of_a_bool(x, NULL), LS_SHAPE, "bool[], which cannot be added up"); /* alone, too */
        op = (ls_reduce_op)42;
        refused(ls_run_eager(s, all_reduce, &op, x), LS_INVALID, "op 42 is no ls_reduce_op");
        assert_string_equal(ls_error_hint(), "the op is LS_SUM or LS_MEAN");
        refused(ls_run_eager(s, reduces_in_a_replica, s, x), LS_STATE, "ls_reduce");
        LS_SCOPE (s)
            refused(ls_all_reduce(ls_get_replica_context(), LS_SUM, x), LS_STATE, "ls_all_reduce");
        ls_replica *me = ls_get_replica_context();
        refused(ls_all_reduce(me, LS_SUM, x), LS_INVALID, "a leaf of 2 components");
        refused(ls_all_reduce(me, LS_ONLY_FIRST, x), LS_INVALID, "ONLY_FIRST");
        op = LS_SUM;
        HOLDS(ls_run_eager(s, all_reduce, &op, x), 1, "f32[]", 3); /* and it goes on */
    }
    ls_strategy_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(T08_a_nest_in_one_meeting, clean),
        cmocka_unit_test_setup(T09_the_gradient_is_the_same_all_reduce, clean),
        cmocka_unit_test_setup(gradients_of_gradients, clean),
        cmocka_unit_test_setup(sums_have_the_order_of_the_tree, clean),
        cmocka_unit_test_setup(what_all_share_counts_for_each, clean),
        cmocka_unit_test_setup(sparse_leaves_are_joined, clean),
        cmocka_unit_test_setup(a_sparse_leaf_among_dense_ones_is_made_dense, clean),
        cmocka_unit_test_setup(one_replica_has_the_sum, clean),
        cmocka_unit_test_setup(what_is_refused, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
