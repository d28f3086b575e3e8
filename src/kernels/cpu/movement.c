/*
 * Fast data movement. A walk is first made as short as it can be (axes of size
 * one dropped, axes that lie one after the other on both sides joined); its
 * last axis then decides how the innermost two loops run:
 *
 *   runs       both sides step by 1           copies of whole runs
 *   repeats    reads step by 0                fills
 *   transpose  writes step by 1, reads step   square tiles, so that every cache
 *              by 1 along another axis        line is used whole on both sides
 *   strided    anything else                  element by element
 *
 * Invariant: elements are moved as bits; sums (scatter) add rows in the order
 * they appear, each element on its own, so bits depend on neither vector width
 * nor place.
 */
#include <string.h>

#include "kernels/isa.h"
#include "kernels/movement.h"

/* The innermost two loops: `rows` times `cols` elements. */
typedef struct plane {
    int64_t rows, cols;
    int64_t from_row, from_col, to_row, to_col; /* strides in elements */
} plane;

typedef void (*plane_fn)(const plane *p, const char *from, char *to);

/* ---- runs: memcpy is called only where it pays -------------------------------- */

static inline void copy16(char *to, const char *from)
{
    memcpy(to, from, 16);
}

static inline void copy_run(char *to, const char *from, size_t n)
{
    if (n > 64) {
        memcpy(to, from, n);
    } else if (n >= 16) {
        /* The last copy may overlap the ones before: same bytes. */
        for (size_t i = 0; i + 16 < n; i += 16)
            copy16(to + i, from + i);
        copy16(to + n - 16, from + n - 16);
    } else if (n >= 8) {
        memcpy(to, from, 8);
        memcpy(to + n - 8, from + n - 8, 8);
    } else if (n >= 4) {
        memcpy(to, from, 4);
        memcpy(to + n - 4, from + n - 4, 4);
    } else {
        for (size_t i = 0; i < n; i++)
            to[i] = from[i];
    }
}

/* ---- the four inner loops, by element size -------------------------------------- */

/* Elements of whatever type, as bits. */
typedef uint8_t __attribute__((may_alias)) u8;
typedef uint16_t __attribute__((may_alias)) u16;
typedef uint32_t __attribute__((may_alias)) u32;
typedef uint64_t __attribute__((may_alias)) u64;

#define TILE 16

