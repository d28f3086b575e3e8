/* Convolution in plain C (ref_conv.c): the oracle of the fast kernels, and what
 * computes f64 and builds without oneDNN. Shapes as in kernels/conv.h. */
#ifndef LS__KERNELS_REF_CONV_H
#define LS__KERNELS_REF_CONV_H

#include "kernels/conv.h"

void ls__ref_conv_forward_f32(const ls__conv_shape *s, const float *x, const float *w, float *y);
void ls__ref_conv_backward_data_f32(const ls__conv_shape *s, const float *dy, const float *w,
                                    float *dx);
void ls__ref_conv_backward_weights_f32(const ls__conv_shape *s, const float *x, const float *dy,
                                       float *dw);
void ls__ref_conv_forward_f64(const ls__conv_shape *s, const double *x, const double *w, double *y);
void ls__ref_conv_backward_data_f64(const ls__conv_shape *s, const double *dy, const double *w,
                                    double *dx);
void ls__ref_conv_backward_weights_f64(const ls__conv_shape *s, const double *x, const double *dy,
                                       double *dw);

#endif
