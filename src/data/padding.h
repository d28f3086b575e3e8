/*
 * Elements of different shapes in one block: what ls_padded_batch is made of.
 */
#ifndef LS__DATA_PADDING_H
#define LS__DATA_PADDING_H

#include "data/element.h"
#include "data/type.h"

/* LS_SHAPE: a leaf of dtype, rank or size that the shape given (NULL: none) has no room for. */
ls_status ls__padding_check(int leaf, const ls__spec *spec, const ls__leaf_type *shape);

/* One leaf of `rows` elements (1 or more), `stride` data apart, of one dtype and rank and each with
 * room in `shape`, as an owned datum with a new axis 0. Sizes that the shape does not tell are those
 * of the largest. Padding is `value`, an empty string for strings. LS_SHAPE, LS_NO_MEMORY. */
ls_status ls__pad(int leaf, int64_t rows, const ls__datum *first, int stride,
                  const ls__leaf_type *shape, double value, ls__datum *out);

#endif
