/*
 * clip: x held between two numbers, and its backward row (x, dy) -> dx, which
 * passes dy where low <= x <= high. NaN stays NaN and gets no gradient.
 */
#include <lockstep/ops.h>
#include <math.h>
#include <string.h>

#include "ops/elementwise.h"
#include "tensor/convert.h"

typedef struct clip_attrs {
    double low;
    double high;
} clip_attrs;

static const ls_attr clip_attr_list[] = { LS_ATTR_FLOAT(clip_attrs, low),
                                          LS_ATTR_FLOAT(clip_attrs, high), LS_ATTR_END };

static ls_status check_limits(const ls_call *c)
{
    const clip_attrs *a = c->attrs;
    if (a->low <= a->high) /* not so when one is NaN */
        return LS_OK;
    return ls_call_fail(c, LS_INVALID, "limits %g to %g; low must not be above high", a->low,
                        a->high);
}

/* Runs `fn` on the inputs, followed by the limits in their dtype. The limits of
 * integers are the integers inside. */
static ls_status run(ls_call *c, ls__fn fn)
{
    const clip_attrs *a = c->attrs;
    ls_dtype dtype = c->in[0]->dtype;
    bool whole = ls_dtype_is_integer(dtype);
    _Alignas(8) char low[8], high[8];
    ls__store_double(dtype, low, 0, whole ? ceil(a->low) : a->low);
    ls__store_double(dtype, high, 0, whole ? floor(a->high) : a->high);
    const void *in[LS__BROADCAST_OPERANDS] = { c->in_data[0] };
    int64_t step[LS__BROADCAST_OPERANDS] = { 1 };
    int n = c->n_inputs;
    if (n == 2) {
        in[1] = c->in_data[1];
        step[1] = 1;
    }
    in[n] = low;
    in[n + 1] = high;
    int64_t count = ls__spec_count(&c->out[0]);
    if (count > 0)
        ls__elementwise_loop(fn, dtype)(in, step, c->out_data[0], count);
    return LS_OK;
}

/* ---- backward ---------------------------------------------------------------------- */

static ls_status clip_grad_shape(ls_call *c)
{
    ls_status st = check_limits(c);
    return st ? st : ls__backward_shape(c);
}

static ls_status clip_grad_kernel(ls_call *c)
{
    return run(c, LS__FN_clip_grad);
}

static ls_status clip_grad_gradient(ls_grad *g);

static const ls_op clip_grad_row = { .size = sizeof(ls_op),
                                     .name = "clip_grad",
                                     .inputs = 2,
                                     .outputs = 1,
                                     .flags = LS_OP_ELEMENTWISE | LS_OP_BF16_AS_F32 | LS_OP_TOTAL,
                                     .attr_size = sizeof(clip_attrs),
                                     .attrs = clip_attr_list,
                                     .shape = clip_grad_shape,
                                     .kernel = clip_grad_kernel,
                                     .gradient = clip_grad_gradient };

/* It is linear in dy and flat in x. */
static ls_status clip_grad_gradient(ls_grad *g)
{
    if (!ls_grad_wanted(g, 1))
        return LS_OK;
    ls_tensor *x = ls_grad_input(g, 0), *dy = ls_grad_output(g, 0);
    return ls_grad_give(g, 1, ls__call2(&clip_grad_row, ls_grad_attrs(g), x, dy));
}

/* ---- forward ------------------------------------------------------------------------- */

static ls_status clip_shape(ls_call *c)
{
    ls_status st = check_limits(c);
    return st ? st : ls__unary_shape(c, LS__NUMBERS);
}

static ls_status clip_kernel(ls_call *c)
{
    return run(c, LS__FN_clip);
}

static ls_status clip_gradient(ls_grad *g)
{
    if (!ls_grad_wanted(g, 0))
        return LS_OK;
    ls_tensor *x = ls_grad_input(g, 0), *dy = ls_grad_output(g, 0);
    return ls_grad_give(g, 0, ls__call2(&clip_grad_row, ls_grad_attrs(g), x, dy));
}

static const ls_op clip_row = { .size = sizeof(ls_op),
                                .name = "clip",
                                .inputs = 1,
                                .outputs = 1,
                                .flags = LS_OP_ELEMENTWISE | LS_OP_BF16_AS_F32 | LS_OP_TOTAL,
                                .attr_size = sizeof(clip_attrs),
                                .attrs = clip_attr_list,
                                .shape = clip_shape,
                                .kernel = clip_kernel,
                                .gradient = clip_gradient };

ls_tensor *ls_clip(ls_tensor *x, double low, double high)
{
    clip_attrs a;
    memset(&a, 0, sizeof a);
    a.low = low;
    a.high = high;
    return ls__call1(&clip_row, &a, x);
}

const ls_op *const ls__rows_clip[] = { &clip_row, &clip_grad_row, NULL };
