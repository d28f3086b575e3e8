/* winograd.h's transforms of the filter and of tiles on both sides, in two dimensions, sixteen channels at a time. */
#include "kernels/winograd.h"

#include "kernels/cpu/pool_window.h"
#include "kernels/cpu/winograd_line.h"
#include "kernels/cpu/winograd_product.h"
#include "kernels/isa.h"

typedef ls__winograd_tiles tiles;

/* A square to its 36 points: a filter's with 3 a side, sums' with 4. */
VEC_INLINE void put_points(const vec *square, int side, float *to, int64_t plane)
{
    vec half[IN * OUT], line[IN];
    VEC_UNROLL
    for (int i = 0; i < side; i++)
        if (side == TAPS)
            filter_to_points(square + i * TAPS, half + i, TAPS);
        else
            from_sums(square + i * OUT, half + i, OUT);
    VEC_UNROLL
    for (int j = 0; j < IN; j++) {
        if (side == TAPS)
            filter_to_points(half + j * TAPS, line, 1);
        else
            from_sums(half + j * OUT, line, 1);
        put_line(line, to + j * plane, IN * plane);
    }
}

/* ---- the filter --------------------------------------------------------------------------------- */

static void filter(const tiles *t, const float *w, float *u)
{
    for (int64_t c = 0; c < t->cs; c++)
        for (int64_t o = 0; o < t->os; o += VEC) {
            vec tap[TAPS * TAPS];
            VEC_UNROLL
            for (int k = 0; k < TAPS * TAPS; k++)
                tap[k] = c < t->c
                             ? vec_load_some(w + (k * t->c + c) * t->oc + o, vec_lanes(t->oc, o))
                             : vec_all(0);
            put_points(tap, TAPS, u + c * t->os + o, ls__winograd_plane(t->cs, t->os));
        }
}

static void filter_turned(const tiles *t, const float *w, float *u)
{
    for (int64_t o = 0; o < t->os; o++)
        for (int64_t c = 0; c < t->cs; c += VEC) {
            vec tap[TAPS * TAPS];
            const int64_t channels = o < t->oc ? (t->c - c < VEC ? t->c - c : VEC) : 0;
            VEC_UNROLL
            for (int k = 0; k < TAPS * TAPS; k++) {
                float column[VEC] = { 0 };
                for (int64_t i = 0; i < channels; i++)
                    column[i] = w[(k * t->c + c + i) * t->oc + o];
                tap[k] = vec_load(column);
            }
            put_points(tap, TAPS, u + o * t->cs + c, ls__winograd_plane(t->os, t->cs));
        }
}

static void filter_back(const tiles *t, const float *du, float *dw)
{
    const int64_t plane = ls__winograd_plane(t->cs, t->os);
    for (int64_t c = 0; c < t->c; c++)
        for (int64_t o = 0; o < t->oc; o += VEC) {
            vec half[TAPS * IN], line[IN], tap[TAPS * TAPS];
            VEC_UNROLL
            for (int j = 0; j < IN; j++) {
                get_line(du + j * plane + c * t->os + o, IN * plane, line);
                filter_from_points(line, half + j, IN);
            }
            VEC_UNROLL
            for (int i = 0; i < TAPS; i++)
                filter_from_points(half + i * IN, tap + i * TAPS, 1);
            VEC_UNROLL
            for (int k = 0; k < TAPS * TAPS; k++)
                vec_store_some(dw + (k * t->c + c) * t->oc + o, tap[k], vec_lanes(t->oc, o));
        }
}

/* ---- tiles of x ---------------------------------------------------------------------------------- */

/* Where a tile of a side lies in an image of h x w; some of its cells may be outside. */
typedef struct place {
    int64_t image, top, left;
    int64_t h, w;
} place;

static place place_of(const tiles *t, int64_t i, int64_t h, int64_t w, int64_t pad_top,
                      int64_t pad_left)
{
    const int64_t in_image = (t->first + i) % (t->down * t->across);
    return (place){ .image = (t->first + i) / (t->down * t->across),
                    .top = in_image / t->across * OUT - pad_top,
                    .left = in_image % t->across * OUT - pad_left,
                    .h = h,
                    .w = w };
}

VEC_INLINE bool is_inside(const place *at, int i, int j)
{
    const int64_t y = at->top + i, x = at->left + j;
    return y >= 0 && y < at->h && x >= 0 && x < at->w;
}

static bool is_whole(const place *at, int side)
{
    return at->top >= 0 && at->left >= 0 && at->top + side <= at->h && at->left + side <= at->w;
}

