/*
 * What a program does in cross-replica context: in the functions of its merge calls, and
 * between its runs. Registers have a spread here, and what may be done with one depends on it.
 */
#include "random_strategies/program.h"

/* A register that is plain, or not (`plain` false); -1 when there is none. */
static int one(rs_maker *m, const rs_body *body, bool plain)
{
    int found = -1, seen = 0;
    for (int i = 1; i < body->n_registers; i++)
        if ((body->registers[i].spread == LS_SPREAD_PLAIN) == plain &&
            rs_draw(m, (uint64_t)++seen) == 0)
            found = i;
    return found;
}

static int per_replica(rs_maker *m, const rs_body *body)
{
    int found = -1, seen = 0;
    for (int i = 1; i < body->n_registers; i++)
        if (body->registers[i].spread == LS_SPREAD_PER_REPLICA && rs_draw(m, (uint64_t)++seen) == 0)
            found = i;
    return found;
}

static int any_variable(rs_maker *m)
{
    return (int)rs_draw(m, (uint64_t)m->p->n_variables - 1);
}

static void maths(rs_maker *m, rs_body *body)
{
    int a = one(m, body, true);
    if (a < 0) {
        rs_constant(m, body, rs_some_type(m), (double)rs_draw(m, 9) - 4, 0);
        return;
    }
    a = rs_bounded(body, a, 0);
    rs_register r = body->registers[a];
    int b = a;
    for (int i = 1; i < body->n_registers; i++)
        if (body->registers[i].spread == LS_SPREAD_PLAIN && rs_draw(m, 2) &&
            rs_same_type(&body->registers[i].type, &r.type))
            b = i;
    b = rs_bounded(body, b, 0);
    rs_register q = body->registers[b];
    rs_op *op =
        rs_op_to(body, RS_ARITH, r.type, r.rough || q.rough, r.most + q.most, LS_SPREAD_PLAIN);
    op->which = rs_draw(m, 2) ? RS_ADD : RS_SUB;
    op->a = a;
    op->b = b;
    rs_bounded(body, op->dst, 0);
}

static void looks(rs_maker *m, rs_body *body)
{
    rs_type number = { LS_I32, 0, { 0, 0 } };
    bool who = rs_draw(m, 3) == 0 && body->arguments;
    int a = one(m, body, rs_draw(m, 4) == 0);
    if (!who && (a < 0 || m->p->replicas == 1))
        return;
    rs_op *op = rs_op_to(body, who ? RS_WHO : RS_TAG, number, false, 8, LS_SPREAD_PLAIN);
    op->a = a;
}

static void draws(rs_maker *m, rs_body *body)
{
    rs_type type = rs_some_type(m);
    type.dtype = LS_I32;
    rs_op_to(body, RS_DRAW, type, false, 1000, LS_SPREAD_PLAIN);
    m->p->traceable =
        m->p->traceable && (body->depth == 0 || !body->arguments || m->p->replicas == 1);
}

/* What reducing register `a` gives. */
static rs_register reduced(const rs_register *r, int which)
{
    bool mean = which == LS_MEAN && r->spread == LS_SPREAD_PER_REPLICA;
    return (rs_register){ mean ? rs_mean_type(r->type) : r->type, r->rough || mean,
                          which == LS_SUM ? r->most * 8 : r->most, LS_SPREAD_PLAIN };
}

static int some_reduction(rs_maker *m, const rs_register *r)
{
    static const int ops[] = { LS_SUM, LS_MEAN, LS_SUM, LS_MEAN, LS_ONLY_FIRST };
    int op = r->spread == LS_SPREAD_PER_REPLICA ? ops[rs_draw(m, 5)] : LS_MEAN;
    /* One replica's value is plain, and its own mean: not f64. */
    return op == LS_MEAN && m->p->replicas == 1 && ls_dtype_is_integer(r->type.dtype) ? LS_SUM : op;
}

