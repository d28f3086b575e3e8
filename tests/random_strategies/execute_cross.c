/*
 * What a program does in cross-replica context, as Lockstep runs it: functions of merge
 * calls, and the list between runs.
 */
#include "random_strategies/program.h"

typedef struct here {
    const rs_world *w;
    const rs_body *body;
    int who;
    ls_value *regs[RS_REGISTERS];
} here;

static ls_destination *destination(const here *h, const rs_op *op)
{
    switch (op->to) {
    case RS_TO_VARIABLE:
        return ls_at_variable(h->w->variables[op->variable]);
    case RS_TO_VALUE:
        return ls_at_value(h->regs[op->b]);
    default:
        return ls_at_device("/cpu:0");
    }
}

static void batch(here *h, const rs_op *op)
{
    int from[2], to[2];
    rs_leaves(op->in, from);
    rs_leaves(op->out, to);
    ls_destination *there = destination(h, op);
    ls_value *got = ls_batch_reduce_to(h->w->strategy, (ls_reduce_op)op->which, 2,
                                       (ls_value *[]){ h->regs[from[0]], h->regs[from[1]] },
                                       (ls_destination *[]){ there, there });
    for (int i = 0; i < 2; i++)
        h->regs[to[i]] = got ? ls_child(got, i) : NULL;
}

static ls_value *change(ls_variable *component, ls_value *arguments, void *user)
{
    const rs_op *op = user;
    rs_write(op->which, component, ls_leaf_tensor(arguments));
    return ls_leaf(ls_read(component));
}

static ls_value *update(here *h, const rs_op *op)
{
    ls_value *got = ls_update(h->w->strategy, h->w->variables[op->variable], change, (void *)op,
                              h->regs[op->a], op->b < 0);
    return op->b < 0 || !got ? got : ls_child(got, op->b);
}

/* Zeros with the spread a register should have. */
static ls_value *zeros(const here *h, int reg)
{
    const rs_register *r = &h->body->registers[reg];
    if (r->spread == LS_SPREAD_PLAIN)
        return ls_leaf(rs_zeros(&r->type));
    ls_value *parts[RS_REPLICAS];
    for (int i = 0; i < h->w->p->replicas; i++)
        parts[i] = ls_leaf(rs_zeros(&r->type));
    return ls_per_replica(h->w->strategy, parts);
}

static void run(here *h, const rs_op *op)
{
    bool before = ls_error_pending();
    ls_value *got = ls_run_eager(h->w->strategy, rs_step, rs_task_of(h->w, op->body, 0),
                                 rs_pack(h->w, op->in, h->regs));
    rs_unpack(op->out, got, h->regs);
    if (got || !op->handled || before)
        return;
    int regs[8];
    ls_error();
    for (int i = 0, n = rs_leaves(op->out, regs); i < n; i++)
        h->regs[regs[i]] = zeros(h, regs[i]);
}

static void do_op(here *h, const rs_op *op)
{
    ls_strategy *s = h->w->strategy;
    ls_value **dst = op->dst >= 0 ? &h->regs[op->dst] : NULL, *a = h->regs[op->a >= 0 ? op->a : 0];
    ls_variable *v = h->w->variables[op->variable];
    ls_reduce_op which = (ls_reduce_op)op->which;
    if (rs_is_plain_op(op->code)) {
        *dst = ls_leaf(rs_plain_op(h->w, op, h->regs, 0));
        return;
    }
    switch (op->code) {
    case RS_WRITE:
        rs_write(op->which, v, ls_leaf_tensor(a));
        break;
    case RS_WRITE_VALUE:
        ls_assign_value(v, a);
        break;
    case RS_BAD:
        *dst = rs_bad(op, op->fault.who ? op->fault.wrong : RS_RIGHT);
        break;
    case RS_WHO:
        *dst = ls_leaf(ls_scalar_int(LS_I32, h->who));
        break;
    case RS_TAG:
        *dst = a ? ls_leaf(ls_scalar_int(LS_I32, ls_spread_of(a))) : NULL;
        break;
    case RS_REDUCE:
        *dst = ls_leaf(ls_reduce(s, which, a, op->b));
        break;
    case RS_REDUCE_TO:
        *dst = ls_reduce_to(s, which, a, destination(h, op));
        break;
    case RS_BATCH:
        batch(h, op);
        break;
    case RS_MIRROR:
        *dst = ls_mirror_to(s, ls_leaf_tensor(a), destination(h, op));
        break;
    case RS_GATHER:
        *dst = ls_leaf(ls_gather_replicas(s, a, op->b));
        break;
    case RS_SELECT:
        *dst = ls_select(a, op->b);
        break;
    case RS_LOCAL: {
        ls_value *all = ls_local_results(s, a);
        *dst = all ? ls_child(all, op->b) : NULL;
        break;
    }
    case RS_UPDATE:
        *dst = update(h, op);
        break;
    default:
        run(h, op);
        break;
    }
}

ls_value *rs_merge(ls_strategy *s, ls_value *arguments, void *user)
{
    const rs_task *task = user;
    here h = { .w = task->world, .body = task->body, .who = task->who };
    (void)s;
    if (h.body->arguments)
        rs_unpack(h.body->arguments, arguments, h.regs);
    for (int i = 0; i < h.body->n_ops; i++)
        do_op(&h, &h.body->ops[i]);
    if (h.body->at_return.wrong == RS_NULL_RESULT && h.body->at_return.who)
        return NULL;
    return rs_pack(h.w, h.body->results, h.regs);
}

/* The same, and yet another function. */
ls_value *rs_merge_else(ls_strategy *s, ls_value *arguments, void *user)
{
    return rs_merge(s, arguments, user);
}
