/*
 * Checks the invariants of graph.h. It trusts the lengths of the graph's arrays and
 * nothing that lies in them, so that what a file or a pass made is refused before
 * anything runs. One walk over the list; every shape rule is run once more.
 *
 * An error says which node: its index in the list, its operator, and the call of
 * the traced step it comes from.
 */
#include <stdio.h>
#include <stdlib.h>

#include "dispatch/registry.h"
#include "trace/graph.h"

/* What the walk knows so far. */
typedef struct walk {
    const ls__graph *g;
    bool *made;          /* of wires: there is a value by now */
    int meetings;        /* passed */
    int64_t draw;        /* the last draw seen, -1 for none */
    const ls__spec **in; /* room for the widest call */
    ls__cell **cells;
    ls__spec *out;
    char place[96]; /* "node 4 (conv2d, call 3)" of the node looked at */
} walk;

/* Ends a scope in which somebody else judged: what he said becomes LS_CORRUPT, for
 * the graph is wrong and not the caller; being out of memory stays what it is. */
static ls_status judged(ls__error_scope *scope, ls_status st, const char *place)
{
    ls__error_record why;
    ls__error_take(&why);
    ls__error_scope_close(scope, LS_OK, "graph");
    if (why.status)
        st = why.status;
    if (st == LS_OK)
        return LS_OK;
    return ls__fail(st == LS_NO_MEMORY ? st : LS_CORRUPT, "graph: %s: %s", place,
                    why.status ? why.text : ls_status_text(st));
}

static ls_status check_spec(const char *what, int i, const ls__spec *spec)
{
    ls__spec made;
    char place[40];
    snprintf(place, sizeof place, "%s %d", what, i);
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    return judged(&scope, ls__spec_make(&made, "spec", spec->dtype, spec->rank, spec->dims), place);
}

/* ---- wires that come from outside, cells -------------------------------------------- */

