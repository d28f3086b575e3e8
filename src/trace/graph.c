/*
 * Building and changing graphs. Nodes, attributes and lists of numbers live in the
 * graph's arena; what a pass throws away goes with the graph. Invariant: `at` of
 * every node is its index, wires are only ever added.
 */
#include "trace/graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "tensor/convert.h"

/* ---- growing arrays ------------------------------------------------------------- */

/* Room for one more in g->NAME; false, with the error, when there is none. */
#define MAKE_ROOM(g, name)                                                                         \
    __extension__({                                                                                \
        void *bigger_ = ls__grow((g)->name, (g)->n_##name, &(g)->room_##name, sizeof *(g)->name,   \
                                 "a traced step");                                                 \
        if (bigger_)                                                                               \
            (g)->name = bigger_;                                                                   \
        bigger_ != NULL;                                                                           \
    })

/* ---- making and freeing ----------------------------------------------------------- */

ls__graph *ls__graph_new(const char *name)
{
    ls__graph *g = calloc(1, sizeof *g);
    if (!g) {
        ls__fail_memory("a traced step", sizeof *g);
        return NULL;
    }
    g->replica = -1;
    g->phase = LS_PHASE_FORWARD;
    g->name = ls__arena_string(&g->arena, name);
    if (!g->name) {
        ls__graph_free(g);
        return NULL;
    }
    return g;
}

void ls__graph_free(ls__graph *g)
{
    if (!g)
        return;
    for (int i = 0; i < g->n_constants; i++)
        ls__storage_unref(g->constants[i].storage);
    for (int i = 0; i < g->n_cells; i++)
        ls__cell_unref(g->cells[i].cell);
    ls__arena_clear(&g->arena);
    free(g->nodes);
    free(g->wires);
    free(g->constants);
    free(g->cells);
    free(g->inputs);
    free(g->outputs);
    free(g);
}

static int new_wire(ls__graph *g, const ls__spec *spec, ls__wire_kind kind, ls__node *node,
                    int index)
{
    if (!MAKE_ROOM(g, wires))
        return -1;
    g->wires[g->n_wires] = (ls__wire){ *spec, kind, node, index, g->meetings };
    return g->n_wires++;
}

int ls__graph_input(ls__graph *g, const ls__spec *spec)
{
    if (!MAKE_ROOM(g, inputs))
        return -1;
    int wire = new_wire(g, spec, LS__WIRE_INPUT, NULL, g->n_inputs);
    if (wire >= 0)
        g->inputs[g->n_inputs++] = wire;
    return wire;
}

static bool is_splat(const ls__spec *spec, const void *data)
{
    size_t size = ls_dtype_size(spec->dtype);
    int64_t count = ls__spec_count(spec);
    if (size == 0 || count == 0)
        return false;
    /* All equal to their neighbour. */
    return count == 1 || memcmp(data, (const char *)data + size, (size_t)(count - 1) * size) == 0;
}

int ls__graph_constant(ls__graph *g, const ls__spec *spec, ls__storage *s)
{
    if (!MAKE_ROOM(g, constants))
        return -1;
    int wire = new_wire(g, spec, LS__WIRE_CONSTANT, NULL, g->n_constants);
    if (wire >= 0)
        g->constants[g->n_constants++] =
            (ls__constant){ ls__storage_ref(s), is_splat(spec, s->data) };
    return wire;
}

int ls__graph_cell_add(ls__graph *g, uint64_t serial, const char *name, const ls__spec *spec,
                       ls__cell *cell)
{
    for (int i = 0; i < g->n_cells; i++)
        if (g->cells[i].serial == serial)
            return i;
    const char *own = ls__arena_string(&g->arena, name);
    if (!own || !MAKE_ROOM(g, cells))
        return -1;
    if (cell)
        ls__cell_ref(cell);
    else if (ls__cell_new_hollow(name, spec, &cell))
        return -1;
    g->cells[g->n_cells] = (ls__graph_cell){ serial, own, *spec, cell };
    return g->n_cells++;
}

