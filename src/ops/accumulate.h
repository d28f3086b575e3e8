/* Sums of gradients that wait for an update; see accumulate.c. */
#ifndef LS__OPS_ACCUMULATE_H
#define LS__OPS_ACCUMULATE_H

#include <lockstep/tensor.h>

#include "tensor/cell.h"

/* sum + x, of f32 or f64, and empties the sum. Adding to one is ls__cell_assign_add. */
ls_tensor *ls__take_sum(ls__cell *sum, ls_tensor *x);

#endif
