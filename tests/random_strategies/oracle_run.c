/*
 * A run, by the rules: every operation is done for all replicas before the next one, which is what
 * meeting at the meetings comes to. A replica's first error is kept until it ends; a replica
 * that brings NULL to a meeting fails the run there; else the run fails at its end.
 */
#include <string.h>

#include "random_strategies/oracle.h"

typedef struct running {
    oracle *o;
    const rs_body *body;
    const or_tensor *regs[RS_REPLICAS][RS_REGISTERS];
    ls_status pending[RS_REPLICAS];
} running;

static const or_outcome fine = { .status = LS_OK, .who = OR_NOBODY };

static or_outcome failure(int status, int who)
{
    return (or_outcome){ .status = status, .who = who };
}

static void fails(running *run, int r, ls_status status)
{
    if (!run->pending[r])
        run->pending[r] = status;
}

static rs_wrong wrong_of(const rs_fault *fault, int r)
{
    return fault->who >> r & 1 ? fault->wrong : RS_RIGHT;
}

static bool anybody(const running *run, const rs_fault *fault, rs_wrong wrong)
{
    return fault->wrong == wrong && (fault->who & ((1u << run->o->v) - 1));
}

/* The error of the lowest replica that has one. */
static or_outcome lowest(const running *run)
{
    for (int r = 0; r < run->o->v; r++)
        if (run->pending[r])
            return failure(run->pending[r], run->o->v > 1 ? r : OR_NOBODY);
    return fine;
}

/* ---- meetings -------------------------------------------------------------------------------- */

/* Whether the replicas meet as they should: all bring all of `regs`. */
static or_outcome arrive(running *run, const rs_op *op, int n, const int *regs)
{
    bool null = false; /* somebody brings NULL */
    if (anybody(run, &op->fault, RS_SKIPS))
        return failure(OR_ANY, OR_ANY);
    for (int r = 0; r < run->o->v; r++) {
        bool mine = wrong_of(&op->fault, r) == RS_NULL_ARGUMENT;
        for (int i = 0; i < n; i++)
            mine |= !run->regs[r][regs[i]];
        if (mine)
            fails(run, r, LS_INVALID);
        null |= mine;
    }
    if (null)
        return lowest(run);
    if (anybody(run, &op->fault, RS_OTHER_MERGE) || anybody(run, &op->fault, RS_OTHER_REDUCE))
        return failure(OR_ANY, OR_ANY);
    if (anybody(run, &op->fault, RS_OTHER_SHAPE))
        return failure(LS_SHAPE, OR_ANY);
    if (anybody(run, &op->fault, RS_OTHER_STRUCTURE))
        return failure(LS_INVALID, OR_ANY);
    return fine;
}

static void parts_of(const running *run, int reg, const or_tensor **parts)
{
    for (int r = 0; r < run->o->v; r++)
        parts[r] = run->regs[r][reg];
}

static or_outcome all_reduce(running *run, const rs_op *op)
{
    int from[OR_LEAVES], to[OR_LEAVES], n = rs_leaves(op->in, from);
    or_outcome out = arrive(run, op, n, from);
    rs_leaves(op->out, to);
    for (int i = 0; i < n && !out.status; i++) {
        const or_tensor *parts[RS_REPLICAS];
        parts_of(run, from[i], parts);
        const or_tensor *sum = or_reduce(run->o, op->which, run->o->v, parts);
        for (int r = 0; r < run->o->v; r++)
            run->regs[r][to[i]] = or_copy(run->o, sum);
    }
    return out;
}

/* The gradient of an all-reduce is the all-reduce of the gradients. */
static or_outcome gradient(running *run, const rs_op *op)
{
    const or_tensor *parts[RS_REPLICAS];
    or_outcome out = arrive(run, op, 1, &op->a);
    if (out.status)
        return out;
    for (int r = 0; r < run->o->v; r++)
        parts[r] = or_full(run->o, &op->type, op->k * (r + 1));
    const or_tensor *sum = or_reduce(run->o, op->which, run->o->v, parts);
    for (int r = 0; r < run->o->v; r++)
        run->regs[r][op->dst] = or_copy(run->o, sum);
    return fine;
}

