/*
 * conv2d_bias_act: relu?(conv2d(x, w) + bias), put into a graph by pass_fuse_conv.c.
 *
 * It computes what the rows conv2d, add and relu compute, with the same bits where
 * the convolution is ours or the reference; oneDNN adds the bias where it likes.
 * bf16 is refused: there every row rounds its result, and one row would round once.
 */
#include "ops/conv.h"

#define FUSED_FLOATS (LS__BIT(LS_F32) | LS__BIT(LS_F64))

static const ls_attr attr_list[] = { LS_ATTR_INTS(ls__conv_act_attrs, stride),
                                     LS_ATTR_INTS(ls__conv_act_attrs, dilation),
                                     LS_ATTR_INT(ls__conv_act_attrs, padding),
                                     LS_ATTR_INT(ls__conv_act_attrs, relu), LS_ATTR_END };

static ls_status act_geometry(const ls_call *c, ls__conv_shape *s)
{
    const ls__conv_act_attrs *a = c->attrs;
    ls_status st = ls__conv_geometry(c, false, c->in[0]->dims, c->in[1]->dims, s);
    if (st)
        return st;
    s->bias = true;
    s->relu = a->relu;
    return LS_OK;
}

static ls_status act_shape(ls_call *c)
{
    const ls__conv_act_attrs *a = c->attrs;
    ls__conv_shape s;
    ls_status st = ls__want_dtype(c, 0, FUSED_FLOATS);
    if (!st)
        st = ls__conv_want_inputs(c);
    if (!st)
        st = ls__want_same_dtype(c, 0, 2);
    if (!st)
        st = ls__want_rank(c, 2, 1);
    if (!st && a->relu != 0 && a->relu != 1)
        st = ls_call_fail(c, LS_INVALID, "relu is %lld, wants 0 or 1", (long long)a->relu);
    if (!st)
        st = act_geometry(c, &s);
    if (st)
        return st;
    if (c->in[2]->dims[0] != s.oc)
        return ls_call_fail(c, LS_SHAPE, "a bias of %lld for %lld channels",
                            (long long)c->in[2]->dims[0], (long long)s.oc);
    return ls_call_output(c, 0, c->in[0]->dtype, 4, (const int64_t[]){ s.n, s.oh, s.ow, s.oc });
}

static ls_status act_kernel(ls_call *c)
{
    ls__conv_shape s;
    ls_status st = act_geometry(c, &s);
    if (st)
        return st;
    if (c->out[0].dtype == LS_F64)
        return ls__conv_forward_fused_f64(&s, c->in_data[0], c->in_data[1], c->in_data[2],
                                          c->out_data[0]);
    return ls__conv_forward_fused_f32(&s, c->in_data[0], c->in_data[1], c->in_data[2],
                                      c->out_data[0]);
}

static const ls_op conv2d_bias_act = {
    .size = sizeof(ls_op),
    .name = "conv2d_bias_act",
    .inputs = 3,
    .outputs = 1,
    .flags = LS__OP_FUSED,
    .attr_size = sizeof(ls__conv_act_attrs),
    .attrs = attr_list,
    .shape = act_shape,
    .kernel = act_kernel,
};

const ls_op *const ls__rows_fused_conv[] = { &conv2d_bias_act, NULL };
