/*
 * The conformance cases that TensorFlow's own tests fix (T01 ... T38), as far as one process with
 * mirrored replicas has them. Each for 1, 2, 3 and 5 replicas on every number of devices, eager
 * and traced; where the case has numbers for two replicas only, the others follow its formula.
 */
#include "strategy/strategy_support.h"
#include "tensor/value.h"

/* ---- steps ------------------------------------------------------------------------- */

static ls_value *give_id(ls_value *arguments, void *user)
{
    (void)arguments, (void)user;
    return ls_leaf(my_number(0, 1));
}

static ls_value *give_back(ls_value *arguments, void *user)
{
    (void)user;
    return arguments;
}

/* Counts from `from`: [from, from + 1, ...]. */
static ls_value *count_from(double from, int64_t count)
{
    float data[16];
    for (int64_t i = 0; i < count; i++)
        data[i] = (float)(from + (double)i);
    return ls_leaf(ls_from(LS_F32, LS_DIMS(count), data));
}

static ls_value *fours(int replica, int replicas, void *user)
{
    (void)replicas, (void)user;
    return count_from(4 * replica, 4);
}

static ls_value *fours_then_two(int replica, int replicas, void *user)
{
    (void)user;
    return count_from(4 * replica, replica == replicas - 1 ? 2 : 4);
}

/* ---- T01 to T05: reduce --------------------------------------------------------------- */

static void check_t01(ls_strategy *s, int n, bool traced)
{
    ls_value *ids = run_step(s, traced, give_id, NULL, nothing());
    HOLDS_EACH(ids, n, 0, 1);
    ls_tensor *sum = ls_reduce(s, LS_SUM, ids, LS_NO_AXIS);
    HOLDS(sum, n * (n - 1) / 2);
    assert_int_equal(ls_rank(sum), 0);
}

EVERYWHERE(t01_the_sum_of_replica_ids, check_t01)

static void check_t02(ls_strategy *s, int n, bool traced)
{
    ls_value *v = run_step(s, traced, give_back, NULL, ls_distribute_values(s, fours, NULL));
    double ids = 4 * n * (n - 1) / 2;
    HOLDS(ls_reduce(s, LS_SUM, v, LS_NO_AXIS), ids, ids + n, ids + 2 * n, ids + 3 * n);
    HOLDS(ls_reduce(s, LS_SUM, v, 0), 4 * n * (4 * n - 1) / 2);
    HOLDS(ls_reduce(s, LS_MEAN, v, 0), (4 * n - 1) / 2.0);
    if (n == 2) {
        HOLDS(ls_reduce(s, LS_SUM, v, LS_NO_AXIS), 4, 6, 8, 10);
        HOLDS(ls_reduce(s, LS_SUM, v, -1), 28);
        HOLDS(ls_reduce(s, LS_MEAN, v, -1), 3.5);
    }
}

EVERYWHERE(t02_reduce_over_replicas_and_over_the_batch, check_t02)

static void check_t03(ls_strategy *s, int n, bool traced)
{
    ls_value *v =
        run_step(s, traced, give_back, NULL, ls_distribute_values(s, fours_then_two, NULL));
    double rows = 4 * (n - 1) + 2, sum = rows * (rows - 1) / 2;
    HOLDS(ls_reduce(s, LS_SUM, v, 0), sum);
    HOLDS(ls_reduce(s, LS_MEAN, v, 0), sum / rows);
    if (n == 2) {
        HOLDS(ls_reduce(s, LS_SUM, v, 0), 15);
        HOLDS(ls_reduce(s, LS_MEAN, v, 0), 2.5);
    }
    if (n == 1)
        return;
    assert_null(ls_reduce(s, LS_SUM, v, LS_NO_AXIS));
    FAILS(LS_SHAPE, "[4]", "[2]", "replica");
    assert_null(ls_reduce(s, LS_MEAN, v, LS_NO_AXIS));
    FAILS(LS_SHAPE, "[4]", "[2]", "replica");
}

EVERYWHERE(t03_a_last_batch_that_is_smaller, check_t03)

