/*
 * Programs from seeds: variables, what a replica does, which runs there are, and what goes
 * wrong in them. A function has at most one kind of mistake in it, so that the rules say which
 * error a run ends with.
 */
#include <stdlib.h>
#include <string.h>

#include "random_strategies/program.h"

/* ---- variables --------------------------------------------------------------------------- */

rs_type rs_some_type(rs_maker *m)
{
    static const ls_dtype dtypes[] = { LS_F32, LS_F32, LS_F32, LS_I32, LS_I64, LS_F64 };
    static const struct {
        int rank;
        int64_t dims[2];
    } shapes[] = { { 0, { 0, 0 } }, { 0, { 0, 0 } }, { 1, { 3, 0 } }, { 1, { 3, 0 } },
                   { 2, { 2, 2 } }, { 1, { 1, 0 } }, { 2, { 1, 3 } }, { 1, { 0, 0 } } };
    int d = (int)rs_draw(m, 6), s = (int)rs_draw(m, rs_draw(m, 3) ? 6 : 8);
    return (rs_type){ dtypes[d], shapes[s].rank, { shapes[s].dims[0], shapes[s].dims[1] } };
}

void rs_make_variables(rs_maker *m)
{
    static const ls_aggregation aggregations[] = { LS_AGGREGATE_NONE, LS_AGGREGATE_SUM,
                                                   LS_AGGREGATE_MEAN, LS_AGGREGATE_ONLY_FIRST };
    rs_program *p = m->p;
    p->n_variables = 2 + (int)rs_draw(m, RS_VARIABLES - 2);
    for (int i = 0; i < p->n_variables; i++) {
        rs_variable *v = &p->variables[i];
        v->name[0] = (char)('a' + i);
        v->type = rs_some_type(m);
        v->synchronization = rs_draw(m, 5) < 3 ? LS_SYNC_ON_WRITE : LS_SYNC_ON_READ;
        v->aggregation = aggregations[rs_draw(m, 4)];
        if (v->aggregation == LS_AGGREGATE_MEAN)
            v->type.dtype = rs_draw(m, 4) ? LS_F32 : LS_F64;
        if (v->synchronization == LS_SYNC_ON_WRITE && v->aggregation == LS_AGGREGATE_NONE)
            v->local_writes = rs_draw(m, 2);
        v->rough = ls_dtype_is_float(v->type.dtype) &&
                   (v->aggregation == LS_AGGREGATE_MEAN || rs_draw(m, 3) == 0);
    }
    p->variables[p->n_variables - 1] = (rs_variable){ .name = "fuse",
                                                      .type = { LS_I32, 0, { 0, 0 } },
                                                      .synchronization = LS_SYNC_ON_READ,
                                                      .aggregation = LS_AGGREGATE_SUM };
}

/* ---- what a replica does -------------------------------------------------------------------- */

static int any(rs_maker *m, const rs_body *body)
{
    return 1 + (int)rs_draw(m, (uint64_t)body->n_registers - 1);
}

static void maths(rs_maker *m, rs_body *body)
{
    int a = rs_bounded(body, any(m, body), 0), b = -1;
    rs_register r = body->registers[a];
    for (int i = 1; i < body->n_registers; i++)
        if (rs_same_type(&body->registers[i].type, &r.type) && (b < 0 || rs_draw(m, 2)))
            b = i;
    b = rs_bounded(body, b, 0);
    rs_register q = body->registers[b];
    int which = (int)rs_draw(m, RS_ARITHS);
    if (which == RS_MUL && r.most * q.most > 1e6)
        which = RS_SUB;
    double most = which == RS_MUL ? r.most * q.most : r.most + q.most;
    rs_op *op = rs_op_to(body, RS_ARITH, r.type, r.rough || q.rough, most, LS_SPREAD_PER_REPLICA);
    op->which = which;
    op->a = a;
    op->b = b;
    rs_bounded(body, op->dst, 0);
}

