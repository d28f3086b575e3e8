/*
 * A convolution with the bias and the relu that follow it:
 *
 *     t = conv2d(x, w)
 *     u = add(t, bias)      bias of rank 1, on either side
 *     y = relu(u)           or nothing
 *
 * becomes y = conv2d_bias_act(x, w, bias) in the place of the last one. Where
 * somebody else wants u, only the bias goes in; where somebody else wants t, nothing
 * does. Training changes nothing: the gradient of relu looks at y alone.
 *
 * The bits stay but where oneDNN computes, which may add the bias first.
 */
#include "ops/conv.h"
#include "trace/pass.h"

/* Which input of `add` is a bias for the channels of `conv`; -1: neither. */
static int bias_of(const ls__graph *g, const ls__node *conv, const ls__node *add)
{
    const ls__spec *t = &g->wires[conv->outputs[0]].spec;
    if (t->dtype != LS_F32 && t->dtype != LS_F64) /* others are rounded in between */
        return -1;
    int bias = add->inputs[0] == conv->outputs[0] ? 1 : 0;
    const ls__spec *b = &g->wires[add->inputs[bias]].spec;
    return b->rank == 1 && b->dims[0] == t->dims[3] ? bias : -1;
}

/* Puts the fused node where the last of the three is (`relu` may be NULL). */
static ls_status fuse(ls__graph *g, ls__node *conv, ls__node *add, int bias, ls__node *relu)
{
    const ls__conv_attrs *from = conv->attrs;
    const ls__conv_act_attrs attrs = { .stride = from->stride,
                                       .dilation = from->dilation,
                                       .padding = from->padding,
                                       .relu = relu != NULL };
    const int inputs[3] = { conv->inputs[0], conv->inputs[1], add->inputs[bias] };
    ls__node *last = relu ? relu : add;
    ls__node *fused = ls__graph_call(g, last, ls_op_find("conv2d_bias_act"), &attrs, 3, inputs);
    if (!fused)
        return ls_error_pending();
    ls__graph_redirect(g, last->outputs[0], fused->outputs[0], NULL);
    if (relu)
        ls__graph_remove(g, relu);
    ls__graph_remove(g, add);
    ls__graph_remove(g, conv);
    return LS_OK;
}

/* The uses were found before anything changed; what is asked of them is who uses
 * the results of conv2d and add, and a fusion elsewhere does not change that. */
ls_status ls__pass_fuse_conv(ls__graph *g)
{
    ls__uses uses;
    ls_status st = ls__uses_find(g, &uses);
    if (st)
        return st;
    for (int i = 0; i < g->n_nodes && !st; i++) {
        ls__node *conv = g->nodes[i];
        if (!ls__node_is(conv, "conv2d"))
            continue;
        ls__node *add = ls__only_user(&uses, conv->outputs[0]);
        int bias = add && ls__node_is(add, "add") ? bias_of(g, conv, add) : -1;
        if (bias < 0)
            continue;
        ls__node *relu = ls__only_user(&uses, add->outputs[0]);
        st = fuse(g, conv, add, bias, relu && ls__node_is(relu, "relu") ? relu : NULL);
        i--; /* conv is gone: the next node is here */
    }
    ls__uses_free(&uses);
    return st;
}
