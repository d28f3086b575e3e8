/*
 * transpose and broadcast_to: a walk over the output in order, reading the
 * input with its axes permuted, or stretched by a step of zero.
 */
#include <lockstep/ops.h>
#include <string.h>

#include "dispatch/call.h"
#include "kernels/movement.h"

/* ---- transpose --------------------------------------------------------------- */

typedef struct transpose_attrs {
    ls_ints order;
} transpose_attrs;

static const ls_attr transpose_attr_list[] = { LS_ATTR_INTS(transpose_attrs, order), LS_ATTR_END };

/* The order with its axes counted from the front; LS_INVALID unless it names
 * every axis once. */
static ls_status read_order(const ls_call *c, int *order)
{
    const ls_ints *given = &((const transpose_attrs *)c->attrs)->order;
    int rank = c->in[0]->rank;
    bool seen[LS_MAX_RANK] = { false };
    if (given->count != rank)
        return ls_call_fail(c, LS_INVALID, "the order has %lld axes, the input has %d",
                            (long long)given->count, rank);
    for (int i = 0; i < rank; i++) {
        ls_status st = ls__want_axis(c, given->at[i], rank, &order[i]);
        if (st)
            return st;
        if (seen[order[i]])
            return ls_call_fail(c, LS_INVALID, "the order names axis %d twice", order[i]);
        seen[order[i]] = true;
    }
    return LS_OK;
}

static ls_status transpose_shape(ls_call *c)
{
    int order[LS_MAX_RANK];
    int64_t dims[LS_MAX_RANK];
    ls_status st = ls__want_dtype(c, 0, LS__ANY);
    if (!st)
        st = read_order(c, order);
    if (st)
        return st;
    for (int i = 0; i < c->in[0]->rank; i++)
        dims[i] = c->in[0]->dims[order[i]];
    return ls_call_output(c, 0, c->in[0]->dtype, c->in[0]->rank, dims);
}

static ls_status transpose_kernel(ls_call *c)
{
    int order[LS_MAX_RANK];
    ls_status st = read_order(c, order);
    if (st)
        return st;
    int64_t strides[LS_MAX_RANK];
    ls__walk w = { .rank = c->in[0]->rank };
    ls__row_major(w.rank, c->in[0]->dims, strides);
    ls__row_major(w.rank, c->out[0].dims, w.to);
    for (int i = 0; i < w.rank; i++) {
        w.dims[i] = c->out[0].dims[i];
        w.from[i] = strides[order[i]];
    }
    LS__PICK(ls__movement_table)
        ->move(&w, ls_dtype_size(c->out[0].dtype), c->in_data[0], c->out_data[0]);
    return LS_OK;
}

static ls_status transpose_gradient(ls_grad *g)
{
    const ls_ints *order = &((const transpose_attrs *)ls_grad_attrs(g))->order;
    int64_t back[LS_MAX_RANK];
    for (int i = 0; i < order->count; i++)
        back[ls__axis(order->at[i], (int)order->count)] = i;
    return ls_grad_give(g, 0, ls_transpose(ls_grad_output(g, 0), (int)order->count, back));
}

static const ls_op transpose = {
    .size = sizeof(ls_op),
    .name = "transpose",
    .inputs = 1,
    .outputs = 1,
    .attr_size = sizeof(transpose_attrs),
    .attrs = transpose_attr_list,
    .shape = transpose_shape,
    .kernel = transpose_kernel,
    .gradient = transpose_gradient,
};

ls_tensor *ls_transpose(ls_tensor *x, int count, const int64_t *order)
{
    transpose_attrs attrs;
    memset(&attrs, 0, sizeof attrs);
    if (ls__ints(&attrs.order, "transpose", "order", count, order))
        return NULL;
    return ls__call1(&transpose, &attrs, x);
}

/* ---- broadcast_to --------------------------------------------------------------- */

typedef struct broadcast_attrs {
    ls_ints shape;
} broadcast_attrs;

static const ls_attr broadcast_attr_list[] = { LS_ATTR_INTS(broadcast_attrs, shape), LS_ATTR_END };

static ls_status broadcast_shape(ls_call *c)
{
    const ls_ints *want = &((const broadcast_attrs *)c->attrs)->shape;
    const ls__spec *x = c->in[0];
    ls_status st = ls__want_dtype(c, 0, LS__ANY);
    if (st)
        return st;
    if (want->count < x->rank || want->count > LS_MAX_RANK)
        return ls_call_fail(c, LS_SHAPE, "to a shape of rank %lld; %d to %d are possible",
                            (long long)want->count, x->rank, LS_MAX_RANK);
    int added = (int)want->count - x->rank;
    for (int i = 0; i < x->rank; i++)
        if (x->dims[i] != 1 && x->dims[i] != want->at[added + i])
            return ls_call_fail(c, LS_SHAPE, "axis %d of size %lld does not stretch to %lld", i,
                                (long long)x->dims[i], (long long)want->at[added + i]);
    return ls_call_output(c, 0, x->dtype, (int)want->count, want->at);
}

static ls_status broadcast_kernel(ls_call *c)
{
    const ls__spec *x = c->in[0], *y = &c->out[0];
    int added = y->rank - x->rank;
    ls__walk w = { .rank = y->rank };
    ls__row_major(x->rank, x->dims, w.from + added);
    ls__row_major(y->rank, y->dims, w.to);
    for (int i = 0; i < y->rank; i++) {
        w.dims[i] = y->dims[i];
        if (i < added || x->dims[i - added] == 1)
            w.from[i] = 0;
    }
    LS__PICK(ls__movement_table)->move(&w, ls_dtype_size(y->dtype), c->in_data[0], c->out_data[0]);
    return LS_OK;
}

static ls_status broadcast_gradient(ls_grad *g)
{
    return ls_grad_give(g, 0, ls__sum_to(ls_grad_output(g, 0), ls_grad_input(g, 0)));
}

static const ls_op broadcast_to = {
    .size = sizeof(ls_op),
    .name = "broadcast_to",
    .inputs = 1,
    .outputs = 1,
    .attr_size = sizeof(broadcast_attrs),
    .attrs = broadcast_attr_list,
    .shape = broadcast_shape,
    .kernel = broadcast_kernel,
    .gradient = broadcast_gradient,
};

ls_tensor *ls_broadcast_to(ls_tensor *x, int rank, const int64_t *dims)
{
    broadcast_attrs attrs;
    memset(&attrs, 0, sizeof attrs);
    if (ls__ints(&attrs.shape, "broadcast_to", "dims", rank, dims))
        return NULL;
    return ls__call1(&broadcast_to, &attrs, x);
}

const ls_op *const ls__rows_transpose[] = { &transpose, &broadcast_to, NULL };