#define PLANES(bits)                                                                               \
    static void runs_##bits(const plane *p, const char *from, char *to)                            \
    {                                                                                              \
        const size_t e = sizeof(u##bits), run = (size_t)p->cols * e;                               \
        for (int64_t r = 0; r < p->rows; r++)                                                      \
            copy_run(to + r * p->to_row * (int64_t)e, from + r * p->from_row * (int64_t)e, run);   \
    }                                                                                              \
                                                                                                   \
    static void fill_##bits(u##bits value, u##bits *restrict to, int64_t n)                        \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            to[i] = value;                                                                         \
    }                                                                                              \
                                                                                                   \
    static void repeats_##bits(const plane *p, const char *from, char *to)                         \
    {                                                                                              \
        const u##bits *f = (const u##bits *)from;                                                  \
        for (int64_t r = 0; r < p->rows; r++)                                                      \
            fill_##bits(f[r * p->from_row], (u##bits *)to + r * p->to_row, p->cols);               \
    }                                                                                              \
                                                                                                   \
    static void strided_##bits(const plane *p, const char *from, char *to)                         \
    {                                                                                              \
        for (int64_t r = 0; r < p->rows; r++) {                                                    \
            const u##bits *restrict f = (const u##bits *)from + r * p->from_row;                   \
            u##bits *restrict t = (u##bits *)to + r * p->to_row;                                   \
            for (int64_t c = 0; c < p->cols; c++)                                                  \
                t[c * p->to_col] = f[c * p->from_col];                                             \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void corner_##bits(const plane *p, const u##bits *restrict f, u##bits *restrict t,      \
                              int64_t rows, int64_t cols)                                          \
    {                                                                                              \
        for (int64_t r = 0; r < rows; r++)                                                         \
            for (int64_t c = 0; c < cols; c++)                                                     \
                t[r * p->to_row + c] = f[c * p->from_col + r];                                     \
    }                                                                                              \
                                                                                                   \
    static void transpose_##bits(const plane *p, const char *from, char *to)                       \
    {                                                                                              \
        const u##bits *f = (const u##bits *)from;                                                  \
        u##bits *t = (u##bits *)to;                                                                \
        for (int64_t r = 0; r < p->rows; r += TILE) {                                              \
            int64_t nr = p->rows - r < TILE ? p->rows - r : TILE;                                  \
            for (int64_t c = 0; c < p->cols; c += TILE) {                                          \
                int64_t nc = p->cols - c < TILE ? p->cols - c : TILE;                              \
                const u##bits *ft = f + c * p->from_col + r;                                       \
                u##bits *tt = t + r * p->to_row + c;                                               \
                if (nr == TILE && nc == TILE)                                                      \
                    tile_##bits(p, ft, tt);                                                        \
                else                                                                               \
                    corner_##bits(p, ft, tt, nr, nc);                                              \
            }                                                                                      \
        }                                                                                          \
    }

/* A whole tile. Four-byte elements go through 4 x 4 registers; the rest are
 * plain loops. */
#define PLAIN_TILE(bits)                                                                           \
    static void tile_##bits(const plane *p, const u##bits *restrict f, u##bits *restrict t)        \
    {                                                                                              \
        for (int r = 0; r < TILE; r++)                                                             \
            for (int c = 0; c < TILE; c++)                                                         \
                t[r * p->to_row + c] = f[c * p->from_col + r];                                     \
    }

PLAIN_TILE(8)
PLAIN_TILE(16)
PLAIN_TILE(64)

typedef uint32_t v4 __attribute__((vector_size(16)));

static inline v4 load4(const u32 *p)
{
    v4 v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void store4(u32 *p, v4 v)
{
    memcpy(p, &v, sizeof v);
}

static void tile_32(const plane *p, const u32 *f, u32 *t)
{
    for (int r = 0; r < TILE; r += 4)
        for (int c = 0; c < TILE; c += 4) {
            const u32 *ff = f + c * p->from_col + r;
            u32 *tt = t + r * p->to_row + c;
            v4 a = load4(ff), b = load4(ff + p->from_col);
            v4 d = load4(ff + 2 * p->from_col), e = load4(ff + 3 * p->from_col);
            v4 ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
            v4 ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
            v4 de_low = __builtin_shufflevector(d, e, 0, 4, 1, 5);
            v4 de_high = __builtin_shufflevector(d, e, 2, 6, 3, 7);
            store4(tt, __builtin_shufflevector(ab_low, de_low, 0, 1, 4, 5));
            store4(tt + p->to_row, __builtin_shufflevector(ab_low, de_low, 2, 3, 6, 7));
            store4(tt + 2 * p->to_row, __builtin_shufflevector(ab_high, de_high, 0, 1, 4, 5));
            store4(tt + 3 * p->to_row, __builtin_shufflevector(ab_high, de_high, 2, 3, 6, 7));
        }
}

PLANES(8)
PLANES(16)
PLANES(32)
PLANES(64)

enum { RUNS, REPEATS, TRANSPOSE, STRIDED };

#define BY_KIND(bits)                                                                              \
    {                                                                                              \
        runs_##bits, repeats_##bits, transpose_##bits, strided_##bits                              \
    }
static const plane_fn plane_fns[4][4] = { BY_KIND(8), BY_KIND(16), BY_KIND(32), BY_KIND(64) };

static int log2_of(size_t element)
{
    return element == 1 ? 0 : element == 2 ? 1 : element == 4 ? 2 : 3;
}

/* ---- walking --------------------------------------------------------------------- */

/* Drops and joins axes; false when there is nothing to move. */
static int shorten(const ls__walk *w, ls__walk *out)
{
    int n = 0;
    for (int i = 0; i < w->rank; i++) {
        if (w->dims[i] == 0)
            return 0;
        if (w->dims[i] == 1)
            continue;
        if (n && out->from[n - 1] == w->from[i] * w->dims[i] &&
            out->to[n - 1] == w->to[i] * w->dims[i]) {
            out->dims[n - 1] *= w->dims[i];
            out->from[n - 1] = w->from[i];
            out->to[n - 1] = w->to[i];
            continue;
        }
        out->dims[n] = w->dims[i];
        out->from[n] = w->from[i];
        out->to[n] = w->to[i];
        n++;
    }
    out->rank = n;
    return 1;
}

static void take_axis(ls__walk *w, int axis)
{
    w->rank--;
    for (int i = axis; i < w->rank; i++) {
        w->dims[i] = w->dims[i + 1];
        w->from[i] = w->from[i + 1];
        w->to[i] = w->to[i + 1];
    }
}

/* Splits the walk into a plane and what remains outside of it. */
static int split_plane(ls__walk *w, plane *p)
{
    int last = w->rank - 1, row = last - 1, kind = STRIDED;
    if (w->to[last] == 1 && w->from[last] == 1) {
        kind = RUNS;
    } else if (w->to[last] == 1 && w->from[last] == 0) {
        kind = REPEATS;
    } else if (w->to[last] == 1) {
        for (int i = 0; i < last; i++)
            if (w->from[i] == 1) {
                row = i;
                kind = TRANSPOSE;
            }
    }
    *p = (plane){
        .rows = 1, .cols = w->dims[last], .from_col = w->from[last], .to_col = w->to[last]
    };
    if (row >= 0) {
        p->rows = w->dims[row];
        p->from_row = w->from[row];
        p->to_row = w->to[row];
    }
    w->rank = last;
    if (row >= 0)
        take_axis(w, row);
    return kind;
}

static void move(const ls__walk *walk, size_t element, const void *from, void *to)
{
    ls__walk w;
    if (!shorten(walk, &w))
        return;
    if (w.rank == 0) {
        memcpy(to, from, element);
        return;
    }
    plane p;
    const plane_fn inner = plane_fns[log2_of(element)][split_plane(&w, &p)];
    const int64_t e = (int64_t)element;
    const char *f = from;
    char *t = to;
    int64_t place[LS__WALK_RANK] = { 0 };
    for (;;) {
        inner(&p, f, t);
        int i = w.rank - 1;
        for (; i >= 0; i--) {
            f += w.from[i] * e;
            t += w.to[i] * e;
            if (++place[i] < w.dims[i])
                break;
            f -= w.dims[i] * w.from[i] * e;
            t -= w.dims[i] * w.to[i] * e;
            place[i] = 0;
        }
        if (i < 0)
            return;
    }
}

static void fill(size_t element, const void *value, void *to, int64_t n)
{
    const plane p = { .rows = 1, .cols = n };
    plane_fns[log2_of(element)][REPEATS](&p, value, to);
}

/* ---- looking up --------------------------------------------------------------------- */

#define PICK_ELEMENTS(bits)                                                                        \
    static void pick_##bits(const ls__indices *ix, const void *from, void *to)                     \
    {                                                                                              \
        const u##bits *f = from;                                                                   \
        u##bits *t = to;                                                                           \
        for (int64_t i = 0; i < ix->count; i++)                                                    \
            t[i] = f[ls__index(ix, i)];                                                            \
    }

PICK_ELEMENTS(8)
PICK_ELEMENTS(16)
PICK_ELEMENTS(32)
PICK_ELEMENTS(64)

static void gather(const ls__indices *ix, int64_t outer, int64_t axis, int64_t inner,
                   size_t element, const void *from, void *to)
{
    static void (*const pick[4])(const ls__indices *, const void *, void *) = { pick_8, pick_16,
                                                                                pick_32, pick_64 };
    const size_t run = (size_t)inner * element;
    if (!run)
        return;
    for (int64_t o = 0; o < outer; o++) {
        const char *f = (const char *)from + (size_t)(o * axis) * run;
        char *t = (char *)to + (size_t)(o * ix->count) * run;
        if (inner == 1) {
            pick[log2_of(element)](ix, f, t);
            continue;
        }
        for (int64_t i = 0; i < ix->count; i++)
            copy_run(t + (size_t)i * run, f + (size_t)ls__index(ix, i) * run, run);
    }
}

#define SCATTER(name, type)                                                                        \
    static void name(const ls__indices *ix, int64_t rows, int64_t width,                           \
                     const type *restrict from, type *restrict to)                                 \
    {                                                                                              \
        if (rows * width == 0)                                                                     \
            return;                                                                                \
        memset(to, 0, (size_t)(rows * width) * sizeof(type));                                      \
        for (int64_t i = 0; i < ix->count; i++) {                                                  \
            type *restrict t = to + ls__index(ix, i) * width;                                      \
            const type *restrict f = from + i * width;                                             \
            for (int64_t j = 0; j < width; j++)                                                    \
                t[j] += f[j];                                                                      \
        }                                                                                          \
    }

SCATTER(scatter_f32, float)
SCATTER(scatter_f64, double)

const ls__movement LS__ISA(ls__movement_table) = { move, fill, gather, scatter_f32, scatter_f64 };
