/*
 * Batch normalisation over all axes but the last: with the batch's own
 * statistics (batch_norm) or with given ones (batch_norm_inference).
 *
 * Outputs of the row batch_norm: y, mean and variance, which are public; and,
 * for its gradient, mean and 1 / sqrt(variance + epsilon) once more: bf16 would
 * be too coarse, so for bf16 these two are f32. 0 rows give statistics of 0.
 */
#include <lockstep/ops.h>
#include <math.h>
#include <string.h>

#include "dispatch/call.h"
#include "kernels/norm.h"
#include "ops/norm.h"
#include "ops/shape.h"

/* ---- batch_norm_grad: (x, scale, offset, dy, mean, rstd) -> the first three's ------------ */

static ls_status batch_norm_grad_shape(ls_call *c)
{
    ls_status st = ls__norm_want_backward(c);
    for (int i = 4; i < 6 && !st; i++)
        if (c->in[i]->dtype != ls__norm_saved_dtype(c->in[0]) ||
            !ls__spec_same_shape(c->in[i], c->in[1]))
            st = ls_call_fail(c, LS_SHAPE, "input %d is no statistic of x", i);
    for (int i = 0; i < 3 && !st; i++)
        st = ls__output_like(c, i, i);
    return st;
}

static ls_status batch_norm_grad_kernel(ls_call *c)
{
    const void *const *in = c->in_data;
    void *const *out = c->out_data;
    int64_t rows = ls__row_count(c->in[0]), cols = ls__row_size(c->in[0]);
    if (c->in[0]->dtype == LS_F64)
        ls__ref_norm_batch_grad_f64(in[0], in[3], in[4], in[5], in[1], out[0], out[1], out[2], rows,
                                    cols);
    else
        LS__PICK(ls__norm_table)
            ->batch_grad(in[0], in[3], in[4], in[5], in[1], out[0], out[1], out[2], rows, cols);
    return LS_OK;
}

/* What batch_norm computes, in plain operators. */
static ls_tensor *in_operators(ls_tensor *const *in, const void *attrs)
{
    int64_t axes[LS_MAX_RANK];
    int count = ls_rank(in[0]) - 1;
    for (int i = 0; i < count; i++)
        axes[i] = i;
    ls_tensor *d = ls_sub(in[0], ls_mean(in[0], count, axes, true));
    ls_tensor *variance = ls_mean(ls_square(d), count, axes, true);
    ls_tensor *rstd = ls_rsqrt(ls_shift(variance, ((const ls__norm_attrs *)attrs)->epsilon));
    return ls_add(ls_mul(ls_mul(d, rstd), in[1]), in[2]);
}

static ls_status batch_norm_grad_gradient(ls_grad *g)
{
    return ls__gradient_of_backward(g, 3, in_operators);
}

static const ls_op batch_norm_grad = {
    .size = sizeof(ls_op),
    .name = "batch_norm_grad",
    .inputs = 6,
    .outputs = 3,
    .flags = LS_OP_BF16_AS_F32,
    .attr_size = sizeof(ls__norm_attrs),
    .attrs = ls__norm_attr_list,
    .shape = batch_norm_grad_shape,
    .kernel = batch_norm_grad_kernel,
    .gradient = batch_norm_grad_gradient,
};

/* ---- batch_norm ---------------------------------------------------------------------------- */

static ls_status batch_norm_shape(ls_call *c)
{
    ls_status st = ls__norm_want_inputs(c, 2);
    if (!st)
        st = ls__output_like(c, 0, 0);
    for (int i = 1; i < 5 && !st; i++)
        st = ls__output_as(c, i, i < 3 ? c->in[0]->dtype : ls__norm_saved_dtype(c->in[0]), 1);
    return st;
}

static void run_f32(ls_call *c, int64_t rows, int64_t cols)
{
    const ls__norm_fns *fast = LS__PICK(ls__norm_table);
    const float *x = c->in_data[0], epsilon = (float)((const ls__norm_attrs *)c->attrs)->epsilon;
    float *mean = c->out_data[1], *variance = c->out_data[2], *rstd = c->out_data[4];
    fast->batch_stats(x, mean, variance, rows, cols);
    for (int64_t i = 0; i < cols; i++)
        rstd[i] = 1.0f / sqrtf(variance[i] + epsilon);
    fast->batch_apply(x, mean, rstd, c->in_data[1], c->in_data[2], c->out_data[0], rows, cols);
    memcpy(c->out_data[3], mean, (size_t)cols * sizeof *mean);
}

