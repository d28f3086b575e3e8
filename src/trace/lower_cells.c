/*
 * Cells in a replay. A read is a view of the cell, so a value that is still needed
 * after the cell is written must be copied first; and a step that fails leaves every
 * cell as it was, so a cell that is written before a node that can fail is saved
 * first. Both are nodes, so the memory plan sees them.
 */
#include <stdlib.h>

#include "trace/plan.h"

static bool writes(const ls__node *node, int cell)
{
    for (int i = 0; node->op->flags & LS_OP_WRITES && i < node->n_cells; i++)
        if (node->cells[i] == cell)
            return true;
    return false;
}

/* ---- snapshots ------------------------------------------------------------------- */

/* The last place at which `wire`, or an alias of it, is used: an index of the list, or
 * its length for an output of the step. */
static int last_use(const ls__graph *g, const ls__uses *uses, int wire)
{
    int last = -1;
    for (int i = uses->begin[wire]; i < uses->begin[wire + 1]; i++) {
        const ls__node *user = uses->users[i];
        int at = user ? user->at : g->n_nodes;
        if (user && user->op->flags & LS_OP_ALIAS)
            at = last_use(g, uses, user->outputs[0]);
        last = at > last ? at : last;
    }
    return last;
}

/* An assignment may be the value's last use: it reads each element before it writes
 * it (variable.c). Other rows that write promise no such thing. */
static bool reads_before_writing(const ls__node *node)
{
    return ls__node_is(node, "assign") || ls__node_is(node, "assign_add") ||
           ls__node_is(node, "assign_sub");
}

static bool overwritten(const ls__graph *g, const ls__node *read, int last)
{
    for (int i = read->at + 1; i <= last && i < g->n_nodes; i++)
        if (writes(g->nodes[i], read->cells[0]) && (i < last || !reads_before_writing(g->nodes[i])))
            return true;
    return false;
}

ls_status ls__lower_snapshots(ls__graph *g)
{
    const ls_op *copy = ls_op_find("copy");
    ls__uses uses;
    ls_status st = ls__uses_find(g, &uses); /* copies change those of their own wire only */
    for (int i = 0; i < g->n_nodes && !st; i++) {
        ls__node *read = g->nodes[i];
        if (!(read->op->flags & LS_OP_READS) || !(read->op->flags & LS_OP_ALIAS) ||
            !overwritten(g, read, last_use(g, &uses, read->outputs[0])))
            continue;
        ls__node *after = i + 1 < g->n_nodes ? g->nodes[i + 1] : NULL;
        ls__node *node = ls__graph_call(g, after, copy, NULL, 1, read->outputs);
        if (!node) {
            st = ls_error_pending();
            break;
        }
        node->where = read->where;
        node->phase = read->phase;
        ls__graph_redirect(g, read->outputs[0], node->outputs[0], node);
        i = node->at;
    }
    ls__uses_free(&uses);
    return st;
}

/* ---- undo ---------------------------------------------------------------------------- */

bool ls__can_fail(const ls__node *node, bool checked)
{
    return !(node->op->flags & LS_OP_ALIAS) && (checked || !(node->op->flags & LS_OP_TOTAL));
}

ls_status ls__lower_undo(ls__graph *g, bool checked)
{
    const ls_op *save = ls_op_find("save");
    int last = g->n_nodes - 1; /* the last node that can fail */
    while (last >= 0 && !ls__can_fail(g->nodes[last], checked))
        last--;
    bool *saved = calloc((size_t)g->n_cells + 1, sizeof *saved);
    if (!saved)
        return ls__fail_memory("a plan", (size_t)g->n_cells + 1);
    ls_status st = LS_OK;
    /* The write itself may fail half-way, so it counts as before itself. */
    for (int i = 0; i <= last && !st; i++) {
        ls__node *node = g->nodes[i];
        for (int k = 0; node->op->flags & LS_OP_WRITES && k < node->n_cells && !st; k++) {
            if (saved[node->cells[k]])
                continue;
            saved[node->cells[k]] = true;
            if (!ls__graph_call_cells(g, node, save, NULL, 0, NULL, 1, &node->cells[k]))
                st = ls_error_pending();
            i++, last++;
        }
    }
    free(saved);
    return st;
}
