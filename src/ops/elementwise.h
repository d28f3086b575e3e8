/*
 * What the element-wise families share: shape rules, and running a loop of
 * kernels/elementwise.h over the inputs of a call, broadcast to its output.
 */
#ifndef LS__OPS_ELEMENTWISE_H
#define LS__OPS_ELEMENTWISE_H

#include "dispatch/call.h"
#include "kernels/elementwise.h"

/* One input of a dtype of `set`; output of the same dtype, or bool. */
ls_status ls__unary_shape(ls_call *c, unsigned set);
ls_status ls__test_shape(ls_call *c, unsigned set);

/* Two inputs of one dtype of `set` that broadcast; output of that dtype, or bool. */
ls_status ls__binary_shape(ls_call *c, unsigned set);
ls_status ls__compare_shape(ls_call *c, unsigned set);

/* Backward: two floats of one dtype and one shape, output like them. */
ls_status ls__backward_shape(ls_call *c);

/* A plan over the output of a call and all its inputs. */
void ls__plan_call(const ls_call *c, ls__broadcast *p);

/* The kernel of a row whose inputs are the operands of `fn`. */
ls_status ls__elementwise_kernel(ls_call *c, ls__fn fn);

#endif
