/*
 * Optimizer updates: plain loops that the compiler vectorises, the same
 * operations for every element, fused multiply-add where it is written.
 */
#include "kernels/update.h"

#include <math.h>

#include "kernels/isa.h"

#define SGD(name, type, fma)                                                                     \
    static void name(type *restrict w, const type *restrict g, double rate, int64_t n)            \
    {                                                                                              \
        const type minus_rate = (type)-rate;                                                       \
        for (int64_t i = 0; i < n; i++)                                                            \
            w[i] = fma(minus_rate, g[i], w[i]);                                                    \
    }

#define ADAM(name, type, fma, root)                                                              \
    static void name(type *restrict w, type *restrict m, type *restrict v, const type *restrict g, \
                     const ls__adam *p, int64_t n)                                                 \
    {                                                                                              \
        const type minus_rate = (type)-p->rate, epsilon = (type)p->epsilon;                        \
        const type a = (type)p->one_minus_beta1, b = (type)p->one_minus_beta2;                     \
        for (int64_t i = 0; i < n; i++) {                                                          \
            type m1 = fma(g[i] - m[i], a, m[i]);                                                   \
            type v1 = fma(fma(g[i], g[i], -v[i]), b, v[i]);                                        \
            m[i] = m1;                                                                             \
            v[i] = v1;                                                                             \
            w[i] = fma(minus_rate, m1 / (root(v1) + epsilon), w[i]);                               \
        }                                                                                          \
    }

SGD(sgd_f32, float, __builtin_fmaf)
SGD(sgd_f64, double, __builtin_fma)
ADAM(adam_f32, float, __builtin_fmaf, sqrtf)
ADAM(adam_f64, double, __builtin_fma, sqrt)

const ls__update_kernels LS__ISA(ls__update_table) = { sgd_f32, sgd_f64, adam_f32, adam_f64 };
