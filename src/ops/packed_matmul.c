/*
 * matmul_pack and matmul_packed: a product whose weight is kept in the layout
 * its routine likes best, put into graphs by the pass pack. Invariant: both rows
 * open the same plan, which their attributes settle (ops/matmul.h), so what one
 * writes the other can read; a packed weight means nothing to anybody else.
 * Whoever runs them keeps the packed copy while the weight stays the same
 * (LS__OP_PACKS).
 */
#include "kernels/threads.h"
#include "ops/matmul.h"
#include "ops/shape.h"

ls_status ls__matmul_pack_open(const ls__matmul_pack_attrs *p, ls__matmul_plan *plan)
{
    const ls__matmul_shape s = {
        .batch = 1, .m = p->m, .n = p->n, .k = p->k, .tb = p->transpose_b != 0
    };
    int mine = ls__kernel_threads_get();
    ls__kernel_threads((int)p->threads);
    ls_status st = ls__matmul_plan_open(plan, &s, true);
    ls__kernel_threads(mine);
    return st;
}

/* Attributes may come from a file: sizes are bounded before a plan is made of them. */
static ls_status check_sizes(const ls_call *c, const ls__matmul_pack_attrs *p)
{
    const int64_t size[] = { p->m, p->n, p->k };
    for (int i = 0; i < 3; i++)
        if (size[i] < 0 || size[i] > INT32_MAX)
            return ls_call_fail(c, LS_INVALID, "a product of %lld x %lld by %lld x %lld",
                                (long long)p->m, (long long)p->k, (long long)p->k, (long long)p->n);
    if (p->threads < 1 || p->threads > 1024)
        return ls_call_fail(c, LS_INVALID, "%lld threads, wants 1 to 1024", (long long)p->threads);
    return LS_OK;
}

/* How many floats the packed weight has. */
static ls_status packed_size(const ls__matmul_pack_attrs *p, int64_t *out)
{
    ls__matmul_plan plan;
    ls_status st = ls__matmul_pack_open(p, &plan);
    if (st)
        return st;
    *out = (int64_t)((plan.b_bytes + sizeof(float) - 1) / sizeof(float));
    ls__matmul_plan_close(&plan);
    return LS_OK;
}

/* ---- matmul_pack ------------------------------------------------------------------- */

#define PACK_ATTR(type, at, field)                                                                 \
    {                                                                                              \
#field, LS_ATTR_KIND_INT, offsetof(type, at field)                                         \
    }
#define PACK_ATTRS(type, at)                                                                       \
    PACK_ATTR(type, at, m), PACK_ATTR(type, at, n), PACK_ATTR(type, at, k),                        \
        PACK_ATTR(type, at, transpose_b), PACK_ATTR(type, at, threads)

static const ls_attr pack_attr_list[] = { PACK_ATTRS(ls__matmul_pack_attrs, ), LS_ATTR_END };

static ls_status pack_shape(ls_call *c)
{
    const ls__matmul_pack_attrs *p = c->attrs;
    ls_status st = check_sizes(c, p);
    if (!st)
        st = ls__want_dtype(c, 0, LS__BIT(LS_F32));
    if (!st)
        st = ls__want_rank(c, 0, 2);
    if (st)
        return st;
    bool tb = p->transpose_b != 0;
    if (c->in[0]->dims[tb] != p->k || c->in[0]->dims[!tb] != p->n)
        return ls_call_fail(c, LS_SHAPE, "wants a weight of %lld x %lld%s", (long long)p->k,
                            (long long)p->n, tb ? ", transposed" : "");
    int64_t size;
    st = packed_size(p, &size);
    return st ? st : ls_call_output(c, 0, LS_F32, 1, &size);
}

static ls_status pack_kernel(ls_call *c)
{
    ls__matmul_plan plan;
    ls_status st = ls__matmul_pack_open(c->attrs, &plan);
    if (st)
        return st;
    st = ls__matmul_plan_pack_b(&plan, c->in_data[0], c->out_data[0]);
    ls__matmul_plan_close(&plan);
    return st;
}

