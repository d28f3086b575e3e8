/*
 * A graph as text, one line a node, for people and for tests that compare it:
 *
 *     step scale (%0 f32[64,3]) -> %4 f32[]
 *       cell c0 "w"                             f32[3]
 *       constant k0 0.5                         f32[]
 *       %2 = read c0                            f32[3]       #1
 *       %3 = mul %0 %2                          f32[64,3]    #2
 *       %4 = mean %3 {axes all keep 0}          f32[]        #3
 *       %5 = mul %2 k0                          f32[3]       #4
 *            assign %5 c0                                    #5
 *
 * After the results' specs stands the number of the call in the traced step, which
 * is the one that errors name. The columns are fixed, so that a change of one
 * line changes one line.
 */
#include <stdlib.h>

#include "trace/graph_out.h"

/* Where specs start, and calls' numbers; a longer line moves them on. */
#define SPEC_COLUMN 64
#define CALL_COLUMN 88

/* Blanks up to a column of the line that starts at `line`, at least two. */
static void pad(ls__buffer *b, size_t line, size_t column)
{
    do
        ls__buffer_print(b, " ");
    while (!b->failed && b->used - line < column - 1);
    ls__buffer_print(b, " ");
}

static void print_head(ls__buffer *b, const ls__graph *g, const ls__numbers *n)
{
    ls__buffer_print(b, "step ");
    ls__buffer_name(b, g->name);
    ls__buffer_print(b, " (");
    for (int i = 0; i < g->n_inputs; i++) {
        ls__buffer_print(b, i ? ", " : "");
        ls__buffer_wire(b, g, n, g->inputs[i]);
        ls__buffer_print(b, " %s", ls__spec_text(&g->wires[g->inputs[i]].spec));
    }
    ls__buffer_print(b, ") ->");
    for (int i = 0; i < g->n_outputs; i++) {
        ls__buffer_print(b, i ? ", " : " ");
        ls__buffer_wire(b, g, n, g->outputs[i]);
        ls__buffer_print(b, " %s", ls__spec_text(&g->wires[g->outputs[i]].spec));
    }
    ls__buffer_print(b, g->n_outputs ? "\n" : " nothing\n");
}

static void print_cells(ls__buffer *b, const ls__graph *g)
{
    for (int i = 0; i < g->n_cells; i++) {
        size_t line = b->used;
        ls__buffer_print(b, "  cell c%d \"", i);
        ls__buffer_name(b, g->cells[i].name);
        ls__buffer_print(b, "\"");
        pad(b, line, SPEC_COLUMN);
        ls__buffer_print(b, "%s\n", ls__spec_text(&g->cells[i].spec));
    }
}

static void print_constants(ls__buffer *b, const ls__graph *g, const ls__numbers *n)
{
    for (int i = 0; i < n->n_constants; i++) {
        size_t line = b->used;
        ls__buffer_print(b, "  constant k%d ", i);
        ls__buffer_constant(b, g, n->constants[i]);
        pad(b, line, SPEC_COLUMN);
        ls__buffer_print(b, "%s\n", ls__spec_text(&g->wires[n->constants[i]].spec));
    }
}

static void print_node(ls__buffer *b, const ls__graph *g, const ls__numbers *n,
                       const ls__node *node)
{
    size_t line = b->used;
    ls__buffer_print(b, node->n_outputs ? " " : "      ");
    for (int i = 0; i < node->n_outputs; i++) {
        ls__buffer_print(b, " ");
        ls__buffer_wire(b, g, n, node->outputs[i]);
    }
    ls__buffer_print(b, node->n_outputs ? " = %s" : " %s", node->op->name);
    for (int i = 0; i < node->n_inputs; i++) {
        ls__buffer_print(b, " ");
        ls__buffer_wire(b, g, n, node->inputs[i]);
    }
    for (int i = 0; i < node->n_cells; i++)
        ls__buffer_print(b, " c%d", node->cells[i]);
    if (node->op->attrs) {
        ls__buffer_print(b, " {");
        ls__buffer_attrs(b, node);
        ls__buffer_print(b, "}");
    }
    if (node->op->flags & LS_OP_DRAWS)
        ls__buffer_print(b, " draw %lld", (long long)node->draw);
    if (node->n_outputs)
        pad(b, line, SPEC_COLUMN);
    for (int i = 0; i < node->n_outputs; i++)
        ls__buffer_print(b, i ? " %s" : "%s", ls__spec_text(&g->wires[node->outputs[i]].spec));
    pad(b, line, CALL_COLUMN);
    ls__buffer_print(b, "#%d\n", node->where);
}

char *ls__graph_text(const ls__graph *g)
{
    ls__numbers n;
    if (ls__numbers_find(g, &n))
        return NULL;
    ls__buffer b = { 0 };
    print_head(&b, g, &n);
    print_cells(&b, g);
    print_constants(&b, g, &n);
    for (int i = 0; i < g->n_nodes; i++)
        print_node(&b, g, &n, g->nodes[i]);
    ls__numbers_free(&n);
    return ls__buffer_end(&b, "graph", NULL);
}
