/*
 * The first layer of a network on grey images. Where the passes before this one left
 *
 *     u = conv2d_bias_act(x, w, bias)          without relu, nobody else wants u
 *     p, places = max_pool2d_relu(u)           windows of 2 x 2 that do not overlap
 *     ...
 *     m = relu_grad(p, dp)
 *     du = max_pool2d_grad(m, places)
 *     dw = conv2d_grad_filter(x, du)           nobody else wants du: x has no gradient
 *     dbias = sum(m) over all axes but the last
 *
 * and this processor has kernels for it (conv_pool.h), it becomes
 *
 *     p, marks = conv2d_pool_relu(x, w, bias)
 *     ...
 *     dw, dbias = conv2d_pool_relu_grad(x, dp, marks)
 *
 * u and du, four times as large as all the rest, are not made. The order of the gradients' sums changes.
 */
#include <lockstep/ops.h>
#include <string.h>

#include "kernels/conv_pool.h"
#include "ops/conv.h"
#include "ops/pool.h"
#include "trace/pass.h"

/* The nodes of one such layer; those of the gradient are NULL where there is none. */
typedef struct layer {
    ls__node *conv, *pool;
    ls__node *mask, *back, *filter, *sum;
} layer;

static bool is_half(const ls__node *pool)
{
    const ls__pool_attrs *a = pool->attrs;
    return a->window == 2 && a->stride == 2 && a->padding == LS_VALID;
}

/* The shape of the convolution, as its row reads it. */
static bool has_kernels(const ls__graph *g, const ls__node *conv)
{
    const ls__conv_act_attrs *a = conv->attrs;
    const ls__spec *in[2] = { &g->wires[conv->inputs[0]].spec, &g->wires[conv->inputs[1]].spec };
    const ls_call c = { .op = conv->op, .attrs = a, .n_inputs = 2, .in = in };
    ls__conv_shape s;
    return !a->relu && in[0]->dtype == LS_F32 &&
           !ls__conv_geometry(&c, false, in[0]->dims, in[1]->dims, &s) && ls__conv_pool_fits(&s);
}

/* Whether a sum leaves the last axis of an image alone, and nothing else. */
static bool sums_to_channels(const ls__graph *g, const ls__node *sum)
{
    ls_ints axes;
    unsigned seen = 0;
    memcpy(&axes, (const char *)sum->attrs + sum->op->attrs[0].offset, sizeof axes);
    for (int64_t i = 0; i < axes.count; i++)
        seen |= 1u << (axes.at[i] < 0 ? axes.at[i] + 4 : axes.at[i]);
    return axes.count == 3 && seen == 7 && g->wires[sum->outputs[0]].spec.rank == 1;
}

/* The way back, all of it or nothing; false: some of it is another's, too. */
static bool find_back(const ls__graph *g, const ls__uses *uses, layer *l)
{
    const int places = l->pool->outputs[1];
    if (ls__uses_count(uses, places) == 0)
        return true;
    l->back = ls__only_user(uses, places);
    if (!l->back || !ls__node_is(l->back, "max_pool2d_grad"))
        return false;
    l->mask = ls__made_by(g, l->back->inputs[0], "relu_grad");
    l->filter = ls__only_user(uses, l->back->outputs[0]);
    if (!l->mask || l->mask->inputs[0] != l->pool->outputs[0] || !l->filter ||
        !ls__node_is(l->filter, "conv2d_grad_filter") ||
        l->filter->inputs[0] != l->conv->inputs[0] ||
        memcmp(l->filter->attrs, l->conv->attrs, sizeof(ls__conv_attrs)) != 0)
        return false;
    const int m = l->mask->outputs[0];
    for (int i = uses->begin[m]; i < uses->begin[m + 1] && !l->sum; i++)
        if (uses->users[i] && ls__node_is(uses->users[i], "sum") &&
            sums_to_channels(g, uses->users[i]))
            l->sum = uses->users[i];
    return true;
}

static bool find_layer(const ls__graph *g, const ls__uses *uses, ls__node *pool, layer *l)
{
    *l = (layer){ .pool = pool, .conv = ls__made_by(g, pool->inputs[0], "conv2d_bias_act") };
    return l->conv && is_half(pool) && ls__only_user(uses, pool->inputs[0]) == pool &&
           has_kernels(g, l->conv) && find_back(g, uses, l);
}

static ls_status fuse_back(ls__graph *g, const layer *l, int marks)
{
    /* What both need is there before the first of them. */
    ls__node *first = l->sum && l->sum->at < l->filter->at ? l->sum : l->filter;
    const int inputs[3] = { l->conv->inputs[0], l->mask->inputs[1], marks };
    const ls__conv_grad_attrs *from = l->filter->attrs;
    const ls__conv_pool_grad_attrs attrs = { .stride = from->stride,
                                             .dilation = from->dilation,
                                             .padding = from->padding,
                                             .shape = from->shape };
    ls__node *fused =
        ls__graph_call(g, first, ls_op_find("conv2d_pool_relu_grad"), &attrs, 3, inputs);
    if (!fused)
        return ls_error_pending();
    ls__graph_redirect(g, l->filter->outputs[0], fused->outputs[0], NULL);
    ls__graph_remove(g, l->filter);
    ls__graph_remove(g, l->back);
    if (l->sum) {
        ls__graph_redirect(g, l->sum->outputs[0], fused->outputs[1], NULL);
        ls__graph_remove(g, l->sum);
    }
    return LS_OK;
}

static ls_status fuse(ls__graph *g, const layer *l)
{
    const ls__conv_act_attrs *from = l->conv->attrs;
    const ls__conv_pool_attrs attrs = { .stride = from->stride,
                                        .dilation = from->dilation,
                                        .padding = from->padding };
    ls__node *fused =
        ls__graph_call(g, l->pool, ls_op_find("conv2d_pool_relu"), &attrs, 3, l->conv->inputs);
    if (!fused)
        return ls_error_pending();
    ls_status st = l->back ? fuse_back(g, l, fused->outputs[1]) : LS_OK;
    if (st)
        return st;
    ls__graph_redirect(g, l->pool->outputs[0], fused->outputs[0], NULL);
    ls__graph_remove(g, l->pool);
    ls__graph_remove(g, l->conv);
    return LS_OK;
}

/* One layer changes who uses what of its own wires alone. */
ls_status ls__pass_fuse_conv_pool(ls__graph *g)
{
    ls__uses uses;
    ls_status st = ls__uses_find(g, &uses);
    if (st)
        return st;
    ls__node *next = g->n_nodes > 0 ? g->nodes[0] : NULL;
    while (next && !st) {
        ls__node *node = next;
        next = node->at + 1 < g->n_nodes ? g->nodes[node->at + 1] : NULL;
        layer l;
        if (ls__node_is(node, "max_pool2d_relu") && find_layer(g, &uses, node, &l))
            st = fuse(g, &l);
    }
    ls__uses_free(&uses);
    return st;
}
