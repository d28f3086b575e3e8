/*
 * Attention, fused: softmax(scale q k^T) v without the matrix of scores. The row
 * also puts out the log of each score row's sum of exponentials (of bf16: f32),
 * from which its gradient makes the probabilities again.
 */
#include "ops/attention.h"

#include <lockstep/ops.h>
#include <math.h>
#include <string.h>

#include "dispatch/call.h"
#include "kernels/attention.h"

typedef ls__attention_attrs attention_attrs;

static const ls_attr attention_attr_list[] = { LS_ATTR_INT(attention_attrs, causal),
                                               LS_ATTR_FLOAT(attention_attrs, scale), LS_ATTR_END };

static double scale_of(const attention_attrs *a, int64_t width)
{
    return ls__attention_scale(a->scale, width);
}

static ls_dtype saved_dtype(ls_dtype dtype)
{
    return dtype == LS_F64 ? LS_F64 : LS_F32;
}

static int64_t dim(const ls__spec *s, int from_end)
{
    return s->dims[s->rank - from_end];
}

/* q [.., t, d], k [.., s, d], v [.., s, dv] with the same axes before. */
static ls_status want_heads(const ls_call *c)
{
    const attention_attrs *a = c->attrs;
    const ls__spec *q = c->in[0], *k = c->in[1], *v = c->in[2];
    ls_status st = ls__want_dtype(c, 0, LS__FLOATS);
    if (!st)
        st = ls__want_rank_at_least(c, 0, 2);
    for (int i = 1; i < 3 && !st; i++) {
        st = ls__want_same_dtype(c, 0, i);
        if (!st)
            st = ls__want_rank(c, i, q->rank);
        for (int j = 0; j < q->rank - 2 && !st; j++)
            if (c->in[i]->dims[j] != q->dims[j])
                st = ls_call_fail(c, LS_SHAPE, "inputs 0 and %d differ on axis %d", i, j);
    }
    if (st)
        return st;
    if (dim(q, 1) != dim(k, 1))
        return ls_call_fail(c, LS_SHAPE, "queries are %lld wide, keys %lld", (long long)dim(q, 1),
                            (long long)dim(k, 1));
    if (dim(k, 2) != dim(v, 2))
        return ls_call_fail(c, LS_SHAPE, "%lld keys for %lld values", (long long)dim(k, 2),
                            (long long)dim(v, 2));
    if (a->causal && dim(q, 2) != dim(k, 2))
        return ls__hint(ls_call_fail(c, LS_SHAPE, "causal, with %lld queries and %lld keys",
                                     (long long)dim(q, 2), (long long)dim(k, 2)),
                        "row i sees keys 0 to i: there must be as many of both");
    if (!isfinite(a->scale))
        return ls_call_fail(c, LS_INVALID, "scale is %g", a->scale);
    return LS_OK;
}

static ls__attention_shape heads(const ls_call *c)
{
    const attention_attrs *a = c->attrs;
    const ls__spec *q = c->in[0], *k = c->in[1], *v = c->in[2];
    ls__attention_shape s = {
        1, dim(q, 2), dim(k, 2), dim(q, 1), dim(v, 1), a->causal != 0, scale_of(a, dim(q, 1))
    };
    for (int i = 0; i < q->rank - 2; i++)
        s.batch *= q->dims[i];
    return s;
}

static size_t attention_scratch(ls_call *c)
{
    ls__attention_shape s = heads(c);
    if (c->in[0]->dtype == LS_F64)
        return (size_t)ls__ref_attention_scratch(&s) * sizeof(double);
    return (size_t)ls__attention_scratch(&s) * sizeof(float);
}

/* ---- in plain operators, for second gradients --------------------------------------- */

/* softmax(scale q k^T), what is not seen having no weight. */
static ls_tensor *probabilities(ls_tensor *q, ls_tensor *k, const attention_attrs *a)
{
    double scale = scale_of(a, ls_dim(q, -1));
    ls_tensor *scores = ls_scale(ls_matmul_t(q, false, k, true), scale);
    if (a->causal) {
        int64_t t = ls_dim(q, -2);
        ls_tensor *row = ls_cumsum(ls_ones(LS_I64, LS_DIMS(t, 1)), 0, false, false);
        ls_tensor *key = ls_cumsum(ls_ones(LS_I64, LS_DIMS(1, t)), 1, false, false);
        scores = ls_where(ls_less_equal(key, row), scores, ls_scalar(ls_dtype_of(q), -INFINITY));
    }
    return ls_softmax(scores, -1);
}

static ls_tensor *in_operators(ls_tensor *const *in, const void *attrs)
{
    return ls_matmul(probabilities(in[0], in[1], attrs), in[2]);
}

/* ---- attention_grad: (q, k, v, dy, y, lse) -> dq, dk, dv ------------------------------ */

static ls_status attention_grad_shape(ls_call *c)
{
    const ls__spec *q = c->in[0];
    ls_status st = want_heads(c);
    if (st)
        return st;
    ls__attention_shape s = heads(c);
    for (int i = 3; i < 5; i++)
        if (c->in[i]->dtype != q->dtype || ls__spec_count(c->in[i]) != s.batch * s.t * s.dv)
            return ls_call_fail(c, LS_SHAPE, "input %d has not the shape of the result", i);
    if (c->in[5]->dtype != saved_dtype(q->dtype) || ls__spec_count(c->in[5]) != s.batch * s.t)
        return ls_call_fail(c, LS_SHAPE, "input 5 wants one number per query");
    for (int i = 0; i < 3 && !st; i++)
        st = ls__output_like(c, i, i);
    return st;
}

