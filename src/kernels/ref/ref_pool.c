/*
 * Pooling as its definition reads, one output element at a time. Invariant: a
 * window is visited row by row, and sums run in that order; cpu/pool.c keeps the
 * same order, so the two agree to the bit.
 */
#include "kernels/ref/ref_pool.h"

#include <string.h>

typedef struct window {
    int64_t y0, y1, x0, x1; /* clipped to the image */
    int64_t plane;          /* offset of the image's (0, 0, c) */
    int64_t out;            /* offset of the output element */
} window;

static inline window window_of(const ls__pool_shape *s, int64_t n, int64_t oy, int64_t ox,
                               int64_t c)
{
    window v;
    ls__pool_clip(oy, s->stride_h, s->pad_top, s->kh, s->h, &v.y0, &v.y1);
    ls__pool_clip(ox, s->stride_w, s->pad_left, s->kw, s->w, &v.x0, &v.x1);
    v.plane = n * s->h * s->w * s->c + c;
    v.out = ((n * s->oh + oy) * s->ow + ox) * s->c + c;
    return v;
}

#define FOR_EACH_WINDOW(s, v)                                                                      \
    for (int64_t n = 0; n < (s)->n; n++)                                                           \
        for (int64_t oy = 0; oy < (s)->oh; oy++)                                                   \
            for (int64_t ox = 0; ox < (s)->ow; ox++)                                               \
                for (int64_t c = 0; c < (s)->c && ((v) = window_of(s, n, oy, ox, c), 1); c++)

#define FOR_EACH_CELL(s, v, cell)                                                                  \
    for (int64_t iy = (v).y0; iy < (v).y1; iy++)                                                   \
        for (int64_t ix = (v).x0, cell = iy * (s)->w + ix; ix < (v).x1; ix++, cell++)

#define DEFINE_POOL(T, suffix)                                                                     \
    void ls__ref_max_pool_forward_##suffix(const ls__pool_shape *s, const T *x, T *y,              \
                                           int32_t *argmax)                                        \
    {                                                                                              \
        window v;                                                                                  \
        FOR_EACH_WINDOW(s, v)                                                                      \
        {                                                                                          \
            int64_t first = v.y0 * s->w + v.x0, won = first;                                       \
            T best = x[v.plane + first * s->c];                                                    \
            FOR_EACH_CELL(s, v, cell)                                                              \
            {                                                                                      \
                T value = x[v.plane + cell * s->c];                                                \
                if (best == best && (value > best || value != value))                              \
                    best = value, won = cell;                                                      \
            }                                                                                      \
            y[v.out] = best;                                                                       \
            if (argmax)                                                                            \
                argmax[v.out] = (int32_t)won;                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    void ls__ref_max_pool_backward_##suffix(const ls__pool_shape *s, const T *dy,                  \
                                            const int32_t *argmax, T *dx)                          \
    {                                                                                              \
        window v;                                                                                  \
        memset(dx, 0, (size_t)(s->n * s->h * s->w * s->c) * sizeof(T));                            \
        FOR_EACH_WINDOW(s, v)                                                                      \
        dx[v.plane + argmax[v.out] * s->c] += dy[v.out];                                           \
    }                                                                                              \
                                                                                                   \
    void ls__ref_max_pool_gather_##suffix(const ls__pool_shape *s, const T *x,                     \
                                          const int32_t *argmax, T *y)                             \
    {                                                                                              \
        window v;                                                                                  \
        FOR_EACH_WINDOW(s, v)                                                                      \
        y[v.out] = x[v.plane + argmax[v.out] * s->c];                                              \
    }                                                                                              \
                                                                                                   \
    void ls__ref_avg_pool_forward_##suffix(const ls__pool_shape *s, const T *x, T *y)              \
    {                                                                                              \
        window v;                                                                                  \
        FOR_EACH_WINDOW(s, v)                                                                      \
        {                                                                                          \
            T sum = 0;                                                                             \
            FOR_EACH_CELL(s, v, cell)                                                              \
            sum += x[v.plane + cell * s->c];                                                       \
            y[v.out] = sum / (T)((v.y1 - v.y0) * (v.x1 - v.x0));                                   \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    void ls__ref_avg_pool_backward_##suffix(const ls__pool_shape *s, const T *dy, T *dx)           \
    {                                                                                              \
        window v;                                                                                  \
        memset(dx, 0, (size_t)(s->n * s->h * s->w * s->c) * sizeof(T));                            \
        FOR_EACH_WINDOW(s, v)                                                                      \
        FOR_EACH_CELL(s, v, cell)                                                                  \
        dx[v.plane + cell * s->c] += dy[v.out] / (T)((v.y1 - v.y0) * (v.x1 - v.x0));               \
    }

DEFINE_POOL(float, f32)
DEFINE_POOL(double, f64)
