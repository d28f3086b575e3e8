/*
 * conv2d_pack, conv2d_pack_weights, conv2d_unpack and conv2d_packed: one plan of
 * kernels/conv.h as operators of a graph. f32 only.
 *
 * Invariant: a call's tensors have exactly the sizes the plan its attributes tell of
 * works on. The shape rules open the plan to know; the kernels find it again in
 * their thread's cache.
 */
#include "ops/layout_conv.h"

#include "kernels/threads.h"

#include <string.h>

static const ls_attr attr_list[] = {
    LS_ATTR_INTS(ls__conv_packed_attrs, x),       LS_ATTR_INTS(ls__conv_packed_attrs, filter),
    LS_ATTR_INTS(ls__conv_packed_attrs, stride),  LS_ATTR_INTS(ls__conv_packed_attrs, dilation),
    LS_ATTR_INTS(ls__conv_packed_attrs, padding), LS_ATTR_INT(ls__conv_packed_attrs, bias),
    LS_ATTR_INT(ls__conv_packed_attrs, relu),     LS_ATTR_INT(ls__conv_packed_attrs, pass),
    LS_ATTR_INT(ls__conv_packed_attrs, layout),   LS_ATTR_INT(ls__conv_packed_attrs, threads),
    LS_ATTR_INT(ls__conv_packed_attrs, argument), LS_ATTR_END
};

/* ---- attributes and plans ------------------------------------------------------------ */

ls__conv_packed_attrs ls__conv_packed(const ls__conv_shape *s, ls__conv_pass pass,
                                      ls__conv_layout layout)
{
    const bool forward = pass == LS__CONV_FORWARD;
    return (ls__conv_packed_attrs){
        .x = { 4, { s->n, s->h, s->w, s->c } },
        .filter = { 4, { s->kh, s->kw, s->c, s->oc } },
        .stride = { 2, { s->stride_h, s->stride_w } },
        .dilation = { 2, { s->dilation_h, s->dilation_w } },
        .padding = { 4, { s->pad_top, s->pad_left, s->pad_bottom, s->pad_right } },
        .bias = forward && s->bias,
        .relu = forward && s->relu,
        .pass = pass,
        .layout = layout,
        .threads = ls__kernel_threads_get(),
    };
}

static bool between(int64_t v, int64_t low, int64_t high)
{
    return v >= low && v <= high;
}

/* Whether the attributes can be turned into a shape at all; the sizes themselves are
 * for ls__conv_shape_complete to judge. */
static bool in_range(const ls__conv_packed_attrs *a)
{
    return a->x.count == 4 && a->filter.count == 4 && a->stride.count == 2 &&
           a->dilation.count == 2 && a->padding.count == 4 && a->x.at[3] == a->filter.at[2] &&
           between(a->bias, 0, 1) && between(a->relu, 0, 1) &&
           between(a->pass, LS__CONV_FORWARD, LS__CONV_BACKWARD_WEIGHTS) &&
           between(a->layout, LS__CONV_NHWC, LS__CONV_WINOGRAD) && between(a->threads, 1, 1024) &&
           between(a->argument, LS__CONV_X, LS__CONV_Y);
}

ls_status ls__conv_packed_plan(const ls__conv_packed_attrs *a, ls__conv_plan *plan)
{
    if (!in_range(a))
        return ls__fail(LS_INVALID, "a packed convolution's attributes are out of range");
    ls__conv_shape s = {
        .n = a->x.at[0],
        .h = a->x.at[1],
        .w = a->x.at[2],
        .c = a->x.at[3],
        .kh = a->filter.at[0],
        .kw = a->filter.at[1],
        .oc = a->filter.at[3],
        .stride_h = a->stride.at[0],
        .stride_w = a->stride.at[1],
        .dilation_h = a->dilation.at[0],
        .dilation_w = a->dilation.at[1],
        .pad_top = a->padding.at[0],
        .pad_left = a->padding.at[1],
        .pad_bottom = a->padding.at[2],
        .pad_right = a->padding.at[3],
        .multiplier = 1,
        .bias = a->bias,
        .relu = a->relu,
    };
    ls_status st = ls__conv_shape_complete(&s);
    if (st)
        return st;
    const int threads = ls__kernel_threads_get();
    ls__kernel_threads((int)a->threads);
    st = ls__conv_plan_open(plan, &s, (ls__conv_pass)a->pass, (ls__conv_layout)a->layout);
    ls__kernel_threads(threads);
    return st;
}

/* The spec of an argument in a graph: as it is, or as the plan wants it. */
static ls__spec argument(const ls__conv_plan *p, int arg, bool packed)
{
    const ls__conv_shape *s = &p->shape;
    if (packed && !p->arg[arg].plain)
        return (ls__spec){ .dtype = LS_F32,
                           .rank = 1,
                           .dims = { (int64_t)(p->arg[arg].bytes / sizeof(float)) } };
    ls__spec plain = { .dtype = LS_F32, .rank = 4 };
    const int64_t dims[3][4] = { [LS__CONV_X] = { s->n, s->h, s->w, s->c },
                                 [LS__CONV_W] = { s->kh, s->kw, s->c, s->oc },
                                 [LS__CONV_Y] = { s->n, s->oh, s->ow, s->oc } };
    memcpy(plain.dims, dims[arg], sizeof dims[arg]);
    return plain;
}

/* ---- moving --------------------------------------------------------------------------- */

