/*
 * The pieces of which attention_blocks.c is made, in AVX-512 registers. Two kinds of
 * tiles, 8 rows of two vectors each:
 *
 *   scores   8 keys by 32 queries: the lanes are queries, so that maxima and sums over
 *            keys go down the lanes, and keys are read as they lie, one number at a time
 *   product  8 rows by 32 columns of x b: the lanes are columns, so that results are
 *            written as they lie; x is read one number at a time, by rows or by columns
 *
 * Invariant: each element of a tile is one chain of fused multiply-adds in the order of
 * what is summed over, whatever its place.
 */
#ifndef LS__KERNELS_CPU_ATTENTION_TILE_H
#define LS__KERNELS_CPU_ATTENTION_TILE_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernels/cpu/vecmath.h"

enum { LANES = 16, KEYS = 8, QUERIES = 2 * LANES };

#define INLINE static inline __attribute__((always_inline))

/* exp(x) for x that is not much above 0 (a score minus the largest), by the polynomial
 * of ls__expf; one instruction scales by the power of two. NaN stays. */
INLINE __m512 tile_exp(__m512 x)
{
    const __m512 round = _mm512_set1_ps(LS__ROUND);
    x = _mm512_max_ps(_mm512_set1_ps(-150.0f), x);
    __m512 k = _mm512_sub_ps(_mm512_fmadd_ps(x, _mm512_set1_ps(1.44269502f), round), round);
    __m512 r = _mm512_fmadd_ps(k, _mm512_set1_ps(-LS__LN2_HI), x);
    r = _mm512_fmadd_ps(k, _mm512_set1_ps(-LS__LN2_LO), r);
    __m512 p = _mm512_set1_ps(0.00138368947f);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.00836925302f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.0416680872f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.166665152f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.49999994f));
    p = _mm512_add_ps(_mm512_fmadd_ps(_mm512_mul_ps(p, r), r, r), _mm512_set1_ps(1.0f));
    return _mm512_scalef_ps(p, k);
}

/* sum[r][v] = sum over c of key[r][c] t[c][v], t being QUERIES wide: 8 keys, `wide`
 * vectors of queries. */
INLINE void tile_scores(const float *const key[KEYS], const float *t, int64_t d, int wide,
                        __m512 sum[KEYS][2])
{
    for (int r = 0; r < KEYS; r++)
        for (int v = 0; v < wide; v++)
            sum[r][v] = _mm512_setzero_ps();
    for (int64_t c = 0; c < d; c++, t += QUERIES) {
        __m512 column[2];
        for (int v = 0; v < wide; v++)
            column[v] = _mm512_loadu_ps(t + v * LANES);
        for (int r = 0; r < KEYS; r++) {
            __m512 x = _mm512_set1_ps(key[r][c]);
            for (int v = 0; v < wide; v++)
                sum[r][v] = _mm512_fmadd_ps(x, column[v], sum[r][v]);
        }
    }
}

/* A product z (+)= x b, z and b with rows of `cols` at their strides; x's element (r, m)
 * is x[r row + m step]. */
typedef struct product {
    const float *x, *b;
    int64_t row, step;   /* of x: one of them is 1, the other QUERIES */
    int64_t b_stride, n; /* rows of b: what is summed over */
    float *z;
    int64_t z_stride, cols;
    int rows;            /* at most 8; x has 8 in any case */
    bool add;            /* to what z holds */
    const float *factor; /* or NULL; each row of the result times factor[row] */
} product;

/* `wide` vectors of columns from `at` on; of the only one, `mask`, if it is not whole. */
INLINE void tile_product(const product *p, int64_t row, int64_t step, int64_t at, int wide,
                         bool whole, __mmask16 mask)
{
    __m512 sum[KEYS][2];
    float *z = p->z + at;
    for (int r = 0; r < KEYS; r++) {
        __mmask16 held = p->add && r < p->rows ? mask : 0; /* no mask, no access */
        for (int v = 0; v < wide; v++)
            sum[r][v] = _mm512_maskz_loadu_ps(held, z + r * p->z_stride + v * LANES);
    }
    const float *x = p->x, *b = p->b + at;
    for (int64_t m = 0; m < p->n; m++, x += step, b += p->b_stride) {
        __m512 line[2];
        for (int v = 0; v < wide; v++)
            line[v] = whole ? _mm512_loadu_ps(b + v * LANES) : _mm512_maskz_loadu_ps(mask, b);
        for (int r = 0; r < KEYS; r++) {
            __m512 factor = _mm512_set1_ps(x[r * row]);
            for (int v = 0; v < wide; v++)
                sum[r][v] = _mm512_fmadd_ps(factor, line[v], sum[r][v]);
        }
    }
    for (int r = 0; r < KEYS; r++) {
        __mmask16 held = r < p->rows ? mask : 0;
        for (int v = 0; v < wide; v++) {
            if (p->factor)
                sum[r][v] = _mm512_mul_ps(sum[r][v], _mm512_set1_ps(p->factor[r]));
            _mm512_mask_storeu_ps(z + r * p->z_stride + v * LANES, held, sum[r][v]);
        }
    }
}

