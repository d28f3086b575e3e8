/*
 * 3x3 convolution of one input channel (the first layer of a network on grey
 * images), NHWC. Invariant: images are taken in order; weight gradients are
 * summed per image, then over images.
 *
 * Each image is first copied into a zero-padded frame, so that the kernels
 * (conv_one.c) meet no border. Backward-data is a small product per image, taps
 * x pixels, whose rows are then added into the frame.
 */
#include "kernels/cpu/dnnl_conv.h"

#include "kernels/conv_one.h"
#include "kernels/cpu/dnnl_engine.h"
#include "kernels/matmul.h"

#include <string.h>

enum { TAPS = 9, LANES = 16 };

typedef ls__conv_frame frame;

bool ls__conv_one_fits(const ls__conv_shape *s)
{
    return s->c == 1 && !s->depthwise && s->kh == 3 && s->kw == 3 && s->dilation_h == 1 &&
           s->dilation_w == 1 && s->oc % LANES == 0 && ls__dnnl_avx512() &&
           LS__PICK(ls__conv_one_table)->forward;
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

static ls_status forward(const ls__conv_shape *s, const float *x, const float *w, const float *bias,
                         float *y)
{
    frame f;
    int64_t after;
    ls_status st = open_frame(s, 0, &f, &after);
    for (int64_t n = 0; n < s->n && !st; n++) {
        fill_frame(s, &f, x + n * s->h * s->w);
        LS__PICK(ls__conv_one_table)->forward(s, &f, w, bias, y + n * s->oh * s->ow * s->oc);
    }
    return st;
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
        LS__PICK(ls__conv_one_table)->weights(s, &f, dy + n * s->oh * s->ow * s->oc, dw);
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
                           float *y, const float *bias)
{
    if (pass == LS__CONV_FORWARD)
        return forward(s, x, w, bias, y);
    if (pass == LS__CONV_BACKWARD_DATA)
        return backward_data(s, y, w, x);
    return backward_weights(s, x, y, w);
}
