/*
 * Asking a convolution's plan about the layouts it wants, without naming them:
 * what a compiler of whole steps needs to hand one plan's packed result to another.
 */
#ifndef LS__KERNELS_CONV_LAYOUT_H
#define LS__KERNELS_CONV_LAYOUT_H

#include "kernels/conv.h"

/* Whether argument `arg_a` of one plan, as wanted, may be given to another as its
 * `arg_b`: the same sizes in the same layout. */
bool ls__conv_plan_same_layout(const ls__conv_plan *a, int arg_a, const ls__conv_plan *b,
                               int arg_b);

/* Whether an argument as wanted is its plain elements in another order, with no
 * padding among them: what works on elements one by one may work on it as it is. */
bool ls__conv_layout_is_elementwise_safe(const ls__conv_plan *plan, int arg);

/* b of an activation that is wanted as [n, c / b, h, w, b], without padding; 0: it is not. */
int64_t ls__conv_layout_block(const ls__conv_plan *plan, int arg);

#endif
