/*
 * Random fills. Element i of a fill is a pure function of (draw, i) and the
 * parameters: no state, no order. Which words an element takes:
 *
 *   uniform f32, keep      word i
 *   uniform f64, integers  words 2i, 2i + 1
 *   normal f32             words 4b .. 4b + 3 give elements 4b .. 4b + 3
 *   normal f64             words 4b .. 4b + 3 give elements 2b, 2b + 1
 *   truncated normal       as normal; where that is beyond two standard
 *                          deviations, the first that is not in the words of
 *                          blocks (attempt << 48) + i, attempt = 1, 2, ...
 *
 * Logarithm, sine, cosine and exponential are our own: the bits depend neither
 * on libm nor on the instruction set.
 */
#ifndef LS__KERNELS_RANDOM_H
#define LS__KERNELS_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/philox.h"
#include "kernels/isa_select.h"

typedef struct ls__random {
    /* Words 4 * block .. 4 * (block + blocks) - 1: what ls__philox_block gives. */
    void (*words)(const ls__draw *draw, uint64_t block, int64_t blocks, uint32_t *out);

    /* min(low + range * u, last) for u in [0, 1). `last`: the largest number
     * below the upper end, which rounding could reach. */
    void (*uniform_f32)(const ls__draw *draw, float low, float range, float last, float *out,
                        int64_t n);
    void (*uniform_f64)(const ls__draw *draw, double low, double range, double last, double *out,
                        int64_t n);

    /* low + floor(u * range) in integers of 1, 4 or 8 bytes; range 0 stands for
     * 2^64. */
    void (*uniform_int)(const ls__draw *draw, int64_t low, uint64_t range, int bytes, void *out,
                        int64_t n);

    /* mean + stddev * z; `truncate` draws z again until it is within -2 .. 2. */
    void (*normal_f32)(const ls__draw *draw, float mean, float stddev, bool truncate, float *out,
                       int64_t n);
    void (*normal_f64)(const ls__draw *draw, double mean, double stddev, bool truncate, double *out,
                       int64_t n);

    /* 1 with probability 1 - rate, else 0. */
    void (*keep)(const ls__draw *draw, double rate, uint8_t *out, int64_t n);

    /* Samples of one row of a categorical draw: `first` is the element number
     * of the first sample, `sums` has room for `classes` numbers. Returns 0 when
     * the logits are no distribution (a NaN, +inf, all -inf). */
    int (*categorical_f32)(const ls__draw *draw, const float *logits, int64_t classes, double *sums,
                           int64_t first, int64_t *out, int64_t samples);
    int (*categorical_f64)(const ls__draw *draw, const double *logits, int64_t classes,
                           double *sums, int64_t first, int64_t *out, int64_t samples);

    /* y = x * factor where keep is not 0, else 0. */
    void (*dropout_f32)(const float *x, const uint8_t *keep, float factor, float *y, int64_t n);
    void (*dropout_f64)(const double *x, const uint8_t *keep, double factor, double *y, int64_t n);
} ls__random;

LS__ISA_TABLE(ls__random, ls__random_table);

#endif
