/*
 * SIMD pooling, NHWC f32, compiled once per instruction set. The vectors run
 * along channels, so each lane does exactly what ref_pool.c does for its
 * element, in the same order: the bits are the same at every width.
 *
 * The passes that follow an argmax do not scatter or gather: the winner lies in
 * the window, so they walk the window and let each lane pick the cell that won.
 * That is vector code with ordered stores, and 2x2 windows are the common case.
 */
#include "kernels/pool.h"
#include "kernels/isa.h"

#include <stdbool.h>
#include <string.h>

#if defined(__AVX512F__)
enum { LANES = 16 };
#elif defined(__AVX2__)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif

typedef float vf __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef int32_t vi __attribute__((vector_size(LANES * 4), aligned(4), may_alias));

/* Channels [c, c + lanes) of one output cell and its window. */
typedef struct job {
    int64_t y0, y1, x0, x1; /* the window, clipped to the image */
    int64_t w, c;           /* width and channels of the image */
    int lanes;              /* below LANES only in the last job of a cell */
} job;

static inline __attribute__((always_inline)) vf load(const float *p, int lanes)
{
    vf v = { 0 };
    if (lanes == LANES)
        return *(const vf *)p;
    memcpy(&v, p, (size_t)lanes * 4);
    return v;
}

static inline __attribute__((always_inline)) void store(float *p, vf v, int lanes)
{
    if (lanes == LANES)
        *(vf *)p = v;
    else
        memcpy(p, &v, (size_t)lanes * 4);
}

static inline __attribute__((always_inline)) vi load_index(const int32_t *p, int lanes)
{
    vi v = { 0 };
    if (lanes == LANES)
        return *(const vi *)p;
    memcpy(&v, p, (size_t)lanes * 4);
    return v;
}

static inline __attribute__((always_inline)) void store_index(int32_t *p, vi v, int lanes)
{
    if (lanes == LANES)
        *(vi *)p = v;
    else
        memcpy(p, &v, (size_t)lanes * 4);
}

/* Lane by lane: mask (all ones or zeros) ? a : b. */
static inline __attribute__((always_inline)) vf select_f(vi mask, vf a, vf b)
{
    return (vf)((mask & (vi)a) | (~mask & (vi)b));
}

static inline __attribute__((always_inline)) vi all(int64_t value)
{
    return (vi){ 0 } + (int32_t)value;
}

#define FOR_EACH_CELL(j, cell)                                                                     \
    for (int64_t iy = (j)->y0; iy < (j)->y1; iy++)                                                 \
        for (int64_t ix = (j)->x0, cell = iy * (j)->w + ix; ix < (j)->x1; ix++, cell++)

/* In all of these `in` and `image` point at the first channel of the job: of
 * the output cell and of the image's (0, 0). */
typedef void body(const job *j, float *image, float *out, int32_t *argmax);

static inline __attribute__((always_inline)) void max_forward_body(const job *j, float *image,
                                                                   float *out, int32_t *argmax)
{
    vi won = all(j->y0 * j->w + j->x0);
    vf best = load(image + (j->y0 * j->w + j->x0) * j->c, j->lanes);
    FOR_EACH_CELL(j, cell)
    {
        vf value = load(image + cell * j->c, j->lanes);
        vi better = (vi)(best == best) & ((vi)(value > best) | (vi)(value != value));
        best = select_f(better, value, best);
        won = (better & all(cell)) | (~better & won);
    }
    store(out, best, j->lanes);
    if (argmax)
        store_index(argmax, won, j->lanes);
}

static inline __attribute__((always_inline)) void max_backward_body(const job *j, float *image,
                                                                    float *out, int32_t *argmax)
{
    vf dy = load(out, j->lanes);
    vi won = load_index(argmax, j->lanes);
    FOR_EACH_CELL(j, cell)
    {
        float *dx = image + cell * j->c;
        vf sum = load(dx, j->lanes);
        store(dx, select_f((vi)(won == all(cell)), sum + dy, sum), j->lanes);
    }
}

