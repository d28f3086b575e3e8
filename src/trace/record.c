/*
 * The recorder. Values are known by their identity (design 3): a table leads from a
 * tensor's id to its wire. Invariant: all reads of one version of a cell are one
 * wire and one id, so gradients find every use of a variable.
 */
#include "trace/record.h"

#include <stdlib.h>
#include <string.h>

#include "dispatch/sink.h"

typedef struct known {
    uint64_t id; /* 0: free */
    int wire;
} known;

struct ls__recorder {
    ls__sink sink;
    ls__sink *around; /* who took the calls before, while it is open */
    ls__graph *graph;
    ls__storage *symbol; /* the storage all symbols share */
    known *table;
    size_t mask, used;
    int failed_at;   /* the call at which an error was first pending, or 0 */
    uint64_t *reads; /* per cell of the graph: the id its reads have now, or 0 */
    int n_reads;
};

/* ---- from ids to wires ---------------------------------------------------------- */

/* A replica's own of what all replicas have is known as what all have: it has the same
 * contents. */
static known *find(const ls__recorder *r, uint64_t id)
{
    id = ls__id_everywhere(id);
    size_t i = (id * 0x9E3779B97F4A7C15u) >> 20 & r->mask;
    while (r->table[i].id != 0 && r->table[i].id != id)
        i = (i + 1) & r->mask;
    return &r->table[i];
}

static ls_status make_room(ls__recorder *r)
{
    if (r->table && 2 * r->used <= r->mask)
        return LS_OK;
    ls__recorder bigger = *r;
    size_t room = r->table ? 2 * (r->mask + 1) : 256;
    bigger.table = calloc(room, sizeof *bigger.table);
    bigger.mask = room - 1;
    if (!bigger.table)
        return ls__fail_memory("a traced step", room * sizeof *bigger.table);
    for (size_t i = 0; r->table && i <= r->mask; i++)
        if (r->table[i].id)
            *find(&bigger, r->table[i].id) = r->table[i];
    free(r->table);
    r->table = bigger.table;
    r->mask = bigger.mask;
    return LS_OK;
}

static ls_status learn(ls__recorder *r, uint64_t id, int wire)
{
    ls_status st = wire < 0 ? LS_NO_MEMORY : make_room(r);
    if (!st) {
        *find(r, id) = (known){ ls__id_everywhere(id), wire };
        r->used++;
    }
    return st;
}

static ls_tensor *symbol(ls__recorder *r, int wire, uint64_t id, ls__device *device)
{
    return ls__handle(&r->graph->wires[wire].spec, ls__storage_ref(r->symbol), id, device);
}

/* What was read from a variable before the step would change with it: a copy. */
static int capture(ls__recorder *r, const ls_tensor *t)
{
    ls__data(t); /* constants are looked at as they are */
    if (!t->storage->view)
        return ls__graph_constant(r->graph, &t->spec, t->storage);
    size_t bytes = ls__spec_bytes(&t->spec);
    ls__storage *copy = ls__storage_new("a constant of a traced step", bytes);
    if (!copy)
        return -1;
    memcpy(copy->data, t->storage->data, bytes);
    int wire = ls__graph_constant(r->graph, &t->spec, copy);
    ls__storage_unref(copy);
    return wire;
}

int ls__recorder_wire(ls__recorder *r, const ls_tensor *t)
{
    const known *k = find(r, t->id);
    if (k->id)
        return k->wire;
    if (t->storage->symbol) {
        ls__fail(LS_STATE, "%s: %s belongs to another traced step", r->graph->name, ls_describe(t));
        return -1;
    }
    int wire = capture(r, t);
    return learn(r, t->id, wire) ? -1 : wire;
}

ls_tensor *ls__recorder_argument(ls__recorder *r, const ls__spec *spec, ls__device *device)
{
    return ls__recorder_argument_as(r, ls__new_id(), spec, device);
}

