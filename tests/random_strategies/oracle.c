/*
 * The oracle's tensors: arithmetic on doubles, rounded to the dtype after every operation, sums
 * over replicas in the order of the tree.
 */
#include "random_strategies/oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct or_chunk {
    struct or_chunk *next;
    or_tensor tensor;
} or_chunk;

or_tensor *or_new(oracle *o, const rs_type *type)
{
    or_chunk *c = malloc(sizeof *c);
    if (!c || rs_count(type) > RS_ROOM)
        abort();
    c->next = o->memory;
    o->memory = c;
    c->tensor.type = *type;
    c->tensor.unknown = false;
    return &c->tensor;
}

void or_free_all(oracle *o)
{
    for (or_chunk *c = o->memory, *next; c; c = next) {
        next = c->next;
        free(c);
    }
}

or_tensor *or_copy(oracle *o, const or_tensor *t)
{
    or_tensor *c = or_new(o, &t->type);
    *c = *t;
    return c;
}

or_tensor *or_full(oracle *o, const rs_type *type, double k)
{
    or_tensor *t = or_new(o, type);
    for (int i = 0; i < RS_ROOM; i++)
        t->at[i] = k;
    return t;
}

double or_rounded(const or_tensor *t, double x)
{
    return t->type.dtype == LS_F32 ? (double)(float)x : x;
}

const or_tensor *or_arith(oracle *o, int which, const or_tensor *a, const or_tensor *b)
{
    if (!a || !b)
        return NULL;
    or_tensor *t = or_new(o, &a->type);
    t->unknown = a->unknown || b->unknown;
    for (int64_t i = 0; i < rs_count(&t->type); i++) {
        double x = a->at[i], y = b->at[i];
        t->at[i] = or_rounded(t, which == RS_ADD   ? x + y
                                 : which == RS_SUB ? x - y
                                 : which == RS_MUL ? x * y
                                 : which == RS_MAX ? (x > y ? x : y)
                                                   : (x < y ? x : y));
    }
    return t;
}

static double unary(const rs_op *op, double x)
{
    switch (op->which) {
    case RS_NEG:
        return -x;
    case RS_ABS:
        return fabs(x);
    case RS_CLIP:
        return x < -op->k ? -op->k : x > op->k ? op->k : x;
    case RS_SCALE:
        return x * op->k;
    default:
        return x + op->k;
    }
}

const or_tensor *or_plain_op(oracle *o, const rs_op *op, const or_tensor *a, const or_tensor *b,
                             int replica)
{
    if (op->code == RS_ARITH)
        return or_arith(o, op->which, a, b);
    if (op->code == RS_CONST)
        return or_full(o, &op->type, op->k + op->b * replica);
    or_tensor *t = or_new(o, &op->type);
    if (op->code == RS_DRAW) {
        t->unknown = true;
        return t;
    }
    if (!a)
        return NULL;
    t->unknown = a->unknown;
    int64_t n = rs_count(&a->type);
    t->at[0] = 0;
    for (int64_t i = 0; i < n; i++)
        if (op->code == RS_SUM_ALL)
            t->at[0] += a->at[i];
        else if (op->code == RS_CAST)
            t->at[i] =
                ls_dtype_is_integer(t->type.dtype) ? trunc(a->at[i]) : or_rounded(t, a->at[i]);
        else
            t->at[i] = or_rounded(t, unary(op, a->at[i]));
    return t;
}

const or_tensor *or_divided(oracle *o, const or_tensor *t, double by)
{
    rs_type type = rs_mean_type(t->type);
    or_tensor *q = or_new(o, &type);
    q->unknown = t->unknown;
    for (int64_t i = 0; i < rs_count(&type); i++)
        q->at[i] = or_rounded(q, t->at[i] / by);
    return q;
}

/* V = 5: ((0+1)+(2+3))+4. */
const or_tensor *or_reduce(oracle *o, int which, int n, const or_tensor *const *parts)
{
    const or_tensor *sum[RS_REPLICAS];
    if (which == LS_ONLY_FIRST)
        return parts[0];
    memcpy(sum, parts, (size_t)n * sizeof *sum);
    for (int gap = 1; gap < n; gap *= 2)
        for (int r = 0; r + gap < n; r += 2 * gap)
            sum[r] = or_arith(o, RS_ADD, sum[r], sum[r + gap]);
    return which == LS_SUM ? sum[0] : or_divided(o, sum[0], n);
}

const or_tensor *or_sum_axis(oracle *o, const or_tensor *t, int axis)
{
    rs_type type = t->type;
    axis += axis < 0 ? type.rank : 0;
    type.dims[0] = type.dims[axis == 0 ? 1 : 0];
    type.rank--;
    or_tensor *s = or_full(o, &type, 0);
    s->unknown = t->unknown;
    int64_t columns = t->type.rank == 2 ? t->type.dims[1] : 1;
    for (int64_t i = 0; i < rs_count(&t->type); i++)
        s->at[t->type.rank == 1 ? 0 : axis == 0 ? i % columns : i / columns] += t->at[i];
    return s;
}

/* ---- leaves and variables -------------------------------------------------------------------- */

or_leaf or_plain(const or_tensor *t)
{
    return (or_leaf){ LS_SPREAD_PLAIN, { t } };
}

or_leaf or_mirrored(const oracle *o, const or_tensor *t)
{
    or_leaf leaf = { LS_SPREAD_MIRRORED, { NULL } };
    for (int r = 0; r < o->v; r++)
        leaf.parts[r] = t;
    return leaf;
}

/* Plain: the same tensor for all. Mirrored: each has its own, although with equal contents. */
const or_tensor *or_component(oracle *o, const or_leaf *leaf, int replica)
{
    return leaf->spread == LS_SPREAD_PLAIN      ? leaf->parts[0]
           : leaf->spread == LS_SPREAD_MIRRORED ? or_copy(o, leaf->parts[replica])
                                                : leaf->parts[replica];
}

or_leaf or_grouped(const oracle *o, const or_tensor *const *parts)
{
    or_leaf leaf = { LS_SPREAD_PLAIN, { parts[0] } };
    for (int r = 1; r < o->v; r++) {
        leaf.parts[r] = parts[r];
        if (parts[r] != parts[0])
            leaf.spread = LS_SPREAD_PER_REPLICA;
    }
    return leaf;
}

const or_tensor *or_combined(oracle *o, int variable)
{
    const rs_variable *v = &o->p->variables[variable];
    const or_tensor *const *cells = o->cells[variable];
    if (v->synchronization != LS_SYNC_ON_READ)
        return cells[0];
    switch (v->aggregation) {
    case LS_AGGREGATE_SUM:
        return or_reduce(o, LS_SUM, o->v, cells);
    case LS_AGGREGATE_MEAN:
        return or_reduce(o, LS_MEAN, o->v, cells);
    case LS_AGGREGATE_ONLY_FIRST:
        return cells[0];
    default:
        return NULL;
    }
}

const or_tensor *or_written(oracle *o, int which, const or_tensor *old, const or_tensor *value)
{
    if (which == RS_ASSIGN)
        return or_copy(o, value);
    return or_arith(o, which == RS_ASSIGN_ADD ? RS_ADD : RS_SUB, old, value);
}
