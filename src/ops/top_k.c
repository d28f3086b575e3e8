/*
 * top_k: the k largest along the last axis, and where they were.
 */
#include <lockstep/ops.h>
#include <lockstep/tape.h>
#include <string.h>

#include "dispatch/call.h"
#include "kernels/reduce.h"

typedef struct top_k_attrs {
    int64_t k;
} top_k_attrs;

static const ls_attr top_k_attr_list[] = { LS_ATTR_INT(top_k_attrs, k), LS_ATTR_END };

static ls_status top_k_shape(ls_call *c)
{
    const ls__spec *x = c->in[0];
    int64_t k = ((const top_k_attrs *)c->attrs)->k, dims[LS_MAX_RANK];
    ls_status st = ls__want_dtype(c, 0, LS__NUMBERS);
    if (!st)
        st = ls__want_rank_at_least(c, 0, 1);
    if (st)
        return st;
    memcpy(dims, x->dims, sizeof dims);
    if (k < 0 || k > dims[x->rank - 1])
        return ls_call_fail(c, LS_INVALID, "k is %lld, wants 0 to %lld", (long long)k,
                            (long long)dims[x->rank - 1]);
    dims[x->rank - 1] = k;
    st = ls_call_output(c, 0, x->dtype, x->rank, dims);
    return st ? st : ls_call_output(c, 1, LS_I64, x->rank, dims);
}

static ls_status top_k_kernel(ls_call *c)
{
    const ls__spec *spec = c->in[0];
    int64_t k = ((const top_k_attrs *)c->attrs)->k, n = spec->dims[spec->rank - 1];
    int64_t rows = n ? ls__spec_count(spec) / n : 0;
    const void *x = c->in_data[0];
    void *values = c->out_data[0];
    int64_t *places = c->out_data[1];
    switch (spec->dtype) {
    case LS_F32:
        ls__ref_top_k_f32(x, values, places, rows, n, k);
        break;
    case LS_F64:
        ls__ref_top_k_f64(x, values, places, rows, n, k);
        break;
    case LS_I32:
        ls__ref_top_k_i32(x, values, places, rows, n, k);
        break;
    case LS_I64:
        ls__ref_top_k_i64(x, values, places, rows, n, k);
        break;
    default:
        ls__ref_top_k_u8(x, values, places, rows, n, k);
    }
    return LS_OK;
}

/* Each value's gradient goes back to its place: x as one long row, whose element
 * place + row n gets it. */
static ls_status top_k_gradient(ls_grad *g)
{
    ls_tensor *x = ls_grad_input(g, 0), *places = ls_grad_result(g, 1);
    int64_t k = ((const top_k_attrs *)ls_grad_attrs(g))->k, n = ls_dim(x, -1);
    int64_t all = ls_count(x), rows = n ? all / n : 0;
    ls_tensor *row = ls_cumsum(ls_ones(LS_I64, LS_DIMS(rows, 1)), 0, true, false);
    ls_tensor *start = ls_mul(row, ls_scalar_int(LS_I64, n));
    ls_tensor *at = ls_add(ls_reshape(places, LS_DIMS(rows, k)), start);
    ls_tensor *dy = ls_reshape(ls_grad_output(g, 0), LS_DIMS(rows * k));
    ls_tensor *dx = ls_densify(ls_sparse(ls_reshape(at, LS_DIMS(rows * k)), dy, all));
    return ls_grad_give(g, 0, ls_reshape(dx, ls_rank(x), ls_shape(x)));
}

static const ls_op top_k = {
    .size = sizeof(ls_op),
    .name = "top_k",
    .inputs = 1,
    .outputs = 2,
    .flags = LS_OP_BF16_AS_F32,
    .attr_size = sizeof(top_k_attrs),
    .attrs = top_k_attr_list,
    .shape = top_k_shape,
    .kernel = top_k_kernel,
    .gradient = top_k_gradient,
};

ls_value *ls_top_k(ls_tensor *x, int64_t k)
{
    const top_k_attrs attrs = { .k = k };
    ls_tensor *out[2];
    if (ls__call(&top_k, &attrs, 1, &x, 0, NULL, out))
        return NULL;
    return ls_tensors(2, out);
}

const ls_op *const ls__rows_top_k[] = { &top_k, NULL };
