/*
 * Which updates can begin before the last meeting is held (early.h), and their graph. A row can if
 *   - nothing of the meeting, and nothing that programs do after it, can fail: an update is not
 *     undone;
 *   - nobody else at the meeting has to do with its cells;
 *   - its numbers are made of constants, and of variables that nobody writes before the meeting.
 * The numbers are made once more, in the graph of the rows: they are few.
 */
#include <stdlib.h>

#include "ops/update.h"
#include "strategy/step.h"
#include "trace/pass.h"

/* From the meeting's graph to the other. */
typedef struct taking {
    ls__traced_step *step;
    const ls__piece *meeting;
    ls__graph *from, *to;
    ls__sources *gained; /* inputs of `to` */
    int *wires;          /* of `from`, as they are known in `to`; -1: not there yet */
} taking;

/* ---- what can be taken ------------------------------------------------------------------------ */

static bool any_can_fail(const ls__graph *g, int first)
{
    for (int i = first; i < g->n_nodes; i++)
        if (ls__can_fail(g->nodes[i], false))
            return true;
    return false;
}

static bool step_can_fail(const ls__traced_step *step, int k)
{
    for (int r = 0; r < step->replicas; r++) {
        const ls__graph *g = step->programs[r].recorded;
        const ls__node *meet = ls__meet_node(g, k);
        if (!meet || any_can_fail(g, meet->at + 1))
            return true;
    }
    return any_can_fail(step->meetings[k].recorded, 0);
}

static bool has_cell(const ls__node *node, int cell)
{
    for (int i = 0; i < node->n_cells; i++)
        if (node->cells[i] == cell)
            return true;
    return false;
}

static bool has_cells_alone(const ls__graph *g, const ls__node *row)
{
    for (int i = 0; i < g->n_nodes; i++)
        for (int c = 0; c < row->n_cells && g->nodes[i] != row; c++)
            if (has_cell(g->nodes[i], row->cells[c]))
                return false;
    return true;
}

/* Whether the graph's nodes up to `end` write a variable. Of a program's, what meetings write is
 * theirs. */
static bool writes(const ls__graph *g, int end, const ls__cell *cell)
{
    for (int i = 0; i < end; i++) {
        const ls__node *node = g->nodes[i];
        if (!(node->op->flags & LS_OP_WRITES) || node->op->flags & LS__OP_SYNC)
            continue;
        for (int c = 0; c < node->n_cells; c++)
            if (g->cells[node->cells[c]].cell == cell)
                return true;
    }
    return false;
}

/* Whether what is read at the meeting may have been written since replicas set out for it. */
static bool reads_what_was_written(const ls__traced_step *step, const ls__graph *g,
                                   const ls__node *read)
{
    const ls__cell *cell = g->cells[read->cells[0]].cell;
    bool written = writes(g, read->at, cell);
    for (int r = 0; r < step->replicas; r++) {
        const ls__graph *program = step->programs[r].recorded;
        written |= writes(program, program->n_nodes, cell);
    }
    return written;
}

/* Whether the wire is known before replicas come. */
static bool is_known(const ls__traced_step *step, const ls__graph *g, int wire)
{
    const ls__wire *w = &g->wires[wire];
    if (w->kind != LS__WIRE_RESULT)
        return w->kind == LS__WIRE_CONSTANT;
    const unsigned flags = w->node->op->flags;
    if (flags & LS_OP_READS ? reads_what_was_written(step, g, w->node)
                            : ls__node_has_effect(w->node))
        return false;
    for (int i = 0; i < w->node->n_inputs; i++)
        if (!is_known(step, g, w->node->inputs[i]))
            return false;
    return true;
}

static bool can_take(const ls__traced_step *step, const ls__graph *g, const ls__node *row)
{
    if (!ls__is_update_products(row->op) || !has_cells_alone(g, row))
        return false;
    const int numbers = ls__update_kind_of(row->op)->numbers;
    for (int i = 0; i < row->n_inputs; i++)
        if (i < numbers ? !is_known(step, g, row->inputs[i])
                        : g->wires[row->inputs[i]].kind != LS__WIRE_INPUT)
            return false;
    return true;
}

/* ---- taking -------------------------------------------------------------------------------- */

static int take_wire(taking *w, int wire);

