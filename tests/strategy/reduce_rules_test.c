/*
 * The rules of reduce, reduce_to, batch_reduce_to, mirror_to, gather and all_reduce: order of
 * sums, dtypes, axes, values that are not distributed, sparse ones, destinations.
 */
#include "strategy/strategy_support.h"

#include <math.h>
#include <stdio.h>

/* ---- the tree ------------------------------------------------------------------------- */

static float element(int replica, int at)
{
    return (float)sin(1.0 + 3.7 * replica + 0.31 * at) * (replica % 2 ? 1e4f : 1e-3f);
}

enum { LENGTH = 13 };

static ls_value *rough(int replica, int replicas, void *user)
{
    (void)replicas, (void)user;
    float data[LENGTH];
    for (int i = 0; i < LENGTH; i++)
        data[i] = element(replica, i);
    return ls_leaf(ls_from(LS_F32, LS_DIMS(LENGTH), data));
}

static ls_value *all_sums(ls_value *arguments, void *user)
{
    return ls_all_reduce(ls_get_replica_context(), *(ls_reduce_op *)user, arguments);
}

static void has_bits(ls_tensor *t, const float *want)
{
    float got[LENGTH];
    if (!t || ls_copy_out(t, got, sizeof got))
        fail_msg("no sum: %s", ls_error_report());
    for (int i = 0; i < LENGTH; i++)
        if (memcmp(&got[i], &want[i], sizeof(float)) != 0)
            fail_msg("element %d is %.9g, not %.9g", i, (double)got[i], (double)want[i]);
}

/* ((0+1)+(2+3))+4, and a mean is the sum divided by V. */
static void check_tree(ls_strategy *s, int n, bool traced)
{
    float sum[LENGTH], mean[LENGTH];
    for (int i = 0; i < LENGTH; i++) {
        float v[MOST_REPLICAS];
        for (int r = 0; r < n; r++)
            v[r] = element(r, i);
        for (int gap = 1; gap < n; gap *= 2)
            for (int r = 0; r + gap < n; r += 2 * gap)
                v[r] += v[r + gap];
        sum[i] = v[0];
        mean[i] = v[0] / (float)n;
    }
    ls_value *x = ls_distribute_values(s, rough, NULL);
    has_bits(ls_reduce(s, LS_SUM, x, LS_NO_AXIS), sum);
    has_bits(ls_reduce(s, LS_MEAN, x, LS_NO_AXIS), mean);
    ls_value *to = ls_reduce_to(s, LS_SUM, x, ls_at_value(x));
    ls_value *a = run_step(s, traced, all_sums, &(ls_reduce_op){ LS_SUM }, x);
    ls_value *b = run_step(s, traced, all_sums, &(ls_reduce_op){ LS_MEAN }, x);
    GAVE(to);
    GAVE(a);
    GAVE(b);
    for (int i = 0; i < n; i++) {
        has_bits(part(to, i), sum);
        has_bits(part(a, i), sum);
        has_bits(part(b, i), mean);
    }
}

static void sums_follow_the_tree_on_every_placement(void **state)
{
    (void)state;
    for (int n = 1; n <= MOST_REPLICAS; n++)
        everywhere_of(n, check_tree);
}

/* ---- operators and dtypes ------------------------------------------------------------------ */

