/*
 * Pooling over windows, NHWC.
 *
 * max_pool2d also gives, as output 1, where each maximum was found. Its
 * gradient puts dy there (max_pool2d_grad), whose gradient looks up what lies
 * there (max_pool2d_gather), whose gradient is max_pool2d_grad again. In the
 * same way avg_pool2d and avg_pool2d_grad are each other's gradient.
 */
#include "kernels/pool.h"

#include <lockstep/ops.h>
#include <string.h>

#include "dispatch/call.h"
#include "ops/pool.h"
#include "ops/window.h"

/* pool_attrs_of reads either. */
typedef ls__pool_attrs pool_attrs;
typedef ls__pool_grad_attrs pool_grad_attrs;

static const ls_attr pool_attr_list[] = { LS_ATTR_INT(pool_attrs, window),
                                          LS_ATTR_INT(pool_attrs, stride),
                                          LS_ATTR_INT(pool_attrs, padding), LS_ATTR_END };

static const ls_attr pool_grad_attr_list[] = { LS_ATTR_INT(pool_grad_attrs, window),
                                               LS_ATTR_INT(pool_grad_attrs, stride),
                                               LS_ATTR_INT(pool_grad_attrs, padding),
                                               LS_ATTR_INTS(pool_grad_attrs, shape), LS_ATTR_END };

static const ls_op max_pool2d_grad, max_pool2d_gather, avg_pool2d, avg_pool2d_grad;

static pool_attrs pool_attrs_of(const void *attrs)
{
    pool_attrs a;
    memcpy(&a, attrs, sizeof a);
    return a;
}

/* ---- shapes -------------------------------------------------------------------- */

ls_status ls__pool_geometry(const ls_call *c, const int64_t *x, ls__pool_shape *s)
{
    const pool_attrs a = pool_attrs_of(c->attrs);
    ls__window rows, cols;
    ls_status st = ls__place_windows(c, "height", x[1], a.window, a.stride, 1, a.padding, &rows);
    if (!st)
        st = ls__place_windows(c, "width", x[2], a.window, a.stride, 1, a.padding, &cols);
    if (st)
        return st;
    if (x[1] * x[2] > INT32_MAX)
        return ls_call_fail(c, LS_INVALID, "an image of %lld x %lld is more than 2^31 - 1 pixels",
                            (long long)x[1], (long long)x[2]);
    *s = (ls__pool_shape){
        .n = x[0],
        .h = x[1],
        .w = x[2],
        .c = x[3],
        .kh = a.window,
        .kw = a.window,
        .oh = rows.out,
        .ow = cols.out,
        .stride_h = a.stride,
        .stride_w = a.stride,
        .pad_top = rows.before,
        .pad_left = cols.before,
        .pad_bottom = rows.after,
        .pad_right = cols.after,
    };
    return LS_OK;
}

static ls_status want_image(const ls_call *c, int input)
{
    ls_status st = ls__want_dtype(c, input, LS__FLOATS);
    return st ? st : ls__want_rank(c, input, 4);
}

/* An image -> output 0 of the pooled shape. */
static ls_status pooled_shape(ls_call *c, ls__pool_shape *s)
{
    ls_status st = want_image(c, 0);
    if (!st)
        st = ls__pool_geometry(c, c->in[0]->dims, s);
    return st ? st
              : ls_call_output(c, 0, c->in[0]->dtype, 4,
                               (const int64_t[]){ s->n, s->oh, s->ow, s->c });
}

ls_status ls__pool_want_pooled(const ls_call *c, int i, const ls__pool_shape *s)
{
    const ls__spec want = { c->in[i]->dtype, 4, { s->n, s->oh, s->ow, s->c } };
    if (ls__spec_same_shape(c->in[i], &want))
        return LS_OK;
    return ls_call_fail(c, LS_SHAPE, "input %d should be %s", i, ls__spec_text(&want));
}

