/*
 * Attention over heads that lie side by side, as one product makes queries, keys and
 * values and as the next takes the result: nothing is split, transposed or joined. Put
 * into graphs by trace/pass_fuse_heads.c. Invariant: the bits are those of the rows of
 * attention.c on the heads taken apart.
 */
#include "dispatch/call.h"
#include "kernels/attention.h"
#include "ops/attention.h"
#include "ops/shape.h"

typedef ls__attention_qkv_attrs qkv_attrs;

static const ls_attr qkv_attr_list[] = { LS_ATTR_INT(qkv_attrs, heads),
                                         LS_ATTR_INT(qkv_attrs, causal),
                                         LS_ATTR_FLOAT(qkv_attrs, scale), LS_ATTR_END };

/* The specs of y and lse, if x [n, t, 3 heads width] makes sense. */
static ls_status results(const ls_call *c, ls__spec *y, ls__spec *lse)
{
    const qkv_attrs *a = c->attrs;
    const ls__spec *x = c->in[0];
    ls_status st = ls__want_dtype(c, 0, LS__BIT(LS_F32));
    if (!st)
        st = ls__want_rank(c, 0, 3);
    if (st)
        return st;
    if (a->heads < 1 || x->dims[2] % 3 || x->dims[2] / 3 % a->heads)
        return ls_call_fail(c, LS_SHAPE, "rows of %lld are not 3 parts of %lld heads",
                            (long long)x->dims[2], (long long)a->heads);
    if (!isfinite(a->scale))
        return ls_call_fail(c, LS_INVALID, "scale is %g", a->scale);
    *y = *lse = *x;
    y->dims[2] = x->dims[2] / 3;
    lse->dims[1] = a->heads;
    lse->dims[2] = x->dims[1];
    return LS_OK;
}

static ls__attention_shape heads(const ls_call *c)
{
    const qkv_attrs *a = c->attrs;
    const ls__spec *x = c->in[0];
    int64_t width = x->dims[2] / 3 / a->heads;
    return (ls__attention_shape){ .batch = x->dims[0],
                                  .t = x->dims[1],
                                  .s = x->dims[1],
                                  .d = width,
                                  .dv = width,
                                  .causal = a->causal != 0,
                                  .scale = ls__attention_scale(a->scale, width) };
}

static size_t qkv_scratch(ls_call *c)
{
    ls__attention_shape s = heads(c);
    return (size_t)ls__attention_qkv_scratch(&s) * sizeof(float);
}

/* ---- attention_qkv ----------------------------------------------------------------- */

static ls_status qkv_shape(ls_call *c)
{
    ls__spec y, lse;
    ls_status st = results(c, &y, &lse);
    if (!st)
        st = ls__output_spec(c, 0, &y);
    return st ? st : ls__output_spec(c, 1, &lse);
}

static ls_status qkv_kernel(ls_call *c)
{
    ls__attention_shape s = heads(c);
    return LS__PICK(ls__attention_table)
        ->attention_qkv(&s, ((const qkv_attrs *)c->attrs)->heads, c->in_data[0], c->out_data[0],
                        c->out_data[1], c->scratch);
}

static const ls_op attention_qkv = {
    .size = sizeof(ls_op),
    .name = "attention_qkv",
    .inputs = 1,
    .outputs = 2,
    .flags = LS__OP_FUSED,
    .attr_size = sizeof(qkv_attrs),
    .attrs = qkv_attr_list,
    .shape = qkv_shape,
    .scratch = qkv_scratch,
    .kernel = qkv_kernel,
};

/* ---- attention_qkv_grad --------------------------------------------------------------- */

static ls_status qkv_grad_shape(ls_call *c)
{
    ls__spec y, lse;
    ls_status st = results(c, &y, &lse);
    if (st)
        return st;
    for (int i = 1; i < 4; i++)
        if (!ls__spec_equal(c->in[i], i < 3 ? &y : &lse))
            return ls_call_fail(c, LS_SHAPE, "input %d does not fit input 0", i);
    return ls__output_like(c, 0, 0);
}

static ls_status qkv_grad_kernel(ls_call *c)
{
    ls__attention_shape s = heads(c);
    const void *const *in = c->in_data;
    return LS__PICK(ls__attention_table)
        ->attention_qkv_grad(&s, ((const qkv_attrs *)c->attrs)->heads, in[0], in[1], in[2], in[3],
                             c->out_data[0], c->scratch);
}

static const ls_op attention_qkv_grad = {
    .size = sizeof(ls_op),
    .name = "attention_qkv_grad",
    .inputs = 4,
    .outputs = 1,
    .flags = LS__OP_FUSED,
    .attr_size = sizeof(qkv_attrs),
    .attrs = qkv_attr_list,
    .shape = qkv_grad_shape,
    .scratch = qkv_scratch,
    .kernel = qkv_grad_kernel,
};

const ls_op *const ls__rows_fused_attention[] = { &attention_qkv, &attention_qkv_grad, NULL };
