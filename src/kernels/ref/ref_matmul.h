/* Matrix multiplication in plain C (ref_matmul.c): the oracle of the fast
 * kernels, and what computes f64 and builds without oneDNN. The shape is as in
 * kernels/matmul.h, with lda, ldb and ldc filled in. */
#ifndef LS__KERNELS_REF_MATMUL_H
#define LS__KERNELS_REF_MATMUL_H

#include "kernels/matmul.h"

void ls__ref_matmul_f32(const ls__matmul_shape *s, const float *a, const float *b, float *c);
void ls__ref_matmul_f64(const ls__matmul_shape *s, const double *a, const double *b, double *c);

#endif
