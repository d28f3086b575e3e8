/*
 * Cross-replica context, by the rules: merge functions, and what is done between runs.
 */
#include <string.h>

#include "random_strategies/oracle.h"

typedef struct here {
    oracle *o;
    const rs_body *body;
    int who;
    or_leaf regs[RS_REGISTERS];
    int pending, pending_who;
} here;

static void fails(here *h, int status, int who)
{
    if (h->pending)
        return;
    h->pending = status;
    h->pending_who = who;
}

static or_leaf none(here *h, ls_status status)
{
    fails(h, status, OR_NOBODY);
    return (or_leaf){ LS_SPREAD_PLAIN, { NULL } };
}

static or_leaf reduce(here *h, const rs_op *op, const or_leaf *a)
{
    oracle *o = h->o;
    bool apart = a->spread == LS_SPREAD_PER_REPLICA || o->v == 1;
    if (!apart && op->which == LS_SUM)
        return none(h, LS_INVALID);
    if (!apart)
        return or_plain(a->parts[0]);
    if (op->b == LS_NO_AXIS || op->code != RS_REDUCE)
        return or_plain(or_reduce(o, op->which, o->v, a->parts));
    const or_tensor *sums[RS_REPLICAS];
    int axis = op->b < 0 ? op->b + a->parts[0]->type.rank : op->b;
    for (int r = 0; r < o->v; r++)
        sums[r] = or_sum_axis(o, a->parts[r], axis);
    const or_tensor *sum = or_reduce(o, LS_SUM, o->v, sums);
    double dims = (double)(a->parts[0]->type.dims[axis] * o->v);
    return or_plain(op->which == LS_SUM ? sum : or_divided(o, sum, dims));
}

/* The tensor where the operation says. */
static or_leaf at_destination(here *h, const rs_op *op, or_leaf reduced)
{
    bool plain = op->to == RS_TO_DEVICE ||
                 (op->to == RS_TO_VALUE && h->regs[op->b].spread == LS_SPREAD_PLAIN);
    return plain || !reduced.parts[0] ? reduced : or_mirrored(h->o, reduced.parts[0]);
}

static void batch(here *h, const rs_op *op)
{
    int from[2], to[2];
    rs_leaves(op->in, from);
    rs_leaves(op->out, to);
    or_leaf there[2];
    for (int i = 0; i < 2; i++)
        there[i] = at_destination(h, op, reduce(h, op, &h->regs[from[i]]));
    for (int i = 0; i < 2; i++)
        h->regs[to[i]] = there[i];
}

static or_leaf gather(here *h, const rs_op *op, const or_leaf *a)
{
    rs_type type = a->parts[0]->type;
    int64_t v = h->o->v, count = rs_count(&type);
    int64_t inner = type.rank == 2 && op->b == 0 ? type.dims[0] * type.dims[1] : type.dims[op->b];
    int64_t outer = inner ? count / inner : 0;
    type.dims[op->b] *= v;
    or_tensor *all = or_new(h->o, &type);
    for (int64_t i = 0; i < outer; i++)
        for (int64_t r = 0; r < v; r++)
            memcpy(all->at + (i * v + r) * inner, a->parts[r]->at + i * inner,
                   sizeof *all->at * (size_t)inner);
    for (int64_t r = 0; r < v; r++)
        all->unknown |= a->parts[r]->unknown;
    return or_plain(all);
}

/* ON_READ SUM: each copy gets its share. */
static void write(here *h, const rs_op *op, const or_leaf *a)
{
    oracle *o = h->o;
    const rs_variable *v = &o->p->variables[op->variable];
    bool shares = v->synchronization == LS_SYNC_ON_READ && v->aggregation == LS_AGGREGATE_SUM;
    if (a->spread == LS_SPREAD_PER_REPLICA || (shares && op->which != RS_ASSIGN)) {
        fails(h, LS_INVALID, OR_NOBODY);
        return;
    }
    or_tensor *share = or_copy(o, a->parts[0]);
    for (int64_t i = 0; shares && i < rs_count(&share->type); i++)
        share->at[i] /= o->v;
    for (int r = 0; r < o->v; r++) {
        const or_tensor **cell = &o->cells[op->variable][r];
        *cell = or_written(o, op->which, *cell, share);
    }
}

static or_leaf update(here *h, const rs_op *op, const or_leaf *a)
{
    oracle *o = h->o;
    or_leaf out = { LS_SPREAD_MIRRORED, { NULL } };
    if (a->spread == LS_SPREAD_PER_REPLICA)
        return none(h, LS_INVALID);
    for (int r = 0; r < o->v; r++) {
        const or_tensor **cell = &o->cells[op->variable][r];
        *cell = or_written(o, op->which, *cell, a->parts[0]);
        out.parts[r] = *cell;
    }
    return op->b < 0 ? out : or_plain(out.parts[op->b]);
}

