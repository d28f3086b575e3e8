/*
 * Small graphs for tests and for the fuzzer's first inputs. Between them they have
 * every kind of attribute, dtype, wire and effect, rows with many outputs and fused
 * rows. Each is NULL when it could not be made, with the error pending.
 */
#ifndef LS__TRACE_GRAPH_SAMPLES_H
#define LS__TRACE_GRAPH_SAMPLES_H

#include <stdlib.h>
#include <string.h>

#include "trace/graph.h"

#define LS__MAX_ATTRS 512

/* Reads attributes as they are printed, "stride 1,1 padding 0", into zeroed `out`. */
static inline ls_status sample_attrs(const ls_op *op, const char *text, void *out)
{
    for (const ls_attr *a = op->attrs; a && a->kind != LS_ATTR_KIND_END; a++) {
        void *field = (char *)out + a->offset;
        const char *at = text;
        size_t length = strlen(a->name);
        while (at && (strncmp(at, a->name, length) != 0 || at[length] != ' '))
            at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL;
        if (!at)
            return ls__fail(LS_INVALID, "sample: %s wants %s", op->name, a->name);
        char *end = (char *)at + length;
        if (a->kind == LS_ATTR_KIND_FLOAT)
            *(double *)field = strtod(end, NULL);
        else if (a->kind == LS_ATTR_KIND_INT)
            *(int64_t *)field = strtoll(end, NULL, 10);
        ls_ints *list = field;
        if (a->kind == LS_ATTR_KIND_INTS && strncmp(end, " all", 4) == 0)
            list->count = -1;
        else if (a->kind == LS_ATTR_KIND_INTS && strncmp(end, " none", 5) != 0)
            do
                list->at[list->count++] = strtoll(end + 1, &end, 10);
            while (*end == ',' && list->count < LS_MAX_RANK);
    }
    return LS_OK;
}

/* Calls a row on wires and cells, each list ending with -1. A step of its own. */
static inline ls__node *sample_call(ls__graph *g, const char *row, const char *attrs,
                                    const int *inputs, const int *cells)
{
    static const int none[] = { -1 };
    _Alignas(16) char room[LS__MAX_ATTRS] = { 0 };
    const ls_op *op = ls_op_find(row);
    inputs = inputs ? inputs : none;
    cells = cells ? cells : none;
    int n_inputs = 0, n_cells = 0;
    while (inputs[n_inputs] >= 0)
        n_inputs++;
    while (cells[n_cells] >= 0)
        n_cells++;
    if (ls_error_pending()) /* a wire may be none */
        return NULL;
    if (!op || op->attr_size > sizeof room) {
        ls__fail(LS_NOT_FOUND, "sample: no operator '%s' of that size", row);
        return NULL;
    }
    if (sample_attrs(op, attrs ? attrs : "", room))
        return NULL;
    g->calls++;
    ls__node *node = ls__graph_call_cells(g, NULL, op, room, n_inputs, inputs, n_cells, cells);
    if (node && op->flags & LS_OP_DRAWS)
        node->draw = g->draws++;
    return node;
}

/* The first result of a call; -2 when it failed. */
#define WIRES(...) ((const int[]){ __VA_ARGS__, -1 })
static inline int sample_wire(ls__graph *g, const char *row, const char *attrs, const int *inputs,
                              const int *cells)
{
    ls__node *node = sample_call(g, row, attrs, inputs, cells);
    return node && node->n_outputs ? node->outputs[0] : -2;
}

static inline ls__spec sample_spec(ls_dtype dtype, int rank, int64_t a, int64_t b, int64_t c,
                                   int64_t d)
{
    return (ls__spec){ dtype, rank, { a, b, c, d } };
}

static inline int sample_input(ls__graph *g, ls_dtype dtype, int rank, int64_t a, int64_t b,
                               int64_t c, int64_t d)
{
    ls__spec spec = sample_spec(dtype, rank, a, b, c, d);
    return ls__graph_input(g, &spec);
}

