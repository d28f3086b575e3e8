/*
 * What the rows of batch and layer normalisation share: their attribute and what
 * they ask of their inputs.
 */
#ifndef LS__OPS_NORM_H
#define LS__OPS_NORM_H

#include "dispatch/call.h"

typedef struct ls__norm_attrs {
    double epsilon;
} ls__norm_attrs;

extern const ls_attr ls__norm_attr_list[];

/* x [.., c]; inputs 1 to `last` (scale, offset, mean, variance) of its dtype, [c];
 * and epsilon. */
ls_status ls__norm_want_inputs(const ls_call *c, int last);

/* A backward row's: x, scale, offset, and the gradient of y, which is like x. The
 * saved statistics after them are the row's own to check. */
ls_status ls__norm_want_backward(const ls_call *c);

/* Of the statistics that are saved for the gradient: bf16 would be too coarse. */
static inline ls_dtype ls__norm_saved_dtype(const ls__spec *x)
{
    return x->dtype == LS_F64 ? LS_F64 : LS_F32;
}

#endif
