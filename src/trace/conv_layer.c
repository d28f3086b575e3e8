/* See conv_layer.h: all of a layer or nothing. */
#include "trace/conv_layer.h"

#include <lockstep/ops.h>
#include <string.h>

#include "ops/conv.h"
#include "ops/pool.h"

bool ls__conv_node_shape(const ls__graph *g, const ls__node *conv, ls__conv_shape *s)
{
    const ls__spec *in[2] = { &g->wires[conv->inputs[0]].spec, &g->wires[conv->inputs[1]].spec };
    const ls_call c = { .op = conv->op, .attrs = conv->attrs, .n_inputs = 2, .in = in };
    return in[0]->dtype == LS_F32 && !ls__conv_geometry(&c, false, in[0]->dims, in[1]->dims, s);
}

static bool is_half(const ls__node *pool)
{
    const ls__pool_attrs *a = pool->attrs;
    return a->window == 2 && a->stride == 2 && a->padding == LS_VALID;
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

/* Whether `grad` is the convolution's gradient `name`: of its input 0 (x) or 1 (w), and du. */
static bool is_gradient(const ls__conv_layer *l, const ls__node *grad, const char *name, int other)
{
    return ls__node_is(grad, name) && grad->inputs[0] == l->conv->inputs[other] &&
           grad->inputs[1] == l->back->outputs[0] &&
           memcmp(grad->attrs, l->conv->attrs, sizeof(ls__conv_attrs)) == 0;
}

/* Whoever uses du; false: somebody else does. */
static bool find_gradients(const ls__uses *uses, ls__conv_layer *l)
{
    const int du = l->back->outputs[0];
    for (int i = uses->begin[du]; i < uses->begin[du + 1]; i++) {
        ls__node *user = uses->users[i];
        if (user && !l->filter && is_gradient(l, user, "conv2d_grad_filter", 0))
            l->filter = user;
        else if (user && !l->input && is_gradient(l, user, "conv2d_grad_input", 1))
            l->input = user;
        else
            return false;
    }
    return l->filter || l->input;
}

/* The way back, all of it or nothing; false: some of it is another's, too. */
static bool find_back(const ls__graph *g, const ls__uses *uses, ls__conv_layer *l)
{
    const int places = l->pool->outputs[1];
    if (ls__uses_count(uses, places) == 0)
        return true;
    l->back = ls__only_user(uses, places);
    if (!l->back || !ls__node_is(l->back, "max_pool2d_grad"))
        return false;
    l->mask = ls__made_by(g, l->back->inputs[0], "relu_grad");
    if (!l->mask || l->mask->inputs[0] != l->pool->outputs[0] || !find_gradients(uses, l))
        return false;
    const int m = l->mask->outputs[0];
    for (int i = uses->begin[m]; i < uses->begin[m + 1] && !l->sum; i++)
        if (uses->users[i] && ls__node_is(uses->users[i], "sum") &&
            sums_to_channels(g, uses->users[i]))
            l->sum = uses->users[i];
    return true;
}

bool ls__conv_layer_find(const ls__graph *g, const ls__uses *uses, ls__node *node,
                         ls__conv_layer *l)
{
    if (!ls__node_is(node, "max_pool2d_relu"))
        return false;
    *l = (ls__conv_layer){ .pool = node,
                           .conv = ls__made_by(g, node->inputs[0], "conv2d_bias_act") };
    return l->conv && !((const ls__conv_act_attrs *)l->conv->attrs)->relu && is_half(node) &&
           ls__only_user(uses, node->inputs[0]) == node && find_back(g, uses, l);
}

ls__node *ls__conv_layer_first_back(const ls__conv_layer *l)
{
    ls__node *const nodes[] = { l->filter, l->input, l->sum };
    ls__node *first = NULL;
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
        if (nodes[i] && (!first || nodes[i]->at < first->at))
            first = nodes[i];
    return first;
}

void ls__conv_layer_replace(ls__graph *g, ls__node *node, int to)
{
    if (!node)
        return;
    ls__graph_redirect(g, node->outputs[0], to, NULL);
    ls__graph_remove(g, node);
}
