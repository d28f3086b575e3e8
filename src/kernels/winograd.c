/* See winograd.h: blocks of tiles, all images in order, each from the first transform to the last. */
#include "kernels/winograd.h"

#include <string.h>

#include "kernels/replicas.h"
#include "kernels/threads.h"
#include "os/help.h"

bool ls__winograd_can(const ls__conv_shape *s)
{
    return s->kh == 3 && s->kw == 3 && s->stride_h == 1 && s->stride_w == 1 && s->dilation_h == 1 &&
           s->dilation_w == 1 && !s->depthwise && s->c > 0 && s->oc > 0;
}

static int64_t tiles_for(int64_t side)
{
    return (side + LS__WINOGRAD_OUT - 1) / LS__WINOGRAD_OUT;
}

/* Measured on Zen 4, 1 thread, against the best of oneDNN's layouts each (its own Winograd among them): from
 * 16 -> 16 channels on 28 x 28 (0.96 of its time forward, 0.88 both ways back) over 32 -> 64 on 13 x 13
 * (0.86, 0.52), 64 -> 64 on 7 x 7 (0.79, 0.74) and 128 -> 256 on 9 x 9 (0.85, 0.80) to 192 -> 192 on 14 x 14
 * (0.85, 0.92). 256 -> 256 is slower back (1.15), since matrices of the filter fill the second cache, and a
 * handful of tiles are less work than the filter's transforms. */
bool ls__winograd_pays(const ls__conv_shape *s)
{
    enum { LEAST = 16, MOST = 192 * 192, LEAST_TILES = 8 };
    return ls__winograd_can(s) && s->c >= LEAST && s->oc >= LEAST && s->c <= MOST / s->oc &&
           s->n * tiles_for(s->oh) * tiles_for(s->ow) >= LEAST_TILES &&
           ls__kernel_threads_get() == 1 && LS__PICK(ls__winograd_table)->fast;
}

static int64_t whole(int64_t channels)
{
    return (channels + 15) / 16 * 16;
}

/* Of outputs that a pool drops there are no tiles. */
static ls__winograd_tiles open_tiles(const ls__conv_shape *s, bool pooled)
{
    const int64_t oh = pooled ? s->oh / 2 : s->oh, ow = pooled ? s->ow / 2 : s->ow;
    return (ls__winograd_tiles){ .h = s->h,
                                 .w = s->w,
                                 .c = s->c,
                                 .oh = oh,
                                 .ow = ow,
                                 .oc = s->oc,
                                 .pad_top = s->pad_top,
                                 .pad_left = s->pad_left,
                                 .down = tiles_for(pooled ? 2 * oh : oh),
                                 .across = tiles_for(pooled ? 2 * ow : ow),
                                 .cs = whole(s->c),
                                 .os = whole(s->oc) };
}

/* ---- parts, which idle threads may take over (os/help.h) ------------------------------------------ */

static int64_t filter_floats(const ls__winograd_tiles *t)
{
    return LS__WINOGRAD_POSITIONS * ls__winograd_plane(t->cs, t->os);
}

static int64_t side_floats(int64_t channels)
{
    return LS__WINOGRAD_POSITIONS * ls__winograd_plane(LS__WINOGRAD_TILES, channels);
}

enum { MOST_PARTS = 4 };

/*
 * Back, a part is some images, the gradient of whose filter is a sum of its own: those are added up
 * in the end. More of them are shared better and cost more: of 32 x 64 channels some 10 us each, of
 * 2 ms in all. A function of sizes alone, since bits depend on it.
 */
static int64_t parts_back(const ls__conv_shape *s)
{
    enum { ROOM = 1 << 20 }; /* floats of sums */
    const ls__winograd_tiles t = open_tiles(s, false);
    int64_t parts = s->n * t.down * t.across / LS__WINOGRAD_TILES;
    parts = parts < MOST_PARTS ? parts : MOST_PARTS;
    parts = parts < s->n ? parts : s->n;
    while (parts > 1 && parts * filter_floats(&t) > ROOM)
        parts--;
    return parts > 1 ? parts : 1;
}

/* The scratch memory: matrices of the filter, of a block's tiles on both sides for each worker, and, back, of each part
 * gradients of the filter and the bias. */
typedef struct rooms {
    float *u, *v[LS__HELP_WORKERS], *m[LS__HELP_WORKERS], *du, *dbias;
} rooms;

int64_t ls__winograd_scratch(const ls__conv_shape *s, bool back)
{
    const ls__winograd_tiles t = open_tiles(s, false);
    return filter_floats(&t) + LS__HELP_WORKERS * (side_floats(t.cs) + side_floats(t.os)) +
           (back ? parts_back(s) * (filter_floats(&t) + t.os) : 0);
}

static rooms share(const ls__winograd_tiles *t, int64_t parts, float *scratch)
{
    rooms r = { .u = scratch };
    scratch += filter_floats(t);
    for (int w = 0; w < LS__HELP_WORKERS; w++) {
        r.v[w] = scratch;
        r.m[w] = scratch + side_floats(t->cs);
        scratch = r.m[w] + side_floats(t->os);
    }
    r.du = scratch;
    r.dbias = scratch + parts * filter_floats(t);
    return r;
}

