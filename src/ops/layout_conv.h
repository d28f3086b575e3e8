/*
 * Convolutions on packed memory, as a graph has them: the layout pass
 * (trace/pass_layout.c) puts these rows in, no program calls them.
 *
 * What a plan of kernels/conv.h wants packed is a vector f32[bytes / 4] in the
 * graph; what it wants plain has its four dimensions. So a graph's wires say
 * which is which, and the rows' shape rules refuse a graph in which they do not.
 */
#ifndef LS__OPS_LAYOUT_CONV_H
#define LS__OPS_LAYOUT_CONV_H

#include "dispatch/call.h"
#include "kernels/conv.h"

/* One plan, and for the rows that move data one of its arguments. A packed graph
 * belongs to the number of threads it was made for: layouts may depend on it. */
typedef struct ls__conv_packed_attrs {
    ls_ints x, filter;        /* [n,h,w,c], [kh,kw,c,oc] */
    ls_ints stride, dilation; /* height, width */
    ls_ints padding;          /* top, left, bottom, right */
    int64_t bias, relu;       /* of a forward pass */
    int64_t pass, layout;     /* ls__conv_pass, ls__conv_layout */
    int64_t threads;
    int64_t argument; /* LS__CONV_X, _W, _Y; 0 in conv2d_packed */
} ls__conv_packed_attrs;

/* plain -> packed; the same for a weight, kept while its cell stays the same; packed -> plain. */
extern const ls_op ls__conv2d_pack, ls__conv2d_pack_weights, ls__conv2d_unpack;

/* A pass on arguments as its plan wants them: (x, w), (x, w, bias), (w, dy) or (x, dy). */
extern const ls_op ls__conv2d_packed;

/* Attributes of the plan of `shape` for this thread's number of threads. */
ls__conv_packed_attrs ls__conv_packed(const ls__conv_shape *shape, ls__conv_pass pass,
                                      ls__conv_layout layout);

/* Opens the plan the attributes tell of, LS_INVALID if there can be none; close it
 * with ls__conv_plan_close. */
ls_status ls__conv_packed_plan(const ls__conv_packed_attrs *attrs, ls__conv_plan *plan);

#endif