/* A pooled gradient -> the image it came from. */
static ls_status image_shape(ls_call *c, ls__pool_shape *s)
{
    const ls_ints *shape = &((const pool_grad_attrs *)c->attrs)->shape;
    ls_status st = want_image(c, 0);
    if (!st && shape->count != 4)
        st =
            ls_call_fail(c, LS_INVALID, "shape has %lld numbers, wants 4", (long long)shape->count);
    if (!st)
        st = ls_call_output(c, 0, c->in[0]->dtype, 4, shape->at);
    if (!st)
        st = ls__pool_geometry(c, shape->at, s);
    return st ? st : ls__pool_want_pooled(c, 0, s);
}

/* ---- max ------------------------------------------------------------------------- */

static ls_status max_shape(ls_call *c)
{
    ls__pool_shape s;
    ls_status st = pooled_shape(c, &s);
    return st ? st : ls_call_output(c, 1, LS_I32, 4, c->out[0].dims);
}

static ls_status max_kernel(ls_call *c)
{
    ls__pool_shape s;
    ls_status st = ls__pool_geometry(c, c->in[0]->dims, &s);
    if (st)
        return st;
    if (c->in[0]->dtype == LS_F64)
        ls__max_pool_forward_f64(&s, c->in_data[0], c->out_data[0], c->out_data[1]);
    else
        ls__max_pool_forward_f32(&s, c->in_data[0], c->out_data[0], c->out_data[1]);
    return LS_OK;
}

/* max_pool2d_relu: max_pool2d(x) with relu of output 0, put into a graph by
 * pass_fuse_pool.c. */
static ls_status max_relu_kernel(ls_call *c)
{
    ls__pool_shape s;
    ls_status st = ls__pool_geometry(c, c->in[0]->dims, &s);
    if (st)
        return st;
    if (c->in[0]->dtype == LS_F64)
        ls__max_pool_forward_relu_f64(&s, c->in_data[0], c->out_data[0], c->out_data[1]);
    else
        ls__max_pool_forward_relu_f32(&s, c->in_data[0], c->out_data[0], c->out_data[1]);
    return LS_OK;
}

static const ls_op max_pool2d_relu = {
    .size = sizeof(ls_op),
    .name = "max_pool2d_relu",
    .inputs = 1,
    .outputs = 2,
    .flags = LS_OP_BF16_AS_F32 | LS__OP_FUSED | LS_OP_TOTAL,
    .attr_size = sizeof(pool_attrs),
    .attrs = pool_attr_list,
    .shape = max_shape,
    .kernel = max_relu_kernel,
};

/* The row that takes a pooled gradient (and the places) back to the image. */
static ls_tensor *call_back(const ls_op *op, const void *attrs, int n, ls_tensor *const *inputs,
                            ls_tensor *like)
{
    const pool_attrs from = pool_attrs_of(attrs);
    pool_grad_attrs a;
    memset(&a, 0, sizeof a);
    a.window = from.window;
    a.stride = from.stride;
    a.padding = from.padding;
    ls_tensor *dx = NULL;
    if (ls__ints(&a.shape, op->name, "shape", ls_rank(like), ls_shape(like)))
        return NULL;
    return ls__call(op, &a, n, inputs, 0, NULL, &dx) ? NULL : dx;
}

static ls_status max_gradient(ls_grad *g)
{
    ls_tensor *const inputs[] = { ls_grad_output(g, 0), ls_grad_result(g, 1) };
    return ls_grad_give(
        g, 0, call_back(&max_pool2d_grad, ls_grad_attrs(g), 2, inputs, ls_grad_input(g, 0)));
}

static const ls_op max_pool2d = {
    .size = sizeof(ls_op),
    .name = "max_pool2d",
    .inputs = 1,
    .outputs = 2,
    .flags = LS_OP_BF16_AS_F32,
    .attr_size = sizeof(pool_attrs),
    .attrs = pool_attr_list,
    .shape = max_shape,
    .kernel = max_kernel,
    .gradient = max_gradient,
};