static ls_status move_shape(ls_call *c, bool pack)
{
    const ls__conv_packed_attrs *a = c->attrs;
    ls__conv_plan plan;
    ls_status st = ls__conv_packed_plan(a, &plan);
    if (st)
        return st;
    ls__spec from = argument(&plan, (int)a->argument, !pack);
    ls__spec to = argument(&plan, (int)a->argument, pack);
    ls__conv_plan_close(&plan);
    st = ls__want_spec(c, 0, &from);
    return st ? st : ls__output_spec(c, 0, &to);
}

static ls_status pack_shape(ls_call *c)
{
    return move_shape(c, true);
}

static ls_status pack_weights_shape(ls_call *c)
{
    const ls__conv_packed_attrs *a = c->attrs;
    if (a->argument != LS__CONV_W)
        return ls_call_fail(c, LS_INVALID, "argument %lld is not the filter",
                            (long long)a->argument);
    return move_shape(c, true);
}

static ls_status unpack_shape(ls_call *c)
{
    return move_shape(c, false);
}

static ls_status pack_kernel(ls_call *c)
{
    const ls__conv_packed_attrs *a = c->attrs;
    ls__conv_plan plan;
    ls_status st = ls__conv_packed_plan(a, &plan);
    if (st)
        return st;
    st = ls__conv_plan_pack(&plan, (int)a->argument, c->in_data[0], c->out_data[0]);
    ls__conv_plan_close(&plan);
    return st;
}

static ls_status unpack_kernel(ls_call *c)
{
    const ls__conv_packed_attrs *a = c->attrs;
    ls__conv_plan plan;
    ls_status st = ls__conv_packed_plan(a, &plan);
    if (st)
        return st;
    st = ls__conv_plan_unpack(&plan, (int)a->argument, c->in_data[0], c->out_data[0]);
    ls__conv_plan_close(&plan);
    return st;
}

/* ---- computing -------------------------------------------------------------------------- */

/* What the inputs of a pass are, in the order of the plain rows, and its output. */
static const struct {
    int in[2], out;
} passes[] = {
    [LS__CONV_FORWARD] = { { LS__CONV_X, LS__CONV_W }, LS__CONV_Y },
    [LS__CONV_BACKWARD_DATA] = { { LS__CONV_W, LS__CONV_Y }, LS__CONV_X },
    [LS__CONV_BACKWARD_WEIGHTS] = { { LS__CONV_X, LS__CONV_Y }, LS__CONV_W },
};

static ls_status packed_shape(ls_call *c)
{
    const ls__conv_packed_attrs *a = c->attrs;
    ls__conv_plan plan;
    ls_status st = ls__conv_packed_plan(a, &plan);
    if (st)
        return st;
    ls__spec out = argument(&plan, passes[a->pass].out, true);
    const ls__spec bias = { .dtype = LS_F32, .rank = 1, .dims = { plan.shape.oc } };
    if (c->n_inputs != (a->bias ? 3 : 2) || (a->pass != LS__CONV_FORWARD && (a->bias || a->relu)))
        st = ls_call_fail(c, LS_INVALID, "%d inputs do not fit the attributes", c->n_inputs);
    for (int i = 0; i < 2 && !st; i++) {
        ls__spec want = argument(&plan, passes[a->pass].in[i], true);
        st = ls__want_spec(c, i, &want);
    }
    if (!st && a->bias)
        st = ls__want_spec(c, 2, &bias);
    ls__conv_plan_close(&plan);
    return st ? st : ls__output_spec(c, 0, &out);
}

/* Inputs lose their const on the way; a pass writes only its output. */
static ls_status packed_kernel(ls_call *c)
{
    const ls__conv_packed_attrs *a = c->attrs;
    ls__conv_plan plan;
    void *arg[3];
    ls_status st = ls__conv_packed_plan(a, &plan);
    if (st)
        return st;
    for (int i = 0; i < 2; i++)
        arg[passes[a->pass].in[i]] = (void *)c->in_data[i];
    arg[passes[a->pass].out] = c->out_data[0];
    st = ls__conv_plan_run(&plan, arg[LS__CONV_X], arg[LS__CONV_W], arg[LS__CONV_Y],
                           a->bias ? c->in_data[2] : NULL);
    ls__conv_plan_close(&plan);
    return st;
}

/* ---- rows ---------------------------------------------------------------------------------- */

#define ROW(row, text, count, more, shape_rule, run)                                               \
    const ls_op row = { .size = sizeof(ls_op),                                                     \
                        .name = text,                                                              \
                        .inputs = count,                                                           \
                        .outputs = 1,                                                              \
                        .flags = LS__OP_FUSED | (more),                                            \
                        .attr_size = sizeof(ls__conv_packed_attrs),                                \
                        .attrs = attr_list,                                                        \
                        .shape = shape_rule,                                                       \
                        .kernel = run };

ROW(ls__conv2d_pack, "conv2d_pack", 1, 0, pack_shape, pack_kernel)
ROW(ls__conv2d_pack_weights, "conv2d_pack_weights", 1, LS__OP_PACKS, pack_weights_shape,
    pack_kernel)
ROW(ls__conv2d_unpack, "conv2d_unpack", 1, 0, unpack_shape, unpack_kernel)
ROW(ls__conv2d_packed, "conv2d_packed", LS_ANY_NUMBER, 0, packed_shape, packed_kernel)

const ls_op *const ls__rows_layout_conv[] = { &ls__conv2d_pack, &ls__conv2d_pack_weights,
                                              &ls__conv2d_unpack, &ls__conv2d_packed, NULL };