static void run_f64(ls_call *c, int64_t rows, int64_t cols)
{
    const double *x = c->in_data[0], epsilon = ((const ls__norm_attrs *)c->attrs)->epsilon;
    double *mean = c->out_data[1], *variance = c->out_data[2], *rstd = c->out_data[4];
    ls__ref_norm_batch_stats_f64(x, mean, variance, rows, cols);
    for (int64_t i = 0; i < cols; i++)
        rstd[i] = 1.0 / sqrt(variance[i] + epsilon);
    ls__ref_norm_batch_apply_f64(x, mean, rstd, c->in_data[1], c->in_data[2], c->out_data[0], rows,
                                 cols);
    memcpy(c->out_data[3], mean, (size_t)cols * sizeof *mean);
}

static ls_status batch_norm_kernel(ls_call *c)
{
    int64_t rows = ls__row_count(c->in[0]), cols = ls__row_size(c->in[0]);
    if (cols == 0)
        return LS_OK;
    (c->in[0]->dtype == LS_F64 ? run_f64 : run_f32)(c, rows, cols);
    return LS_OK;
}

/* a + b, where either may be there or not. */
static ls_tensor *plus(ls_tensor *a, ls_tensor *b)
{
    return a && b ? ls_add(a, b) : a ? a : b;
}

/* The gradient of x through the statistics: mean and variance are public, and the
 * saved ones (outputs 3 and 4) are the same functions of x. */
static ls_tensor *through_statistics(ls_grad *g)
{
    ls_tensor *x = ls_grad_input(g, 0), *by_mean = NULL, *by_variance = NULL, *dx = NULL;
    ls_dtype dtype = ls_dtype_of(x);
    int64_t cols = ls_dim(x, -1);
    double rows = cols ? (double)(ls_count(x) / cols) : 0;
    if (ls_grad_arrived(g, 1))
        by_mean = ls_grad_output(g, 1);
    if (ls_grad_arrived(g, 3))
        by_mean = plus(by_mean, ls_cast(ls_grad_output(g, 3), dtype));
    if (ls_grad_arrived(g, 2))
        by_variance = ls_grad_output(g, 2);
    if (ls_grad_arrived(g, 4)) {
        /* rstd = (variance + epsilon)^(-1/2) */
        ls_tensor *rstd = ls_grad_result(g, 4), *cube = ls_mul(ls_square(rstd), rstd);
        ls_tensor *d = ls_scale(ls_mul(ls_grad_output(g, 4), cube), -0.5);
        by_variance = plus(by_variance, ls_cast(d, dtype));
    }
    if (by_mean)
        dx = ls_scale(by_mean, rows ? 1 / rows : 0);
    if (by_variance) {
        ls_tensor *slope = ls_scale(by_variance, rows ? 2 / rows : 0);
        dx = plus(dx, ls_mul(ls_sub(x, ls_grad_result(g, 1)), slope));
    }
    return ls_broadcast_to(dx, ls_rank(x), ls_shape(x));
}

static ls_status batch_norm_gradient(ls_grad *g)
{
    ls_tensor *out[3] = { NULL };
    bool through = ls_grad_arrived(g, 1) || ls_grad_arrived(g, 2) || ls_grad_arrived(g, 3) ||
                   ls_grad_arrived(g, 4);
    ls_status st = LS_OK;
    if (ls_grad_arrived(g, 0)) {
        ls_tensor *in[6] = { ls_grad_input(g, 0),  ls_grad_input(g, 1),  ls_grad_input(g, 2),
                             ls_grad_output(g, 0), ls_grad_result(g, 3), ls_grad_result(g, 4) };
        st = ls__call(&batch_norm_grad, ls_grad_attrs(g), 6, in, 0, NULL, out);
        for (int i = 1; i < 3 && !st; i++)
            st = ls_grad_give(g, i, out[i]);
    }
    if (st || !ls_grad_wanted(g, 0))
        return st;
    if (through)
        out[0] = out[0] ? ls_add(out[0], through_statistics(g)) : through_statistics(g);
    return ls_grad_give(g, 0, out[0]);
}

static const ls_op batch_norm = {
    .size = sizeof(ls_op),
    .name = "batch_norm",
    .inputs = 3,
    .outputs = 5,
    .flags = LS_OP_BF16_AS_F32,
    .attr_size = sizeof(ls__norm_attrs),
    .attrs = ls__norm_attr_list,
    .shape = batch_norm_shape,
    .kernel = batch_norm_kernel,
    .gradient = batch_norm_gradient,
};