static void operators_have_names_in_any_case(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        ls_reduce_op op;
    } good[] = { { "sum", LS_SUM },   { "SUM", LS_SUM },   { "Sum", LS_SUM },
                 { "mean", LS_MEAN }, { "MEAN", LS_MEAN }, { "only_first", LS_ONLY_FIRST } };
    ls_reduce_op op;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        op = (ls_reduce_op)0;
        OK(ls_reduce_op_named(good[i].name, &op));
        assert_int_equal(op, good[i].op);
    }
    op = LS_MEAN;
    assert_int_equal(ls_reduce_op_named("median", &op), LS_INVALID);
    FAILS(LS_INVALID, "median", "sum", "mean");
    assert_int_equal(ls_reduce_op_named("", &op), LS_INVALID);
    ls_error();
    assert_int_equal(ls_reduce_op_named(NULL, &op), LS_INVALID);
    FAILS(LS_INVALID, "name");
    assert_int_equal(ls_reduce_op_named("sum", NULL), LS_INVALID);
    ls_error();
    assert_int_equal(op, LS_MEAN); /* written on success only */
    assert_string_equal(ls_reduce_op_name(LS_SUM), "SUM");
    assert_string_equal(ls_reduce_op_name(LS_MEAN), "MEAN");
    assert_string_equal(ls_reduce_op_name(LS_ONLY_FIRST), "ONLY_FIRST");
    assert_string_equal(ls_reduce_op_name((ls_reduce_op)99), "?");
}

static void check_bad_operators(ls_strategy *s, int n, bool traced)
{
    static const int bad[] = { 0, 4, -1, LS_AGGREGATE_SUM, LS_AGGREGATE_MEAN };
    ls_value *x = numbers(s, 1, 1);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ls_reduce_op op = (ls_reduce_op)bad[i];
        char text[32];
        snprintf(text, sizeof text, "%d", bad[i]);
        assert_null(ls_reduce(s, op, x, LS_NO_AXIS));
        FAILS(LS_INVALID, text, "op");
        assert_null(ls_reduce_to(s, op, x, ls_at_value(x)));
        FAILS(LS_INVALID, text, "op");
        assert_null(ls_batch_reduce_to(s, op, 1, &x, (ls_destination *[]){ ls_at_value(x) }));
        FAILS(LS_INVALID, text, "op");
        assert_null(run_step(s, traced, all_sums, &op, x));
        FAILS(LS_INVALID, text, "op");
    }
    assert_null(run_step(s, traced, all_sums, &(ls_reduce_op){ LS_ONLY_FIRST }, x));
    FAILS(LS_INVALID, "ONLY_FIRST");
    ls_value *rows = ls_distribute_values(s, rough, NULL);
    assert_null(ls_reduce(s, LS_ONLY_FIRST, rows, 0));
    FAILS(LS_INVALID, "ONLY_FIRST", "axis");
    HOLDS(ls_reduce(s, LS_SUM, x, LS_NO_AXIS), n + n * (n - 1) / 2);
}

EVERYWHERE(what_is_no_reduce_operator_is_refused, check_bad_operators)

static ls_value *typed(int replica, int replicas, void *user)
{
    (void)replicas;
    return ls_leaf(ls_scalar(*(ls_dtype *)user, replica + 1));
}

static void check_dtypes(ls_strategy *s, int n, bool traced)
{
    static ls_dtype dtypes[] = { LS_F32, LS_F64, LS_I32, LS_I64 };
    for (int d = 0; d < 4; d++) {
        ls_dtype mean = d < 2 ? dtypes[d] : LS_F64;
        ls_value *x = ls_distribute_values(s, typed, &dtypes[d]);
        double sum = n * (n + 1) / 2.0;
        ls_tensor *got[] = {
            ls_reduce(s, LS_SUM, x, LS_NO_AXIS),
            part(ls_reduce_to(s, LS_SUM, x, ls_at_value(x)), 0),
            part(run_step(s, traced, all_sums, &(ls_reduce_op){ LS_SUM }, x), n - 1),
            ls_reduce(s, LS_MEAN, x, LS_NO_AXIS),
            part(ls_reduce_to(s, LS_MEAN, x, ls_at_value(x)), 0),
            part(run_step(s, traced, all_sums, &(ls_reduce_op){ LS_MEAN }, x), n - 1),
        };
        for (int i = 0; i < 6; i++) {
            HOLDS(got[i], i < 3 ? sum : sum / n);
            assert_int_equal(ls_dtype_of(got[i]), i < 3 ? dtypes[d] : mean);
        }
    }
}

EVERYWHERE(sums_keep_their_dtype_and_means_of_integers_are_f64, check_dtypes)

/* ---- what is not distributed ------------------------------------------------------------------- */

