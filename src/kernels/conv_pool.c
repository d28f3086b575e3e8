/* See conv_pool.h: images in order, each copied into a frame with its padding. Some of them are a part, which
 * an idle thread may take over (os/help.h). */
#include "kernels/conv_pool.h"

#include <string.h>

#include "kernels/replicas.h"
#include "os/help.h"

enum {
    BEHIND = 16, /* floats that kernels may read behind the last row */
    MOST_PARTS = 8
};

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

static int64_t frame_floats(const ls__conv_shape *s)
{
    const int64_t floats = (s->h + s->pad_top + s->pad_bottom) * frame_row(s) + BEHIND;
    return (floats + 15) / 16 * 16;
}

/* A function of sizes alone, since bits depend on it. */
static int64_t parts_of(const ls__conv_shape *s)
{
    return s->n < MOST_PARTS ? s->n : MOST_PARTS;
}

static int64_t filter_floats(const ls__conv_shape *s)
{
    return s->kh * s->kw * s->oc;
}

/* A part's gradients, of the filter and behind it of the bias. */
static int64_t gradient_floats(const ls__conv_shape *s)
{
    return (filter_floats(s) + s->oc + 15) / 16 * 16;
}

int64_t ls__conv_pool_scratch(const ls__conv_shape *s)
{
    const int64_t sums = parts_of(s) > 1 ? parts_of(s) : 1;
    return LS__HELP_WORKERS * frame_floats(s) + sums * gradient_floats(s);
}

static ls__conv_pool_image open_image(const ls__conv_shape *s, bool block, float *frame)
{
    memset(frame, 0, (size_t)frame_floats(s) * sizeof *frame);
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

/* What is computed, the same for all parts. */
typedef struct job {
    const ls__conv_shape *s;
    ls__conv_pool_image of[LS__HELP_WORKERS]; /* each with a frame */
    float *frame[LS__HELP_WORKERS];
    const float *x, *w, *bias, *dp;
    const uint16_t *marks; /* back */
    uint16_t *marked;      /* forward */
    float *p, *gradients;
} job;

static void open_job(job *j, bool block, float *scratch)
{
    for (int w = 0; w < LS__HELP_WORKERS; w++) {
        j->frame[w] = scratch + w * frame_floats(j->s);
        j->of[w] = open_image(j->s, block, j->frame[w]);
    }
    j->gradients = scratch + LS__HELP_WORKERS * frame_floats(j->s);
}

static const float *image_at(const job *j, int64_t n)
{
    return j->x + n * j->s->h * j->s->w;
}

static int64_t first_of(const ls__conv_shape *s, int64_t part)
{
    return s->n * part / parts_of(s);
}

static void forward_part(void *arg, int64_t part, int worker)
{
    const job *j = arg;
    const ls__conv_pool_image *i = &j->of[worker];
    for (int64_t n = first_of(j->s, part); n < first_of(j->s, part + 1); n++) {
        fill(j->s, image_at(j, n), j->frame[worker]);
        kernels()->forward(i, j->w, j->bias, j->p + n * pooled(i), j->marked + n * marked(i));
    }
}

void ls__conv_pool_forward(const ls__conv_shape *s, bool block, const float *x, const float *w,
                           const float *bias, float *p, uint16_t *marks, float *scratch)
{
    job j = { .s = s, .x = x, .w = w, .bias = bias, .p = p, .marked = marks };
    open_job(&j, block, scratch);
    ls__help_run(parts_of(s), forward_part, &j);
}

static void backward_part(void *arg, int64_t part, int worker)
{
    const job *j = arg;
    const ls__conv_pool_image *i = &j->of[worker];
    float *dw = j->gradients + part * gradient_floats(j->s), *dbias = dw + filter_floats(j->s);
    memset(dw, 0, (size_t)gradient_floats(j->s) * sizeof *dw);
    for (int64_t n = first_of(j->s, part); n < first_of(j->s, part + 1); n++) {
        fill(j->s, image_at(j, n), j->frame[worker]);
        kernels()->backward(i, j->dp + n * pooled(i), j->marks + n * marked(i), dw, dbias);
    }
}

/* The parts' gradients; zeros, if there are no images. */
static void add_up(const job *j, float *dw, float *dbias)
{
    const ls__conv_shape *s = j->s;
    const int parts = (int)parts_of(s);
    const void *in[MOST_PARTS];
    for (int k = 0; k < parts; k++)
        in[k] = j->gradients + k * gradient_floats(s);
    if (parts > 0)
        LS__PICK(ls__replicas_table)->sum[LS_F32](parts, in, j->gradients, gradient_floats(s));
    else
        memset(j->gradients, 0, (size_t)gradient_floats(s) * sizeof *j->gradients);
    memcpy(dw, j->gradients, (size_t)filter_floats(s) * sizeof *dw);
    memcpy(dbias, j->gradients + filter_floats(s), (size_t)s->oc * sizeof *dbias);
}

void ls__conv_pool_backward(const ls__conv_shape *s, bool block, const float *x, const float *dp,
                            const uint16_t *marks, float *dw, float *dbias, float *scratch)
{
    job j = { .s = s, .x = x, .dp = dp, .marks = marks };
    open_job(&j, block, scratch);
    ls__help_run(parts_of(s), backward_part, &j);
    add_up(&j, dw, dbias);
}