/* user: the dtype. */
static ls_value *id_repeated(ls_value *arguments, void *user)
{
    (void)arguments;
    return ls_leaf(ls_full(*(ls_dtype *)user, LS_DIMS(my_id() + 1), my_id()));
}

static void check_t04(ls_strategy *s, int n, bool traced)
{
    static ls_dtype dtypes[] = { LS_F32, LS_I32 };
    double sum = 0, rows = 0;
    for (int i = 0; i < n; i++)
        sum += i * (i + 1), rows += i + 1;
    for (int d = 0; d < 2; d++) {
        ls_value *v = run_step(s, traced, id_repeated, &dtypes[d], nothing());
        GAVE(v);
        HOLDS(ls_reduce(s, LS_SUM, v, 0), sum);
        assert_int_equal(ls_dtype_of(ls_reduce(s, LS_SUM, v, 0)), dtypes[d]);
        HOLDS(ls_reduce(s, LS_MEAN, v, 0), sum / rows);
        assert_int_equal(ls_dtype_of(ls_reduce(s, LS_MEAN, v, 0)), d ? LS_F64 : LS_F32);
    }
    if (n == 2)
        assert_true(sum == 2 && rows == 3);
    if (n == 3)
        assert_true(sum == 8 && rows == 6);
}

EVERYWHERE(t04_rows_of_different_numbers_float_and_int, check_t04)

static ls_value *one_two(ls_value *arguments, void *user)
{
    (void)arguments, (void)user;
    return ls_leaf(ls_from(LS_F32, LS_DIMS(2), (float[]){ 1, 2 }));
}

static void check_t05(ls_strategy *s, int n, bool traced)
{
    ls_value *v = run_step(s, traced, one_two, NULL, nothing());
    GAVE(v);
    assert_int_equal(ls_spread_of(v), n == 1 ? LS_SPREAD_PLAIN : LS_SPREAD_PER_REPLICA);
    HOLDS(ls_reduce(s, LS_MEAN, v, 0), 1.5);
    HOLDS(ls_reduce(s, LS_SUM, v, 0), 3 * n);
    HOLDS(ls_reduce(s, LS_MEAN, v, LS_NO_AXIS), 1, 2);
}

EVERYWHERE(t05_equal_rows, check_t05)

/* ---- T07: run ----------------------------------------------------------------------- */

static ls_value *id_plus_one(ls_value *arguments, void *user)
{
    (void)arguments, (void)user;
    return ls_leaf(my_number(1, 1));
}

static ls_value *double_and_square(ls_value *arguments, void *user)
{
    (void)user;
    ls_tensor *x = ls_item(arguments, 0);
    return ls_dict(2, (const char *[]){ "a", "b" },
                   (ls_value *[]){ ls_leaf(ls_scale(x, 2)), ls_leaf(ls_mul(x, x)) });
}

static ls_value *a_plus_2b_plus_2(ls_value *arguments, void *user)
{
    (void)user;
    ls_tensor *a = ls_leaf_tensor(ls_get(arguments, "a"));
    ls_tensor *b = ls_leaf_tensor(ls_get(arguments, "b"));
    return ls_leaf(ls_shift(ls_add(a, ls_scale(b, 2)), 2));
}

static void check_t07(ls_strategy *s, int n, bool traced)
{
    ls_value *x = run_step(s, traced, id_plus_one, NULL, nothing());
    HOLDS_EACH(x, n, 1, 1);
    if (n == 1)
        x = number(4);
    ls_value *ab = run_step(s, traced, double_and_square, NULL, ls_list(1, &x));
    GAVE(ab);
    assert_int_equal(ls_kind_of(ab), LS_DICT);
    ls_value *sum = run_step(s, traced, a_plus_2b_plus_2, NULL, ab);
    for (int i = 0; i < n; i++) {
        double xi = n == 1 ? 4 : i + 1;
        HOLDS(part(ls_get(ab, "a"), i), 2 * xi);
        HOLDS(part(ls_get(ab, "b"), i), xi * xi);
        HOLDS(part(sum, i), 2 * xi + 2 * xi * xi + 2);
    }
    if (n == 2) {
        HOLDS(part(sum, 0), 6);
        HOLDS(part(sum, 1), 14);
    }
}