/* Softmax less one at the label, of two equal classes, doubled: -1 there and 1 elsewhere. */
static or_outcome loss(running *run, const rs_op *op)
{
    const or_tensor *parts[RS_REPLICAS];
    or_outcome out = arrive(run, op, 2, (int[]){ op->a, op->b });
    if (out.status)
        return out;
    parts_of(run, op->b, parts);
    const or_tensor *count = or_reduce(run->o, LS_SUM, run->o->v, parts);
    for (int r = 0; r < run->o->v; r++) {
        or_tensor *dx = or_full(run->o, &op->type, count->at[0]);
        dx->unknown = count->unknown;
        for (int i = 0; i < op->type.dims[0]; i++)
            dx->at[2 * i + (i + r) % 2] *= -1;
        run->regs[r][op->dst] = dx;
    }
    return fine;
}

static or_outcome merge(running *run, const rs_op *op)
{
    int from[OR_LEAVES], to[OR_LEAVES], n = rs_leaves(op->in, from);
    or_leaf arguments[OR_LEAVES];
    or_outcome out = arrive(run, op, n, from);
    if (out.status)
        return out;
    for (int i = 0; i < n; i++) {
        const or_tensor *parts[RS_REPLICAS];
        parts_of(run, from[i], parts);
        arguments[i] = or_grouped(run->o, parts);
    }
    out = or_merge(run->o, op->body, arguments, 0);
    n = rs_leaves(op->out, to);
    for (int i = 0; i < n && !out.status; i++)
        for (int r = 0; r < run->o->v; r++)
            run->regs[r][to[i]] = or_component(run->o, &out.leaves[i], r);
    return out;
}

/* A write that all replicas take part in. */
static or_outcome meet_to_write(running *run, const rs_op *op)
{
    oracle *o = run->o;
    const rs_variable *v = &o->p->variables[op->variable];
    const or_tensor *parts[RS_REPLICAS];
    or_outcome out = arrive(run, op, 1, &op->a);
    if (out.status)
        return out;
    parts_of(run, op->a, parts);
    bool plain = or_grouped(o, parts).spread == LS_SPREAD_PLAIN;
    if (v->aggregation == LS_AGGREGATE_SUM && plain && o->v > 1)
        return failure(LS_INVALID, OR_ANY);
    const or_tensor *value = parts[0];
    if (v->aggregation == LS_AGGREGATE_SUM)
        value = or_reduce(o, LS_SUM, o->v, parts);
    if (v->aggregation == LS_AGGREGATE_MEAN && !plain)
        value = or_reduce(o, LS_MEAN, o->v, parts);
    const or_tensor *written = or_written(o, op->which, o->cells[op->variable][0], value);
    for (int r = 0; r < o->v; r++)
        o->cells[op->variable][r] = written;
    return fine;
}

/* ---- a replica alone -------------------------------------------------------------------------- */

static void write_alone(running *run, const rs_op *op, int r)
{
    oracle *o = run->o;
    const rs_variable *v = &o->p->variables[op->variable];
    const or_tensor *value = run->regs[r][op->a];
    bool own = v->synchronization == LS_SYNC_ON_READ || v->local_writes;
    if (!own || !value)
        fails(run, r, LS_INVALID);
    else
        o->cells[op->variable][r] = or_written(o, op->which, o->cells[op->variable][r], value);
}

