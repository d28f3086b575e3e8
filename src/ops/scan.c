/*
 * What runs along one axis: argmax, argmin, and cumsum, whose gradient is the
 * running sum from the other end.
 */
#include <lockstep/ops.h>

#include "dispatch/call.h"
#include "kernels/reduce.h"
#include "ops/shape.h"

/* ---- argmax, argmin --------------------------------------------------------------- */

typedef struct arg_attrs {
    int64_t axis;
} arg_attrs;

static const ls_attr arg_attr_list[] = { LS_ATTR_INT(arg_attrs, axis), LS_ATTR_END };

static ls_status arg_shape(ls_call *c)
{
    const arg_attrs *a = c->attrs;
    const ls__spec *x = c->in[0];
    int axis, rank = 0;
    int64_t dims[LS_MAX_RANK], count = 1;
    ls_status st = ls__want_dtype(c, 0, LS__NUMBERS);
    if (!st)
        st = ls__want_axis(c, a->axis, x->rank, &axis);
    if (st)
        return st;
    for (int i = 0; i < x->rank; i++)
        if (i != axis)
            count *= dims[rank++] = x->dims[i];
    if (x->dims[axis] == 0 && count)
        return ls_call_fail(c, LS_SHAPE, "axis %d is empty: no element to point at", axis);
    return ls_call_output(c, 0, LS_I64, rank, dims);
}

static ls_status arg_kernel(ls_call *c, bool smallest)
{
    ls__around s = ls__around_axis(c->in[0], ((const arg_attrs *)c->attrs)->axis);
    const void *x = c->in_data[0];
    int64_t *y = c->out_data[0];
    switch (c->in[0]->dtype) {
    case LS_F32:
        ls__ref_arg_f32(smallest, x, y, s.outer, s.count, s.inner);
        break;
    case LS_F64:
        ls__ref_arg_f64(smallest, x, y, s.outer, s.count, s.inner);
        break;
    case LS_I32:
        ls__ref_arg_i32(smallest, x, y, s.outer, s.count, s.inner);
        break;
    case LS_I64:
        ls__ref_arg_i64(smallest, x, y, s.outer, s.count, s.inner);
        break;
    default:
        ls__ref_arg_u8(smallest, x, y, s.outer, s.count, s.inner);
    }
    return LS_OK;
}

static ls_status argmax_kernel(ls_call *c)
{
    return arg_kernel(c, false);
}

static ls_status argmin_kernel(ls_call *c)
{
    return arg_kernel(c, true);
}

static const ls_op argmax = {
    .size = sizeof(ls_op),
    .name = "argmax",
    .inputs = 1,
    .outputs = 1,
    .flags = LS_OP_BF16_AS_F32,
    .attr_size = sizeof(arg_attrs),
    .attrs = arg_attr_list,
    .shape = arg_shape,
    .kernel = argmax_kernel,
};

static const ls_op argmin = {
    .size = sizeof(ls_op),
    .name = "argmin",
    .inputs = 1,
    .outputs = 1,
    .flags = LS_OP_BF16_AS_F32,
    .attr_size = sizeof(arg_attrs),
    .attrs = arg_attr_list,
    .shape = arg_shape,
    .kernel = argmin_kernel,
};

ls_tensor *ls_argmax(ls_tensor *x, int axis)
{
    const arg_attrs attrs = { .axis = axis };
    return ls__call1(&argmax, &attrs, x);
}

ls_tensor *ls_argmin(ls_tensor *x, int axis)
{
    const arg_attrs attrs = { .axis = axis };
    return ls__call1(&argmin, &attrs, x);
}

/* ---- cumsum ------------------------------------------------------------------------- */

typedef struct cumsum_attrs {
    int64_t axis;
    int64_t exclusive;
    int64_t reverse;
} cumsum_attrs;

static const ls_attr cumsum_attr_list[] = { LS_ATTR_INT(cumsum_attrs, axis),
                                            LS_ATTR_INT(cumsum_attrs, exclusive),
                                            LS_ATTR_INT(cumsum_attrs, reverse), LS_ATTR_END };

static ls_status cumsum_shape(ls_call *c)
{
    const cumsum_attrs *a = c->attrs;
    int axis;
    ls_status st = ls__want_dtype(c, 0, LS__NUMBERS);
    if (!st)
        st = ls__want_axis(c, a->axis, c->in[0]->rank, &axis);
    return st ? st : ls__output_like(c, 0, 0);
}

static ls_status cumsum_kernel(ls_call *c)
{
    const cumsum_attrs *a = c->attrs;
    ls__around s = ls__around_axis(c->in[0], a->axis);
    bool exclusive = a->exclusive != 0, reverse = a->reverse != 0;
    const void *x = c->in_data[0];
    void *y = c->out_data[0];
    switch (c->in[0]->dtype) {
    case LS_F32:
        ls__ref_cumsum_f32(exclusive, reverse, x, y, s.outer, s.count, s.inner);
        break;
    case LS_F64:
        ls__ref_cumsum_f64(exclusive, reverse, x, y, s.outer, s.count, s.inner);
        break;
    case LS_I32:
        ls__ref_cumsum_i32(exclusive, reverse, x, y, s.outer, s.count, s.inner);
        break;
    case LS_I64:
        ls__ref_cumsum_i64(exclusive, reverse, x, y, s.outer, s.count, s.inner);
        break;
    default:
        ls__ref_cumsum_u8(exclusive, reverse, x, y, s.outer, s.count, s.inner);
    }
    return LS_OK;
}

/* An element counts in every sum from its own on: the running sum of dy from the
 * other end. */
static ls_status cumsum_gradient(ls_grad *g)
{
    const cumsum_attrs *a = ls_grad_attrs(g);
    return ls_grad_give(
        g, 0, ls_cumsum(ls_grad_output(g, 0), (int)a->axis, a->exclusive != 0, a->reverse == 0));
}

static const ls_op cumsum = {
    .size = sizeof(ls_op),
    .name = "cumsum",
    .inputs = 1,
    .outputs = 1,
    .flags = LS_OP_BF16_AS_F32,
    .attr_size = sizeof(cumsum_attrs),
    .attrs = cumsum_attr_list,
    .shape = cumsum_shape,
    .kernel = cumsum_kernel,
    .gradient = cumsum_gradient,
};

ls_tensor *ls_cumsum(ls_tensor *x, int axis, bool exclusive, bool reverse)
{
    const cumsum_attrs attrs = { .axis = axis, .exclusive = exclusive, .reverse = reverse };
    return ls__call1(&cumsum, &attrs, x);
}

const ls_op *const ls__rows_scan[] = { &argmax, &argmin, &cumsum, NULL };
