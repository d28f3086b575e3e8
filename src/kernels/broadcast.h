/*
 * Planning a broadcast: one loop nest over the elements of a result, with the
 * place of each operand's element beside it. Axes that all operands walk alike
 * are merged, axes of size 1 dropped, so two tensors of one shape are a single
 * run and [rows, columns] with [columns] is a nest of two.
 *
 *     ls__broadcast p;
 *     ls__broadcast_plan(&p, rank, dims, 2, ranks, shapes);
 *     ls__broadcast_run(&p, loop, in, in_size, out, out_size);
 */
#ifndef LS__KERNELS_BROADCAST_H
#define LS__KERNELS_BROADCAST_H

#include <stddef.h>
#include <stdint.h>

/* For kernels that move elements by their size: these read and write any type. */
typedef uint16_t __attribute__((may_alias)) ls__any16;
typedef uint32_t __attribute__((may_alias)) ls__any32;
typedef uint64_t __attribute__((may_alias)) ls__any64;

#define LS__BROADCAST_OPERANDS 4
#define LS__BROADCAST_RANK 8

typedef struct ls__broadcast {
    int operands;
    int rank;      /* after merging: at least 1 */
    int64_t count; /* elements of the result */
    int64_t dims[LS__BROADCAST_RANK];
    /* In elements; 0 where the operand is stretched. Operands are dense, so the
     * last stride is 0 or 1. */
    int64_t stride[LS__BROADCAST_OPERANDS][LS__BROADCAST_RANK];
} ls__broadcast;

/* Operand i has ranks[i] <= rank axes of sizes shapes[i], matched from the last
 * one; each size is that of the result or 1. */
void ls__broadcast_plan(ls__broadcast *p, int rank, const int64_t *dims, int operands,
                        const int *ranks, const int64_t *const *shapes);

/* A kernel over a run of n elements: operand i is read at in[i], every element
 * (step 1) or the same one again (step 0). The result may be one of the
 * operands that have step 1, never overlap one otherwise. */
typedef void ls__loop(const void *const *in, const int64_t *step, void *out, int64_t n);

/* Calls `loop` over the whole plan. Sizes are those of an element in bytes, 1,
 * 2, 4 or 8. Where the runs are short (a bias over ten classes) operands are
 * first copied out, stretched, into a buffer of this call's stack, so that the
 * loop always has hundreds of elements in a row. What an element is computed
 * from, and so its bits, does not depend on that. */
void ls__broadcast_run(const ls__broadcast *p, ls__loop *loop, const void *const *in,
                       const size_t *in_size, void *out, size_t out_size);

#endif
