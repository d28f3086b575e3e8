/*
 * Matrix multiplication on raw memory: the seam between src/ops and the
 * kernels. C[b] = op(A[b]) op(B[b]), row-major, op(A) m x k, op(B) k x n.
 *
 * How to use it
 *
 * 1. Eager: fill an ls__matmul_shape and call ls__matmul_f32 or _f64.
 *
 *        ls__matmul_shape s = { .batch = 1, .m = 64, .n = 10, .k = 2048 };
 *        st = ls__matmul_f32(&s, x, w, y);
 *
 * 2. Traced: open a plan once, run it every step. A plan opened with
 *    `pack_b` may want B (the weights) in a layout of its own: when
 *    plan.b_plain is false, give it a buffer of plan.b_bytes filled by
 *    ls__matmul_plan_pack_b. Packing pays only where B outlives many runs.
 *
 * Every size may be zero: k = 0 gives zeros, the others an empty C. The same
 * call gives the same bits on any thread of the same thread count; which
 * routine computes is a function of the shape, that count and the processor (matmul.c), never of timing.
 */
#ifndef LS__KERNELS_MATMUL_H
#define LS__KERNELS_MATMUL_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ls__matmul_shape {
    int64_t batch, m, n, k;
    bool ta, tb; /* A is stored k x m, B is stored n x k */
    /* Elements from one matrix of the batch to the next; 0 in A or B: one
     * matrix shared by the whole batch. Not looked at when batch is 1. */
    int64_t stride_a, stride_b, stride_c;
    /* Elements from one stored row to the next; 0: the rows are dense. */
    int64_t lda, ldb, ldc;
} ls__matmul_shape;

ls_status ls__matmul_f32(const ls__matmul_shape *shape, const float *a, const float *b, float *c);
ls_status ls__matmul_f64(const ls__matmul_shape *shape, const double *a, const double *b,
                         double *c);

/* Which routine a shape goes to; printable, so that it can be tested. */
typedef enum ls__matmul_route {
    LS__MATMUL_ZERO,      /* nothing to multiply: C is zero or empty */
    LS__MATMUL_REFERENCE, /* plain C */
    LS__MATMUL_OWN,       /* gemm.h: few rows, many weights */
    LS__MATMUL_SGEMM,     /* dnnl_sgemm, one call per matrix of the batch */
    LS__MATMUL_PRIMITIVE  /* oneDNN's matmul primitive, the whole batch at once */
} ls__matmul_route;

ls__matmul_route ls__matmul_route_f32(const ls__matmul_shape *shape);

/* A plan is a value: no memory of its own but a counted reference. One thread
 * at a time may use it. */
typedef struct ls__matmul_plan {
    ls__matmul_shape shape;
    ls__matmul_route route;
    bool b_plain;   /* B is wanted as it is; else packed */
    size_t b_bytes; /* size of B as wanted, for the whole batch */
    struct ls__dnnl_plan *dnnl;
} ls__matmul_plan;

ls_status ls__matmul_plan_open(ls__matmul_plan *plan, const ls__matmul_shape *shape, bool pack_b);
void ls__matmul_plan_close(ls__matmul_plan *plan);
ls_status ls__matmul_plan_pack_b(const ls__matmul_plan *plan, const float *b, void *packed);
ls_status ls__matmul_plan_run(const ls__matmul_plan *plan, const float *a, const void *b, float *c);

/* Whether a product gains by B packed once for many runs. A rule on the sizes
 * alone; where B is wanted plain in the end (plan.b_plain) it may still say yes. */
bool ls__matmul_packing_pays(const ls__matmul_shape *shape);

#endif
