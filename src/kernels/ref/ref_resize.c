/*
 * Resizing in plain C. Invariant: an output element is left + (right - left) *
 * part along the width, in the two rows it lies between, and the same of those
 * two along the height; nothing else, in no other order. An input row that two
 * output rows need is interpolated once: downwards rows follow one another, so
 * two rows of memory are enough.
 */
#include "kernels/resize.h"

#include <string.h>

static float scale_of(int64_t in, int64_t out)
{
    return (float)in / (float)out;
}

static int64_t at_most(int64_t i, int64_t last)
{
    return i < last ? i : last;
}

ls__between ls__resize_between(int64_t i, int64_t in, int64_t out)
{
    float at = ((float)i + 0.5f) * scale_of(in, out) - 0.5f; /* never below -0.5 */
    int64_t floor = at < 0 ? -1 : (int64_t)at;
    int64_t ceil = floor + (at > (float)floor);
    return (ls__between){ at_most(floor < 0 ? 0 : floor, in - 1), at_most(ceil, in - 1),
                          at - (float)floor };
}

int64_t ls__resize_nearest(int64_t i, int64_t in, int64_t out)
{
    return at_most((int64_t)(((float)i + 0.5f) * scale_of(in, out)), in - 1);
}

size_t ls__resize_scratch(const ls__resize_shape *s, ls_dtype to)
{
    if (s->n == 0 || s->c == 0)
        return 0;
    return (size_t)s->ow * (sizeof(ls__between) + 2 * (size_t)s->c * ls_dtype_size(to));
}

/* The columns' places, at the start of the scratch memory; what follows them. */
static void *place_columns(const ls__resize_shape *s, void *scratch)
{
    ls__between *columns = scratch;
    for (int64_t x = 0; x < s->ow; x++)
        columns[x] = ls__resize_between(x, s->w, s->ow);
    return columns + s->ow;
}

/* An input row at the width of the output. */
#define ACROSS(name, T, R)                                                                         \
    static void across_##name(const ls__resize_shape *s, const ls__between *columns, const T *row, \
                              R *to)                                                               \
    {                                                                                              \
        for (int64_t x = 0; x < s->ow; x++) {                                                      \
            const T *a = row + columns[x].low * s->c, *b = row + columns[x].high * s->c;           \
            const R part = columns[x].part;                                                        \
            for (int64_t k = 0; k < s->c; k++)                                                     \
                *to++ = (R)a[k] + ((R)b[k] - (R)a[k]) * part;                                      \
        }                                                                                          \
    }

/* One picture; rows[0] and rows[1] are the input rows `held`. */
#define PICTURE(name, T, R)                                                                        \
    static void picture_##name(const ls__resize_shape *s, const ls__between *columns, R *rows[2],  \
                               const T *x, R *y)                                                   \
    {                                                                                              \
        const int64_t width = s->ow * s->c;                                                        \
        int64_t held[2] = { -1, -1 };                                                              \
        for (int64_t i = 0; i < s->oh; i++, y += width) {                                          \
            const ls__between at = ls__resize_between(i, s->h, s->oh);                             \
            if (held[1] == at.low) {                                                               \
                R *swap = rows[0];                                                                 \
                rows[0] = rows[1];                                                                 \
                rows[1] = swap;                                                                    \
                held[1] = held[0];                                                                 \
                held[0] = at.low;                                                                  \
            }                                                                                      \
            if (held[0] != at.low)                                                                 \
                across_##name(s, columns, x + at.low * s->w * s->c, rows[0]);                      \
            held[0] = at.low;                                                                      \
            if (at.high != at.low && held[1] != at.high) {                                         \
                across_##name(s, columns, x + at.high * s->w * s->c, rows[1]);                     \
                held[1] = at.high;                                                                 \
            }                                                                                      \
            const R *top = rows[0], *bottom = at.high == at.low ? top : rows[1], part = at.part;   \
            for (int64_t k = 0; k < width; k++)                                                    \
                y[k] = top[k] + (bottom[k] - top[k]) * part;                                       \
        }                                                                                          \
    }

#define PICTURES(name, T, R)                                                                       \
    ACROSS(name, T, R)                                                                             \
    PICTURE(name, T, R)                                                                            \
    static void pictures_##name(const ls__resize_shape *s, const T *x, R *y, void *scratch)        \
    {                                                                                              \
        const int64_t width = s->ow * s->c;                                                        \
        R *first = place_columns(s, scratch), *rows[2] = { first, first + width };                 \
        for (int64_t n = 0; n < s->n; n++)                                                         \
            picture_##name(s, scratch, rows, x + n * s->h * s->w * s->c, y + n * s->oh * width);   \
    }

PICTURES(f32, float, float)
PICTURES(f64, double, double)
PICTURES(i32, int32_t, float)
PICTURES(i64, int64_t, float)
PICTURES(u8, uint8_t, float)

void ls__resize_bilinear(const ls__resize_shape *s, ls_dtype from, const void *x, void *y,
                         void *scratch)
{
    if (s->n == 0 || s->c == 0)
        return;
    if (from == LS_F64)
        pictures_f64(s, x, y, scratch);
    else if (from == LS_I32)
        pictures_i32(s, x, y, scratch);
    else if (from == LS_I64)
        pictures_i64(s, x, y, scratch);
    else if (from == LS_U8)
        pictures_u8(s, x, y, scratch);
    else
        pictures_f32(s, x, y, scratch);
}

/* ---- backwards ---------------------------------------------------------------------- */

#define BACK(name, T)                                                                              \
    /* One row of dy to the two rows of dx that it was made of. */                                 \
    static void row_back_##name(const ls__resize_shape *s, const ls__between *columns, T part,     \
                                const T *dy, T *top, T *bottom)                                    \
    {                                                                                              \
        for (int64_t x = 0; x < s->ow; x++) {                                                      \
            const T right = columns[x].part, left = 1 - right;                                     \
            const int64_t a = columns[x].low * s->c, b = columns[x].high * s->c;                   \
            for (int64_t k = 0; k < s->c; k++, dy++) {                                             \
                const T up = *dy * (1 - part), down = *dy * part;                                  \
                top[a + k] += up * left;                                                           \
                top[b + k] += up * right;                                                          \
                bottom[a + k] += down * left;                                                      \
                bottom[b + k] += down * right;                                                     \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void back_##name(const ls__resize_shape *s, const T *dy, T *dx, void *scratch)          \
    {                                                                                              \
        const int64_t width = s->w * s->c;                                                         \
        place_columns(s, scratch);                                                                 \
        memset(dx, 0, (size_t)(s->n * s->h * width) * sizeof(T));                                  \
        for (int64_t n = 0; n < s->n; n++, dx += s->h * width)                                     \
            for (int64_t i = 0; i < s->oh; i++, dy += s->ow * s->c) {                              \
                const ls__between at = ls__resize_between(i, s->h, s->oh);                         \
                row_back_##name(s, scratch, (T)at.part, dy, dx + at.low * width,                   \
                                dx + at.high * width);                                             \
            }                                                                                      \
    }

BACK(f32, float)
BACK(f64, double)

void ls__resize_bilinear_back(const ls__resize_shape *s, ls_dtype dtype, const void *dy, void *dx,
                              void *scratch)
{
    if (s->n == 0 || s->c == 0)
        return;
    if (dtype == LS_F64)
        back_f64(s, dy, dx, scratch);
    else
        back_f32(s, dy, dx, scratch);
}
