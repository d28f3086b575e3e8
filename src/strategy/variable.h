/* The inside of a variable: its cell. */
#ifndef LS__STRATEGY_VARIABLE_H
#define LS__STRATEGY_VARIABLE_H

#include <lockstep/variable.h>

#include "tensor/cell.h"

struct ls_variable {
    char *name;
    bool trainable;
    ls__cell *cell;
};

/* LS_OK when `v` can be used; else the pending error or LS_INVALID. */
ls_status ls__check_variable(const char *who, const ls_variable *v);

#endif
