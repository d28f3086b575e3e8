/*
 * conv2d_pool_relu: relu(max_pool2d(conv2d(x, w) + bias)) with windows of 2 x 2, and the gradients of w
 * and bias, put into a graph by pass_fuse_conv_pool.c. What is between them is never made (conv_pool.h).
 *
 *     p, marks = conv2d_pool_relu(x, w, bias)
 *     dw, dbias = conv2d_pool_relu_grad(x, dp, marks)
 *
 * The layout pass may want p and dp packed, in blocks of channels.
 */
#include "kernels/conv_pool.h"
#include "ops/conv.h"

static const ls_attr forward_attrs[] = { LS_ATTR_INTS(ls__conv_pool_attrs, stride),
                                         LS_ATTR_INTS(ls__conv_pool_attrs, dilation),
                                         LS_ATTR_INT(ls__conv_pool_attrs, padding),
                                         LS_ATTR_INT(ls__conv_pool_attrs, block), LS_ATTR_END };

static const ls_attr backward_attrs[] = { LS_ATTR_INTS(ls__conv_pool_grad_attrs, stride),
                                          LS_ATTR_INTS(ls__conv_pool_grad_attrs, dilation),
                                          LS_ATTR_INT(ls__conv_pool_grad_attrs, padding),
                                          LS_ATTR_INTS(ls__conv_pool_grad_attrs, shape),
                                          LS_ATTR_INT(ls__conv_pool_grad_attrs, block),
                                          LS_ATTR_END };

static ls_status check_inputs(const ls_call *c)
{
    ls_status st = ls__want_dtype(c, 0, LS__BIT(LS_F32));
    if (!st)
        st = ls__want_same_dtype(c, 0, 1);
    if (!st)
        st = ls__want_rank(c, 0, 4);
    return st ? st : ls__want_rank(c, 1, 4);
}

/* The convolution; refused if it is none that can be pooled at once. */
static ls_status geometry(const ls_call *c, const int64_t *w, ls__conv_shape *s)
{
    ls_status st = ls__conv_geometry(c, false, c->in[0]->dims, w, s);
    if (!st && !ls__conv_pool_can(s))
        st = ls_call_fail(c, LS_INVALID,
                          "wants one channel and a dense filter of 3 x 3 or 5 x 5 with stride 1");
    return st;
}

static ls_status check_block(const ls_call *c, const ls__conv_shape *s, int64_t block)
{
    if (block == 0 || (block == LS__CONV_POOL_BLOCK && s->oc % block == 0))
        return LS_OK;
    return ls_call_fail(c, LS_INVALID, "%lld channels in blocks of %lld, wants 0 or %d",
                        (long long)s->oc, (long long)block, LS__CONV_POOL_BLOCK);
}

/* What is pooled: an image, or a vector that is packed. */
static ls__spec pooled(const ls__conv_shape *s, int64_t block)
{
    const ls__spec image = ls__conv_pooled_spec(s);
    return block ? (ls__spec){ LS_F32, 1, { ls__spec_count(&image) } } : image;
}

static size_t scratch_of(const ls__conv_shape *s)
{
    return (size_t)ls__conv_pool_scratch(s) * sizeof(float);
}

/* ---- forward -------------------------------------------------------------------------------- */

static ls_status forward_shape(ls_call *c)
{
    ls__conv_shape s;
    ls_status st = check_inputs(c);
    if (!st)
        st = ls__want_same_dtype(c, 0, 2);
    if (!st)
        st = ls__want_rank(c, 2, 1);
    if (!st)
        st = geometry(c, c->in[1]->dims, &s);
    if (st)
        return st;
    if (c->in[2]->dims[0] != s.oc)
        return ls_call_fail(c, LS_SHAPE, "a bias of %lld for %lld channels",
                            (long long)c->in[2]->dims[0], (long long)s.oc);
    const int64_t block = ((const ls__conv_pool_attrs *)c->attrs)->block;
    st = check_block(c, &s, block);
    if (st)
        return st;
    const ls__spec p = pooled(&s, block), marks = ls__conv_marks_spec(&s);
    st = ls__output_spec(c, 0, &p);
    return st ? st : ls__output_spec(c, 1, &marks);
}

