/*
 * The row `chain`: element-wise calls over one result shape as one call. A pass
 * (trace/pass_fuse_chain.c) writes its program into the attributes:
 *
 *     step0 .. step15   { function, dtype of the operands, dtype of the result,
 *                         operands... }; the first with no numbers ends the program
 *     outs              which steps are outputs, ascending, one to four of them
 *
 * Operands number the inputs first, then the steps before. The result of every step
 * has the shape that all inputs broadcast to. The condition of `where` is bool, its
 * operands' dtype is that of the other two.
 */
#ifndef LS__OPS_FUSED_CHAIN_H
#define LS__OPS_FUSED_CHAIN_H

#include "dispatch/call.h"
#include "kernels/chain.h"
#include "kernels/elementwise.h"

typedef struct ls__chain_attrs {
    ls_ints step[LS__CHAIN_STEPS];
    ls_ints outs;
} ls__chain_attrs;

/* The functions as numbers in `step`. They are part of the file format of graphs:
 * a number is never changed and never used again; what is new goes to the end. */
/* clang-format off */
#define LS__CHAIN_WHERE 1
#define LS__CHAIN_CAST 2
#define LS__CHAIN_CODES(X)                                                                         \
    X(add, 10) X(sub, 11) X(mul, 12) X(div, 13) X(mod, 14) X(maximum, 15) X(minimum, 16)           \
    X(neg, 17) X(abs, 18) X(sign, 19) X(square, 20) X(relu, 21) X(clip, 22)                        \
    X(equal, 23) X(not_equal, 24) X(less, 25) X(less_equal, 26) X(greater, 27)                     \
    X(greater_equal, 28) X(logical_and, 29) X(logical_or, 30) X(logical_not, 31)                   \
    X(pow, 32) X(exp, 33) X(log, 34) X(log1p, 35) X(sqrt, 36) X(rsqrt, 37) X(sin, 38) X(cos, 39)   \
    X(tanh, 40) X(erf, 41) X(sigmoid, 42) X(softplus, 43) X(gelu, 44) X(gelu_tanh, 45)             \
    X(floor, 46) X(ceil, 47) X(round, 48) X(isfinite, 49) X(isnan, 50)                             \
    X(relu_grad, 51) X(tanh_grad, 52) X(sigmoid_grad, 53) X(gelu_grad, 54) X(gelu_tanh_grad, 55)   \
    X(clip_grad, 56)
/* clang-format on */

extern const ls_op ls__chain_row;

/* The number of a function; 0 when it has none. */
int64_t ls__chain_code(ls__fn fn);

/* The name of the function of a code, "?" for a code that is none. */
const char *ls__chain_name(int64_t code);

/* How many operands the function of a code has; 0 for a code that is none. */
int ls__chain_operands(int64_t code);

/* The loop of a step, or NULL: no such code, dtypes it does not take, or a function
 * that fails for some values (a division of integers), which no chain may hold. */
ls__loop *ls__chain_loop(int64_t code, int64_t operand, int64_t result);

#endif
