/*
 * Convolution by oneDNN: one primitive per (shape, pass, layout, threads).
 * Invariant: which of oneDNN's kernels runs is settled by the shape and the
 * processor, never by timing.
 */
#include "kernels/cpu/dnnl_conv.h"

#include "kernels/cpu/dnnl_engine.h"
#include "kernels/threads.h"

#include <string.h>

/* A oneDNN operation descriptor of any pass. */
typedef struct description {
    dnnl_convolution_desc_t forward, pass;
    dnnl_memory_desc_t plain[3], wanted[3]; /* X, W, Y */
    dnnl_memory_desc_t bias;
} description;

static dnnl_status_t describe_weights(const ls__conv_shape *s, description *d)
{
    if (!s->depthwise) {
        dnnl_dims_t dims = { s->oc, s->c, s->kh, s->kw };
        dnnl_status_t st =
            dnnl_memory_desc_init_by_tag(&d->plain[LS__CONV_W], 4, dims, dnnl_f32, dnnl_hwio);
        return st ? st
                  : dnnl_memory_desc_init_by_tag(&d->wanted[LS__CONV_W], 4, dims, dnnl_f32,
                                                 dnnl_format_tag_any);
    }
    /* One group per input channel: [group, out of group, in of group, kh, kw]. */
    dnnl_dims_t dims = { s->c, s->multiplier, 1, s->kh, s->kw };
    dnnl_dims_t strides = { s->multiplier, 1, s->multiplier, s->kw * s->oc, s->oc };
    dnnl_status_t st =
        dnnl_memory_desc_init_by_strides(&d->plain[LS__CONV_W], 5, dims, dnnl_f32, strides);
    return st ? st
              : dnnl_memory_desc_init_by_tag(&d->wanted[LS__CONV_W], 5, dims, dnnl_f32,
                                             dnnl_format_tag_any);
}

static dnnl_status_t describe_activations(const ls__conv_shape *s, ls__conv_layout layout,
                                          description *d)
{
    dnnl_dims_t x = { s->n, s->c, s->h, s->w }, y = { s->n, s->oc, s->oh, s->ow };
    dnnl_format_tag_t tag = layout == LS__CONV_NHWC ? dnnl_nhwc : dnnl_format_tag_any;
    dnnl_status_t st =
        dnnl_memory_desc_init_by_tag(&d->plain[LS__CONV_X], 4, x, dnnl_f32, dnnl_nhwc);
    if (!st)
        st = dnnl_memory_desc_init_by_tag(&d->plain[LS__CONV_Y], 4, y, dnnl_f32, dnnl_nhwc);
    if (!st)
        st = dnnl_memory_desc_init_by_tag(&d->wanted[LS__CONV_X], 4, x, dnnl_f32, tag);
    if (!st)
        st = dnnl_memory_desc_init_by_tag(&d->wanted[LS__CONV_Y], 4, y, dnnl_f32, tag);
    return st;
}

/* Fills d->pass, and d->forward, which oneDNN wants as a hint backwards. */
static dnnl_status_t describe(const ls__conv_shape *s, ls__conv_pass pass, ls__conv_layout layout,
                              description *d)
{
    const dnnl_alg_kind_t algorithm =
        layout == LS__CONV_WINOGRAD ? dnnl_convolution_winograd : dnnl_convolution_direct;
    dnnl_dims_t stride = { s->stride_h, s->stride_w };
    dnnl_dims_t dilation = { s->dilation_h - 1, s->dilation_w - 1 };
    dnnl_dims_t before = { s->pad_top, s->pad_left }, after = { s->pad_bottom, s->pad_right };
    const dnnl_memory_desc_t *x = &d->wanted[LS__CONV_X], *w = &d->wanted[LS__CONV_W],
                             *y = &d->wanted[LS__CONV_Y];
    dnnl_status_t st = describe_weights(s, d);
    if (!st)
        st = describe_activations(s, layout, d);
    if (!st && s->bias)
        st = dnnl_memory_desc_init_by_tag(&d->bias, 1, (dnnl_dims_t){ s->oc }, dnnl_f32, dnnl_a);
    if (!st)
        st = dnnl_dilated_convolution_forward_desc_init(&d->forward, dnnl_forward_training,
                                                        algorithm, x, w, s->bias ? &d->bias : NULL,
                                                        y, stride, dilation, before, after);
    if (st || pass == LS__CONV_FORWARD) {
        d->pass = d->forward;
        return st;
    }
    if (pass == LS__CONV_BACKWARD_DATA)
        return dnnl_dilated_convolution_backward_data_desc_init(&d->pass, algorithm, x, w, y,
                                                                stride, dilation, before, after);
    return dnnl_dilated_convolution_backward_weights_desc_init(&d->pass, algorithm, x, w, NULL, y,
                                                               stride, dilation, before, after);
}