EVERYWHERE(t07_run_with_results_as_arguments, check_t07)

/* ---- T08, T09: all_reduce --------------------------------------------------------------- */

static ls_value *reduce_all(ls_value *arguments, void *user)
{
    return ls_all_reduce(ls_get_replica_context(), *(ls_reduce_op *)user, arguments);
}

static ls_value *two(float a, float b)
{
    return ls_leaf(ls_from(LS_F32, LS_DIMS(2), (float[]){ a, b }));
}

static ls_value *ab_dict(ls_value *a, ls_value *b)
{
    return ls_dict(2, (const char *[]){ "a", "b" }, (ls_value *[]){ a, b });
}

/* Replicas beyond the second have zeros. */
static ls_value *t08_list(int replica, int replicas, void *user)
{
    (void)replicas, (void)user;
    if (replica == 0)
        return pair(number(1), two(39, 2));
    return replica == 1 ? pair(number(3), two(3, 41)) : pair(number(0), two(0, 0));
}

static ls_value *t08_dict(int replica, int replicas, void *user)
{
    (void)replicas, (void)user;
    if (replica == 0)
        return ab_dict(number(1), two(40, 1));
    return replica == 1 ? ab_dict(number(3), two(2, 98)) : ab_dict(number(0), two(0, 0));
}

static void check_t08(ls_strategy *s, int n, bool traced)
{
    static ls_reduce_op ops[] = { LS_SUM, LS_MEAN };
    for (int k = 0; k < 2; k++) {
        double d = k ? n : 1, lone = n == 1; /* one replica: its own values */
        ls_value *v =
            run_step(s, traced, reduce_all, &ops[k], ls_distribute_values(s, t08_list, NULL));
        ls_value *w =
            run_step(s, traced, reduce_all, &ops[k], ls_distribute_values(s, t08_dict, NULL));
        GAVE(v);
        GAVE(w);
        for (int i = 0; i < n; i++) {
            HOLDS(part(ls_child(v, 0), i), (lone ? 1 : 4) / d);
            HOLDS(part(ls_child(v, 1), i), (lone ? 39 : 42) / d, (lone ? 2 : 43) / d);
            HOLDS(part(ls_get(w, "a"), i), (lone ? 1 : 4) / d);
            HOLDS(part(ls_get(w, "b"), i), (lone ? 40 : 42) / d, (lone ? 1 : 99) / d);
        }
    }
}

EVERYWHERE(t08_all_reduce_of_nests, check_t08)

typedef struct gradient_case {
    ls_reduce_op op;
    double first; /* replica i multiplies by first + 2i */
} gradient_case;

static ls_value *all_reduce_gradient(ls_value *arguments, void *user)
{
    const gradient_case *g = user;
    ls_tensor *x = ls_item(arguments, 0);
    ls_tape *tape = ls_tape_open();
    ls_tensor *r = ls_leaf_tensor(ls_all_reduce(ls_get_replica_context(), g->op, ls_leaf(x)));
    ls_tensor *y = ls_mul(r, my_number(g->first, 2));
    return ls_leaf(ls_gradient(tape, y, x));
}

static void check_t09(ls_strategy *s, int n, bool traced)
{
    double first = n == 1 ? 4 : 1, sum = 0;
    for (int i = 0; i < n; i++)
        sum += first + 2 * i;
    ls_value *x = number(42);
    ls_value *dsum =
        run_step(s, traced, all_reduce_gradient, &(gradient_case){ LS_SUM, first }, ls_list(1, &x));
    ls_value *dmean = run_step(s, traced, all_reduce_gradient, &(gradient_case){ LS_MEAN, first },
                               ls_list(1, &x));
    HOLDS_EACH(dsum, n, sum, 0);
    HOLDS_EACH(dmean, n, sum / n, 0);
    if (n == 2)
        assert_true(sum == 4);
}

EVERYWHERE(t09_gradients_of_all_reduce, check_t09)

/* ---- T10, T11: reductions by every cross-device operation and packing ------------------------------ */

