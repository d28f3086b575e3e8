/* Update rows, for optimizers; see update.c. */
#ifndef LS__OPS_UPDATE_H
#define LS__OPS_UPDATE_H

#include <lockstep/tensor.h>

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

#endif
