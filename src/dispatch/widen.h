/*
 * bf16 is a way to store numbers: rows with LS_OP_BF16_AS_F32 compute in f32 and
 * round once per operator. The executor converts around their kernels.
 */
#ifndef LS__DISPATCH_WIDEN_H
#define LS__DISPATCH_WIDEN_H

#include "dispatch/call.h"

bool ls__wants_widening(const ls_call *c);

/* Runs the kernel on f32 copies of the bf16 inputs and rounds its f32 outputs to
 * the bf16 ones of `c`. */
ls_status ls__run_widened(ls_call *c);

/* Runs the kernel as it is, with its scratch memory. */
ls_status ls__run_kernel(ls_call *c);

#endif