ls_value *ls_batch_norm(ls_tensor *x, ls_tensor *scale, ls_tensor *offset, double epsilon)
{
    const ls__norm_attrs attrs = { .epsilon = epsilon };
    ls_tensor *in[3] = { x, scale, offset }, *out[5];
    return ls__call(&batch_norm, &attrs, 3, in, 0, NULL, out) ? NULL : ls_tensors(3, out);
}

/* ---- batch_norm_inference -------------------------------------------------------------- */

static ls_status inference_shape(ls_call *c)
{
    ls_status st = ls__norm_want_inputs(c, 4);
    return st ? st : ls__output_like(c, 0, 0);
}

static size_t inference_scratch(ls_call *c)
{
    return (size_t)ls__row_size(c->in[0]) * ls_dtype_size(c->in[0]->dtype);
}

static ls_status inference_kernel(ls_call *c)
{
    const void *const *in = c->in_data;
    double epsilon = ((const ls__norm_attrs *)c->attrs)->epsilon;
    int64_t rows = ls__row_count(c->in[0]), cols = ls__row_size(c->in[0]);
    if (c->in[0]->dtype == LS_F64) {
        const double *variance = in[4];
        double *rstd = c->scratch;
        for (int64_t i = 0; i < cols; i++)
            rstd[i] = 1.0 / sqrt(variance[i] + epsilon);
        ls__ref_norm_batch_apply_f64(in[0], in[3], rstd, in[1], in[2], c->out_data[0], rows, cols);
        return LS_OK;
    }
    const float *variance = in[4];
    float *rstd = c->scratch;
    for (int64_t i = 0; i < cols; i++)
        rstd[i] = 1.0f / sqrtf(variance[i] + (float)epsilon);
    LS__PICK(ls__norm_table)
        ->batch_apply(in[0], in[3], rstd, in[1], in[2], c->out_data[0], rows, cols);
    return LS_OK;
}

/* y = (x - mean) rstd scale + offset. */
static ls_status inference_gradient(ls_grad *g)
{
    ls_tensor *x = ls_grad_input(g, 0), *scale = ls_grad_input(g, 1);
    ls_tensor *mean = ls_grad_input(g, 3), *dy = ls_grad_output(g, 0);
    double epsilon = ((const ls__norm_attrs *)ls_grad_attrs(g))->epsilon;
    ls_tensor *rstd = ls_rsqrt(ls_shift(ls_grad_input(g, 4), epsilon));
    ls_tensor *factor = ls_mul(rstd, scale);
    ls_status st = LS_OK;
    if (ls_grad_wanted(g, 0))
        st = ls_grad_give(g, 0, ls_mul(dy, factor));
    ls_tensor *sum = ls__sum_to(dy, scale);
    if (!st && ls_grad_wanted(g, 2))
        st = ls_grad_give(g, 2, sum);
    if (!st && ls_grad_wanted(g, 3))
        st = ls_grad_give(g, 3, ls_neg(ls_mul(sum, factor)));
    if (st || !(ls_grad_wanted(g, 1) || ls_grad_wanted(g, 4)))
        return st;
    ls_tensor *dot = ls__sum_to(ls_mul(dy, ls_sub(x, mean)), scale);
    if (ls_grad_wanted(g, 1))
        st = ls_grad_give(g, 1, ls_mul(dot, rstd));
    if (!st && ls_grad_wanted(g, 4))
        st = ls_grad_give(g, 4, ls_scale(ls_mul(ls_mul(dot, factor), ls_square(rstd)), -0.5));
    return st;
}

static const ls_op batch_norm_inference = {
    .size = sizeof(ls_op),
    .name = "batch_norm_inference",
    .inputs = 5,
    .outputs = 1,
    .flags = LS_OP_BF16_AS_F32,
    .attr_size = sizeof(ls__norm_attrs),
    .attrs = ls__norm_attr_list,
    .shape = inference_shape,
    .scratch = inference_scratch,
    .kernel = inference_kernel,
    .gradient = inference_gradient,
};

ls_tensor *ls_batch_norm_inference(ls_tensor *x, ls_tensor *scale, ls_tensor *offset,
                                   ls_tensor *mean, ls_tensor *variance, double epsilon)
{
    const ls__norm_attrs attrs = { .epsilon = epsilon };
    ls_tensor *in[5] = { x, scale, offset, mean, variance }, *out;
    return ls__call(&batch_norm_inference, &attrs, 5, in, 0, NULL, &out) ? NULL : out;
}

const ls_op *const ls__rows_batch_norm[] = { &batch_norm, &batch_norm_inference, &batch_norm_grad,
                                             NULL };