static void reduces(rs_maker *m, rs_body *body)
{
    int a = one(m, body, rs_draw(m, 8) == 0);
    if (a < 0 || body->registers[a].most > 1e6)
        return;
    rs_register r = body->registers[a];
    if (r.spread != LS_SPREAD_PER_REPLICA && !ls_dtype_is_float(r.type.dtype))
        return;
    int which = some_reduction(m, &r), axis = LS_NO_AXIS;
    rs_register to = reduced(&r, which);
    if (r.type.rank > 0 && !r.rough && r.spread == LS_SPREAD_PER_REPLICA &&
        which != LS_ONLY_FIRST && rs_count(&r.type) && rs_draw(m, 2)) {
        axis = (int)rs_draw(m, (uint64_t)r.type.rank);
        to.type.dims[0] = to.type.dims[axis == 0 ? 1 : 0];
        to.type.rank--;
        to.most *= 3;
    }
    rs_op *op = rs_op_to(body, RS_REDUCE, to.type, to.rough, to.most, LS_SPREAD_PLAIN);
    op->which = which;
    op->a = a;
    op->b = axis != LS_NO_AXIS && rs_draw(m, 2) ? axis - r.type.rank : axis;
    rs_bounded(body, op->dst, 0);
}

/* Chooses a destination; gives the spread of what arrives there. */
static ls_spread destination(rs_maker *m, const rs_body *body, rs_op *op)
{
    op->to = (int)rs_draw(m, RS_TOS);
    op->variable = any_variable(m);
    op->b = one(m, body, rs_draw(m, 3) == 0);
    if (op->to == RS_TO_VALUE && op->b < 0)
        op->to = RS_TO_VARIABLE;
    bool plain = op->to == RS_TO_DEVICE ||
                 (op->to == RS_TO_VALUE && body->registers[op->b].spread == LS_SPREAD_PLAIN);
    return plain ? LS_SPREAD_PLAIN : LS_SPREAD_MIRRORED;
}

static void reduces_to(rs_maker *m, rs_body *body)
{
    int a = per_replica(m, body);
    if (a < 0 || body->registers[a].most > 1e6)
        return;
    int which = some_reduction(m, &body->registers[a]);
    rs_register to = reduced(&body->registers[a], which);
    rs_op *op = rs_op_new(body, RS_REDUCE_TO);
    op->which = which;
    op->a = a;
    op->type = to.type;
    to.spread = destination(m, body, op);
    op->dst = rs_register_new(body, to.type, to.rough, to.most, to.spread);
}

static void batches(rs_maker *m, rs_body *body)
{
    int regs[2] = { per_replica(m, body), per_replica(m, body) };
    if (regs[0] < 0 || body->registers[regs[0]].most > 1e6 || body->registers[regs[1]].most > 1e6)
        return;
    rs_op *op = rs_op_new(body, RS_BATCH);
    op->which = m->p->replicas > 1 ? some_reduction(m, &body->registers[regs[0]]) : LS_SUM;
    op->in = rs_nest_of(m, 2, regs);
    ls_spread spread = destination(m, body, op);
    for (int i = 0; i < 2; i++) {
        rs_register to = reduced(&body->registers[regs[i]], op->which);
        regs[i] = rs_register_new(body, to.type, to.rough, to.most, spread);
    }
    op->out = rs_renumbered(m, op->in, regs);
}

static void mirrors(rs_maker *m, rs_body *body)
{
    int a = one(m, body, true);
    if (a < 0)
        return;
    rs_register r = body->registers[a];
    rs_op *op = rs_op_new(body, RS_MIRROR);
    op->a = a;
    op->type = r.type;
    ls_spread spread = destination(m, body, op);
    op->dst = rs_register_new(body, r.type, r.rough, r.most, spread);
}

static void takes_apart(rs_maker *m, rs_body *body)
{
    int v = m->p->replicas, a = one(m, body, false);
    if (a < 0)
        return;
    rs_register r = body->registers[a];
    rs_code code = rs_draw(m, 2) ? RS_SELECT : RS_LOCAL;
    if (r.spread == LS_SPREAD_PER_REPLICA && r.type.rank > 0 && rs_count(&r.type) * v <= 48)
        code = rs_draw(m, 3) ? RS_GATHER : code;
    int axis = (int)rs_draw(m, (uint64_t)(r.type.rank ? r.type.rank : 1));
    if (code == RS_GATHER)
        r.type.dims[axis] *= v;
    rs_op *op = rs_op_to(body, code, r.type, r.rough, r.most, LS_SPREAD_PLAIN);
    op->a = a;
    op->b = code == RS_GATHER ? axis : (int)rs_draw(m, (uint64_t)v);
}

