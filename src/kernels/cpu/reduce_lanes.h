/*
 * The fixed order of sums (reduce.h) for the vector kernels: sixteen lanes, in
 * as many registers as this build's instruction set needs for them, and the tree
 * over blocks. The registers only share out the additions, they do not change
 * them.
 *
 * Lanes begin at +0, so that a sum is never -0 and adding an unused lane, which
 * is +0, changes nothing: a kernel may leave it out.
 */
#ifndef LS__KERNELS_CPU_REDUCE_LANES_H
#define LS__KERNELS_CPU_REDUCE_LANES_H

#include <stdint.h>

#include "kernels/reduce.h"

#if defined(__AVX512F__)
#define LS__PART 16
#elif defined(__AVX__)
#define LS__PART 8
#else
#define LS__PART 4
#endif

typedef float ls__part __attribute__((vector_size(LS__PART * 4)));
typedef float ls__part_at __attribute__((vector_size(LS__PART * 4), aligned(4), may_alias));
typedef struct ls__lanes {
    ls__part at[LS__SUM_LANES / LS__PART];
} ls__lanes;

/* A loop over the parts of the lanes, and the elements that part p takes of the
 * sixteen at x. */
#define LS__EACH_PART(p) for (int p = 0; p < LS__SUM_LANES / LS__PART; p++)
#define LS__PART_OF(x, p) (*(const ls__part_at *)((x) + (p)*LS__PART))

static inline void ls__lanes_add(ls__lanes *lanes, const float *x)
{
    LS__EACH_PART(p)
    lanes->at[p] += LS__PART_OF(x, p);
}

/* The last n < 16 elements of a row, filled up with zeros to sixteen. */
static inline void ls__lanes_rest(float *to, const float *x, int64_t n)
{
    for (int64_t j = 0; j < LS__SUM_LANES; j++)
        to[j] = 0;
    for (int64_t j = 0; j < n; j++)
        to[j] = x[j];
}

static inline float ls__lanes_fold(const ls__lanes *lanes)
{
    float v[LS__SUM_LANES];
    LS__EACH_PART(p)
    *(ls__part_at *)(v + p * LS__PART) = lanes->at[p];
    for (int j = 0; j < 8; j++)
        v[j] += v[j + 8];
    for (int j = 0; j < 4; j++)
        v[j] += v[j + 4];
    return (v[0] + v[2]) + (v[1] + v[3]);
}

/* The tree over blocks, as the sums of the subtrees that are complete so far,
 * each `width` numbers. The caller writes block `index` to
 * ls__tree_next, then calls ls__tree_push; ls__tree_end leaves the sum of all
 * in the first place. */
typedef struct ls__tree {
    float *node; /* LS__SUM_LEVELS * width numbers */
    int64_t width;
    int depth;
} ls__tree;

static inline float *ls__tree_next(const ls__tree *t)
{
    return t->node + t->depth * t->width;
}

static inline void ls__tree_merge(ls__tree *t)
{
    float *right = t->node + (t->depth - 1) * t->width, *left = right - t->width;
    for (int64_t i = 0; i < t->width; i++)
        left[i] += right[i];
    t->depth--;
}

static inline void ls__tree_push(ls__tree *t, int64_t index)
{
    t->depth++;
    for (; index & 1; index >>= 1)
        ls__tree_merge(t);
}

static inline void ls__tree_end(ls__tree *t)
{
    while (t->depth > 1)
        ls__tree_merge(t);
}

/* The sum of n <= 4096 elements. */
static inline float ls__lanes_sum1(const float *x, int64_t n)
{
    ls__lanes a = { 0 };
    int64_t i = 0;
    for (; i + LS__SUM_LANES <= n; i += LS__SUM_LANES)
        ls__lanes_add(&a, x + i);
    if (i < n) {
        float rest[LS__SUM_LANES];
        ls__lanes_rest(rest, x + i, n - i);
        ls__lanes_add(&a, rest);
    }
    return ls__lanes_fold(&a);
}

/* The same of four rows, `stride` apart: four independent chains of additions
 * hide each other's latency. */
static inline void ls__lanes_sum4(const float *x, int64_t stride, int64_t n, float *sums)
{
    const float *y = x + stride, *z = y + stride, *w = z + stride;
    ls__lanes a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 };
    int64_t i = 0;
    for (; i + LS__SUM_LANES <= n; i += LS__SUM_LANES) {
        ls__lanes_add(&a, x + i);
        ls__lanes_add(&b, y + i);
        ls__lanes_add(&c, z + i);
        ls__lanes_add(&d, w + i);
    }
    if (i < n) {
        float rest[4][LS__SUM_LANES];
        for (int k = 0; k < 4; k++)
            ls__lanes_rest(rest[k], x + k * stride + i, n - i);
        ls__lanes_add(&a, rest[0]);
        ls__lanes_add(&b, rest[1]);
        ls__lanes_add(&c, rest[2]);
        ls__lanes_add(&d, rest[3]);
    }
    sums[0] = ls__lanes_fold(&a);
    sums[1] = ls__lanes_fold(&b);
    sums[2] = ls__lanes_fold(&c);
    sums[3] = ls__lanes_fold(&d);
}

/* The sum of n elements in a row. */
static inline float ls__lanes_sum(const float *x, int64_t n)
{
    if (n <= LS__SUM_BLOCK)
        return ls__lanes_sum1(x, n);
    float nodes[LS__SUM_LEVELS], sums[4];
    ls__tree tree = { nodes, 1, 0 };
    int64_t blocks = n / LS__SUM_BLOCK, b = 0;
    for (; b + 4 <= blocks; b += 4) {
        ls__lanes_sum4(x + b * LS__SUM_BLOCK, LS__SUM_BLOCK, LS__SUM_BLOCK, sums);
        for (int k = 0; k < 4; k++) {
            *ls__tree_next(&tree) = sums[k];
            ls__tree_push(&tree, b + k);
        }
    }
    for (; b * LS__SUM_BLOCK < n; b++) {
        int64_t left = n - b * LS__SUM_BLOCK;
        *ls__tree_next(&tree) =
            ls__lanes_sum1(x + b * LS__SUM_BLOCK, left < LS__SUM_BLOCK ? left : LS__SUM_BLOCK);
        ls__tree_push(&tree, b);
    }
    ls__tree_end(&tree);
    return nodes[0];
}

#endif
