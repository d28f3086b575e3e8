/*
 * add sub mul div mod pow maximum minimum: two tensors that broadcast, and
 * scale and shift on top of them.
 *
 * Gradients are formed in the broadcast shape and summed down to each input's.
 * pow's gradient for its exponent is 0 where the base is not positive, as in
 * TensorFlow, and for its base 0 where the exponent is 0.
 */
#include <lockstep/ops.h>

#include "ops/elementwise.h"

#define FLAGS (LS_OP_ELEMENTWISE | LS_OP_BF16_AS_F32)

static ls_status numbers_shape(ls_call *c)
{
    return ls__binary_shape(c, LS__NUMBERS);
}

static ls_status floats_shape(ls_call *c)
{
    return ls__binary_shape(c, LS__FLOATS);
}

/* ---- kernels ------------------------------------------------------------------ */

#define KERNEL(name)                                                                               \
    static ls_status name##_kernel(ls_call *c)                                                     \
    {                                                                                              \
        return ls__elementwise_kernel(c, LS__FN_##name);                                           \
    }

KERNEL(add)
KERNEL(sub)
KERNEL(mul)
KERNEL(pow)
KERNEL(maximum)
KERNEL(minimum)

/* Integers refuse a zero divisor, unless nothing is divided. */
static ls_status check_divisor(const ls_call *c)
{
    if (ls__spec_count(&c->out[0]) == 0)
        return LS_OK;
    const ls__spec *b = c->in[1];
    int64_t at = ls__first_zero(b->dtype, c->in_data[1], ls__spec_count(b));
    if (at < 0)
        return LS_OK;
    return ls_call_fail(c, LS_INVALID, "division by zero: element %lld of the divisor is 0",
                        (long long)at);
}

static ls_status div_kernel(ls_call *c)
{
    ls_status st = check_divisor(c);
    return st ? st : ls__elementwise_kernel(c, LS__FN_div);
}

static ls_status mod_kernel(ls_call *c)
{
    ls_status st = check_divisor(c);
    return st ? st : ls__elementwise_kernel(c, LS__FN_mod);
}

/* ---- gradients ------------------------------------------------------------------ */

static ls_status give(ls_grad *g, int input, ls_tensor *gradient)
{
    return ls_grad_give(g, input, ls__sum_to(gradient, ls_grad_input(g, input)));
}

/* Gives each input that wants one the gradient that `a` or `b` makes. */
typedef ls_tensor *(*part_fn)(ls_grad *g, ls_tensor *dy);

static ls_status give_both(ls_grad *g, part_fn a, part_fn b)
{
    ls_tensor *dy = ls_grad_output(g, 0);
    ls_status st = LS_OK;
    if (ls_grad_wanted(g, 0))
        st = give(g, 0, a(g, dy));
    if (!st && ls_grad_wanted(g, 1))
        st = give(g, 1, b(g, dy));
    return st;
}

#define A ls_grad_input(g, 0)
#define B ls_grad_input(g, 1)
#define Y ls_grad_result(g, 0)
#define PART(name, expression)                                                                     \
    static ls_tensor *name(ls_grad *g, ls_tensor *dy)                                              \
    {                                                                                              \
        (void)g;                                                                                   \
        return expression;                                                                         \
    }
#define GRADIENT(name)                                                                             \
    static ls_status name##_gradient(ls_grad *g)                                                   \
    {                                                                                              \
        return give_both(g, name##_da, name##_db);                                                 \
    }

PART(add_da, dy)
PART(add_db, dy)
GRADIENT(add)

PART(sub_da, dy)
PART(sub_db, ls_neg(dy))
GRADIENT(sub)

PART(mul_da, ls_mul(dy, B))
PART(mul_db, ls_mul(dy, A))
GRADIENT(mul)

PART(div_da, ls_div(dy, B))
PART(div_db, ls_neg(ls_mul(dy, ls_div(Y, B))))
GRADIENT(div)

PART(mod_da, dy)
PART(mod_db, ls_neg(ls_mul(dy, ls_floor(ls_div(A, B)))))
GRADIENT(mod)

/* Where one of the two wins, the whole gradient goes there; a tie goes to a. */
static ls_tensor *zero_like(ls_tensor *t)
{
    return ls_scalar(ls_dtype_of(t), 0);
}

PART(maximum_da, ls_where(ls_greater_equal(A, B), dy, zero_like(dy)))
PART(maximum_db, ls_where(ls_greater_equal(A, B), zero_like(dy), dy))
GRADIENT(maximum)

PART(minimum_da, ls_where(ls_less_equal(A, B), dy, zero_like(dy)))
PART(minimum_db, ls_where(ls_less_equal(A, B), zero_like(dy), dy))
GRADIENT(minimum)

/* b a^(b-1). Where a and b are both 0 that is 0 times infinity; a^0 is the
 * constant 1, so 1 stands in for a there and the product is 0. */
static ls_tensor *pow_da(ls_grad *g, ls_tensor *dy)
{
    ls_tensor *zero = zero_like(dy), *one = ls_scalar(ls_dtype_of(dy), 1);
    ls_tensor *flat = ls_logical_and(ls_equal(A, zero), ls_equal(B, zero));
    ls_tensor *base = ls_where(flat, one, A);
    return ls_mul(dy, ls_mul(B, ls_pow(base, ls_sub(B, one))));
}

/* y log(a); the logarithm sees 1 where a is not positive, so that no NaN arises
 * there in this or a further gradient. */
static ls_tensor *pow_db(ls_grad *g, ls_tensor *dy)
{
    ls_tensor *one = ls_scalar(ls_dtype_of(dy), 1);
    ls_tensor *safe = ls_where(ls_greater(A, zero_like(dy)), A, one);
    return ls_mul(dy, ls_mul(Y, ls_log(safe)));
}

GRADIENT(pow)

/* ---- rows --------------------------------------------------------------------------- */

/* div and mod refuse integer zeros: not total. */
#define ROW(op, rule, total)                                                                       \
    static const ls_op op##_row = { .size = sizeof(ls_op),                                         \
                                    .name = #op,                                                   \
                                    .inputs = 2,                                                   \
                                    .outputs = 1,                                                  \
                                    .flags = FLAGS | (total),                                      \
                                    .shape = rule,                                                 \
                                    .kernel = op##_kernel,                                         \
                                    .gradient = op##_gradient };                                   \
    ls_tensor *ls_##op(ls_tensor *a, ls_tensor *b)                                                 \
    {                                                                                              \
        return ls__call2(&op##_row, NULL, a, b);                                                   \
    }

ROW(add, numbers_shape, LS_OP_TOTAL)
ROW(sub, numbers_shape, LS_OP_TOTAL)
ROW(mul, numbers_shape, LS_OP_TOTAL)
ROW(div, numbers_shape, 0)
ROW(mod, numbers_shape, 0)
ROW(pow, floats_shape, LS_OP_TOTAL)
ROW(maximum, numbers_shape, LS_OP_TOTAL)
ROW(minimum, numbers_shape, LS_OP_TOTAL)

ls_tensor *ls_scale(ls_tensor *x, double factor)
{
    if (ls__check_tensor("scale", "x", x))
        return NULL;
    return ls_mul(x, ls__scalar_like(x, factor));
}

ls_tensor *ls_shift(ls_tensor *x, double offset)
{
    if (ls__check_tensor("shift", "x", x))
        return NULL;
    return ls_add(x, ls__scalar_like(x, offset));
}

const ls_op *const ls__rows_binary[] = { &add_row, &sub_row,     &mul_row,     &div_row, &mod_row,
                                         &pow_row, &maximum_row, &minimum_row, NULL };
