/*
 * Common subexpressions: of two nodes without effects that have the same row,
 * attributes and inputs, the first serves both. Equal small constants are one.
 */
#include <stdlib.h>
#include <string.h>

#include "trace/pass.h"

/* Larger constants are compared only if they are one number everywhere. */
enum { SMALL = 64 };

/* Open hashing; half of it at least is free. */
typedef struct table {
    ls__node **nodes;
    int *constants; /* wires; -1: free */
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
    while (t->nodes[i] && !same_call(t->nodes[i], node))
        i = (i + 1) & t->mask;
    if (!t->nodes[i])
        t->nodes[i] = node;
    return t->nodes[i];
}

static uint64_t hash_of_constant(const ls__graph *g, int wire)
{
    const ls__wire *w = &g->wires[wire];
    const ls__constant *c = &g->constants[w->index];
    size_t bytes = c->splat ? ls_dtype_size(w->spec.dtype) : ls__spec_bytes(&w->spec);
    uint64_t h = (uint64_t)w->spec.dtype * 31 + (uint64_t)ls__spec_count(&w->spec);
    if (bytes > SMALL) /* is equal to itself only */
        return (h ^ (uint64_t)(uintptr_t)c->storage) * 0x9E3779B97F4A7C15u >> 20;
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ ((const unsigned char *)c->storage->data)[i]) * 0x100000001B3u;
    return h ^ h >> 32;
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

/* Which wire stands for each; nothing is redirected before all is known. */
static void join_constants(const ls__graph *g, table *t, int *to)
{
    for (int w = 0; w < g->n_wires; w++) {
        if (g->wires[w].kind != LS__WIRE_CONSTANT)
            continue;
        size_t i = hash_of_constant(g, w) & t->mask;
        while (t->constants[i] >= 0 && !same_constant(g, t->constants[i], w))
            i = (i + 1) & t->mask;
        if (t->constants[i] < 0)
            t->constants[i] = w;
        to[w] = t->constants[i];
    }
}

/* A node's inputs are renamed before it is looked up: what it takes may have been
 * joined. */
static void join_nodes(ls__graph *g, table *t, int *to)
{
    for (int i = 0; i < g->n_nodes; i++) {
        ls__node *node = g->nodes[i];
        for (int k = 0; k < node->n_inputs; k++)
            node->inputs[k] = to[node->inputs[k]];
        if (ls__node_has_effect(node))
            continue;
        const ls__node *first = first_like(t, node);
        for (int k = 0; k < node->n_outputs; k++)
            to[node->outputs[k]] = first->outputs[k];
    }
    for (int i = 0; i < g->n_outputs; i++)
        g->outputs[i] = to[g->outputs[i]];
}

ls_status ls__pass_common(ls__graph *g)
{
    size_t room = 64;
    while (room < 2 * (size_t)(g->n_nodes + g->n_constants))
        room *= 2;
    table t = { .nodes = calloc(room, sizeof *t.nodes),
                .constants = malloc(room * sizeof *t.constants),
                .mask = room - 1 };
    int *to = malloc(sizeof *to * (size_t)(g->n_wires + 1));
    ls_status st = LS_OK;
    if (!t.nodes || !t.constants || !to) {
        st = ls__fail_memory("a pass", room * sizeof *t.nodes);
    } else {
        for (size_t i = 0; i < room; i++)
            t.constants[i] = -1;
        for (int w = 0; w < g->n_wires; w++)
            to[w] = w;
        join_constants(g, &t, to);
        join_nodes(g, &t, to);
    }
    free(t.nodes);
    free(t.constants);
    free(to);
    return st;
}
