/*
 * bf16 is storage (design 4): a row with LS_OP_BF16_AS_F32 computes in f32 and its
 * results are rounded once. Eagerly the executor converts around the kernel; here
 * the conversions become cast nodes, so that they have planned memory and wires
 * used twice are widened once.
 */
#include <stdlib.h>
#include <string.h>

#include "trace/plan.h"

static bool is_bf16(const ls__graph *g, int wire)
{
    return g->wires[wire].spec.dtype == LS_BF16;
}

static bool wants_widening(const ls__graph *g, const ls__node *node)
{
    if (!(node->op->flags & LS_OP_BF16_AS_F32))
        return false;
    for (int i = 0; i < node->n_inputs; i++)
        if (is_bf16(g, node->inputs[i]))
            return true;
    for (int i = 0; i < node->n_outputs; i++)
        if (is_bf16(g, node->outputs[i]))
            return true;
    return false;
}

static ls__node *cast(ls__graph *g, ls__node *before, int wire, ls_dtype to)
{
    struct {
        int64_t dtype;
    } attrs = { to };
    return ls__graph_call(g, before, ls_op_find("cast"), &attrs, 1, &wire);
}

/* The wire in f32; `wide` remembers what was cast before. */
static int widened(ls__graph *g, ls__node *before, int wire, int *wide)
{
    if (wide[wire] < 0) {
        ls__node *node = cast(g, before, wire, LS_F32);
        wide[wire] = node ? node->outputs[0] : -1;
    }
    return wide[wire];
}

/* The node goes on with f32 wires; its bf16 outputs are made by casts after it. */
static ls_status widen(ls__graph *g, ls__node *node, int *wide)
{
    for (int i = 0; i < node->n_inputs; i++)
        if (is_bf16(g, node->inputs[i])) {
            int wire = widened(g, node, node->inputs[i], wide);
            if (wire < 0)
                return ls_error_pending();
            node->inputs[i] = wire;
        }
    for (int i = 0; i < node->n_outputs; i++) {
        int narrow = node->outputs[i];
        if (!is_bf16(g, narrow))
            continue;
        /* The wire becomes f32 in place, and a cast makes the bf16 one its users see. */
        g->wires[narrow].spec.dtype = LS_F32;
        ls__node *after = node->at + 1 < g->n_nodes ? g->nodes[node->at + 1] : NULL;
        ls__node *back = cast(g, after, narrow, LS_BF16);
        if (!back)
            return ls_error_pending();
        back->where = node->where;
        back->phase = node->phase;
        ls__graph_redirect(g, narrow, back->outputs[0], back);
    }
    return LS_OK;
}

ls_status ls__lower_widen(ls__graph *g)
{
    int n = g->n_wires; /* wires made here are f32 or results of casts to bf16 */
    size_t most = (size_t)n + 1;
    for (int i = 0; i < g->n_nodes; i++)
        most += (size_t)(g->nodes[i]->n_inputs + 2 * g->nodes[i]->n_outputs);
    int *wide = malloc(most * sizeof *wide);
    if (!wide)
        return ls__fail_memory("a plan", most * sizeof *wide);
    memset(wide, 0xff, most * sizeof *wide);
    ls_status st = LS_OK;
    for (int i = 0; i < g->n_nodes && !st; i++) {
        ls__node *node = g->nodes[i];
        if (wants_widening(g, node))
            st = widen(g, node, wide);
        i = node->at; /* casts before it have moved it */
    }
    free(wide);
    return st;
}
