/*
 * The updates of one optimizer in one node: adam_update (sgd_update) nodes of the
 * same attributes, rate and iteration become adam_updates (sgd_updates) in the
 * place of the last of them. Invariant: an update moves later only past nodes that
 * touch none of its cells, so everybody reads what he read before. The bits stay.
 */
#include "trace/pass.h"

#include <stdlib.h>

/* A row, the one for many variables, and how the inputs of a node go on after its
 * gradient: `numbers` of them, which all nodes must share. */
typedef struct update_rows {
    const char *one, *many;
    int numbers, cells;
} update_rows;

static const update_rows kinds[] = {
    { "adam_update", "adam_updates", 2, 3 },
    { "sgd_update", "sgd_updates", 1, 1 },
};

static const update_rows *kind_of(const ls__node *node)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (ls__node_is(node, kinds[i].one) && node->n_cells == kinds[i].cells)
            return &kinds[i];
    return NULL;
}

typedef struct group {
    const update_rows *kind;
    ls__node **nodes; /* in program order */
    int count;
    bool *touched; /* by cell: one of the group's */
} group;

static bool touches(const group *u, const ls__node *node)
{
    for (int i = 0; i < node->n_cells; i++)
        if (u->touched[node->cells[i]])
            return true;
    return false;
}

/* Whether `node` may be of the group: with its first node's numbers. */
static bool belongs(const group *u, const ls__node *node)
{
    const ls__node *first = u->nodes[0];
    if (node->op != first->op || node->n_cells != u->kind->cells ||
        !ls__same_attrs(node->op, node->attrs, first->attrs))
        return false;
    for (int i = 1; i <= u->kind->numbers; i++)
        if (node->inputs[i] != first->inputs[i])
            return false;
    for (int i = 0; i < node->n_cells; i++) /* one cell in two roles stays alone */
        for (int k = 0; k < i; k++)
            if (node->cells[i] == node->cells[k])
                return false;
    return true;
}

static void take(group *u, ls__node *node)
{
    u->nodes[u->count++] = node;
    for (int i = 0; i < node->n_cells; i++)
        u->touched[node->cells[i]] = true;
}

/* The group that starts with node `at`: up to the first node that touches a cell of it, or
 * where replicas meet. */
static void gather(const ls__graph *g, int at, group *u)
{
    u->nodes[0] = g->nodes[at];
    if (!belongs(u, u->nodes[0]))
        return;
    take(u, g->nodes[at]);
    for (int i = at + 1;
         i < g->n_nodes && !touches(u, g->nodes[i]) && !(g->nodes[i]->op->flags & LS__OP_SYNC); i++)
        if (belongs(u, g->nodes[i]))
            take(u, g->nodes[i]);
}

static ls_status fuse(ls__graph *g, const group *u)
{
    const update_rows *kind = u->kind;
    const ls__node *first = u->nodes[0];
    int n_inputs = kind->numbers + u->count, n_cells = kind->cells * u->count;
    int *list = ls__arena_alloc(&g->arena, sizeof *list * (size_t)(n_inputs + n_cells));
    if (!list)
        return LS_NO_MEMORY;
    int *cells = list + n_inputs;
    for (int i = 0; i < kind->numbers; i++)
        list[i] = first->inputs[1 + i];
    for (int i = 0; i < u->count; i++) {
        list[kind->numbers + i] = u->nodes[i]->inputs[0];
        for (int k = 0; k < kind->cells; k++)
            cells[i * kind->cells + k] = u->nodes[i]->cells[k];
    }
    if (!ls__graph_call_cells(g, u->nodes[u->count - 1], ls_op_find(kind->many), first->attrs,
                              n_inputs, list, n_cells, cells))
        return ls_error_pending();
    for (int i = 0; i < u->count; i++)
        ls__graph_remove(g, u->nodes[i]);
    return LS_OK;
}

ls_status ls__pass_fuse_update(ls__graph *g)
{
    ls_status st = LS_OK;
    for (int at = 0; at < g->n_nodes && !st; at++) {
        group u = { .kind = kind_of(g->nodes[at]) };
        if (!u.kind)
            continue;
        u.nodes = malloc(sizeof *u.nodes * (size_t)g->n_nodes);
        u.touched = calloc((size_t)g->n_cells, sizeof *u.touched);
        if (!u.nodes || !u.touched)
            st = ls__fail_memory("fuse-update", sizeof *u.nodes * (size_t)g->n_nodes);
        else
            gather(g, at, &u);
        if (!st && u.count > 1) {
            st = fuse(g, &u);
            at--; /* another node is in this place now */
        }
        free(u.nodes);
        free(u.touched);
    }
    return st;
}
