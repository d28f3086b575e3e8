/*
 * Batch and layer normalisation of [rows, cols].
 *
 * Batch normalisation has statistics per column, layer normalisation per row;
 * rstd is 1 / sqrt(variance + epsilon), the variance divided by the count. The
 * mean is made first and the variance around it, so that a variance that is
 * tiny beside the mean survives.
 */
#ifndef LS__KERNELS_NORM_H
#define LS__KERNELS_NORM_H

#include <stdint.h>

#include "kernels/isa_select.h"
#include "kernels/reduce.h"

/* One list of the kernels: X(name, parameters with T the element type). */
#define LS__NORM_LIST(X, T)                                                                        \
    /* Of no rows: zeros. */                                                                       \
    X(batch_stats, (const T *x, T *mean, T *variance, int64_t rows, int64_t cols))                 \
    /* y = (x - mean) rstd scale + offset; all but x per column */                                 \
    X(batch_apply, (const T *x, const T *mean, const T *rstd, const T *scale, const T *offset,     \
                    T *y, int64_t rows, int64_t cols))                                             \
    /* The statistics depend on x. */                                                              \
    X(batch_grad, (const T *x, const T *dy, const T *mean, const T *rstd, const T *scale, T *dx,   \
                   T *dscale, T *doffset, int64_t rows, int64_t cols))                             \
    /* mean and rstd: one per row */                                                               \
    X(layer, (const T *x, const T *scale, const T *offset, T epsilon, T *y, T *mean, T *rstd,      \
              int64_t rows, int64_t cols))                                                         \
    X(layer_grad, (const T *x, const T *dy, const T *mean, const T *rstd, const T *scale, T *dx,   \
                   T *dscale, T *doffset, int64_t rows, int64_t cols, T *scratch))

/* Elements of scratch memory that layer_grad wants: lanes and tree of two sums a column. */
static inline int64_t ls__norm_layer_grad_scratch(int64_t rows, int64_t cols)
{
    int64_t depth = 2;
    for (int64_t blocks = rows / LS__SUM_BLOCK; blocks; blocks /= 2)
        depth++;
    return 2 * cols * (LS__SUM_LANES + depth);
}

#define LS__NORM_F32(name, parameters) void ls__ref_norm_##name##_f32 parameters;
#define LS__NORM_F64(name, parameters) void ls__ref_norm_##name##_f64 parameters;
LS__NORM_LIST(LS__NORM_F32, float)
LS__NORM_LIST(LS__NORM_F64, double)
#undef LS__NORM_F32
#undef LS__NORM_F64

/* Fast f32; sums in the order of reduce.h. */
typedef struct ls__norm_fns {
#define LS__NORM_FIELD(name, parameters) void(*name) parameters;
    LS__NORM_LIST(LS__NORM_FIELD, float)
#undef LS__NORM_FIELD
} ls__norm_fns;

LS__ISA_TABLE(ls__norm_fns, ls__norm_table);

#endif