static size_t forward_scratch(ls_call *c)
{
    ls__conv_shape s;
    return geometry(c, c->in[1]->dims, &s) ? 0 : scratch_of(&s);
}

static ls_status forward_kernel(ls_call *c)
{
    ls__conv_shape s;
    ls_status st = geometry(c, c->in[1]->dims, &s);
    if (!st)
        ls__conv_pool_forward(&s, ((const ls__conv_pool_attrs *)c->attrs)->block != 0,
                              c->in_data[0], c->in_data[1], c->in_data[2], c->out_data[0],
                              c->out_data[1], c->scratch);
    return st;
}

static const ls_op conv2d_pool_relu = {
    .size = sizeof(ls_op),
    .name = "conv2d_pool_relu",
    .inputs = 3,
    .outputs = 2,
    .flags = LS__OP_FUSED | LS_OP_TOTAL,
    .attr_size = sizeof(ls__conv_pool_attrs),
    .attrs = forward_attrs,
    .shape = forward_shape,
    .scratch = forward_scratch,
    .kernel = forward_kernel,
};

/* ---- backward ------------------------------------------------------------------------------- */

static const int64_t *filter_of(const ls_call *c)
{
    return ((const ls__conv_pool_grad_attrs *)c->attrs)->shape.at;
}

static int64_t block_back(const ls_call *c)
{
    return ((const ls__conv_pool_grad_attrs *)c->attrs)->block;
}

static ls_status backward_shape(ls_call *c)
{
    const ls_ints *shape = &((const ls__conv_pool_grad_attrs *)c->attrs)->shape;
    ls__conv_shape s;
    ls_status st = ls__want_dtype(c, 0, LS__BIT(LS_F32));
    if (!st)
        st = ls__want_rank(c, 0, 4);
    if (!st && shape->count != 4)
        st =
            ls_call_fail(c, LS_INVALID, "shape has %lld numbers, wants 4", (long long)shape->count);
    if (!st)
        st = ls_call_output(c, 0, LS_F32, 4, shape->at);
    if (!st)
        st = geometry(c, shape->at, &s);
    if (!st)
        st = check_block(c, &s, block_back(c));
    if (st)
        return st;
    const ls__spec p = pooled(&s, block_back(c)), marks = ls__conv_marks_spec(&s);
    st = ls__want_spec(c, 1, &p);
    if (!st)
        st = ls__want_spec(c, 2, &marks);
    return st ? st : ls_call_output(c, 1, LS_F32, 1, &s.oc);
}

static size_t backward_scratch(ls_call *c)
{
    ls__conv_shape s;
    return geometry(c, filter_of(c), &s) ? 0 : scratch_of(&s);
}

static ls_status backward_kernel(ls_call *c)
{
    ls__conv_shape s;
    ls_status st = geometry(c, filter_of(c), &s);
    if (!st)
        ls__conv_pool_backward(&s, block_back(c) != 0, c->in_data[0], c->in_data[1], c->in_data[2],
                               c->out_data[0], c->out_data[1], c->scratch);
    return st;
}

static const ls_op conv2d_pool_relu_grad = {
    .size = sizeof(ls_op),
    .name = "conv2d_pool_relu_grad",
    .inputs = 3,
    .outputs = 2,
    .flags = LS__OP_FUSED | LS_OP_TOTAL,
    .attr_size = sizeof(ls__conv_pool_grad_attrs),
    .attrs = backward_attrs,
    .shape = backward_shape,
    .scratch = backward_scratch,
    .kernel = backward_kernel,
};

const ls_op *const ls__rows_fused_conv_pool[] = { &conv2d_pool_relu, &conv2d_pool_relu_grad, NULL };