/* What is computed, the same for all parts. */
typedef struct job {
    const ls__conv_shape *s;
    const ls__winograd_kernels *k;
    ls__winograd_tiles t;
    rooms r;
    const float *x, *bias, *dy;
    float *y, *dx;
    const uint16_t *marks; /* back */
    uint16_t *marked;      /* forward */
    int64_t parts;
} job;

static int64_t tiles_of(const ls__winograd_tiles *t, int64_t images)
{
    return images * t->down * t->across;
}

/* The block of tiles from `first` on, of those before `past`. */
static ls__winograd_tiles block_at(const ls__winograd_tiles *t, int64_t first, int64_t past)
{
    ls__winograd_tiles block = *t;
    block.first = first;
    block.count = past - first < LS__WINOGRAD_TILES ? past - first : LS__WINOGRAD_TILES;
    return block;
}

/* ---- forward ---------------------------------------------------------------------------------- */

/* A part is a block. */
static void forward_part(void *arg, int64_t part, int worker)
{
    const job *j = arg;
    const ls__winograd_tiles t =
        block_at(&j->t, part * LS__WINOGRAD_TILES, tiles_of(&j->t, j->s->n));
    float *v = j->r.v[worker], *m = j->r.m[worker];
    j->k->take(&t, j->x, v);
    j->k->product(t.count, t.cs, t.os, v, j->r.u, m);
    if (j->marked)
        j->k->give_pooled(&t, m, j->bias, j->y, j->marked);
    else
        j->k->give(&t, m, j->bias, j->s->relu, j->y);
}

void ls__winograd_forward(const ls__conv_shape *s, const float *x, const float *w,
                          const float *bias, float *y, uint16_t *marks, float *scratch)
{
    const ls__winograd_tiles t = open_tiles(s, marks != NULL);
    job j = { .s = s,
              .k = LS__PICK(ls__winograd_table),
              .t = t,
              .r = share(&t, 0, scratch),
              .x = x,
              .bias = bias,
              .y = y,
              .marked = marks };
    j.k->filter(&t, w, j.r.u);
    ls__help_run((tiles_of(&t, s->n) + LS__WINOGRAD_TILES - 1) / LS__WINOGRAD_TILES, forward_part,
                 &j);
}

/* ---- backward ------------------------------------------------------------------------------- */

/* Where a block's gradient is, both sides need it. */
static void backward_part(void *arg, int64_t part, int worker)
{
    const job *j = arg;
    const ls__winograd_kernels *k = j->k;
    const int64_t first = tiles_of(&j->t, j->s->n * part / j->parts);
    const int64_t past = tiles_of(&j->t, j->s->n * (part + 1) / j->parts);
    float *v = j->r.v[worker], *m = j->r.m[worker];
    float *du = j->r.du + part * filter_floats(&j->t), *dbias = j->r.dbias + part * j->t.os;
    memset(dbias, 0, (size_t)j->t.os * sizeof *dbias);
    if (first == past)
        memset(du, 0, (size_t)filter_floats(&j->t) * sizeof *du);
    for (int64_t at = first; at < past; at += LS__WINOGRAD_TILES) {
        const ls__winograd_tiles t = block_at(&j->t, at, past);
        if (j->marks)
            k->give_back_pooled(&t, j->dy, j->marks, m, dbias);
        else
            k->give_back(&t, j->dy, m);
        k->product(t.count, t.os, t.cs, m, j->r.u, v);
        k->take_back(&t, v, j->dx);
        k->take(&t, j->x, v);
        k->product_turned(t.count, t.cs, t.os, v, m, du, at > first);
    }
}

/* The parts' gradients, one `apart` floats behind the other, into the first one. */
static void add_up(int64_t parts, float *of, int64_t apart)
{
    const void *in[MOST_PARTS];
    for (int64_t i = 0; i < parts; i++)
        in[i] = of + i * apart;
    if (parts > 1)
        LS__PICK(ls__replicas_table)->sum[LS_F32]((int)parts, in, of, apart);
}

void ls__winograd_backward(const ls__conv_shape *s, const float *x, const float *w, const float *dy,
                           const uint16_t *marks, float *dx, float *dw, float *dbias,
                           float *scratch)
{
    const ls__winograd_tiles t = open_tiles(s, marks != NULL);
    const int64_t parts = parts_back(s);
    job j = { .s = s,
              .k = LS__PICK(ls__winograd_table),
              .t = t,
              .r = share(&t, parts, scratch),
              .x = x,
              .dy = dy,
              .dx = dx,
              .marks = marks,
              .parts = parts };
    if (t.down * t.across == 0)
        memset(dx, 0, (size_t)ls__conv_count(s, LS__CONV_X) * sizeof *dx);
    j.k->filter_turned(&t, w, j.r.u);
    ls__help_run(parts, backward_part, &j);
    add_up(parts, j.r.du, filter_floats(&t));
    j.k->filter_back(&t, j.r.du, dw);
    if (!marks)
        return;
    add_up(parts, j.r.dbias, t.os);
    memcpy(dbias, j.r.dbias, (size_t)s->oc * sizeof *dbias);
}
