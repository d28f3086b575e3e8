/*
 * 3x3 convolution of one input channel (the first layer of a network on grey
 * images), NHWC, AVX-512: all nine weights of 32 output channels stay in
 * registers. Invariant: each output is summed over the nine taps in order;
 * weight gradients are summed per image, then over images in order.
 *
 * Each image is first copied into a zero-padded frame, so that the loops meet
 * no border. Backward-data is a small product per image, taps x pixels, whose
 * rows are then added into the frame.
 */
#include "kernels/cpu/dnnl_conv.h"

#include "kernels/cpu/dnnl_engine.h"
#include "kernels/matmul.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>

enum { TAPS = 9, LANES = 16, PIXELS = 4 };

#define AVX512 __attribute__((target("avx512f")))
#define AVX512_INLINE static inline AVX512 __attribute__((always_inline))

/* An image with its padding. */
typedef struct frame {
    int64_t h, w;
    float *data;
} frame;

bool ls__conv_one_fits(const ls__conv_shape *s)
{
    return s->c == 1 && !s->depthwise && s->kh == 3 && s->kw == 3 && s->dilation_h == 1 &&
           s->dilation_w == 1 && s->oc % LANES == 0 && ls__dnnl_avx512();
}

/* `extra` floats beyond the frame, 64-byte aligned, at frame.data + *after. */
static ls_status open_frame(const ls__conv_shape *s, int64_t extra, frame *f, int64_t *after)
{
    f->h = s->h + s->pad_top + s->pad_bottom;
    f->w = s->w + s->pad_left + s->pad_right;
    *after = (f->h * f->w + LANES - 1) / LANES * LANES;
    f->data = ls__dnnl_buffer(LS__DNNL_WORK, (size_t)(*after + extra) * sizeof(float));
    if (!f->data)
        return LS_NO_MEMORY;
    memset(f->data, 0, (size_t)(f->h * f->w) * sizeof(float));
    return LS_OK;
}

static inline float *frame_row(const ls__conv_shape *s, const frame *f, int64_t y)
{
    return f->data + (y + s->pad_top) * f->w + s->pad_left;
}

static void fill_frame(const ls__conv_shape *s, const frame *f, const float *x)
{
    for (int64_t y = 0; y < s->h; y++)
        memcpy(frame_row(s, f, y), x + y * s->w, (size_t)s->w * sizeof(float));
}

/* `pixels` outputs in a row, `wide` vectors of channels each. `step` is the
 * stride, given apart so that it can be the constant 1: neighbours then share
 * the cells they load. */
AVX512_INLINE void forward_pixels(const ls__conv_shape *s, int64_t row, int64_t step,
                                  const float *corner, const __m512 weight[TAPS][2], float *y,
                                  int pixels, int wide)
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
            _mm512_storeu_ps(y + p * s->oc + v * LANES, sum[p][v]);
}

AVX512_INLINE void forward_channels(const ls__conv_shape *s, const frame *f, int64_t step,
                                    const float *w, float *y, int wide)
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
            forward_pixels(s, f->w, step, corner + ox * step, weight, out + ox * s->oc, PIXELS,
                           wide);
        for (; ox < s->ow; ox++)
            forward_pixels(s, f->w, step, corner + ox * step, weight, out + ox * s->oc, 1, wide);
    }
}

AVX512 static void forward_image(const ls__conv_shape *s, const frame *f, const float *w, float *y)
{
    int64_t c = 0;
    for (; c + 2 * LANES <= s->oc; c += 2 * LANES)
        if (s->stride_w == 1)
            forward_channels(s, f, 1, w + c, y + c, 2);
        else
            forward_channels(s, f, s->stride_w, w + c, y + c, 2);
    if (c < s->oc)
        forward_channels(s, f, s->stride_w, w + c, y + c, 1);
}

static ls_status forward(const ls__conv_shape *s, const float *x, const float *w, float *y)
{
    frame f;
    int64_t after;
    ls_status st = open_frame(s, 0, &f, &after);
    for (int64_t n = 0; n < s->n && !st; n++) {
        fill_frame(s, &f, x + n * s->h * s->w);
        forward_image(s, &f, w, y + n * s->oh * s->ow * s->oc);
    }
    return st;
}