ls_status ls__pool_place_outside(const ls_call *c, const ls__pool_shape *s)
{
    return ls_call_fail(c, LS_INVALID, "a place outside the image of %lld pixels",
                        (long long)(s->h * s->w));
}

static ls_status want_place_input(const ls_call *c, const ls__pool_shape *s)
{
    ls_status st = ls__want_dtype(c, 1, LS__BIT(LS_I32));
    return st ? st : ls__pool_want_pooled(c, 1, s);
}

/* (dy, places) -> dx */
static ls_status max_grad_shape(ls_call *c)
{
    ls__pool_shape s;
    ls_status st = image_shape(c, &s);
    return st ? st : want_place_input(c, &s);
}

static ls_status max_grad_kernel(ls_call *c)
{
    ls__pool_shape s;
    ls_status st = ls__pool_geometry(c, c->out[0].dims, &s);
    if (st)
        return st;
    bool inside = c->in[0]->dtype == LS_F64
                      ? ls__max_pool_backward_f64(&s, c->in_data[0], c->in_data[1], c->out_data[0])
                      : ls__max_pool_backward_f32(&s, c->in_data[0], c->in_data[1], c->out_data[0]);
    return inside ? LS_OK : ls__pool_place_outside(c, &s);
}

static ls_status max_grad_gradient(ls_grad *g)
{
    const pool_attrs a = pool_attrs_of(ls_grad_attrs(g));
    return ls_grad_give(
        g, 0, ls__call2(&max_pool2d_gather, &a, ls_grad_output(g, 0), ls_grad_input(g, 1)));
}

static const ls_op max_pool2d_grad = {
    .size = sizeof(ls_op),
    .name = "max_pool2d_grad",
    .inputs = 2,
    .outputs = 1,
    .flags = LS_OP_BF16_AS_F32,
    .attr_size = sizeof(pool_grad_attrs),
    .attrs = pool_grad_attr_list,
    .shape = max_grad_shape,
    .kernel = max_grad_kernel,
    .gradient = max_grad_gradient,
};

/* (image, places) -> what lies there */
static ls_status max_gather_shape(ls_call *c)
{
    ls__pool_shape s;
    ls_status st = pooled_shape(c, &s);
    return st ? st : want_place_input(c, &s);
}

static ls_status max_gather_kernel(ls_call *c)
{
    ls__pool_shape s;
    ls_status st = ls__pool_geometry(c, c->in[0]->dims, &s);
    if (st)
        return st;
    bool inside = c->in[0]->dtype == LS_F64
                      ? ls__max_pool_gather_f64(&s, c->in_data[0], c->in_data[1], c->out_data[0])
                      : ls__max_pool_gather_f32(&s, c->in_data[0], c->in_data[1], c->out_data[0]);
    return inside ? LS_OK : ls__pool_place_outside(c, &s);
}

static ls_status max_gather_gradient(ls_grad *g)
{
    ls_tensor *const inputs[] = { ls_grad_output(g, 0), ls_grad_input(g, 1) };
    return ls_grad_give(
        g, 0, call_back(&max_pool2d_grad, ls_grad_attrs(g), 2, inputs, ls_grad_input(g, 0)));
}

static const ls_op max_pool2d_gather = {
    .size = sizeof(ls_op),
    .name = "max_pool2d_gather",
    .inputs = 2,
    .outputs = 1,
    .flags = LS_OP_BF16_AS_F32,
    .attr_size = sizeof(pool_attrs),
    .attrs = pool_attr_list,
    .shape = max_gather_shape,
    .kernel = max_gather_kernel,
    .gradient = max_gather_gradient,
};

/* ---- average ------------------------------------------------------------------------ */

static ls_status avg_shape(ls_call *c)
{
    ls__pool_shape s;
    return pooled_shape(c, &s);
}

