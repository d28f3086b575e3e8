/*
 * softmax and log_softmax over any axis. Their gradients are rows of their own
 * (one pass instead of four), which are differentiated in plain operators.
 */
#include <lockstep/ops.h>

#include "dispatch/call.h"
#include "kernels/softmax.h"
#include "ops/shape.h"

typedef struct softmax_attrs {
    int64_t axis;
} softmax_attrs;

static const ls_attr softmax_attr_list[] = { LS_ATTR_INT(softmax_attrs, axis), LS_ATTR_END };

static int64_t axis_of(const ls_grad *g)
{
    return ((const softmax_attrs *)ls_grad_attrs(g))->axis;
}

/* sum(t) over the axis, which stays with size 1. */
static ls_tensor *sum_along(ls_tensor *t, int64_t axis)
{
    return ls_sum(t, 1, &axis, true);
}

static ls__around around_axis(const ls_call *c)
{
    return ls__around_axis(c->in[0], ((const softmax_attrs *)c->attrs)->axis);
}

/* ---- the gradients' rows: (y, dy) -> dx --------------------------------------------- */

static ls_status grad_shape(ls_call *c)
{
    int axis;
    ls_status st = ls__want_dtype(c, 0, LS__FLOATS);
    if (!st)
        st = ls__want_same_dtype(c, 0, 1);
    if (!st)
        st = ls__want_axis(c, ((const softmax_attrs *)c->attrs)->axis, c->in[0]->rank, &axis);
    if (!st && !ls__spec_same_shape(c->in[0], c->in[1]))
        st = ls_call_fail(c, LS_SHAPE, "y and its gradient differ in shape");
    return st ? st : ls__output_like(c, 0, 0);
}

static ls_status run_grad(ls_call *c, bool log)
{
    ls__around s = around_axis(c);
    if (c->in[0]->dtype == LS_F64)
        ls__ref_softmax_grad_f64(log, c->in_data[0], c->in_data[1], c->out_data[0], s.outer,
                                 s.count, s.inner);
    else
        LS__PICK(ls__softmax_table)
            ->softmax_grad(log, c->in_data[0], c->in_data[1], c->out_data[0], s.outer, s.count,
                           s.inner);
    return LS_OK;
}

static ls_status softmax_grad_kernel(ls_call *c)
{
    return run_grad(c, false);
}

static ls_status log_softmax_grad_kernel(ls_call *c)
{
    return run_grad(c, true);
}

static ls_tensor *softmax_grad_of(ls_tensor *y, ls_tensor *dy, int64_t axis);

/* dx = y (dy - s) with s = sum(y dy): for a gradient g that arrives,
 * by dy it is y (g - sum(y g)), the same row again; by y, g (dy - s) - dy sum(y g). */
static ls_status softmax_grad_gradient(ls_grad *g)
{
    int64_t axis = axis_of(g);
    ls_tensor *y = ls_grad_input(g, 0), *dy = ls_grad_input(g, 1), *dd = ls_grad_output(g, 0);
    if (ls_grad_wanted(g, 0)) {
        ls_tensor *s = sum_along(ls_mul(y, dy), axis), *t = sum_along(ls_mul(y, dd), axis);
        ls_tensor *by_y = ls_sub(ls_mul(dd, ls_sub(dy, s)), ls_mul(dy, t));
        ls_status st = ls_grad_give(g, 0, by_y);
        if (st)
            return st;
    }
    return ls_grad_wanted(g, 1) ? ls_grad_give(g, 1, softmax_grad_of(y, dd, axis)) : LS_OK;
}

/* dx = dy - exp(y) sum(dy). */
static ls_status log_softmax_grad_gradient(ls_grad *g)
{
    int64_t axis = axis_of(g);
    ls_tensor *y = ls_grad_input(g, 0), *dy = ls_grad_input(g, 1), *dd = ls_grad_output(g, 0);
    ls_tensor *weighted = ls_mul(dd, ls_exp(y));
    ls_tensor *by_y = ls_neg(ls_mul(weighted, sum_along(dy, axis)));
    ls_status st = ls_grad_give(g, 0, by_y);
    return st ? st : ls_grad_give(g, 1, ls_sub(dd, sum_along(weighted, axis)));
}

