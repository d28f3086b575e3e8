/*
 * concat, stack and split: tensors laid side by side along an axis, and taken
 * apart again. All three see a tensor as [outer, axis, inner]: one side of a
 * copy is dense, the other steps over its neighbours.
 */
#include <lockstep/ops.h>
#include <string.h>

#include "dispatch/call.h"
#include "kernels/movement.h"
#include "ops/shape.h"

typedef struct axis_attrs {
    int64_t axis;
} axis_attrs;

static const ls_attr axis_attr_list[] = { LS_ATTR_INT(axis_attrs, axis), LS_ATTR_END };

/* `outer` runs of `run` elements, that far apart on each side. */
static void copy_runs(int64_t outer, int64_t run, int64_t from_step, int64_t to_step,
                      size_t element, const void *from, void *to)
{
    const ls__walk w = { 2, { outer, run }, { from_step, 1 }, { to_step, 1 } };
    LS__PICK(ls__movement_table)->move(&w, element, from, to);
}

/* ---- concat ---------------------------------------------------------------------- */

static ls_status want_alike(const ls_call *c, int input, int but_axis)
{
    const ls__spec *a = c->in[0], *b = c->in[input];
    if (a->dtype != b->dtype)
        return ls_call_fail(c, LS_SHAPE, "input %d is %s, input 0 is %s", input,
                            ls_dtype_name(b->dtype), ls_dtype_name(a->dtype));
    if (a->rank != b->rank)
        return ls_call_fail(c, LS_SHAPE, "input %d has rank %d, input 0 has %d", input, b->rank,
                            a->rank);
    for (int i = 0; i < a->rank; i++)
        if (i != but_axis && a->dims[i] != b->dims[i])
            return ls_call_fail(c, LS_SHAPE, "axis %d of input %d has size %lld, of input 0 %lld",
                                i, input, (long long)b->dims[i], (long long)a->dims[i]);
    return LS_OK;
}

static ls_status concat_shape(ls_call *c)
{
    int axis;
    ls__spec out = *c->in[0];
    ls_status st = ls__want_dtype(c, 0, LS__ANY);
    if (!st)
        st = ls__want_rank_at_least(c, 0, 1);
    if (!st)
        st = ls__want_axis(c, ((const axis_attrs *)c->attrs)->axis, out.rank, &axis);
    for (int i = 1; i < c->n_inputs && !st; i++) {
        st = want_alike(c, i, axis);
        if (!st && __builtin_add_overflow(out.dims[axis], c->in[i]->dims[axis], &out.dims[axis]))
            st = ls_call_fail(c, LS_SHAPE, "the sizes along axis %d do not fit in int64", axis);
    }
    return st ? st : ls__output_spec(c, 0, &out);
}

static ls_status concat_kernel(ls_call *c)
{
    const ls__spec *y = &c->out[0];
    int axis = ls__axis(((const axis_attrs *)c->attrs)->axis, y->rank);
    int64_t outer = ls__product(y->dims, 0, axis), inner = ls__product(y->dims, axis + 1, y->rank);
    int64_t to_step = y->dims[axis] * inner;
    size_t element = ls_dtype_size(y->dtype);
    char *to = c->out_data[0];
    for (int i = 0; i < c->n_inputs; i++) {
        int64_t run = c->in[i]->dims[axis] * inner;
        copy_runs(outer, run, run, to_step, element, c->in_data[i], to);
        to += (size_t)run * element;
    }
    return LS_OK;
}

static ls_status concat_gradient(ls_grad *g)
{
    ls_tensor *dy = ls_grad_output(g, 0);
    int axis = ls__axis(((const axis_attrs *)ls_grad_attrs(g))->axis, ls_rank(dy));
    int64_t begin[LS_MAX_RANK] = { 0 };
    for (int i = 0; i < ls_grad_inputs(g); i++) {
        ls_tensor *x = ls_grad_input(g, i);
        if (ls_grad_wanted(g, i)) {
            ls_status st = ls_grad_give(g, i, ls_slice(dy, ls_rank(x), begin, ls_shape(x)));
            if (st)
                return st;
        }
        begin[axis] += ls_shape(x)[axis];
    }
    return LS_OK;
}

static const ls_op concat = {
    .size = sizeof(ls_op),
    .name = "concat",
    .inputs = LS_ANY_NUMBER,
    .outputs = 1,
    .attr_size = sizeof(axis_attrs),
    .attrs = axis_attr_list,
    .shape = concat_shape,
    .kernel = concat_kernel,
    .gradient = concat_gradient,
};

/* ---- stack -------------------------------------------------------------------------- */

