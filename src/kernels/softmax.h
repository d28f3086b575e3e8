/*
 * Softmax and the losses made of it.
 *
 * Softmax works on [outer, n, inner] along the middle axis, losses on rows of n
 * classes (p: the softmax of the logits x). Everything is computed from
 * x - max(x), so that huge logits neither overflow nor lose the answer. A NaN
 * (or +inf) among a row's logits makes the row NaN.
 */
#ifndef LS__KERNELS_SOFTMAX_H
#define LS__KERNELS_SOFTMAX_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/isa_select.h"

/* Class labels as they come, i32 or i64. */
typedef struct ls__labels {
    const void *at;
    bool wide; /* i64 */
} ls__labels;

static inline int64_t ls__label(ls__labels labels, int64_t i)
{
    return labels.wide ? ((const int64_t *)labels.at)[i] : ((const int32_t *)labels.at)[i];
}

/* The first row whose label is not in 0 .. n - 1, or -1. Asked before the
 * kernels below, which trust their labels. */
int64_t ls__labels_check(ls__labels labels, int64_t rows, int64_t n);

/* One list of the kernels: X(name, parameters with T the element type). */
#define LS__SOFTMAX_LIST(X, T)                                                                     \
    X(softmax, (bool log, const T *x, T *y, int64_t outer, int64_t n, int64_t inner))              \
    /* softmax: dx = y (dy - sum(y dy)); log: dx = dy - exp(y) sum(dy) */                          \
    X(softmax_grad,                                                                                \
      (bool log, const T *y, const T *dy, T *dx, int64_t outer, int64_t n, int64_t inner))         \
    /* loss = -log p[label] */                                                                     \
    X(sparse_xent, (const T *x, ls__labels labels, T *loss, T *p, int64_t rows, int64_t n))        \
    /* dx = (p - onehot(label)) dloss */                                                           \
    X(sparse_xent_grad,                                                                            \
      (const T *p, ls__labels labels, const T *dloss, T *dx, int64_t rows, int64_t n))             \
    /* loss = -sum(t log p), where t = 0 counts nothing */                                         \
    X(xent, (const T *x, const T *t, T *loss, T *p, int64_t rows, int64_t n))                      \
    /* dx = (p sum(t) - t) dloss */                                                                \
    X(xent_grad, (const T *p, const T *t, const T *dloss, T *dx, int64_t rows, int64_t n))         \
    /* a loss and its gradient at once, the same bits; p is never stored */                        \
    X(sparse_xent_both, (const T *x, ls__labels labels, const T *dloss, T *loss, T *dx,            \
                         int64_t rows, int64_t n))                                                 \
    X(xent_both, (const T *x, const T *t, const T *dloss, T *loss, T *dx, int64_t rows,            \
                  int64_t n, T *scratch)) /* n elements */                                         \
    /* y = max(x, 0) - x t + log(1 + exp(-|x|)) */                                                 \
    X(sigmoid_xent, (const T *x, const T *t, T *y, int64_t n))                                     \
    /* y = mean((a - b)^2) of each row */                                                          \
    X(mse, (const T *a, const T *b, T *y, int64_t rows, int64_t n))

#define LS__SOFTMAX_F32(name, parameters) void ls__ref_##name##_f32 parameters;
#define LS__SOFTMAX_F64(name, parameters) void ls__ref_##name##_f64 parameters;
LS__SOFTMAX_LIST(LS__SOFTMAX_F32, float)
LS__SOFTMAX_LIST(LS__SOFTMAX_F64, double)
#undef LS__SOFTMAX_F32
#undef LS__SOFTMAX_F64

/* Fast f32. */
typedef struct ls__softmax_fns {
#define LS__SOFTMAX_FIELD(name, parameters) void(*name) parameters;
    LS__SOFTMAX_LIST(LS__SOFTMAX_FIELD, float)
#undef LS__SOFTMAX_FIELD
} ls__softmax_fns;

LS__ISA_TABLE(ls__softmax_fns, ls__softmax_table);

#endif
