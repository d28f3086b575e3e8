/*
 * tile: a tensor repeated along its axes. An output of [t0 d0, t1 d1, ..] is
 * walked as [t0, d0, t1, d1, ..], reading with steps of zero along every t.
 */
#include <lockstep/ops.h>
#include <string.h>

#include "dispatch/call.h"
#include "kernels/movement.h"

typedef struct tile_attrs {
    ls_ints times;
} tile_attrs;

static const ls_attr tile_attr_list[] = { LS_ATTR_INTS(tile_attrs, times), LS_ATTR_END };

static ls_status tile_shape(ls_call *c)
{
    const ls_ints *times = &((const tile_attrs *)c->attrs)->times;
    const ls__spec *x = c->in[0];
    int64_t dims[LS_MAX_RANK];
    ls_status st = ls__want_dtype(c, 0, LS__ANY);
    if (st)
        return st;
    if (times->count != x->rank)
        return ls_call_fail(c, LS_INVALID, "times has %lld numbers, the input %d axes",
                            (long long)times->count, x->rank);
    for (int i = 0; i < x->rank; i++) {
        if (times->at[i] < 0)
            return ls_call_fail(c, LS_INVALID, "%lld times along axis %d", (long long)times->at[i],
                                i);
        if (__builtin_mul_overflow(x->dims[i], times->at[i], &dims[i]))
            return ls_call_fail(c, LS_INVALID, "the size of axis %d does not fit in int64", i);
    }
    return ls_call_output(c, 0, x->dtype, x->rank, dims);
}

static ls_status tile_kernel(ls_call *c)
{
    const ls_ints *times = &((const tile_attrs *)c->attrs)->times;
    const ls__spec *x = c->in[0], *y = &c->out[0];
    int64_t from[LS_MAX_RANK], to[LS_MAX_RANK];
    ls__row_major(x->rank, x->dims, from);
    ls__row_major(y->rank, y->dims, to);
    ls__walk w = { .rank = 2 * x->rank };
    for (int i = 0; i < x->rank; i++) {
        w.dims[2 * i] = times->at[i];
        w.from[2 * i] = 0;
        w.to[2 * i] = x->dims[i] * to[i];
        w.dims[2 * i + 1] = x->dims[i];
        w.from[2 * i + 1] = from[i];
        w.to[2 * i + 1] = to[i];
    }
    LS__PICK(ls__movement_table)->move(&w, ls_dtype_size(x->dtype), c->in_data[0], c->out_data[0]);
    return LS_OK;
}

/* Sums over the repeats, axis by axis: [outer, t d, inner] as [outer, t, rest]. */
static ls_status tile_gradient(ls_grad *g)
{
    const ls_ints *times = &((const tile_attrs *)ls_grad_attrs(g))->times;
    ls_tensor *x = ls_grad_input(g, 0), *dx = ls_grad_output(g, 0);
    int rank = ls_rank(x);
    int64_t dims[LS_MAX_RANK], outer = 1;
    memcpy(dims, ls_shape(dx), (size_t)rank * sizeof *dims);
    for (int i = 0; i < rank; i++) {
        int64_t rest = 1;
        dims[i] = ls_shape(x)[i];
        for (int j = i; j < rank; j++)
            rest *= dims[j];
        if (times->at[i] != 1)
            dx = ls_sum(ls_reshape(dx, LS_DIMS(outer, times->at[i], rest)), LS_AXES(1), false);
        outer *= dims[i];
    }
    return ls_grad_give(g, 0, ls_reshape(dx, rank, ls_shape(x)));
}

static const ls_op tile = {
    .size = sizeof(ls_op),
    .name = "tile",
    .inputs = 1,
    .outputs = 1,
    .attr_size = sizeof(tile_attrs),
    .attrs = tile_attr_list,
    .shape = tile_shape,
    .kernel = tile_kernel,
    .gradient = tile_gradient,
};

ls_tensor *ls_tile(ls_tensor *x, int rank, const int64_t *times)
{
    tile_attrs attrs;
    memset(&attrs, 0, sizeof attrs);
    if (ls__ints(&attrs.times, "tile", "times", rank, times))
        return NULL;
    return ls__call1(&tile, &attrs, x);
}

const ls_op *const ls__rows_tile[] = { &tile, NULL };
