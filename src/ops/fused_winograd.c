/*
 * Convolutions by Winograd's algorithm (kernels/winograd.h), put into a graph by pass_winograd.c: a convolution, with bias and
 * relu; both its gradients, which share half of their work; and the same with the pool behind it.
 *
 *     y = conv2d_winograd(x, w) or (x, w, bias)         dx, dw = conv2d_winograd_grad(x, w, dy)
 *     p, marks = conv2d_winograd_pool(x, w, bias)       dx, dw, dbias = conv2d_winograd_pool_grad(x, w, dp, marks)
 *
 * f32 only. They compute what conv2d, conv2d_bias_act, conv2d_pool_relu and the gradients compute, with other
 * last bits.
 */
#include "kernels/winograd.h"
#include "ops/conv.h"

static const ls_attr act_attrs[] = { LS_ATTR_INTS(ls__conv_act_attrs, stride),
                                     LS_ATTR_INTS(ls__conv_act_attrs, dilation),
                                     LS_ATTR_INT(ls__conv_act_attrs, padding),
                                     LS_ATTR_INT(ls__conv_act_attrs, relu), LS_ATTR_END };

static const ls_attr plain_attrs[] = { LS_ATTR_INTS(ls__conv_attrs, stride),
                                       LS_ATTR_INTS(ls__conv_attrs, dilation),
                                       LS_ATTR_INT(ls__conv_attrs, padding), LS_ATTR_END };

/* The first two inputs of every row are x and w. */
static ls_status geometry(const ls_call *c, ls__conv_shape *s)
{
    ls_status st = ls__conv_geometry(c, false, c->in[0]->dims, c->in[1]->dims, s);
    if (!st && !ls__winograd_can(s))
        st = ls_call_fail(c, LS_INVALID, "wants a dense filter of 3 x 3 with stride 1");
    return st;
}

static ls_status check(const ls_call *c, ls__conv_shape *s)
{
    ls_status st = ls__want_dtype(c, 0, LS__BIT(LS_F32));
    if (!st)
        st = ls__conv_want_inputs(c);
    return st ? st : geometry(c, s);
}

static ls__spec bias_spec(const ls__conv_shape *s)
{
    return (ls__spec){ LS_F32, 1, { s->oc } };
}

static ls__spec output_spec(const ls__conv_shape *s)
{
    return (ls__spec){ LS_F32, 4, { s->n, s->oh, s->ow, s->oc } };
}

static size_t scratch(const ls_call *c, bool back)
{
    ls__conv_shape s;
    return geometry(c, &s) ? 0 : (size_t)ls__winograd_scratch(&s, back) * sizeof(float);
}

static size_t forward_scratch(ls_call *c)
{
    return scratch(c, false);
}

static size_t backward_scratch(ls_call *c)
{
    return scratch(c, true);
}

/* ---- forward -------------------------------------------------------------------------------- */

static ls_status forward_shape(ls_call *c)
{
    const int64_t relu = ((const ls__conv_act_attrs *)c->attrs)->relu;
    ls__conv_shape s;
    if (c->n_inputs < 2 || c->n_inputs > 3 || relu < 0 || relu > 1)
        return ls_call_fail(c, LS_INVALID, "%d inputs, relu %lld; wants 2 or 3, and 0 or 1",
                            c->n_inputs, (long long)relu);
    ls_status st = check(c, &s);
    if (st)
        return st;
    const ls__spec bias = bias_spec(&s), y = output_spec(&s);
    st = c->n_inputs == 3 ? ls__want_spec(c, 2, &bias) : LS_OK;
    return st ? st : ls__output_spec(c, 0, &y);
}

static ls_status forward_kernel(ls_call *c)
{
    ls__conv_shape s;
    ls_status st = geometry(c, &s);
    if (st)
        return st;
    s.relu = ((const ls__conv_act_attrs *)c->attrs)->relu;
    ls__winograd_forward(&s, c->in_data[0], c->in_data[1], c->n_inputs == 3 ? c->in_data[2] : NULL,
                         c->out_data[0], NULL, c->scratch);
    return LS_OK;
}

