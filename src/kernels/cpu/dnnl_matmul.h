/* Matrix multiplication by oneDNN, called by kernels/matmul.c only; shapes are
 * checked, completed and not empty. */
#ifndef LS__KERNELS_CPU_DNNL_MATMUL_H
#define LS__KERNELS_CPU_DNNL_MATMUL_H

#include "kernels/matmul.h"

struct ls__dnnl_plan;

/* dnnl_sgemm once per matrix of the batch. */
ls_status ls__dnnl_sgemm(const ls__matmul_shape *shape, const float *a, const float *b, float *c);

/* A reference to the plan of the matmul primitive. With `pack_b` (batch 1, A not
 * transposed) B may be wanted in another layout. LS_OK with *out NULL: oneDNN
 * has no kernel for the shape. */
ls_status ls__dnnl_matmul_plan(const ls__matmul_shape *shape, bool pack_b,
                               struct ls__dnnl_plan **out);

#endif
