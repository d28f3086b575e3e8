/*
 * A graph for graphviz: `dot -Tsvg`. Calls are boxes, arguments and results
 * ellipses, variables cylinders, constants notes. Calls with effects are filled, and
 * dashed edges join them to their variables: from a variable that is read, to
 * one that is written. Other edges carry the spec of their wire.
 *
 * Invariant: every text from elsewhere goes through ls__buffer_name and lies in
 * quotes, so that no name can end its statement.
 */
#include <stdlib.h>

#include "trace/graph_out.h"

static void print_inputs(ls__buffer *b, const ls__graph *g)
{
    for (int i = 0; i < g->n_inputs; i++)
        ls__buffer_print(b, "  i%d [label=\"argument %d\\n%s\", shape=ellipse];\n", i, i,
                         ls__spec_text(&g->wires[g->inputs[i]].spec));
}

static void print_cells(ls__buffer *b, const ls__graph *g)
{
    for (int i = 0; i < g->n_cells; i++) {
        ls__buffer_print(b, "  c%d [label=\"", i);
        ls__buffer_name(b, g->cells[i].name);
        ls__buffer_print(b, "\\n%s\", shape=cylinder, style=filled, fillcolor=lightblue];\n",
                         ls__spec_text(&g->cells[i].spec));
    }
}

static void print_constants(ls__buffer *b, const ls__graph *g, const ls__numbers *n)
{
    for (int i = 0; i < n->n_constants; i++) {
        ls__buffer_print(b, "  k%d [label=\"", i);
        ls__buffer_constant(b, g, n->constants[i]);
        ls__buffer_print(b, "\", shape=note];\n");
    }
}

/* The end an edge of a wire starts at. */
static void print_source(ls__buffer *b, const ls__graph *g, const ls__numbers *n, int wire)
{
    const ls__wire *w = &g->wires[wire];
    if (w->kind == LS__WIRE_INPUT)
        ls__buffer_print(b, "i%d", w->index);
    else if (w->kind == LS__WIRE_CONSTANT)
        ls__buffer_print(b, "k%d", n->of[wire] - g->n_inputs);
    else
        ls__buffer_print(b, "n%d", w->node->at);
}

static void print_edge(ls__buffer *b, const ls__graph *g, const ls__numbers *n, int wire, char kind,
                       int to)
{
    ls__buffer_print(b, "  ");
    print_source(b, g, n, wire);
    ls__buffer_print(b, " -> %c%d [label=\"%s\"];\n", kind, to,
                     ls__spec_text(&g->wires[wire].spec));
}

static void print_node(ls__buffer *b, const ls__graph *g, const ls__numbers *n,
                       const ls__node *node)
{
    ls__buffer_print(b, "  n%d [label=\"", node->at);
    ls__buffer_name(b, node->op->name);
    if (node->op->attrs) {
        ls__buffer_print(b, "\\n");
        ls__buffer_attrs(b, node);
    }
    ls__buffer_print(b, "\\n#%d\", shape=box%s];\n", node->where,
                     ls__node_has_effect(node) ? ", style=filled, fillcolor=orange" : "");
    for (int i = 0; i < node->n_inputs; i++)
        print_edge(b, g, n, node->inputs[i], 'n', node->at);
    for (int i = 0; i < node->n_cells; i++) {
        if (node->op->flags & LS_OP_READS)
            ls__buffer_print(b, "  c%d -> n%d [style=dashed];\n", node->cells[i], node->at);
        if (node->op->flags & LS_OP_WRITES)
            ls__buffer_print(b, "  n%d -> c%d [style=dashed];\n", node->at, node->cells[i]);
    }
}

char *ls__graph_dot(const ls__graph *g)
{
    ls__numbers n;
    if (ls__numbers_find(g, &n))
        return NULL;
    ls__buffer b = { 0 };
    ls__buffer_print(&b, "digraph \"");
    ls__buffer_name(&b, g->name);
    ls__buffer_print(&b, "\" {\n  node [fontname=\"sans-serif\"];\n");
    print_inputs(&b, g);
    print_cells(&b, g);
    print_constants(&b, g, &n);
    for (int i = 0; i < g->n_nodes; i++)
        print_node(&b, g, &n, g->nodes[i]);
    for (int i = 0; i < g->n_outputs; i++) {
        ls__buffer_print(&b, "  o%d [label=\"result %d\", shape=ellipse];\n", i, i);
        print_edge(&b, g, &n, g->outputs[i], 'o', i);
    }
    ls__buffer_print(&b, "}\n");
    ls__numbers_free(&n);
    return ls__buffer_end(&b, "graph", NULL);
}
