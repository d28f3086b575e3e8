/*
 * conv2d and depthwise_conv2d (NHWC, HWIO), each with the two rows of its
 * backward pass.
 *
 * A convolution y = conv(x, w) is linear in x and in w. With <,> the sum of
 * products, <dy, conv(x, w)> = <grad_input(w, dy), x> = <grad_filter(x, dy), w>
 * defines the two other rows; so each of the three is the gradient of the other
 * two and gradients of any order are rows of this file.
 */
#include "ops/conv.h"

#include <lockstep/ops.h>
#include <string.h>

#include "kernels/conv_pool.h"
#include "ops/window.h"

typedef ls__conv_attrs conv_attrs;
typedef ls__conv_grad_attrs conv_grad_attrs;

static conv_attrs conv_attrs_of(const void *attrs)
{
    conv_attrs a;
    memcpy(&a, attrs, sizeof a);
    return a;
}

static const ls_attr conv_attr_list[] = { LS_ATTR_INTS(conv_attrs, stride),
                                          LS_ATTR_INTS(conv_attrs, dilation),
                                          LS_ATTR_INT(conv_attrs, padding), LS_ATTR_END };

static const ls_attr conv_grad_attr_list[] = { LS_ATTR_INTS(conv_grad_attrs, stride),
                                               LS_ATTR_INTS(conv_grad_attrs, dilation),
                                               LS_ATTR_INT(conv_grad_attrs, padding),
                                               LS_ATTR_INTS(conv_grad_attrs, shape), LS_ATTR_END };

/* The three rows of one kind of convolution. */
typedef struct conv_kind {
    bool depthwise;
    const ls_op *forward, *grad_input, *grad_filter;
} conv_kind;

static const conv_kind plain_kind, depthwise_kind;

/* ---- shapes ----------------------------------------------------------------------- */

ls_status ls__conv_geometry(const ls_call *c, bool depthwise, const int64_t *x, const int64_t *w,
                            ls__conv_shape *s)
{
    const conv_attrs a = conv_attrs_of(c->attrs);
    ls__window rows, cols;
    if (a.stride.count != 2 || a.dilation.count != 2)
        return ls_call_fail(c, LS_INVALID,
                            "stride and dilation have %lld and %lld numbers, "
                            "wants 2 (height, width)",
                            (long long)a.stride.count, (long long)a.dilation.count);
    ls_status st = ls__place_windows(c, "height", x[1], w[0], a.stride.at[0], a.dilation.at[0],
                                     a.padding, &rows);
    if (!st)
        st = ls__place_windows(c, "width", x[2], w[1], a.stride.at[1], a.dilation.at[1], a.padding,
                               &cols);
    if (st)
        return st;
    if (x[3] != w[2])
        return ls_call_fail(c, LS_SHAPE, "x has %lld channels, the filter takes %lld",
                            (long long)x[3], (long long)w[2]);
    int64_t out = w[3];
    if (depthwise && __builtin_mul_overflow(x[3], w[3], &out))
        return ls_call_fail(c, LS_SHAPE, "%lld channels with %lld filters each do not fit in int64",
                            (long long)x[3], (long long)w[3]);
    *s = (ls__conv_shape){
        .n = x[0],
        .h = x[1],
        .w = x[2],
        .c = x[3],
        .kh = w[0],
        .kw = w[1],
        .oc = out,
        .oh = rows.out,
        .ow = cols.out,
        .stride_h = a.stride.at[0],
        .stride_w = a.stride.at[1],
        .dilation_h = a.dilation.at[0],
        .dilation_w = a.dilation.at[1],
        .pad_top = rows.before,
        .pad_left = cols.before,
        .pad_bottom = rows.after,
        .pad_right = cols.after,
        .depthwise = depthwise,
        .multiplier = depthwise ? w[3] : 1,
    };
    return LS_OK;
}

ls__spec ls__conv_pooled_spec(const ls__conv_shape *s)
{
    return (ls__spec){ LS_F32, 4, { s->n, s->oh / 2, s->ow / 2, s->oc } };
}

ls__spec ls__conv_marks_spec(const ls__conv_shape *s)
{
    const int64_t bytes =
        ls__conv_pool_groups(s->oc) * LS__CONV_POOL_WORDS * (int64_t)sizeof(uint16_t);
    return (ls__spec){ LS_U8, 4, { s->n, s->oh / 2, s->ow / 2, bytes } };
}

ls_status ls__conv_want_inputs(const ls_call *c)
{
    ls_status st = ls__want_dtype(c, 0, LS__FLOATS);
    if (!st)
        st = ls__want_same_dtype(c, 0, 1);
    if (!st)
        st = ls__want_rank(c, 0, 4);
    return st ? st : ls__want_rank(c, 1, 4);
}

static ls_status forward_shape(ls_call *c, const conv_kind *kind)
{
    ls__conv_shape s;
    ls_status st = ls__conv_want_inputs(c);
    if (!st)
        st = ls__conv_geometry(c, kind->depthwise, c->in[0]->dims, c->in[1]->dims, &s);
    return st ? st
              : ls_call_output(c, 0, c->in[0]->dtype, 4,
                               (const int64_t[]){ s.n, s.oh, s.ow, s.oc });
}

