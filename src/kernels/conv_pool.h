/*
 * relu(max_pool(conv(x, w) + bias)) in one pass over the image, and the way back to w and bias: for the
 * first layer of a network on grey images, whose convolution is many times as large as what it is
 * made of and what is left of it. It never reaches memory.
 *
 * One input channel, a square filter of 3 or 5, stride 1, any padding; the pool is 2 x 2 with stride 2,
 * and drops an odd last row or column. NHWC, HWIO, f32. With `block` what is pooled, and its gradient, are in
 * blocks of 16 channels, which are then a multiple of that: [n, oc / 16, oh / 2, ow / 2, 16].
 *
 * Per 16 channels of a pooled number three words of `marks` say where it came from: a bit for each
 * channel, set if the winner was on the right, if it was below, and if it is greater than 0 (else relu
 * lets no gradient through).
 *
 * Bits: a sum runs over the taps in order, by fma, and the bias is added behind it, as in the
 * convolution by itself (conv_one.c). Of sums that differ, but not any more with the bias, the larger
 * one wins here and the first one there: the numbers are the same, the place may be another. Gradients
 * are summed over the windows of an image, then over the images of a part (an eighth of all, one at least), then over
 * parts, whoever makes them (os/help.h).
 */
#ifndef LS__KERNELS_CONV_POOL_H
#define LS__KERNELS_CONV_POOL_H

#include "kernels/conv.h"
#include "kernels/isa_select.h"

/* Whether this processor has kernels for it; elsewhere it is plain C, and slow. */
bool ls__conv_pool_fits(const ls__conv_shape *s);

/* Whether there is anything at all that computes it. */
bool ls__conv_pool_can(const ls__conv_shape *s);

static inline int64_t ls__conv_pool_groups(int64_t channels)
{
    return (channels + 15) / 16;
}

enum { LS__CONV_POOL_RIGHT, LS__CONV_POOL_BELOW, LS__CONV_POOL_PASSES, LS__CONV_POOL_WORDS };

/* Floats of scratch memory for either way. */
int64_t ls__conv_pool_scratch(const ls__conv_shape *s);

enum { LS__CONV_POOL_BLOCK = 16 };

/* p [n, oh / 2, ow / 2, oc], or in blocks; marks [n, oh / 2, ow / 2, groups, words]. */
void ls__conv_pool_forward(const ls__conv_shape *s, bool block, const float *x, const float *w,
                           const float *bias, float *p, uint16_t *marks, float *scratch);
void ls__conv_pool_backward(const ls__conv_shape *s, bool block, const float *x, const float *dp,
                            const uint16_t *marks, float *dw, float *dbias, float *scratch);

/* ---- one image, as kernels see it ------------------------------------------------------------ */

typedef struct ls__conv_pool_image {
    int64_t row;       /* floats from one row of the frame to the next */
    int64_t k;         /* side of the filter */
    int64_t oc;        /* channels */
    int64_t ph, pw;    /* pooled */
    int64_t pixel;     /* floats from a pooled pixel to the next... */
    int64_t group;     /* ...and from 16 channels of it to the next 16 */
    const float *data; /* the image with its padding; some floats behind it may be read */
} ls__conv_pool_image;

typedef struct ls__conv_pool_kernels {
    void (*forward)(const ls__conv_pool_image *i, const float *w, const float *bias, float *p,
                    uint16_t *marks);
    /* Adds to dw and dbias. */
    void (*backward)(const ls__conv_pool_image *i, const float *dp, const uint16_t *marks,
                     float *dw, float *dbias);
} ls__conv_pool_kernels;

extern const ls__conv_pool_kernels ls__conv_pool_reference; /* ref_conv_pool.c */
LS__ISA_TABLE(ls__conv_pool_kernels, ls__conv_pool_table);  /* NULLs: none */

#endif