ls_status ls__graph_output(ls__graph *g, int wire)
{
    if (!MAKE_ROOM(g, outputs))
        return LS_NO_MEMORY;
    g->outputs[g->n_outputs++] = wire;
    return LS_OK;
}

/* ---- nodes --------------------------------------------------------------------------- */

static void *own_copy(ls__graph *g, const void *from, size_t bytes)
{
    void *own = ls__arena_alloc(&g->arena, bytes ? bytes : 1);
    if (own && bytes)
        memcpy(own, from, bytes);
    return own;
}

static ls_status insert(ls__graph *g, ls__node *before, ls__node *node)
{
    if (!MAKE_ROOM(g, nodes))
        return LS_NO_MEMORY;
    int at = before ? before->at : g->n_nodes;
    memmove(g->nodes + at + 1, g->nodes + at, sizeof *g->nodes * (size_t)(g->n_nodes - at));
    g->nodes[at] = node;
    g->n_nodes++;
    for (int i = at; i < g->n_nodes; i++)
        g->nodes[i]->at = i;
    return LS_OK;
}

ls__node *ls__graph_add(ls__graph *g, ls__node *before, const ls_op *op, const void *attrs,
                        int n_inputs, const int *inputs, int n_cells, const int *cells,
                        int n_outputs, const ls__spec *outputs)
{
    ls__node *node = ls__arena_alloc(&g->arena, sizeof *node);
    if (!node)
        return NULL;
    *node = (ls__node){ .op = op,
                        .n_inputs = n_inputs,
                        .n_outputs = n_outputs,
                        .n_cells = n_cells,
                        .draw = -1,
                        .where = before ? before->where : g->calls,
                        .replica = before ? before->replica : g->replica,
                        .phase = before ? before->phase : g->phase };
    node->attrs = op->attr_size ? own_copy(g, attrs, op->attr_size) : NULL;
    node->inputs = own_copy(g, inputs, sizeof *inputs * (size_t)n_inputs);
    node->cells = own_copy(g, cells, sizeof *cells * (size_t)n_cells);
    node->outputs = ls__arena_alloc(&g->arena, sizeof *node->outputs * (size_t)(n_outputs + 1));
    if ((op->attr_size && !node->attrs) || !node->inputs || !node->cells || !node->outputs)
        return NULL;
    for (int i = 0; i < n_outputs; i++) {
        node->outputs[i] = new_wire(g, &outputs[i], LS__WIRE_RESULT, node, i);
        if (node->outputs[i] < 0)
            return NULL;
    }
    return insert(g, before, node) ? NULL : node;
}

/* Runs the shape rule of a call on wires; `out` is the frame's. */
static ls_status infer(const ls__graph *g, const ls_op *op, const void *attrs, int n_inputs,
                       const int *inputs, int n_cells, const int *cells, int *n_outputs,
                       ls__spec **out)
{
    const ls__spec **in = ls__frame_alloc(sizeof *in * (size_t)(n_inputs + 1));
    ls__cell **live = ls__frame_alloc(sizeof *live * (size_t)(n_cells + 1));
    if (!in || !live)
        return LS_NO_MEMORY;
    for (int i = 0; i < n_inputs; i++)
        in[i] = &g->wires[inputs[i]].spec;
    for (int i = 0; i < n_cells; i++)
        live[i] = g->cells[cells[i]].cell;
    ls_call c = {
        .op = op, .attrs = attrs, .n_inputs = n_inputs, .n_cells = n_cells, .in = in, .cells = live
    };
    ls_status st = ls__call_infer(&c);
    *n_outputs = c.n_outputs;
    *out = c.out;
    return st;
}

ls__node *ls__graph_call_cells(ls__graph *g, ls__node *before, const ls_op *op, const void *attrs,
                               int n_inputs, const int *inputs, int n_cells, const int *cells)
{
    int n_outputs = 0;
    ls__spec *outputs;
    ls__node *node = NULL;
    if (op->inputs == LS_ANY_NUMBER ? n_inputs < 1 : n_inputs != op->inputs) {
        ls__fail(LS_INVALID, "%s: %d inputs in a graph", op->name, n_inputs);
        return NULL;
    }
    LS_FRAME {
        if (!infer(g, op, attrs, n_inputs, inputs, n_cells, cells, &n_outputs, &outputs))
            node = ls__graph_add(g, before, op, attrs, n_inputs, inputs, n_cells, cells, n_outputs,
                                 outputs);
    }
    return node;
}