/* A failure that is handled leaves zeros. */
static void run(here *h, const rs_op *op)
{
    oracle *o = h->o;
    int from[OR_LEAVES], to[OR_LEAVES], n = rs_leaves(op->in, from);
    or_leaf arguments[OR_LEAVES];
    bool null = false;
    for (int i = 0; i < n; i++) {
        arguments[i] = h->regs[from[i]];
        null |= !arguments[i].parts[0];
    }
    or_outcome out = { .status = LS_INVALID, .who = OR_NOBODY };
    if (!null)
        out = or_run(o, op->body, arguments);
    n = rs_leaves(op->out, to);
    bool handled = out.status && op->handled && !h->pending;
    if (out.status && !handled)
        fails(h, out.status, out.who);
    for (int i = 0; i < n; i++) {
        const rs_register *r = &h->body->registers[to[i]];
        or_leaf *leaf = &h->regs[to[i]];
        *leaf = out.status ? (or_leaf){ LS_SPREAD_PLAIN, { NULL } } : out.leaves[i];
        for (int k = 0; handled && k < o->v; k++)
            leaf->parts[k] = or_full(o, &r->type, 0);
        if (handled)
            leaf->spread =
                r->spread == LS_SPREAD_PLAIN || o->v == 1 ? LS_SPREAD_PLAIN : LS_SPREAD_PER_REPLICA;
    }
}

/* With all that it needs. */
static or_leaf one_op(here *h, const rs_op *op)
{
    oracle *o = h->o;
    const or_leaf *a = &h->regs[op->a >= 0 ? op->a : 0];
    switch (op->code) {
    case RS_READ: {
        const or_tensor *t = or_combined(o, op->variable);
        return t ? or_plain(t) : none(h, LS_INVALID);
    }
    case RS_BAD: {
        rs_wrong wrong = op->fault.who ? op->fault.wrong : RS_RIGHT;
        if (wrong == RS_FAILS || wrong == RS_UNREAD)
            fails(h, LS_SHAPE, OR_NOBODY);
        return or_plain(wrong == RS_FAILS ? NULL : or_full(o, &op->type, 0));
    }
    case RS_WHO:
        return or_plain(or_full(o, &op->type, h->who));
    case RS_TAG:
        return or_plain(or_full(o, &op->type, a->spread));
    case RS_REDUCE:
        return reduce(h, op, a);
    case RS_REDUCE_TO:
        return at_destination(h, op, reduce(h, op, a));
    case RS_MIRROR:
        return at_destination(h, op, *a);
    case RS_GATHER:
        return gather(h, op, a);
    case RS_SELECT:
    case RS_LOCAL:
        return or_plain(a->parts[a->spread == LS_SPREAD_PLAIN ? 0 : op->b]);
    case RS_UPDATE:
        return update(h, op, a);
    default:
        return or_plain(or_plain_op(o, op, a->parts[0],
                                    op->code == RS_ARITH ? h->regs[op->b].parts[0] : NULL, 0));
    }
}

/* Whether what it reads is there. */
static bool can(const here *h, const rs_op *op)
{
    int regs[2];
    bool reads_b = op->code == RS_ARITH ||
                   ((op->code == RS_REDUCE_TO || op->code == RS_MIRROR || op->code == RS_BATCH) &&
                    op->to == RS_TO_VALUE);
    switch (op->code) {
    case RS_CONST:
    case RS_DRAW:
    case RS_READ:
    case RS_BAD:
    case RS_WHO:
        return true;
    case RS_BATCH:
        rs_leaves(op->in, regs);
        if (!h->regs[regs[0]].parts[0] || !h->regs[regs[1]].parts[0])
            return false;
        break;
    default:
        if (!h->regs[op->a].parts[0])
            return false;
    }
    return !reads_b || h->regs[op->b].parts[0];
}

static void do_op(here *h, const rs_op *op)
{
    if (op->code == RS_RUN) {
        run(h, op);
        return;
    }
    int to[2] = { op->dst, op->dst }, n = op->out ? rs_leaves(op->out, to) : 1;
    if (!can(h, op)) {
        or_leaf null = none(h, LS_INVALID);
        for (int i = 0; i < n && to[i] >= 0; i++)
            h->regs[to[i]] = null;
    } else if (op->code == RS_BATCH) {
        batch(h, op);
    } else if (op->code == RS_WRITE || op->code == RS_WRITE_VALUE) {
        write(h, op, &h->regs[op->a]);
    } else {
        h->regs[op->dst] = one_op(h, op);
    }
}

or_outcome or_merge(oracle *o, const rs_body *body, const or_leaf *arguments, int who)
{
    here h = { .o = o, .body = body, .who = who };
    int regs[OR_LEAVES], n = body->arguments ? rs_leaves(body->arguments, regs) : 0;
    for (int i = 0; i < n; i++)
        h.regs[regs[i]] = arguments[i];
    for (int i = 0; i < body->n_ops; i++)
        do_op(&h, &body->ops[i]);
    or_outcome out = { .status = LS_OK, .who = OR_NOBODY };
    n = rs_leaves(body->results, regs);
    for (int i = 0; i < n; i++) {
        out.leaves[i] = h.regs[regs[i]];
        if (!out.leaves[i].parts[0])
            fails(&h, LS_INVALID, OR_NOBODY);
    }
    if (body->at_return.wrong == RS_NULL_RESULT && body->at_return.who)
        fails(&h, LS_INVALID, OR_NOBODY);
    out.status = h.pending;
    out.who = h.pending ? h.pending_who : OR_NOBODY;
    return out;
}