/* Measured on Sapphire Rapids, 1 thread, batch 64: 3x3 of 32 -> 64 channels on 13x13
 * forward 1.34 ms against 1.84, weights 1.22 against 1.76, but data 2.17 against
 * 1.93; 64 -> 64 on 7x7 1.01 against 1.12, 1.00 against 1.29, 1.01 against 1.20.
 * With 32 -> 32 or fewer it does not pay, but for weights of large images: 16 -> 16
 * on 28x28 1.16 against 1.30. */
bool ls__dnnl_conv_winograd_pays(const ls__conv_shape *s, ls__conv_pass pass)
{
    bool fits = s->kh == 3 && s->kw == 3 && s->stride_h == 1 && s->stride_w == 1 &&
                s->dilation_h == 1 && s->dilation_w == 1 && !s->depthwise && s->c % 16 == 0 &&
                s->oc % 16 == 0 && ls__dnnl_avx512();
    if (!fits)
        return false;
    if (pass == LS__CONV_BACKWARD_WEIGHTS && s->oh * s->ow >= 28 * 28)
        return true;
    return s->c * s->oc >= 32 * 64 && (pass != LS__CONV_BACKWARD_DATA || s->c >= 64);
}

/*
 * oneDNN 2.6 puts its brgemm convolution first for NHWC forward. On Sapphire
 * Rapids, 1 thread, its older direct kernel is faster below 64 channels: 3x3
 * 16 -> 16 on 28x28 1.22 ms against 1.80, 16 -> 32 stride 2 0.63 against 0.93,
 * and 1x1 stride 2 0.12 against 0.17. From 64 channels on brgemm is.
 */
static const char *preferred_kernel(const ls__conv_shape *s, ls__conv_pass pass,
                                    ls__conv_layout layout)
{
    bool unit_1x1 = s->kh == 1 && s->kw == 1 && s->stride_h == 1 && s->stride_w == 1;
    if (pass == LS__CONV_FORWARD && layout == LS__CONV_NHWC && s->c < 64 && !s->depthwise &&
        !unit_1x1)
        return "jit:avx512_core";
    return NULL;
}

/* The kernel called `name` if oneDNN has it for this convolution, else its first. */
static dnnl_status_t choose(const description *d, const char *name, dnnl_primitive_attr_t attr,
                            dnnl_primitive_desc_t hint, dnnl_primitive_desc_t *out)
{
    dnnl_primitive_desc_iterator_t it;
    dnnl_primitive_desc_t first = NULL, pd = NULL;
    dnnl_status_t st =
        dnnl_primitive_desc_iterator_create(&it, &d->pass, attr, ls__dnnl_engine(), hint);
    if (st)
        return st == dnnl_iterator_ends ? dnnl_unimplemented : st;
    do {
        const char *info = "";
        pd = dnnl_primitive_desc_iterator_fetch(it);
        if (pd)
            dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &info);
        if (!name || (pd && strcmp(info, name) == 0))
            break;
        if (first)
            dnnl_primitive_desc_destroy(pd);
        else
            first = pd;
        pd = NULL;
    } while (dnnl_primitive_desc_iterator_next(it) == dnnl_success);
    if (pd)
        dnnl_primitive_desc_destroy(first);
    dnnl_primitive_desc_iterator_destroy(it);
    *out = pd ? pd : first;
    return *out ? dnnl_success : dnnl_out_of_memory;
}

