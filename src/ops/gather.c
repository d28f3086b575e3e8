/*
 * gather: slices along an axis, chosen by index; scatter_rows: its opposite,
 * rows added up into a table of zeros. Each is the gradient of the other.
 * Invariant (rule K): rows of equal index add in the order they appear.
 */
#include <lockstep/ops.h>
#include <string.h>

#include "dispatch/call.h"
#include "kernels/movement.h"
#include "ops/shape.h"

static ls__indices indices_of(const ls_call *c, int input)
{
    return (ls__indices){ c->in_data[input], ls__spec_count(c->in[input]),
                          c->in[input]->dtype == LS_I64 };
}

static ls_status want_inside(const ls_call *c, const ls__indices *ix, int64_t limit,
                             const char *what)
{
    int64_t bad = ls__index_outside(ix, limit);
    if (bad < 0)
        return LS_OK;
    if (limit == 0)
        return ls_call_fail(c, LS_INVALID, "index %lld at position %lld, there are no %s",
                            (long long)ls__index(ix, bad), (long long)bad, what);
    return ls_call_fail(c, LS_INVALID, "index %lld at position %lld, %s are 0 to %lld",
                        (long long)ls__index(ix, bad), (long long)bad, what, (long long)limit - 1);
}

/* ---- gather --------------------------------------------------------------------- */

typedef struct gather_attrs {
    int64_t axis;
} gather_attrs;

static const ls_attr gather_attr_list[] = { LS_ATTR_INT(gather_attrs, axis), LS_ATTR_END };

static ls_status gather_shape(ls_call *c)
{
    const ls__spec *x = c->in[0], *ix = c->in[1];
    int axis, rank = x->rank - 1 + ix->rank;
    int64_t dims[2 * LS_MAX_RANK];
    ls_status st = ls__want_dtype(c, 0, LS__ANY);
    if (!st)
        st = ls__want_dtype(c, 1, LS__INDEXES);
    if (!st)
        st = ls__want_rank_at_least(c, 0, 1);
    if (!st)
        st = ls__want_axis(c, ((const gather_attrs *)c->attrs)->axis, x->rank, &axis);
    if (st)
        return st;
    if (rank > LS_MAX_RANK)
        return ls_call_fail(c, LS_SHAPE, "the result would have %d dimensions, at most %d", rank,
                            LS_MAX_RANK);
    memcpy(dims, x->dims, (size_t)axis * sizeof *dims);
    memcpy(dims + axis, ix->dims, (size_t)ix->rank * sizeof *dims);
    memcpy(dims + axis + ix->rank, x->dims + axis + 1, (size_t)(x->rank - axis - 1) * sizeof *dims);
    return ls_call_output(c, 0, x->dtype, rank, dims);
}

static ls_status gather_kernel(ls_call *c)
{
    const ls__spec *x = c->in[0];
    const ls__indices ix = indices_of(c, 1);
    int axis = ls__axis(((const gather_attrs *)c->attrs)->axis, x->rank);
    ls_status st = want_inside(c, &ix, x->dims[axis], "places along the axis");
    if (st)
        return st;
    LS__PICK(ls__movement_table)
        ->gather(&ix, ls__product(x->dims, 0, axis), x->dims[axis],
                 ls__product(x->dims, axis + 1, x->rank), ls_dtype_size(x->dtype), c->in_data[0],
                 c->out_data[0]);
    return LS_OK;
}

static const ls_op scatter_rows;
typedef struct scatter_attrs {
    int64_t rows;
} scatter_attrs;

