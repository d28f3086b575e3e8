/*
 * Structures of values, without what is in them: to keep, and as bytes.
 */
#ifndef LS__DATA_NEST_H
#define LS__DATA_NEST_H

#include <lockstep/value.h>

#include "data/position.h"

/* A kept value of the same structure, whose leaves hold on to nothing. NULL when out of memory. */
ls_value *ls__nest_keep(const ls_value *value);

void ls__nest_put(ls__bytes_out *to, const ls_value *value);

/* A kept one. LS_CORRUPT, LS_NO_MEMORY. */
ls_status ls__nest_get(ls__bytes_in *from, ls_value **out);

#endif
