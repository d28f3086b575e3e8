/* Writing rows of a cell; see scatter.c. */
#ifndef LS__OPS_SCATTER_H
#define LS__OPS_SCATTER_H

#include <lockstep/tensor.h>

#include "tensor/cell.h"

typedef enum ls__scatter {
    LS__SCATTER_ADD,
    LS__SCATTER_SUB,
    LS__SCATTER_UPDATE,
    LS__SCATTER_MIN,
    LS__SCATTER_MAX
} ls__scatter;

/* `rows` i32 or i64 [n], `values` [n, ...] like rows of the cell. A row out of range is
 * LS_INVALID, and nothing is written. */
ls_status ls__cell_scatter(ls__scatter how, ls__cell *cell, ls_tensor *rows, ls_tensor *values);

#endif
