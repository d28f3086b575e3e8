/*
 * How operators that work along one axis see a shape: as [outer, count, inner]
 * around that axis; along the last one, as rows.
 */
#ifndef LS__OPS_SHAPE_H
#define LS__OPS_SHAPE_H

#include "tensor/spec.h"

/* Of the sizes of axes from .. to - 1; 1 when there are none. */
static inline int64_t ls__product(const int64_t *dims, int from, int to)
{
    int64_t n = 1;
    for (int i = from; i < to; i++)
        n *= dims[i];
    return n;
}

typedef struct ls__around {
    int64_t outer, count, inner;
} ls__around;

/* The axis counts from either end, and was checked. */
static inline ls__around ls__around_axis(const ls__spec *x, int64_t axis)
{
    int at = ls__axis(axis, x->rank);
    return (ls__around){ ls__product(x->dims, 0, at), x->dims[at],
                         ls__product(x->dims, at + 1, x->rank) };
}

static inline int64_t ls__row_count(const ls__spec *x)
{
    return ls__product(x->dims, 0, x->rank - 1);
}

static inline int64_t ls__row_size(const ls__spec *x)
{
    return x->dims[x->rank - 1];
}

#endif