ls__node *ls__graph_call(ls__graph *g, ls__node *before, const ls_op *op, const void *attrs,
                         int n_inputs, const int *inputs)
{
    return ls__graph_call_cells(g, before, op, attrs, n_inputs, inputs, 0, NULL);
}

void ls__graph_remove(ls__graph *g, ls__node *node)
{
    int at = node->at;
    g->n_nodes--;
    memmove(g->nodes + at, g->nodes + at + 1, sizeof *g->nodes * (size_t)(g->n_nodes - at));
    for (int i = at; i < g->n_nodes; i++)
        g->nodes[i]->at = i;
}

void ls__graph_redirect(ls__graph *g, int from, int to, const ls__node *except)
{
    for (int i = 0; i < g->n_nodes; i++)
        for (int k = 0; g->nodes[i] != except && k < g->nodes[i]->n_inputs; k++)
            if (g->nodes[i]->inputs[k] == from)
                g->nodes[i]->inputs[k] = to;
    for (int i = 0; i < g->n_outputs; i++)
        if (g->outputs[i] == from)
            g->outputs[i] = to;
}

void ls__graph_number(ls__graph *g)
{
    for (int i = 0; i < g->n_nodes; i++)
        g->nodes[i]->at = i;
}

/* ---- copying ---------------------------------------------------------------------------- */

static ls_status copy_parts(const ls__graph *g, ls__graph *c)
{
    for (int i = 0; i < g->n_cells; i++)
        if (ls__graph_cell_add(c, g->cells[i].serial, g->cells[i].name, &g->cells[i].spec,
                               g->cells[i].cell) < 0)
            return LS_NO_MEMORY;
    for (int i = 0; i < g->n_constants; i++) {
        if (!MAKE_ROOM(c, constants))
            return LS_NO_MEMORY;
        c->constants[c->n_constants++] = g->constants[i];
        ls__storage_ref(g->constants[i].storage);
    }
    for (int i = 0; i < g->n_wires; i++) {
        if (new_wire(c, &g->wires[i].spec, g->wires[i].kind, NULL, g->wires[i].index) < 0)
            return LS_NO_MEMORY;
        c->wires[i].after = g->wires[i].after;
    }
    for (int i = 0; i < g->n_inputs; i++) {
        if (!MAKE_ROOM(c, inputs))
            return LS_NO_MEMORY;
        c->inputs[c->n_inputs++] = g->inputs[i];
    }
    for (int i = 0; i < g->n_outputs; i++)
        if (ls__graph_output(c, g->outputs[i]))
            return LS_NO_MEMORY;
    return LS_OK;
}

static ls_status copy_node(ls__graph *c, const ls__node *from)
{
    ls__node *node = ls__arena_alloc(&c->arena, sizeof *node);
    if (!node)
        return LS_NO_MEMORY;
    *node = *from;
    node->attrs = from->attrs ? own_copy(c, from->attrs, from->op->attr_size) : NULL;
    node->inputs = own_copy(c, from->inputs, sizeof *from->inputs * (size_t)from->n_inputs);
    node->outputs = own_copy(c, from->outputs, sizeof *from->outputs * (size_t)from->n_outputs);
    node->cells = own_copy(c, from->cells, sizeof *from->cells * (size_t)from->n_cells);
    if ((from->attrs && !node->attrs) || !node->inputs || !node->outputs || !node->cells)
        return LS_NO_MEMORY;
    for (int i = 0; i < node->n_outputs; i++)
        c->wires[node->outputs[i]].node = node;
    return insert(c, NULL, node);
}

ls__graph *ls__graph_copy(const ls__graph *g)
{
    ls__graph *c = ls__graph_new(g->name);
    if (!c)
        return NULL;
    ls_status st = copy_parts(g, c);
    for (int i = 0; i < g->n_nodes && !st; i++)
        st = copy_node(c, g->nodes[i]);
    c->draws = g->draws;
    c->calls = g->calls;
    c->meetings = g->meetings;
    c->phase = g->phase;
    if (st) {
        ls__graph_free(c);
        return NULL;
    }
    return c;
}

