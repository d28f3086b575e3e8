/*
 * Matrix multiplication for float and double, blocked for the cache. Invariant:
 * every element of C is one sum in ascending order of k, as in the textbook
 * loop; blocking changes which element is worked on next, never the order
 * within one. k = 0 leaves zeros.
 */
#include "kernels/ref/ref_matmul.h"

#include <string.h>

/* A block of B is COLUMNS x DEPTH: 32 KiB of doubles, small enough for any stack. */
enum { COLUMNS = 128, DEPTH = 32 };

static inline int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

#define DEFINE_MATMUL(T, suffix)                                                                   \
    /* Lays B's block [p0, p1) x [j0, j1) out with dense columns, so that both */                  \
    /* storage orders meet the same inner loop. */                                                 \
    static void gather_b_##suffix(const ls__matmul_shape *s, const T *b, int64_t p0, int64_t p1,   \
                                  int64_t j0, int64_t j1, T *block)                                \
    {                                                                                              \
        for (int64_t p = p0; p < p1; p++)                                                          \
            for (int64_t j = j0; j < j1; j++)                                                      \
                block[(p - p0) * COLUMNS + j - j0] =                                               \
                    s->tb ? b[j * s->ldb + p] : b[p * s->ldb + j];                                 \
    }                                                                                              \
                                                                                                   \
    static void one_matrix_##suffix(const ls__matmul_shape *s, const T *a, const T *b, T *c)       \
    {                                                                                              \
        T block[DEPTH * COLUMNS];                                                                  \
        for (int64_t i = 0; i < s->m; i++)                                                         \
            memset(c + i * s->ldc, 0, (size_t)s->n * sizeof(T));                                   \
        for (int64_t j0 = 0; j0 < s->n; j0 += COLUMNS)                                             \
            for (int64_t p0 = 0; p0 < s->k; p0 += DEPTH) {                                         \
                int64_t j1 = least(s->n, j0 + COLUMNS), p1 = least(s->k, p0 + DEPTH);              \
                gather_b_##suffix(s, b, p0, p1, j0, j1, block);                                    \
                for (int64_t i = 0; i < s->m; i++)                                                 \
                    for (int64_t p = p0; p < p1; p++) {                                            \
                        T left = s->ta ? a[p * s->lda + i] : a[i * s->lda + p];                    \
                        const T *right = block + (p - p0) * COLUMNS;                               \
                        T *out = c + i * s->ldc + j0;                                              \
                        for (int64_t j = 0; j < j1 - j0; j++)                                      \
                            out[j] += left * right[j];                                             \
                    }                                                                              \
            }                                                                                      \
    }                                                                                              \
                                                                                                   \
    void ls__ref_matmul_##suffix(const ls__matmul_shape *s, const T *a, const T *b, T *c)          \
    {                                                                                              \
        for (int64_t i = 0; i < s->batch; i++)                                                     \
            one_matrix_##suffix(s, a + i * s->stride_a, b + i * s->stride_b, c + i * s->stride_c); \
    }

DEFINE_MATMUL(float, f32)
DEFINE_MATMUL(double, f64)