static void check_not_distributed(ls_strategy *s, int n, bool traced)
{
    (void)traced;
    ls_value *per = numbers(s, 0, 1), *five = number(5);
    ls_value *mirrored = ls_mirror_to(s, ls_scalar(LS_F32, 5), ls_at_value(per));
    ls_value *both[] = { five, mirrored };
    for (int i = 0; i < 2; i++) {
        HOLDS(ls_reduce(s, LS_MEAN, both[i], LS_NO_AXIS), 5);
        HOLDS(ls_reduce(s, LS_ONLY_FIRST, both[i], LS_NO_AXIS), 5);
        HOLDS_EACH(ls_reduce_to(s, LS_MEAN, both[i], ls_at_value(per)), n, 5, 0);
        if (n == 1) {
            HOLDS(ls_reduce(s, LS_SUM, both[i], LS_NO_AXIS), 5);
            HOLDS_EACH(ls_reduce_to(s, LS_SUM, both[i], ls_at_value(per)), n, 5, 0);
            continue;
        }
        assert_null(ls_reduce(s, LS_SUM, both[i], LS_NO_AXIS));
        FAILS(LS_INVALID, "SUM", i ? "mirrored" : "plain", "replica");
        assert_null(ls_reduce_to(s, LS_SUM, both[i], ls_at_value(per)));
        FAILS(LS_INVALID, "SUM", i ? "mirrored" : "plain", "replica");
    }
    static const ls_dtype dtypes[] = { LS_F32, LS_F64, LS_I32, LS_I64 };
    static const ls_reduce_op ops[] = { LS_SUM, LS_MEAN, LS_ONLY_FIRST };
    for (int d = 0; d < 4; d++)
        for (int k = 0; k < 3; k++) {
            ls_value *zero = ls_leaf(ls_scalar(dtypes[d], 0));
            HOLDS(ls_reduce(s, ops[k], zero, LS_NO_AXIS), 0);
        }
    /* Over an axis, too. */
    ls_value *row = ls_leaf(ls_from(LS_F32, LS_DIMS(3), (float[]){ 1, 2, 6 }));
    HOLDS(ls_reduce(s, LS_MEAN, row, 0), 3);
    if (n == 1) {
        HOLDS(ls_reduce(s, LS_SUM, row, 0), 9);
    } else {
        assert_null(ls_reduce(s, LS_SUM, row, 0));
        FAILS(LS_INVALID, "SUM", "plain");
    }
    ls_value *whole = ls_leaf(ls_from(LS_I32, LS_DIMS(2), (int32_t[]){ 1, 2 }));
    HOLDS(ls_reduce(s, LS_MEAN, whole, -1), 1.5);
    /* Nests are for reduce_to. */
    assert_null(ls_reduce(s, LS_SUM, pair(per, per), LS_NO_AXIS));
    FAILS(LS_INVALID, "leaf");
    ls_value *nest =
        ls_dict(2, (const char *[]){ "x", "y" }, (ls_value *[]){ per, pair(per, per) });
    ls_value *sums = ls_reduce_to(s, LS_SUM, nest, ls_at_value(per));
    GAVE(sums);
    HOLDS_EACH(ls_get(sums, "x"), n, n * (n - 1) / 2, 0);
    HOLDS_EACH(ls_child(ls_get(sums, "y"), 1), n, n * (n - 1) / 2, 0);
    /* A value of another number of replicas. */
    ls_strategy *more = replicas_on(n + 1, 1);
    assert_null(ls_reduce(s, LS_SUM, numbers(more, 0, 1), LS_NO_AXIS));
    FAILS(LS_INVALID, "replica");
    free_strategy(more);
}

EVERYWHERE(plain_and_mirrored_values_are_their_mean_and_have_no_sum, check_not_distributed)

/* ---- axes ------------------------------------------------------------------------------------------ */

