/*
 * Fast f32 softmax and losses, built once per instruction set. Along the last
 * axis a row is taken at a time, along another axis a strip of neighbouring
 * columns. Invariant: sums are made in a fixed order (16 lanes along a row, one
 * after another down a column), so bits depend on the values alone.
 */
#include "kernels/softmax.h"
#include "kernels/cpu/softmax_row.h"
#include "kernels/isa.h"

#define STRIP 64 /* columns side by side: their maxima and sums stay in the nearest cache */

/* ---- softmax ------------------------------------------------------------------- */

/* y = exp(x - max); gives the maximum and the sum. */
static float exp_row(const float *x, float *y, int64_t n, float *sum)
{
    float max = ls__row_max(x, n);
    ls__row_exp(x, 1.0f, max, y, n);
    *sum = ls__lanes_sum(y, n);
    return max;
}

static void softmax_row(bool log, const float *x, float *y, int64_t n)
{
    float sum, max = exp_row(x, y, n, &sum);
    if (!log) {
        ls__row_scale(y, 1.0f / sum, n);
        return;
    }
    float log_sum = ls__logf(sum);
    for (int64_t i = 0; i < n; i++)
        y[i] = (x[i] - max) - log_sum;
}

/* w columns of a matrix of n rows that are `ld` apart. */
static void softmax_strip(bool log, const float *x, float *y, int64_t n, int64_t ld, int64_t w)
{
    float max[STRIP], sum[STRIP];
    for (int64_t i = 0; i < w; i++)
        max[i] = -LS__INFF, sum[i] = 0;
    for (int64_t r = 0; r < n; r++)
        for (int64_t i = 0; i < w; i++)
            max[i] = ls__larger(x[r * ld + i], max[i]);
    for (int64_t r = 0; r < n; r++)
        for (int64_t i = 0; i < w; i++) {
            float e = ls__expf(x[r * ld + i] - max[i]);
            y[r * ld + i] = e;
            sum[i] += e;
        }
    for (int64_t i = 0; i < w; i++)
        sum[i] = log ? ls__logf(sum[i]) : 1.0f / sum[i];
    for (int64_t r = 0; r < n; r++)
        for (int64_t i = 0; i < w; i++)
            y[r * ld + i] = log ? (x[r * ld + i] - max[i]) - sum[i] : y[r * ld + i] * sum[i];
}

static void softmax(bool log, const float *x, float *y, int64_t outer, int64_t n, int64_t inner)
{
    for (int64_t o = 0; o < outer; o++, x += n * inner, y += n * inner) {
        if (inner == 1)
            softmax_row(log, x, y, n);
        else
            for (int64_t i = 0; i < inner; i += STRIP)
                softmax_strip(log, x + i, y + i, n, inner, inner - i < STRIP ? inner - i : STRIP);
    }
}

/* ---- its gradient ----------------------------------------------------------------- */

static void grad_row(bool log, const float *y, const float *dy, float *dx, int64_t n)
{
    if (!log) {
        float sum = ls__row_dot(y, dy, n);
        for (int64_t i = 0; i < n; i++)
            dx[i] = y[i] * (dy[i] - sum);
        return;
    }
    float sum = ls__lanes_sum(dy, n);
    ls__row_exp(y, 1.0f, 0.0f, dx, n);
    for (int64_t i = 0; i < n; i++)
        dx[i] = dy[i] - dx[i] * sum;
}

static void grad_strip(bool log, const float *y, const float *dy, float *dx, int64_t n, int64_t ld,
                       int64_t w)
{
    float sum[STRIP] = { 0 };
    for (int64_t r = 0; r < n; r++)
        for (int64_t i = 0; i < w; i++)
            sum[i] += log ? dy[r * ld + i] : y[r * ld + i] * dy[r * ld + i];
    for (int64_t r = 0; r < n; r++)
        if (log)
            for (int64_t i = 0; i < w; i++)
                dx[r * ld + i] = dy[r * ld + i] - ls__expf(y[r * ld + i]) * sum[i];
        else
            for (int64_t i = 0; i < w; i++)
                dx[r * ld + i] = y[r * ld + i] * (dy[r * ld + i] - sum[i]);
}

static void softmax_grad(bool log, const float *y, const float *dy, float *dx, int64_t outer,
                         int64_t n, int64_t inner)
{
    for (int64_t o = 0; o < outer; o++, y += n * inner, dy += n * inner, dx += n * inner) {
        if (inner == 1)
            grad_row(log, y, dy, dx, n);
        else
            for (int64_t i = 0; i < inner; i += STRIP)
                grad_strip(log, y + i, dy + i, dx + i, n, inner,
                           inner - i < STRIP ? inner - i : STRIP);
    }
}

/* ---- losses ------------------------------------------------------------------------- */

