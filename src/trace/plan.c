/*
 * From a recorded graph to a plan: passes, lowering, places, instructions.
 */
#include "trace/plan.h"

#include <stdlib.h>
#include <string.h>

/* A packed weight is kept while its cell's version stays: only if this step reads the
 * cell before it writes it, or it would keep what the step itself has changed. */
static int packed_cell(const ls__graph *g, const ls__node *node)
{
    if (!(node->op->flags & LS__OP_PACKS))
        return LS__PACKS_NOTHING;
    if (g->wires[node->inputs[0]].kind == LS__WIRE_CONSTANT)
        return LS__PACKS_CONSTANT;
    int cell = ls__wire_cell(g, node->inputs[0]);
    if (cell < 0)
        return LS__PACKS_NOTHING;
    for (int i = 0; i < node->at; i++)
        for (int k = 0; g->nodes[i]->op->flags & LS_OP_WRITES && k < g->nodes[i]->n_cells; k++)
            if (g->nodes[i]->cells[k] == cell)
                return LS__PACKS_NOTHING;
    return cell;
}

static size_t scratch_of(const ls__graph *g, const ls__node *node)
{
    if (!node->op->scratch)
        return 0;
    size_t bytes = 0;
    LS_FRAME {
        const ls__spec **in = ls__frame_alloc(sizeof *in * (size_t)(node->n_inputs + 1));
        ls__spec *out = ls__frame_alloc(sizeof *out * (size_t)(node->n_outputs + 1));
        ls__cell **cells = ls__frame_alloc(sizeof *cells * (size_t)(node->n_cells + 1));
        if (!in || !out || !cells)
            break;
        for (int i = 0; i < node->n_inputs; i++)
            in[i] = &g->wires[node->inputs[i]].spec;
        for (int i = 0; i < node->n_outputs; i++)
            out[i] = g->wires[node->outputs[i]].spec;
        for (int i = 0; i < node->n_cells; i++)
            cells[i] = g->cells[node->cells[i]].cell;
        ls_call c = { .op = node->op,
                      .attrs = node->attrs,
                      .n_inputs = node->n_inputs,
                      .n_outputs = node->n_outputs,
                      .n_cells = node->n_cells,
                      .in = in,
                      .out = out,
                      .cells = cells };
        bytes = node->op->scratch(&c);
    }
    return bytes;
}

static ls_status list_instructions(ls__plan *plan)
{
    const ls__graph *g = plan->graph;
    plan->instructions = calloc((size_t)g->n_nodes + 1, sizeof *plan->instructions);
    plan->undo = calloc((size_t)g->n_nodes + 1, sizeof *plan->undo);
    if (!plan->instructions || !plan->undo)
        return ls__fail_memory("a plan", ((size_t)g->n_nodes + 1) * sizeof *plan->instructions);
    for (int i = 0; i < g->n_nodes; i++) {
        const ls__node *node = g->nodes[i];
        if (node->op->flags & LS_OP_ALIAS)
            continue;
        plan->instructions[plan->n_instructions++] = (ls__instruction){
            .node = node, .scratch_bytes = scratch_of(g, node), .packs = packed_cell(g, node)
        };
    }
    return ls_error_pending();
}

static void list_undo(ls__plan *plan)
{
    for (int i = 0; i < plan->n_instructions; i++) {
        const ls__node *node = plan->instructions[i].node;
        if (ls__node_is(node, "save"))
            plan->undo[plan->n_undo++] =
                (ls__undo){ node->cells[0], i, plan->places[node->outputs[0]] };
    }
}

static void find_tail(ls__plan *plan, bool checked)
{
    plan->tail = plan->n_instructions;
    while (plan->tail > 0 && !ls__can_fail(plan->instructions[plan->tail - 1].node, checked))
        plan->tail--;
}

static ls_status lower(ls__graph *g, unsigned flags)
{
    ls_status st = ls__lower_widen(g);
    if (!st)
        st = ls__lower_snapshots(g);
    return st || flags & LS__PLAN_NO_UNDO ? st : ls__lower_undo(g, flags & LS__PLAN_CHECKED);
}

static ls_status take_lent(ls__plan *plan, int n, const ls__lent *lent)
{
    plan->lent = calloc((size_t)n + 1, sizeof *plan->lent);
    if (!plan->lent)
        return ls__fail_memory("a plan", ((size_t)n + 1) * sizeof *plan->lent);
    plan->n_lent = n;
    for (int i = 0; i < n; i++)
        plan->lent[i] = lent[i];
    return LS_OK;
}

ls__plan *ls__plan_make(ls__graph *g, ls__pass_set off, unsigned flags)
{
    return ls__plan_make_lent(g, off, flags, 0, NULL);
}

ls__plan *ls__plan_make_lent(ls__graph *g, ls__pass_set off, unsigned flags, int n_lent,
                             const ls__lent *lent)
{
    const bool checked = flags & LS__PLAN_CHECKED;
    ls__plan *plan = calloc(1, sizeof *plan);
    if (!plan) {
        ls__fail_memory("a plan", sizeof *plan);
        ls__graph_free(g);
        return NULL;
    }
    plan->graph = g;
    /* Fused operators could not say which of them made a NaN. */
    ls_status st = ls__passes_run(g, checked ? off | ~ls__pass_bit("dead") : off);
    if (!st)
        st = lower(g, flags);
    if (!st)
        st = list_instructions(plan);
    if (!st)
        st = ls__plan_phases(plan);
    if (!st)
        st = take_lent(plan, n_lent, lent);
    if (!st)
        find_tail(plan, checked);
    const bool reuse = !ls__pass_is_off(off, "memory");
    if (!st) /* who checks a result looks at the operands, too */
        st = ls__plan_places(plan, (ls__place_options){ .reuse = reuse,
                                                        .in_place = reuse && !checked,
                                                        .buckets = !ls__pass_is_off(off, "buckets"),
                                                        .turns = flags & LS__PLAN_TURNS });
    if (st) {
        ls__plan_free(plan);
        return NULL;
    }
    list_undo(plan);
    return plan;
}

void ls__plan_free(ls__plan *plan)
{
    if (!plan)
        return;
    ls__graph_free(plan->graph);
    free(plan->instructions);
    free(plan->stretches);
    free(plan->places);
    free(plan->undo);
    free(plan->buckets);
    free(plan->bucket_wires);
    free(plan->lent);
    free(plan);
}
