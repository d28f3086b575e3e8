/*
 * The attributes of the pooling rows (pool.c), for passes that look at them.
 */
#ifndef LS__OPS_POOL_H
#define LS__OPS_POOL_H

#include <lockstep/operator.h>

typedef struct ls__pool_attrs {
    int64_t window;
    int64_t stride;
    int64_t padding;
} ls__pool_attrs;

/* Of the rows that go back to an image: its shape. They begin with the bytes of
 * ls__pool_attrs. */
typedef struct ls__pool_grad_attrs {
    int64_t window;
    int64_t stride;
    int64_t padding;
    ls_ints shape;
} ls__pool_grad_attrs;

_Static_assert(offsetof(ls__pool_grad_attrs, shape) == sizeof(ls__pool_attrs),
               "begins like ls__pool_attrs");

#endif
