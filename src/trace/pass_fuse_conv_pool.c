/*
 * The first layer of a network on grey images (conv_layer.h), where x has no gradient and this processor
 * has kernels for it (conv_pool.h). It becomes
 *
 *     p, marks = conv2d_pool_relu(x, w, bias)
 *     ...
 *     dw, dbias = conv2d_pool_relu_grad(x, dp, marks)
 *
 * u and du, four times as large as all the rest, are not made. The order of the gradients' sums changes.
 */
#include "kernels/conv_pool.h"
#include "ops/conv.h"
#include "trace/conv_layer.h"
#include "trace/pass.h"

static bool has_kernels(const ls__graph *g, const ls__conv_layer *l)
{
    ls__conv_shape s;
    return !l->input && ls__conv_node_shape(g, l->conv, &s) && ls__conv_pool_fits(&s);
}

static ls_status fuse_back(ls__graph *g, const ls__conv_layer *l, int marks)
{
    const int inputs[3] = { l->conv->inputs[0], l->mask->inputs[1], marks };
    const ls__conv_grad_attrs *from = l->filter->attrs;
    const ls__conv_pool_grad_attrs attrs = { .stride = from->stride,
                                             .dilation = from->dilation,
                                             .padding = from->padding,
                                             .shape = from->shape };
    ls__node *fused = ls__graph_call(g, ls__conv_layer_first_back(l),
                                     ls_op_find("conv2d_pool_relu_grad"), &attrs, 3, inputs);
    if (!fused)
        return ls_error_pending();
    ls__conv_layer_replace(g, l->filter, fused->outputs[0]);
    ls__conv_layer_replace(g, l->sum, fused->outputs[1]);
    ls__graph_remove(g, l->back);
    return LS_OK;
}

static ls_status fuse(ls__graph *g, const ls__conv_layer *l)
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
    ls__conv_layer_replace(g, l->pool, fused->outputs[0]);
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
        ls__conv_layer l;
        if (ls__conv_layer_find(g, &uses, node, &l) && has_kernels(g, &l))
            st = fuse(g, &l);
    }
    ls__uses_free(&uses);
    return st;
}
