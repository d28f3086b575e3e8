/*
 * 2-D pooling on raw NHWC memory: the seam between src/ops and the kernels.
 *
 * Max pooling also gives, per output element, the winner's place as an index
 * y * w + x into its image's plane (int32); the backward pass and the
 * second-order rule read it. The first of equals wins; NaN wins over numbers.
 * Average pooling divides by the cells inside the image: padding never counts
 * (TensorFlow's SAME). An index given to _backward or _gather must come from
 * _forward of the same shape; one that lies in no image is found and refused.
 *
 * f32 is SIMD, the same bits at every instruction set; f64 is plain C. Zero
 * rows, channels and output sizes are legal.
 *
 * In f32 the image may be in blocks of channels, [n, c / block, h, w, block], as
 * convolutions like it; what is pooled, and places, are plain in any case.
 */
#ifndef LS__KERNELS_POOL_H
#define LS__KERNELS_POOL_H

#include "base/status.h"
#include "kernels/isa_select.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct ls__pool_shape {
    int64_t n, h, w, c;
    int64_t kh, kw;
    int64_t oh, ow;
    int64_t stride_h, stride_w;
    int64_t pad_top, pad_left, pad_bottom, pad_right;
    int64_t block; /* 0: plain; else it divides c */
} ls__pool_shape;

/* Fills oh and ow from the rest; fails with LS_INVALID when a size, stride or
 * pad is out of range, or a window would lie wholly in the padding. */
ls_status ls__pool_shape_complete(ls__pool_shape *shape);

/* `argmax` may be NULL. */
void ls__max_pool_forward_f32(const ls__pool_shape *shape, const float *x, float *y,
                              int32_t *argmax);
/* The same with y = relu(y), the operator's bits: NaN stays, -0.0 becomes 0. */
void ls__max_pool_forward_relu_f32(const ls__pool_shape *shape, const float *x, float *y,
                                   int32_t *argmax);
/* dx = 0, then dx[argmax] += dy. False when an index is outside the image: then
 * what was written is of no use. */
bool ls__max_pool_backward_f32(const ls__pool_shape *shape, const float *dy, const int32_t *argmax,
                               float *dx);
/* y = x[argmax], the transpose of _backward; false as there. */
bool ls__max_pool_gather_f32(const ls__pool_shape *shape, const float *x, const int32_t *argmax,
                             float *y);
void ls__avg_pool_forward_f32(const ls__pool_shape *shape, const float *x, float *y);
void ls__avg_pool_backward_f32(const ls__pool_shape *shape, const float *dy, float *dx);

void ls__max_pool_forward_f64(const ls__pool_shape *shape, const double *x, double *y,
                              int32_t *argmax);
void ls__max_pool_forward_relu_f64(const ls__pool_shape *shape, const double *x, double *y,
                                   int32_t *argmax);
bool ls__max_pool_backward_f64(const ls__pool_shape *shape, const double *dy, const int32_t *argmax,
                               double *dx);
bool ls__max_pool_gather_f64(const ls__pool_shape *shape, const double *x, const int32_t *argmax,
                             double *y);
void ls__avg_pool_forward_f64(const ls__pool_shape *shape, const double *x, double *y);
void ls__avg_pool_backward_f64(const ls__pool_shape *shape, const double *dy, double *dx);

/* The f32 kernels of one instruction set (cpu/pool.c). */
typedef struct ls__pool_kernels {
    void (*max_forward)(const ls__pool_shape *, const float *, float *, int32_t *);
    void (*max_forward_relu)(const ls__pool_shape *, const float *, float *, int32_t *);
    bool (*max_backward)(const ls__pool_shape *, const float *, const int32_t *, float *);
    bool (*max_gather)(const ls__pool_shape *, const float *, const int32_t *, float *);
    void (*avg_forward)(const ls__pool_shape *, const float *, float *);
    void (*avg_backward)(const ls__pool_shape *, const float *, float *);
} ls__pool_kernels;
LS__ISA_TABLE(ls__pool_kernels, ls__pool_table);

/* The window of output row or column `o` clipped to the image: [*from, *to). */
static inline void ls__pool_clip(int64_t o, int64_t stride, int64_t pad, int64_t kernel,
                                 int64_t size, int64_t *from, int64_t *to)
{
    int64_t begin = o * stride - pad;
    int64_t end = begin + kernel;
    *from = begin < 0 ? 0 : begin;
    *to = end > size ? size : end;
}

#endif