/* The cell's first channel; `c` channels a cell. */
VEC_INLINE int64_t cell(const place *at, int64_t c, int i, int j)
{
    return ((at->image * at->h + at->top + i) * at->w + at->left + j) * c;
}

VEC_INLINE void take_tile(const tiles *t, const place *at, const float *x, float *v, bool whole)
{
    const int64_t plane = ls__winograd_plane(LS__WINOGRAD_TILES, t->cs);
    for (int64_t c = 0; c < t->cs; c += VEC) {
        const uint16_t lanes = vec_lanes(t->c, c);
        vec half[POSITIONS], line[IN];
        VEC_UNROLL
        for (int j = 0; j < IN; j++) {
            VEC_UNROLL
            for (int i = 0; i < IN; i++)
                line[i] = whole || is_inside(at, i, j)
                              ? vec_load_some(x + cell(at, t->c, i, j) + c, lanes)
                              : vec_all(0);
            to_points(line, half + j, IN);
        }
        VEC_UNROLL
        for (int i = 0; i < IN; i++) {
            to_points(half + i * IN, line, 1);
            put_line(line, v + i * IN * plane + c, plane);
        }
    }
}

static void take(const tiles *t, const float *x, float *v)
{
    for (int64_t i = 0; i < t->count; i++, v += t->cs) {
        const place at = place_of(t, i, t->h, t->w, t->pad_top, t->pad_left);
        if (is_whole(&at, IN))
            take_tile(t, &at, x, v, true);
        else
            take_tile(t, &at, x, v, false);
    }
}

VEC_INLINE void take_back_tile(const tiles *t, const place *at, const float *dv, float *dx,
                               bool whole)
{
    const int64_t plane = ls__winograd_plane(LS__WINOGRAD_TILES, t->cs);
    for (int64_t c = 0; c < t->cs; c += VEC) {
        const uint16_t lanes = vec_lanes(t->c, c);
        vec half[POSITIONS], line[IN];
        VEC_UNROLL
        for (int j = 0; j < IN; j++) {
            get_line(dv + j * plane + c, IN * plane, line);
            from_points(line, half + j, IN);
        }
        VEC_UNROLL
        for (int i = 0; i < IN; i++) {
            from_points(half + i * IN, line, 1);
            VEC_UNROLL
            for (int j = 0; j < IN; j++)
                if (whole || is_inside(at, i, j)) {
                    float *to = dx + cell(at, t->c, i, j) + c;
                    vec_store_some(to, vec_load_some(to, lanes) + line[j], lanes);
                }
        }
    }
}

/* An image begins with zeros when its first tile comes. */
static void take_back(const tiles *t, const float *dv, float *dx)
{
    const int64_t image = t->h * t->w * t->c;
    for (int64_t i = 0; i < t->count; i++, dv += t->cs) {
        const place at = place_of(t, i, t->h, t->w, t->pad_top, t->pad_left);
        if ((t->first + i) % (t->down * t->across) == 0)
            memset(dx + at.image * image, 0, (size_t)image * sizeof *dx);
        if (is_whole(&at, IN))
            take_back_tile(t, &at, dv, dx, true);
        else
            take_back_tile(t, &at, dv, dx, false);
    }
}

/* ---- tiles of y ---------------------------------------------------------------------------------- */

VEC_INLINE void sums_of(const float *m, int64_t plane, vec y[OUT * OUT])
{
    vec half[OUT * IN], line[IN];
    VEC_UNROLL
    for (int j = 0; j < IN; j++) {
        get_line(m + j * plane, IN * plane, line);
        to_sums(line, half + j, IN);
    }
    VEC_UNROLL
    for (int i = 0; i < OUT; i++)
        to_sums(half + i * IN, y + i * OUT, 1);
}

static void give(const tiles *t, const float *m, const float *bias, bool relu, float *y)
{
    const int64_t plane = ls__winograd_plane(LS__WINOGRAD_TILES, t->os);
    for (int64_t i = 0; i < t->count; i++, m += t->os) {
        const place at = place_of(t, i, t->oh, t->ow, 0, 0);
        for (int64_t o = 0; o < t->oc; o += VEC) {
            const uint16_t lanes = vec_lanes(t->oc, o);
            vec sum[OUT * OUT];
            sums_of(m + o, plane, sum);
            VEC_UNROLL
            for (int k = 0; k < OUT * OUT; k++)
                if (is_inside(&at, k / OUT, k % OUT)) {
                    vec v = bias ? sum[k] + vec_load_some(bias + o, lanes) : sum[k];
                    vec_store_some(y + cell(&at, t->oc, k / OUT, k % OUT) + o,
                                   relu ? relu_of(v) : v, lanes);
                }
        }
    }
}