static void one_input(rs_maker *m, rs_body *body)
{
    static const ls_dtype dtypes[] = { LS_F32, LS_I32, LS_I64, LS_F64 };
    int a = rs_bounded(body, any(m, body), 0);
    rs_register r = body->registers[a];
    int which = (int)rs_draw(m, RS_UNARIES + 2);
    if (which == RS_UNARIES) {
        rs_cast(body, a, dtypes[rs_draw(m, 4)]);
        return;
    }
    if (which > RS_UNARIES && !r.rough) {
        rs_type type = { r.type.dtype, 0, { 0, 0 } };
        rs_op *op = rs_op_to(body, RS_SUM_ALL, type, false, r.most * (double)rs_count(&r.type),
                             LS_SPREAD_PER_REPLICA);
        op->a = a;
        rs_bounded(body, op->dst, 0);
        return;
    }
    which = which > RS_UNARIES ? RS_NEG : which;
    double k = which == RS_CLIP ? 20 : (double)rs_draw(m, 7) - 3;
    double most = which == RS_SCALE ? r.most * 3 : which == RS_SHIFT ? r.most + 3 : r.most;
    rs_op *op = rs_op_to(body, RS_UNARY, r.type, r.rough, most, LS_SPREAD_PER_REPLICA);
    op->which = which;
    op->a = a;
    op->k = k;
    rs_bounded(body, op->dst, 0);
}

static void draws(rs_maker *m, rs_body *body)
{
    rs_type type = rs_some_type(m);
    type.dtype = rs_draw(m, 2) ? LS_F32 : LS_I32;
    rs_op_to(body, RS_DRAW, type, false, 1000, LS_SPREAD_PER_REPLICA);
    m->p->traceable = m->p->traceable && (body->depth == 0 || m->p->replicas == 1);
}

static void reads(rs_maker *m, rs_body *body)
{
    int v = (int)rs_draw(m, (uint64_t)m->p->n_variables - 1);
    const rs_variable *var = &m->p->variables[v];
    rs_op *op = rs_op_to(body, RS_READ, var->type, var->rough, 1 << 18, LS_SPREAD_PER_REPLICA);
    op->variable = v;
}

/* A register of the variable's type that fits into it, small; made if there is none. */
static int to_write(rs_maker *m, rs_body *body, const rs_variable *v)
{
    bool refuses_plain = v->synchronization == LS_SYNC_ON_WRITE &&
                         v->aggregation == LS_AGGREGATE_SUM && m->p->replicas > 1;
    for (int tries = 0; tries < 12; tries++) {
        int a = any(m, body);
        rs_register *r = &body->registers[a];
        rs_type as = r->type;
        as.dtype = v->type.dtype;
        if (!rs_same_type(&as, &v->type) || (r->rough && !v->rough) ||
            (refuses_plain && r->spread == LS_SPREAD_PLAIN && r->type.dtype == v->type.dtype))
            continue;
        return rs_bounded(body, rs_cast(body, a, v->type.dtype), 50);
    }
    return rs_constant(m, body, v->type, (double)rs_draw(m, 9) - 4, (int)rs_draw(m, 4));
}

static void writes(rs_maker *m, rs_body *body)
{
    int i = (int)rs_draw(m, (uint64_t)m->p->n_variables - 1);
    const rs_variable *v = &m->p->variables[i];
    if (v->synchronization == LS_SYNC_ON_WRITE && v->aggregation == LS_AGGREGATE_NONE &&
        !v->local_writes) {
        if (m->faulty || rs_draw(m, 8))
            return;
        m->faulty = true; /* LS_INVALID on every replica */
    }
    int a = to_write(m, body, v);
    rs_op *op = rs_op_new(body, RS_WRITE);
    op->variable = i;
    op->which = (int)rs_draw(m, RS_WRITES);
    op->a = a;
}

