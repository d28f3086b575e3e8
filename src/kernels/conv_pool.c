/* See conv_pool.h: images in order, each copied into a frame with its padding. */
#include "kernels/conv_pool.h"

#include <string.h>

enum { BEHIND = 16 }; /* floats that kernels may read behind the last row */

bool ls__conv_pool_can(const ls__conv_shape *s)
{
    return s->c == 1 && !s->depthwise && s->kh == s->kw && (s->kh == 3 || s->kh == 5) &&
           s->stride_h == 1 && s->stride_w == 1 && s->dilation_h == 1 && s->dilation_w == 1;
}

bool ls__conv_pool_fits(const ls__conv_shape *s)
{
    return ls__conv_pool_can(s) && s->oc % 8 == 0 && LS__PICK(ls__conv_pool_table)->forward;
}

static const ls__conv_pool_kernels *kernels(void)
{
    const ls__conv_pool_kernels *own = LS__PICK(ls__conv_pool_table);
    return own->forward ? own : &ls__conv_pool_reference;
}

static int64_t frame_row(const ls__conv_shape *s)
{
    return s->w + s->pad_left + s->pad_right;
}

int64_t ls__conv_pool_scratch(const ls__conv_shape *s)
{
    return (s->h + s->pad_top + s->pad_bottom) * frame_row(s) + BEHIND;
}

static ls__conv_pool_image open_image(const ls__conv_shape *s, bool block, float *frame)
{
    memset(frame, 0, (size_t)ls__conv_pool_scratch(s) * sizeof *frame);
    return (ls__conv_pool_image){ .row = frame_row(s),
                                  .k = s->kh,
                                  .oc = s->oc,
                                  .ph = s->oh / 2,
                                  .pw = s->ow / 2,
                                  .pixel = block ? LS__CONV_POOL_BLOCK : s->oc,
                                  .group =
                                      LS__CONV_POOL_BLOCK * (block ? (s->oh / 2) * (s->ow / 2) : 1),
                                  .data = frame };
}

static void fill(const ls__conv_shape *s, const float *x, float *frame)
{
    float *to = frame + s->pad_top * frame_row(s) + s->pad_left;
    for (int64_t y = 0; y < s->h; y++)
        memcpy(to + y * frame_row(s), x + y * s->w, (size_t)s->w * sizeof *x);
}

/* Of one image. */
static int64_t pooled(const ls__conv_pool_image *i)
{
    return i->ph * i->pw * i->oc;
}

static int64_t marked(const ls__conv_pool_image *i)
{
    return i->ph * i->pw * ls__conv_pool_groups(i->oc) * LS__CONV_POOL_WORDS;
}

void ls__conv_pool_forward(const ls__conv_shape *s, bool block, const float *x, const float *w,
                           const float *bias, float *p, uint16_t *marks, float *scratch)
{
    const ls__conv_pool_image image = open_image(s, block, scratch);
    for (int64_t n = 0; n < s->n; n++) {
        fill(s, x + n * s->h * s->w, scratch);
        kernels()->forward(&image, w, bias, p + n * pooled(&image), marks + n * marked(&image));
    }
}

void ls__conv_pool_backward(const ls__conv_shape *s, bool block, const float *x, const float *dp,
                            const uint16_t *marks, float *dw, float *dbias, float *scratch)
{
    const ls__conv_pool_image image = open_image(s, block, scratch);
    memset(dw, 0, (size_t)(s->kh * s->kw * s->oc) * sizeof *dw);
    memset(dbias, 0, (size_t)s->oc * sizeof *dbias);
    for (int64_t n = 0; n < s->n; n++) {
        fill(s, x + n * s->h * s->w, scratch);
        kernels()->backward(&image, dp + n * pooled(&image), marks + n * marked(&image), dw, dbias);
    }
}
