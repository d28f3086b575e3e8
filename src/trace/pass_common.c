/*
 * Common subexpressions: of two nodes without effects that have the same row,
 * attributes and inputs, the first serves both. Equal small constants are one.
 */
#include <stdlib.h>
#include <string.h>

#include "trace/pass.h"

/* Larger constants are compared only if they are one number everywhere. */
enum { SMALL = 64 };

typedef struct table {
    ls__node **at;
    size_t mask;
} table;

static uint64_t hash_of(const ls__node *node)
{
    uint64_t h = (uint64_t)(uintptr_t)node->op;
    for (int i = 0; i < node->n_inputs; i++)
        h = (h ^ (uint64_t)node->inputs[i]) * 0x9E3779B97F4A7C15u;
    return h ^ h >> 29;
}

static bool same_call(const ls__node *a, const ls__node *b)
{
    return a->op == b->op && a->n_inputs == b->n_inputs && a->n_outputs == b->n_outputs &&
           memcmp(a->inputs, b->inputs, sizeof *a->inputs * (size_t)a->n_inputs) == 0 &&
           ls__same_attrs(a->op, a->attrs, b->attrs);
}

/* The node like this one that came first; itself when it is the first. */
static ls__node *first_like(table *t, ls__node *node)
{
    size_t i = hash_of(node) & t->mask;
    while (t->at[i] && !same_call(t->at[i], node))
        i = (i + 1) & t->mask;
    if (!t->at[i])
        t->at[i] = node;
    return t->at[i];
}

static bool same_constant(const ls__graph *g, int a, int b)
{
    const ls__wire *x = &g->wires[a], *y = &g->wires[b];
    const ls__constant *c = &g->constants[x->index], *d = &g->constants[y->index];
    if (!ls__spec_equal(&x->spec, &y->spec) || x->spec.dtype == LS_BYTES)
        return false;
    if (c->storage == d->storage)
        return true;
    if (c->splat && d->splat)
        return memcmp(c->storage->data, d->storage->data, ls_dtype_size(x->spec.dtype)) == 0;
    size_t bytes = ls__spec_bytes(&x->spec);
    return bytes <= SMALL && memcmp(c->storage->data, d->storage->data, bytes) == 0;
}

static void join_constants(ls__graph *g)
{
    for (int a = 0; a < g->n_wires; a++)
        for (int b = a + 1; g->wires[a].kind == LS__WIRE_CONSTANT && b < g->n_wires; b++)
            if (g->wires[b].kind == LS__WIRE_CONSTANT && same_constant(g, a, b))
                ls__graph_redirect(g, b, a, NULL);
}

ls_status ls__pass_common(ls__graph *g)
{
    size_t room = 64;
    while (room < 2 * (size_t)g->n_nodes)
        room *= 2;
    table t = { calloc(room, sizeof *t.at), room - 1 };
    if (!t.at)
        return ls__fail_memory("a pass", room * sizeof *t.at);
    join_constants(g);
    for (int i = 0; i < g->n_nodes; i++) {
        ls__node *node = g->nodes[i];
        if (ls__node_has_effect(node))
            continue;
        ls__node *first = first_like(&t, node);
        for (int k = 0; first != node && k < node->n_outputs; k++)
            ls__graph_redirect(g, node->outputs[k], first->outputs[k], NULL);
    }
    free(t.at);
    return LS_OK;
}