/* The gathered axis is brought to the front, so that what is added is rows. */
static ls_status gather_gradient(ls_grad *g)
{
    ls_tensor *x = ls_grad_input(g, 0), *ids = ls_grad_input(g, 1);
    if (!ls_grad_wanted(g, 0))
        return LS_OK;
    const int64_t *dims = ls_shape(x), count = ls_count(ids);
    int rank = ls_rank(x), axis = ls__axis(((const gather_attrs *)ls_grad_attrs(g))->axis, rank);
    int64_t outer = ls__product(dims, 0, axis), inner = ls__product(dims, axis + 1, rank);
    const scatter_attrs attrs = { .rows = dims[axis] };
    ls_tensor *dy = ls_reshape(ls_grad_output(g, 0), LS_DIMS(outer, count, inner));
    if (axis > 0)
        dy = ls_transpose(dy, LS_AXES(1, 0, 2));
    dy = ls_reshape(dy, LS_DIMS(count, outer * inner));
    ls_tensor *dx = ls__call2(&scatter_rows, &attrs, ls_reshape(ids, LS_DIMS(count)), dy);
    if (axis > 0) {
        dx = ls_reshape(dx, LS_DIMS(dims[axis], outer, inner));
        dx = ls_transpose(dx, LS_AXES(1, 0, 2));
    }
    return ls_grad_give(g, 0, ls_reshape(dx, rank, dims));
}

static const ls_op gather = {
    .size = sizeof(ls_op),
    .name = "gather",
    .inputs = 2,
    .outputs = 1,
    .attr_size = sizeof(gather_attrs),
    .attrs = gather_attr_list,
    .shape = gather_shape,
    .kernel = gather_kernel,
    .gradient = gather_gradient,
};

ls_tensor *ls_gather(ls_tensor *x, ls_tensor *indices, int axis)
{
    const gather_attrs attrs = { .axis = axis };
    return ls__call2(&gather, &attrs, x, indices);
}

/* ---- scatter_rows: indices [n], values [n, ...] -> [rows, ...] ----------------------- */

static const ls_attr scatter_attr_list[] = { LS_ATTR_INT(scatter_attrs, rows), LS_ATTR_END };

static ls_status scatter_shape(ls_call *c)
{
    int64_t rows = ((const scatter_attrs *)c->attrs)->rows, dims[LS_MAX_RANK];
    const ls__spec *ix = c->in[0], *x = c->in[1];
    ls_status st = ls__want_dtype(c, 0, LS__INDEXES);
    if (!st)
        st = ls__want_dtype(c, 1, LS__FLOATS);
    if (!st)
        st = ls__want_rank(c, 0, 1);
    if (!st)
        st = ls__want_rank_at_least(c, 1, 1);
    if (st)
        return st;
    if (rows < 0)
        return ls_call_fail(c, LS_INVALID, "a table of %lld rows", (long long)rows);
    if (ix->dims[0] != x->dims[0])
        return ls_call_fail(c, LS_SHAPE, "%lld indices for %lld rows of values",
                            (long long)ix->dims[0], (long long)x->dims[0]);
    memcpy(dims, x->dims, sizeof dims);
    dims[0] = rows;
    return ls_call_output(c, 0, x->dtype, x->rank, dims);
}

static ls_status scatter_kernel(ls_call *c)
{
    const ls__spec *y = &c->out[0];
    const ls__indices ix = indices_of(c, 0);
    int64_t width = ls__product(y->dims, 1, y->rank);
    ls_status st = want_inside(c, &ix, y->dims[0], "rows");
    if (st)
        return st;
    const ls__movement *kernels = LS__PICK(ls__movement_table);
    if (y->dtype == LS_F64)
        kernels->scatter_f64(&ix, y->dims[0], width, c->in_data[1], c->out_data[0]);
    else
        kernels->scatter_f32(&ix, y->dims[0], width, c->in_data[1], c->out_data[0]);
    return LS_OK;
}

static ls_status scatter_gradient(ls_grad *g)
{
    return ls_grad_give(g, 1, ls_gather(ls_grad_output(g, 0), ls_grad_input(g, 0), 0));
}

static const ls_op scatter_rows = {
    .size = sizeof(ls_op),
    .name = "scatter_rows",
    .inputs = 2,
    .outputs = 1,
    .flags = LS_OP_BF16_AS_F32,
    .attr_size = sizeof(scatter_attrs),
    .attrs = scatter_attr_list,
    .shape = scatter_shape,
    .kernel = scatter_kernel,
    .gradient = scatter_gradient,
};

const ls_op *const ls__rows_gather[] = { &gather, &scatter_rows, NULL };