static ls_status avg_kernel(ls_call *c)
{
    ls__pool_shape s;
    ls_status st = ls__pool_geometry(c, c->in[0]->dims, &s);
    if (st)
        return st;
    if (c->in[0]->dtype == LS_F64)
        ls__avg_pool_forward_f64(&s, c->in_data[0], c->out_data[0]);
    else
        ls__avg_pool_forward_f32(&s, c->in_data[0], c->out_data[0]);
    return LS_OK;
}

static ls_status avg_gradient(ls_grad *g)
{
    ls_tensor *dy = ls_grad_output(g, 0);
    return ls_grad_give(g, 0,
                        call_back(&avg_pool2d_grad, ls_grad_attrs(g), 1, &dy, ls_grad_input(g, 0)));
}

static const ls_op avg_pool2d = {
    .size = sizeof(ls_op),
    .name = "avg_pool2d",
    .inputs = 1,
    .outputs = 1,
    .flags = LS_OP_BF16_AS_F32,
    .attr_size = sizeof(pool_attrs),
    .attrs = pool_attr_list,
    .shape = avg_shape,
    .kernel = avg_kernel,
    .gradient = avg_gradient,
};

static ls_status avg_grad_shape(ls_call *c)
{
    ls__pool_shape s;
    return image_shape(c, &s);
}

static ls_status avg_grad_kernel(ls_call *c)
{
    ls__pool_shape s;
    ls_status st = ls__pool_geometry(c, c->out[0].dims, &s);
    if (st)
        return st;
    if (c->in[0]->dtype == LS_F64)
        ls__avg_pool_backward_f64(&s, c->in_data[0], c->out_data[0]);
    else
        ls__avg_pool_backward_f32(&s, c->in_data[0], c->out_data[0]);
    return LS_OK;
}

static ls_status avg_grad_gradient(ls_grad *g)
{
    const pool_attrs a = pool_attrs_of(ls_grad_attrs(g));
    return ls_grad_give(g, 0, ls__call1(&avg_pool2d, &a, ls_grad_output(g, 0)));
}

static const ls_op avg_pool2d_grad = {
    .size = sizeof(ls_op),
    .name = "avg_pool2d_grad",
    .inputs = 1,
    .outputs = 1,
    .flags = LS_OP_BF16_AS_F32,
    .attr_size = sizeof(pool_grad_attrs),
    .attrs = pool_grad_attr_list,
    .shape = avg_grad_shape,
    .kernel = avg_grad_kernel,
    .gradient = avg_grad_gradient,
};

/* ---- calling -------------------------------------------------------------------------- */

ls_tensor *ls_max_pool2d(ls_tensor *x, int64_t window, int64_t stride, ls_padding padding)
{
    const pool_attrs attrs = { window, stride, padding };
    return ls__call1(&max_pool2d, &attrs, x);
}

ls_tensor *ls_avg_pool2d(ls_tensor *x, int64_t window, int64_t stride, ls_padding padding)
{
    const pool_attrs attrs = { window, stride, padding };
    return ls__call1(&avg_pool2d, &attrs, x);
}

static ls_tensor *check_global(const char *who, ls_tensor *x)
{
    if (ls__check_tensor(who, "x", x))
        return NULL;
    if (ls_rank(x) == 4)
        return x;
    ls__fail(LS_SHAPE, "%s: %s has rank %d, wants 4", who, ls_describe(x), ls_rank(x));
    return NULL;
}

ls_tensor *ls_global_avg_pool2d(ls_tensor *x)
{
    x = check_global("global_avg_pool2d", x);
    return x ? ls_mean(x, LS_AXES(1, 2), false) : NULL;
}

ls_tensor *ls_global_max_pool2d(ls_tensor *x)
{
    x = check_global("global_max_pool2d", x);
    return x ? ls_max(x, LS_AXES(1, 2), false) : NULL;
}

const ls_op *const ls__rows_pool[] = { &max_pool2d,
                                       &max_pool2d_relu,
                                       &max_pool2d_grad,
                                       &max_pool2d_gather,
                                       &avg_pool2d,
                                       &avg_pool2d_grad,
                                       NULL };
