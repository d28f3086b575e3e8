/*
 * 3x3 convolution of one image with one input channel: all nine weights of 32
 * output channels stay in registers. Invariant: each output is summed over the
 * nine taps in order; weight gradients are summed over the pixels in order.
 *
 * Only the AVX-512 build has these kernels (they want 32 wide registers); other
 * processors leave the shape to oneDNN.
 */
#include "kernels/conv_one.h"

#include "kernels/isa.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#include <math.h>

enum { TAPS = 9, LANES = 16, PIXELS = 4 };

#define INLINE static inline __attribute__((always_inline))

/*
 * What follows the sum, in registers: bias[channel], then relu. `floor` is 0 with
 * relu, else NaN: a sum stays unless it is <= floor, and nothing is <= NaN. So NaN
 * stays and -0.0 becomes 0, as in the operator relu. Without a bias 0.0 is added,
 * which changes -0.0 alone, and relu makes that 0 anyway.
 */
typedef struct epilogue {
    __m512 bias[2], floor;
} epilogue;

INLINE __m512 finish(const epilogue *e, int v, __m512 sum)
{
    sum = _mm512_add_ps(sum, e->bias[v]);
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(sum, e->floor, _CMP_NLE_UQ), sum);
}

/* `pixels` outputs in a row, `wide` vectors of channels each. `step` is the
 * stride, given apart so that it can be the constant 1: neighbours then share
 * the cells they load. `e` is NULL when nothing follows. */
INLINE void forward_pixels(const ls__conv_shape *s, int64_t row, int64_t step, const float *corner,
                           const __m512 weight[TAPS][2], const epilogue *e, float *y, int pixels,
                           int wide)
{
    __m512 sum[PIXELS][2];
    for (int p = 0; p < pixels; p++)
        for (int v = 0; v < wide; v++)
            sum[p][v] = _mm512_mul_ps(_mm512_set1_ps(corner[p * step]), weight[0][v]);
    for (int t = 1; t < TAPS; t++)
        for (int p = 0; p < pixels; p++) {
            __m512 x = _mm512_set1_ps(corner[t / 3 * row + t % 3 + p * step]);
            for (int v = 0; v < wide; v++)
                sum[p][v] = _mm512_fmadd_ps(x, weight[t][v], sum[p][v]);
        }
    for (int p = 0; p < pixels; p++)
        for (int v = 0; v < wide; v++)
            _mm512_storeu_ps(y + p * s->oc + v * LANES, e ? finish(e, v, sum[p][v]) : sum[p][v]);
}

INLINE void forward_channels(const ls__conv_shape *s, const ls__conv_frame *f, int64_t step,
                             const float *w, const epilogue *e, float *y, int wide)
{
    __m512 weight[TAPS][2];
    for (int t = 0; t < TAPS; t++)
        for (int v = 0; v < wide; v++)
            weight[t][v] = _mm512_loadu_ps(w + t * s->oc + v * LANES);
    for (int64_t oy = 0; oy < s->oh; oy++) {
        const float *corner = f->data + oy * s->stride_h * f->w;
        float *out = y + oy * s->ow * s->oc;
        int64_t ox = 0;
        for (; ox + PIXELS <= s->ow; ox += PIXELS)
            forward_pixels(s, f->w, step, corner + ox * step, weight, e, out + ox * s->oc, PIXELS,
                           wide);
        for (; ox < s->ow; ox++)
            forward_pixels(s, f->w, step, corner + ox * step, weight, e, out + ox * s->oc, 1, wide);
    }
}

/* Channels from `c` on, `wide` vectors of them; once for each kind of loop. */
INLINE void forward_group(const ls__conv_shape *s, const ls__conv_frame *f, const float *w,
                          const float *bias, float *y, int64_t c, int wide)
{
    if (!s->bias && !s->relu) {
        if (s->stride_w == 1)
            forward_channels(s, f, 1, w + c, NULL, y + c, wide);
        else
            forward_channels(s, f, s->stride_w, w + c, NULL, y + c, wide);
        return;
    }
    epilogue e = { .floor = _mm512_set1_ps(s->relu ? 0.0f : NAN) };
    for (int v = 0; v < wide; v++)
        e.bias[v] = s->bias ? _mm512_loadu_ps(bias + c + v * LANES) : _mm512_setzero_ps();
    if (s->stride_w == 1)
        forward_channels(s, f, 1, w + c, &e, y + c, wide);
    else
        forward_channels(s, f, s->stride_w, w + c, &e, y + c, wide);
}

static void forward_image(const ls__conv_shape *s, const ls__conv_frame *f, const float *w,
                          const float *bias, float *y)
{
    int64_t c = 0;
    for (; c + 2 * LANES <= s->oc; c += 2 * LANES)
        forward_group(s, f, w, bias, y, c, 2);
    if (c < s->oc)
        forward_group(s, f, w, bias, y, c, 1);
}

INLINE void weights_pixels(const ls__conv_shape *s, int64_t row, int64_t step, const float *corner,
                           const float *grad, __m512 sum[TAPS][2], int pixels, int wide)
{
    for (int t = 0; t < TAPS; t++)
        for (int p = 0; p < pixels; p++) {
            __m512 x = _mm512_set1_ps(corner[t / 3 * row + t % 3 + p * step]);
            for (int v = 0; v < wide; v++)
                sum[t][v] =
                    _mm512_fmadd_ps(x, _mm512_loadu_ps(grad + p * s->oc + v * LANES), sum[t][v]);
        }
}

INLINE void weights_channels(const ls__conv_shape *s, const ls__conv_frame *f, int64_t step,
                             const float *dy, float *dw, int wide)
{
    const int group = wide == 1 ? PIXELS : PIXELS / 2; /* what the registers hold */
    __m512 sum[TAPS][2];
    for (int t = 0; t < TAPS; t++)
        for (int v = 0; v < wide; v++)
            sum[t][v] = _mm512_setzero_ps();
    for (int64_t oy = 0; oy < s->oh; oy++) {
        const float *corner = f->data + oy * s->stride_h * f->w;
        const float *grad = dy + oy * s->ow * s->oc;
        int64_t ox = 0;
        for (; ox + group <= s->ow; ox += group)
            weights_pixels(s, f->w, step, corner + ox * step, grad + ox * s->oc, sum, group, wide);
        for (; ox < s->ow; ox++)
            weights_pixels(s, f->w, step, corner + ox * step, grad + ox * s->oc, sum, 1, wide);
    }
    for (int t = 0; t < TAPS; t++)
        for (int v = 0; v < wide; v++) {
            float *out = dw + t * s->oc + v * LANES;
            _mm512_storeu_ps(out, _mm512_add_ps(_mm512_loadu_ps(out), sum[t][v]));
        }
}

static void weights_image(const ls__conv_shape *s, const ls__conv_frame *f, const float *dy,
                          float *dw)
{
    int64_t c = 0;
    for (; c + 2 * LANES <= s->oc; c += 2 * LANES)
        if (s->stride_w == 1)
            weights_channels(s, f, 1, dy + c, dw + c, 2);
        else
            weights_channels(s, f, s->stride_w, dy + c, dw + c, 2);
    if (c == s->oc)
        return;
    if (s->stride_w == 1)
        weights_channels(s, f, 1, dy + c, dw + c, 1);
    else
        weights_channels(s, f, s->stride_w, dy + c, dw + c, 1);
}

const ls__conv_one LS__ISA(ls__conv_one_table) = { forward_image, weights_image };

#else

const ls__conv_one LS__ISA(ls__conv_one_table) = { 0 };

#endif
