/*
 * pad: a number around a tensor. The opposite of slice, and its gradient.
 */
#include <lockstep/ops.h>
#include <string.h>

#include "dispatch/call.h"
#include "kernels/movement.h"
#include "tensor/convert.h"

typedef struct pad_attrs {
    ls_ints before;
    ls_ints after;
    double value;
} pad_attrs;

static const ls_attr pad_attr_list[] = { LS_ATTR_INTS(pad_attrs, before),
                                         LS_ATTR_INTS(pad_attrs, after),
                                         LS_ATTR_FLOAT(pad_attrs, value), LS_ATTR_END };

static ls_status pad_shape(ls_call *c)
{
    const pad_attrs *a = c->attrs;
    const ls__spec *x = c->in[0];
    int64_t dims[LS_MAX_RANK];
    ls_status st = ls__want_dtype(c, 0, LS__ANY);
    if (st)
        return st;
    if (a->before.count != x->rank || a->after.count != x->rank)
        return ls_call_fail(c, LS_INVALID,
                            "before has %lld numbers and after %lld, wants %d of each",
                            (long long)a->before.count, (long long)a->after.count, x->rank);
    for (int i = 0; i < x->rank; i++) {
        int64_t before = a->before.at[i], after = a->after.at[i];
        if (before < 0 || after < 0)
            return ls_call_fail(c, LS_INVALID, "%lld before and %lld after axis %d",
                                (long long)before, (long long)after, i);
        if (__builtin_add_overflow(x->dims[i], before, &dims[i]) ||
            __builtin_add_overflow(dims[i], after, &dims[i]))
            return ls_call_fail(c, LS_INVALID, "the size of axis %d does not fit in int64", i);
    }
    return ls_call_output(c, 0, x->dtype, x->rank, dims);
}

static ls_status pad_kernel(ls_call *c)
{
    const pad_attrs *a = c->attrs;
    const ls__spec *x = c->in[0], *y = &c->out[0];
    const ls__movement *kernels = LS__PICK(ls__movement_table);
    size_t element = ls_dtype_size(x->dtype);
    int64_t offset = 0, value;
    ls__walk w = { .rank = x->rank };
    ls__row_major(x->rank, x->dims, w.from);
    ls__row_major(y->rank, y->dims, w.to);
    for (int i = 0; i < x->rank; i++) {
        w.dims[i] = x->dims[i];
        offset += a->before.at[i] * w.to[i];
    }
    ls__store_double(x->dtype, &value, 0, a->value);
    if (ls__spec_count(x) != ls__spec_count(y))
        kernels->fill(element, &value, c->out_data[0], ls__spec_count(y));
    kernels->move(&w, element, c->in_data[0], (char *)c->out_data[0] + (size_t)offset * element);
    return LS_OK;
}

static ls_status pad_gradient(ls_grad *g)
{
    const pad_attrs *a = ls_grad_attrs(g);
    ls_tensor *x = ls_grad_input(g, 0);
    return ls_grad_give(g, 0,
                        ls_slice(ls_grad_output(g, 0), ls_rank(x), a->before.at, ls_shape(x)));
}

static const ls_op pad = {
    .size = sizeof(ls_op),
    .name = "pad",
    .inputs = 1,
    .outputs = 1,
    .attr_size = sizeof(pad_attrs),
    .attrs = pad_attr_list,
    .shape = pad_shape,
    .kernel = pad_kernel,
    .gradient = pad_gradient,
};

ls_tensor *ls_pad(ls_tensor *x, int rank, const int64_t *before, const int64_t *after, double value)
{
    pad_attrs attrs;
    memset(&attrs, 0, sizeof attrs);
    attrs.value = value;
    if (ls__ints(&attrs.before, "pad", "before", rank, before) ||
        ls__ints(&attrs.after, "pad", "after", rank, after))
        return NULL;
    return ls__call1(&pad, &attrs, x);
}

const ls_op *const ls__rows_pad[] = { &pad, NULL };
