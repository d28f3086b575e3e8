/*
 * Attention: y = softmax(scale q k^T) v for a batch of heads, q [t, d],
 * k [s, d], v [s, dv]. Causal (t = s): row i sees rows 0 .. i.
 *
 * The forward pass leaves lse = log sum exp of each row of scores; with it the
 * backward pass makes the probabilities again, block by block, so that no t x s
 * matrix outlives a block of rows. A row that sees nothing (s = 0) gives zeros.
 */
#ifndef LS__KERNELS_ATTENTION_H
#define LS__KERNELS_ATTENTION_H

#include <stdbool.h>
#include <stdint.h>

#include <lockstep/status.h>

#include "kernels/isa_select.h"

typedef struct ls__attention_shape {
    int64_t batch, t, s, d, dv;
    bool causal;
    double scale;
} ls__attention_shape;

/* Query rows at a time of cpu/attention.c; of cpu/attention_blocks.c, and the keys that
 * its backward pass takes at a time. */
#define LS__ATTENTION_BLOCK 64
#define LS__ATTENTION_LANES 32
#define LS__ATTENTION_CHUNK 64

/* Elements of scratch memory that a call wants, forward and backward alike: a
 * row of scores for ref/; else what either of the fast kernels draws. */
static inline int64_t ls__ref_attention_scratch(const ls__attention_shape *a)
{
    return a->s;
}

static inline int64_t ls__attention_scratch(const ls__attention_shape *a)
{
    int64_t rows = a->t < LS__ATTENTION_BLOCK ? a->t : LS__ATTENTION_BLOCK;
    int64_t plain = rows * a->d + a->s * (2 * rows + (a->d > a->dv ? a->d : a->dv));
    int64_t scores = a->s + 8 > 2 * LS__ATTENTION_CHUNK ? a->s + 8 : 2 * LS__ATTENTION_CHUNK;
    int64_t blocks = LS__ATTENTION_LANES * (a->d + a->dv + scores);
    return plain > blocks ? plain : blocks;
}

/* The same over heads that lie side by side, as one product makes them: x is
 * [batch, t, 3, heads, d], of queries, keys and values, and y [batch, t, heads, d]; lse is
 * [batch, heads, t]. shape->batch counts without the heads; s = t and dv = d. The bits are
 * those of the heads taken apart. */
#define LS__ATTENTION_QKV_LIST(X)                                                                  \
    X(attention_qkv, (const ls__attention_shape *shape, int64_t heads, const float *x, float *y,   \
                      float *lse, float *scratch))                                                 \
    X(attention_qkv_grad,                                                                          \
      (const ls__attention_shape *shape, int64_t heads, const float *x, const float *dy,           \
       const float *y, const float *lse, float *dx, float *scratch))

/* There a head is taken apart where a kernel wants that: q, k, v, dy, y and gradients. */
static inline int64_t ls__attention_qkv_scratch(const ls__attention_shape *a)
{
    return ls__attention_scratch(a) + 8 * a->t * a->d;
}

/* One list of the kernels: X(name, parameters with T the element type). */
#define LS__ATTENTION_LIST(X, T)                                                                   \
    X(attention, (const ls__attention_shape *shape, const T *q, const T *k, const T *v, T *y,      \
                  T *lse, T *scratch))                                                             \
    X(attention_grad, (const ls__attention_shape *shape, const T *q, const T *k, const T *v,       \
                       const T *dy, const T *y, const T *lse, T *dq, T *dk, T *dv, T *scratch))

#define LS__ATTENTION_F32(name, parameters) void ls__ref_##name##_f32 parameters;
#define LS__ATTENTION_F64(name, parameters) void ls__ref_##name##_f64 parameters;
LS__ATTENTION_LIST(LS__ATTENTION_F32, float)
LS__ATTENTION_LIST(LS__ATTENTION_F64, double)
#undef LS__ATTENTION_F32
#undef LS__ATTENTION_F64

/* Fast f32: in AVX-512 of its own, else on the matrix kernels of matmul.h, whose failure
 * they return. The two add up in different orders. */
typedef struct ls__attention_fns {
#define LS__ATTENTION_FIELD(name, parameters) ls_status(*name) parameters;
    LS__ATTENTION_LIST(LS__ATTENTION_FIELD, float)
    LS__ATTENTION_QKV_LIST(LS__ATTENTION_FIELD)
#undef LS__ATTENTION_FIELD
} ls__attention_fns;

LS__ISA_TABLE(ls__attention_fns, ls__attention_table);

#endif
