/*
 * Convolution as its definition reads, for float and double. Invariant: each
 * output element is one sum in ascending order of (image, output row, column,
 * kernel row, column, channel), whichever of these it runs over, so results do
 * not depend on the compiler's vectoriser. Zero-sized shapes need no care: the
 * outputs are zeroed first and the loops do not turn.
 */
#include "kernels/ref/ref_conv.h"

#include <string.h>

/* One meeting of an input cell, a kernel cell and an output cell: offsets of
 * their channel vectors. */
typedef struct tap {
    int64_t x, w, y;
} tap;

/* False when the kernel cell lies in the padding. */
static inline bool find_tap(const ls__conv_shape *s, int64_t n, int64_t oy, int64_t ox, int64_t ky,
                            int64_t kx, tap *t)
{
    int64_t iy = oy * s->stride_h - s->pad_top + ky * s->dilation_h;
    int64_t ix = ox * s->stride_w - s->pad_left + kx * s->dilation_w;
    if (iy < 0 || iy >= s->h || ix < 0 || ix >= s->w)
        return false;
    t->x = ((n * s->h + iy) * s->w + ix) * s->c;
    t->w = (ky * s->kw + kx) * s->c * (s->depthwise ? s->multiplier : s->oc);
    t->y = ((n * s->oh + oy) * s->ow + ox) * s->oc;
    return true;
}

#define FOR_EACH_TAP(s, t)                                                                         \
    for (int64_t n = 0; n < (s)->n; n++)                                                           \
        for (int64_t oy = 0; oy < (s)->oh; oy++)                                                   \
            for (int64_t ox = 0; ox < (s)->ow; ox++)                                               \
                for (int64_t ky = 0; ky < (s)->kh; ky++)                                           \
                    for (int64_t kx = 0; kx < (s)->kw; kx++)                                       \
                        if (find_tap(s, n, oy, ox, ky, kx, t))

/* Input channel c meets output channels [c * multiplier, ...) in a depthwise
 * convolution and all of them in a full one: `wide` outputs either way, which
 * begin at c * `step`. */
#define CHANNELS(s)                                                                                \
    const int64_t wide = (s)->depthwise ? (s)->multiplier : (s)->oc;                               \
    const int64_t step = (s)->depthwise ? (s)->multiplier : 0

#define DEFINE_CONV(T, suffix)                                                                     \
    void ls__ref_conv_forward_##suffix(const ls__conv_shape *s, const T *x, const T *w, T *y)      \
    {                                                                                              \
        CHANNELS(s);                                                                               \
        tap t;                                                                                     \
        memset(y, 0, (size_t)ls__conv_count(s, LS__CONV_Y) * sizeof(T));                           \
        FOR_EACH_TAP(s, &t)                                                                        \
        for (int64_t c = 0; c < s->c; c++)                                                         \
            for (int64_t o = 0; o < wide; o++)                                                     \
                y[t.y + c * step + o] += x[t.x + c] * w[t.w + c * wide + o];                       \
    }                                                                                              \
                                                                                                   \
    void ls__ref_conv_backward_data_##suffix(const ls__conv_shape *s, const T *dy, const T *w,     \
                                             T *dx)                                                \
    {                                                                                              \
        CHANNELS(s);                                                                               \
        tap t;                                                                                     \
        memset(dx, 0, (size_t)ls__conv_count(s, LS__CONV_X) * sizeof(T));                          \
        FOR_EACH_TAP(s, &t)                                                                        \
        for (int64_t c = 0; c < s->c; c++)                                                         \
            for (int64_t o = 0; o < wide; o++)                                                     \
                dx[t.x + c] += dy[t.y + c * step + o] * w[t.w + c * wide + o];                     \
    }                                                                                              \
                                                                                                   \
    void ls__ref_conv_backward_weights_##suffix(const ls__conv_shape *s, const T *x, const T *dy,  \
                                                T *dw)                                             \
    {                                                                                              \
        CHANNELS(s);                                                                               \
        tap t;                                                                                     \
        memset(dw, 0, (size_t)ls__conv_count(s, LS__CONV_W) * sizeof(T));                          \
        FOR_EACH_TAP(s, &t)                                                                        \
        for (int64_t c = 0; c < s->c; c++)                                                         \
            for (int64_t o = 0; o < wide; o++)                                                     \
                dw[t.w + c * wide + o] += x[t.x + c] * dy[t.y + c * step + o];                     \
    }

DEFINE_CONV(float, f32)
DEFINE_CONV(double, f64)
