/*
 * The softmax losses with their gradient. A training step holds
 *
 *     loss, p = sparse_softmax_xent(logits, labels)
 *     ... the mean of the losses, and back ...
 *     dx = sparse_softmax_xent_grad(p, labels, dloss)
 *
 * and dloss is mostly a number spread out that has nothing to do with the loss.
 * Where nobody else wants p this becomes
 *
 *     loss, dx = sparse_softmax_xent_both(logits, labels, dloss)
 *
 * in the place of the loss; what dloss is made of moves before it. The same for
 * softmax_xent. Invariant: a node moves only if it has no effect and does not
 * depend on the loss. The bits stay.
 */
#include "trace/pass.h"

#include <stddef.h>

typedef struct loss_rows {
    const char *loss, *gradient, *both;
} loss_rows;

static const loss_rows kinds[] = {
    { "sparse_softmax_xent", "sparse_softmax_xent_grad", "sparse_softmax_xent_both" },
    { "softmax_xent", "softmax_xent_grad", "softmax_xent_both" },
};

static const loss_rows *kind_of(const ls__node *node)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (ls__node_is(node, kinds[i].loss))
            return &kinds[i];
    return NULL;
}

/* ---- moving what a wire is made of ------------------------------------------------- */

/* A spread-out number is two or three calls; a longer way is not followed. */
enum { LONGEST_WAY = 6 };

static bool made_before(const ls__graph *g, int wire, const ls__node *place)
{
    const ls__wire *w = &g->wires[wire];
    return w->kind != LS__WIRE_RESULT || w->node->at < place->at;
}

static bool can_be_before(const ls__graph *g, int wire, const ls__node *place, int longest)
{
    if (made_before(g, wire, place))
        return true;
    const ls__node *node = g->wires[wire].node;
    if (node == place || longest == 0 || ls__node_has_effect(node) || node->n_cells)
        return false;
    for (int i = 0; i < node->n_inputs; i++)
        if (!can_be_before(g, node->inputs[i], place, longest - 1))
            return false;
    return true;
}

/* Makes the wire before `place` instead of where it is made; gives the wire that
 * stands for it from now on, or -1. */
static int bring_before(ls__graph *g, int wire, ls__node *place)
{
    if (made_before(g, wire, place))
        return wire;
    ls__node *node = g->wires[wire].node;
    int index = g->wires[wire].index;
    for (int i = 0; i < node->n_inputs; i++)
        if (bring_before(g, node->inputs[i], place) < 0) /* redirects the input, too */
            return -1;
    ls__node *moved = ls__graph_call(g, place, node->op, node->attrs, node->n_inputs, node->inputs);
    if (!moved)
        return -1;
    moved->where = node->where;
    for (int i = 0; i < node->n_outputs; i++)
        ls__graph_redirect(g, node->outputs[i], moved->outputs[i], NULL);
    ls__graph_remove(g, node);
    return moved->outputs[index];
}

/* ---- the pass ------------------------------------------------------------------------ */

/* What a meeting of replicas gives is an input of the graph, and there after the meeting only. */
static bool meet_between(const ls__graph *g, const ls__node *first, const ls__node *last)
{
    for (int i = first->at + 1; i < last->at; i++)
        if (g->nodes[i]->op->flags & LS__OP_SYNC)
            return true;
    return false;
}

/* The gradient that is to be computed along with `loss`, or NULL. */
static ls__node *gradient_of(const ls__graph *g, const ls__uses *uses, const loss_rows *kind,
                             const ls__node *loss)
{
    ls_dtype dtype = g->wires[loss->inputs[0]].spec.dtype;
    if (dtype != LS_F32 && dtype != LS_F64) /* p of another dtype is rounded in between */
        return NULL;
    ls__node *gradient = ls__only_user(uses, loss->outputs[1]);
    bool fits = gradient && ls__node_is(gradient, kind->gradient) &&
                !meet_between(g, loss, gradient) &&
                gradient->inputs[0] == loss->outputs[1] && gradient->inputs[1] == loss->inputs[1] &&
                can_be_before(g, gradient->inputs[2], loss, LONGEST_WAY);
    return fits ? gradient : NULL;
}

static ls_status fuse(ls__graph *g, const loss_rows *kind, ls__node *loss, ls__node *gradient)
{
    int dloss = bring_before(g, gradient->inputs[2], loss);
    if (dloss < 0)
        return ls_error_pending();
    int inputs[3] = { loss->inputs[0], loss->inputs[1], dloss };
    ls__node *both = ls__graph_call(g, loss, ls_op_find(kind->both), NULL, 3, inputs);
    if (!both)
        return ls_error_pending();
    ls__graph_redirect(g, loss->outputs[0], both->outputs[0], NULL);
    ls__graph_redirect(g, gradient->outputs[0], both->outputs[1], NULL);
    ls__graph_remove(g, gradient);
    ls__graph_remove(g, loss);
    return LS_OK;
}

ls_status ls__pass_fuse_loss(ls__graph *g)
{
    ls_status st = LS_OK;
    for (int i = 0; i < g->n_nodes && !st; i++) {
        const loss_rows *kind = kind_of(g->nodes[i]);
        ls__uses uses;
        if (!kind)
            continue;
        st = ls__uses_find(g, &uses); /* of the graph as it is now; there are few losses */
        if (st)
            break;
        ls__node *loss = g->nodes[i], *gradient = gradient_of(g, &uses, kind, loss);
        ls__uses_free(&uses);
        if (gradient)
            st = fuse(g, kind, loss, gradient);
    }
    return st;
}