/* Replica r has first + r, and first + r + 1: T11's [1,2], [3,4]... have a step of two. */
static ls_value *numbers_from(ls_strategy *s, int n, double first, double step, int count)
{
    ls_value *each[MOST_REPLICAS];
    for (int r = 0; r < n; r++) {
        float x[2] = { (float)(first + step * r), (float)(first + step * r + 1) };
        each[r] = ls_leaf(ls_from(LS_F32, count == 1 ? 0 : 1, &(int64_t){ count }, x));
    }
    return ls_per_replica(s, each);
}

static double at(const ls_value *mirrored, int replica, int element)
{
    float x[2] = { 0, 0 };
    ls_tensor *t = ls__leaf_component(mirrored, replica);
    ls_copy_out(t, x, ls_size_in_bytes(t));
    return x[element];
}

static void check_t10_t11(ls_strategy *s, int n)
{
    static const double sums[] = { 0, 1, 3, 0, 10 }, means[] = { 0, 1, 1.5, 0, 2.5 };
    ls_value *v = numbers_from(s, n, 1, 1, 1);
    ls_value *sum = ls_reduce_to(s, LS_SUM, v, ls_at_value(v));
    ls_value *mean = ls_reduce_to(s, LS_MEAN, v, ls_at_value(v));
    GAVE(sum);
    GAVE(mean);
    assert_true(at(sum, n - 1, 0) == sums[n] && at(mean, n - 1, 0) == means[n]);
    ls_value *pair = numbers_from(s, n, 1, 2, 2), *batch[] = { pair, v, pair };
    ls_destination *to[] = { ls_at_value(pair), ls_at_value(v), ls_at_value(pair) };
    sum = ls_batch_reduce_to(s, LS_SUM, 3, batch, to);
    mean = ls_batch_reduce_to(s, LS_MEAN, 3, batch, to);
    GAVE(sum);
    GAVE(mean);
    for (int e = 0; e < 2; e++) { /* n = 2: [4,6], [2,3]; n = 4: [16,20], [4,5] */
        double want = n * (n - 1.0) + n * (1.0 + e);
        for (int k = 0; k < 3; k += 2)
            assert_true(at(ls_child(sum, k), n - 1, e) == want &&
                        at(ls_child(mean, k), n - 1, e) == want / n);
    }
    assert_true(at(ls_child(sum, 1), 0, 0) == sums[n] && at(ls_child(mean, 1), 0, 0) == means[n]);
}

static void t10_t11_dense_values_and_batches(void **state)
{
    (void)state;
    static const char *const devices[] = { "/cpu:0", "/cpu:0,/cpu:1", "/cpu:0,/cpu:1,/cpu:2" };
    static const ls_cross_device how[] = { LS_CROSS_DEVICE_DIRECT, LS_CROSS_DEVICE_HIERARCHICAL,
                                           LS_CROSS_DEVICE_TO_ONE };
    for (int n = 1; n <= 4; n *= 2)
        for (int d = 0; d < 3 && d < n; d++)
            for (int k = 0; k < 3; k++)
                for (int packs = 0; packs < 4; packs++)
                    LS_FRAME {
                        ls_strategy *s = ls_mirrored(
                            LS_MIRRORED(.devices = devices[d], .replicas = n,
                                        .cross_device = how[k], .num_packs = packs == 1 ? 2 : 0,
                                        .bytes_per_pack = packs == 2 ? 4 : 0,
                                        .small_bytes = packs == 3 ? 64 : 0,
                                        .small_group = packs == 3 ? 2 : 0));
                        GAVE(s);
                        check_t10_t11(s, n);
                        free_strategy(s);
                    }
}

/* ---- T15: dense and sparse together --------------------------------------------------------- */

/* Row i, then row 0, of a table of 8 rows of 1. */
static ls_value *slices(int i)
{
    return ls_leaf(ls_sparse(ls_from(LS_I64, LS_DIMS(2), (int64_t[]){ i, 0 }),
                             ls_from(LS_F32, LS_DIMS(2, 1), (float[]){ (float)i + 1, 10 }), 8));
}

static ls_value *t15_values(int replica, int replicas, void *user)
{
    (void)replicas, (void)user;
    ls_value *four[] = { number(1 + 2 * replica), number(2 + 2 * replica), slices(replica),
                         slices(7 - replica) };
    return ls_list(4, four);
}

