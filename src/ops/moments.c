/*
 * Moments in two steps, for batch normalisation over replicas: batch_moments is what one
 * replica's rows have, merge_moments puts V of them together (DESIGN rule K).
 *
 * Invariant: pairs are merged in the order of the tree over replicas (rule B), in double, by Chan's
 * formula, which needs no second look at the rows and does not cancel:
 *
 *     n = na + nb    d = mean_b - mean_a    mean = mean_a + d nb/n    M2 = M2a + M2b + d^2 na nb/n
 *
 * with M2 = variance n, the sum of squares around the mean. A replica without rows changes
 * nothing, not even a bit. Neither row has a gradient: who meets has (strategy/sync_batch_norm.c).
 */
#include "ops/moments.h"

#include "collective/tree.h"
#include "dispatch/call.h"
#include "kernels/norm.h"
#include "ops/replicas.h"
#include "ops/shape.h"

static ls_status moments_outputs(ls_call *c, int64_t cols)
{
    ls_dtype dtype = c->in[0]->dtype;
    ls_status st = ls_call_output(c, 0, dtype, 1, &cols);
    if (!st)
        st = ls_call_output(c, 1, dtype, 1, &cols);
    return st ? st : ls_call_output(c, 2, LS_F64, 0, NULL);
}

/* ---- batch_moments: x -> mean, variance, rows ---------------------------------------------- */

static ls_status batch_moments_shape(ls_call *c)
{
    ls_status st = ls__want_dtype(c, 0, LS__BIT(LS_F32) | LS__BIT(LS_F64));
    if (!st)
        st = ls__want_rank_at_least(c, 0, 1);
    return st ? st : moments_outputs(c, ls__row_size(c->in[0]));
}

static ls_status batch_moments_kernel(ls_call *c)
{
    int64_t rows = ls__row_count(c->in[0]), cols = ls__row_size(c->in[0]);
    *(double *)c->out_data[2] = (double)rows;
    if (cols == 0)
        return LS_OK;
    if (c->in[0]->dtype == LS_F64)
        ls__ref_norm_batch_stats_f64(c->in_data[0], c->out_data[0], c->out_data[1], rows, cols);
    else
        LS__PICK(ls__norm_table)
            ->batch_stats(c->in_data[0], c->out_data[0], c->out_data[1], rows, cols);
    return LS_OK;
}

static const ls_op batch_moments = {
    .size = sizeof(ls_op),
    .name = "batch_moments",
    .inputs = 1,
    .outputs = 3,
    .flags = LS_OP_TOTAL,
    .shape = batch_moments_shape,
    .kernel = batch_moments_kernel,
};

/* ---- merge_moments: V means, V variances, V rows -> mean, variance, rows --------------------- */

typedef struct merge_attrs {
    int64_t replicas;
} merge_attrs;

static const ls_attr merge_attr_list[] = { LS_ATTR_INT(merge_attrs, replicas), LS_ATTR_END };

static ls_status merge_moments_shape(ls_call *c)
{
    int64_t v = ((const merge_attrs *)c->attrs)->replicas;
    if (v < 1 || v > LS__MOST_REPLICAS || c->n_inputs != 3 * v)
        return ls_call_fail(c, LS_INVALID, "%d inputs for %lld replicas, wants 3 of each",
                            c->n_inputs, (long long)v);
    ls_status st = ls__want_dtype(c, 0, LS__BIT(LS_F32) | LS__BIT(LS_F64));
    if (!st)
        st = ls__want_rank(c, 0, 1);
    if (!st)
        st = ls__replicas_alike(c->op->name, (int)v, c->in, -1);
    if (!st)
        st = ls__replicas_alike(c->op->name, (int)v, c->in + v, -1);
    if (!st && !ls__spec_equal(c->in[0], c->in[v]))
        st = ls_call_fail(c, LS_SHAPE, "means and variances differ in shape or dtype");
    for (int64_t i = 2 * v; i < 3 * v && !st; i++)
        if (c->in[i]->dtype != LS_F64 || c->in[i]->rank != 0)
            st = ls_call_fail(c, LS_SHAPE, "input %lld is no number of rows, f64[]", (long long)i);
    return st ? st : moments_outputs(c, c->in[0]->dims[0]);
}

typedef struct moment {
    double rows, mean, m2;
} moment;

static moment merged(moment a, moment b)
{
    if (b.rows == 0)
        return a;
    if (a.rows == 0)
        return b;
    double rows = a.rows + b.rows, d = b.mean - a.mean;
    return (moment){ rows, a.mean + d * (b.rows / rows),
                     (a.m2 + b.m2) + d * d * (a.rows * b.rows / rows) };
}

static double number(ls_dtype dtype, const void *array, int64_t at)
{
    return dtype == LS_F64 ? ((const double *)array)[at] : (double)((const float *)array)[at];
}

static void set_number(ls_dtype dtype, void *array, int64_t at, double to)
{
    if (dtype == LS_F64)
        ((double *)array)[at] = to;
    else
        ((float *)array)[at] = (float)to;
}

static moment merged_column(const ls_call *c, int v, int64_t column)
{
    ls_dtype dtype = c->in[0]->dtype;
    moment at[LS__MOST_REPLICAS];
    for (int r = 0; r < v; r++) {
        double rows = *(const double *)c->in_data[2 * v + r];
        at[r] = (moment){ rows, number(dtype, c->in_data[r], column),
                          number(dtype, c->in_data[v + r], column) * rows };
    }
    for (int gap = 1; gap < v; gap *= 2)
        for (int r = 0; r + gap < v; r += 2 * gap)
            at[r] = merged(at[r], at[r + gap]);
    return at[0];
}

static ls_status merge_moments_kernel(ls_call *c)
{
    int v = (int)((const merge_attrs *)c->attrs)->replicas;
    ls_dtype dtype = c->in[0]->dtype;
    double rows = 0;
    for (int r = 0; r < v; r++)
        rows += *(const double *)c->in_data[2 * v + r];
    for (int64_t i = 0; i < c->in[0]->dims[0]; i++) {
        moment all = merged_column(c, v, i);
        set_number(dtype, c->out_data[0], i, rows > 0 ? all.mean : 0);
        set_number(dtype, c->out_data[1], i, rows > 0 ? all.m2 / rows : 0);
    }
    *(double *)c->out_data[2] = rows;
    return LS_OK;
}

static const ls_op merge_moments = {
    .size = sizeof(ls_op),
    .name = "merge_moments",
    .inputs = LS_ANY_NUMBER,
    .outputs = 3,
    .flags = LS_OP_TOTAL,
    .attr_size = sizeof(merge_attrs),
    .attrs = merge_attr_list,
    .shape = merge_moments_shape,
    .kernel = merge_moments_kernel,
};

/* ---- calling ------------------------------------------------------------------------------- */

static ls_status call(const ls_op *op, const void *attrs, int n, ls_tensor *const *in,
                      ls__moments *out)
{
    ls_tensor *results[3];
    ls_status st = ls__call(op, attrs, n, in, 0, NULL, results);
    if (!st)
        *out = (ls__moments){ results[0], results[1], results[2] };
    return st;
}

ls_status ls__batch_moments(ls_tensor *x, ls__moments *out)
{
    return call(&batch_moments, NULL, 1, &x, out);
}

ls_status ls__merge_moments(int replicas, ls_tensor *const *parts, ls__moments *out)
{
    const merge_attrs attrs = { .replicas = replicas };
    return call(&merge_moments, &attrs, 3 * replicas, parts, out);
}

const ls_op *const ls__rows_moments[] = { &batch_moments, &merge_moments, NULL };