static const or_tensor *fuse(running *run, const rs_op *op, int r)
{
    oracle *o = run->o;
    int last = o->p->n_variables - 1;
    const or_tensor *fuses = run->regs[r][0], *a = run->regs[r][op->a];
    if (!fuses || fuses->at[op->which] == 0 || !a) {
        fails(run, r, LS_INVALID);
        return NULL;
    }
    o->cells[last][r] = or_copy(o, o->cells[last][r]);
    return or_arith(o, RS_ADD, a, or_full(o, &a->type, 0));
}

static void alone(running *run, const rs_op *op, int r)
{
    const or_tensor **regs = run->regs[r], *result = NULL;
    switch (op->code) {
    case RS_READ:
        result = or_copy(run->o, run->o->cells[op->variable][r]);
        break;
    case RS_WRITE:
        write_alone(run, op, r);
        return;
    case RS_FUSE:
        result = fuse(run, op, r);
        break;
    case RS_BAD: {
        rs_wrong wrong = wrong_of(&op->fault, r);
        if (wrong == RS_FAILS || wrong == RS_UNREAD)
            fails(run, r, LS_SHAPE);
        result = wrong == RS_FAILS ? NULL : or_full(run->o, &op->type, 0);
        break;
    }
    default:
        result = or_plain_op(run->o, op, regs[op->a], op->code == RS_ARITH ? regs[op->b] : NULL, r);
        if (!result)
            fails(run, r, LS_INVALID); /* of what was NULL without an error */
    }
    regs[op->dst] = result;
}

static bool meets(const oracle *o, const rs_op *op)
{
    const rs_variable *v = &o->p->variables[op->variable];
    return op->code == RS_WRITE && v->synchronization == LS_SYNC_ON_WRITE &&
           v->aggregation != LS_AGGREGATE_NONE;
}

static or_outcome one_op(running *run, const rs_op *op)
{
    switch (op->code) {
    case RS_ALL_REDUCE:
        return all_reduce(run, op);
    case RS_GRADIENT:
        return gradient(run, op);
    case RS_LOSS:
        return loss(run, op);
    case RS_MERGE:
        return merge(run, op);
    default:
        if (meets(run->o, op))
            return meet_to_write(run, op);
        for (int r = 0; r < run->o->v; r++)
            alone(run, op, r);
        return fine;
    }
}

static or_outcome return_all(running *run)
{
    const rs_body *body = run->body;
    int regs[OR_LEAVES], n = rs_leaves(body->results, regs);
    for (int r = 0; r < run->o->v; r++) {
        bool null = wrong_of(&body->at_return, r) == RS_NULL_RESULT;
        for (int i = 0; i < n; i++)
            null |= regs[i] >= 0 && !run->regs[r][regs[i]];
        if (null)
            fails(run, r, LS_INVALID);
    }
    or_outcome out = lowest(run);
    if (!out.status && anybody(run, &body->at_return, RS_OTHER_STRUCTURE))
        out = failure(LS_INVALID, OR_ANY);
    for (int i = 0; i < n && !out.status; i++) {
        const or_tensor *parts[RS_REPLICAS] = { NULL };
        if (regs[i] >= 0)
            parts_of(run, regs[i], parts);
        out.leaves[i] = or_grouped(run->o, parts);
    }
    return out;
}

/* A run that fails did not happen. */
or_outcome or_run(oracle *o, const rs_body *body, const or_leaf *arguments)
{
    running run = { .o = o, .body = body };
    const or_tensor *before[RS_VARIABLES][RS_REPLICAS];
    int regs[OR_LEAVES], n = rs_leaves(body->arguments, regs);
    memcpy(before, o->cells, sizeof before);
    for (int i = 0; i < n; i++)
        for (int r = 0; r < o->v; r++)
            run.regs[r][regs[i]] = or_component(o, &arguments[i], r);
    or_outcome out = fine;
    for (int i = 0; i < body->n_ops && !out.status; i++)
        out = one_op(&run, &body->ops[i]);
    if (!out.status)
        out = return_all(&run);
    if (out.status)
        memcpy(o->cells, before, sizeof before);
    return out;
}
