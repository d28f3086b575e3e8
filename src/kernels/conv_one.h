/*
 * Image by image: 3x3 convolution of one input channel, NHWC, output channels a
 * multiple of 16. NULL where the instruction set has no kernel.
 */
#ifndef LS__KERNELS_CONV_ONE_H
#define LS__KERNELS_CONV_ONE_H

#include "kernels/conv.h"
#include "kernels/isa_select.h"

/* An image with its padding, so that the loops meet no border. */
typedef struct ls__conv_frame {
    int64_t h, w;
    float *data;
} ls__conv_frame;

typedef struct ls__conv_one {
    /* `bias` is read if s->bias; see conv.h. */
    void (*forward)(const ls__conv_shape *s, const ls__conv_frame *f, const float *w,
                    const float *bias, float *y);
    /* Adds to dw. */
    void (*weights)(const ls__conv_shape *s, const ls__conv_frame *f, const float *dy, float *dw);
} ls__conv_one;

LS__ISA_TABLE(ls__conv_one, ls__conv_one_table);

#endif