static inline int sample_constant(ls__graph *g, ls_dtype dtype, int rank, int64_t a, int64_t b,
                                  const void *data)
{
    ls__spec spec = sample_spec(dtype, rank, a, b, 0, 0);
    ls__storage *s = ls__storage_new("sample", ls__spec_bytes(&spec));
    if (!s)
        return -2;
    if (data)
        memcpy(s->data, data, ls__spec_bytes(&spec));
    int wire = ls__graph_constant(g, &spec, s);
    ls__storage_unref(s);
    return wire;
}

/* ---- the graphs --------------------------------------------------------------------- */

/* Arithmetic on an argument and constants of every dtype. */
static inline void fill_constants(ls__graph *g)
{
    static const float list[] = { 1, -2.5f, 0.1f }, halves[] = { 0.5f, 0.5f, 0.5f };
    static const uint16_t bf16[] = { 0x3f80, 0x4000, 0x4040 };
    static const double f64[] = { 0.1, -1e300 };
    static const int32_t i32[] = { 1, 0, -7 };
    static const int64_t i64[] = { INT64_MIN, INT64_MAX, 0 };
    static const uint8_t bytes[] = { 0, 1, 255 }, bools[] = { 1, 0, 1 };
    int x = sample_input(g, LS_F32, 2, 4, 3, 0, 0);
    int unused = sample_input(g, LS_I32, 0, 0, 0, 0, 0);
    int a = sample_constant(g, LS_F32, 1, 3, 0, list);
    int b = sample_constant(g, LS_F32, 1, 3, 0, halves);
    int hole = sample_constant(g, LS_F32, 1, 2, 0, list); /* nobody uses it */
    int c = sample_constant(g, LS_BOOL, 1, 3, 0, bools);
    int y = sample_wire(g, "add", NULL, WIRES(x, a), NULL);
    y = sample_wire(g, "where", NULL, WIRES(c, y, b), NULL);
    y = sample_wire(g, "relu", NULL, WIRES(y), NULL);
    int sums[] = {
        sample_wire(g, "neg", NULL, WIRES(sample_constant(g, LS_BF16, 1, 3, 0, bf16)), NULL),
        sample_wire(g, "neg", NULL, WIRES(sample_constant(g, LS_F64, 1, 2, 0, f64)), NULL),
        sample_wire(g, "neg", NULL, WIRES(sample_constant(g, LS_I64, 1, 3, 0, i64)), NULL),
        sample_constant(g, LS_U8, 1, 3, 0, bytes),
        sample_constant(g, LS_I32, 1, 3, 0, i32),
        sample_constant(g, LS_F32, 2, 0, 5, NULL),
        unused
    };
    (void)hole;
    for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++)
        ls__graph_output(g, sums[i]);
    ls__graph_output(g, y);
    ls__graph_output(g, y);
}

/* A small step with a convolution, a loss and an update of its variable. */
static inline void fill_step(ls__graph *g)
{
    ls__spec filter = sample_spec(LS_F32, 4, 3, 3, 1, 2);
    int cells[4];
    static const char *const names[] = { "conv/w", "conv/w/m", "conv/w/v", "odd \"name\"\n\\" };
    for (int i = 0; i < 4; i++)
        cells[i] = ls__graph_cell_add(g, (uint64_t)(100 - i), names[i], &filter, NULL);
    double rate = 0.001;
    int64_t iteration = 1;
    int x = sample_input(g, LS_F32, 4, 2, 6, 6, 1);
    int step = sample_input(g, LS_I64, 0, 0, 0, 0, 0);
    int w = sample_wire(g, "read", NULL, NULL, WIRES(cells[0]));
    int y = sample_wire(g, "conv2d", "stride 1,1 dilation 1,1 padding 0", WIRES(x, w), NULL);
    ls__node *pool = sample_call(g, "max_pool2d", "window 2 stride 2 padding 0", WIRES(y), NULL);
    int loss = sample_wire(g, "sum", "axes all keep 0", WIRES(pool ? pool->outputs[0] : -2), NULL);
    int one = sample_constant(g, LS_F64, 0, 0, 0, &rate);
    int k = sample_constant(g, LS_I64, 0, 0, 0, &iteration);
    int at = sample_wire(g, "add", NULL, WIRES(step, k), NULL);
    int dw = sample_wire(g, "mul", NULL, WIRES(w, w), NULL);
    sample_call(g, "adam_update", "beta1 0.9 beta2 0.999 epsilon 1e-07 weight_decay 0 clip_value 0",
                WIRES(dw, one, at), WIRES(cells[0], cells[1], cells[2]));
    sample_call(g, "assign_add", NULL, WIRES(dw), WIRES(cells[3]));
    ls__graph_output(g, loss);
}