INLINE void product_columns(const product *p, int64_t row, int64_t step)
{
    int64_t at = 0;
    for (; at + 2 * LANES <= p->cols; at += 2 * LANES)
        tile_product(p, row, step, at, 2, true, 0xffff);
    if (at + LANES <= p->cols) {
        tile_product(p, row, step, at, 1, true, 0xffff);
        at += LANES;
    }
    if (at < p->cols)
        tile_product(p, row, step, at, 1, false, (__mmask16)((1u << (p->cols - at)) - 1));
}

/* x by rows, and by columns: QUERIES apart are the keys of the scores. */
static void product_by_key(const product *p)
{
    product_columns(p, QUERIES, 1);
}

static void product_by_query(const product *p)
{
    product_columns(p, 1, QUERIES);
}

/* ---- transposing ----------------------------------------------------------------------- */

/* Four columns of 16 rows, from `at` on; row[i] are the rows. */
INLINE void transpose_four(const float *const row[LANES], int64_t at, __m512 out[4])
{
    __m512 x[4];
    for (int r = 0; r < 4; r++) {
        x[r] = _mm512_castps128_ps512(_mm_loadu_ps(row[r] + at));
        x[r] = _mm512_mask_broadcast_f32x4(x[r], 0x00f0, _mm_loadu_ps(row[r + 4] + at));
        x[r] = _mm512_mask_broadcast_f32x4(x[r], 0x0f00, _mm_loadu_ps(row[r + 8] + at));
        x[r] = _mm512_mask_broadcast_f32x4(x[r], 0xf000, _mm_loadu_ps(row[r + 12] + at));
    }
    __m512d a = _mm512_castps_pd(_mm512_unpacklo_ps(x[0], x[1]));
    __m512d b = _mm512_castps_pd(_mm512_unpacklo_ps(x[2], x[3]));
    __m512d c = _mm512_castps_pd(_mm512_unpackhi_ps(x[0], x[1]));
    __m512d d = _mm512_castps_pd(_mm512_unpackhi_ps(x[2], x[3]));
    out[0] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
    out[1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
    out[2] = _mm512_castpd_ps(_mm512_unpacklo_pd(c, d));
    out[3] = _mm512_castpd_ps(_mm512_unpackhi_pd(c, d));
}

/* Up to QUERIES rows of `cols` to columns of QUERIES, times factor. Where there are
 * fewer rows the last stands for those that lack: nobody looks at what comes of it. */
static void transpose_rows(const float *x, int64_t stride, int rows, int64_t cols, float factor,
                           float *to)
{
    for (int half = 0; half < QUERIES && half < rows; half += LANES, to += LANES) {
        const float *row[LANES];
        int64_t c = 0;
        for (int i = 0; i < LANES; i++)
            row[i] = x + (half + i < rows ? half + i : rows - 1) * stride;
        for (; c + 4 <= cols; c += 4) {
            __m512 out[4];
            transpose_four(row, c, out);
            for (int r = 0; r < 4; r++)
                _mm512_storeu_ps(to + (c + r) * QUERIES,
                                 _mm512_mul_ps(out[r], _mm512_set1_ps(factor)));
        }
        for (; c < cols; c++)
            for (int i = 0; i < LANES; i++)
                to[c * QUERIES + i] = row[i][c] * factor;
    }
}

/* Sixteen lanes of sums for each of 16 rows; gives each row's sum, as a lane. */
INLINE __m512 fold_rows(const float lanes[LANES][LANES])
{
    const float *row[LANES];
    __m512 sum[LANES / 4];
    for (int i = 0; i < LANES; i++)
        row[i] = lanes[i];
    for (int c = 0; c < LANES / 4; c++) {
        __m512 out[4];
        transpose_four(row, c * 4, out);
        sum[c] = _mm512_add_ps(_mm512_add_ps(out[0], out[1]), _mm512_add_ps(out[2], out[3]));
    }
    return _mm512_add_ps(_mm512_add_ps(sum[0], sum[1]), _mm512_add_ps(sum[2], sum[3]));
}

#endif
