/*
 * When updates are ready, and their plan (early.h). A replica is done with what a row needs behind
 * the last instruction of its program that makes x or dy, looks at a cell of the row, or can fail.
 * Rows are in the order in which that is so, and are done in that order: the plan gives them the
 * same scratch memory.
 */
#include "strategy/early.h"

#include <stdlib.h>

#include "dispatch/call.h"
#include "ops/update_products.h"
#include "strategy/step.h"

/* ---- when a row is ready ---------------------------------------------------------------------- */

/* What is looked for in one replica's program. */
typedef struct reader {
    const ls__plan *plan;
    const ls__graph_cell *cells;
    const ls__graph *rows; /* where `row` is */
    const ls__node *row;
    const ls__sources *gained; /* of `rows` */
    int replica;
    const ls__node *meet;
} reader;

static bool is_cell_of_row(const reader *r, int cell)
{
    for (int i = 0; i < r->row->n_cells; i++)
        if (r->rows->cells[r->row->cells[i]].cell == r->cells[cell].cell)
            return true;
    return false;
}

static bool looks_at_cells(const reader *r, const ls__instruction *instruction)
{
    const ls__node *node = instruction->node;
    for (int i = 0; i < node->n_cells; i++)
        if (is_cell_of_row(r, node->cells[i]))
            return true;
    for (int i = 0; i < node->n_inputs; i++) {
        const ls__place *place = &r->plan->places[node->inputs[i]];
        if (place->base == LS__AT_CELL && is_cell_of_row(r, place->index))
            return true;
    }
    return false;
}

static bool is_view_of(const ls__graph *g, int view, int wire)
{
    while (view != wire) {
        const ls__wire *w = &g->wires[view];
        if (w->kind != LS__WIRE_RESULT || !(w->node->op->flags & LS_OP_ALIAS))
            return false;
        view = w->node->inputs[0];
    }
    return true;
}

/* Whether the replica brings the wire for this row, or a view of it. */
static bool is_brought(const reader *r, int wire)
{
    for (int i = 0; i < r->row->n_inputs; i++) {
        const ls__wire *in = &r->rows->wires[r->row->inputs[i]];
        if (in->kind != LS__WIRE_INPUT || r->gained->at[in->index].from != r->replica)
            continue;
        if (is_view_of(r->plan->graph, r->meet->inputs[r->gained->at[in->index].index], wire))
            return true;
    }
    return false;
}

static bool is_needed(const reader *r, const ls__instruction *instruction)
{
    const ls__node *node = instruction->node;
    if (ls__can_fail(node, false) || looks_at_cells(r, instruction))
        return true;
    for (int i = 0; i < node->n_outputs; i++)
        if (is_brought(r, node->outputs[i]))
            return true;
    return false;
}

static int ready_at(const reader *r, int meet)
{
    int at = meet;
    while (at > 0 && !is_needed(r, &r->plan->instructions[at - 1]))
        at--;
    return at;
}

/* ---- compiling ----------------------------------------------------------------------------- */

typedef struct candidate {
    ls__node *node;
    int *ready;
} candidate;

static int compare(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    return x->ready[0] != y->ready[0] ? x->ready[0] - y->ready[0] : x->node->at - y->node->at;
}

static ls_status find_ready(const ls__traced_step *step, ls__node *row, candidate *out)
{
    const ls__early *early = &step->early;
    out->node = row;
    out->ready = calloc((size_t)step->replicas, sizeof *out->ready);
    if (!out->ready)
        return ls__fail_memory("a traced step", sizeof *out->ready);
    for (int r = 0; r < step->replicas; r++) {
        const ls__plan *plan = step->programs[r].plan;
        const reader looks = { plan,
                               step->programs[r].recorded->cells,
                               early->piece.recorded,
                               row,
                               &early->piece.gained,
                               r,
                               plan->instructions[early->meets[r]].node };
        out->ready[r] = ready_at(&looks, early->meets[r]);
    }
    return LS_OK;
}