/* One replica goes on drawing in runs inside of its step, also when traced: seen in a variable. */
static void draws_to_see(rs_maker *m, rs_body *body)
{
    int i = (int)rs_draw(m, (uint64_t)m->p->n_variables - 1);
    const rs_variable *v = &m->p->variables[i];
    bool refused = v->synchronization == LS_SYNC_ON_WRITE && v->aggregation == LS_AGGREGATE_NONE &&
                   !v->local_writes;
    if (refused || (v->type.dtype != LS_F32 && v->type.dtype != LS_I32))
        return;
    int drawn = rs_op_to(body, RS_DRAW, v->type, false, 1000, LS_SPREAD_PER_REPLICA)->dst;
    rs_op *op = rs_op_new(body, RS_WRITE);
    op->variable = i;
    op->which = RS_ASSIGN;
    op->a = drawn;
}

static void all_reduces(rs_maker *m, rs_body *body)
{
    int regs[3], n = 1 + (int)rs_draw(m, 3);
    int which = rs_draw(m, 2) ? LS_SUM : LS_MEAN;
    for (int i = 0; i < n; i++)
        regs[i] = rs_bounded(body, any(m, body), 0);
    rs_op *op = rs_op_new(body, RS_ALL_REDUCE);
    op->which = which;
    op->in = rs_nest_of(m, n, regs);
    for (int i = 0; i < n; i++) {
        rs_register r = body->registers[regs[i]];
        bool mean = which == LS_MEAN;
        regs[i] = rs_register_new(body, mean ? rs_mean_type(r.type) : r.type, r.rough || mean,
                                  r.most * 8, LS_SPREAD_PER_REPLICA);
    }
    op->out = rs_renumbered(m, op->in, regs);
    for (int i = 0; i < n; i++)
        rs_bounded(body, regs[i], 0);
}

static void gradients(rs_maker *m, rs_body *body)
{
    int a = any(m, body);
    rs_register r = body->registers[a];
    if (!ls_dtype_is_float(r.type.dtype))
        return;
    int which = rs_draw(m, 2) ? LS_SUM : LS_MEAN;
    rs_op *op =
        rs_op_to(body, RS_GRADIENT, r.type, which == LS_MEAN, 8 * 8 * 3, LS_SPREAD_PER_REPLICA);
    op->which = which;
    op->a = a;
    op->k = 1 + (double)rs_draw(m, 3);
}

/* A loss of two classes that are equally likely, for every element of a register. */
static void losses(rs_maker *m, rs_body *body)
{
    int a = any(m, body), b = any(m, body);
    int64_t rows = rs_count(&body->registers[a].type);
    rs_register count = body->registers[b];
    if (rows < 1 || rows > 8 || count.rough)
        return;
    a = rs_cast(body, rs_bounded(body, a, 0), LS_F32);
    b = rs_cast(body, rs_bounded(body, b, 50), LS_F32);
    if (count.type.rank > 0) {
        rs_op *sum = rs_op_to(body, RS_SUM_ALL, (rs_type){ LS_F32, 0, { 0, 0 } }, false,
                              50 * (double)rs_count(&count.type), LS_SPREAD_PER_REPLICA);
        sum->a = b;
        b = sum->dst;
    }
    rs_op *op = rs_op_to(body, RS_LOSS, (rs_type){ LS_F32, 2, { rows, 2 } }, false,
                         8 * body->registers[b].most, LS_SPREAD_PER_REPLICA);
    op->which = (int)rs_draw(m, RS_LOSSES);
    op->a = a;
    op->b = b;
}

/* Makes the arguments of `callee` out of some registers of `body`, and gives the nest. */
rs_nest *rs_call_with(rs_maker *m, rs_body *body, rs_body *callee, int count, const int *regs)
{
    int to[8] = { 0 };
    rs_nest *in = rs_with_fuses(m, rs_nest_of(m, count, regs));
    for (int i = 0; i < count; i++) {
        rs_register r = body->registers[regs[i]];
        if (!callee->cross)
            r.spread = r.spread == LS_SPREAD_PLAIN ? LS_SPREAD_PLAIN : LS_SPREAD_PER_REPLICA;
        to[i + 1] = rs_register_new(callee, r.type, r.rough, r.most, r.spread);
    }
    callee->arguments = rs_renumbered(m, in, to);
    return in;
}

