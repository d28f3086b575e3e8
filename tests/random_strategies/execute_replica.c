/*
 * The step of a program as Lockstep runs it: one replica, on its thread or traced. Registers are
 * leaves, and a failed operation leaves NULL in them, as in any program.
 */
#include "random_strategies/program.h"

rs_task *rs_task_of(const rs_world *w, const rs_body *body, int who)
{
    return &w->tasks[body->number * RS_REPLICAS + who];
}

/* ---- nests and plain tensors ----------------------------------------------------------------- */

ls_value *rs_pack(const rs_world *w, const rs_nest *nest, ls_value *const *regs)
{
    if (nest->kind == LS_LEAF && nest->reg >= 0)
        return regs[nest->reg];
    if (nest->kind == LS_LEAF) {
        ls_variable *v = w->variables[-1 - nest->reg];
        ls_replica *me = ls_get_replica_context();
        return ls_variable_leaf(w->p->seed % 2 && me ? ls_variable_component(v, ls_replica_id(me))
                                                     : v);
    }
    ls_value *items[RS_CHILDREN];
    for (int i = 0; i < nest->count; i++)
        items[i] = rs_pack(w, nest->child[i], regs);
    return nest->kind == LS_LIST ? ls_list(nest->count, items)
                                 : ls_dict(nest->count, rs_keys, items);
}

void rs_unpack(const rs_nest *nest, ls_value *value, ls_value **regs)
{
    if (nest->kind == LS_LEAF && nest->reg >= 0)
        regs[nest->reg] = value;
    for (int i = 0; nest->kind != LS_LEAF && i < nest->count; i++) {
        ls_value *child = !value                  ? NULL
                          : nest->kind == LS_LIST ? ls_child(value, i)
                                                  : ls_get(value, rs_keys[i]);
        rs_unpack(nest->child[i], child, regs);
    }
}

ls_tensor *rs_tensor(const rs_type *type, const double *elements)
{
    union {
        float f32[RS_ROOM];
        double f64[RS_ROOM];
        int32_t i32[RS_ROOM];
        int64_t i64[RS_ROOM];
    } data;
    for (int64_t i = 0; i < rs_count(type); i++)
        switch (type->dtype) {
        case LS_F32:
            data.f32[i] = (float)elements[i];
            break;
        case LS_F64:
            data.f64[i] = elements[i];
            break;
        case LS_I32:
            data.i32[i] = (int32_t)elements[i];
            break;
        default:
            data.i64[i] = (int64_t)elements[i];
            break;
        }
    return ls_from(type->dtype, type->rank, type->dims, &data);
}

ls_tensor *rs_zeros(const rs_type *type)
{
    return ls_zeros(type->dtype, type->rank, type->dims);
}

static ls_tensor *arithmetic(int which, ls_tensor *a, ls_tensor *b)
{
    switch (which) {
    case RS_ADD:
        return ls_add(a, b);
    case RS_SUB:
        return ls_sub(a, b);
    case RS_MUL:
        return ls_mul(a, b);
    case RS_MAX:
        return ls_maximum(a, b);
    default:
        return ls_minimum(a, b);
    }
}

static ls_tensor *one_input(int which, ls_tensor *a, double k)
{
    switch (which) {
    case RS_NEG:
        return ls_neg(a);
    case RS_ABS:
        return ls_abs(a);
    case RS_CLIP:
        return ls_clip(a, -k, k);
    case RS_SCALE:
        return ls_scale(a, k);
    default:
        return ls_shift(a, k);
    }
}

bool rs_is_plain_op(rs_code code)
{
    return code <= RS_READ;
}

ls_tensor *rs_plain_op(const rs_world *w, const rs_op *op, ls_value *const *regs, int replica)
{
    const rs_type *t = &op->type;
    switch (op->code) {
    case RS_ARITH:
        return arithmetic(op->which, ls_leaf_tensor(regs[op->a]), ls_leaf_tensor(regs[op->b]));
    case RS_UNARY:
        return one_input(op->which, ls_leaf_tensor(regs[op->a]), op->k);
    case RS_CAST:
        return ls_cast(ls_leaf_tensor(regs[op->a]), t->dtype);
    case RS_CONST:
        return ls_full(t->dtype, t->rank, t->dims, op->k + op->b * replica);
    case RS_SUM_ALL:
        return ls_sum(ls_leaf_tensor(regs[op->a]), LS_ALL_AXES, false);
    case RS_DRAW:
        return t->dtype == LS_F32 ? ls_floor(ls_random_uniform(LS_F32, t->rank, t->dims, 0, 1000))
                                  : ls_random_uniform(LS_I32, t->rank, t->dims, 0, 1000);
    default:
        return op->which && ls_in_cross_replica_context()
                   ? ls_read_var(w->strategy, w->variables[op->variable])
                   : ls_read(w->variables[op->variable]);
    }
}

