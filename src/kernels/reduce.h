/*
 * Reductions over axes, and what runs along one axis: argmax, running sums, the
 * k largest.
 *
 * The order of a sum is fixed (rule C). Call r the place of an element among
 * those that are added into one output, in row-major order. Element r goes to
 * lane r % 16 of block r / 4096; lanes fold in halves (8, 4, 2, 1), blocks in
 * tree order. ref/ and every build of cpu/ add in exactly this order, whatever
 * the layout, so they give the same bits.
 */
#ifndef LS__KERNELS_REDUCE_H
#define LS__KERNELS_REDUCE_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/isa_select.h"

#define LS__REDUCE_RANK 8
#define LS__SUM_LANES 16
#define LS__SUM_BLOCK 4096
/* Levels of the tree over blocks: enough for all the bytes of an address space. */
#define LS__SUM_LEVELS 48

typedef enum ls__reduce_op {
    LS__REDUCE_SUM,
    LS__REDUCE_MAX,
    LS__REDUCE_MIN,
    LS__REDUCE_ANY, /* of u8 that is 0 or 1 */
    LS__REDUCE_ALL
} ls__reduce_op;

/* What is reduced, with neighbouring axes of one kind merged, so that kept and
 * reduced axes alternate. */
typedef struct ls__reduce_plan {
    int rank;
    int64_t size[LS__REDUCE_RANK];
    bool reduced[LS__REDUCE_RANK];
    int64_t kept;  /* elements of the output */
    int64_t count; /* elements that go into each */
    bool simple;   /* the axes are [outer, count, inner]: then the fast kernels fit */
    int64_t outer;
    int64_t inner;
} ls__reduce_plan;

void ls__reduce_plan_make(ls__reduce_plan *plan, int rank, const int64_t *dims,
                          const bool *reduced);

/* Any plan. Maxima and minima are NaN when an element is; of nothing they are
 * the type's limits (infinities). Integer sums wrap. */
void ls__ref_reduce_f32(ls__reduce_op op, const ls__reduce_plan *p, const float *x, float *y);
void ls__ref_reduce_f64(ls__reduce_op op, const ls__reduce_plan *p, const double *x, double *y);
void ls__ref_reduce_i32(ls__reduce_op op, const ls__reduce_plan *p, const int32_t *x, int32_t *y);
void ls__ref_reduce_i64(ls__reduce_op op, const ls__reduce_plan *p, const int64_t *x, int64_t *y);
void ls__ref_reduce_u8(ls__reduce_op op, const ls__reduce_plan *p, const uint8_t *x, uint8_t *y);

/* x is [outer, count, inner] below. The first largest (smallest); a NaN is
 * larger and smaller than any number, as in the maximum. */
void ls__ref_arg_f32(bool smallest, const float *x, int64_t *y, int64_t outer, int64_t count,
                     int64_t inner);
void ls__ref_arg_f64(bool smallest, const double *x, int64_t *y, int64_t outer, int64_t count,
                     int64_t inner);
void ls__ref_arg_i32(bool smallest, const int32_t *x, int64_t *y, int64_t outer, int64_t count,
                     int64_t inner);
void ls__ref_arg_i64(bool smallest, const int64_t *x, int64_t *y, int64_t outer, int64_t count,
                     int64_t inner);
void ls__ref_arg_u8(bool smallest, const uint8_t *x, int64_t *y, int64_t outer, int64_t count,
                    int64_t inner);

/* Running sums, one after another along the axis. */
void ls__ref_cumsum_f32(bool exclusive, bool reverse, const float *x, float *y, int64_t outer,
                        int64_t count, int64_t inner);
void ls__ref_cumsum_f64(bool exclusive, bool reverse, const double *x, double *y, int64_t outer,
                        int64_t count, int64_t inner);
void ls__ref_cumsum_i32(bool exclusive, bool reverse, const int32_t *x, int32_t *y, int64_t outer,
                        int64_t count, int64_t inner);
void ls__ref_cumsum_i64(bool exclusive, bool reverse, const int64_t *x, int64_t *y, int64_t outer,
                        int64_t count, int64_t inner);
void ls__ref_cumsum_u8(bool exclusive, bool reverse, const uint8_t *x, uint8_t *y, int64_t outer,
                       int64_t count, int64_t inner);

/* The k largest of each of `rows` rows of n, largest first, ties by place; a
 * NaN is larger than any number. 0 <= k <= n. */
void ls__ref_top_k_f32(const float *x, float *values, int64_t *places, int64_t rows, int64_t n,
                       int64_t k);
void ls__ref_top_k_f64(const double *x, double *values, int64_t *places, int64_t rows, int64_t n,
                       int64_t k);
void ls__ref_top_k_i32(const int32_t *x, int32_t *values, int64_t *places, int64_t rows, int64_t n,
                       int64_t k);
void ls__ref_top_k_i64(const int64_t *x, int64_t *values, int64_t *places, int64_t rows, int64_t n,
                       int64_t k);
void ls__ref_top_k_u8(const uint8_t *x, uint8_t *values, int64_t *places, int64_t rows, int64_t n,
                      int64_t k);

/* Fast f32 over [outer, count, inner]. */
typedef void ls__reduce_fn(const float *x, float *y, int64_t outer, int64_t count, int64_t inner);
typedef struct ls__reduce_fns {
    ls__reduce_fn *sum;
    ls__reduce_fn *max;
    ls__reduce_fn *min;
} ls__reduce_fns;

LS__ISA_TABLE(ls__reduce_fns, ls__reduce_table);

#endif