/* Replica i: a matrix of i rows of [i, 2i, 3i]: replica 0 has none. */
static ls_value *uneven(int replica, int replicas, void *user)
{
    (void)replicas, (void)user;
    float data[3 * MOST_REPLICAS];
    for (int i = 0; i < 3 * replica; i++)
        data[i] = (float)(replica * (i % 3 + 1));
    return ls_leaf(ls_from(LS_F32, LS_DIMS(replica, 3), data));
}

typedef struct shaped {
    int rank;
    int64_t dims[2][2]; /* of the last replica, and of the others */
    ls_dtype dtypes[2];
    int last_rank;
} shaped;

static ls_value *of_shape(int replica, int replicas, void *user)
{
    const shaped *h = user;
    int k = replica == replicas - 1 ? 0 : 1;
    return ls_leaf(ls_ones(h->dtypes[k], k ? h->rank : h->last_rank, h->dims[k]));
}

static void check_axes(ls_strategy *s, int n, bool traced)
{
    (void)traced;
    double rows = 0, sum = 0;
    for (int i = 0; i < n; i++)
        rows += i, sum += i * i;
    ls_value *x = ls_distribute_values(s, uneven, NULL);
    for (int axis = 0; axis >= -2; axis -= 2) {
        ls_tensor *total = ls_reduce(s, LS_SUM, x, axis);
        HOLDS(total, sum, 2 * sum, 3 * sum);
        assert_int_equal(ls_rank(total), 1);
        if (n > 1)
            HOLDS(ls_reduce(s, LS_MEAN, x, axis), sum / rows, 2 * sum / rows, 3 * sum / rows);
        else
            assert_true(isnan(ls_to_float(
                ls_slice(ls_reduce(s, LS_MEAN, x, axis), LS_DIMS(0), (int64_t[]){ 1 }))));
    }
    static const int bad[] = { 2, -3, 100, INT_MAX, INT_MIN + 1 };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[32];
        snprintf(text, sizeof text, "%d", bad[i]);
        assert_null(ls_reduce(s, LS_SUM, x, bad[i]));
        FAILS(LS_INVALID, "axis", text, "2");
        assert_null(ls_reduce(s, LS_MEAN, x, bad[i]));
        FAILS(LS_INVALID, "axis", text, "2");
    }
    assert_null(ls_reduce(s, LS_SUM, numbers(s, 0, 1), 0));
    FAILS(LS_INVALID, "axis");
    if (n == 1)
        return;
    static shaped unlike[] = {
        { 2, { { 4, 2 }, { 4, 3 } }, { LS_F32, LS_F32 }, 2 }, /* another axis differs */
        { 2, { { 4, 0 }, { 4, 3 } }, { LS_F32, LS_F32 }, 1 }, /* another rank */
        { 2, { { 4, 3 }, { 4, 3 } }, { LS_F64, LS_F32 }, 2 }, /* another dtype */
        { 1, { { 1, 0 }, { 3, 0 } }, { LS_F32, LS_F32 }, 1 }, /* would broadcast */
    };
    for (int i = 0; i < 4; i++) {
        ls_value *v = ls_distribute_values(s, of_shape, &unlike[i]);
        GAVE(v);
        if (i < 3) {
            assert_null(ls_reduce(s, LS_SUM, v, 0));
            FAILS(LS_SHAPE, n > 2 ? "replicas 0 to" : "replica 0", replica_named(n - 1, n));
        }
        assert_null(ls_reduce(s, LS_SUM, v, LS_NO_AXIS));
        FAILS(LS_SHAPE, n > 2 ? "replicas 0 to" : "replica 0", replica_named(n - 1, n));
        assert_null(ls_reduce_to(s, LS_MEAN, v, ls_at_value(v)));
        FAILS(LS_SHAPE, n > 2 ? "replicas 0 to" : "replica 0", replica_named(n - 1, n));
    }
}

EVERYWHERE(axes_count_from_the_end_too_and_rows_may_differ, check_axes)

