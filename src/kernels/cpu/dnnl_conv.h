/* Convolution by oneDNN and by our own one-channel kernel, called by
 * kernels/conv.c only; shapes are checked and not empty. */
#ifndef LS__KERNELS_CPU_DNNL_CONV_H
#define LS__KERNELS_CPU_DNNL_CONV_H

#include "kernels/conv.h"

struct ls__dnnl_plan;

/* A reference to the plan of the convolution primitive; arguments in the order
 * X, W, Y, and a bias if the shape has one; relu is left to the caller. LS_OK with *out NULL: oneDNN has no kernel for the shape. */
ls_status ls__dnnl_conv_plan(const ls__conv_shape *shape, ls__conv_pass pass,
                             ls__conv_layout layout, struct ls__dnnl_plan **out);

/* Where oneDNN's Winograd convolution is faster than its direct one. */
bool ls__dnnl_conv_winograd_pays(const ls__conv_shape *shape, ls__conv_pass pass);

/* 3x3 on one input channel, output channels a multiple of 16, AVX-512
 * (dnnl_conv_one.c): oneDNN takes 20 to 70 % longer in NHWC. */
bool ls__conv_one_fits(const ls__conv_shape *shape);
ls_status ls__conv_one_run(const ls__conv_shape *shape, ls__conv_pass pass, float *x, float *w,
                           float *y, const float *bias);

#endif
