/*
 * Reductions over axes: sum, mean, max, min, any, all. Sums run in the fixed
 * order of kernels/reduce.h.
 */
#include <lockstep/ops.h>

#include "dispatch/call.h"
#include "kernels/reduce.h"

typedef struct reduce_attrs {
    ls_ints axes; /* count -1: all */
    int64_t keep;
} reduce_attrs;

static const ls_attr reduce_attr_list[] = { LS_ATTR_INTS(reduce_attrs, axes),
                                            LS_ATTR_INT(reduce_attrs, keep), LS_ATTR_END };

/* Which axes of a value of this rank go; the shape rule has checked them. */
static void reduced_axes(const reduce_attrs *a, int rank, bool reduced[LS_MAX_RANK])
{
    for (int i = 0; i < LS_MAX_RANK; i++)
        reduced[i] = a->axes.count < 0 && i < rank;
    for (int64_t i = 0; i < a->axes.count; i++)
        reduced[ls__axis(a->axes.at[i], rank)] = true;
}

/* ---- shape ---------------------------------------------------------------------- */

static ls_status reduce_shape(ls_call *c, unsigned dtypes)
{
    const reduce_attrs *a = c->attrs;
    const ls__spec *x = c->in[0];
    ls_status st = ls__want_dtype(c, 0, dtypes);
    unsigned seen = 0;
    for (int64_t i = 0; i < a->axes.count && !st; i++) {
        int axis = 0;
        st = ls__want_axis(c, a->axes.at[i], x->rank, &axis);
        if (!st && (seen & 1u << axis))
            st = ls_call_fail(c, LS_INVALID, "axis %d is named twice", axis);
        seen |= 1u << axis;
    }
    if (st)
        return st;
    bool reduced[LS_MAX_RANK];
    int64_t dims[LS_MAX_RANK];
    int rank = 0;
    reduced_axes(a, x->rank, reduced);
    for (int i = 0; i < x->rank; i++)
        if (!reduced[i])
            dims[rank++] = x->dims[i];
        else if (a->keep)
            dims[rank++] = 1;
    return ls_call_output(c, 0, x->dtype, rank, dims);
}

static ls_status shape_of_numbers(ls_call *c)
{
    return reduce_shape(c, LS__NUMBERS);
}

static ls_status shape_of_floats(ls_call *c)
{
    return reduce_shape(c, LS__FLOATS);
}

static ls_status shape_of_bools(ls_call *c)
{
    return reduce_shape(c, LS__BIT(LS_BOOL));
}

/* ---- kernels -------------------------------------------------------------------- */

static void reduce_f32(ls__reduce_op op, const ls__reduce_plan *p, const float *x, float *y)
{
    const ls__reduce_fns *fast = LS__PICK(ls__reduce_table);
    if (!p->simple)
        ls__ref_reduce_f32(op, p, x, y);
    else if (op == LS__REDUCE_SUM)
        fast->sum(x, y, p->outer, p->count, p->inner);
    else
        (op == LS__REDUCE_MAX ? fast->max : fast->min)(x, y, p->outer, p->count, p->inner);
}

static ls_status reduce(ls_call *c, ls__reduce_op op)
{
    ls__reduce_plan p;
    bool reduced[LS_MAX_RANK];
    reduced_axes(c->attrs, c->in[0]->rank, reduced);
    ls__reduce_plan_make(&p, c->in[0]->rank, c->in[0]->dims, reduced);
    const void *x = c->in_data[0];
    void *y = c->out_data[0];
    switch (c->in[0]->dtype) {
    case LS_F32:
        reduce_f32(op, &p, x, y);
        break;
    case LS_F64:
        ls__ref_reduce_f64(op, &p, x, y);
        break;
    case LS_I32:
        ls__ref_reduce_i32(op, &p, x, y);
        break;
    case LS_I64:
        ls__ref_reduce_i64(op, &p, x, y);
        break;
    default: /* u8, and bool for any and all */
        ls__ref_reduce_u8(op, &p, x, y);
    }
    return LS_OK;
}

static ls_status sum_kernel(ls_call *c)
{
    return reduce(c, LS__REDUCE_SUM);
}

static ls_status mean_kernel(ls_call *c)
{
    int64_t kept = ls__spec_count(&c->out[0]), count = kept ? ls__spec_count(c->in[0]) / kept : 0;
    ls_status st = reduce(c, LS__REDUCE_SUM);
    if (c->out[0].dtype == LS_F64)
        for (int64_t i = 0; i < kept; i++)
            ((double *)c->out_data[0])[i] /= (double)count;
    else
        for (int64_t i = 0; i < kept; i++)
            ((float *)c->out_data[0])[i] /= (float)count;
    return st;
}

