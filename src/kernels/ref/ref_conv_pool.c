/*
 * The reference of conv_pool.h: an image in plain C, with the order of sums and so the bits of the
 * kernels.
 */
#include "kernels/conv_pool.h"

#include <math.h>
#include <string.h>

enum { CELLS = 4 };

/* Where channel c of pooled pixel `at` is. */
static int64_t place(const ls__conv_pool_image *i, int64_t at, int64_t c)
{
    return at * i->pixel + c / 16 * i->group + c % 16;
}

static float sum_at(const ls__conv_pool_image *i, const float *corner, const float *w, int64_t c)
{
    float sum = corner[0] * w[c];
    for (int64_t t = 1; t < i->k * i->k; t++)
        sum = fmaf(corner[t / i->k * i->row + t % i->k], w[t * i->oc + c], sum);
    return sum;
}

/* The first largest; NaN if any is. */
static int winner(const float *sums, float *value)
{
    const int above = sums[1] > sums[0] ? 1 : 0, below = sums[3] > sums[2] ? 3 : 2;
    const int at = sums[below] > sums[above] ? below : above;
    *value = sums[at];
    for (int q = 0; q < CELLS; q++)
        if (isnan(sums[q]))
            *value = NAN;
    return at;
}

static void set_marks(uint16_t *marks, int64_t c, int at, bool passes)
{
    uint16_t *m = marks + c / 16 * LS__CONV_POOL_WORDS;
    const uint16_t bit = (uint16_t)(1u << c % 16);
    if (at & 1)
        m[LS__CONV_POOL_RIGHT] |= bit;
    if (at & 2)
        m[LS__CONV_POOL_BELOW] |= bit;
    if (passes)
        m[LS__CONV_POOL_PASSES] |= bit;
}

static void forward(const ls__conv_pool_image *i, const float *w, const float *bias, float *p,
                    uint16_t *marks)
{
    const int64_t words = ls__conv_pool_groups(i->oc) * LS__CONV_POOL_WORDS;
    memset(marks, 0, (size_t)(i->ph * i->pw * words) * sizeof *marks);
    for (int64_t at = 0; at < i->ph * i->pw; at++) {
        const float *corner = i->data + at / i->pw * 2 * i->row + at % i->pw * 2;
        for (int64_t c = 0; c < i->oc; c++) {
            float sums[CELLS], value;
            for (int q = 0; q < CELLS; q++)
                sums[q] = sum_at(i, corner + q / 2 * i->row + q % 2, w, c);
            const int won = winner(sums, &value);
            value += bias[c];
            set_marks(marks + at * words, c, won, value > 0);
            p[place(i, at, c)] = value <= 0 ? 0 : value;
        }
    }
}

/* Of the windows of this image; then it is added. */
static void add_sum(const ls__conv_pool_image *i, const float *dp, const uint16_t *marks,
                    int64_t tap, int64_t c, float *to)
{
    const int64_t words = ls__conv_pool_groups(i->oc) * LS__CONV_POOL_WORDS;
    float sum = 0;
    for (int64_t at = 0; at < i->ph * i->pw; at++) {
        const uint16_t *m = marks + at * words + c / 16 * LS__CONV_POOL_WORDS;
        const int bit = (int)(c % 16);
        if (!(m[LS__CONV_POOL_PASSES] >> bit & 1))
            continue;
        const int64_t y = at / i->pw * 2 + (m[LS__CONV_POOL_BELOW] >> bit & 1);
        const int64_t x = at % i->pw * 2 + (m[LS__CONV_POOL_RIGHT] >> bit & 1);
        const float g = dp[place(i, at, c)];
        sum = tap < 0 ? sum + g : fmaf(i->data[(y + tap / i->k) * i->row + x + tap % i->k], g, sum);
    }
    *to += sum;
}

static void backward(const ls__conv_pool_image *i, const float *dp, const uint16_t *marks,
                     float *dw, float *dbias)
{
    for (int64_t c = 0; c < i->oc; c++) {
        add_sum(i, dp, marks, -1, c, &dbias[c]);
        for (int64_t t = 0; t < i->k * i->k; t++)
            add_sum(i, dp, marks, t, c, &dw[t * i->oc + c]);
    }
}

const ls__conv_pool_kernels ls__conv_pool_reference = { forward, backward };
