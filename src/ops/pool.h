/*
 * The attributes of the pooling rows (pool.c, layout_pool.c), for passes that look at them, and what these
 * files share.
 */
#ifndef LS__OPS_POOL_H
#define LS__OPS_POOL_H

#include "dispatch/call.h"
#include "kernels/pool.h"

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

/* Of the rows whose image is packed in blocks of channels, a vector in the graph (layout_pool.c). They
 * begin with the bytes of ls__pool_attrs, too. */
typedef struct ls__pool_packed_attrs {
    int64_t window;
    int64_t stride;
    int64_t padding;
    ls_ints shape; /* of the image: n, h, w, c */
    int64_t block; /* kernels/pool.h */
    int64_t relu;  /* of what is pooled; 0 or 1 */
} ls__pool_packed_attrs;

_Static_assert(offsetof(ls__pool_grad_attrs, shape) == sizeof(ls__pool_attrs) &&
                   offsetof(ls__pool_packed_attrs, shape) == sizeof(ls__pool_attrs),
               "begin like ls__pool_attrs");

/* Everything about pooling an image of `x`, n, h, w, c, with the windows that the call's attributes begin
 * with. */
ls_status ls__pool_geometry(const ls_call *c, const int64_t *x, ls__pool_shape *s);

/* Input `i` must have the pooled shape; the call's failure for a place that is in no image. */
ls_status ls__pool_want_pooled(const ls_call *c, int i, const ls__pool_shape *s);
ls_status ls__pool_place_outside(const ls_call *c, const ls__pool_shape *s);

extern const ls_op ls__max_pool2d_packed, ls__max_pool2d_grad_packed;

#endif
