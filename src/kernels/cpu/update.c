/*
 * Optimizer updates: plain loops that the compiler vectorises, the same
 * operations for every element, fused multiply-add where it is written. Each update
 * exists twice: plain, and with scale, clip and decay, which leave the bits of the plain one
 * when they are none.
 */
#include "kernels/update.h"

#include <math.h>

#include "kernels/isa.h"

/* The gradient and the weight as the update takes them. NaN stays NaN. */
#define SHAPED(name, type, fma)                                                                    \
    static inline type name##_gradient(type g, double scale, type clip)                            \
    {                                                                                              \
        type scaled = (type)(g * scale); /* a factor may be too small for a float */               \
        type below = scaled > clip ? clip : scaled;                                                \
        return below < -clip ? -clip : below;                                                      \
    }                                                                                              \
    static inline type name##_weight(type w, type minus_decay)                                     \
    {                                                                                              \
        type less = fma(minus_decay, w, w);                                                        \
        return minus_decay == 0 ? w : less;                                                        \
    }
SHAPED(f32, float, __builtin_fmaf)
SHAPED(f64, double, __builtin_fma)

/* An update from its two loops. `body` works on gi, wi and writes the slots and w[i]. */
#define LOOPS(type, shape, body)                                                                   \
    if (ls__update_is_plain(p)) {                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const type gi = g[i], wi = w[i];                                                       \
            body;                                                                                  \
        }                                                                                          \
    } else {                                                                                       \
        const double scale = p->scale;                                                             \
        const type clip = (type)p->clip, decay = (type)-p->decay;                                  \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const type gi = shape##_gradient(g[i], scale, clip), wi = shape##_weight(w[i], decay); \
            body;                                                                                  \
        }                                                                                          \
    }

/* Of all replicas the one that updates an element is the only one to write it, but all have read it: a
 * store would wait until the others' caches gave the line up. So weights are asked for early, to write.
 * (In training cnn on two cores, adam_reduced of a device's half: 197 us without, 149 us with it.) */
enum { STRIP = 256, EARLY = 256 };
#define STRIPS(type, update)                                                                       \
    type *w = at[0];                                                                               \
    int64_t i = 0;                                                                                 \
    for (const int64_t strip = STRIP; i + strip <= n; i += strip) {                                \
        for (int k = 0; k < STRIP; k += 64 / (int)sizeof(type))                                    \
            __builtin_prefetch(w + i + EARLY + k, 1);                                              \
        update;                                                                                    \
    }                                                                                              \
    const int64_t strip = n - i;                                                                   \
    update

#define SGD(name, type, shape, fma)                                                                \
    static inline void name##_loop(type *restrict w, const type *restrict g, const ls__update *p,  \
                                   int64_t n)                                                      \
    {                                                                                              \
        const type minus_rate = (type)-p->rate;                                                    \
        LOOPS(type, shape, w[i] = fma(minus_rate, gi, wi))                                         \
    }                                                                                              \
    static void name(void *const *at, const void *g, const ls__update *p, int64_t n)               \
    {                                                                                              \
        STRIPS(type, name##_loop(w + i, (const type *)g + i, p, strip));                           \
    }

#define MOMENTUM(name, type, shape, fma)                                                           \
    static inline void name##_loop(type *restrict w, type *restrict m, const type *restrict g,     \
                                   const ls__update *p, int64_t n)                                 \
    {                                                                                              \
        const type minus_rate = (type)-p->rate, keep = (type)p->momentum;                          \
        if (p->nesterov) {                                                                         \
            LOOPS(type, shape, type m1 = fma(minus_rate, gi, keep * m[i]); m[i] = m1;              \
                  w[i] = wi + fma(minus_rate, gi, keep * m1))                                      \
        } else {                                                                                   \
            LOOPS(type, shape, type m1 = fma(minus_rate, gi, keep * m[i]); m[i] = m1;              \
                  w[i] = wi + m1)                                                                  \
        }                                                                                          \
    }                                                                                              \
    static void name(void *const *at, const void *g, const ls__update *p, int64_t n)               \
    {                                                                                              \
        type *m = at[1];                                                                           \
        STRIPS(type, name##_loop(w + i, m + i, (const type *)g + i, p, strip));                    \
    }

#define ADAM(name, type, shape, fma, root)                                                         \
    static inline void name##_loop(type *restrict w, type *restrict m, type *restrict v,           \
                                   const type *restrict g, const ls__update *p, int64_t n)         \
    {                                                                                              \
        const type minus_rate = (type)-p->rate, epsilon = (type)p->epsilon;                        \
        const type a = (type)p->one_minus_beta1, b = (type)p->one_minus_beta2;                     \
        LOOPS(type, shape, type m1 = fma(gi - m[i], a, m[i]);                                      \
              type v1 = fma(fma(gi, gi, -v[i]), b, v[i]); m[i] = m1; v[i] = v1;                    \
              w[i] = fma(minus_rate, m1 / (root(v1) + epsilon), wi))                               \
    }                                                                                              \
    static void name(void *const *at, const void *g, const ls__update *p, int64_t n)               \
    {                                                                                              \
        type *m = at[1], *v = at[2];                                                               \
        STRIPS(type, name##_loop(w + i, m + i, v + i, (const type *)g + i, p, strip));             \
    }

SGD(sgd_f32, float, f32, __builtin_fmaf)
SGD(sgd_f64, double, f64, __builtin_fma)
MOMENTUM(momentum_f32, float, f32, __builtin_fmaf)
MOMENTUM(momentum_f64, double, f64, __builtin_fma)
ADAM(adam_f32, float, f32, __builtin_fmaf, sqrtf) /* gemm_adam.h has the same, by hand */
ADAM(adam_f64, double, f64, __builtin_fma, sqrt)

/* Element i adds to lane i mod 8; lanes then add up in the order of the tree. */
#define SQUARES(name, type)                                                                        \
    static double name(const void *from, int64_t n)                                                \
    {                                                                                              \
        enum { LANES = 8 };                                                                        \
        const type *x = from;                                                                      \
        double lane[LANES] = { 0 };                                                                \
        int64_t i = 0;                                                                             \
        for (; i + LANES <= n; i += LANES)                                                         \
            for (int k = 0; k < LANES; k++)                                                        \
                lane[k] = __builtin_fma((double)x[i + k], (double)x[i + k], lane[k]);              \
        for (int k = 0; i + k < n; k++)                                                            \
            lane[k] = __builtin_fma((double)x[i + k], (double)x[i + k], lane[k]);                  \
        return ((lane[0] + lane[1]) + (lane[2] + lane[3])) +                                       \
               ((lane[4] + lane[5]) + (lane[6] + lane[7]));                                        \
    }

SQUARES(squares_f32, float)
SQUARES(squares_f64, double)

const ls__update_kernels LS__ISA(ls__update_table) = {
    { { sgd_f32, sgd_f64 }, { momentum_f32, momentum_f64 }, { adam_f32, adam_f64 } },
    { squares_f32, squares_f64 }
};
