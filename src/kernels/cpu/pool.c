/*
 * SIMD pooling, NHWC f32, compiled once per instruction set. The vectors run
 * along channels, so each lane does exactly what ref_pool.c does for its
 * element, in the same order: the bits are the same at every width.
 *
 * The passes that follow an argmax do not scatter or gather: the winner lies in
 * the window, so they walk the window and let each lane pick the cell that won.
 * That is vector code with ordered stores. So a place never becomes an address:
 * whether all lie in the image is found out on the way, for the caller to refuse.
 *
 * 2x2 windows are the common case: their loops have constants and are unrolled.
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

/* Floats ahead of the place that is read: an image is larger than a cache that is near. (Training cnn2,
 * 2 MB: 220 us without, 180 with it.) */
enum { EARLY = 1024 };

typedef float vf __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef int32_t vi __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef uint32_t vu __attribute__((vector_size(LANES * 4), aligned(4), may_alias));

/* Channels [c, c + lanes) of one output cell and its window. */
typedef struct job {
    int64_t y, x, rows, cols; /* the window, clipped to the image */
    int64_t w, c;             /* width and channels of the image: of one block of them */
    uint32_t pixels;          /* of the image */
    bool relu;                /* of the maximum */
    int lanes;                /* below LANES only in the last job of a cell */
    vi *outside;              /* gets ones where a place is not in the image */
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
    for (int64_t iy = 0; iy < (j)->rows; iy++)                                                     \
        for (int64_t ix = 0, cell = ((j)->y + iy) * (j)->w + (j)->x; ix < (j)->cols; ix++, cell++)

/* In all of these `in` and `image` point at the first channel of the job: of
 * the output cell and of the image's (0, 0). */
typedef void body(const job *j, float *image, float *out, int32_t *argmax);

static inline __attribute__((always_inline)) void max_forward_body(const job *j, float *image,
                                                                   float *out, int32_t *argmax)
{
    vi won = all(j->y * j->w + j->x);
    vf best = load(image + (j->y * j->w + j->x) * j->c, j->lanes);
    FOR_EACH_CELL(j, cell)
    {
        vf value = load(image + cell * j->c, j->lanes);
        __builtin_prefetch(image + cell * j->c + EARLY);
        vi better = (vi)(best == best) & ((vi)(value > best) | (vi)(value != value));
        best = select_f(better, value, best);
        won = (better & all(cell)) | (~better & won);
    }
    if (j->relu) /* NaN stays, -0.0 becomes 0, as in the operator relu */
        best = (vf)(~(vi)(best <= (vf){ 0 }) & (vi)best);
    store(out, best, j->lanes);
    if (argmax)
        store_index(argmax, won, j->lanes);
}

/* The places of a job. A negative one is a large unsigned number. */
static inline __attribute__((always_inline)) vi load_places(const job *j, const int32_t *argmax)
{
    vi won = load_index(argmax, j->lanes);
    *j->outside |= (vi)((vu)won >= (vu){ 0 } + j->pixels);
    return won;
}

static inline __attribute__((always_inline)) void max_backward_body(const job *j, float *image,
                                                                    float *out, int32_t *argmax)
{
    vf dy = load(out, j->lanes);
    vi won = load_places(j, argmax);
    FOR_EACH_CELL(j, cell)
    {
        float *dx = image + cell * j->c;
        vf sum = load(dx, j->lanes);
        store(dx, select_f((vi)(won == all(cell)), sum + dy, sum), j->lanes);
    }
}

/* Where no two windows share a cell nothing needs to be there before: each cell of
 * the window is 0 + dy (which is not dy: -0.0) or 0. */
static inline __attribute__((always_inline)) void max_tile_body(const job *j, float *image,
                                                                float *out, int32_t *argmax)
{
    vf dy = (vf){ 0 } + load(out, j->lanes);
    vi won = load_places(j, argmax);
    FOR_EACH_CELL(j, cell)
    {
        store(image + cell * j->c, (vf)((vi)(won == all(cell)) & (vi)dy), j->lanes);
        __builtin_prefetch(image + cell * j->c + EARLY, 1);
    }
}

static inline __attribute__((always_inline)) void max_gather_body(const job *j, float *image,
                                                                  float *out, int32_t *argmax)
{
    vi won = load_places(j, argmax);
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
    store(out, sum / (float)(j->rows * j->cols), j->lanes);
}

static inline __attribute__((always_inline)) void avg_backward_body(const job *j, float *image,
                                                                    float *out, int32_t *argmax)
{
    (void)argmax;
    vf share = load(out, j->lanes) / (float)(j->rows * j->cols);
    FOR_EACH_CELL(j, cell)
    {
        float *dx = image + cell * j->c;
        store(dx, load(dx, j->lanes) + share, j->lanes);
    }
}

/* All channels of a block in one output cell: full vectors, then the tail. */
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

/* What a pass does to the image before its windows come. */
typedef enum zeroing {
    ZERO_NOTHING, /* it is an input */
    ZERO_IMAGE,   /* the windows add to it; zeroed just before, while it fits the cache */
    ZERO_REST     /* the windows write what they cover, as tiles do; the rest is zero */
} zeroing;

/* Cells of an axis that tiles cover: from the first on. */
static int64_t covered(int64_t windows, int64_t stride, int64_t pad, int64_t size)
{
    int64_t end = windows > 0 ? windows * stride - pad : 0;
    return end < size ? end : size;
}

static void zero_rest(const ls__pool_shape *s, int64_t channels, float *image)
{
    const int64_t rows = covered(s->oh, s->stride_h, s->pad_top, s->h);
    const int64_t cols = covered(s->ow, s->stride_w, s->pad_left, s->w);
    for (int64_t y = 0; y < rows && cols < s->w; y++)
        memset(image + (y * s->w + cols) * channels, 0,
               (size_t)((s->w - cols) * channels) * sizeof *image);
    if (rows < s->h)
        memset(image + rows * s->w * channels, 0,
               (size_t)((s->h - rows) * s->w * channels) * sizeof *image);
}

/* Walks the output cells of one block of channels of an image. */
static inline __attribute__((always_inline)) void
walk_block(const ls__pool_shape *s, job j, float *image, float *out, int32_t *argmax, body *one)
{
    for (int64_t oy = 0; oy < s->oh; oy++) {
        int64_t end;
        ls__pool_clip(oy, s->stride_h, s->pad_top, s->kh, s->h, &j.y, &end);
        j.rows = end - j.y;
        for (int64_t ox = 0; ox < s->ow; ox++) {
            ls__pool_clip(ox, s->stride_w, s->pad_left, s->kw, s->w, &j.x, &end);
            j.cols = end - j.x;
            if (j.rows == 2 && j.cols == 2) {
                job two = j;
                two.rows = two.cols = 2;
                run_cell(two, image, out, argmax, one);
            } else {
                run_cell(j, image, out, argmax, one);
            }
            out += s->c;
            argmax = argmax ? argmax + s->c : NULL;
        }
    }
}

/* Walks images, blocks of their channels, then output cells. False when a place was outside. */
static inline __attribute__((always_inline)) bool walk(const ls__pool_shape *s, float *image,
                                                       float *out, int32_t *argmax, zeroing zero,
                                                       bool relu, body *one)
{
    vi outside = { 0 };
    const int64_t block = s->block ? s->block : s->c, pooled = s->oh * s->ow * s->c;
    const job j = {
        .w = s->w, .c = block, .pixels = (uint32_t)(s->h * s->w), .relu = relu, .outside = &outside
    };
    for (int64_t n = 0; n < s->n; n++, out += pooled) {
        for (int64_t c = 0; c < s->c; c += block, image += s->h * s->w * block) {
            if (zero == ZERO_IMAGE)
                memset(image, 0, (size_t)(s->h * s->w * block) * sizeof *image);
            else if (zero == ZERO_REST)
                zero_rest(s, block, image);
            walk_block(s, j, image, out + c, argmax ? argmax + c : NULL, one);
        }
        argmax = argmax ? argmax + pooled : NULL;
    }
    int32_t any = 0;
    for (int i = 0; i < LANES; i++)
        any |= outside[i];
    return any == 0;
}

/* The bodies share one signature, so inputs lose their const on the way; each
 * body writes only what its pass calls an output. */
static void max_forward(const ls__pool_shape *s, const float *x, float *y, int32_t *argmax)
{
    walk(s, (float *)x, y, argmax, ZERO_NOTHING, false, max_forward_body);
}

static void max_forward_relu(const ls__pool_shape *s, const float *x, float *y, int32_t *argmax)
{
    walk(s, (float *)x, y, argmax, ZERO_NOTHING, true, max_forward_body);
}

static bool max_backward(const ls__pool_shape *s, const float *dy, const int32_t *argmax, float *dx)
{
    if (s->stride_h == s->kh && s->stride_w == s->kw)
        return walk(s, dx, (float *)dy, (int32_t *)argmax, ZERO_REST, false, max_tile_body);
    return walk(s, dx, (float *)dy, (int32_t *)argmax, ZERO_IMAGE, false, max_backward_body);
}

static bool max_gather(const ls__pool_shape *s, const float *x, const int32_t *argmax, float *y)
{
    return walk(s, (float *)x, y, (int32_t *)argmax, ZERO_NOTHING, false, max_gather_body);
}

static void avg_forward(const ls__pool_shape *s, const float *x, float *y)
{
    walk(s, (float *)x, y, NULL, ZERO_NOTHING, false, avg_forward_body);
}

static void avg_backward(const ls__pool_shape *s, const float *dy, float *dx)
{
    walk(s, dx, (float *)dy, NULL, ZERO_IMAGE, false, avg_backward_body);
}

const ls__pool_kernels LS__ISA(ls__pool_table) = {
    .max_forward = max_forward,
    .max_forward_relu = max_forward_relu,
    .max_backward = max_backward,
    .max_gather = max_gather,
    .avg_forward = avg_forward,
    .avg_backward = avg_backward,
};
