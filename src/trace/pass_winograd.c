/*
 * 3 x 3 convolutions of many channels go by Winograd's algorithm where this processor has kernels for it
 * (kernels/winograd.h), on one thread: plain in, plain out, whatever is around them.
 *
 *     a layer with its pool (conv_layer.h)       p, marks = conv2d_winograd_pool(x, w, bias)
 *                                                dx, dw, dbias = conv2d_winograd_pool_grad(x, w, dp, marks)
 *     conv2d, conv2d_bias_act                    y = conv2d_winograd(x, w) or (x, w, bias)
 *     dw = conv2d_grad_filter(x, dy) }           dx, dw = conv2d_winograd_grad(x, w, dy)
 *     dx = conv2d_grad_input(w, dy)  }
 *
 * Of two gradients both go or none: they share half of their work. Which x and w stand beside dy does not
 * matter, as long as their sizes fit. Sums have another order, and other roundings.
 */
#include <string.h>

#include "kernels/winograd.h"
#include "ops/conv.h"
#include "trace/conv_layer.h"
#include "trace/pass.h"

static bool pays(const ls__graph *g, const ls__node *conv)
{
    ls__conv_shape s;
    return ls__conv_node_shape(g, conv, &s) && ls__winograd_pays(&s);
}

/* ---- a layer with its pool ------------------------------------------------------------------ */

static ls_status fuse_layer_back(ls__graph *g, const ls__conv_layer *l, const ls__conv_attrs *attrs,
                                 int marks)
{
    const int inputs[4] = { l->conv->inputs[0], l->conv->inputs[1], l->mask->inputs[1], marks };
    ls__node *fused = ls__graph_call(g, ls__conv_layer_first_back(l),
                                     ls_op_find("conv2d_winograd_pool_grad"), attrs, 4, inputs);
    if (!fused)
        return ls_error_pending();
    ls__conv_layer_replace(g, l->input, fused->outputs[0]);
    ls__conv_layer_replace(g, l->filter, fused->outputs[1]);
    ls__conv_layer_replace(g, l->sum, fused->outputs[2]);
    ls__graph_remove(g, l->back);
    return LS_OK;
}

static ls_status fuse_layer(ls__graph *g, const ls__conv_layer *l)
{
    ls__conv_attrs attrs;
    memcpy(&attrs, l->conv->attrs, sizeof attrs);
    ls__node *fused =
        ls__graph_call(g, l->pool, ls_op_find("conv2d_winograd_pool"), &attrs, 3, l->conv->inputs);
    if (!fused)
        return ls_error_pending();
    ls_status st = l->back ? fuse_layer_back(g, l, &attrs, fused->outputs[1]) : LS_OK;
    if (st)
        return st;
    ls__conv_layer_replace(g, l->pool, fused->outputs[0]);
    ls__graph_remove(g, l->conv);
    return LS_OK;
}

static ls_status try_layer(ls__graph *g, const ls__uses *uses, ls__node *node, bool *changed)
{
    ls__conv_layer l;
    if (!ls__conv_layer_find(g, uses, node, &l) || !pays(g, l.conv) ||
        (l.back && (!l.filter || !l.input)))
        return LS_OK;
    *changed = true;
    return fuse_layer(g, &l);
}

/* ---- a convolution by itself ------------------------------------------------------------------ */

static ls_status try_forward(ls__graph *g, ls__node *node, bool *changed)
{
    const bool fused = ls__node_is(node, "conv2d_bias_act");
    if ((!fused && !ls__node_is(node, "conv2d")) || !pays(g, node))
        return LS_OK;
    ls__conv_act_attrs attrs = { .relu = 0 };
    memcpy(&attrs, node->attrs, fused ? sizeof attrs : sizeof(ls__conv_attrs));
    ls__node *now = ls__graph_call(g, node, ls_op_find("conv2d_winograd"), &attrs, node->n_inputs,
                                   node->inputs);
    if (!now)
        return ls_error_pending();
    *changed = true;
    ls__conv_layer_replace(g, node, now->outputs[0]);
    return LS_OK;
}

/* ---- both gradients ------------------------------------------------------------------------- */

/* The gradient of an input of the same sizes, from the same dy; NULL: none. */
static ls__node *partner(const ls__graph *g, const ls__uses *uses, const ls__node *filter)
{
    const int dy = filter->inputs[1];
    for (int i = uses->begin[dy]; i < uses->begin[dy + 1]; i++) {
        ls__node *input = uses->users[i];
        if (input && ls__node_is(input, "conv2d_grad_input") && input->inputs[1] == dy &&
            memcmp(input->attrs, filter->attrs, sizeof(ls__conv_attrs)) == 0 &&
            ls__spec_equal(&g->wires[input->outputs[0]].spec, &g->wires[filter->inputs[0]].spec) &&
            ls__spec_equal(&g->wires[input->inputs[0]].spec, &g->wires[filter->outputs[0]].spec))
            return input;
    }
    return NULL;
}

/* As ls__conv_node_shape, of what these are the gradients of. */
static bool pays_back(const ls__graph *g, const ls__node *filter, const ls__node *input)
{
    const ls__node conv = { .op = filter->op,
                            .attrs = filter->attrs,
                            .inputs = (int[]){ filter->inputs[0], input->inputs[0] } };
    return pays(g, &conv);
}

static ls_status try_gradients(ls__graph *g, const ls__uses *uses, ls__node *filter, bool *changed)
{
    if (!ls__node_is(filter, "conv2d_grad_filter"))
        return LS_OK;
    ls__node *input = partner(g, uses, filter);
    if (!input || !pays_back(g, filter, input))
        return LS_OK;
    ls__conv_attrs attrs;
    memcpy(&attrs, filter->attrs, sizeof attrs);
    const int inputs[3] = { filter->inputs[0], input->inputs[0], filter->inputs[1] };
    ls__node *fused = ls__graph_call(g, filter->at < input->at ? filter : input,
                                     ls_op_find("conv2d_winograd_grad"), &attrs, 3, inputs);
    if (!fused)
        return ls_error_pending();
    *changed = true;
    ls__conv_layer_replace(g, input, fused->outputs[0]);
    ls__conv_layer_replace(g, filter, fused->outputs[1]);
    return LS_OK;
}

/* ---- the pass --------------------------------------------------------------------------------- */

/* Changes one thing; layers first, of which the rest would take a part. */
static ls_status change_one(ls__graph *g, bool *changed)
{
    ls__uses uses;
    ls_status st = ls__uses_find(g, &uses);
    if (st)
        return st;
    for (int i = 0; i < g->n_nodes && !st && !*changed; i++)
        st = try_layer(g, &uses, g->nodes[i], changed);
    for (int i = 0; i < g->n_nodes && !st && !*changed; i++)
        st = try_forward(g, g->nodes[i], changed);
    for (int i = 0; i < g->n_nodes && !st && !*changed; i++)
        st = try_gradients(g, &uses, g->nodes[i], changed);
    ls__uses_free(&uses);
    return st;
}

ls_status ls__pass_winograd(ls__graph *g)
{
    ls_status st = LS_OK;
    for (bool changed = true; changed && !st;) {
        changed = false;
        st = change_one(g, &changed);
    }
    return st;
}