static const ls_op pack_row = {
    .size = sizeof(ls_op),
    .name = "matmul_pack",
    .inputs = 1,
    .outputs = 1,
    .flags = LS__OP_FUSED | LS__OP_PACKS,
    .attr_size = sizeof(ls__matmul_pack_attrs),
    .attrs = pack_attr_list,
    .shape = pack_shape,
    .kernel = pack_kernel,
};

/* ---- matmul_packed ------------------------------------------------------------------- */

static const ls_attr packed_attr_list[] = {
    PACK_ATTRS(ls__matmul_packed_attrs, pack.),
    LS_ATTR_INT(ls__matmul_packed_attrs, act),
    LS_ATTR_END,
};

/* a [.., k] of m rows in all, packed as the plan wants it, and perhaps a bias. */
static ls_status packed_inputs(const ls_call *c, const ls__matmul_pack_attrs *p)
{
    if (c->n_inputs != 2 && c->n_inputs != 3)
        return ls_call_fail(c, LS_INVALID, "%d inputs, wants 2 or 3", c->n_inputs);
    ls_status st = check_sizes(c, p);
    if (!st)
        st = ls__want_dtype(c, 0, LS__BIT(LS_F32));
    if (!st)
        st = ls__want_rank_at_least(c, 0, 2);
    if (!st)
        st = ls__want_same_dtype(c, 0, 1);
    if (!st)
        st = ls__want_rank(c, 1, 1);
    if (st)
        return st;
    if (ls__row_count(c->in[0]) != p->m || ls__row_size(c->in[0]) != p->k)
        return ls_call_fail(c, LS_SHAPE, "wants %lld rows of %lld", (long long)p->m,
                            (long long)p->k);
    return LS_OK;
}

static ls_status packed_shape(ls_call *c)
{
    const ls__matmul_packed_attrs *t = c->attrs;
    ls_status st = packed_inputs(c, &t->pack);
    if (!st)
        st = ls__want_act(c, t->act);
    if (st)
        return st;
    ls__spec out = *c->in[0];
    out.dims[out.rank - 1] = t->pack.n;
    st = ls_call_output(c, 0, LS_F32, out.rank, out.dims);
    if (!st && c->n_inputs == 3)
        st = ls__want_bias(c, 2);
    int64_t size = 0;
    if (!st)
        st = packed_size(&t->pack, &size);
    if (!st && c->in[1]->dims[0] != size)
        st = ls_call_fail(c, LS_SHAPE, "a packed weight of %lld floats, wants %lld",
                          (long long)c->in[1]->dims[0], (long long)size);
    return st;
}

static ls_status packed_kernel(ls_call *c)
{
    const ls__matmul_packed_attrs *t = c->attrs;
    ls__matmul_plan plan;
    ls_status st = ls__matmul_pack_open(&t->pack, &plan);
    if (st)
        return st;
    st = ls__matmul_plan_run(&plan, c->in_data[0], c->in_data[1], c->out_data[0]);
    ls__matmul_plan_close(&plan);
    if (!st)
        ls__bias_act(LS_F32, c->out_data[0], t->pack.m, t->pack.n,
                     c->n_inputs == 3 ? c->in_data[2] : NULL, t->act);
    return st;
}

static const ls_op packed_row = {
    .size = sizeof(ls_op),
    .name = "matmul_packed",
    .inputs = LS_ANY_NUMBER,
    .outputs = 1,
    .flags = LS__OP_FUSED,
    .attr_size = sizeof(ls__matmul_packed_attrs),
    .attrs = packed_attr_list,
    .shape = packed_shape,
    .kernel = packed_kernel,
};

const ls_op *const ls__rows_packed_matmul[] = { &pack_row, &packed_row, NULL };
