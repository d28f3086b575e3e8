/*
 * Functions of one tensor, element by element, and the backward rows of relu,
 * tanh and sigmoid. Those take the forward result y rather than x, so that x
 * need not be kept.
 */
#include <lockstep/ops.h>

#include "ops/elementwise.h"

#define FLAGS (LS_OP_ELEMENTWISE | LS_OP_BF16_AS_F32 | LS_OP_TOTAL)

static ls_status numbers_shape(ls_call *c)
{
    return ls__unary_shape(c, LS__NUMBERS);
}

static ls_status floats_shape(ls_call *c)
{
    return ls__unary_shape(c, LS__FLOATS);
}

static ls_status test_shape(ls_call *c)
{
    return ls__test_shape(c, LS__FLOATS);
}

#define ROW(op, takes, rule, gradient_of)                                                          \
    static ls_status op##_kernel(ls_call *c)                                                       \
    {                                                                                              \
        return ls__elementwise_kernel(c, LS__FN_##op);                                             \
    }                                                                                              \
    static const ls_op op##_row = { .size = sizeof(ls_op),                                         \
                                    .name = #op,                                                   \
                                    .inputs = takes,                                               \
                                    .outputs = 1,                                                  \
                                    .flags = FLAGS,                                                \
                                    .shape = rule,                                                 \
                                    .kernel = op##_kernel,                                         \
                                    .gradient = gradient_of };

/* ---- backward rows: (y, dy) -> dx --------------------------------------------------
 *
 * Each is linear in dy: the gradient for dy is the row itself, of the gradient
 * dd that arrives. */

#define Y ls_grad_input(g, 0)
#define DY ls_grad_input(g, 1)
#define BACKWARD(op, for_y)                                                                        \
    static ls_status op##_gradient(ls_grad *g);                                                    \
    ROW(op, 2, ls__backward_shape, op##_gradient)                                                  \
    static ls_status op##_gradient(ls_grad *g)                                                     \
    {                                                                                              \
        ls_tensor *dd = ls_grad_output(g, 0);                                                      \
        ls_status st = LS_OK;                                                                      \
        if (ls_grad_wanted(g, 0))                                                                  \
            st = ls_grad_give(g, 0, for_y);                                                        \
        if (!st && ls_grad_wanted(g, 1))                                                           \
            st = ls_grad_give(g, 1, ls__call2(&op##_row, NULL, Y, dd));                            \
        return st;                                                                                 \
    }

/* dy (1 - y^2); dy y (1 - y). */
BACKWARD(tanh_grad, ls_mul(ls_scale(ls_mul(dd, DY), -2), Y))
BACKWARD(sigmoid_grad, ls_mul(ls_mul(dd, DY), ls_shift(ls_scale(Y, -2), 1)))

/* dy where y > 0: steps in y have no slope. */
static ls_status relu_grad_gradient(ls_grad *g);
ROW(relu_grad, 2, ls__backward_shape, relu_grad_gradient)
static ls_status relu_grad_gradient(ls_grad *g)
{
    if (!ls_grad_wanted(g, 1))
        return LS_OK;
    return ls_grad_give(g, 1, ls__call2(&relu_grad_row, NULL, Y, ls_grad_output(g, 0)));
}

#undef Y
#undef DY

/* ---- the functions: x -> y, with dx from x, y and dy --------------------------------- */

#define UNARY(op, rule, expression)                                                                \
    static ls_status op##_gradient(ls_grad *g)                                                     \
    {                                                                                              \
        ls_tensor *x = ls_grad_input(g, 0), *y = ls_grad_result(g, 0);                             \
        (void)x, (void)y;                                                                          \
        if (!ls_grad_wanted(g, 0))                                                                 \
            return LS_OK;                                                                          \
        ls_tensor *dy = ls_grad_output(g, 0);                                                      \
        return ls_grad_give(g, 0, expression);                                                     \
    }                                                                                              \
    ROW(op, 1, rule, op##_gradient)                                                                \
    PUBLIC(op)

#define PUBLIC(op)                                                                                 \
    ls_tensor *ls_##op(ls_tensor *x)                                                               \
    {                                                                                              \
        return ls__call1(&op##_row, NULL, x);                                                      \
    }

#define STEP(op, rule)                                                                             \
    ROW(op, 1, rule, NULL)                                                                         \
    PUBLIC(op)

#define TWO_OVER_SQRT_PI 1.12837916709551257390

UNARY(neg, numbers_shape, ls_neg(dy))
UNARY(abs, numbers_shape, ls_mul(dy, ls_sign(x)))
UNARY(square, numbers_shape, ls_mul(dy, ls_scale(x, 2)))
UNARY(relu, numbers_shape, ls__call2(&relu_grad_row, NULL, y, dy))
UNARY(exp, floats_shape, ls_mul(dy, y))
UNARY(log, floats_shape, ls_div(dy, x))
UNARY(log1p, floats_shape, ls_div(dy, ls_shift(x, 1)))
UNARY(sqrt, floats_shape, ls_div(ls_scale(dy, 0.5), y))
UNARY(rsqrt, floats_shape, ls_mul(ls_scale(dy, -0.5), ls_mul(y, ls_square(y))))
UNARY(sin, floats_shape, ls_mul(dy, ls_cos(x)))
UNARY(cos, floats_shape, ls_neg(ls_mul(dy, ls_sin(x))))
UNARY(tanh, floats_shape, ls__call2(&tanh_grad_row, NULL, y, dy))
UNARY(sigmoid, floats_shape, ls__call2(&sigmoid_grad_row, NULL, y, dy))
UNARY(softplus, floats_shape, ls_mul(dy, ls_sigmoid(x)))
UNARY(erf, floats_shape, ls_mul(ls_scale(dy, TWO_OVER_SQRT_PI), ls_exp(ls_neg(ls_square(x)))))

/* Flat everywhere but at their steps: they stop gradients. */
STEP(sign, numbers_shape)
STEP(floor, floats_shape)
STEP(ceil, floats_shape)
STEP(round, floats_shape)
STEP(isfinite, test_shape)
STEP(isnan, test_shape)

const ls_op *const ls__rows_unary[] = {
    &neg_row,   &abs_row,       &square_row,    &relu_row,         &exp_row,
    &log_row,   &log1p_row,     &sqrt_row,      &rsqrt_row,        &sin_row,
    &cos_row,   &tanh_row,      &sigmoid_row,   &softplus_row,     &erf_row,
    &sign_row,  &floor_row,     &ceil_row,      &round_row,        &isfinite_row,
    &isnan_row, &relu_grad_row, &tanh_grad_row, &sigmoid_grad_row, NULL
};
