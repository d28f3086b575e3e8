/*
 * A graph to bytes; graph_bytes.h has the format. It is the caller's to give a graph
 * that ls__graph_verify accepts. What cannot be rebuilt elsewhere refuses to travel:
 * rows without a registered name, and constants that are strings.
 */
#include "trace/graph_bytes.h"

#include <stdlib.h>

#include "trace/graph_out.h"

/* The distinct rows of a graph, in the order of their first use. */
typedef struct rows {
    const ls_op **at;
    int count;
} rows;

static void put_u8(ls__buffer *b, uint8_t v)
{
    ls__buffer_add(b, &v, sizeof v);
}

static void put_u32(ls__buffer *b, uint32_t v)
{
    ls__buffer_add(b, &v, sizeof v);
}

static void put_u64(ls__buffer *b, uint64_t v)
{
    ls__buffer_add(b, &v, sizeof v);
}

static void put_string(ls__buffer *b, const char *text)
{
    put_u32(b, (uint32_t)strlen(text));
    ls__buffer_add(b, text, strlen(text));
}

static void put_spec(ls__buffer *b, const ls__spec *spec)
{
    put_u8(b, (uint8_t)spec->dtype);
    put_u8(b, (uint8_t)spec->rank);
    ls__buffer_add(b, spec->dims, sizeof *spec->dims * (size_t)spec->rank);
}

/* ---- rows ------------------------------------------------------------------------- */

static int row_number(const rows *r, const ls_op *op)
{
    for (int i = 0; i < r->count; i++)
        if (r->at[i] == op)
            return i;
    return -1;
}

static ls_status find_rows(const ls__graph *g, rows *r)
{
    r->at = malloc(sizeof *r->at * ((size_t)g->n_nodes + 1));
    if (!r->at)
        return ls__fail_memory("graph", sizeof *r->at * (size_t)g->n_nodes);
    for (int i = 0; i < g->n_nodes; i++) {
        const ls_op *op = g->nodes[i]->op;
        if (row_number(r, op) >= 0)
            continue;
        if (ls_op_find(op->name) != op)
            return ls__hint(ls__fail(LS_UNSUPPORTED,
                                     "graph: operator '%s' has no registered name, "
                                     "so nobody else could find it",
                                     op->name),
                            "call ls_op_register for it");
        r->at[r->count++] = op;
    }
    return LS_OK;
}

static void put_row(ls__buffer *b, const ls_op *op)
{
    uint32_t count = 0;
    while (op->attrs && op->attrs[count].kind != LS_ATTR_KIND_END)
        count++;
    put_string(b, op->name);
    put_u32(b, count);
    for (uint32_t i = 0; i < count; i++) {
        put_u8(b, (uint8_t)op->attrs[i].kind);
        put_string(b, op->attrs[i].name);
    }
}

/* ---- nodes ------------------------------------------------------------------------ */

static void put_attrs(ls__buffer *b, const ls__node *node)
{
    for (const ls_attr *a = node->op->attrs; a && a->kind != LS_ATTR_KIND_END; a++) {
        const char *field = (const char *)node->attrs + a->offset;
        ls__buffer_add(b, field, sizeof(uint64_t)); /* of a list: its count */
        if (a->kind == LS_ATTR_KIND_INTS) {
            const ls_ints *list = (const void *)field;
            if (list->count > 0)
                ls__buffer_add(b, list->at, sizeof *list->at * (size_t)list->count);
        }
    }
}

static void put_node(ls__buffer *b, const ls__graph *g, const ls__numbers *n, const rows *r,
                     const ls__node *node)
{
    put_u32(b, (uint32_t)row_number(r, node->op));
    put_u32(b, (uint32_t)node->where);
    if (node->op->flags & LS_OP_DRAWS)
        put_u64(b, (uint64_t)node->draw);
    put_u32(b, (uint32_t)node->n_inputs);
    for (int i = 0; i < node->n_inputs; i++)
        put_u32(b, (uint32_t)n->of[node->inputs[i]]);
    put_u32(b, (uint32_t)node->n_cells);
    for (int i = 0; i < node->n_cells; i++)
        put_u32(b, (uint32_t)node->cells[i]);
    put_u32(b, (uint32_t)node->n_outputs);
    for (int i = 0; i < node->n_outputs; i++)
        put_spec(b, &g->wires[node->outputs[i]].spec);
    put_attrs(b, node);
}

