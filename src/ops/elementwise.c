/*
 * Shape rules and the one kernel of the element-wise families. Invariant: an
 * output has the broadcast shape of all inputs, so a plan always exists.
 */
#include "ops/elementwise.h"

ls_status ls__unary_shape(ls_call *c, unsigned set)
{
    ls_status st = ls__want_dtype(c, 0, set);
    return st ? st : ls__output_like(c, 0, 0);
}

ls_status ls__test_shape(ls_call *c, unsigned set)
{
    ls_status st = ls__want_dtype(c, 0, set);
    return st ? st : ls__output_as(c, 0, LS_BOOL, 0);
}

static ls_status pair_shape(ls_call *c, unsigned set, ls__spec *out)
{
    ls_status st = ls__want_dtype(c, 0, set);
    if (!st)
        st = ls__want_same_dtype(c, 0, 1);
    return st ? st : ls__want_broadcast(c, c->in[0], c->in[1], out);
}

ls_status ls__binary_shape(ls_call *c, unsigned set)
{
    ls__spec out;
    ls_status st = pair_shape(c, set, &out);
    return st ? st : ls_call_output(c, 0, c->in[0]->dtype, out.rank, out.dims);
}

ls_status ls__compare_shape(ls_call *c, unsigned set)
{
    ls__spec out;
    ls_status st = pair_shape(c, set, &out);
    return st ? st : ls_call_output(c, 0, LS_BOOL, out.rank, out.dims);
}

ls_status ls__backward_shape(ls_call *c)
{
    ls_status st = ls__want_dtype(c, 0, LS__FLOATS);
    if (!st)
        st = ls__want_same_dtype(c, 0, 1);
    if (!st && !ls__spec_same_shape(c->in[0], c->in[1]))
        st = ls_call_fail(c, LS_SHAPE, "wants two inputs of one shape");
    return st ? st : ls__output_like(c, 0, 0);
}

void ls__plan_call(const ls_call *c, ls__broadcast *p)
{
    int ranks[LS__BROADCAST_OPERANDS];
    const int64_t *shapes[LS__BROADCAST_OPERANDS];
    for (int i = 0; i < c->n_inputs; i++) {
        ranks[i] = c->in[i]->rank;
        shapes[i] = c->in[i]->dims;
    }
    ls__broadcast_plan(p, c->out[0].rank, c->out[0].dims, c->n_inputs, ranks, shapes);
}

ls_status ls__elementwise_kernel(ls_call *c, ls__fn fn)
{
    ls_dtype dtype = c->in[0]->dtype;
    size_t size = ls_dtype_size(dtype);
    const size_t sizes[LS__BROADCAST_OPERANDS] = { size, size, size, size };
    ls__broadcast p;
    ls__plan_call(c, &p);
    ls__broadcast_run(&p, ls__elementwise_loop(fn, dtype), c->in_data, sizes, c->out_data[0],
                      ls_dtype_size(c->out[0].dtype));
    return LS_OK;
}