/* Input 1 must be what the convolution of x by w gives. */
static ls_status backward_shape(ls_call *c, const conv_kind *kind, bool input)
{
    const ls_ints *shape = &((const conv_grad_attrs *)c->attrs)->shape;
    ls__conv_shape s;
    ls_status st = ls__conv_want_inputs(c);
    if (!st && shape->count != 4)
        st =
            ls_call_fail(c, LS_INVALID, "shape has %lld numbers, wants 4", (long long)shape->count);
    if (!st)
        st = ls_call_output(c, 0, c->in[0]->dtype, 4, shape->at);
    if (!st)
        st = ls__conv_geometry(c, kind->depthwise, input ? shape->at : c->in[0]->dims,
                               input ? c->in[0]->dims : shape->at, &s);
    if (st)
        return st;
    const int64_t *dy = c->in[1]->dims;
    if (dy[0] != s.n || dy[1] != s.oh || dy[2] != s.ow || dy[3] != s.oc)
        return ls_call_fail(c, LS_SHAPE, "the gradient should be [%lld,%lld,%lld,%lld]",
                            (long long)s.n, (long long)s.oh, (long long)s.ow, (long long)s.oc);
    return LS_OK;
}

/* ---- kernels ------------------------------------------------------------------------ */

static ls_status forward_kernel(ls_call *c, const conv_kind *kind)
{
    ls__conv_shape s;
    ls_status st = ls__conv_geometry(c, kind->depthwise, c->in[0]->dims, c->in[1]->dims, &s);
    if (st)
        return st;
    if (c->out[0].dtype == LS_F64)
        return ls__conv_forward_f64(&s, c->in_data[0], c->in_data[1], c->out_data[0]);
    return ls__conv_forward_f32(&s, c->in_data[0], c->in_data[1], c->out_data[0]);
}

/* (w, dy) -> dx */
static ls_status grad_input_kernel(ls_call *c, const conv_kind *kind)
{
    ls__conv_shape s;
    ls_status st = ls__conv_geometry(c, kind->depthwise, c->out[0].dims, c->in[0]->dims, &s);
    if (st)
        return st;
    if (c->out[0].dtype == LS_F64)
        return ls__conv_backward_data_f64(&s, c->in_data[1], c->in_data[0], c->out_data[0]);
    return ls__conv_backward_data_f32(&s, c->in_data[1], c->in_data[0], c->out_data[0]);
}

/* (x, dy) -> dw */
static ls_status grad_filter_kernel(ls_call *c, const conv_kind *kind)
{
    ls__conv_shape s;
    ls_status st = ls__conv_geometry(c, kind->depthwise, c->in[0]->dims, c->out[0].dims, &s);
    if (st)
        return st;
    if (c->out[0].dtype == LS_F64)
        return ls__conv_backward_weights_f64(&s, c->in_data[0], c->in_data[1], c->out_data[0]);
    return ls__conv_backward_weights_f32(&s, c->in_data[0], c->in_data[1], c->out_data[0]);
}

/* ---- gradients: rows of the same kind ----------------------------------------------- */

static ls_tensor *call_forward(const conv_kind *kind, const void *attrs, ls_tensor *x, ls_tensor *w)
{
    const conv_attrs a = conv_attrs_of(attrs);
    return ls__call2(kind->forward, &a, x, w);
}

/* `like` has the shape of the result. */
static ls_tensor *call_backward(const ls_op *op, const void *attrs, ls_tensor *first, ls_tensor *dy,
                                ls_tensor *like)
{
    const conv_attrs from = conv_attrs_of(attrs);
    conv_grad_attrs a;
    memset(&a, 0, sizeof a);
    a.stride = from.stride;
    a.dilation = from.dilation;
    a.padding = from.padding;
    if (ls__ints(&a.shape, op->name, "shape", ls_rank(like), ls_shape(like)))
        return NULL;
    return ls__call2(op, &a, first, dy);
}

/* conv(x, w) */
static ls_status forward_gradient(ls_grad *g, const conv_kind *kind)
{
    ls_tensor *x = ls_grad_input(g, 0), *w = ls_grad_input(g, 1), *dy = ls_grad_output(g, 0);
    const void *a = ls_grad_attrs(g);
    ls_status st = LS_OK;
    if (ls_grad_wanted(g, 0))
        st = ls_grad_give(g, 0, call_backward(kind->grad_input, a, w, dy, x));
    if (!st && ls_grad_wanted(g, 1))
        st = ls_grad_give(g, 1, call_backward(kind->grad_filter, a, x, dy, w));
    return st;
}

/* grad_input(w, dy) */
static ls_status grad_input_gradient(ls_grad *g, const conv_kind *kind)
{
    ls_tensor *w = ls_grad_input(g, 0), *dy = ls_grad_input(g, 1), *ddx = ls_grad_output(g, 0);
    const void *a = ls_grad_attrs(g);
    ls_status st = LS_OK;
    if (ls_grad_wanted(g, 0))
        st = ls_grad_give(g, 0, call_backward(kind->grad_filter, a, ddx, dy, w));
    if (!st && ls_grad_wanted(g, 1))
        st = ls_grad_give(g, 1, call_forward(kind, a, ddx, w));
    return st;
}

