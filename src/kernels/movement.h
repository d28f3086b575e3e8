/*
 * Kernels that move elements without looking at them, and the sum that undoes
 * a look-up.
 *
 * One walk serves transpose, broadcast, slice, concat, pad and tile: it names
 * an element by its place in `dims` and says where that element lies on both
 * sides. A stride of 0 on the reading side repeats.
 *
 *     // [2,3] -> [3,2]
 *     ls__walk w = { 2, {3, 2}, .from = {1, 3}, .to = {2, 1} };
 *     LS__PICK(ls__movement_table)->move(&w, sizeof(float), x, y);
 */
#ifndef LS__KERNELS_MOVEMENT_H
#define LS__KERNELS_MOVEMENT_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/isa_select.h"

/* Twice LS_MAX_RANK: tile walks (repeat, axis) pairs. */
#define LS__WALK_RANK 16

typedef struct ls__walk {
    int rank;
    int64_t dims[LS__WALK_RANK];
    int64_t from[LS__WALK_RANK]; /* strides, in elements */
    int64_t to[LS__WALK_RANK];
} ls__walk;

/* Strides of a row-major array. */
static inline void ls__row_major(int rank, const int64_t *dims, int64_t *strides)
{
    int64_t step = 1;
    for (int i = rank - 1; i >= 0; i--) {
        strides[i] = step;
        step *= dims[i];
    }
}

/* Indices are i32 or i64: `wide` says which. */
typedef struct ls__indices {
    const void *at;
    int64_t count;
    int wide;
} ls__indices;

static inline int64_t ls__index(const ls__indices *ix, int64_t i)
{
    return ix->wide ? ((const int64_t *)ix->at)[i] : ((const int32_t *)ix->at)[i];
}

/* The place of the first index outside 0 .. limit - 1, or -1 when all fit. The
 * kernels below want indices that were checked. */
int64_t ls__index_outside(const ls__indices *ix, int64_t limit);

typedef struct ls__movement {
    /* Elements of 1, 2, 4 or 8 bytes; the two sides do not overlap. */
    void (*move)(const ls__walk *w, size_t element, const void *from, void *to);

    /* n elements, each with the bits at `value`. */
    void (*fill)(size_t element, const void *value, void *to, int64_t n);

    /* from [outer, axis, inner] -> to [outer, indices, inner]. */
    void (*gather)(const ls__indices *ix, int64_t outer, int64_t axis, int64_t inner,
                   size_t element, const void *from, void *to);

    /* to [rows, width] = 0, then to[index i] += from[i], i counting up. */
    void (*scatter_f32)(const ls__indices *ix, int64_t rows, int64_t width, const float *from,
                        float *to);
    void (*scatter_f64)(const ls__indices *ix, int64_t rows, int64_t width, const double *from,
                        double *to);
} ls__movement;

LS__ISA_TABLE(ls__movement, ls__movement_table);

/* The same in plain C (kernels/ref): the oracle. */
extern const ls__movement ls__ref_movement;

#endif