static void check_gather(ls_strategy *s, int n, bool traced)
{
    (void)traced;
    double rows = n * (n - 1) / 2;
    ls_value *x = ls_distribute_values(s, uneven, NULL);
    ls_tensor *all = ls_gather_replicas(s, x, 0);
    GAVE(all);
    assert_int_equal(ls_dim(all, 0), (int64_t)rows);
    if (n == 3)
        HOLDS(all, 1, 2, 3, 2, 4, 6, 2, 4, 6);
    assert_int_equal(ls_dim(ls_gather_replicas(s, x, -2), 0), (int64_t)rows);
    assert_null(ls_gather_replicas(s, x, 2));
    FAILS(LS_INVALID, "axis", "2");
    assert_null(ls_gather_replicas(s, numbers(s, 0, 1), 0));
    FAILS(LS_INVALID, "rank-0");
    if (n > 1) {
        assert_null(ls_gather_replicas(s, x, 1));
        FAILS(LS_SHAPE, "replica");
    }
}

EVERYWHERE(gather_puts_replicas_behind_one_another, check_gather)

/* ---- sparse ------------------------------------------------------------------------------------------- */

/* Replica i has i + 1 rows, all of them row i, of a table of 9 (the last of another one with
 * user): two columns. */
static ls_value *some_rows(int replica, int replicas, void *user)
{
    int64_t rows[MOST_REPLICAS];
    float values[2 * MOST_REPLICAS];
    for (int i = 0; i <= replica; i++)
        rows[i] = replica, values[2 * i] = (float)(10 * replica), values[2 * i + 1] = (float)i;
    int64_t table = user && replica == replicas - 1 ? 10 : 9;
    return ls_leaf(ls_sparse(ls_from(LS_I64, LS_DIMS(replica + 1), rows),
                             ls_from(LS_F32, LS_DIMS(replica + 1, 2), values), table));
}

static void check_sparse(ls_strategy *s, int n, bool traced)
{
    ls_value *x = ls_distribute_values(s, some_rows, NULL);
    for (int mean = 0; mean < 2; mean++) {
        ls_reduce_op op = mean ? LS_MEAN : LS_SUM;
        double rows[64], values[64];
        int at = 0;
        for (int r = 0; r < n; r++)
            for (int i = 0; i <= r; i++, at++) {
                rows[at] = r;
                values[2 * at] = 10.0 * r / (mean ? n : 1);
                values[2 * at + 1] = (double)i / (mean ? n : 1);
            }
        ls_tensor *got[] = { ls_reduce(s, op, x, LS_NO_AXIS),
                             part(ls_reduce_to(s, op, x, ls_at_value(x)), n - 1),
                             part(run_step(s, traced, all_sums, &op, x), n - 1) };
        for (int i = 0; i < 3; i++) {
            GAVE(got[i]);
            assert_true(ls_is_sparse(got[i]));
            holds_all(__FILE__, __LINE__, ls_sparse_rows(got[i]), (size_t)at, rows);
            holds_all(__FILE__, __LINE__, ls_sparse_values(got[i]), 2 * (size_t)at, values);
        }
    }
    assert_null(ls_gather_replicas(s, x, 0));
    assert_int_equal(ls_error(), LS_UNSUPPORTED);
    if (n > 1) {
        ls_value *other = ls_distribute_values(s, some_rows, s);
        assert_null(ls_reduce(s, LS_SUM, other, LS_NO_AXIS));
        FAILS(LS_SHAPE, "9", "10");
    }
}

EVERYWHERE(sparse_values_are_put_behind_one_another, check_sparse)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(sums_follow_the_tree_on_every_placement),
        TEST(operators_have_names_in_any_case),
        TEST(what_is_no_reduce_operator_is_refused),
        TEST(sums_keep_their_dtype_and_means_of_integers_are_f64),
        TEST(plain_and_mirrored_values_are_their_mean_and_have_no_sum),
        TEST(axes_count_from_the_end_too_and_rows_may_differ),
        TEST(gather_puts_replicas_behind_one_another),
        TEST(sparse_values_are_put_behind_one_another),
    };
    return RUN_TESTS(tests);
}