/* The rows in their order; they are the last nodes of the graph. */
static ls_status sort_rows(ls__traced_step *step, candidate *all)
{
    ls__early *early = &step->early;
    ls__graph *g = early->piece.recorded;
    const int first = g->n_nodes - early->n_rows;
    for (int i = 0; i < early->n_rows; i++) {
        ls_status st = find_ready(step, g->nodes[first + i], &all[i]);
        if (st)
            return st;
    }
    qsort(all, (size_t)early->n_rows, sizeof *all, compare);
    for (int i = 0; i < early->n_rows; i++) {
        g->nodes[first + i] = all[i].node;
        early->rows[i].ready = all[i].ready;
        all[i].ready = NULL;
        for (int r = 0; r < step->replicas && i > 0; r++)
            if (early->rows[i].ready[r] < early->rows[i - 1].ready[r])
                early->rows[i].ready[r] = early->rows[i - 1].ready[r];
    }
    ls__graph_number(g);
    return LS_OK;
}

static ls_status order_rows(ls__traced_step *step)
{
    const size_t n = (size_t)step->early.n_rows;
    candidate *all = calloc(n, sizeof *all);
    step->early.rows = calloc(n, sizeof *step->early.rows);
    ls_status st = all && step->early.rows ? sort_rows(step, all)
                                           : ls__fail_memory("a traced step", n * sizeof *all);
    for (size_t i = 0; all && i < n; i++)
        free(all[i].ready);
    free(all);
    return st;
}

/* Where replicas meet, and whether what they bring lies there already when they begin. */
static ls_status find_meets(ls__traced_step *step)
{
    ls__early *early = &step->early;
    early->meets = calloc((size_t)step->replicas, sizeof *early->meets);
    if (!early->meets)
        return ls__fail_memory("a traced step", sizeof *early->meets);
    for (int r = 0; r < step->replicas; r++) {
        const ls__plan *plan = step->programs[r].plan;
        const ls__node *meet = ls__meet_node(plan->graph, step->n_meetings - 1);
        while (plan->instructions[early->meets[r]].node != meet)
            early->meets[r]++;
        for (int i = 0; i < early->piece.gained.count; i++) {
            const ls__source *from = &early->piece.gained.at[i];
            if (from->from == r)
                early->late |= plan->places[meet->inputs[from->index]].base == LS__AT_LENT;
        }
    }
    return LS_OK;
}

/* In the plan; what is known of each while it is made is its own, unlike scratch memory. */
static ls_status find_rows(ls__early *early)
{
    const ls__plan *plan = early->piece.plan;
    for (int i = 0, row = 0; i < plan->n_instructions; i++) {
        if (!ls__is_update_products(plan->instructions[i].node->op))
            continue;
        ls__products_work *work = aligned_alloc(_Alignof(ls__products_work), sizeof *work);
        if (!work)
            return ls__fail_memory("a traced step", sizeof *work);
        early->rows[row].work = work;
        early->rows[row++].instruction = i;
    }
    return LS_OK;
}

ls_status ls__early_compile(ls__traced_step *step, ls__pass_set off)
{
    ls__early *early = &step->early;
    ls__piece *p = &early->piece;
    if (early->n_rows == 0)
        return LS_OK;
    ls_status st = find_meets(step);
    if (!st)
        st = order_rows(step);
    if (st)
        return st;
    ls__graph *copy = ls__graph_copy(p->recorded);
    p->plan = copy ? ls__plan_make(copy, off, LS__PLAN_NO_UNDO) : NULL;
    if (!p->plan)
        return ls_error_pending();
    st = find_rows(early);
    if (!st)
        st = ls__piece_make_inputs(p);
    return st ? st : ls__instance_open(p->plan, NULL, &p->instance);
}

void ls__early_free(ls__early *early)
{
    for (int i = 0; early->rows && i < early->n_rows; i++) {
        free(early->rows[i].ready);
        free(early->rows[i].work);
        free(early->rows[i].spent);
    }
    free(early->rows);
    free(early->meets);
    ls__piece_free(&early->piece);
}