/* ---- constants -------------------------------------------------------------------- */

static ls_status check_constants(const ls__graph *g, const ls__numbers *n)
{
    for (int i = 0; i < n->n_constants; i++)
        if (g->wires[n->constants[i]].spec.dtype == LS_BYTES)
            return ls__hint(ls__fail(LS_UNSUPPORTED,
                                     "graph: constant %d is %s, and strings do not "
                                     "travel",
                                     i, ls__spec_text(&g->wires[n->constants[i]].spec)),
                            "pass it as an argument of the step");
    return LS_OK;
}

static void put_constant(ls__buffer *b, const ls__graph *g, int wire)
{
    const ls__wire *w = &g->wires[wire];
    const ls__constant *constant = &g->constants[w->index];
    put_spec(b, &w->spec);
    put_u8(b, constant->splat);
    ls__buffer_add(b, constant->storage->data,
                   constant->splat ? ls_dtype_size(w->spec.dtype) : ls__spec_bytes(&w->spec));
}

/* ---- the whole ---------------------------------------------------------------------- */

static void put_all(ls__buffer *b, const ls__graph *g, const ls__numbers *n, const rows *r)
{
    ls__buffer_add(b, LS__GRAPH_MAGIC, 8);
    put_u32(b, LS__GRAPH_VERSION);
    put_u64(b, 0); /* the size, known at the end */
    put_string(b, g->name);
    const int counts[] = { g->n_inputs, g->n_cells,   n->n_constants, r->count,
                           g->n_nodes,  g->n_outputs, g->calls };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        put_u32(b, (uint32_t)counts[i]);
    put_u64(b, (uint64_t)g->draws);
    for (int i = 0; i < g->n_inputs; i++)
        put_spec(b, &g->wires[g->inputs[i]].spec);
    for (int i = 0; i < g->n_cells; i++) {
        put_u64(b, g->cells[i].serial);
        put_string(b, g->cells[i].name);
        put_spec(b, &g->cells[i].spec);
    }
    for (int i = 0; i < n->n_constants; i++)
        put_constant(b, g, n->constants[i]);
    for (int i = 0; i < r->count; i++)
        put_row(b, r->at[i]);
    for (int i = 0; i < g->n_nodes; i++)
        put_node(b, g, n, r, g->nodes[i]);
    for (int i = 0; i < g->n_outputs; i++)
        put_u32(b, (uint32_t)n->of[g->outputs[i]]);
}

static ls_status finish(ls__buffer *b, void **bytes, size_t *size)
{
    if (!b->failed) {
        uint64_t whole = b->used + sizeof(uint64_t);
        memcpy(b->at + LS__GRAPH_HEAD - sizeof whole, &whole, sizeof whole);
        put_u64(b, ls__graph_checksum(b->at, b->used));
    }
    size_t count;
    char *at = ls__buffer_end(b, "graph", &count);
    if (!at)
        return LS_NO_MEMORY;
    *bytes = at;
    *size = count;
    return LS_OK;
}

ls_status ls__graph_write(const ls__graph *g, void **bytes, size_t *size)
{
    if (g->n_cells > LS__GRAPH_MAX_CELLS)
        return ls__fail(LS_UNSUPPORTED, "graph: %d variables, at most %d can be stored", g->n_cells,
                        LS__GRAPH_MAX_CELLS);
    ls__numbers n;
    ls_status st = ls__numbers_find(g, &n);
    if (st)
        return st;
    rows r = { 0 };
    ls__buffer b = { 0 };
    st = check_constants(g, &n);
    if (!st)
        st = find_rows(g, &r);
    if (!st) {
        put_all(&b, g, &n, &r);
        st = finish(&b, bytes, size);
    }
    free(r.at);
    ls__numbers_free(&n);
    return st;
}