static ls_status stack_shape(ls_call *c)
{
    int axis;
    const ls__spec *x = c->in[0];
    ls_status st = ls__want_dtype(c, 0, LS__ANY);
    if (!st && x->rank == LS_MAX_RANK)
        st = ls_call_fail(c, LS_SHAPE, "inputs of rank %d leave no room for a new axis", x->rank);
    if (!st)
        st = ls__want_axis(c, ((const axis_attrs *)c->attrs)->axis, x->rank + 1, &axis);
    for (int i = 1; i < c->n_inputs && !st; i++)
        st = want_alike(c, i, -1);
    if (st)
        return st;
    int64_t dims[LS_MAX_RANK];
    for (int i = 0; i <= x->rank; i++)
        dims[i] = i == axis ? c->n_inputs : x->dims[i - (i > axis)];
    return ls_call_output(c, 0, x->dtype, x->rank + 1, dims);
}

static ls_status stack_kernel(ls_call *c)
{
    const ls__spec *y = &c->out[0];
    int axis = ls__axis(((const axis_attrs *)c->attrs)->axis, y->rank);
    int64_t outer = ls__product(y->dims, 0, axis), run = ls__product(y->dims, axis + 1, y->rank);
    size_t element = ls_dtype_size(y->dtype);
    for (int i = 0; i < c->n_inputs; i++)
        copy_runs(outer, run, run, c->n_inputs * run, element, c->in_data[i],
                  (char *)c->out_data[0] + (size_t)(i * run) * element);
    return LS_OK;
}

static ls_status stack_gradient(ls_grad *g)
{
    ls_tensor *dy = ls_grad_output(g, 0);
    int rank = ls_rank(dy), axis = ls__axis(((const axis_attrs *)ls_grad_attrs(g))->axis, rank);
    int64_t begin[LS_MAX_RANK] = { 0 }, size[LS_MAX_RANK];
    memcpy(size, ls_shape(dy), (size_t)rank * sizeof *size);
    size[axis] = 1;
    for (int i = 0; i < ls_grad_inputs(g); i++) {
        ls_tensor *x = ls_grad_input(g, i);
        begin[axis] = i;
        if (!ls_grad_wanted(g, i))
            continue;
        ls_tensor *dx = ls_reshape(ls_slice(dy, rank, begin, size), ls_rank(x), ls_shape(x));
        ls_status st = ls_grad_give(g, i, dx);
        if (st)
            return st;
    }
    return LS_OK;
}

static const ls_op stack = {
    .size = sizeof(ls_op),
    .name = "stack",
    .inputs = LS_ANY_NUMBER,
    .outputs = 1,
    .attr_size = sizeof(axis_attrs),
    .attrs = axis_attr_list,
    .shape = stack_shape,
    .kernel = stack_kernel,
    .gradient = stack_gradient,
};

static ls_tensor *join(const ls_op *op, int count, ls_tensor *const *xs, int axis)
{
    axis_attrs attrs = { .axis = axis };
    ls_tensor *y = NULL;
    if (count < 1 || !xs) {
        ls__fail(LS_INVALID, "%s: %d tensors in %s, wants at least one", op->name, count,
                 xs ? "a list" : "NULL");
        return NULL;
    }
    return ls__call(op, &attrs, count, xs, 0, NULL, &y) ? NULL : y;
}

ls_tensor *ls_concat(int count, ls_tensor *const *xs, int axis)
{
    return join(&concat, count, xs, axis);
}

ls_tensor *ls_stack(int count, ls_tensor *const *xs, int axis)
{
    return join(&stack, count, xs, axis);
}

/* ---- split ----------------------------------------------------------------------------- */

typedef struct split_attrs {
    int64_t parts;
    int64_t axis;
} split_attrs;

static const ls_attr split_attr_list[] = { LS_ATTR_INT(split_attrs, parts),
                                           LS_ATTR_INT(split_attrs, axis), LS_ATTR_END };

/* An axis of size zero can be split in any number of parts; this is where
 * "any" ends. */
#define MOST_PARTS 65536

/* One when the number makes no sense: the shape rule then says so. */
static int split_count(ls_call *c)
{
    int64_t parts = ((const split_attrs *)c->attrs)->parts;
    return parts < 1 || parts > MOST_PARTS ? 1 : (int)parts;
}