static const ls_op softmax_grad = {
    .size = sizeof(ls_op),
    .name = "softmax_grad",
    .inputs = 2,
    .outputs = 1,
    .flags = LS_OP_BF16_AS_F32,
    .attr_size = sizeof(softmax_attrs),
    .attrs = softmax_attr_list,
    .shape = grad_shape,
    .kernel = softmax_grad_kernel,
    .gradient = softmax_grad_gradient,
};

static const ls_op log_softmax_grad = {
    .size = sizeof(ls_op),
    .name = "log_softmax_grad",
    .inputs = 2,
    .outputs = 1,
    .flags = LS_OP_BF16_AS_F32,
    .attr_size = sizeof(softmax_attrs),
    .attrs = softmax_attr_list,
    .shape = grad_shape,
    .kernel = log_softmax_grad_kernel,
    .gradient = log_softmax_grad_gradient,
};

static ls_tensor *softmax_grad_of(ls_tensor *y, ls_tensor *dy, int64_t axis)
{
    const softmax_attrs attrs = { .axis = axis };
    return ls__call2(&softmax_grad, &attrs, y, dy);
}

/* ---- softmax, log_softmax --------------------------------------------------------------- */

static ls_status softmax_shape(ls_call *c)
{
    int axis;
    ls_status st = ls__want_dtype(c, 0, LS__FLOATS);
    if (!st)
        st = ls__want_axis(c, ((const softmax_attrs *)c->attrs)->axis, c->in[0]->rank, &axis);
    return st ? st : ls__output_like(c, 0, 0);
}

static ls_status run(ls_call *c, bool log)
{
    ls__around s = around_axis(c);
    if (c->in[0]->dtype == LS_F64)
        ls__ref_softmax_f64(log, c->in_data[0], c->out_data[0], s.outer, s.count, s.inner);
    else
        LS__PICK(ls__softmax_table)
            ->softmax(log, c->in_data[0], c->out_data[0], s.outer, s.count, s.inner);
    return LS_OK;
}

static ls_status softmax_kernel(ls_call *c)
{
    return run(c, false);
}

static ls_status log_softmax_kernel(ls_call *c)
{
    return run(c, true);
}

static ls_status softmax_gradient(ls_grad *g)
{
    return ls_grad_give(g, 0,
                        softmax_grad_of(ls_grad_result(g, 0), ls_grad_output(g, 0), axis_of(g)));
}

static ls_status log_softmax_gradient(ls_grad *g)
{
    return ls_grad_give(
        g, 0,
        ls__call2(&log_softmax_grad, ls_grad_attrs(g), ls_grad_result(g, 0), ls_grad_output(g, 0)));
}

static const ls_op softmax = {
    .size = sizeof(ls_op),
    .name = "softmax",
    .inputs = 1,
    .outputs = 1,
    .flags = LS_OP_BF16_AS_F32,
    .attr_size = sizeof(softmax_attrs),
    .attrs = softmax_attr_list,
    .shape = softmax_shape,
    .kernel = softmax_kernel,
    .gradient = softmax_gradient,
};

static const ls_op log_softmax = {
    .size = sizeof(ls_op),
    .name = "log_softmax",
    .inputs = 1,
    .outputs = 1,
    .flags = LS_OP_BF16_AS_F32,
    .attr_size = sizeof(softmax_attrs),
    .attrs = softmax_attr_list,
    .shape = softmax_shape,
    .kernel = log_softmax_kernel,
    .gradient = log_softmax_gradient,
};

ls_tensor *ls_softmax(ls_tensor *x, int axis)
{
    const softmax_attrs attrs = { .axis = axis };
    return ls__call1(&softmax, &attrs, x);
}

ls_tensor *ls_log_softmax(ls_tensor *x, int axis)
{
    const softmax_attrs attrs = { .axis = axis };
    return ls__call1(&log_softmax, &attrs, x);
}

const ls_op *const ls__rows_softmax[] = { &softmax, &log_softmax, &softmax_grad, &log_softmax_grad,
                                          NULL };