/* The windows of a tile are 2 x 2. */
enum { SIDE = OUT / 2, WINDOWS = SIDE * SIDE };

static place window_place(const tiles *t, int64_t i)
{
    place at = place_of(t, i, t->oh, t->ow, 0, 0);
    at.top /= 2;
    at.left /= 2;
    return at;
}

/* The marks of window k's channels from o on. */
VEC_INLINE int64_t marks_at(const tiles *t, const place *at, int k, int64_t o)
{
    return cell(at, ls__conv_pool_groups(t->oc) * LS__CONV_POOL_WORDS, k / SIDE, k % SIDE) +
           o / VEC * LS__CONV_POOL_WORDS;
}

/* Of a tile's sixteen cells the four of window k. */
VEC_INLINE int window_cell(int k, int q)
{
    return (k / SIDE * 2 + q / 2) * OUT + k % SIDE * 2 + q % 2;
}

static void give_pooled(const tiles *t, const float *m, const float *bias, float *p,
                        uint16_t *marks)
{
    const int64_t plane = ls__winograd_plane(LS__WINOGRAD_TILES, t->os);
    for (int64_t i = 0; i < t->count; i++, m += t->os) {
        const place at = window_place(t, i);
        for (int64_t o = 0; o < t->oc; o += VEC) {
            const uint16_t lanes = vec_lanes(t->oc, o);
            vec sum[OUT * OUT];
            sums_of(m + o, plane, sum);
            VEC_UNROLL
            for (int k = 0; k < WINDOWS; k++)
                if (is_inside(&at, k / SIDE, k % SIDE)) {
                    const vec four[4] = { sum[window_cell(k, 0)], sum[window_cell(k, 1)],
                                          sum[window_cell(k, 2)], sum[window_cell(k, 3)] };
                    pool_window(four, vec_load_some(bias + o, lanes), lanes, false,
                                p + cell(&at, t->oc, k / SIDE, k % SIDE) + o,
                                marks + marks_at(t, &at, k, o));
                }
        }
    }
}

static void give_back(const tiles *t, const float *dy, float *dm)
{
    const int64_t plane = ls__winograd_plane(LS__WINOGRAD_TILES, t->os);
    for (int64_t i = 0; i < t->count; i++, dm += t->os) {
        const place at = place_of(t, i, t->oh, t->ow, 0, 0);
        for (int64_t o = 0; o < t->os; o += VEC) {
            vec d[OUT * OUT];
            VEC_UNROLL
            for (int k = 0; k < OUT * OUT; k++)
                d[k] = is_inside(&at, k / OUT, k % OUT)
                           ? vec_load_some(dy + cell(&at, t->oc, k / OUT, k % OUT) + o,
                                           vec_lanes(t->oc, o))
                           : vec_all(0);
            put_points(d, OUT, dm + o, plane);
        }
    }
}

static void give_back_pooled(const tiles *t, const float *dp, const uint16_t *marks, float *dm,
                             float *dbias)
{
    const int64_t plane = ls__winograd_plane(LS__WINOGRAD_TILES, t->os);
    for (int64_t i = 0; i < t->count; i++, dm += t->os) {
        const place at = window_place(t, i);
        for (int64_t o = 0; o < t->os; o += VEC) {
            const uint16_t lanes = vec_lanes(t->oc, o);
            vec d[OUT * OUT], all = vec_all(0);
            VEC_UNROLL
            for (int k = 0; k < WINDOWS; k++) {
                vec four[4] = { vec_all(0), vec_all(0), vec_all(0), vec_all(0) };
                if (is_inside(&at, k / SIDE, k % SIDE))
                    all += pool_window_back(dp + cell(&at, t->oc, k / SIDE, k % SIDE) + o,
                                            marks + marks_at(t, &at, k, o), four);
                VEC_UNROLL
                for (int q = 0; q < 4; q++)
                    d[window_cell(k, q)] = four[q];
            }
            put_points(d, OUT, dm + o, plane);
            vec_store_some(dbias + o, vec_load_some(dbias + o, lanes) + all, lanes);
        }
    }
}

const ls__winograd_kernels LS__ISA(ls__winograd_table) = {
#if defined(__AVX512F__)
    .fast = true,
#endif
    .filter = filter,
    .filter_turned = filter_turned,
    .filter_back = filter_back,
    .take = take,
    .take_back = take_back,
    .give = give,
    .give_pooled = give_pooled,
    .give_back = give_back,
    .give_back_pooled = give_back_pooled,
    .product = product,
    .product_turned = product_turned,
};