/* All rows of all replicas, in order; MEAN divides the values. */
static void holds_slices(ls_tensor *t, int n, int base, int sign, double divide)
{
    assert_true(ls_is_sparse(t));
    double rows[2 * MOST_REPLICAS], values[2 * MOST_REPLICAS];
    for (int i = 0; i < n; i++) {
        rows[2 * i] = base + sign * i, rows[2 * i + 1] = 0;
        values[2 * i] = (base + sign * i + 1) / divide, values[2 * i + 1] = 10 / divide;
    }
    holds_all(__FILE__, __LINE__, ls_sparse_rows(t), (size_t)(2 * n), rows);
    holds_all(__FILE__, __LINE__, ls_sparse_values(t), (size_t)(2 * n), values);
}

static ls_value *t15_step(ls_value *arguments, void *user)
{
    (void)arguments;
    return ls_all_reduce(ls_get_replica_context(), *(ls_reduce_op *)user,
                         t15_values(my_id(), 0, NULL));
}

static void check_t15(ls_strategy *s, int n, bool traced)
{
    static ls_reduce_op ops[] = { LS_SUM, LS_MEAN };
    ls_value *all = ls_distribute_values(s, t15_values, NULL);
    GAVE(all);
    for (int k = 0; k < 2; k++) {
        double d = k ? n : 1, id = n * (n - 1);
        ls_value *values[4], *out;
        ls_destination *to[4];
        for (int i = 0; i < 4; i++)
            values[i] = ls_child(all, i), to[i] = ls_at_value(values[i]);
        out = traced ? run_step(s, true, t15_step, &ops[k], nothing())
                     : ls_batch_reduce_to(s, ops[k], 4, values, to);
        GAVE(out);
        assert_int_equal(ls_length(out), 4);
        for (int i = 0; i < n; i++) {
            HOLDS(part(ls_child(out, 0), i), (n + id) / d);
            HOLDS(part(ls_child(out, 1), i), (2 * n + id) / d);
            holds_slices(part(ls_child(out, 2), i), n, 0, 1, d);
            holds_slices(part(ls_child(out, 3), i), n, 7, -1, d);
        }
    }
}

EVERYWHERE(t15_dense_and_sparse_in_one_batch, check_t15)

/* ---- T17, T38: values that are not distributed; the first only ----------------------------------- */

static void check_t17(ls_strategy *s, int n, bool traced)
{
    /* What a traced step got from outside and hands back is plain, too. */
    ls_value *five = number(5), *zero = number(0);
    if (!traced)
        five = ls_run_eager(s, give_back, NULL, five);
    assert_int_equal(ls_spread_of(five), LS_SPREAD_PLAIN);
    HOLDS(ls_reduce(s, LS_MEAN, five, LS_NO_AXIS), 5);
    HOLDS(ls_reduce(s, LS_SUM, zero, LS_NO_AXIS), 0);
    HOLDS(ls_reduce(s, LS_MEAN, zero, LS_NO_AXIS), 0);
    if (n == 1) {
        HOLDS(ls_reduce(s, LS_SUM, five, LS_NO_AXIS), 5);
        return;
    }
    assert_null(ls_reduce(s, LS_SUM, five, LS_NO_AXIS));
    FAILS(LS_INVALID, "SUM", "replica");
}

EVERYWHERE(t17_values_that_are_not_distributed, check_t17)

static ls_value *three_plus_5id(ls_value *arguments, void *user)
{
    (void)arguments, (void)user;
    return ls_leaf(my_number(3, 5));
}

static void check_t38(ls_strategy *s, int n, bool traced)
{
    ls_value *v = run_step(s, traced, three_plus_5id, NULL, nothing());
    HOLDS_EACH(v, n, 3, 5);
    HOLDS(ls_reduce(s, LS_ONLY_FIRST, v, LS_NO_AXIS), 3);
    HOLDS_EACH(ls_reduce_to(s, LS_ONLY_FIRST, v, ls_at_value(v)), n, 3, 0);
    HOLDS(ls_leaf_tensor(ls_reduce_to(s, LS_ONLY_FIRST, v, ls_at_device("/cpu:0"))), 3);
}

