/*
 * 2-D convolution on raw memory: the seam between src/ops and the kernels.
 * Activations are NHWC, weights HWIO; depthwise weights are [kh,kw,c,multiplier]
 * and output channel c * multiplier + m comes from input channel c (as in
 * TensorFlow's DepthwiseConv2dNative).
 *
 * How to use it
 *
 * 1. Eager: fill an ls__conv_shape and call the pass you need on plain memory;
 *    what must be re-laid is re-laid in recycled buffers of this thread.
 *
 * 2. Traced: open a plan per (shape, pass) once; ask it for each argument X, W,
 *    Y whether it is wanted plain and how many bytes it takes; move data in and
 *    out with _pack and _unpack, hoisted out of the step where possible; run.
 *    With LS__CONV_NHWC activations are always plain and only weights are packed;
 *    LS__CONV_ANY lets oneDNN choose the activations' layout too; ls__conv_preferred
 *    says which is fastest.
 *
 * A forward pass may go on with what often follows: with `bias` and `relu` of the
 * shape it writes relu(conv(x, w) + bias[oc]); `bias` is always plain. Negative
 * numbers and both zeros become +0 and NaN stays NaN, as the operator relu has it.
 *
 * In a backward pass the gradient takes its value's place: backward-data reads
 * W and Y (= dy) and writes X (= dx); backward-weights reads X and Y, writes W.
 * Every size may be zero: what depends on nothing is zero-filled. The same call
 * gives the same bits on any thread of the same thread count (matmul.h).
 */
#ifndef LS__KERNELS_CONV_H
#define LS__KERNELS_CONV_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ls__conv_shape {
    int64_t n, h, w, c;
    int64_t kh, kw;
    int64_t oc, oh, ow;
    int64_t stride_h, stride_w;
    int64_t dilation_h, dilation_w; /* 1: dense kernel */
    int64_t pad_top, pad_left, pad_bottom, pad_right;
    bool depthwise;
    int64_t multiplier; /* depthwise only: oc = c * multiplier */
    bool bias, relu;    /* what a forward pass goes on with; others do not look */
} ls__conv_shape;

typedef enum ls__conv_pass {
    LS__CONV_FORWARD,
    LS__CONV_BACKWARD_DATA,
    LS__CONV_BACKWARD_WEIGHTS
} ls__conv_pass;

typedef enum ls__conv_layout {
    LS__CONV_NHWC,
    LS__CONV_ANY,
    LS__CONV_WINOGRAD /* as ANY, by Winograd's algorithm (design 6); ANY where there is none */
} ls__conv_layout;

/* The layout in which a pass runs fastest when moving data costs nothing: what a
 * compiler of whole steps asks. Our own kernels want NHWC, oneDNN's are up to a
 * quarter faster in its blocked layouts (bench/kernels.c). Eager calls use NHWC:
 * two reorders of activations would cost more than that. */
ls__conv_layout ls__conv_preferred(const ls__conv_shape *shape, ls__conv_pass pass);

enum { LS__CONV_X, LS__CONV_W, LS__CONV_Y };

/* Fills oh and ow from the rest of the shape; fails with LS_INVALID when a
 * size, stride, dilation or pad is out of range. */
ls_status ls__conv_shape_complete(ls__conv_shape *shape);

/* Elements of X, W or Y. */
int64_t ls__conv_count(const ls__conv_shape *shape, int arg);

ls_status ls__conv_forward_f32(const ls__conv_shape *shape, const float *x, const float *w,
                               float *y);
/* The same with `bias` (if shape->bias) and then relu (if shape->relu). */
ls_status ls__conv_forward_fused_f32(const ls__conv_shape *shape, const float *x, const float *w,
                                     const float *bias, float *y);
ls_status ls__conv_forward_fused_f64(const ls__conv_shape *shape, const double *x, const double *w,
                                     const double *bias, double *y);
ls_status ls__conv_backward_data_f32(const ls__conv_shape *shape, const float *dy, const float *w,
                                     float *dx);
ls_status ls__conv_backward_weights_f32(const ls__conv_shape *shape, const float *x,
                                        const float *dy, float *dw);
ls_status ls__conv_forward_f64(const ls__conv_shape *shape, const double *x, const double *w,
                               double *y);
ls_status ls__conv_backward_data_f64(const ls__conv_shape *shape, const double *dy, const double *w,
                                     double *dx);
ls_status ls__conv_backward_weights_f64(const ls__conv_shape *shape, const double *x,
                                        const double *dy, double *dw);

/* Who computes a shape: a function of shape, pass and processor, never of timing. */
typedef enum ls__conv_route {
    LS__CONV_ZERO,        /* nothing to convolve: the output is zero or empty */
    LS__CONV_REFERENCE,   /* plain C */
    LS__CONV_ONE_CHANNEL, /* our own kernel for 3x3 on one input channel */
    LS__CONV_DNNL
} ls__conv_route;

/* A plan is a value: no memory of its own but a counted reference. One thread
 * at a time may use it. f32 only. */
typedef struct ls__conv_plan {
    ls__conv_shape shape;
    ls__conv_pass pass;
    ls__conv_route route;
    struct ls__dnnl_plan *dnnl;
    struct {
        bool plain;   /* wanted as it is: _pack and _unpack would only copy */
        size_t bytes; /* as wanted */
    } arg[3];
} ls__conv_plan;

ls_status ls__conv_plan_open(ls__conv_plan *plan, const ls__conv_shape *shape, ls__conv_pass pass,
                             ls__conv_layout layout);
void ls__conv_plan_close(ls__conv_plan *plan);
ls_status ls__conv_plan_pack(const ls__conv_plan *plan, int arg, const float *plain, void *packed);
ls_status ls__conv_plan_unpack(const ls__conv_plan *plan, int arg, const void *packed,
                               float *plain);
/* Runs on arguments as wanted; the pass says which of the three is written.
 * `bias` is looked at when the plan's shape has one. Buffers are best aligned to
 * 64 bytes. */
ls_status ls__conv_plan_run(const ls__conv_plan *plan, void *x, void *w, void *y,
                            const float *bias);

#endif