static dnnl_status_t make_pd(const ls__conv_shape *s, ls__conv_pass pass, ls__conv_layout layout,
                             dnnl_primitive_attr_t attr, description *d, dnnl_primitive_desc_t *out)
{
    dnnl_primitive_desc_t hint = NULL;
    dnnl_status_t st = describe(s, pass, layout, d);
    if (!st && pass != LS__CONV_FORWARD)
        st = dnnl_primitive_desc_create(&hint, &d->forward, attr, ls__dnnl_engine(), NULL);
    if (!st)
        st = choose(d, preferred_kernel(s, pass, layout), attr, hint, out);
    dnnl_primitive_desc_destroy(hint);
    return st;
}

static const ls__dnnl_arg arguments[3][LS__DNNL_ARGS] = {
    [LS__CONV_FORWARD] = { { .id = DNNL_ARG_SRC, .query = dnnl_query_src_md },
                           { .id = DNNL_ARG_WEIGHTS, .query = dnnl_query_weights_md },
                           { .id = DNNL_ARG_DST, .query = dnnl_query_dst_md } },
    [LS__CONV_BACKWARD_DATA] = { { .id = DNNL_ARG_DIFF_SRC, .query = dnnl_query_diff_src_md },
                                 { .id = DNNL_ARG_WEIGHTS, .query = dnnl_query_weights_md },
                                 { .id = DNNL_ARG_DIFF_DST, .query = dnnl_query_diff_dst_md } },
    [LS__CONV_BACKWARD_WEIGHTS] = { { .id = DNNL_ARG_SRC, .query = dnnl_query_src_md },
                                    { .id = DNNL_ARG_DIFF_WEIGHTS,
                                      .query = dnnl_query_diff_weights_md },
                                    { .id = DNNL_ARG_DIFF_DST, .query = dnnl_query_diff_dst_md } },
};

ls_status ls__dnnl_conv_plan(const ls__conv_shape *s, ls__conv_pass pass, ls__conv_layout layout,
                             ls__dnnl_plan **out)
{
    const ls__dnnl_key key = { { 'c',           ls__kernel_threads_get(),
                                 pass,          layout,
                                 s->n,          s->h,
                                 s->w,          s->c,
                                 s->kh,         s->kw,
                                 s->oc,         s->oh,
                                 s->ow,         s->stride_h,
                                 s->stride_w,   s->dilation_h,
                                 s->dilation_w, s->pad_top,
                                 s->pad_left,   s->pad_bottom,
                                 s->pad_right,  s->depthwise,
                                 s->bias } };
    *out = ls__dnnl_find(&key);
    if (*out)
        return LS_OK;
    dnnl_stream_t stream;
    dnnl_primitive_attr_t attr;
    ls_status st = ls__dnnl_enter(ls__kernel_threads_get(), &stream);
    if (!st)
        st = ls__dnnl_attr(&attr);
    if (st)
        return st;
    description d;
    ls__dnnl_arg arg[LS__DNNL_ARGS];
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t made = make_pd(s, pass, layout, attr, &d, &pd);
    if (!made) {
        memcpy(arg, arguments[pass], sizeof arg);
        for (int i = 0; i < LS__DNNL_ARGS; i++)
            arg[i].plain = d.plain[i];
        st = ls__dnnl_plan_make(&key, pd, arg, out);
    } else if (made != dnnl_unimplemented) {
        st = ls__dnnl_status(made, "convolution");
    }
    dnnl_primitive_desc_destroy(pd);
    dnnl_primitive_attr_destroy(attr);
    return st;
}
