/*
 * What the rows of convolutions share (conv.c, fused_conv.c): attributes and the
 * way from a call to the shape its kernel wants.
 */
#ifndef LS__OPS_CONV_H
#define LS__OPS_CONV_H

#include "dispatch/call.h"
#include "kernels/conv.h"

typedef struct ls__conv_attrs {
    ls_ints stride;
    ls_ints dilation;
    int64_t padding;
} ls__conv_attrs;

/* Of the backward rows: `shape` is that of the result. They begin with the
 * bytes of ls__conv_attrs, as the next do, so that ls__conv_geometry reads any. */
typedef struct ls__conv_grad_attrs {
    ls_ints stride;
    ls_ints dilation;
    int64_t padding;
    ls_ints shape;
} ls__conv_grad_attrs;

/* Of conv2d_bias_act. */
typedef struct ls__conv_act_attrs {
    ls_ints stride;
    ls_ints dilation;
    int64_t padding;
    int64_t relu; /* 0 or 1 */
} ls__conv_act_attrs;

/* Of conv2d_pool_relu and its gradient: with `block` (16, else 0) what is pooled is packed in such blocks
 * of channels, a vector in the graph. */
typedef struct ls__conv_pool_attrs {
    ls_ints stride;
    ls_ints dilation;
    int64_t padding;
    int64_t block;
} ls__conv_pool_attrs;

typedef struct ls__conv_pool_grad_attrs {
    ls_ints stride;
    ls_ints dilation;
    int64_t padding;
    ls_ints shape; /* of the filter */
    int64_t block;
} ls__conv_pool_grad_attrs;

_Static_assert(offsetof(ls__conv_grad_attrs, shape) == sizeof(ls__conv_attrs) &&
                   offsetof(ls__conv_act_attrs, relu) == sizeof(ls__conv_attrs) &&
                   offsetof(ls__conv_pool_attrs, block) == sizeof(ls__conv_attrs) &&
                   offsetof(ls__conv_pool_grad_attrs, shape) == sizeof(ls__conv_attrs),
               "begin like ls__conv_attrs");

/* Inputs 0 and 1 are of rank 4 and of one floating dtype. */
ls_status ls__conv_want_inputs(const ls_call *c);

/* Everything about a convolution of x by w, two shapes of rank 4, with the stride,
 * dilation and padding the call's attributes begin with. No bias, no relu. */
ls_status ls__conv_geometry(const ls_call *c, bool depthwise, const int64_t *x, const int64_t *w,
                            ls__conv_shape *s);

/* What of a convolution is left behind a pool of 2 x 2, and the marks of where it came from (kernels/conv_pool.h). */
ls__spec ls__conv_pooled_spec(const ls__conv_shape *s);
ls__spec ls__conv_marks_spec(const ls__conv_shape *s);

#endif
