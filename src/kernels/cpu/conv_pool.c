/*
 * conv_pool.h in AVX-512: a window of the pool is four sums a channel, in registers from the first tap
 * to the last; what leaves them is one number and three bits.
 *
 * Backward: of the four cells of a window one has a gradient, and which one differs from channel to
 * channel. So instead of spreading gradients over an image that is mostly zeros, the pixel that a tap
 * meets is picked for each channel: a permutation of the few pixels around the window, by an index that
 * is made of the channel's bits. That is 9 permutations and 9 fmas for 16 channels of a 3 x 3 filter,
 * where the image would take 36 fmas, and its own making.
 *
 * Skipped channels (that relu does not let through) add a product with +0: sums that begin with +0 stay
 * as they are, unless the pixel is not finite; so those are left out by a mask.
 */
#include "kernels/conv_pool.h"

#include <float.h>

#include "kernels/isa.h"

#if defined(__AVX512F__)
#include "kernels/cpu/pool_window.h"

enum { LANES = VEC, CELLS = 4 };

#define INLINE VEC_INLINE

typedef ls__conv_pool_image image;

/* ---- forward -------------------------------------------------------------------------------- */

/* What is known of an image when its loops are compiled. */
typedef struct form {
    int k;      /* side of the filter */
    int wide;   /* groups of channels at a time */
    bool clean; /* see pool_window */
} form;

/* `windows` of them side by side. */
INLINE void forward_windows(const image *i, const float *corner, const float *w, const float *bias,
                            const uint16_t *lanes, float *p, uint16_t *marks, int windows, form f)
{
    const int64_t words = ls__conv_pool_groups(i->oc) * LS__CONV_POOL_WORDS;
    const int k = f.k, wide = f.wide;
    __m512 sum[2][2][CELLS];
    for (int t = 0; t < k * k; t++) {
        const float *cell = corner + t / k * i->row + t % k;
        __m512 weight[2];
        for (int v = 0; v < wide; v++)
            weight[v] = (__m512)vec_load_some(w + t * i->oc + v * LANES, lanes[v]);
        for (int o = 0; o < windows; o++)
            for (int q = 0; q < CELLS; q++) {
                const __m512 x = _mm512_set1_ps(cell[2 * o + q / 2 * i->row + q % 2]);
                for (int v = 0; v < wide; v++)
                    sum[o][v][q] = t == 0 ? _mm512_mul_ps(x, weight[v])
                                          : _mm512_fmadd_ps(x, weight[v], sum[o][v][q]);
            }
    }
    for (int o = 0; o < windows; o++)
        for (int v = 0; v < wide; v++)
            pool_window((const vec *)sum[o][v], vec_load_some(bias + v * LANES, lanes[v]), lanes[v],
                        f.clean, p + o * i->pixel + v * i->group,
                        marks + o * words + v * LS__CONV_POOL_WORDS);
}

INLINE void forward_channels(const image *i, const float *w, const float *bias,
                             const uint16_t *lanes, float *p, uint16_t *marks, form f)
{
    const int64_t words = ls__conv_pool_groups(i->oc) * LS__CONV_POOL_WORDS;
    for (int64_t y = 0; y < i->ph; y++)
        for (int64_t x = 0; x < i->pw;) {
            const float *corner = i->data + 2 * y * i->row + 2 * x;
            const int64_t at = y * i->pw + x;
            if (x + 2 <= i->pw) {
                forward_windows(i, corner, w, bias, lanes, p + at * i->pixel, marks + at * words, 2,
                                f);
                x += 2;
            } else {
                forward_windows(i, corner, w, bias, lanes, p + at * i->pixel, marks + at * words, 1,
                                f);
                x++;
            }
        }
}

