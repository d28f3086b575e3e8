/*
 * gelu: x Phi(x), or the tanh formula, and its backward row (x, dy) -> dx. The
 * kernels avoid the cancellation that the formulas have for negative x; the
 * gradient of the backward row goes through plain operators.
 */
#include <lockstep/ops.h>
#include <string.h>

#include "ops/elementwise.h"

typedef struct gelu_attrs {
    int64_t approximate;
} gelu_attrs;

static const ls_attr gelu_attr_list[] = { LS_ATTR_INT(gelu_attrs, approximate), LS_ATTR_END };

#define SQRT_HALF 0.70710678118654752440
#define SQRT_TWO_OVER_PI 0.79788456080286535588

/* What gelu is, in operators. */
static ls_tensor *gelu_formula(ls_tensor *const *inputs, const void *attrs)
{
    const gelu_attrs *a = attrs;
    ls_tensor *x = inputs[0], *t;
    if (a->approximate) {
        ls_tensor *cube = ls_mul(x, ls_square(x));
        t = ls_tanh(ls_scale(ls_add(x, ls_scale(cube, 0.044715)), SQRT_TWO_OVER_PI));
    } else {
        t = ls_erf(ls_scale(x, SQRT_HALF));
    }
    return ls_mul(ls_scale(x, 0.5), ls_shift(t, 1));
}

/* ---- backward ------------------------------------------------------------------------ */

static ls_status gelu_grad_kernel(ls_call *c)
{
    const gelu_attrs *a = c->attrs;
    return ls__elementwise_kernel(c, a->approximate ? LS__FN_gelu_tanh_grad : LS__FN_gelu_grad);
}

static ls_status gelu_grad_gradient(ls_grad *g)
{
    return ls__gradient_of_backward(g, 1, gelu_formula);
}

static const ls_op gelu_grad_row = { .size = sizeof(ls_op),
                                     .name = "gelu_grad",
                                     .inputs = 2,
                                     .outputs = 1,
                                     .flags = LS_OP_ELEMENTWISE | LS_OP_BF16_AS_F32 | LS_OP_TOTAL,
                                     .attr_size = sizeof(gelu_attrs),
                                     .attrs = gelu_attr_list,
                                     .shape = ls__backward_shape,
                                     .kernel = gelu_grad_kernel,
                                     .gradient = gelu_grad_gradient };

/* ---- forward --------------------------------------------------------------------------- */

static ls_status gelu_shape(ls_call *c)
{
    return ls__unary_shape(c, LS__FLOATS);
}

static ls_status gelu_kernel(ls_call *c)
{
    const gelu_attrs *a = c->attrs;
    return ls__elementwise_kernel(c, a->approximate ? LS__FN_gelu_tanh : LS__FN_gelu);
}

static ls_status gelu_gradient(ls_grad *g)
{
    if (!ls_grad_wanted(g, 0))
        return LS_OK;
    ls_tensor *x = ls_grad_input(g, 0), *dy = ls_grad_output(g, 0);
    return ls_grad_give(g, 0, ls__call2(&gelu_grad_row, ls_grad_attrs(g), x, dy));
}

static const ls_op gelu_row = { .size = sizeof(ls_op),
                                .name = "gelu",
                                .inputs = 1,
                                .outputs = 1,
                                .flags = LS_OP_ELEMENTWISE | LS_OP_BF16_AS_F32 | LS_OP_TOTAL,
                                .attr_size = sizeof(gelu_attrs),
                                .attrs = gelu_attr_list,
                                .shape = gelu_shape,
                                .kernel = gelu_kernel,
                                .gradient = gelu_gradient };

ls_tensor *ls_gelu(ls_tensor *x, bool approximate)
{
    gelu_attrs a;
    memset(&a, 0, sizeof a);
    a.approximate = approximate;
    return ls__call1(&gelu_row, &a, x);
}

const ls_op *const ls__rows_gelu[] = { &gelu_row, &gelu_grad_row, NULL };