ls_tensor *ls__recorder_argument_as(ls__recorder *r, uint64_t id, const ls__spec *spec,
                                    ls__device *device)
{
    const known *k = find(r, id);
    if (k->id)
        return symbol(r, k->wire, id, device);
    int wire = ls__graph_input(r->graph, spec);
    return learn(r, id, wire) ? NULL : symbol(r, wire, id, device);
}

bool ls__recorder_knows(const ls__recorder *r, uint64_t id)
{
    return find(r, id)->id != 0;
}

/* ---- cells ------------------------------------------------------------------------ */

static int cell_number(ls__recorder *r, ls__cell *cell)
{
    int i = ls__graph_cell_add(r->graph, ls__cell_serial(cell), ls__cell_name(cell),
                               ls__cell_spec(cell), cell);
    if (i < r->n_reads)
        return i;
    uint64_t *more = realloc(r->reads, sizeof *more * (size_t)(i + 1));
    if (!more) {
        ls__fail_memory("a traced step", sizeof *more * (size_t)(i + 1));
        return -1;
    }
    r->reads = more;
    memset(r->reads + r->n_reads, 0, sizeof *more * (size_t)(i + 1 - r->n_reads));
    r->n_reads = i + 1;
    return i;
}

/* ---- a call -------------------------------------------------------------------------- */

static ls__device *device_of(const ls_call *c, ls_tensor *const *inputs)
{
    if (c->n_inputs > 0)
        return inputs[0]->device;
    return c->n_cells > 0 ? ls__cell_device(c->cells[0]) : ls__device_current();
}

static ls_status give_outputs(ls__recorder *r, const ls__node *node, ls__device *device,
                              ls_tensor **out)
{
    for (int i = 0; i < node->n_outputs; i++) {
        uint64_t id = ls__new_id();
        ls_status st = learn(r, id, node->outputs[i]);
        if (st)
            return st;
        out[i] = symbol(r, node->outputs[i], id, device);
        if (!out[i])
            return LS_NO_MEMORY;
    }
    return LS_OK;
}

static ls_status add_node(ls__recorder *r, const ls_call *c, ls_tensor *const *inputs,
                          ls__node **out)
{
    int *wires = ls__frame_alloc(sizeof *wires * (size_t)(c->n_inputs + 1));
    int *cells = ls__frame_alloc(sizeof *cells * (size_t)(c->n_cells + 1));
    if (!wires || !cells)
        return LS_NO_MEMORY;
    for (int i = 0; i < c->n_inputs; i++) {
        wires[i] = ls__recorder_wire(r, inputs[i]);
        if (wires[i] < 0)
            return ls_error_pending();
    }
    for (int i = 0; i < c->n_cells; i++) {
        cells[i] = cell_number(r, c->cells[i]);
        if (cells[i] < 0)
            return ls_error_pending();
    }
    r->graph->calls++;
    r->graph->replica = r->sink.replica;
    r->graph->phase = r->sink.phase;
    *out = ls__graph_add(r->graph, NULL, c->op, c->attrs, c->n_inputs, wires, c->n_cells, cells,
                         c->n_outputs, c->out);
    return *out ? LS_OK : LS_NO_MEMORY;
}

static ls_status record(ls__sink *sink, const ls_call *c, ls_tensor *const *inputs, ls_tensor **out)
{
    ls__recorder *r = (ls__recorder *)sink;
    if (!r->failed_at &&
        ls_error_pending()) /* the call before this one, which is not in the graph */
        r->failed_at = r->graph->calls + 1;
    bool plain_read = c->op->flags & LS_OP_READS && c->op->flags & LS_OP_ALIAS;
    int cell = c->n_cells > 0 ? cell_number(r, c->cells[0]) : 0;
    if (cell < 0)
        return ls_error_pending();
    ls__device *device = device_of(c, inputs);
    if (plain_read && r->reads[cell]) { /* this version was read before */
        out[0] = symbol(r, find(r, r->reads[cell])->wire, r->reads[cell], device);
        return out[0] ? LS_OK : LS_NO_MEMORY;
    }
    ls__node *node = NULL;
    ls_status st = add_node(r, c, inputs, &node);
    if (!st && c->op->flags & LS_OP_DRAWS)
        node->draw = r->graph->draws++;
    if (!st)
        st = give_outputs(r, node, device, out);
    if (st)
        return st;
    if (plain_read)
        r->reads[cell] = out[0]->id;
    for (int i = 0; c->op->flags & LS_OP_WRITES && i < c->n_cells; i++)
        r->reads[node->cells[i]] = 0;
    return LS_OK;
}