static ls_status attention_grad_kernel(ls_call *c)
{
    ls__attention_shape s = heads(c);
    const void *const *in = c->in_data;
    void *const *out = c->out_data;
    if (c->in[0]->dtype != LS_F64)
        return LS__PICK(ls__attention_table)
            ->attention_grad(&s, in[0], in[1], in[2], in[3], in[4], in[5], out[0], out[1], out[2],
                             c->scratch);
    ls__ref_attention_grad_f64(&s, in[0], in[1], in[2], in[3], in[4], in[5], out[0], out[1], out[2],
                               c->scratch);
    return LS_OK;
}

static ls_status attention_grad_gradient(ls_grad *g)
{
    return ls__gradient_of_backward(g, 3, in_operators);
}

static const ls_op attention_grad = {
    .size = sizeof(ls_op),
    .name = "attention_grad",
    .inputs = 6,
    .outputs = 3,
    .flags = LS_OP_BF16_AS_F32,
    .attr_size = sizeof(attention_attrs),
    .attrs = attention_attr_list,
    .shape = attention_grad_shape,
    .scratch = attention_scratch,
    .kernel = attention_grad_kernel,
    .gradient = attention_grad_gradient,
};

/* ---- attention -------------------------------------------------------------------------- */

static ls_status attention_shape(ls_call *c)
{
    const ls__spec *q = c->in[0];
    ls_status st = want_heads(c);
    if (st)
        return st;
    int64_t dims[LS_MAX_RANK];
    memcpy(dims, q->dims, sizeof dims);
    dims[q->rank - 1] = dim(c->in[2], 1);
    st = ls_call_output(c, 0, q->dtype, q->rank, dims);
    return st ? st : ls_call_output(c, 1, saved_dtype(q->dtype), q->rank - 1, dims);
}

static ls_status attention_kernel(ls_call *c)
{
    ls__attention_shape s = heads(c);
    const void *const *in = c->in_data;
    if (c->in[0]->dtype != LS_F64)
        return LS__PICK(ls__attention_table)
            ->attention(&s, in[0], in[1], in[2], c->out_data[0], c->out_data[1], c->scratch);
    ls__ref_attention_f64(&s, in[0], in[1], in[2], c->out_data[0], c->out_data[1], c->scratch);
    return LS_OK;
}

/* Adds the gradients through lse, in case somebody takes it: the gradient of a
 * log-sum-exp by its scores are the probabilities. */
static void through_lse(ls_grad *g, ls_tensor *out[3])
{
    const attention_attrs *a = ls_grad_attrs(g);
    ls_tensor *q = ls_grad_input(g, 0), *k = ls_grad_input(g, 1);
    ls_tensor *dlse = ls_expand_dims(ls_cast(ls_grad_output(g, 1), ls_dtype_of(q)), -1);
    ls_tensor *ds = ls_scale(ls_mul(probabilities(q, k, a), dlse), scale_of(a, ls_dim(q, -1)));
    ls_tensor *dq = ls_matmul(ds, k), *dk = ls_matmul_t(ds, true, q, false);
    out[0] = out[0] ? ls_add(out[0], dq) : dq;
    out[1] = out[1] ? ls_add(out[1], dk) : dk;
}

static ls_status attention_gradient(ls_grad *g)
{
    ls_tensor *out[3] = { NULL };
    ls_status st = LS_OK;
    if (ls_grad_arrived(g, 0)) {
        ls_tensor *in[6] = { ls_grad_input(g, 0),  ls_grad_input(g, 1),  ls_grad_input(g, 2),
                             ls_grad_output(g, 0), ls_grad_result(g, 0), ls_grad_result(g, 1) };
        st = ls__call(&attention_grad, ls_grad_attrs(g), 6, in, 0, NULL, out);
        if (!st)
            st = ls_grad_give(g, 2, out[2]);
    }
    if (!st && ls_grad_arrived(g, 1))
        through_lse(g, out);
    for (int i = 0; i < 2 && !st; i++)
        st = ls_grad_give(g, i, out[i]);
    return st;
}

static const ls_op attention = {
    .size = sizeof(ls_op),
    .name = "attention",
    .inputs = 3,
    .outputs = 2,
    .flags = LS_OP_BF16_AS_F32,
    .attr_size = sizeof(attention_attrs),
    .attrs = attention_attr_list,
    .shape = attention_shape,
    .scratch = attention_scratch,
    .kernel = attention_kernel,
    .gradient = attention_gradient,
};

ls_tensor *ls_attention(ls_tensor *q, ls_tensor *k, ls_tensor *v, bool causal, double scale)
{
    const attention_attrs attrs = { .causal = causal, .scale = scale };
    ls_tensor *in[3] = { q, k, v }, *out[2];
    return ls__call(&attention, &attrs, 3, in, 0, NULL, out) ? NULL : out[0];
}

const ls_op *const ls__rows_attention[] = { &attention, &attention_grad, NULL };