static ls_status check_wires(walk *k)
{
    const ls__graph *g = k->g;
    ls_status st = LS_OK;
    for (int w = 0; w < g->n_wires && !st; w++) {
        const ls__wire *wire = &g->wires[w];
        st = check_spec("wire", w, &wire->spec);
        if (st || wire->kind == LS__WIRE_RESULT)
            continue;
        k->made[w] = true;
        if (wire->kind == LS__WIRE_INPUT) {
            if (wire->index < 0 || wire->index >= g->n_inputs || g->inputs[wire->index] != w)
                st = ls__fail(LS_CORRUPT, "graph: wire %d says it is input %d", w, wire->index);
        } else if (wire->kind == LS__WIRE_CONSTANT) {
            if (wire->index < 0 || wire->index >= g->n_constants ||
                !g->constants[wire->index].storage)
                st = ls__fail(LS_CORRUPT, "graph: wire %d says it is constant %d of %d", w,
                              wire->index, g->n_constants);
        } else {
            st = ls__fail(LS_CORRUPT, "graph: wire %d is of no kind (%d)", w, (int)wire->kind);
        }
    }
    for (int i = 0; i < g->n_inputs && !st; i++) {
        int w = g->inputs[i];
        if (w < 0 || w >= g->n_wires || g->wires[w].kind != LS__WIRE_INPUT ||
            g->wires[w].index != i)
            st = ls__fail(LS_CORRUPT, "graph: input %d is wire %d, which is none", i, w);
    }
    return st;
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* One variable must not be two cells: its writes would pass its reads unseen. */
static ls_status check_serials(const ls__graph *g)
{
    size_t n = (size_t)g->n_cells;
    uint64_t *serials = malloc(sizeof *serials * (n + 1));
    if (!serials)
        return ls__fail_memory("graph", sizeof *serials * n);
    for (size_t i = 0; i < n; i++)
        serials[i] = g->cells[i].serial;
    qsort(serials, n, sizeof *serials, by_size);
    ls_status st = LS_OK;
    for (size_t i = 1; i < n && !st; i++)
        if (serials[i] == serials[i - 1])
            st = ls__fail(LS_CORRUPT, "graph: two cells are variable %llu",
                          (unsigned long long)serials[i]);
    free(serials);
    return st;
}

static ls_status check_cells(const ls__graph *g)
{
    for (int i = 0; i < g->n_cells; i++) {
        const ls__graph_cell *cell = &g->cells[i];
        ls_status st = check_spec("cell", i, &cell->spec);
        if (st)
            return st;
        if (!cell->name || !cell->cell)
            return ls__fail(LS_CORRUPT, "graph: cell %d has no %s", i,
                            cell->name ? "cell behind it" : "name");
        if (!ls__spec_equal(&cell->spec, ls__cell_spec(cell->cell)))
            return ls__fail(LS_CORRUPT, "graph: cell %d is %s, and the one behind it %s", i,
                            ls__spec_text(&cell->spec), ls__spec_text(ls__cell_spec(cell->cell)));
    }
    return check_serials(g);
}

/* ---- one node -------------------------------------------------------------------------- */

static ls_status check_lists(const walk *k, const ls__node *node)
{
    for (const ls_attr *a = node->op->attrs; a && a->kind != LS_ATTR_KIND_END; a++) {
        if (a->kind != LS_ATTR_KIND_INTS)
            continue;
        const ls_ints *list = (const void *)((const char *)node->attrs + a->offset);
        if (list->count < -1 || list->count > LS_MAX_RANK)
            return ls__fail(LS_CORRUPT, "graph: %s: %lld numbers of %s", k->place,
                            (long long)list->count, a->name);
    }
    return LS_OK;
}

static ls_status check_arity(const walk *k, const ls__node *node)
{
    const ls_op *op = node->op;
    if (op->inputs == LS_ANY_NUMBER ? node->n_inputs < 1 : node->n_inputs != op->inputs)
        return ls__fail(LS_CORRUPT, "graph: %s: %d inputs, wants %s%d", k->place, node->n_inputs,
                        op->inputs < 0 ? "at least " : "", op->inputs < 0 ? 1 : op->inputs);
    if (node->n_outputs < 0 || (op->outputs != LS_ANY_NUMBER && node->n_outputs != op->outputs))
        return ls__fail(LS_CORRUPT, "graph: %s: %d outputs, wants %d", k->place, node->n_outputs,
                        op->outputs);
    bool wants = op->flags & (LS_OP_READS | LS_OP_WRITES);
    if (node->n_cells < 0 || wants != (node->n_cells > 0))
        return ls__fail(LS_CORRUPT, "graph: %s: %d cells, wants %s", k->place, node->n_cells,
                        wants ? "some" : "none");
    if (op->attr_size > 0 && !node->attrs)
        return ls__fail(LS_CORRUPT, "graph: %s: no attributes", k->place);
    return check_lists(k, node);
}

static ls_status check_order(walk *k, const ls__node *node)
{
    const ls__graph *g = k->g;
    if (node->where < 1 || node->where > g->calls)
        return ls__fail(LS_CORRUPT, "graph: %s: the step has %d calls", k->place, g->calls);
    if (!(node->op->flags & LS_OP_DRAWS))
        return LS_OK;
    if (node->draw <= k->draw || node->draw >= g->draws)
        return ls__fail(LS_CORRUPT, "graph: %s: draw %lld after draw %lld of %lld", k->place,
                        (long long)node->draw, (long long)k->draw, (long long)g->draws);
    k->draw = node->draw;
    return LS_OK;
}

static ls_status check_ends(walk *k, const ls__node *node)
{
    const ls__graph *g = k->g;
    for (int i = 0; i < node->n_inputs; i++) {
        int w = node->inputs[i];
        if (w < 0 || w >= g->n_wires)
            return ls__fail(LS_CORRUPT, "graph: %s: input %d is wire %d of %d", k->place, i, w,
                            g->n_wires);
        if (!k->made[w])
            return ls__fail(LS_CORRUPT, "graph: %s: input %d is wire %d, which is not made before",
                            k->place, i, w);
        if (g->wires[w].kind == LS__WIRE_INPUT && g->wires[w].after > k->meetings)
            return ls__fail(LS_CORRUPT,
                            "graph: %s: input %d is wire %d, which is there after meeting "
                            "%d",
                            k->place, i, w, g->wires[w].after);
        if (g->wires[w].spec.dtype == LS_BYTES && !(node->op->flags & LS_OP_TAKES_STRINGS))
            return ls__fail(LS_CORRUPT, "graph: %s: input %d is %s, and no maths takes strings",
                            k->place, i, ls__spec_text(&g->wires[w].spec));
    }
    for (int i = 0; i < node->n_cells; i++)
        if (node->cells[i] < 0 || node->cells[i] >= g->n_cells)
            return ls__fail(LS_CORRUPT, "graph: %s: cell %d of %d", k->place, node->cells[i],
                            g->n_cells);
    for (int i = 0; i < node->n_outputs; i++) {
        int w = node->outputs[i];
        if (w < 0 || w >= g->n_wires)
            return ls__fail(LS_CORRUPT, "graph: %s: output %d is wire %d of %d", k->place, i, w,
                            g->n_wires);
        const ls__wire *wire = &g->wires[w];
        if (k->made[w])
            return ls__fail(LS_CORRUPT, "graph: %s: makes wire %d a second time", k->place, w);
        if (wire->node != node || wire->index != i)
            return ls__fail(LS_CORRUPT, "graph: %s: output %d is wire %d, which is another's",
                            k->place, i, w);
        k->made[w] = true;
    }
    return LS_OK;
}

/* ---- shape rules -------------------------------------------------------------------------- */

/* The number of outputs first: a rule must not be asked for more than there is room. */
static ls_status run_rule(const ls__node *node, ls_call *c)
{
    const ls_op *op = node->op;
    int count = op->outputs == LS_ANY_NUMBER ? op->count_outputs(c) : op->outputs;
    if (count < 0)
        return LS_INVALID;
    if (count != node->n_outputs)
        return ls__fail(LS_SHAPE, "%s: %d outputs, wants %d", op->name, node->n_outputs, count);
    c->n_outputs = count;
    for (int i = 0; i < count; i++)
        c->out[i].dtype = (ls_dtype)0;
    return op->shape(c);
}

static ls_status check_shapes(walk *k, const ls__node *node)
{
    const ls__graph *g = k->g;
    for (int i = 0; i < node->n_inputs; i++)
        k->in[i] = &g->wires[node->inputs[i]].spec;
    for (int i = 0; i < node->n_cells; i++)
        k->cells[i] = g->cells[node->cells[i]].cell;
    ls_call c = { .op = node->op,
                  .attrs = node->attrs,
                  .n_inputs = node->n_inputs,
                  .n_cells = node->n_cells,
                  .in = k->in,
                  .out = k->out,
                  .cells = k->cells };
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    ls_status st = judged(&scope, run_rule(node, &c), k->place);
    for (int i = 0; i < node->n_outputs && !st; i++) {
        const ls__spec *is = &g->wires[node->outputs[i]].spec;
        if (!ls__spec_equal(is, &k->out[i]))
            st = ls__fail(LS_CORRUPT, "graph: %s: output %d is %s, its shape rule says %s",
                          k->place, i, ls__spec_text(is), ls__spec_text(&k->out[i]));
    }
    /* An alias has no kernel: its output is the memory of its input. */
    if (!st && node->op->flags & LS_OP_ALIAS && !(node->op->flags & LS_OP_READS) &&
        (k->in[0]->dtype != k->out[0].dtype ||
         ls__spec_count(k->in[0]) != ls__spec_count(&k->out[0])))
        st = ls__fail(LS_CORRUPT, "graph: %s: %s cannot be the memory of %s", k->place,
                      ls__spec_text(k->in[0]), ls__spec_text(&k->out[0]));
    return st;
}

static ls_status check_node(walk *k, const ls__node *node, int i)
{
    if (!node || !node->op || node->op->size != sizeof *node->op)
        return ls__fail(LS_CORRUPT, "graph: node %d has no operator", i);
    snprintf(k->place, sizeof k->place, "node %d (%s, call %d)", i,
             node->op->name ? node->op->name : "?", node->where);
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    ls_status st = judged(&scope, ls__row_complete(node->op), k->place);
    if (st)
        return st;
    if (node->at != i)
        return ls__fail(LS_CORRUPT, "graph: %s: thinks it is node %d", k->place, node->at);
    st = check_arity(k, node);
    if (!st)
        st = check_order(k, node);
    if (!st)
        st = check_ends(k, node);
    if (node->op->flags & LS__OP_SYNC)
        k->meetings++;
    return st ? st : check_shapes(k, node);
}

/* ---- the whole ------------------------------------------------------------------------------ */

static ls_status make_room(walk *k)
{
    size_t in = 1, out = 1, cells = 1;
    for (int i = 0; i < k->g->n_nodes; i++) {
        const ls__node *node = k->g->nodes[i];
        if (!node)
            continue;
        in = node->n_inputs > (int)in ? (size_t)node->n_inputs : in;
        out = node->n_outputs > (int)out ? (size_t)node->n_outputs : out;
        cells = node->n_cells > (int)cells ? (size_t)node->n_cells : cells;
    }
    k->made = calloc((size_t)k->g->n_wires + 1, sizeof *k->made);
    k->in = calloc(in, sizeof *k->in);
    k->out = calloc(out, sizeof *k->out);
    k->cells = calloc(cells, sizeof *k->cells);
    return k->made && k->in && k->out && k->cells ? LS_OK : ls__fail_memory("graph", in + out);
}

static ls_status check_all(walk *k)
{
    const ls__graph *g = k->g;
    if (g->draws < 0 || g->calls < 0)
        return ls__fail(LS_CORRUPT, "graph: %lld draws, %d calls", (long long)g->draws, g->calls);
    ls_status st = make_room(k);
    if (!st)
        st = check_cells(g);
    if (!st)
        st = check_wires(k);
    LS_FRAME { /* what shape rules make on the way */
        for (int i = 0; i < g->n_nodes && !st; i++)
            st = check_node(k, g->nodes[i], i);
    }
    for (int i = 0; i < g->n_outputs && !st; i++)
        if (g->outputs[i] < 0 || g->outputs[i] >= g->n_wires || !k->made[g->outputs[i]])
            st = ls__fail(LS_CORRUPT, "graph: output %d is wire %d, which nobody makes", i,
                          g->outputs[i]);
    return st;
}

ls_status ls__graph_verify(const ls__graph *g)
{
    walk k = { .g = g, .draw = -1 };
    ls_status st = check_all(&k);
    free(k.made);
    free(k.in);
    free(k.out);
    free(k.cells);
    return st;
}