static ls_status max_kernel(ls_call *c)
{
    return reduce(c, LS__REDUCE_MAX);
}

static ls_status min_kernel(ls_call *c)
{
    return reduce(c, LS__REDUCE_MIN);
}

static ls_status any_kernel(ls_call *c)
{
    return reduce(c, LS__REDUCE_ANY);
}

static ls_status all_kernel(ls_call *c)
{
    return reduce(c, LS__REDUCE_ALL);
}

/* ---- gradients ------------------------------------------------------------------ */

/* A result (or its gradient) with the reduced axes put back with size 1. */
static ls_tensor *with_axes(ls_grad *g, ls_tensor *t)
{
    ls_tensor *x = ls_grad_input(g, 0);
    bool reduced[LS_MAX_RANK];
    int64_t dims[LS_MAX_RANK];
    reduced_axes(ls_grad_attrs(g), ls_rank(x), reduced);
    for (int i = 0; i < ls_rank(x); i++)
        dims[i] = reduced[i] ? 1 : ls_shape(x)[i];
    return ls_reshape(t, ls_rank(x), dims);
}

static ls_status sum_gradient(ls_grad *g)
{
    ls_tensor *x = ls_grad_input(g, 0), *dy = with_axes(g, ls_grad_output(g, 0));
    return ls_grad_give(g, 0, ls_broadcast_to(dy, ls_rank(x), ls_shape(x)));
}

static ls_status mean_gradient(ls_grad *g)
{
    ls_tensor *x = ls_grad_input(g, 0), *dy = ls_grad_output(g, 0);
    int64_t all = ls_count(x), kept = ls_count(dy);
    dy = with_axes(g, all ? ls_scale(dy, (double)kept / (double)all) : dy);
    return ls_grad_give(g, 0, ls_broadcast_to(dy, ls_rank(x), ls_shape(x)));
}

/* Every element that equals the extreme gets an equal share. */
static ls_status extreme_gradient(ls_grad *g)
{
    ls_tensor *x = ls_grad_input(g, 0), *y = with_axes(g, ls_grad_result(g, 0));
    const reduce_attrs *a = ls_grad_attrs(g);
    ls_dtype dtype = ls_dtype_of(x);
    ls_tensor *chosen = ls_equal(x, y);
    ls_tensor *ties = ls_sum(ls_cast(chosen, dtype), (int)a->axes.count, a->axes.at, true);
    ls_tensor *share = ls_div(with_axes(g, ls_grad_output(g, 0)), ties);
    return ls_grad_give(g, 0, ls_where(chosen, share, ls_scalar(dtype, 0)));
}

/* ---- rows ----------------------------------------------------------------------- */

#define ROW(op, rule, its_flags, its_gradient)                                                     \
    static const ls_op op##_row = {                                                                \
        .size = sizeof(ls_op),                                                                     \
        .name = #op,                                                                               \
        .inputs = 1,                                                                               \
        .outputs = 1,                                                                              \
        .flags = its_flags,                                                                        \
        .attr_size = sizeof(reduce_attrs),                                                         \
        .attrs = reduce_attr_list,                                                                 \
        .shape = rule,                                                                             \
        .kernel = op##_kernel,                                                                     \
        .gradient = its_gradient,                                                                  \
    };                                                                                             \
                                                                                                   \
    ls_tensor *ls_##op(ls_tensor *x, int count, const int64_t *axes, bool keep)                    \
    {                                                                                              \
        reduce_attrs attrs = { .keep = keep };                                                     \
        attrs.axes.count = -1;                                                                     \
        if (count != -1 && ls__ints(&attrs.axes, #op, "axes", count, axes))                        \
            return NULL;                                                                           \
        return ls__call1(&op##_row, &attrs, x);                                                    \
    }

ROW(sum, shape_of_numbers, LS_OP_BF16_AS_F32, sum_gradient)
ROW(mean, shape_of_floats, LS_OP_BF16_AS_F32, mean_gradient)
ROW(max, shape_of_numbers, LS_OP_BF16_AS_F32, extreme_gradient)
ROW(min, shape_of_numbers, LS_OP_BF16_AS_F32, extreme_gradient)
ROW(any, shape_of_bools, 0, NULL)
ROW(all, shape_of_bools, 0, NULL)

const ls_op *const ls__rows_reduce[] = { &sum_row, &mean_row, &max_row, &min_row,
                                         &any_row, &all_row,  NULL };