static ls_status pool_shape(ls_call *c)
{
    ls__conv_shape s;
    ls_status st = check(c, &s);
    if (st)
        return st;
    const ls__spec bias = bias_spec(&s), p = ls__conv_pooled_spec(&s),
                   marks = ls__conv_marks_spec(&s);
    st = ls__want_spec(c, 2, &bias);
    if (!st)
        st = ls__output_spec(c, 0, &p);
    return st ? st : ls__output_spec(c, 1, &marks);
}

static ls_status pool_kernel(ls_call *c)
{
    ls__conv_shape s;
    ls_status st = geometry(c, &s);
    if (!st)
        ls__winograd_forward(&s, c->in_data[0], c->in_data[1], c->in_data[2], c->out_data[0],
                             c->out_data[1], c->scratch);
    return st;
}

/* ---- backward ------------------------------------------------------------------------------- */

static ls_status give_gradients(ls_call *c)
{
    ls_status st = ls__output_like(c, 0, 0);
    return st ? st : ls__output_like(c, 1, 1);
}

static ls_status grad_shape(ls_call *c)
{
    ls__conv_shape s;
    ls_status st = check(c, &s);
    if (st)
        return st;
    const ls__spec dy = output_spec(&s);
    st = ls__want_spec(c, 2, &dy);
    return st ? st : give_gradients(c);
}

static ls_status pool_grad_shape(ls_call *c)
{
    ls__conv_shape s;
    ls_status st = check(c, &s);
    if (st)
        return st;
    const ls__spec dp = ls__conv_pooled_spec(&s), marks = ls__conv_marks_spec(&s),
                   bias = bias_spec(&s);
    st = ls__want_spec(c, 2, &dp);
    if (!st)
        st = ls__want_spec(c, 3, &marks);
    if (!st)
        st = give_gradients(c);
    return st ? st : ls__output_spec(c, 2, &bias);
}

static ls_status grad_kernel(ls_call *c)
{
    const bool pooled = c->n_inputs == 4;
    ls__conv_shape s;
    ls_status st = geometry(c, &s);
    if (!st)
        ls__winograd_backward(&s, c->in_data[0], c->in_data[1], c->in_data[2],
                              pooled ? c->in_data[3] : NULL, c->out_data[0], c->out_data[1],
                              pooled ? c->out_data[2] : NULL, c->scratch);
    return st;
}

/* ---- rows ----------------------------------------------------------------------------------- */

#define ROW(row, in, out, type, list, shape_rule, way, run)                                        \
    static const ls_op row = { .size = sizeof(ls_op),                                              \
                               .name = #row,                                                       \
                               .inputs = in,                                                       \
                               .outputs = out,                                                     \
                               .flags = LS__OP_FUSED | LS_OP_TOTAL,                                \
                               .attr_size = sizeof(type),                                          \
                               .attrs = list,                                                      \
                               .shape = shape_rule,                                                \
                               .scratch = way##_scratch,                                           \
                               .kernel = run };

ROW(conv2d_winograd, LS_ANY_NUMBER, 1, ls__conv_act_attrs, act_attrs, forward_shape, forward,
    forward_kernel)
ROW(conv2d_winograd_grad, 3, 2, ls__conv_attrs, plain_attrs, grad_shape, backward, grad_kernel)
ROW(conv2d_winograd_pool, 3, 2, ls__conv_attrs, plain_attrs, pool_shape, forward, pool_kernel)
ROW(conv2d_winograd_pool_grad, 4, 3, ls__conv_attrs, plain_attrs, pool_grad_shape, backward,
    grad_kernel)

const ls_op *const ls__rows_fused_winograd[] = { &conv2d_winograd, &conv2d_winograd_grad,
                                                 &conv2d_winograd_pool, &conv2d_winograd_pool_grad,
                                                 NULL };