static ls_status split_shape(ls_call *c)
{
    const split_attrs *a = c->attrs;
    int axis;
    ls__spec out = *c->in[0];
    ls_status st = ls__want_dtype(c, 0, LS__ANY);
    if (!st)
        st = ls__want_rank_at_least(c, 0, 1);
    if (!st)
        st = ls__want_axis(c, a->axis, out.rank, &axis);
    if (st)
        return st;
    if (a->parts < 1 || a->parts > MOST_PARTS)
        return ls_call_fail(c, LS_INVALID, "%lld parts, 1 to %d are possible", (long long)a->parts,
                            MOST_PARTS);
    if (out.dims[axis] % a->parts)
        return ls_call_fail(c, LS_SHAPE, "axis %d of size %lld in %lld equal parts", axis,
                            (long long)out.dims[axis], (long long)a->parts);
    out.dims[axis] /= a->parts;
    for (int i = 0; i < a->parts && !st; i++)
        st = ls__output_spec(c, i, &out);
    return st;
}

static ls_status split_kernel(ls_call *c)
{
    const ls__spec *x = c->in[0];
    int axis = ls__axis(((const split_attrs *)c->attrs)->axis, x->rank);
    int64_t outer = ls__product(x->dims, 0, axis), step = ls__product(x->dims, axis, x->rank);
    int64_t run = step / c->n_outputs;
    size_t element = ls_dtype_size(x->dtype);
    for (int i = 0; i < c->n_outputs; i++)
        copy_runs(outer, run, step, run, element,
                  (const char *)c->in_data[0] + (size_t)(i * run) * element, c->out_data[i]);
    return LS_OK;
}

/* Concat of what arrived, a few parts at a time: a call takes any number, but
 * the list of them lies on the stack. */
static ls_status split_gradient(ls_grad *g)
{
    enum { AT_ONCE = 64 };
    const split_attrs *a = ls_grad_attrs(g);
    ls_tensor *dx = NULL;
    for (int64_t i = 0; i < a->parts;) {
        ls_tensor *list[AT_ONCE];
        int n = 0;
        if (dx)
            list[n++] = dx;
        while (n < AT_ONCE && i < a->parts)
            list[n++] = ls_grad_output(g, (int)i++);
        dx = ls_concat(n, list, (int)a->axis);
        if (!dx)
            break;
    }
    return ls_grad_give(g, 0, dx);
}

static const ls_op split = {
    .size = sizeof(ls_op),
    .name = "split",
    .inputs = 1,
    .outputs = LS_ANY_NUMBER,
    .attr_size = sizeof(split_attrs),
    .attrs = split_attr_list,
    .count_outputs = split_count,
    .shape = split_shape,
    .kernel = split_kernel,
    .gradient = split_gradient,
};

ls_value *ls_split(ls_tensor *x, int parts, int axis)
{
    const split_attrs attrs = { .parts = parts, .axis = axis };
    return ls_apply_all(&split, 1, &x, &attrs);
}

ls_value *ls_split_sizes(ls_tensor *x, int count, const int64_t *sizes, int axis)
{
    enum { MOST = 1024 }; /* parts: their handles lie on the stack */
    if (ls__check_tensor("split_sizes", "x", x))
        return NULL;
    int rank = ls_rank(x), at = ls__axis(axis, rank);
    if (at < 0) {
        ls__fail(LS_INVALID, "split_sizes: axis %d of %s", axis, ls_describe(x));
        return NULL;
    }
    if (count < 1 || count > MOST || !sizes) {
        ls__fail(LS_INVALID, "split_sizes: %d sizes, 1 to %d are possible", sizes ? count : 0,
                 MOST);
        return NULL;
    }
    int64_t left = ls_shape(x)[at];
    for (int i = 0; i < count; i++) {
        if (sizes[i] < 0 || sizes[i] > left) {
            ls__fail(LS_INVALID,
                     "split_sizes: size %lld of part %d, %lld are left of axis %d of %s",
                     (long long)sizes[i], i, (long long)left, at, ls_describe(x));
            return NULL;
        }
        left -= sizes[i];
    }
    if (left) {
        ls__fail(LS_INVALID, "split_sizes: the sizes leave %lld of axis %d of %s", (long long)left,
                 at, ls_describe(x));
        return NULL;
    }
    ls_tensor *parts[MOST];
    int64_t begin[LS_MAX_RANK] = { 0 }, size[LS_MAX_RANK];
    memcpy(size, ls_shape(x), (size_t)rank * sizeof *size);
    for (int i = 0; i < count; i++) {
        size[at] = sizes[i];
        parts[i] = ls_slice(x, rank, begin, size);
        if (!parts[i])
            return NULL;
        begin[at] += sizes[i];
    }
    return ls_tensors(count, parts);
}

const ls_op *const ls__rows_concat[] = { &concat, &stack, &split, NULL };
