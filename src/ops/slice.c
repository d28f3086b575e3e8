/*
 * slice: a box out of a tensor. Its gradient puts the box back among zeros
 * (pad), whose gradient is this slice again.
 */
#include <lockstep/ops.h>
#include <string.h>

#include "dispatch/call.h"
#include "kernels/movement.h"

typedef struct slice_attrs {
    ls_ints begin;
    ls_ints size;
} slice_attrs;

static const ls_attr slice_attr_list[] = { LS_ATTR_INTS(slice_attrs, begin),
                                           LS_ATTR_INTS(slice_attrs, size), LS_ATTR_END };

static ls_status slice_shape(ls_call *c)
{
    const slice_attrs *a = c->attrs;
    const ls__spec *x = c->in[0];
    int64_t dims[LS_MAX_RANK];
    ls_status st = ls__want_dtype(c, 0, LS__ANY);
    if (st)
        return st;
    if (a->begin.count != x->rank || a->size.count != x->rank)
        return ls_call_fail(c, LS_INVALID, "begin has %lld numbers and size %lld, wants %d of each",
                            (long long)a->begin.count, (long long)a->size.count, x->rank);
    for (int i = 0; i < x->rank; i++) {
        int64_t begin = a->begin.at[i], size = a->size.at[i];
        if (begin < 0 || begin > x->dims[i] || size < -1 || size > x->dims[i] - begin)
            return ls_call_fail(c, LS_INVALID, "begin %lld, size %lld of axis %d, which has %lld",
                                (long long)begin, (long long)size, i, (long long)x->dims[i]);
        dims[i] = size < 0 ? x->dims[i] - begin : size;
    }
    return ls_call_output(c, 0, x->dtype, x->rank, dims);
}

static ls_status slice_kernel(ls_call *c)
{
    const slice_attrs *a = c->attrs;
    const ls__spec *x = c->in[0], *y = &c->out[0];
    size_t element = ls_dtype_size(x->dtype);
    int64_t offset = 0;
    ls__walk w = { .rank = x->rank };
    ls__row_major(x->rank, x->dims, w.from);
    ls__row_major(y->rank, y->dims, w.to);
    for (int i = 0; i < x->rank; i++) {
        w.dims[i] = y->dims[i];
        offset += a->begin.at[i] * w.from[i];
    }
    LS__PICK(ls__movement_table)
        ->move(&w, element, (const char *)c->in_data[0] + (size_t)offset * element, c->out_data[0]);
    return LS_OK;
}

static ls_status slice_gradient(ls_grad *g)
{
    const slice_attrs *a = ls_grad_attrs(g);
    ls_tensor *x = ls_grad_input(g, 0), *dy = ls_grad_output(g, 0);
    int64_t after[LS_MAX_RANK];
    for (int i = 0; i < ls_rank(x); i++)
        after[i] = ls_shape(x)[i] - a->begin.at[i] - ls_shape(dy)[i];
    return ls_grad_give(g, 0, ls_pad(dy, ls_rank(x), a->begin.at, after, 0));
}

static const ls_op slice = {
    .size = sizeof(ls_op),
    .name = "slice",
    .inputs = 1,
    .outputs = 1,
    .attr_size = sizeof(slice_attrs),
    .attrs = slice_attr_list,
    .shape = slice_shape,
    .kernel = slice_kernel,
    .gradient = slice_gradient,
};

ls_tensor *ls_slice(ls_tensor *x, int rank, const int64_t *begin, const int64_t *size)
{
    slice_attrs attrs;
    memset(&attrs, 0, sizeof attrs);
    if (ls__ints(&attrs.begin, "slice", "begin", rank, begin) ||
        ls__ints(&attrs.size, "slice", "size", rank, size))
        return NULL;
    return ls__call1(&slice, &attrs, x);
}

const ls_op *const ls__rows_slice[] = { &slice, NULL };
