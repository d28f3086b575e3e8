/*
 * A matrix product with the bias and the activation that follow it:
 *
 *     t = matmul(a, b)
 *     u = add(t, bias)      bias of rank 1, on either side
 *     y = relu(u)           or tanh, sigmoid, gelu; or nothing
 *
 * becomes y = matmul_bias_act(a, b, bias) in the place of the last one. Where
 * somebody else wants u (gelu's gradient does), only the bias goes in; where
 * somebody else wants t, nothing does. The bits stay.
 */
#include "ops/matmul.h"
#include "ops/shape.h"
#include "trace/pass.h"

#include <string.h>

/* The activation a node is, LS__ACT_NONE if none. */
static ls__activation act_of(const ls__node *node)
{
    static const struct {
        const char *name;
        ls__activation act;
    } plain[] = { { "relu", LS__ACT_RELU },
                  { "tanh", LS__ACT_TANH },
                  { "sigmoid", LS__ACT_SIGMOID } };
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (ls__node_is(node, plain[i].name))
            return plain[i].act;
    if (!ls__node_is(node, "gelu"))
        return LS__ACT_NONE;
    int64_t approximate;
    memcpy(&approximate, (const char *)node->attrs + node->op->attrs[0].offset, sizeof approximate);
    return approximate ? LS__ACT_GELU_TANH : LS__ACT_GELU;
}

/* The product whose rows `add` adds input `bias` to, if it has no other use. */
static ls__node *product_of(const ls__graph *g, const ls__uses *uses, const ls__node *add, int bias)
{
    int wire = add->inputs[1 - bias];
    const ls__spec *t = &g->wires[wire].spec, *b = &g->wires[add->inputs[bias]].spec;
    if (t->dtype != LS_F32 && t->dtype != LS_F64) /* others are rounded in between */
        return NULL;
    if (b->rank != 1 || t->rank < 2 || b->dims[0] != ls__row_size(t))
        return NULL;
    ls__node *matmul = ls__made_by(g, wire, "matmul");
    return matmul && ls__only_user(uses, wire) == add ? matmul : NULL;
}

/* Puts the fused node where the last of the three is (`act` may be NULL). */
static ls_status fuse(ls__graph *g, ls__node *matmul, ls__node *add, int bias, ls__node *act)
{
    ls__node *last = act ? act : add;
    const ls__matmul_bias_attrs attrs = { .matmul = *(const ls__matmul_attrs *)matmul->attrs,
                                          .act = act ? act_of(act) : LS__ACT_NONE };
    const int inputs[3] = { matmul->inputs[0], matmul->inputs[1], add->inputs[bias] };
    ls__node *fused = ls__graph_call(g, last, ls_op_find("matmul_bias_act"), &attrs, 3, inputs);
    if (!fused)
        return ls_error_pending();
    ls__graph_redirect(g, last->outputs[0], fused->outputs[0], NULL);
    if (act)
        ls__graph_remove(g, act);
    ls__graph_remove(g, add);
    ls__graph_remove(g, matmul);
    return LS_OK;
}

static ls_status try_add(ls__graph *g, const ls__uses *uses, ls__node *add)
{
    for (int bias = 0; bias < 2; bias++) {
        ls__node *matmul = product_of(g, uses, add, bias);
        if (!matmul)
            continue;
        ls__node *act = ls__only_user(uses, add->outputs[0]);
        return fuse(g, matmul, add, bias, act_of(act) ? act : NULL);
    }
    return LS_OK;
}

/* Backwards: the uses were found before anything changed, and what a fusion
 * redirects lies behind the nodes still to be looked at. What it removes lies on
 * both sides, so a node may be seen twice, but none is left out. */
ls_status ls__pass_fuse_matmul(ls__graph *g)
{
    ls__uses uses;
    ls_status st = ls__uses_find(g, &uses);
    if (st)
        return st;
    for (int i = g->n_nodes - 1; i >= 0 && !st; i--)
        if (ls__node_is(g->nodes[i], "add"))
            st = try_add(g, &uses, g->nodes[i]);
    ls__uses_free(&uses);
    return st;
}
