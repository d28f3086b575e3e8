/*
 * One row of f32 under a softmax, for the vector kernels of softmax and
 * attention. Rows run in pieces of 16; the last is filled up, so that an
 * element's bits do not depend on its place.
 */
#ifndef LS__KERNELS_CPU_SOFTMAX_ROW_H
#define LS__KERNELS_CPU_SOFTMAX_ROW_H

#include "kernels/cpu/reduce_lanes.h"
#include "kernels/cpu/vecmath.h"

#define LS__ROW_PIECE 16

static inline float ls__larger(float x, float best)
{
    return x > best || x != x ? x : best;
}

/* best = x where x is larger or NaN, lane by lane. */
typedef int32_t ls__part_mask __attribute__((vector_size(LS__PART * 4)));
static inline void ls__lanes_larger(ls__lanes *best, const float *from)
{
    LS__EACH_PART(p)
    {
        ls__part x = LS__PART_OF(from, p), b = best->at[p];
        ls__part_mask take = (x > b) | (x != x);
        best->at[p] = (ls__part)(((ls__part_mask)x & take) | ((ls__part_mask)b & ~take));
    }
}

/* The largest element; NaN if one is; -inf of nothing. Two chains of comparisons
 * hide each other's latency. */
static inline float ls__row_max(const float *x, int64_t n)
{
    float v[2 * LS__SUM_LANES];
    ls__lanes a, b;
    int64_t i = 0;
    LS__EACH_PART(p)
    a.at[p] = b.at[p] = (ls__part){ 0 } - LS__INFF;
    for (; i + 2 * LS__SUM_LANES <= n; i += 2 * LS__SUM_LANES) {
        ls__lanes_larger(&a, x + i);
        ls__lanes_larger(&b, x + i + LS__SUM_LANES);
    }
    if (i < n) {
        for (int j = 0; j < 2 * LS__SUM_LANES; j++)
            v[j] = -LS__INFF;
        for (int64_t j = 0; j < n - i; j++)
            v[j] = x[i + j];
        ls__lanes_larger(&a, v);
        ls__lanes_larger(&b, v + LS__SUM_LANES);
    }
    LS__EACH_PART(p)
    *(ls__part_at *)(v + p * LS__PART) = b.at[p];
    ls__lanes_larger(&a, v);
    LS__EACH_PART(p)
    *(ls__part_at *)(v + p * LS__PART) = a.at[p];
    for (int j = 0; j < 8; j++)
        v[j] = ls__larger(v[j + 8], v[j]);
    for (int j = 0; j < 4; j++)
        v[j] = ls__larger(v[j + 4], v[j]);
    return ls__larger(ls__larger(v[3], v[1]), ls__larger(v[2], v[0]));
}

/* The last n < 16 elements of a row, filled up to 16. */
static inline void ls__row_exp_rest(const float *x, float factor, float shift, float *y, int64_t n)
{
    float piece[LS__ROW_PIECE] = { 0 };
    for (int64_t j = 0; j < n; j++)
        piece[j] = x[j];
    for (int j = 0; j < LS__ROW_PIECE; j++)
        piece[j] = ls__expf(factor * piece[j] - shift);
    for (int64_t j = 0; j < n; j++)
        y[j] = piece[j];
}

/* y = exp(factor x - shift), and the same in place: two functions, so that the
 * compiler need not fear that y overlaps x. */
static inline void ls__row_exp(const float *restrict x, float factor, float shift,
                               float *restrict y, int64_t n)
{
    int64_t whole = n / LS__ROW_PIECE * LS__ROW_PIECE;
    for (int64_t i = 0; i < whole; i++)
        y[i] = ls__expf(factor * x[i] - shift);
    if (whole < n)
        ls__row_exp_rest(x + whole, factor, shift, y + whole, n - whole);
}

static inline void ls__row_exp_own(float *y, float factor, float shift, int64_t n)
{
    int64_t whole = n / LS__ROW_PIECE * LS__ROW_PIECE;
    for (int64_t i = 0; i < whole; i++)
        y[i] = ls__expf(factor * y[i] - shift);
    if (whole < n)
        ls__row_exp_rest(y + whole, factor, shift, y + whole, n - whole);
}

static inline void ls__row_scale(float *y, float factor, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] *= factor;
}

/* sum(x y), in sixteen lanes. */
static inline float ls__row_dot(const float *x, const float *y, int64_t n)
{
    ls__lanes a = { 0 };
    int64_t i = 0;
    for (; i + LS__SUM_LANES <= n; i += LS__SUM_LANES)
        LS__EACH_PART(p)
    a.at[p] += LS__PART_OF(x + i, p) * LS__PART_OF(y + i, p);
    if (i < n) {
        float rest[LS__SUM_LANES] = { 0 };
        for (int64_t j = 0; j < n - i; j++)
            rest[j] = x[i + j] * y[i + j];
        ls__lanes_add(&a, rest);
    }
    return ls__lanes_fold(&a);
}

#endif