/* Draws, lists with and without numbers, and many outputs. */
static inline void fill_draws(ls__graph *g)
{
    int x = sample_input(g, LS_F32, 2, 6, 4, 0, 0);
    int a = sample_wire(g, "random_uniform", "shape 6,4 dtype 1 low -0.25 high 0.25", NULL, NULL);
    int b = sample_wire(g, "random_normal", "shape none dtype 1 mean 0 stddev 1", NULL, NULL);
    int y = sample_wire(g, "add", NULL, WIRES(x, a), NULL);
    int mask = sample_wire(g, "dropout_mask", "rate 0.1", WIRES(y), NULL);
    y = sample_wire(g, "mul", NULL, WIRES(y, b), NULL);
    ls__node *parts = sample_call(g, "split", "parts 3 axis 0", WIRES(y), NULL);
    if (!parts)
        return;
    y = sample_wire(g, "concat", "axis 1",
                    WIRES(parts->outputs[2], parts->outputs[0], parts->outputs[0]), NULL);
    y = sample_wire(g, "reshape", "shape 24", WIRES(y), NULL);
    ls__graph_output(g, sample_wire(g, "mean", "axes 0 keep 1", WIRES(y), NULL));
    ls__graph_output(g, mask);
}

/* Rows that only passes make, and one whose results are removed again. */
static inline void fill_fused(ls__graph *g)
{
    int a = sample_input(g, LS_F32, 2, 4, 8, 0, 0);
    int w = sample_input(g, LS_F32, 2, 8, 3, 0, 0);
    int bias = sample_input(g, LS_F32, 1, 3, 0, 0, 0);
    ls__node *gone = sample_call(g, "exp", NULL, WIRES(a), NULL);
    int y = sample_wire(g, "matmul_bias_act", "transpose_a 0 transpose_b 0 act 1",
                        WIRES(a, w, bias), NULL);
    if (gone)
        ls__graph_remove(g, gone);
    ls__graph_output(g, sample_wire(g, "softmax", "axis -1", WIRES(y), NULL));
}