/* New registers of `body` for what `callee` returns. */
rs_nest *rs_return_to(rs_maker *m, rs_body *body, const rs_body *callee)
{
    int regs[8];
    int n = rs_leaves(callee->results, regs);
    for (int i = 0; i < n; i++) {
        rs_register r = callee->registers[regs[i]];
        r.spread = r.spread == LS_SPREAD_PLAIN ? LS_SPREAD_PLAIN : LS_SPREAD_PER_REPLICA;
        regs[i] = rs_register_new(body, r.type, r.rough, r.most, r.spread);
    }
    return rs_renumbered(m, callee->results, regs);
}

static void merges(rs_maker *m, rs_body *body)
{
    int regs[3], n = 1 + (int)rs_draw(m, 3);
    for (int i = 0; i < n; i++)
        regs[i] = any(m, body);
    rs_body *callee = rs_body_new(m, true, body->depth);
    rs_nest *in = rs_call_with(m, body, callee, n, regs);
    rs_fill_cross(m, callee);
    rs_op *op = rs_op_new(body, RS_MERGE);
    op->in = in;
    op->body = callee;
    op->out = rs_return_to(m, body, callee);
}

static void fuses(rs_maker *m, rs_body *body)
{
    if (m->fuses == RS_FUSES)
        return;
    int a = any(m, body);
    rs_register r = body->registers[a];
    rs_op *op = rs_op_to(body, RS_FUSE, r.type, r.rough, r.most, LS_SPREAD_PER_REPLICA);
    op->which = m->fuses++;
    op->a = a;
    if (m->handled)
        m->handled_fuses |= 1u << op->which;
    if (body->depth)
        m->nested_fuses |= 1u << op->which;
}

void rs_place_bad(rs_maker *m, rs_body *body)
{
    rs_op *op = rs_op_to(body, RS_BAD, rs_some_type(m), false, 0,
                         body->cross ? LS_SPREAD_PLAIN : LS_SPREAD_PER_REPLICA);
    op->fault.wrong = rs_draw(m, 2) ? RS_HANDLED : RS_RIGHT;
    op->fault.who = (unsigned)rs_draw(m, 256);
}

/* 1 to 3 registers, rather the latest ones. */
void rs_choose_results(rs_maker *m, rs_body *body)
{
    int regs[4], n = 1 + (int)rs_draw(m, 4);
    for (int i = 0; i < n; i++) {
        int back = (int)rs_draw(m, 5);
        regs[i] = back < body->n_registers - 1 ? body->n_registers - 1 - back : any(m, body);
    }
    if (!body->cross && body->depth == 0 && rs_draw(m, 10) == 0)
        regs[0] = -1 - (int)rs_draw(m, (uint64_t)m->p->n_variables);
    body->results = rs_nest_of(m, n, regs);
}

bool rs_full(const rs_body *body)
{
    return body->n_ops > RS_OPS - 8 || body->n_registers > RS_REGISTERS - 12;
}

void rs_fill_replica(rs_maker *m, rs_body *body)
{
    static void (*const actions[])(rs_maker *, rs_body *) = {
        maths,  maths,       one_input,   one_input, draws,  reads, reads,        writes, writes,
        writes, all_reduces, all_reduces, gradients, losses, fuses, rs_place_bad, merges, merges
    };
    int n = body->depth == 0 ? 3 + (int)rs_draw(m, 7) : 1 + (int)rs_draw(m, 4);
    body->stubborn = rs_draw(m, 4) == 0 && m->p->replicas > 1;
    for (int i = 0; i < n && !rs_full(body); i++) {
        uint64_t k = rs_draw(m, body->depth < RS_DEPTH ? 18 : 16);
        actions[k](m, body);
    }
    if (m->p->replicas == 1 && body->depth && !rs_full(body))
        draws_to_see(m, body);
    rs_choose_results(m, body);
}