static void sparse_xent(const float *x, ls__labels labels, float *loss, float *p, int64_t rows,
                        int64_t n)
{
    for (int64_t r = 0; r < rows; r++, x += n, p += n) {
        float sum, max = exp_row(x, p, n, &sum);
        loss[r] = ls__logf(sum) - (x[ls__label(labels, r)] - max);
        ls__row_scale(p, 1.0f / sum, n);
    }
}

static void sparse_xent_grad(const float *p, ls__labels labels, const float *dloss, float *dx,
                             int64_t rows, int64_t n)
{
    for (int64_t r = 0; r < rows; r++, p += n, dx += n) {
        int64_t label = ls__label(labels, r);
        float g = dloss[r];
        for (int64_t k = 0; k < n; k++)
            dx[k] = p[k] * g;
        dx[label] = (p[label] - 1.0f) * g;
    }
}

static void xent(const float *x, const float *t, float *loss, float *p, int64_t rows, int64_t n)
{
    for (int64_t r = 0; r < rows; r++, x += n, t += n, p += n) {
        /* p first holds the terms of the loss, then the probabilities. */
        float max = ls__row_max(x, n);
        ls__row_exp(x, 1.0f, max, p, n);
        float sum = ls__lanes_sum(p, n), log_sum = ls__logf(sum);
        for (int64_t k = 0; k < n; k++)
            p[k] = t[k] != 0.0f ? t[k] * (log_sum - (x[k] - max)) : 0.0f;
        loss[r] = ls__lanes_sum(p, n);
        ls__row_exp(x, 1.0f, max, p, n);
        ls__row_scale(p, 1.0f / sum, n);
    }
}

static void xent_grad(const float *p, const float *t, const float *dloss, float *dx, int64_t rows,
                      int64_t n)
{
    for (int64_t r = 0; r < rows; r++, p += n, t += n, dx += n) {
        float sum = ls__lanes_sum(t, n), g = dloss[r];
        for (int64_t k = 0; k < n; k++)
            dx[k] = (p[k] * sum - t[k]) * g;
    }
}

/* A row of dx holds the exponentials while it is in the nearest cache. What is
 * computed, and in which order, is what sparse_xent and sparse_xent_grad do. */
static void sparse_xent_both(const float *x, ls__labels labels, const float *dloss, float *loss,
                             float *dx, int64_t rows, int64_t n)
{
    for (int64_t r = 0; r < rows; r++, x += n, dx += n) {
        int64_t label = ls__label(labels, r);
        float sum, max = exp_row(x, dx, n, &sum), g = dloss[r], inverse = 1.0f / sum;
        loss[r] = ls__logf(sum) - (x[label] - max);
        float right = dx[label] * inverse;
        for (int64_t k = 0; k < n; k++)
            dx[k] = dx[k] * inverse * g;
        dx[label] = (right - 1.0f) * g;
    }
}

/* The same of xent and xent_grad; the terms of the loss are in `terms`, so that
 * the exponentials are made once. */
static void xent_both(const float *x, const float *t, const float *dloss, float *loss, float *dx,
                      int64_t rows, int64_t n, float *terms)
{
    for (int64_t r = 0; r < rows; r++, x += n, t += n, dx += n) {
        float sum, max = exp_row(x, dx, n, &sum), log_sum = ls__logf(sum);
        for (int64_t k = 0; k < n; k++)
            terms[k] = t[k] != 0.0f ? t[k] * (log_sum - (x[k] - max)) : 0.0f;
        loss[r] = ls__lanes_sum(terms, n);
        float inverse = 1.0f / sum, weight = ls__lanes_sum(t, n), g = dloss[r];
        for (int64_t k = 0; k < n; k++)
            dx[k] = (dx[k] * inverse * weight - t[k]) * g;
    }
}

static void sigmoid_xent(const float *x, const float *t, float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float v = x[i], positive = v > 0.0f ? v : 0.0f;
        y[i] = (positive - v * t[i]) + ls__log1pf(ls__expf(-__builtin_fabsf(v)));
    }
}

static void mse(const float *a, const float *b, float *y, int64_t rows, int64_t n)
{
    for (int64_t r = 0; r < rows; r++, a += n, b += n) {
        ls__lanes sum = { 0 };
        int64_t i = 0;
        for (; i + LS__SUM_LANES <= n; i += LS__SUM_LANES)
            LS__EACH_PART(p)
            {
                ls__part d = LS__PART_OF(a + i, p) - LS__PART_OF(b + i, p);
                sum.at[p] += d * d;
            }
        float rest[LS__SUM_LANES] = { 0 };
        for (int64_t j = 0; j < n - i; j++)
            rest[j] = (a[i + j] - b[i + j]) * (a[i + j] - b[i + j]);
        ls__lanes_add(&sum, rest);
        y[r] = ls__lanes_fold(&sum) / (float)n;
    }
}

const ls__softmax_fns LS__ISA(ls__softmax_table) = {
    softmax,   softmax_grad,     sparse_xent, sparse_xent_grad, xent,
    xent_grad, sparse_xent_both, xent_both,   sigmoid_xent,     mse,
};
