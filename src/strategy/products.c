/*
 * The weights' gradient of a dense layer is a product, dw = x^T dy, that nobody wants but the update in
 * the last meeting. It is large, and what it is made of is small. So replicas bring x and dy instead,
 * and the meeting updates the weights by X_products (ops/update_products.c):
 *
 *     replica   dw = matmul(x^T, dy); meet(..., dw)        meet(..., x, ..., dy)
 *     meeting   adam_reduced(rate, i, dw of all, ...)      adam_products(rate, i, x of all, dy of all)
 *                                                          adam_reduced(rate, i, ...)
 *
 * Invariant: the same bits. All replicas do so or none: their graphs stay alike. What was traced is kept as
 * it was, for people.
 */
#include <stdlib.h>
#include <string.h>

#include "ops/matmul.h"
#include "ops/update.h"
#include "strategy/step.h"
#include "trace/pass.h"

/* What is looked at: a row that updates, in the graph of the last meeting. */
typedef struct moving {
    ls__traced_step *step;
    int k; /* the meeting */
    ls__graph *g;
    ls__node *node;
    const ls__update_kind *kind;
    int replicas;
} moving;

/* Whether the wire's memory stays as it is while variables are written: a variable's own does not. */
static bool is_settled(const ls__graph *g, int wire)
{
    const ls__wire *w = &g->wires[wire];
    while (w->kind == LS__WIRE_RESULT && w->node->op->flags & LS_OP_ALIAS)
        w = &g->wires[w->node->inputs[0]];
    return w->kind != LS__WIRE_RESULT || !(w->node->op->flags & LS_OP_READS);
}

static int count_uses(const ls__graph *g, int wire)
{
    int n = 0;
    for (int i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i]->n_inputs; k++)
            n += g->nodes[i]->inputs[k] == wire;
    for (int k = 0; k < g->n_outputs; k++)
        n += g->outputs[k] == wire;
    return n;
}

/* The product that is brought as input `index`; NULL: it is none, or somebody else wants it. */
static ls__node *product_of(const ls__graph *g, const ls__node *meet, int index)
{
    ls__node *product = ls__made_by(g, meet->inputs[index], "matmul");
    if (!product || count_uses(g, meet->inputs[index]) != 1)
        return NULL;
    const ls__matmul_attrs *a = product->attrs;
    const bool fits = a->transpose_a && !a->transpose_b && is_settled(g, product->inputs[0]) &&
                      is_settled(g, product->inputs[1]) &&
                      ls__update_products_fit(&g->wires[product->inputs[0]].spec,
                                              &g->wires[product->inputs[1]].spec);
    return fits ? product : NULL;
}

/* The wire of variable i that replica r brings to the row, and who wants it. */
static int brought(const moving *w, int i, int r)
{
    return w->node->inputs[w->kind->numbers + i * w->replicas + r];
}

/* Where it comes from; NULL: from no replica, or the row is not the only one that wants it. */
static const ls__source *source_of(const moving *w, int i, int r)
{
    const ls__wire *wire = &w->g->wires[brought(w, i, r)];
    if (wire->kind != LS__WIRE_INPUT || count_uses(w->g, brought(w, i, r)) != 1)
        return NULL;
    const ls__source *from = &w->step->meetings[w->k].gained.at[wire->index];
    return from->from == r ? from : NULL;
}

static bool can_move(const moving *w, int i)
{
    for (int r = 0; r < w->replicas; r++) {
        const ls__source *from = source_of(w, i, r);
        const ls__graph *g = w->step->programs[r].recorded;
        const ls__node *meet = ls__meet_node(g, w->k);
        if (!from || !meet || !product_of(g, meet, from->index))
            return false;
    }
    return true;
}

/* ---- moving ------------------------------------------------------------------------------------- */

/* A graph that is about to change: what was traced is set aside. */
static ls_status set_aside(ls__piece *p)
{
    if (p->as_traced)
        return LS_OK;
    ls__graph *copy = ls__graph_copy(p->recorded);
    if (!copy)
        return ls_error_pending();
    p->as_traced = p->recorded;
    p->recorded = copy;
    return LS_OK;
}

/* One more thing is brought; as which input, or -1. */
static int bring(ls__graph *g, ls__node *meet, int wire)
{
    const size_t n = (size_t)meet->n_inputs;
    int *inputs = ls__arena_alloc(&g->arena, (n + 1) * sizeof *inputs);
    if (!inputs)
        return -1;
    memcpy(inputs, meet->inputs, n * sizeof *inputs);
    inputs[n] = wire;
    meet->inputs = inputs;
    return meet->n_inputs++;
}