/* An operator that refuses its shapes. */
static ls_tensor *refused(void)
{
    return ls_add(ls_zeros(LS_F32, LS_DIMS(2)), ls_zeros(LS_F32, LS_DIMS(3)));
}

ls_value *rs_bad(const rs_op *op, rs_wrong wrong)
{
    ls_tensor *zeros = rs_zeros(&op->type);
    bool before = ls_error_pending();
    if (wrong == RS_RIGHT)
        return ls_leaf(zeros);
    ls_tensor *bad = refused();
    if (wrong == RS_FAILS)
        return ls_leaf(bad);
    if (wrong == RS_HANDLED && !before)
        ls_error();
    return ls_leaf(zeros);
}

ls_status rs_write(int which, ls_variable *v, ls_tensor *value)
{
    return which == RS_ASSIGN       ? ls_assign(v, value)
           : which == RS_ASSIGN_ADD ? ls_assign_add(v, value)
                                    : ls_assign_sub(v, value);
}

/* ---- a replica ---------------------------------------------------------------------------------- */

typedef struct here {
    const rs_world *w;
    const rs_body *body;
    ls_replica *replica;
    int id;
    ls_value *regs[RS_REGISTERS];
} here;

static rs_wrong wrong_of(const here *h, const rs_fault *fault)
{
    return fault->who >> h->id & 1 ? fault->wrong : RS_RIGHT;
}

/* One more level. */
static ls_value *other_structure(ls_value *v)
{
    return v ? ls_list(1, &v) : NULL;
}

/* One more row or axis, on every leaf. */
static ls_value *other_shape(const rs_nest *nest, const here *h)
{
    ls_value *regs[RS_REGISTERS];
    int leaves[8], n = rs_leaves(nest, leaves);
    for (int i = 0; i < n; i++)
        regs[leaves[i]] = ls_leaf(ls_expand_dims(ls_leaf_tensor(h->regs[leaves[i]]), 0));
    return rs_pack(h->w, nest, regs);
}

/* After a meeting that failed: reads the error and goes on with zeros, if it is of that kind. */
static void go_on(here *h, const rs_op *op, bool failed)
{
    int regs[8];
    if (!failed || !h->body->stubborn)
        return;
    ls_error();
    for (int i = 0, n = rs_leaves(op->out, regs); i < n; i++)
        h->regs[regs[i]] = ls_leaf(rs_zeros(&h->body->registers[regs[i]].type));
}

static void skip(here *h, const rs_op *op)
{
    int regs[8];
    for (int i = 0, n = op->out ? rs_leaves(op->out, regs) : 0; i < n; i++)
        h->regs[regs[i]] = ls_leaf(rs_zeros(&h->body->registers[regs[i]].type));
}

static void all_reduce(here *h, const rs_op *op, rs_wrong wrong)
{
    ls_reduce_op which = (ls_reduce_op)op->which;
    ls_value *in = rs_pack(h->w, op->in, h->regs);
    if (wrong == RS_OTHER_REDUCE)
        which = which == LS_SUM ? LS_MEAN : LS_SUM;
    if (wrong == RS_NULL_ARGUMENT)
        in = NULL;
    if (wrong == RS_OTHER_SHAPE)
        in = other_shape(op->in, h);
    if (wrong == RS_OTHER_STRUCTURE)
        in = other_structure(in);
    ls_value *out = ls_all_reduce(h->replica, which, in);
    rs_unpack(op->out, out, h->regs);
    go_on(h, op, !out);
}

static void merge(here *h, const rs_op *op, rs_wrong wrong)
{
    ls_value *in = rs_pack(h->w, op->in, h->regs);
    if (wrong == RS_NULL_ARGUMENT)
        in = NULL;
    if (wrong == RS_OTHER_STRUCTURE)
        in = other_structure(in);
    ls_value *out = ls_merge_call(h->replica, wrong == RS_OTHER_MERGE ? rs_merge_else : rs_merge,
                                  rs_task_of(h->w, op->body, h->id), in);
    rs_unpack(op->out, out, h->regs);
    go_on(h, op, !out);
}

