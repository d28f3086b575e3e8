/*
 * What programs are made of: memory, registers, nests, and the numbers that go in. Knows
 * no rule of strategies.
 */
#include "random_strategies/program.h"

#include <stdlib.h>
#include <string.h>

const char *const rs_keys[RS_CHILDREN] = { "m", "b", "z", "a" };

/* Where 2^24 is the end of f32's integers, and eight of them are added. */
static const double exact_limit = 1 << 20, rough_limit = 1e9;

typedef struct block {
    struct block *next;
    max_align_t bytes[];
} block;

void *rs_room(rs_program *p, size_t bytes)
{
    block *b = calloc(1, sizeof *b + bytes);
    if (!b)
        abort();
    b->next = p->memory;
    p->memory = b;
    return b->bytes;
}

void rs_free(rs_program *p)
{
    if (!p)
        return;
    for (block *b = p->memory, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free(p);
}

/* splitmix64 */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t rs_draw(rs_maker *m, uint64_t below)
{
    m->state += 0x9e3779b97f4a7c15u;
    return below ? mix(m->state) % below : 0;
}

/* ---- types and registers -------------------------------------------------------------- */

int64_t rs_count(const rs_type *type)
{
    int64_t n = 1;
    for (int i = 0; i < type->rank; i++)
        n *= type->dims[i];
    return n;
}

bool rs_same_type(const rs_type *a, const rs_type *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           (a->rank < 1 || a->dims[0] == b->dims[0]) && (a->rank < 2 || a->dims[1] == b->dims[1]);
}

rs_type rs_mean_type(rs_type type)
{
    if (ls_dtype_is_integer(type.dtype))
        type.dtype = LS_F64;
    return type;
}

rs_body *rs_body_new(rs_maker *m, bool cross, int depth)
{
    rs_body *body = rs_room(m->p, sizeof *body);
    body->number = m->p->n_bodies++;
    body->cross = cross;
    body->depth = depth;
    rs_register_new(body, (rs_type){ LS_I32, 1, { RS_FUSES, 0 } }, false, 1, LS_SPREAD_PER_REPLICA);
    return body;
}

int rs_register_new(rs_body *body, rs_type type, bool rough, double most, ls_spread spread)
{
    if (body->n_registers == RS_REGISTERS)
        abort();
    body->registers[body->n_registers] = (rs_register){ type, rough, most, spread };
    return body->n_registers++;
}

rs_op *rs_op_new(rs_body *body, rs_code code)
{
    if (body->n_ops == RS_OPS)
        abort();
    rs_op *op = &body->ops[body->n_ops++];
    op->code = code;
    op->dst = -1;
    return op;
}

/* Plain maths in cross-replica context gives plain tensors; in a replica nobody else has them. */
rs_op *rs_op_to(rs_body *body, rs_code code, rs_type type, bool rough, double most,
                ls_spread spread)
{
    rs_op *op = rs_op_new(body, code);
    op->type = type;
    op->dst = rs_register_new(body, type, rough, most, spread);
    return op;
}

static ls_spread of_maths(const rs_body *body)
{
    return body->cross ? LS_SPREAD_PLAIN : LS_SPREAD_PER_REPLICA;
}

int rs_bounded(rs_body *body, int reg, double most)
{
    rs_register r = body->registers[reg];
    double limit = r.rough ? rough_limit : exact_limit;
    if (most <= 0 || most > limit)
        most = limit;
    if (r.most <= most)
        return reg;
    if (most == limit)
        most = 50;
    rs_op *op = rs_op_to(body, RS_UNARY, r.type, r.rough, most, of_maths(body));
    op->which = RS_CLIP;
    op->a = reg;
    op->k = most;
    return op->dst;
}

int rs_cast(rs_body *body, int reg, ls_dtype dtype)
{
    rs_register r = body->registers[reg];
    if (r.type.dtype == dtype)
        return reg;
    r.type.dtype = dtype;
    rs_op *op = rs_op_to(body, RS_CAST, r.type, r.rough && ls_dtype_is_float(dtype), r.most,
                         of_maths(body));
    op->a = reg;
    return op->dst;
}

int rs_constant(rs_maker *m, rs_body *body, rs_type type, double k, int by_replica)
{
    (void)m;
    rs_op *op =
        rs_op_to(body, RS_CONST, type, false, (k < 0 ? -k : k) + 8 * by_replica, of_maths(body));
    op->k = k;
    op->b = by_replica;
    return op->dst;
}

/* ---- nests ------------------------------------------------------------------------------ */

rs_nest *rs_leaf(rs_maker *m, int reg)
{
    rs_nest *n = rs_room(m->p, sizeof *n);
    n->kind = LS_LEAF;
    n->reg = reg;
    return n;
}

rs_nest *rs_nest_of(rs_maker *m, int count, const int *regs)
{
    if (count == 1 && rs_draw(m, 2))
        return rs_leaf(m, regs[0]);
    rs_nest *n = rs_room(m->p, sizeof *n);
    n->kind = rs_draw(m, 2) ? LS_LIST : LS_DICT;
    int at = 0;
    while (at < count) {
        int left = count - at;
        int take = n->count == RS_CHILDREN - 1 ? left : 1 + (int)rs_draw(m, (uint64_t)left);
        if (take == left && n->count == 0 && count > 1)
            take--;
        n->child[n->count++] = take == 1 ? rs_leaf(m, regs[at]) : rs_nest_of(m, take, regs + at);
        at += take;
    }
    return n;
}

rs_nest *rs_with_fuses(rs_maker *m, rs_nest *nest)
{
    rs_nest *n = rs_room(m->p, sizeof *n);
    n->kind = LS_LIST;
    n->count = 2;
    n->child[0] = rs_leaf(m, 0);
    n->child[1] = nest;
    return n;
}

int rs_leaves(const rs_nest *nest, int *regs)
{
    if (nest->kind == LS_LEAF) {
        regs[0] = nest->reg;
        return 1;
    }
    int n = 0;
    for (int i = 0; i < nest->count; i++)
        n += rs_leaves(nest->child[i], regs + n);
    return n;
}

static rs_nest *renumber(rs_maker *m, const rs_nest *nest, const int **regs)
{
    rs_nest *n = rs_room(m->p, sizeof *n);
    *n = *nest;
    if (n->kind == LS_LEAF)
        n->reg = *(*regs)++;
    for (int i = 0; i < n->count; i++)
        n->child[i] = renumber(m, nest->child[i], regs);
    return n;
}

rs_nest *rs_renumbered(rs_maker *m, const rs_nest *nest, const int *regs)
{
    return renumber(m, nest, &regs);
}

/* ---- numbers ------------------------------------------------------------------------------ */

static double number(uint64_t key, bool rough)
{
    uint64_t h = mix(key);
    /* Summed in another order these give other bits. */
    static const double roughs[] = { 16777216, -16777216, 1, 3, 0.5, -1, 33554432, 0.1f };
    return rough ? roughs[h % 8] : (double)(int64_t)(h % 19) - 9;
}

double rs_argument(const rs_program *p, int run, int reg, int replica, int i)
{
    const rs_run *r = &p->runs[run];
    const rs_register *g = &p->functions[r->function]->registers[reg];
    if (reg == 0)
        return i == r->fuse && (r->blown >> replica & 1) ? 0 : 1;
    uint64_t key = mix(p->seed * 64 + (uint64_t)run) + (uint64_t)(reg * 1000 + i);
    return number(g->spread == LS_SPREAD_PLAIN ? key : key + 100 * (uint64_t)(replica + 1),
                  g->rough);
}

double rs_initial(const rs_program *p, int variable, int i)
{
    if (variable == p->n_variables - 1)
        return 0;
    return number(mix(p->seed) + (uint64_t)(variable * 1000 + i), false);
}