/* grad_filter(x, dy) */
static ls_status grad_filter_gradient(ls_grad *g, const conv_kind *kind)
{
    ls_tensor *x = ls_grad_input(g, 0), *dy = ls_grad_input(g, 1), *ddw = ls_grad_output(g, 0);
    const void *a = ls_grad_attrs(g);
    ls_status st = LS_OK;
    if (ls_grad_wanted(g, 0))
        st = ls_grad_give(g, 0, call_backward(kind->grad_input, a, ddw, dy, x));
    if (!st && ls_grad_wanted(g, 1))
        st = ls_grad_give(g, 1, call_forward(kind, a, x, ddw));
    return st;
}

/* ---- rows ------------------------------------------------------------------------------ */

/* Three rows `prefix`, `prefix`_grad_input, `prefix`_grad_filter, and their kind. */
#define CONV_ROW(row, text, attr_type, attr_list, shape_rule, pass, which)                         \
    static ls_status row##_shape(ls_call *c)                                                       \
    {                                                                                              \
        return shape_rule;                                                                         \
    }                                                                                              \
    static ls_status row##_kernel(ls_call *c)                                                      \
    {                                                                                              \
        return pass##_kernel(c, &which);                                                           \
    }                                                                                              \
    static ls_status row##_gradient(ls_grad *g)                                                    \
    {                                                                                              \
        return pass##_gradient(g, &which);                                                         \
    }                                                                                              \
    static const ls_op row = {                                                                     \
        .size = sizeof(ls_op),                                                                     \
        .name = text,                                                                              \
        .inputs = 2,                                                                               \
        .outputs = 1,                                                                              \
        .flags = LS_OP_BF16_AS_F32,                                                                \
        .attr_size = sizeof(attr_type),                                                            \
        .attrs = attr_list,                                                                        \
        .shape = row##_shape,                                                                      \
        .kernel = row##_kernel,                                                                    \
        .gradient = row##_gradient,                                                                \
    };

#define CONV_ROWS(prefix, text, which, is_depthwise)                                               \
    CONV_ROW(prefix, text, conv_attrs, conv_attr_list, forward_shape(c, &which), forward, which)   \
    CONV_ROW(prefix##_grad_input, text "_grad_input", conv_grad_attrs, conv_grad_attr_list,        \
             backward_shape(c, &which, true), grad_input, which)                                   \
    CONV_ROW(prefix##_grad_filter, text "_grad_filter", conv_grad_attrs, conv_grad_attr_list,      \
             backward_shape(c, &which, false), grad_filter, which)                                 \
    static const conv_kind which = { is_depthwise, &prefix, &prefix##_grad_input,                  \
                                     &prefix##_grad_filter };

CONV_ROWS(conv2d, "conv2d", plain_kind, false)
CONV_ROWS(depthwise_conv2d, "depthwise_conv2d", depthwise_kind, true)

/* ---- calling ---------------------------------------------------------------------------- */

void ls_conv_init(ls_conv_options *options)
{
    if (!options)
        return;
    *options =
        (ls_conv_options){ .size = sizeof *options, .stride = { 1, 1 }, .dilation = { 1, 1 } };
}

static ls_tensor *convolve(const ls_op *op, ls_tensor *x, ls_tensor *w,
                           const ls_conv_options *options)
{
    ls_conv_options o;
    ls_conv_init(&o);
    if (options && options->size != sizeof o) {
        ls__hint(ls__fail(LS_INVALID, "%s: options of size %zu, wants %zu", op->name, options->size,
                          sizeof o),
                 "make them with LS_CONV(...) or start from ls_conv_init");
        return NULL;
    }
    if (options)
        o = *options;
    conv_attrs attrs;
    memset(&attrs, 0, sizeof attrs);
    attrs.stride.count = attrs.dilation.count = 2;
    for (int i = 0; i < 2; i++) {
        attrs.stride.at[i] = o.stride[i] ? o.stride[i] : 1;
        attrs.dilation.at[i] = o.dilation[i] ? o.dilation[i] : 1;
    }
    attrs.padding = o.padding;
    return ls__call2(op, &attrs, x, w);
}

ls_tensor *ls_conv2d(ls_tensor *x, ls_tensor *w, const ls_conv_options *options)
{
    return convolve(&conv2d, x, w, options);
}

ls_tensor *ls_depthwise_conv2d(ls_tensor *x, ls_tensor *w, const ls_conv_options *options)
{
    return convolve(&depthwise_conv2d, x, w, options);
}

const ls_op *const ls__rows_conv[] = { &conv2d,
                                       &conv2d_grad_input,
                                       &conv2d_grad_filter,
                                       &depthwise_conv2d,
                                       &depthwise_conv2d_grad_input,
                                       &depthwise_conv2d_grad_filter,
                                       NULL };