static inline __attribute__((always_inline)) void max_gather_body(const job *j, float *image,
                                                                  float *out, int32_t *argmax)
{
    vi won = load_index(argmax, j->lanes);
    vf picked = { 0 };
    FOR_EACH_CELL(j, cell)
    picked = select_f((vi)(won == all(cell)), load(image + cell * j->c, j->lanes), picked);
    store(out, picked, j->lanes);
}

static inline __attribute__((always_inline)) void avg_forward_body(const job *j, float *image,
                                                                   float *out, int32_t *argmax)
{
    (void)argmax;
    vf sum = { 0 };
    FOR_EACH_CELL(j, cell)
    sum += load(image + cell * j->c, j->lanes);
    store(out, sum / (float)((j->y1 - j->y0) * (j->x1 - j->x0)), j->lanes);
}

static inline __attribute__((always_inline)) void avg_backward_body(const job *j, float *image,
                                                                    float *out, int32_t *argmax)
{
    (void)argmax;
    vf share = load(out, j->lanes) / (float)((j->y1 - j->y0) * (j->x1 - j->x0));
    FOR_EACH_CELL(j, cell)
    {
        float *dx = image + cell * j->c;
        store(dx, load(dx, j->lanes) + share, j->lanes);
    }
}

/* All channels of one output cell: full vectors, then the tail. */
static inline __attribute__((always_inline)) void run_cell(job j, float *image, float *out,
                                                           int32_t *argmax, body *one)
{
    int64_t c = 0;
    j.lanes = LANES;
    for (; c + LANES <= j.c; c += LANES)
        one(&j, image + c, out + c, argmax ? argmax + c : NULL);
    j.lanes = (int)(j.c - c);
    if (j.lanes > 0)
        one(&j, image + c, out + c, argmax ? argmax + c : NULL);
}

/* Walks images, then output cells. With `zero` the image is an output that the
 * windows add to; it is zeroed just before, while it fits the cache. */
static inline __attribute__((always_inline)) void
walk(const ls__pool_shape *s, float *image, float *out, int32_t *argmax, bool zero, body *one)
{
    job j = { .w = s->w, .c = s->c };
    for (int64_t n = 0; n < s->n; n++, image += s->h * s->w * s->c) {
        if (zero)
            memset(image, 0, (size_t)(s->h * s->w * s->c) * sizeof *image);
        for (int64_t oy = 0; oy < s->oh; oy++) {
            ls__pool_clip(oy, s->stride_h, s->pad_top, s->kh, s->h, &j.y0, &j.y1);
            for (int64_t ox = 0; ox < s->ow; ox++) {
                ls__pool_clip(ox, s->stride_w, s->pad_left, s->kw, s->w, &j.x0, &j.x1);
                run_cell(j, image, out, argmax, one);
                out += s->c;
                argmax = argmax ? argmax + s->c : NULL;
            }
        }
    }
}

/* The bodies share one signature, so inputs lose their const on the way; each
 * body writes only what its pass calls an output. */
static void max_forward(const ls__pool_shape *s, const float *x, float *y, int32_t *argmax)
{
    walk(s, (float *)x, y, argmax, false, max_forward_body);
}

static void max_backward(const ls__pool_shape *s, const float *dy, const int32_t *argmax, float *dx)
{
    walk(s, dx, (float *)dy, (int32_t *)argmax, true, max_backward_body);
}

static void max_gather(const ls__pool_shape *s, const float *x, const int32_t *argmax, float *y)
{
    walk(s, (float *)x, y, (int32_t *)argmax, false, max_gather_body);
}

static void avg_forward(const ls__pool_shape *s, const float *x, float *y)
{
    walk(s, (float *)x, y, NULL, false, avg_forward_body);
}

static void avg_backward(const ls__pool_shape *s, const float *dy, float *dx)
{
    walk(s, dx, (float *)dy, NULL, true, avg_backward_body);
}

const ls__pool_kernels LS__ISA(ls__pool_table) = {
    .max_forward = max_forward,
    .max_backward = max_backward,
    .max_gather = max_gather,
    .avg_forward = avg_forward,
    .avg_backward = avg_backward,
};
