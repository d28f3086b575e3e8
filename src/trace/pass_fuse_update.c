/*
 * The updates of one optimizer in one node: X_update nodes of the same attributes, rate and
 * iteration become X_updates in the place of the last of them. Where gradients are sums over
 * replicas that nobody else wants, they become X_reduced, which adds up and applies in one
 * pass over memory (DESIGN rule E), and the sums go. Invariants: an update moves later only past
 * nodes that touch none of its cells, so everybody reads what he read before; a sum moves
 * with all the updates that take it, and past no meeting. The bits stay.
 */
#include <lockstep/strategy.h>
#include <stdlib.h>

#include "ops/update.h"
#include "trace/pass.h"

typedef struct group {
    const ls__update_kind *kind;
    ls__node **nodes; /* in program order */
    int count;
    int replicas;  /* V, when it becomes X_reduced; else 0 */
    bool *touched; /* by cell: one of the group's */
} group;

/* The kind of an update of one variable, each of whose cells has one role; else NULL. */
static const ls__update_kind *kind_of(const ls__node *node)
{
    const ls__update_kind *kind = ls__update_kind_of(node->op);
    if (!kind || node->op != kind->one || node->n_cells != kind->cells)
        return NULL;
    for (int i = 0; i < node->n_cells; i++)
        for (int k = 0; k < i; k++)
            if (node->cells[i] == node->cells[k])
                return NULL;
    return kind;
}

static bool has_scale(const ls__node *node, const ls__update_kind *kind)
{
    return node->n_inputs > 1 + kind->numbers;
}

/* ---- sums ----------------------------------------------------------------------------------- */

static bool meets_between(const ls__graph *g, int begin, int end)
{
    for (int i = begin; i < end; i++)
        if (g->nodes[i]->op->flags & LS__OP_SYNC)
            return true;
    return false;
}

/* The sum over replicas that an update may take over: V if all that the sum gives goes into
 * updates and nowhere else, else 0. */
static int sum_behind(const ls__graph *g, const ls__uses *uses, const ls__node *update)
{
    ls__node *sum = ls__made_by(g, update->inputs[0], "sum_replicas");
    int replicas = 0;
    if (!sum || !ls__is_sum_of_replicas(sum->attrs, &replicas))
        return 0;
    for (int i = 0; i < sum->n_outputs; i++) {
        if (ls__uses_count(uses, sum->outputs[i]) == 0)
            continue; /* another group took it */
        const ls__node *user = ls__only_user(uses, sum->outputs[i]);
        const ls__update_kind *kind = user ? kind_of(user) : NULL;
        if (!kind || has_scale(user, kind) || user->inputs[0] != sum->outputs[i] ||
            meets_between(g, sum->at, user->at))
            return 0;
    }
    return replicas;
}

/* ---- a group ------------------------------------------------------------------------------- */

static bool touches(const group *u, const ls__node *node)
{
    for (int i = 0; i < node->n_cells; i++)
        if (u->touched[node->cells[i]])
            return true;
    return false;
}

/* Whether `node` may be of the group: with its first node's numbers. */
static bool belongs(const ls__graph *g, const ls__uses *uses, const group *u, const ls__node *node)
{
    const ls__node *first = u->nodes[0];
    if (node->op != first->op || !kind_of(node) || node->n_inputs != first->n_inputs ||
        !ls__same_attrs(node->op, node->attrs, first->attrs))
        return false;
    for (int i = 1; i <= u->kind->numbers; i++)
        if (node->inputs[i] != first->inputs[i])
            return false;
    return sum_behind(g, uses, node) == u->replicas;
}

static void take(group *u, ls__node *node)
{
    u->nodes[u->count++] = node;
    for (int i = 0; i < node->n_cells; i++)
        u->touched[node->cells[i]] = true;
}

/* The group that starts with node `at`: up to the first node that touches a cell of it, or
 * where replicas meet. */
static void gather(const ls__graph *g, const ls__uses *uses, int at, group *u)
{
    u->nodes[0] = g->nodes[at];
    u->replicas = sum_behind(g, uses, g->nodes[at]);
    take(u, g->nodes[at]);
    for (int i = at + 1;
         i < g->n_nodes && !touches(u, g->nodes[i]) && !(g->nodes[i]->op->flags & LS__OP_SYNC); i++)
        if (belongs(g, uses, u, g->nodes[i]))
            take(u, g->nodes[i]);
}

