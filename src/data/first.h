/*
 * The structure of elements where only the first one tells it: what a user's function returns, what
 * is in the datasets that it makes. All that follow must be like it: the same nest, the same dtypes;
 * shapes may differ.
 */
#ifndef LS__DATA_FIRST_H
#define LS__DATA_FIRST_H

#include "data/element.h"
#include "data/type.h"

/* Element i of c, with this structure, against the first; if *first is NULL it is the first, and *first is
 * its type then, without its tensors. LS_INVALID: another nest, LS_SHAPE: another dtype. */
ls_status ls__first_check(ls__type **first, const ls_value *structure, const ls__chunk *c, int i);

#endif
