/* See winograd.h: blocks of tiles, all images in order, each from the first transform to the last. */
#include "kernels/winograd.h"

#include "kernels/threads.h"

#include <string.h>

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

/* The scratch memory: matrices of the filter, of a block's tiles on both sides, and back of the filter's gradient. */
typedef struct rooms {
    float *u, *v, *m, *du;
} rooms;

static int64_t filter_floats(const ls__winograd_tiles *t)
{
    return LS__WINOGRAD_POSITIONS * ls__winograd_plane(t->cs, t->os);
}

static int64_t side_floats(int64_t channels)
{
    return LS__WINOGRAD_POSITIONS * ls__winograd_plane(LS__WINOGRAD_TILES, channels);
}

int64_t ls__winograd_scratch(const ls__conv_shape *s, bool back)
{
    const ls__winograd_tiles t = open_tiles(s, false);
    return (back ? 2 : 1) * filter_floats(&t) + side_floats(t.cs) + side_floats(t.os);
}

static rooms share(const ls__winograd_tiles *t, float *scratch)
{
    float *v = scratch + filter_floats(t), *m = v + side_floats(t->cs);
    return (rooms){ .u = scratch, .v = v, .m = m, .du = m + side_floats(t->os) };
}

/* The next block of all tiles of n images; false: there is none. */
static bool next_block(ls__winograd_tiles *t, int64_t n)
{
    const int64_t all = n * t->down * t->across;
    t->first += t->count;
    t->count = all - t->first < LS__WINOGRAD_TILES ? all - t->first : LS__WINOGRAD_TILES;
    return t->count > 0;
}

void ls__winograd_forward(const ls__conv_shape *s, const float *x, const float *w,
                          const float *bias, float *y, uint16_t *marks, float *scratch)
{
    const ls__winograd_kernels *k = LS__PICK(ls__winograd_table);
    ls__winograd_tiles t = open_tiles(s, marks != NULL);
    const rooms r = share(&t, scratch);
    k->filter(&t, w, r.u);
    while (next_block(&t, s->n)) {
        k->take(&t, x, r.v);
        k->product(t.count, t.cs, t.os, r.v, r.u, r.m);
        if (marks)
            k->give_pooled(&t, r.m, bias, y, marks);
        else
            k->give(&t, r.m, bias, s->relu, y);
    }
}

/* Where a block's gradient is, both sides need it. */
void ls__winograd_backward(const ls__conv_shape *s, const float *x, const float *w, const float *dy,
                           const uint16_t *marks, float *dx, float *dw, float *dbias,
                           float *scratch)
{
    const ls__winograd_kernels *k = LS__PICK(ls__winograd_table);
    ls__winograd_tiles t = open_tiles(s, marks != NULL);
    const rooms r = share(&t, scratch);
    memset(r.du, 0, (size_t)filter_floats(&t) * sizeof *r.du);
    if (marks)
        memset(dbias, 0, (size_t)s->oc * sizeof *dbias);
    if (t.down * t.across == 0)
        memset(dx, 0, (size_t)ls__conv_count(s, LS__CONV_X) * sizeof *dx);
    k->filter_turned(&t, w, r.u);
    while (next_block(&t, s->n)) {
        if (marks)
            k->give_back_pooled(&t, dy, marks, r.m, dbias);
        else
            k->give_back(&t, dy, r.m);
        k->product(t.count, t.os, t.cs, r.m, r.u, r.v);
        k->take_back(&t, r.v, dx);
        k->take(&t, x, r.v);
        k->product_add(t.count, t.cs, t.os, r.v, r.m, r.du);
    }
    k->filter_back(&t, r.du, dw);
}