/* ---- what it becomes ------------------------------------------------------------------------- */

/* The numbers, then of each variable its gradient, or those of all replicas; then scales. */
static int list_inputs(const ls__graph *g, const group *u, int *list)
{
    const ls__update_kind *kind = u->kind;
    int n = 0;
    for (int i = 0; i < kind->numbers; i++)
        list[n++] = u->nodes[0]->inputs[1 + i];
    for (int i = 0; i < u->count; i++) {
        int wire = u->nodes[i]->inputs[0];
        if (!u->replicas) {
            list[n++] = wire;
            continue;
        }
        const ls__node *sum = g->wires[wire].node;
        for (int r = 0; r < u->replicas; r++)
            list[n++] = sum->inputs[g->wires[wire].index * u->replicas + r];
    }
    for (int i = 0; i < u->count && has_scale(u->nodes[i], kind); i++)
        list[n++] = u->nodes[i]->inputs[1 + kind->numbers];
    return n;
}

/* The updates, and sums of which nothing is left. */
static ls_status remove_old(ls__graph *g, const group *u)
{
    for (int i = 0; i < u->count; i++)
        ls__graph_remove(g, u->nodes[i]);
    ls__uses uses;
    ls_status st = u->replicas ? ls__uses_find(g, &uses) : LS_OK;
    if (st || !u->replicas)
        return st;
    for (int i = 0; i < u->count; i++) {
        ls__node *sum = g->wires[u->nodes[i]->inputs[0]].node;
        bool used = g->nodes[sum->at] != sum; /* it went with another update's */
        for (int k = 0; k < sum->n_outputs && !used; k++)
            used = ls__uses_count(&uses, sum->outputs[k]) > 0;
        if (!used)
            ls__graph_remove(g, sum);
    }
    ls__uses_free(&uses);
    return LS_OK;
}

static ls_status fuse(ls__graph *g, const group *u)
{
    const ls__update_kind *kind = u->kind;
    const ls__node *first = u->nodes[0];
    size_t most = (size_t)kind->numbers + (size_t)u->count * (size_t)(u->replicas + 2);
    int n_cells = kind->cells * u->count;
    int *list = ls__arena_alloc(&g->arena, sizeof *list * (most + (size_t)n_cells));
    if (!list)
        return LS_NO_MEMORY;
    int *cells = list + most;
    int n_inputs = list_inputs(g, u, list);
    for (int i = 0; i < n_cells; i++)
        cells[i] = u->nodes[i / kind->cells]->cells[i % kind->cells];
    ls__reduced_attrs reduced = { .groups = { .replicas = u->replicas, .first = kind->numbers },
                                  .update = *(const ls__update_attrs *)first->attrs };
    if (!ls__graph_call_cells(g, u->nodes[u->count - 1], u->replicas ? kind->reduced : kind->many,
                              u->replicas ? (const void *)&reduced : first->attrs, n_inputs, list,
                              n_cells, cells))
        return ls_error_pending();
    return remove_old(g, u);
}

static ls_status fuse_at(ls__graph *g, int at, bool *done)
{
    group u = { .kind = kind_of(g->nodes[at]) };
    ls__uses uses = { .begin = NULL };
    *done = false;
    if (!u.kind)
        return LS_OK;
    ls_status st = ls__uses_find(g, &uses);
    u.nodes = malloc(sizeof *u.nodes * (size_t)g->n_nodes);
    u.touched = calloc((size_t)g->n_cells, sizeof *u.touched);
    if (!st && (!u.nodes || !u.touched))
        st = ls__fail_memory("fuse-update", sizeof *u.nodes * (size_t)g->n_nodes);
    if (!st) {
        gather(g, &uses, at, &u);
        *done = u.count > 1 || u.replicas > 0;
    }
    if (*done)
        st = fuse(g, &u);
    ls__uses_free(&uses);
    free(u.nodes);
    free(u.touched);
    return st;
}

ls_status ls__pass_fuse_update(ls__graph *g)
{
    ls_status st = LS_OK;
    for (int at = 0; at < g->n_nodes && !st; at++) {
        bool done;
        st = fuse_at(g, at, &done);
        at = done ? -1 : at; /* other nodes are in these places now */
    }
    return st;
}
