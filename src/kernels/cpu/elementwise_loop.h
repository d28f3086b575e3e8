/*
 * How a fast loop is written: operands a, b of type T, one result of type R, an
 * expression of them. Which operand stands still (step 0) is decided outside
 * the loop, so that each loop is one the vectoriser takes.
 *
 * A result may lie over an operand element for element; LS__PLAIN_LOOP says that
 * this is all the overlap there is.
 */
#ifndef LS__KERNELS_CPU_ELEMENTWISE_LOOP_H
#define LS__KERNELS_CPU_ELEMENTWISE_LOOP_H

#include "kernels/elementwise.h"
#include "kernels/isa.h"

#if defined(__clang__)
#define LS__PLAIN_LOOP /* clang checks the overlap at run time */
#else
#define LS__PLAIN_LOOP _Pragma("GCC ivdep")
#endif

#define LS__EACH LS__PLAIN_LOOP for (int64_t i = 0; i < n; i++)

/* A function of one operand: the same value n times when it stands still. */
#define LS__LOOP1(name, T, R, expression)                                                          \
    static void name(const void *const *in, const int64_t *step, void *out, int64_t n)             \
    {                                                                                              \
        const T *pa = in[0];                                                                       \
        R *y = out;                                                                                \
        if (step[0]) {                                                                             \
            LS__EACH                                                                               \
            {                                                                                      \
                T a = pa[i];                                                                       \
                y[i] = (R)(expression);                                                            \
            }                                                                                      \
        } else {                                                                                   \
            T a = *pa;                                                                             \
            R value = (R)(expression);                                                             \
            LS__EACH y[i] = value;                                                                 \
        }                                                                                          \
    }

#define LS__LOOP2(name, T, R, expression)                                                          \
    static void name(const void *const *in, const int64_t *step, void *out, int64_t n)             \
    {                                                                                              \
        const T *pa = in[0], *pb = in[1];                                                          \
        R *y = out;                                                                                \
        if (step[0] && step[1]) {                                                                  \
            LS__EACH                                                                               \
            {                                                                                      \
                T a = pa[i], b = pb[i];                                                            \
                y[i] = (R)(expression);                                                            \
            }                                                                                      \
        } else if (step[0]) {                                                                      \
            T b = *pb;                                                                             \
            LS__EACH                                                                               \
            {                                                                                      \
                T a = pa[i];                                                                       \
                y[i] = (R)(expression);                                                            \
            }                                                                                      \
        } else if (step[1]) {                                                                      \
            T a = *pa;                                                                             \
            LS__EACH                                                                               \
            {                                                                                      \
                T b = pb[i];                                                                       \
                y[i] = (R)(expression);                                                            \
            }                                                                                      \
        } else {                                                                                   \
            T a = *pa, b = *pb;                                                                    \
            R value = (R)(expression);                                                             \
            LS__EACH y[i] = value;                                                                 \
        }                                                                                          \
    }

#endif
