/*
 * cast: every dtype but bytes to every other. What does not fit in an integer
 * saturates, NaN gives 0. Gradients are cast back; they pass between floats
 * only.
 */
#include <lockstep/ops.h>
#include <string.h>

#include "ops/elementwise.h"

typedef struct cast_attrs {
    int64_t dtype;
} cast_attrs;

static const ls_attr cast_attr_list[] = { LS_ATTR_INT(cast_attrs, dtype), LS_ATTR_END };

static ls_status cast_shape(ls_call *c)
{
    const cast_attrs *a = c->attrs;
    ls_status st = ls__want_dtype(c, 0, LS__ANY);
    if (st)
        return st;
    if (a->dtype < 0 || a->dtype > LS_BYTES || !(LS__BIT(a->dtype) & LS__ANY))
        return ls_call_fail(c, LS_INVALID, "to dtype %lld (%s); wants a number or bool",
                            (long long)a->dtype, ls_dtype_name((ls_dtype)a->dtype));
    return ls__output_as(c, 0, (ls_dtype)a->dtype, 0);
}

static ls_status cast_kernel(ls_call *c)
{
    ls_dtype from = c->in[0]->dtype, to = c->out[0].dtype;
    int64_t count = ls__spec_count(c->in[0]), step = 1;
    if (count == 0)
        return LS_OK;
    if (from == to)
        memcpy(c->out_data[0], c->in_data[0], ls__spec_bytes(c->in[0]));
    else
        ls__cast_loop(from, to)(c->in_data, &step, c->out_data[0], count);
    return LS_OK;
}

static ls_status cast_gradient(ls_grad *g)
{
    if (!ls_grad_wanted(g, 0) || !ls_dtype_is_float(ls_dtype_of(ls_grad_result(g, 0))))
        return LS_OK;
    return ls_grad_give(g, 0, ls_cast(ls_grad_output(g, 0), ls_dtype_of(ls_grad_input(g, 0))));
}

static const ls_op cast_row = { .size = sizeof(ls_op),
                                .name = "cast",
                                .inputs = 1,
                                .outputs = 1,
                                .flags = LS_OP_ELEMENTWISE | LS_OP_TOTAL,
                                .attr_size = sizeof(cast_attrs),
                                .attrs = cast_attr_list,
                                .shape = cast_shape,
                                .kernel = cast_kernel,
                                .gradient = cast_gradient };

ls_tensor *ls_cast(ls_tensor *x, ls_dtype dtype)
{
    cast_attrs a;
    memset(&a, 0, sizeof a);
    a.dtype = dtype;
    return ls__call1(&cast_row, &a, x);
}

const ls_op *const ls__rows_cast[] = { &cast_row, NULL };
