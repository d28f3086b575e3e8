/*
 * For tests of passes: numbers, short ways to build a graph, and running one by
 * calling its rows one after the other, eagerly. What a pass must keep is what
 * this gives before and after it.
 */
#ifndef LS__TRACE_TEST_RUN_H
#define LS__TRACE_TEST_RUN_H

#include <lockstep/operator.h>

#include "tensor/test_support.h"
#include "trace/graph.h"

/* A tensor of small numbers of both signs; not the same for another salt. */
static inline ls_tensor *some_numbers(const ls__spec *spec, uint64_t salt)
{
    int64_t n = ls__spec_count(spec);
    double *wide = ls__frame_alloc(sizeof *wide * (size_t)(n + 1));
    float *narrow = (float *)wide;
    uint64_t x = salt * 0x9E3779B97F4A7C15u + 1;
    for (int64_t i = 0; i < n; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        double value = (double)(int64_t)(x >> 40) / 0x1p23 - 1;
        if (spec->dtype == LS_F64)
            wide[i] = value;
        else
            narrow[i] = (float)value;
    }
    ls_tensor *t = ls_from(spec->dtype, spec->rank, spec->dims, wide);
    assert_non_null(t);
    return t;
}

/* A call at the end of the graph, of a row with one output: that wire. */
static inline int add_call(ls__graph *g, const char *row, const void *attrs, int n,
                           const int *inputs)
{
    g->calls++;
    ls__node *node = ls__graph_call(g, NULL, ls_op_find(row), attrs, n, inputs);
    if (!node)
        fail_msg("%s: %s", row, ls_error_report());
    return node->outputs[0];
}

static inline int count_rows(const ls__graph *g, const char *row)
{
    int n = 0;
    for (int i = 0; i < g->n_nodes; i++)
        n += ls__node_is(g->nodes[i], row);
    return n;
}

/* Runs the graph on these arguments; `out` has room for its outputs. */
static inline void run_graph(const ls__graph *g, ls_tensor *const *arguments, ls_tensor **out)
{
    ls_tensor **value = ls__frame_alloc(sizeof *value * (size_t)(g->n_wires + 1));
    for (int i = 0; i < g->n_wires; i++) {
        const ls__wire *w = &g->wires[i];
        if (w->kind == LS__WIRE_INPUT)
            value[i] = arguments[w->index];
        else if (w->kind == LS__WIRE_CONSTANT)
            value[i] = ls_from(w->spec.dtype, w->spec.rank, w->spec.dims, ls__wire_data(g, i));
    }
    for (int i = 0; i < g->n_nodes; i++) {
        const ls__node *node = g->nodes[i];
        ls_tensor *in[16] = { NULL };
        ls__cell *cells[16] = { NULL };
        ls__results results = { 0 };
        assert_true(node->n_inputs <= 16 && node->n_cells <= 16);
        for (int k = 0; k < node->n_inputs; k++)
            in[k] = value[node->inputs[k]];
        for (int k = 0; k < node->n_cells; k++)
            cells[k] = g->cells[node->cells[k]].cell;
        if (ls__call_all(node->op, node->attrs, node->n_inputs, in, node->n_cells, cells, &results))
            fail_msg("%s: %s", node->op->name, ls_error_report());
        for (int k = 0; k < results.count; k++)
            value[node->outputs[k]] = results.at[k];
    }
    for (int i = 0; i < g->n_outputs; i++)
        out[i] = value[g->outputs[i]];
}

static inline void same_bits(const ls_tensor *a, const ls_tensor *b)
{
    assert_int_equal(ls_size_in_bytes(a), ls_size_in_bytes(b));
    assert_memory_equal(ls__data(a), ls__data(b), ls_size_in_bytes(a));
}

#endif