static void reads(rs_maker *m, rs_body *body)
{
    int i = any_variable(m);
    const rs_variable *v = &m->p->variables[i];
    bool combined = v->synchronization == LS_SYNC_ON_READ;
    if (combined && v->aggregation == LS_AGGREGATE_NONE)
        return;
    rs_op *op =
        rs_op_to(body, RS_READ, v->type, v->rough, 1 << (combined ? 21 : 18), LS_SPREAD_PLAIN);
    op->variable = i;
    op->which = (int)rs_draw(m, 2);
    rs_bounded(body, op->dst, 0);
}

/* Something to write: a register of the variable's type that is not per-replica, small. */
static int to_write(rs_maker *m, rs_body *body, const rs_variable *v, bool plain)
{
    for (int i = 1; i < body->n_registers; i++) {
        rs_register *r = &body->registers[i];
        bool fits = r->spread == LS_SPREAD_PLAIN ||
                    (r->spread == LS_SPREAD_MIRRORED && !plain && r->most <= 500);
        if (fits && rs_same_type(&r->type, &v->type) && (v->rough || !r->rough) && rs_draw(m, 3))
            return r->spread == LS_SPREAD_PLAIN ? rs_bounded(body, i, 50) : i;
    }
    return rs_constant(m, body, v->type, (double)rs_draw(m, 9) - 4, 0);
}

static void writes(rs_maker *m, rs_body *body)
{
    int i = any_variable(m), which = (int)rs_draw(m, RS_WRITES), a;
    const rs_variable *v = &m->p->variables[i];
    bool on_read = v->synchronization == LS_SYNC_ON_READ, as_value = rs_draw(m, 2);
    if (on_read && v->aggregation == LS_AGGREGATE_SUM) { /* each gets k, whatever V is */
        a = rs_constant(m, body, v->type, ((double)rs_draw(m, 9) - 4) * m->p->replicas, 0);
        which = RS_ASSIGN;
    } else {
        a = to_write(m, body, v, on_read || !as_value);
    }
    as_value = as_value && which == RS_ASSIGN;
    if (!as_value && body->registers[a].spread != LS_SPREAD_PLAIN)
        a = rs_constant(m, body, v->type, 2, 0);
    rs_op *op = rs_op_new(body, as_value ? RS_WRITE_VALUE : RS_WRITE);
    op->variable = i;
    op->which = which;
    op->a = a;
}

static void updates(rs_maker *m, rs_body *body)
{
    int i = any_variable(m);
    const rs_variable *v = &m->p->variables[i];
    int a = to_write(m, body, v, false);
    bool group = rs_draw(m, 2);
    rs_op *op = rs_op_to(body, RS_UPDATE, v->type, v->rough, 1 << 18,
                         group ? LS_SPREAD_MIRRORED : LS_SPREAD_PLAIN);
    op->variable = i;
    op->which = (int)rs_draw(m, RS_WRITES);
    op->a = a;
    op->b = group ? -1 : (int)rs_draw(m, (uint64_t)m->p->replicas);
}

static void runs(rs_maker *m, rs_body *body)
{
    int regs[3], n = 1 + (int)rs_draw(m, 3);
    if (body->depth + 1 > RS_DEPTH || !body->arguments || body->n_registers < 2)
        return;
    for (int i = 0; i < n; i++)
        regs[i] = 1 + (int)rs_draw(m, (uint64_t)body->n_registers - 1);
    rs_body *callee = rs_body_new(m, false, body->depth + 1);
    bool handled = rs_draw(m, 3) == 0;
    m->handled += handled;
    rs_nest *in = rs_call_with(m, body, callee, n, regs);
    rs_fill_replica(m, callee);
    m->handled -= handled;
    rs_op *op = rs_op_new(body, RS_RUN);
    op->in = in;
    op->body = callee;
    op->handled = handled;
    op->out = rs_return_to(m, body, callee);
}

void rs_fill_cross(rs_maker *m, rs_body *body)
{
    static void (*const actions[])(rs_maker *, rs_body *) = {
        maths,   looks,   draws,        reduces,     reduces, reduces_to, reduces_to,
        batches, mirrors, takes_apart,  takes_apart, reads,   writes,     writes,
        updates, updates, rs_place_bad, runs,        runs
    };
    int n = 1 + (int)rs_draw(m, 5);
    for (int i = 0; i < n && !rs_full(body); i++)
        actions[rs_draw(m, sizeof actions / sizeof *actions)](m, body);
    if (body->n_registers < 2)
        rs_constant(m, body, rs_some_type(m), 1, 0);
    rs_choose_results(m, body);
}
