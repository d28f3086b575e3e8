/*
 * How a reference loop is written: operands a, b, c, d of type T, one result of
 * type R, an expression of them.
 */
#ifndef LS__KERNELS_REF_ELEMENTWISE_H
#define LS__KERNELS_REF_ELEMENTWISE_H

#include "kernels/elementwise.h"

#define LS__REF_HEAD(name)                                                                         \
    static void name(const void *const *in, const int64_t *step, void *out, int64_t n)

#define LS__REF_LOOP1(name, T, R, expression)                                                      \
    LS__REF_HEAD(name)                                                                             \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            T a = ((const T *)in[0])[i * step[0]];                                                 \
            ((R *)out)[i] = (R)(expression);                                                       \
        }                                                                                          \
    }

#define LS__REF_LOOP2(name, T, R, expression)                                                      \
    LS__REF_HEAD(name)                                                                             \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            T a = ((const T *)in[0])[i * step[0]];                                                 \
            T b = ((const T *)in[1])[i * step[1]];                                                 \
            ((R *)out)[i] = (R)(expression);                                                       \
        }                                                                                          \
    }

/* The first operand may have a type of its own (a condition). */
#define LS__REF_LOOP3(name, C, T, R, expression)                                                   \
    LS__REF_HEAD(name)                                                                             \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            C a = ((const C *)in[0])[i * step[0]];                                                 \
            T b = ((const T *)in[1])[i * step[1]];                                                 \
            T c = ((const T *)in[2])[i * step[2]];                                                 \
            ((R *)out)[i] = (R)(expression);                                                       \
        }                                                                                          \
    }

#define LS__REF_LOOP4(name, T, R, expression)                                                      \
    LS__REF_HEAD(name)                                                                             \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            T a = ((const T *)in[0])[i * step[0]];                                                 \
            T b = ((const T *)in[1])[i * step[1]];                                                 \
            T c = ((const T *)in[2])[i * step[2]];                                                 \
            T d = ((const T *)in[3])[i * step[3]];                                                 \
            ((R *)out)[i] = (R)(expression);                                                       \
        }                                                                                          \
    }

#endif
