/* Reading and writing cells as operators; see variable.c. */
#ifndef LS__OPS_VARIABLE_H
#define LS__OPS_VARIABLE_H

#include <lockstep/tensor.h>

#include "tensor/cell.h"

ls_tensor *ls__cell_read_op(ls__cell *cell);
ls_status ls__cell_assign(ls__cell *cell, ls_tensor *value);
ls_status ls__cell_assign_add(ls__cell *cell, ls_tensor *value);
ls_status ls__cell_assign_sub(ls__cell *cell, ls_tensor *value);

#endif
