/*
 * Resizing pictures on raw NHWC memory, as TensorFlow 2 does it: centres of
 * pixels at halves, no antialiasing. Where an output pixel lies among the
 * input's is computed in f32, in TensorFlow's order, for every dtype: the
 * nearest pixel is then the same one, ties of rounding included.
 *
 * Plain C (ref/ref_resize.c), one order of operations, no libm. Zero pictures
 * and channels are legal; pictures have at least one pixel.
 */
#ifndef LS__KERNELS_RESIZE_H
#define LS__KERNELS_RESIZE_H

#include <lockstep/tensor.h>

typedef struct ls__resize_shape {
    int64_t n, h, w, c;
    int64_t oh, ow;
} ls__resize_shape;

/* Along one axis: output pixel i of `out` lies `part` of the way from input
 * pixel `low` to `high`, both inside 0 .. in - 1. */
typedef struct ls__between {
    int64_t low, high;
    float part;
} ls__between;
ls__between ls__resize_between(int64_t i, int64_t in, int64_t out);

/* The input pixel that covers the centre of output pixel i. */
int64_t ls__resize_nearest(int64_t i, int64_t in, int64_t out);

/* Bytes of scratch that the two below want. */
size_t ls__resize_scratch(const ls__resize_shape *s, ls_dtype to);

/* x [n, h, w, c] of `from` (f32, f64, i32, i64, u8) -> y [n, oh, ow, c] of f64
 * when `from` is f64, else of f32. Rows are interpolated first, then columns. */
void ls__resize_bilinear(const ls__resize_shape *s, ls_dtype from, const void *x, void *y,
                         void *scratch);

/* The transpose: dy [n, oh, ow, c] -> dx [n, h, w, c], both of `dtype` (f32,
 * f64). dx = 0, then each dy adds its share to four pixels, in row-major order. */
void ls__resize_bilinear_back(const ls__resize_shape *s, ls_dtype dtype, const void *dy, void *dx,
                              void *scratch);

#endif