static int mark(ls__sink *sink)
{
    return ((ls__recorder *)sink)->graph->n_nodes;
}

/* Variables are read anew afterwards: what was read of them may be forgotten, too. */
static void forget(ls__sink *sink, int count)
{
    ls__recorder *r = (ls__recorder *)sink;
    ls__graph *g = r->graph;
    while (g->n_nodes > count) {
        const ls__node *node = g->nodes[--g->n_nodes];
        g->draws -= (node->op->flags & LS_OP_DRAWS) != 0;
    }
    for (int i = 0; i < r->n_reads; i++)
        r->reads[i] = 0;
}

/* What one more call is, whether or not a row of the program's makes it. */
ls_status ls__recorder_meet(ls__recorder *r, const ls_op *op, int n_inputs,
                            ls_tensor *const *inputs, int n_cells, ls__cell *const *cells)
{
    ls_call c = { .op = op, .n_inputs = n_inputs, .n_cells = n_cells, .cells = cells };
    ls__node *node = NULL;
    ls_status st = add_node(r, &c, inputs, &node);
    for (int i = 0; i < n_cells && !st; i++)
        r->reads[node->cells[i]] = 0;
    if (!st)
        r->graph->meetings++;
    return st;
}

/* ---- opening and closing -------------------------------------------------------------- */

ls__recorder *ls__recorder_new(const char *name)
{
    ls__recorder *r = calloc(1, sizeof *r);
    if (!r) {
        ls__fail_memory("a traced step", sizeof *r);
        return NULL;
    }
    r->sink = (ls__sink){ .serial = ls__new_id(),
                          .record = record,
                          .mark = mark,
                          .forget = forget,
                          .replica = -1,
                          .phase = LS_PHASE_FORWARD };
    r->graph = ls__graph_new(name);
    r->symbol = ls__storage_wrap("a traced step", NULL, NULL, NULL);
    if (!r->graph || !r->symbol || make_room(r)) {
        ls__graph_free(r->graph);
        ls__storage_unref(r->symbol);
        free(r->table);
        free(r);
        return NULL;
    }
    r->symbol->symbol = r->sink.serial;
    return r;
}

ls__recorder *ls__recorder_open(const char *name)
{
    ls__recorder *r = ls__recorder_new(name);
    if (r)
        r->around = ls__sink_set(&r->sink);
    return r;
}

ls__graph *ls__recorder_close(ls__recorder *r, bool wanted)
{
    ls__sink_set(r->around);
    return ls__recorder_end(r, wanted);
}

ls__graph *ls__recorder_end(ls__recorder *r, bool wanted)
{
    if (!r)
        return NULL;
    ls__graph *g = r->graph;
    ls__storage_unref(r->symbol);
    free(r->table);
    free(r->reads);
    free(r);
    if (wanted)
        return g;
    ls__graph_free(g);
    return NULL;
}

int ls__recorder_at(const ls__recorder *r)
{
    return r->failed_at ? r->failed_at : r->graph->calls + 1;
}

ls__graph *ls__recorder_graph(ls__recorder *r)
{
    return r->graph;
}

ls__sink *ls__recorder_sink(ls__recorder *r)
{
    return &r->sink;
}