/* ---- asking ------------------------------------------------------------------------------- */

bool ls__node_has_effect(const ls__node *node)
{
    return node->op->flags &
           (LS_OP_DRAWS | LS_OP_READS | LS_OP_WRITES | LS__OP_SYNC | LS__OP_CHECKS);
}

bool ls__node_is(const ls__node *node, const char *name)
{
    /* A row of a user's may have the same name. */
    return node && strcmp(node->op->name, name) == 0 && node->op == ls_op_find(name);
}

ls__node *ls__made_by(const ls__graph *g, int wire, const char *name)
{
    const ls__wire *w = &g->wires[wire];
    return w->kind == LS__WIRE_RESULT && ls__node_is(w->node, name) ? w->node : NULL;
}

int ls__wire_cell(const ls__graph *g, int wire)
{
    const ls__wire *w = &g->wires[wire];
    bool read = w->kind == LS__WIRE_RESULT && w->node->op->flags & LS_OP_READS &&
                w->node->op->flags & LS_OP_ALIAS;
    return read ? w->node->cells[0] : -1;
}

const void *ls__wire_data(const ls__graph *g, int wire)
{
    const ls__wire *w = &g->wires[wire];
    return w->kind == LS__WIRE_CONSTANT ? g->constants[w->index].storage->data : NULL;
}

bool ls__wire_splat(const ls__graph *g, int wire, double *value)
{
    const ls__wire *w = &g->wires[wire];
    if (w->kind != LS__WIRE_CONSTANT || !g->constants[w->index].splat)
        return false;
    *value = ls__load_double(w->spec.dtype, g->constants[w->index].storage->data, 0);
    return true;
}

bool ls__same_attrs(const ls_op *op, const void *a, const void *b)
{
    for (const ls_attr *at = op->attrs; at && at->kind != LS_ATTR_KIND_END; at++) {
        const char *x = (const char *)a + at->offset, *y = (const char *)b + at->offset;
        size_t bytes = sizeof(int64_t); /* a float is compared by its bits */
        if (at->kind == LS_ATTR_KIND_INTS) {
            const ls_ints *list = (const void *)x;
            bytes += list->count > 0 ? (size_t)list->count * sizeof list->at[0] : 0;
        }
        if (memcmp(x, y, bytes) != 0)
            return false;
    }
    return true;
}

/* ---- uses ----------------------------------------------------------------------------------- */

ls_status ls__uses_find(const ls__graph *g, ls__uses *out)
{
    int total = g->n_outputs;
    *out = (ls__uses){ NULL, NULL }; /* may be freed although this fails */
    for (int i = 0; i < g->n_nodes; i++)
        total += g->nodes[i]->n_inputs;
    int *begin = calloc((size_t)g->n_wires + 2, sizeof *begin);
    ls__node **users = malloc(sizeof *users * (size_t)(total + 1));
    if (!begin || !users) {
        free(begin);
        free(users);
        return ls__fail_memory("a pass", sizeof *users * (size_t)total);
    }
    /* Count at begin[w + 2], so that after summing begin[w + 1] can be the place to fill
     * next, and ends as the begin of w + 1. */
    for (int i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i]->n_inputs; k++)
            begin[g->nodes[i]->inputs[k] + 2]++;
    for (int i = 0; i < g->n_outputs; i++)
        begin[g->outputs[i] + 2]++;
    for (int w = 0; w < g->n_wires; w++)
        begin[w + 2] += begin[w + 1];
    for (int i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i]->n_inputs; k++)
            users[begin[g->nodes[i]->inputs[k] + 1]++] = g->nodes[i];
    for (int i = 0; i < g->n_outputs; i++)
        users[begin[g->outputs[i] + 1]++] = NULL;
    *out = (ls__uses){ begin, users };
    return LS_OK;
}

void ls__uses_free(ls__uses *uses)
{
    free(uses->begin);
    free(uses->users);
    *uses = (ls__uses){ NULL, NULL };
}
