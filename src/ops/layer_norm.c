/*
 * Layer normalisation over the last axis. The row also puts out each row's mean
 * and 1 / sqrt(variance + epsilon), for its gradient; of bf16 these are f32.
 */
#include <lockstep/ops.h>

#include "dispatch/call.h"
#include "kernels/norm.h"
#include "ops/norm.h"
#include "ops/shape.h"

/* ---- layer_norm_grad: (x, scale, offset, dy, mean, rstd) -> the first three's ------------ */

static ls_status layer_norm_grad_shape(ls_call *c)
{
    const ls__spec *x = c->in[0];
    ls_status st = ls__norm_want_backward(c);
    for (int i = 4; i < 6 && !st; i++)
        if (c->in[i]->dtype != ls__norm_saved_dtype(x) ||
            ls__spec_count(c->in[i]) != ls__row_count(x))
            st = ls_call_fail(c, LS_SHAPE, "input %d is no statistic of x", i);
    for (int i = 0; i < 3 && !st; i++)
        st = ls__output_like(c, i, i);
    return st;
}

static size_t layer_norm_grad_scratch(ls_call *c)
{
    const ls__spec *x = c->in[0];
    return (size_t)ls__norm_layer_grad_scratch(ls__row_count(x), ls__row_size(x)) * sizeof(float);
}

static ls_status layer_norm_grad_kernel(ls_call *c)
{
    const void *const *in = c->in_data;
    void *const *out = c->out_data;
    int64_t rows = ls__row_count(c->in[0]), cols = ls__row_size(c->in[0]);
    if (c->in[0]->dtype == LS_F64)
        ls__ref_norm_layer_grad_f64(in[0], in[3], in[4], in[5], in[1], out[0], out[1], out[2], rows,
                                    cols, NULL);
    else
        LS__PICK(ls__norm_table)
            ->layer_grad(in[0], in[3], in[4], in[5], in[1], out[0], out[1], out[2], rows, cols,
                         c->scratch);
    return LS_OK;
}

/* What layer_norm computes, in plain operators. */
static ls_tensor *in_operators(ls_tensor *const *in, const void *attrs)
{
    ls_tensor *d = ls_sub(in[0], ls_mean(in[0], LS_AXES(-1), true));
    ls_tensor *variance = ls_mean(ls_square(d), LS_AXES(-1), true);
    ls_tensor *rstd = ls_rsqrt(ls_shift(variance, ((const ls__norm_attrs *)attrs)->epsilon));
    return ls_add(ls_mul(ls_mul(d, rstd), in[1]), in[2]);
}

static ls_status layer_norm_grad_gradient(ls_grad *g)
{
    return ls__gradient_of_backward(g, 3, in_operators);
}

static const ls_op layer_norm_grad = {
    .size = sizeof(ls_op),
    .name = "layer_norm_grad",
    .inputs = 6,
    .outputs = 3,
    .flags = LS_OP_BF16_AS_F32,
    .attr_size = sizeof(ls__norm_attrs),
    .attrs = ls__norm_attr_list,
    .shape = layer_norm_grad_shape,
    .scratch = layer_norm_grad_scratch,
    .kernel = layer_norm_grad_kernel,
    .gradient = layer_norm_grad_gradient,
};

/* ---- layer_norm ---------------------------------------------------------------------------- */

static ls_status layer_norm_shape(ls_call *c)
{
    const ls__spec *x = c->in[0];
    ls_status st = ls__norm_want_inputs(c, 2);
    if (!st)
        st = ls__output_like(c, 0, 0);
    for (int i = 1; i < 3 && !st; i++)
        st = ls_call_output(c, i, ls__norm_saved_dtype(x), x->rank - 1, x->dims);
    return st;
}

static ls_status layer_norm_kernel(ls_call *c)
{
    const void *const *in = c->in_data;
    void *const *out = c->out_data;
    double epsilon = ((const ls__norm_attrs *)c->attrs)->epsilon;
    int64_t rows = ls__row_count(c->in[0]), cols = ls__row_size(c->in[0]);
    if (c->in[0]->dtype == LS_F64)
        ls__ref_norm_layer_f64(in[0], in[1], in[2], epsilon, out[0], out[1], out[2], rows, cols);
    else
        LS__PICK(ls__norm_table)
            ->layer(in[0], in[1], in[2], (float)epsilon, out[0], out[1], out[2], rows, cols);
    return LS_OK;
}

/* The gradient of x through the saved statistics, in case somebody takes them:
 * mean' = 1/n, rstd' = -rstd^3 (x - mean) / n. */
static ls_tensor *through_statistics(ls_grad *g)
{
    ls_tensor *x = ls_grad_input(g, 0);
    ls_dtype dtype = ls_dtype_of(x);
    int64_t n = ls_dim(x, -1);
    double share = n ? 1.0 / (double)n : 0;
    ls_tensor *mean = ls_expand_dims(ls_cast(ls_grad_result(g, 1), dtype), -1);
    ls_tensor *rstd = ls_grad_result(g, 2), *cube = ls_mul(ls_square(rstd), rstd);
    ls_tensor *by_mean = ls_expand_dims(ls_cast(ls_grad_output(g, 1), dtype), -1);
    ls_tensor *by_rstd = ls_cast(ls_mul(ls_grad_output(g, 2), cube), dtype);
    ls_tensor *slope = ls_mul(ls_expand_dims(by_rstd, -1), ls_sub(x, mean));
    return ls_scale(ls_sub(by_mean, slope), share);
}

static ls_status layer_norm_gradient(ls_grad *g)
{
    ls_tensor *out[3] = { NULL };
    ls_status st = LS_OK;
    if (ls_grad_arrived(g, 0)) {
        ls_tensor *in[6] = { ls_grad_input(g, 0),  ls_grad_input(g, 1),  ls_grad_input(g, 2),
                             ls_grad_output(g, 0), ls_grad_result(g, 1), ls_grad_result(g, 2) };
        st = ls__call(&layer_norm_grad, ls_grad_attrs(g), 6, in, 0, NULL, out);
        for (int i = 1; i < 3 && !st; i++)
            st = ls_grad_give(g, i, out[i]);
    }
    if (st || !ls_grad_wanted(g, 0))
        return st;
    if (ls_grad_arrived(g, 1) || ls_grad_arrived(g, 2))
        out[0] = out[0] ? ls_add(out[0], through_statistics(g)) : through_statistics(g);
    return ls_grad_give(g, 0, out[0]);
}

static const ls_op layer_norm = {
    .size = sizeof(ls_op),
    .name = "layer_norm",
    .inputs = 3,
    .outputs = 3,
    .flags = LS_OP_BF16_AS_F32,
    .attr_size = sizeof(ls__norm_attrs),
    .attrs = ls__norm_attr_list,
    .shape = layer_norm_shape,
    .kernel = layer_norm_kernel,
    .gradient = layer_norm_gradient,
};

ls_tensor *ls_layer_norm(ls_tensor *x, ls_tensor *scale, ls_tensor *offset, double epsilon)
{
    const ls__norm_attrs attrs = { .epsilon = epsilon };
    ls_tensor *in[3] = { x, scale, offset }, *out[3];
    return ls__call(&layer_norm, &attrs, 3, in, 0, NULL, out) ? NULL : out[0];
}

const ls_op *const ls__rows_layer_norm[] = { &layer_norm, &layer_norm_grad, NULL };