AVX512_INLINE void weights_pixels(const ls__conv_shape *s, int64_t row, int64_t step,
                                  const float *corner, const float *grad, __m512 sum[TAPS][2],
                                  int pixels, int wide)
{
    for (int t = 0; t < TAPS; t++)
        for (int p = 0; p < pixels; p++) {
            __m512 x = _mm512_set1_ps(corner[t / 3 * row + t % 3 + p * step]);
            for (int v = 0; v < wide; v++)
                sum[t][v] =
                    _mm512_fmadd_ps(x, _mm512_loadu_ps(grad + p * s->oc + v * LANES), sum[t][v]);
        }
}

AVX512_INLINE void weights_channels(const ls__conv_shape *s, const frame *f, int64_t step,
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

AVX512 static void weights_image(const ls__conv_shape *s, const frame *f, const float *dy,
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

static ls_status backward_weights(const ls__conv_shape *s, const float *x, const float *dy,
                                  float *dw)
{
    frame f;
    int64_t after;
    ls_status st = open_frame(s, 0, &f, &after);
    if (st)
        return st;
    memset(dw, 0, (size_t)(TAPS * s->oc) * sizeof(float));
    for (int64_t n = 0; n < s->n; n++) {
        fill_frame(s, &f, x + n * s->h * s->w);
        weights_image(s, &f, dy + n * s->oh * s->ow * s->oc, dw);
    }
    return LS_OK;
}

/* Adds each tap's row of `product` (taps x pixels) where it came from. */
static void add_to_frame(const ls__conv_shape *s, const frame *f, const float *product)
{
    for (int t = 0; t < TAPS; t++)
        for (int64_t oy = 0; oy < s->oh; oy++) {
            float *to = f->data + oy * s->stride_h * f->w + t / 3 * f->w + t % 3;
            const float *from = product + (t * s->oh + oy) * s->ow;
            if (s->stride_w == 1)
                for (int64_t ox = 0; ox < s->ow; ox++)
                    to[ox] += from[ox];
            else
                for (int64_t ox = 0; ox < s->ow; ox++)
                    to[ox * s->stride_w] += from[ox];
        }
}

static ls_status backward_data(const ls__conv_shape *s, const float *dy, const float *w, float *dx)
{
    frame f;
    int64_t after, pixels = s->oh * s->ow;
    ls__matmul_plan plan;
    const ls__matmul_shape product = { .batch = 1, .m = TAPS, .n = pixels, .k = s->oc, .tb = true };
    ls_status st = open_frame(s, TAPS * pixels, &f, &after);
    if (!st)
        st = ls__matmul_plan_open(&plan, &product, false);
    if (st)
        return st;
    for (int64_t n = 0; n < s->n && !st; n++) {
        st = ls__matmul_plan_run(&plan, w, dy + n * pixels * s->oc, f.data + after);
        memset(f.data, 0, (size_t)(f.h * f.w) * sizeof(float));
        add_to_frame(s, &f, f.data + after);
        for (int64_t y = 0; y < s->h; y++)
            memcpy(dx + (n * s->h + y) * s->w, frame_row(s, &f, y), (size_t)s->w * sizeof(float));
    }
    ls__matmul_plan_close(&plan);
    return st;
}

ls_status ls__conv_one_run(const ls__conv_shape *s, ls__conv_pass pass, float *x, float *w,
                           float *y)
{
    if (pass == LS__CONV_FORWARD)
        return forward(s, x, w, y);
    if (pass == LS__CONV_BACKWARD_DATA)
        return backward_data(s, y, w, x);
    return backward_weights(s, x, y, w);
}

#else

bool ls__conv_one_fits(const ls__conv_shape *s)
{
    (void)s;
    return false;
}

ls_status ls__conv_one_run(const ls__conv_shape *s, ls__conv_pass pass, float *x, float *w,
                           float *y)
{
    (void)s, (void)pass, (void)x, (void)w, (void)y;
    return ls__fail(LS_UNSUPPORTED, "conv2d: the one-channel kernel needs AVX-512");
}

#endif
