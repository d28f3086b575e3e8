/* Update rows, for optimizers; see update.c. */
#ifndef LS__OPS_UPDATE_H
#define LS__OPS_UPDATE_H

#include <lockstep/tensor.h>

#include "dispatch/call.h"
#include "kernels/update.h"
#include "tensor/cell.h"

typedef struct ls__adam_attrs {
    double beta1;
    double beta2;
    double epsilon;
} ls__adam_attrs;

/* `rate` is f64[], `iteration` i64[] and 1 for the first update. Adam's cells:
 * the variable, the first moment, the second moment. */
ls_status ls__sgd_update(ls__cell *variable, ls_tensor *gradient, ls_tensor *rate);
ls_status ls__adam_update(ls__cell *const *cells, ls_tensor *gradient, ls_tensor *rate,
                          ls_tensor *iteration, const ls__adam_attrs *attrs);

/* ---- for rows that update many variables (fused_update.c) ---------------------------- */

extern const ls_attr ls__adam_attr_list[];

/* For shape rules: a variable and its slots (`count` cells) against its gradient;
 * how many cells; the inputs that are numbers. */
ls_status ls__update_check(const ls_call *c, const ls__spec *gradient, int count,
                           ls__cell *const *cells);
ls_status ls__update_check_count(const ls_call *c, int cells);
ls_status ls__update_check_rate(const ls_call *c, int input);
ls_status ls__update_check_iteration(const ls_call *c, int input);

/* For kernels: one variable of `spec`. Adam's step is the same for all. */
ls__adam ls__adam_step(const ls__adam_attrs *attrs, double rate, int64_t iteration);
ls_status ls__sgd_run(ls__cell *const *cells, const ls__spec *spec, const void *gradient,
                      double rate);
ls_status ls__adam_run(ls__cell *const *cells, const ls__spec *spec, const void *gradient,
                       const ls__adam *step);

#endif
