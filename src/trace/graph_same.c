/*
 * Whether two graphs compute the same, but for the variables they do it with: then one
 * compilation serves both, each with cells of its own.
 */
#include <string.h>

#include "trace/graph.h"

static bool same_ints(int n, const int *a, const int *b)
{
    return n == 0 || memcmp(a, b, sizeof *a * (size_t)n) == 0;
}

static bool same_constant(const ls__graph *a, const ls__graph *b, const ls__wire *x,
                          const ls__wire *y)
{
    const ls__storage *s = a->constants[x->index].storage, *t = b->constants[y->index].storage;
    return s == t ||
           (x->spec.dtype != LS_BYTES && memcmp(s->data, t->data, ls__spec_bytes(&x->spec)) == 0);
}

static bool same_wires(const ls__graph *a, const ls__graph *b)
{
    for (int i = 0; i < a->n_wires; i++) {
        const ls__wire *x = &a->wires[i], *y = &b->wires[i];
        if (x->kind != y->kind || x->index != y->index || !ls__spec_equal(&x->spec, &y->spec))
            return false;
        if (x->kind == LS__WIRE_CONSTANT && !same_constant(a, b, x, y))
            return false;
    }
    return true;
}

static bool same_node(const ls__node *a, const ls__node *b)
{
    return a->op == b->op && a->n_inputs == b->n_inputs && a->n_outputs == b->n_outputs &&
           a->n_cells == b->n_cells && a->draw == b->draw && a->where == b->where &&
           a->phase == b->phase && same_ints(a->n_inputs, a->inputs, b->inputs) &&
           same_ints(a->n_outputs, a->outputs, b->outputs) &&
           same_ints(a->n_cells, a->cells, b->cells) && ls__same_attrs(a->op, a->attrs, b->attrs);
}

bool ls__graph_same(const ls__graph *a, const ls__graph *b)
{
    if (a->n_nodes != b->n_nodes || a->n_wires != b->n_wires || a->n_cells != b->n_cells ||
        a->n_constants != b->n_constants || a->n_inputs != b->n_inputs ||
        a->n_outputs != b->n_outputs || a->draws != b->draws || a->calls != b->calls)
        return false;
    for (int i = 0; i < a->n_nodes; i++)
        if (!same_node(a->nodes[i], b->nodes[i]))
            return false;
    for (int i = 0; i < a->n_cells; i++)
        if (!ls__spec_equal(&a->cells[i].spec, &b->cells[i].spec))
            return false;
    return same_ints(a->n_inputs, a->inputs, b->inputs) &&
           same_ints(a->n_outputs, a->outputs, b->outputs) && same_wires(a, b);
}
