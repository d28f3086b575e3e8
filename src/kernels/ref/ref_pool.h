/* Pooling in plain C (ref_pool.c): the oracle of cpu/pool.c, and what computes
 * f64. Shapes and meaning as in kernels/pool.h. */
#ifndef LS__KERNELS_REF_POOL_H
#define LS__KERNELS_REF_POOL_H

#include "kernels/pool.h"

#define LS__REF_POOL_DECLARE(T, suffix)                                                            \
    void ls__ref_max_pool_forward_##suffix(const ls__pool_shape *s, const T *x, T *y,              \
                                           int32_t *argmax);                                       \
    void ls__ref_max_pool_backward_##suffix(const ls__pool_shape *s, const T *dy,                  \
                                            const int32_t *argmax, T *dx);                         \
    void ls__ref_max_pool_gather_##suffix(const ls__pool_shape *s, const T *x,                     \
                                          const int32_t *argmax, T *y);                            \
    void ls__ref_avg_pool_forward_##suffix(const ls__pool_shape *s, const T *x, T *y);             \
    void ls__ref_avg_pool_backward_##suffix(const ls__pool_shape *s, const T *dy, T *dx)

LS__REF_POOL_DECLARE(float, f32);
LS__REF_POOL_DECLARE(double, f64);

#endif