static ls_tensor *gradient(here *h, const rs_op *op)
{
    ls_tensor *x = ls_leaf_tensor(h->regs[op->a]);
    ls_tape *tape = ls_tape_open();
    ls_value *sum = ls_all_reduce(h->replica, (ls_reduce_op)op->which, ls_leaf(x));
    ls_tensor *y = ls_scale(sum ? ls_leaf_tensor(sum) : NULL, op->k * (h->id + 1));
    ls_tensor *dx = ls_gradient(tape, y, x);
    ls_tape_close(tape);
    return dx;
}

/* Half of the likelihood each: what was rounded on the way is rounded back. */
static ls_tensor *loss(here *h, const rs_op *op)
{
    ls_tensor *x = ls_leaf_tensor(h->regs[op->a]), *count = ls_leaf_tensor(h->regs[op->b]);
    int32_t labels[8];
    int64_t n = op->type.dims[0];
    for (int i = 0; i < n; i++)
        labels[i] = (i + h->id) % 2;
    ls_tape *tape = ls_tape_open();
    ls_tensor *logits = ls_mul(ls_reshape(x, LS_DIMS(n, 1)), ls_ones(LS_F32, LS_DIMS(1, 2)));
    ls_tensor *rows = ls_sparse_softmax_xent(logits, ls_from(LS_I32, LS_DIMS(n), labels));
    ls_tensor *sum = ls_sum(rows, LS_ALL_AXES, false);
    bool through = op->which == RS_LOSS_THROUGH;
    ls_tensor *brought = !sum || !count ? NULL : through ? sum : count;
    ls_value *met = ls_all_reduce(h->replica, LS_SUM, ls_leaf(brought));
    ls_tensor *all = met ? ls_leaf_tensor(met) : NULL;
    ls_tensor *y = through ? ls_mul(all, count) : ls_mul(sum, all);
    ls_tensor *dx = ls_gradient(tape, y, logits);
    ls_tape_close(tape);
    return ls_floor(ls_shift(ls_scale(dx, 2), 0.5));
}

/* Written to a variable, so that nobody leaves the division out. */
static ls_tensor *fuse(here *h, const rs_op *op)
{
    ls_tensor *one =
        ls_slice(ls_leaf_tensor(h->regs[0]), 1, (int64_t[]){ op->which }, (int64_t[]){ 1 });
    ls_tensor *zero = ls_reshape(ls_div(ls_zeros(LS_I32, LS_DIMS(1)), one), LS_SCALAR);
    ls_assign_add(h->w->variables[h->w->p->n_variables - 1], zero);
    return ls_add(ls_leaf_tensor(h->regs[op->a]), ls_cast(zero, op->type.dtype));
}

static void do_op(here *h, const rs_op *op)
{
    rs_wrong wrong = wrong_of(h, &op->fault);
    ls_value **dst = op->dst >= 0 ? &h->regs[op->dst] : NULL;
    if (wrong == RS_SKIPS) {
        skip(h, op);
        return;
    }
    if (rs_is_plain_op(op->code)) {
        *dst = ls_leaf(rs_plain_op(h->w, op, h->regs, h->id));
        return;
    }
    switch (op->code) {
    case RS_WRITE:
        rs_write(op->which, h->w->variables[op->variable],
                 wrong == RS_NULL_ARGUMENT ? NULL : ls_leaf_tensor(h->regs[op->a]));
        break;
    case RS_BAD:
        *dst = rs_bad(op, wrong);
        break;
    case RS_ALL_REDUCE:
        all_reduce(h, op, wrong);
        break;
    case RS_MERGE:
        merge(h, op, wrong);
        break;
    case RS_GRADIENT:
        *dst = ls_leaf(gradient(h, op));
        break;
    case RS_LOSS:
        *dst = ls_leaf(loss(h, op));
        break;
    default:
        *dst = ls_leaf(fuse(h, op));
        break;
    }
}

ls_value *rs_step(ls_value *arguments, void *user)
{
    const rs_task *task = user;
    ls_replica *replica = ls_get_replica_context();
    here h = {
        .w = task->world, .body = task->body, .replica = replica, .id = ls_replica_id(replica)
    };
    rs_unpack(h.body->arguments, arguments, h.regs);
    for (int i = 0; i < h.body->n_ops; i++)
        do_op(&h, &h.body->ops[i]);
    rs_wrong wrong = wrong_of(&h, &h.body->at_return);
    if (wrong == RS_NULL_RESULT)
        return NULL;
    ls_value *results = rs_pack(h.w, h.body->results, h.regs);
    return wrong == RS_OTHER_STRUCTURE ? other_structure(results) : results;
}
