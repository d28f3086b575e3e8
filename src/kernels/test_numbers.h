/*
 * What the tests of kernels share: numbers from a fixed seed, the builds of a
 * table that this processor can run, and a comparison with a tolerance.
 */
#ifndef LS__KERNELS_TEST_NUMBERS_H
#define LS__KERNELS_TEST_NUMBERS_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "kernels/isa_select.h"

/* 0 .. limit - 1. */
static inline int64_t below(int64_t limit)
{
    static uint64_t state = 20261115;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state >> 33) % (uint64_t)limit);
}

/* from .. to, both included. */
static inline int64_t pick(int64_t from, int64_t to)
{
    return from + below(to - from + 1);
}

/* -1 .. 1. */
static inline float number(void)
{
    return (float)below(2000001) / 1e6f - 1.0f;
}

/* n of them, to be freed. Never NULL: there is room for one more. */
static inline float *numbers(int64_t n)
{
    float *x = malloc((size_t)(n + 1) * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++)
        x[i] = number();
    return x;
}

/* Relative for large numbers, absolute for small ones; false for NaN. */
static inline void near(const float *got, const float *want, int64_t n, double tolerance)
{
    for (int64_t i = 0; i < n; i++) {
        double error = fabs((double)got[i] - want[i]);
        if (!(error <= tolerance * (1 + fabs((double)want[i]))))
            fail_msg("element %ld of %ld: %g, want %g", (long)i, (long)n, got[i], want[i]);
    }
}

/* Writes the builds of a table that this processor can run to out[3]: how many.
 *     const ls__my *table[3];
 *     int n = TABLES(ls__my_table, table); */
#if defined(__x86_64__)
#define TABLES(name, out)                                                                          \
    ((out)[0] = &name##_base, (out)[1] = &name##_avx2, (out)[2] = &name##_avx512,                  \
     (int)ls__isa() + 1)
#else
#define TABLES(name, out) ((out)[0] = &name##_base, 1)
#endif

#endif