INLINE void forward_image(const image *i, const float *w, const float *bias, float *p,
                          uint16_t *marks, int k, bool clean)
{
    for (int64_t c = 0; c < i->oc; c += 2 * LANES) {
        const uint16_t all[2] = { 0xffff, 0xffff };
        const uint16_t lanes[2] = { vec_lanes(i->oc, c), vec_lanes(i->oc, c + LANES) };
        uint16_t *to = marks + c / LANES * LS__CONV_POOL_WORDS;
        float *pooled = p + c / LANES * i->group;
        if (lanes[1] == 0xffff)
            forward_channels(i, w + c, bias + c, all, pooled, to, (form){ k, 2, clean });
        else if (lanes[1])
            forward_channels(i, w + c, bias + c, lanes, pooled, to, (form){ k, 2, clean });
        else
            forward_channels(i, w + c, bias + c, lanes, pooled, to, (form){ k, 1, clean });
    }
}

/* The largest without its sign; what is no number counts as larger than all. */
static float largest(const float *x, int64_t n)
{
    __m512i most = _mm512_setzero_si512();
    for (int64_t j = 0; j < n; j += LANES) {
        const __m512i bits = _mm512_maskz_loadu_epi32(vec_lanes(n, j), x + j);
        most = _mm512_max_epu32(most, _mm512_and_si512(bits, _mm512_set1_epi32(INT32_MAX)));
    }
    const uint32_t bits = _mm512_reduce_max_epu32(most);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Whether no sum can leave the numbers there are. (An infinite bias does no harm.) */
static bool is_clean(const image *i, const float *w, const float *bias)
{
    const float x = largest(i->data, (2 * i->ph + i->k - 1) * i->row);
    const float taps = (float)(i->k * i->k);
    return x * largest(w, i->k * i->k * i->oc) * taps < FLT_MAX / 2 && !isnan(largest(bias, i->oc));
}

static void forward_3(const image *i, const float *w, const float *bias, float *p, uint16_t *marks)
{
    forward_image(i, w, bias, p, marks, 3, true);
}

static void forward_5(const image *i, const float *w, const float *bias, float *p, uint16_t *marks)
{
    forward_image(i, w, bias, p, marks, 5, true);
}

static void forward_any(const image *i, const float *w, const float *bias, float *p,
                        uint16_t *marks)
{
    if (i->k == 3)
        forward_image(i, w, bias, p, marks, 3, false);
    else
        forward_image(i, w, bias, p, marks, 5, false);
}

static void forward(const image *i, const float *w, const float *bias, float *p, uint16_t *marks)
{
    if (!is_clean(i, w, bias))
        forward_any(i, w, bias, p, marks);
    else if (i->k == 3)
        forward_3(i, w, bias, p, marks);
    else
        forward_5(i, w, bias, p, marks);
}

/* ---- backward ------------------------------------------------------------------------------- */

enum { MOST_TAPS = 10 };

/* Two rows of eight pixels: an index of a lane is 8 * below + right + column. */
INLINE __m512 pixels_at(const float *from, int64_t row)
{
    const __m512d low = _mm512_castpd256_pd512(_mm256_loadu_pd((const double *)from));
    return _mm512_castpd_ps(
        _mm512_insertf64x4(low, _mm256_loadu_pd((const double *)(from + row)), 1));
}

/* Tap rows `first` to first + rows - 1 of `wide` groups of channels. */
INLINE void backward_taps(const image *i, const float *dp, const uint16_t *marks,
                          const __mmask16 *lanes, float *dw, float *dbias, int k, int first,
                          int rows, int wide)
{
    const int64_t words = ls__conv_pool_groups(i->oc) * LS__CONV_POOL_WORDS;
    const __m512i one = _mm512_set1_epi32(1);
    __m512 sum[MOST_TAPS][2], all[2];
    for (int v = 0; v < wide; v++) {
        all[v] = _mm512_setzero_ps();
        for (int t = 0; t < rows * k; t++)
            sum[t][v] = _mm512_setzero_ps();
    }
    for (int64_t y = 0; y < i->ph; y++)
        for (int64_t x = 0; x < i->pw; x++) {
            const int64_t at = y * i->pw + x;
            const float *corner = i->data + (2 * y + first) * i->row + 2 * x;
            __mmask16 passes[2];
            __m512 g[2];
            __m512i index[2];
            for (int v = 0; v < wide; v++) {
                const uint16_t *m = marks + at * words + v * LS__CONV_POOL_WORDS;
                passes[v] = m[LS__CONV_POOL_PASSES] & lanes[v];
                g[v] = _mm512_maskz_loadu_ps(passes[v], dp + at * i->pixel + v * i->group);
                index[v] = _mm512_maskz_set1_epi32(m[LS__CONV_POOL_BELOW], 8);
                index[v] = _mm512_mask_add_epi32(index[v], m[LS__CONV_POOL_RIGHT], index[v], one);
                all[v] = _mm512_add_ps(all[v], g[v]);
            }
            __m512 pixels[3];
            for (int r = 0; r < rows; r++)
                pixels[r] = pixels_at(corner + r * i->row, i->row);
            for (int c = 0; c < k; c++)
                for (int v = 0; v < wide; v++) {
                    for (int r = 0; r < rows; r++)
                        sum[r * k + c][v] = _mm512_fmadd_ps(
                            _mm512_maskz_permutexvar_ps(passes[v], index[v], pixels[r]), g[v],
                            sum[r * k + c][v]);
                    index[v] = _mm512_add_epi32(index[v], one);
                }
        }
    for (int v = 0; v < wide; v++) {
        float *bias = dbias + v * LANES;
        for (int t = 0; t < rows * k; t++) {
            float *to = dw + (first * k + t) * i->oc + v * LANES;
            _mm512_mask_storeu_ps(to, lanes[v],
                                  _mm512_add_ps(_mm512_maskz_loadu_ps(lanes[v], to), sum[t][v]));
        }
        if (first == 0)
            _mm512_mask_storeu_ps(bias, lanes[v],
                                  _mm512_add_ps(_mm512_maskz_loadu_ps(lanes[v], bias), all[v]));
    }
}

static void backward_3(const image *i, const float *dp, const uint16_t *marks, float *dw,
                       float *dbias)
{
    for (int64_t c = 0; c < i->oc; c += 2 * LANES) {
        const __mmask16 lanes[2] = { vec_lanes(i->oc, c), vec_lanes(i->oc, c + LANES) };
        const uint16_t *m = marks + c / LANES * LS__CONV_POOL_WORDS;
        const float *g = dp + c / LANES * i->group;
        if (lanes[1])
            backward_taps(i, g, m, lanes, dw + c, dbias + c, 3, 0, 3, 2);
        else
            backward_taps(i, g, m, lanes, dw + c, dbias + c, 3, 0, 3, 1);
    }
}

static void backward_5(const image *i, const float *dp, const uint16_t *marks, float *dw,
                       float *dbias)
{
    for (int64_t c = 0; c < i->oc; c += LANES) {
        const __mmask16 lanes[1] = { vec_lanes(i->oc, c) };
        const uint16_t *m = marks + c / LANES * LS__CONV_POOL_WORDS;
        const float *g = dp + c / LANES * i->group;
        backward_taps(i, g, m, lanes, dw + c, dbias + c, 5, 0, 2, 1);
        backward_taps(i, g, m, lanes, dw + c, dbias + c, 5, 2, 2, 1);
        backward_taps(i, g, m, lanes, dw + c, dbias + c, 5, 4, 1, 1);
    }
}

static void backward(const image *i, const float *dp, const uint16_t *marks, float *dw,
                     float *dbias)
{
    if (i->k == 3)
        backward_3(i, dp, marks, dw, dbias);
    else
        backward_5(i, dp, marks, dw, dbias);
}

const ls__conv_pool_kernels LS__ISA(ls__conv_pool_table) = { forward, backward };

#else

const ls__conv_pool_kernels LS__ISA(ls__conv_pool_table) = { 0 };

#endif