/* Layers, their loss and gradients, and updates: what every fusing pass looks for. */
static inline void fill_layers(ls__graph *g)
{
    ls__spec filter = sample_spec(LS_F32, 4, 3, 3, 1, 2), bias = sample_spec(LS_F32, 1, 2, 0, 0, 0);
    ls__spec dense = sample_spec(LS_F32, 2, 8, 5, 0, 0), bias2 = sample_spec(LS_F32, 1, 5, 0, 0, 0);
    int x = sample_input(g, LS_F32, 4, 2, 6, 6, 1), labels = sample_input(g, LS_I32, 1, 2, 0, 0, 0);
    int rate = sample_input(g, LS_F64, 0, 0, 0, 0, 0);
    int cw = ls__graph_cell_add(g, 1, "conv/w", &filter, NULL);
    int cb = ls__graph_cell_add(g, 2, "conv/b", &bias, NULL);
    int dw = ls__graph_cell_add(g, 3, "dense/w", &dense, NULL);
    int db = ls__graph_cell_add(g, 4, "dense/b", &bias2, NULL);
    static const float fifth = 0.2f;
    int scale = sample_constant(g, LS_F32, 0, 0, 0, &fifth);
    static const char conv[] = "stride 1,1 dilation 1,1 padding 0 shape 3,3,1,2";
    static const char pool[] = "window 2 stride 2 padding 0 shape 2,4,4,2";

    int w = sample_wire(g, "read", NULL, NULL, WIRES(cw));
    int y = sample_wire(g, "conv2d", conv, WIRES(x, w), NULL);
    y = sample_wire(g, "add", NULL, WIRES(y, sample_wire(g, "read", NULL, NULL, WIRES(cb))), NULL);
    int active = sample_wire(g, "relu", NULL, WIRES(y), NULL);
    ls__node *pooled = sample_call(g, "max_pool2d", pool, WIRES(active), NULL);
    if (!pooled)
        return;
    int flat = sample_wire(g, "reshape", "shape 2,8", WIRES(pooled->outputs[0]), NULL);
    int v = sample_wire(g, "read", NULL, NULL, WIRES(dw));
    y = sample_wire(g, "matmul", "transpose_a 0 transpose_b 0", WIRES(flat, v), NULL);
    y = sample_wire(g, "add", NULL, WIRES(y, sample_wire(g, "read", NULL, NULL, WIRES(db))), NULL);
    int logits = sample_wire(g, "mul", NULL,
                             WIRES(sample_wire(g, "tanh", NULL, WIRES(y), NULL), scale), NULL);
    ls__node *loss = sample_call(g, "sparse_softmax_xent", NULL, WIRES(logits, labels), NULL);
    if (!loss)
        return;
    int dl = sample_wire(g, "broadcast_to", "shape 2", WIRES(scale), NULL);
    int dy =
        sample_wire(g, "sparse_softmax_xent_grad", NULL, WIRES(loss->outputs[1], labels, dl), NULL);
    int dv = sample_wire(g, "matmul", "transpose_a 1 transpose_b 0", WIRES(flat, dy), NULL);
    int dflat = sample_wire(g, "matmul", "transpose_a 0 transpose_b 1", WIRES(dy, v), NULL);
    int dbias2 = sample_wire(g, "sum", "axes 0 keep 0", WIRES(dy), NULL);
    int dpool = sample_wire(g, "reshape", "shape 2,2,2,2", WIRES(dflat), NULL);
    int da = sample_wire(g, "max_pool2d_grad", pool, WIRES(dpool, pooled->outputs[1]), NULL);
    da = sample_wire(g, "relu_grad", NULL, WIRES(active, da), NULL);
    int dw1 = sample_wire(g, "conv2d_grad_filter", conv, WIRES(x, da), NULL);
    int dbias = sample_wire(g, "sum", "axes 0,1,2 keep 0", WIRES(da), NULL);
    sample_call(g, "sgd_update", "weight_decay 0 clip_value 0", WIRES(dw1, rate), WIRES(cw));
    sample_call(g, "sgd_update", "weight_decay 0 clip_value 0", WIRES(dbias, rate), WIRES(cb));
    sample_call(g, "sgd_update", "weight_decay 0 clip_value 0", WIRES(dv, rate), WIRES(dw));
    sample_call(g, "sgd_update", "weight_decay 0 clip_value 0", WIRES(dbias2, rate), WIRES(db));
    ls__graph_output(g, sample_wire(g, "mean", "axes all keep 0", WIRES(loss->outputs[0]), NULL));
}

static inline void fill_nothing(ls__graph *g)
{
    (void)g;
}

static const struct {
    const char *name;
    void (*fill)(ls__graph *g);
} samples[] = { { "empty", fill_nothing }, { "constants", fill_constants },
                { "step", fill_step },     { "draws", fill_draws },
                { "fused", fill_fused },   { "layers", fill_layers } };
enum { SAMPLES = sizeof samples / sizeof samples[0] };

static inline ls__graph *sample(int i)
{
    ls__graph *g = ls__graph_new(samples[i].name);
    if (!g)
        return NULL;
    samples[i].fill(g);
    if (!ls_error_pending())
        return g;
    ls__graph_free(g);
    return NULL;
}

#endif
