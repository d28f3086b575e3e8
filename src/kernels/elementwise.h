/*
 * Element-wise kernels: for a function and a dtype, a loop over a run of
 * elements (ls__loop in broadcast.h, which also walks shapes).
 *
 *     ls__loop *loop = ls__elementwise_loop(LS__FN_add, LS_F32);
 *     ls__broadcast_run(&plan, loop, in, sizes, out, sizeof(float));
 *
 * kernels/ref has a loop for every function and dtype, in plain C: the oracle.
 * kernels/cpu has fast ones for f32, for f64 where it costs nothing, and for the
 * conversions that matter. Both give zeros, infinities and NaN the same way.
 */
#ifndef LS__KERNELS_ELEMENTWISE_H
#define LS__KERNELS_ELEMENTWISE_H

#include <lockstep/tensor.h>

#include "kernels/broadcast.h"
#include "kernels/isa_select.h"

/* Operands in order; "y" is the forward result. Result: bool for the
 * comparisons, logic and tests, else the operands' dtype. The unit tests walk
 * this list. */
/* clang-format off */
#define LS__FN_LIST(X)                                                                             \
    /* numbers: a, b */                                                                            \
    X(add, 2) X(sub, 2) X(mul, 2) X(div, 2) X(mod, 2) X(maximum, 2) X(minimum, 2)                  \
    /* numbers: x */                                                                               \
    X(neg, 1) X(abs, 1) X(sign, 1) X(square, 1) X(relu, 1)                                         \
    /* numbers: x, low, high */                                                                    \
    X(clip, 3)                                                                                     \
    /* any: a, b -> bool */                                                                        \
    X(equal, 2) X(not_equal, 2) X(less, 2) X(less_equal, 2) X(greater, 2) X(greater_equal, 2)      \
    /* bool */                                                                                     \
    X(logical_and, 2) X(logical_or, 2) X(logical_not, 1)                                           \
    /* floats */                                                                                   \
    X(pow, 2) X(exp, 1) X(log, 1) X(log1p, 1) X(sqrt, 1) X(rsqrt, 1) X(sin, 1) X(cos, 1)           \
    X(tanh, 1) X(erf, 1) X(sigmoid, 1) X(softplus, 1) X(gelu, 1) X(gelu_tanh, 1) X(floor, 1)       \
    X(ceil, 1) X(round, 1)                                                                         \
    /* floats -> bool */                                                                           \
    X(isfinite, 1) X(isnan, 1)                                                                     \
    /* floats, backward: y, dy; the two of gelu: x, dy; clip: x, dy, low, high */                  \
    X(relu_grad, 2) X(tanh_grad, 2) X(sigmoid_grad, 2) X(gelu_grad, 2) X(gelu_tanh_grad, 2)        \
    X(clip_grad, 4)

typedef enum ls__fn {
#define LS__FN_ENUM(name, operands) LS__FN_##name,
    LS__FN_LIST(LS__FN_ENUM)
#undef LS__FN_ENUM
    LS__FN_COUNT
} ls__fn;
/* clang-format on */

#define LS__DTYPE_END (LS_BYTES + 1)

typedef struct ls__elementwise {
    ls__loop *fn[LS__FN_COUNT][LS__DTYPE_END]; /* [function][dtype of the operands] */
    ls__loop *where[9];                        /* [bytes of an element]: condition, a, b */
} ls__elementwise;

typedef struct ls__casts {
    ls__loop *loop[LS__DTYPE_END][LS__DTYPE_END]; /* [from][to] */
} ls__casts;

/* Complete; and, per instruction set, NULL where ref's serves. */
extern const ls__elementwise ls__ref_elementwise;
extern const ls__casts ls__ref_casts;
LS__ISA_TABLE(ls__elementwise, ls__elementwise_table);
LS__ISA_TABLE(ls__casts, ls__casts_table);

/* The loop to use on this processor; NULL when `fn` does not take the dtype. */
ls__loop *ls__elementwise_loop(ls__fn fn, ls_dtype dtype);
ls__loop *ls__where_loop(size_t element);
ls__loop *ls__cast_loop(ls_dtype from, ls_dtype to);

/* The place of the first 0 among n integers (i32, i64, u8), or -1. Integer div
 * and mod give 0 where the divisor is 0; who wants an error looks first. */
int64_t ls__first_zero(ls_dtype dtype, const void *data, int64_t n);

#endif