/* Replica r brings x where it brought dw, and dy besides; the wires of both in the meeting. */
static ls_status move_replica(const moving *w, int i, int r, int *x, int *dy)
{
    ls__piece *m = &w->step->meetings[w->k];
    ls__graph *g = w->step->programs[r].recorded;
    ls__node *meet = ls__meet_node(g, w->k);
    const int index = source_of(w, i, r)->index;
    const ls__node *product = product_of(g, meet, index);
    const int a = product->inputs[0], b = product->inputs[1];
    *x = brought(w, i, r);
    w->g->wires[*x].spec = g->wires[a].spec;
    meet->inputs[index] = a;
    const int more = bring(g, meet, b);
    if (more < 0)
        return ls__fail_memory("a traced step", sizeof(int));
    *dy = ls__graph_input(w->g, &g->wires[b].spec);
    return *dy < 0 ? ls_error_pending() : ls__source_add(&m->gained, r, more);
}

static ls_status move_variable(const moving *w, int i)
{
    const int v = w->replicas, numbers = w->kind->numbers, cells = w->kind->cells;
    ls__reduced_attrs attrs;
    memcpy(&attrs, w->node->attrs, sizeof attrs);
    int *inputs = calloc((size_t)(numbers + 2 * v), sizeof *inputs);
    if (!inputs)
        return ls__fail_memory("a traced step", sizeof *inputs);
    memcpy(inputs, w->node->inputs, (size_t)numbers * sizeof *inputs);
    ls_status st = LS_OK;
    for (int r = 0; r < v && !st; r++)
        st = move_replica(w, i, r, &inputs[numbers + r], &inputs[numbers + v + r]);
    if (!st && !ls__graph_call_cells(w->g, w->node, w->kind->products, &attrs, numbers + 2 * v,
                                     inputs, cells, w->node->cells + i * cells))
        st = ls_error_pending();
    free(inputs);
    return st;
}

/* The row without the variables that have moved; no row, when all have. */
static ls_status shorten(moving *w, const bool *moved, int variables)
{
    const int v = w->replicas, numbers = w->kind->numbers, cells = w->kind->cells;
    int *inputs = calloc((size_t)w->node->n_inputs + 1, sizeof *inputs);
    int *left = calloc((size_t)w->node->n_cells + 1, sizeof *left);
    int n = numbers, kept = 0;
    ls_status st = inputs && left ? LS_OK : ls__fail_memory("a traced step", sizeof *inputs);
    if (!st)
        memcpy(inputs, w->node->inputs, (size_t)numbers * sizeof *inputs);
    for (int i = 0; i < variables && !st; i++) {
        if (moved[i])
            continue;
        for (int r = 0; r < v; r++)
            inputs[n++] = brought(w, i, r);
        for (int c = 0; c < cells; c++)
            left[kept * cells + c] = w->node->cells[i * cells + c];
        kept++;
    }
    if (!st && kept > 0 &&
        !ls__graph_call_cells(w->g, w->node, w->node->op, w->node->attrs, n, inputs, kept * cells,
                              left))
        st = ls_error_pending();
    if (!st)
        ls__graph_remove(w->g, w->node);
    free(inputs);
    free(left);
    return st;
}

static ls_status set_all_aside(ls__traced_step *step)
{
    ls_status st = LS_OK;
    for (int r = 0; r < step->replicas && !st; r++)
        st = set_aside(&step->programs[r]);
    return st;
}

static ls_status move_row(moving *w)
{
    const int variables = w->node->n_cells / w->kind->cells;
    bool *moves = calloc((size_t)variables + 1, sizeof *moves);
    bool any = false;
    if (!moves)
        return ls__fail_memory("a traced step", (size_t)variables);
    for (int i = 0; i < variables; i++)
        any |= moves[i] = can_move(w, i);
    ls_status st = any ? set_all_aside(w->step) : LS_OK;
    for (int i = 0; i < variables && !st; i++)
        if (moves[i])
            st = move_variable(w, i);
    if (!st && any)
        st = shorten(w, moves, variables);
    free(moves);
    return st;
}

/* The sums and updates of the meeting as rows that do both at once. */
static ls_status fuse_updates(ls__piece *meeting)
{
    ls_status st = set_aside(meeting);
    if (!st)
        st = ls__pass_fuse_update(meeting->recorded);
    return st ? st : ls__pass_dead(meeting->recorded);
}

static bool is_whole_sum(const ls__node *node, const ls__update_kind *kind, int replicas)
{
    return kind && node->op == kind->reduced &&
           ((const ls__reduced_attrs *)node->attrs)->groups.replicas == replicas;
}

ls_status ls__step_move_products(ls__traced_step *step)
{
    if (step->replicas < 2 || step->replicas > LS__PRODUCTS_MOST || step->n_meetings == 0)
        return LS_OK;
    const int k = step->n_meetings - 1;
    ls_status st = fuse_updates(&step->meetings[k]);
    /* From behind: those before stay where they are. */
    for (int i = st ? -1 : step->meetings[k].recorded->n_nodes - 1; i >= 0 && !st; i--) {
        moving w = {
            .step = step, .k = k, .g = step->meetings[k].recorded, .replicas = step->replicas
        };
        w.node = w.g->nodes[i];
        w.kind = ls__update_kind_of(w.node->op);
        if (is_whole_sum(w.node, w.kind, step->replicas))
            st = move_row(&w);
    }
    return st;
}
