/* What a 2 x 2 window of the pool leaves of four sums a channel (conv_pool.h), and what goes back to them. */
#ifndef LS__KERNELS_CPU_POOL_WINDOW_H
#define LS__KERNELS_CPU_POOL_WINDOW_H

#include <math.h>

#include "kernels/conv_pool.h"
#include "kernels/cpu/vec16.h"

/* Floats ahead of what is written, for which a window asks. Replicas update dense layers behind a pool by what it gave, so
 * half of its lines are in the cache of another core too, which has to give them up first. Where two cores of a Zen 5 share
 * no cache that took cnn's first layer from 113 to 160 us; asked for early, 128. (1024 and 4096: 136, 126.) */
enum { POOL_EARLY = 2048 };

/* relu: what is not above 0 becomes +0, and what is no number stays. */
VEC_INLINE vec relu_of(vec v)
{
    const vec zero = vec_all(0);
    return vec_select(vec_not_at_most(v, zero), v, zero);
}

/* Sums above left, above right, below left, below right; the bias is added behind the maximum. `clean`: all of
 * them are numbers, which saves looking for what is none: a third of the work. */
VEC_INLINE void pool_window(const vec sum[4], vec bias, uint16_t lanes, bool clean, float *p,
                            uint16_t *marks)
{
    __builtin_prefetch(p + POOL_EARLY, 1);
    const uint16_t right_above = vec_greater(sum[1], sum[0]);
    const uint16_t right_below = vec_greater(sum[3], sum[2]);
    const vec above = vec_max(sum[1], sum[0]), lower = vec_max(sum[3], sum[2]);
    const uint16_t below = vec_greater(lower, above);
    vec most = vec_max(lower, above);
    if (!clean)
        most = vec_select(vec_unordered(sum[0], sum[1]) | vec_unordered(sum[2], sum[3]),
                          vec_all(NAN), most);
    const vec value = most + bias;
    vec_store_some(p, clean ? vec_max(value, vec_all(0)) : relu_of(value), lanes);
    marks[LS__CONV_POOL_RIGHT] = ((below & right_below) | (~below & right_above)) & lanes;
    marks[LS__CONV_POOL_BELOW] = below & lanes;
    marks[LS__CONV_POOL_PASSES] = vec_greater(value, vec_all(0)) & lanes;
}

/* The gradients of the four, one of which has all of it; the sum of them is what came in. */
VEC_INLINE vec pool_window_back(const float *dp, const uint16_t *marks, vec d[4])
{
    const vec zero = vec_all(0);
    const vec g = vec_load_some(dp, marks[LS__CONV_POOL_PASSES]);
    const uint16_t right = marks[LS__CONV_POOL_RIGHT], below = marks[LS__CONV_POOL_BELOW];
    d[0] = vec_select((uint16_t)(~right & ~below), g, zero);
    d[1] = vec_select((uint16_t)(right & ~below), g, zero);
    d[2] = vec_select((uint16_t)(~right & below), g, zero);
    d[3] = vec_select((uint16_t)(right & below), g, zero);
    return g;
}

#endif
