/*
 * one_hot: numbers as rows with a single 1. An id that is no place in the row
 * gives a row of zeros, as in TensorFlow; it is not an error.
 */
#include <lockstep/ops.h>
#include <string.h>

#include "dispatch/call.h"
#include "kernels/movement.h"
#include "tensor/convert.h"

typedef struct one_hot_attrs {
    int64_t depth;
    int64_t dtype;
} one_hot_attrs;

static const ls_attr one_hot_attr_list[] = { LS_ATTR_INT(one_hot_attrs, depth),
                                             LS_ATTR_INT(one_hot_attrs, dtype), LS_ATTR_END };

static ls_status one_hot_shape(ls_call *c)
{
    const one_hot_attrs *a = c->attrs;
    const ls__spec *ids = c->in[0];
    int64_t dims[LS_MAX_RANK];
    ls_status st = ls__want_dtype(c, 0, LS__INDEXES);
    if (st)
        return st;
    if (a->depth < 0)
        return ls_call_fail(c, LS_INVALID, "depth %lld", (long long)a->depth);
    if (a->dtype < LS_F32 || a->dtype > LS_BF16)
        return ls_call_fail(c, LS_INVALID, "a result of dtype %s, wants a number or bool",
                            ls_dtype_name((ls_dtype)a->dtype));
    if (ids->rank == LS_MAX_RANK)
        return ls_call_fail(c, LS_SHAPE, "ids of rank %d leave no room for the new axis",
                            ids->rank);
    memcpy(dims, ids->dims, sizeof dims);
    dims[ids->rank] = a->depth;
    return ls_call_output(c, 0, (ls_dtype)a->dtype, ids->rank + 1, dims);
}

static ls_status one_hot_kernel(ls_call *c)
{
    const int64_t depth = ((const one_hot_attrs *)c->attrs)->depth;
    const ls__indices ids = { c->in_data[0], ls__spec_count(c->in[0]), c->in[0]->dtype == LS_I64 };
    size_t element = ls_dtype_size(c->out[0].dtype);
    int64_t one;
    ls__store_double(c->out[0].dtype, &one, 0, 1.0);
    if (ids.count * depth == 0)
        return LS_OK;
    memset(c->out_data[0], 0, (size_t)(ids.count * depth) * element);
    for (int64_t i = 0; i < ids.count; i++) {
        int64_t id = ls__index(&ids, i);
        if (id >= 0 && id < depth)
            memcpy((char *)c->out_data[0] + (size_t)(i * depth + id) * element, &one, element);
    }
    return LS_OK;
}

static const ls_op one_hot = {
    .size = sizeof(ls_op),
    .name = "one_hot",
    .inputs = 1,
    .outputs = 1,
    .attr_size = sizeof(one_hot_attrs),
    .attrs = one_hot_attr_list,
    .shape = one_hot_shape,
    .kernel = one_hot_kernel,
};

ls_tensor *ls_one_hot(ls_tensor *ids, int64_t depth, ls_dtype dtype)
{
    const one_hot_attrs attrs = { .depth = depth, .dtype = dtype };
    return ls__call1(&one_hot, &attrs, ids);
}

const ls_op *const ls__rows_one_hot[] = { &one_hot, NULL };