EVERYWHERE(t38_reduce_takes_the_first_only, check_t38)

/* ---- T33, T35: variables that replicas write ---------------------------------------------------------- */

typedef ls_status (*write_fn)(ls_variable *v, ls_tensor *value);

typedef struct write_case {
    ls_variable *v;
    write_fn write;
    bool id; /* writes the replica's id, else `constant` */
    double constant;
} write_case;

static ls_value *write_it(ls_value *arguments, void *user)
{
    (void)arguments;
    const write_case *w = user;
    ls_tensor *x = w->id ? my_number(0, 1) : ls_scalar(LS_F32, w->constant);
    return w->write(w->v, x) ? NULL : ls_leaf(ls_read(w->v));
}

static void writes(ls_strategy *s, bool traced, double start, write_case w, double want)
{
    LS_SCOPE (s)
        w.v = ls_variable_with(LS_VARIABLE(.aggregation = LS_AGGREGATE_MEAN), "v",
                               ls_scalar(LS_F32, start));
    ls_value *seen = run_step(s, traced, write_it, &w, nothing());
    HOLDS_EACH(seen, ls_num_replicas(s), want, 0);
    HOLDS(ls_read(w.v), want);
    for (int i = 0; i < ls_num_replicas(s); i++)
        HOLDS(ls_read(ls_variable_component(w.v, i)), want);
    ls_variable_free(w.v);
}

static void check_t33(ls_strategy *s, int n, bool traced)
{
    double mean = (n - 1) / 2.0;
    writes(s, traced, 1, (write_case){ .write = ls_assign, .id = true }, mean);
    writes(s, traced, 1, (write_case){ .write = ls_assign_add, .id = true }, 1 + mean);
    writes(s, traced, 5, (write_case){ .write = ls_assign_sub, .id = true }, 5 - mean);
    writes(s, traced, 1, (write_case){ .write = ls_assign, .constant = 5 }, 5);
    writes(s, traced, 1, (write_case){ .write = ls_assign_add, .constant = 5 }, 6);
    writes(s, traced, 5, (write_case){ .write = ls_assign_sub, .constant = 1 }, 4);
}

EVERYWHERE(t33_mirrored_variables_with_aggregation_mean, check_t33)

static ls_value *count_one(ls_value *arguments, void *user)
{
    (void)arguments;
    return ls_assign_add(user, ls_scalar_int(LS_I64, 1)) ? NULL : nothing();
}

static void check_t35(ls_strategy *s, int n, bool traced)
{
    (void)n;
    ls_variable *step = NULL;
    LS_SCOPE (s)
        step = ls_variable_with(LS_VARIABLE(.aggregation = LS_AGGREGATE_ONLY_FIRST), "global_step",
                                ls_scalar_int(LS_I64, 0));
    GAVE(run_step(s, traced, count_one, step, nothing()));
    HOLDS(ls_read(step), 1);
    GAVE(run_step(s, traced, count_one, step, nothing()));
    HOLDS(ls_read(step), 2);
    assert_int_equal(ls_dtype_of(ls_read(step)), LS_I64);
    ls_variable_free(step);
}

EVERYWHERE(t35_a_global_step_counts_once, check_t35)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(t01_the_sum_of_replica_ids),
        TEST(t02_reduce_over_replicas_and_over_the_batch),
        TEST(t03_a_last_batch_that_is_smaller),
        TEST(t04_rows_of_different_numbers_float_and_int),
        TEST(t05_equal_rows),
        TEST(t07_run_with_results_as_arguments),
        TEST(t08_all_reduce_of_nests),
        TEST(t09_gradients_of_all_reduce),
        TEST(t10_t11_dense_values_and_batches),
        TEST(t15_dense_and_sparse_in_one_batch),
        TEST(t17_values_that_are_not_distributed),
        TEST(t33_mirrored_variables_with_aggregation_mean),
        TEST(t35_a_global_step_counts_once),
        TEST(t38_reduce_takes_the_first_only),
    };
    return RUN_TESTS(tests);
}