static ls_status take_node(taking *w, const ls__node *node)
{
    int *inputs = calloc((size_t)(node->n_inputs + node->n_cells) + 1, sizeof *inputs);
    if (!inputs)
        return ls__fail_memory("a traced step", sizeof *inputs);
    int *cells = inputs + node->n_inputs;
    ls_status st = LS_OK;
    for (int i = 0; i < node->n_inputs && !st; i++) {
        inputs[i] = take_wire(w, node->inputs[i]);
        st = inputs[i] < 0 ? ls_error_pending() : LS_OK;
    }
    for (int i = 0; i < node->n_cells && !st; i++) {
        const ls__graph_cell *c = &w->from->cells[node->cells[i]];
        cells[i] = ls__graph_cell_add(w->to, c->serial, c->name, &c->spec, c->cell);
        st = cells[i] < 0 ? ls_error_pending() : LS_OK;
    }
    ls__node *copy = st ? NULL
                        : ls__graph_call_cells(w->to, NULL, node->op, node->attrs, node->n_inputs,
                                               inputs, node->n_cells, cells);
    if (copy) {
        copy->where = node->where;
        copy->replica = node->replica;
        copy->phase = node->phase;
        for (int i = 0; i < node->n_outputs; i++)
            w->wires[node->outputs[i]] = copy->outputs[i];
    }
    free(inputs);
    return copy ? LS_OK : ls_error_pending();
}

/* The wire in `to`, with all it is made of; -1: the error is pending. */
static int take_wire(taking *w, int wire)
{
    const ls__wire *old = &w->from->wires[wire];
    if (w->wires[wire] >= 0)
        return w->wires[wire];
    if (old->kind == LS__WIRE_RESULT)
        return take_node(w, old->node) ? -1 : w->wires[wire];
    if (old->kind == LS__WIRE_CONSTANT)
        w->wires[wire] =
            ls__graph_constant(w->to, &old->spec, w->from->constants[old->index].storage);
    else
        w->wires[wire] = ls__graph_input(w->to, &old->spec);
    if (old->kind == LS__WIRE_INPUT && w->wires[wire] >= 0) {
        const ls__source *source = &w->meeting->gained.at[old->index];
        if (ls__source_add(w->gained, source->from, source->index))
            return -1;
    }
    return w->wires[wire];
}

static ls_status take_numbers(taking *w, const ls__node *row)
{
    for (int i = 0; i < ls__update_kind_of(row->op)->numbers; i++)
        if (take_wire(w, row->inputs[i]) < 0)
            return ls_error_pending();
    return LS_OK;
}

/* The numbers of all rows first: the rows are the last nodes (early.c). */
static ls_status take_rows(taking *w)
{
    bool *takes = calloc((size_t)w->from->n_nodes + 1, sizeof *takes);
    ls_status st = takes ? LS_OK : ls__fail_memory("a traced step", sizeof *takes);
    for (int i = 0; i < w->from->n_nodes && !st; i++)
        if ((takes[i] = can_take(w->step, w->from, w->from->nodes[i])))
            st = take_numbers(w, w->from->nodes[i]);
    for (int i = w->from->n_nodes; i-- > 0 && !st;) /* from behind: those before stay in place */
        if (takes[i]) {
            st = take_node(w, w->from->nodes[i]);
            if (!st)
                ls__graph_remove(w->from, w->from->nodes[i]);
            w->step->early.n_rows++;
        }
    free(takes);
    return st;
}

ls_status ls__early_take(ls__traced_step *step)
{
    const int k = step->n_meetings - 1;
    if (step->replicas < 2 || k < 0 || step_can_fail(step, k))
        return LS_OK;
    ls__piece *meeting = &step->meetings[k], *piece = &step->early.piece;
    taking w = { .step = step,
                 .meeting = meeting,
                 .from = meeting->recorded,
                 .gained = &piece->gained,
                 .wires = malloc(sizeof *w.wires * ((size_t)meeting->recorded->n_wires + 1)) };
    if (!w.wires)
        return ls__fail_memory("a traced step", sizeof *w.wires);
    for (int i = 0; i < w.from->n_wires; i++)
        w.wires[i] = -1;
    w.to = piece->recorded = ls__graph_new(w.from->name);
    if (w.to)
        w.to->calls = w.from->calls;
    ls_status st = w.to ? take_rows(&w) : ls_error_pending();
    free(w.wires);
    return st;
}
