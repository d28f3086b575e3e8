/*
 * Adding up one array per replica, element by element, in the order of the tree (DESIGN rule
 * B): node (k, m) covers replicas [m 2^k, (m + 1) 2^k) below n, and is left + right, or left
 * alone when the right is empty.
 *
 *     n = 5   ((0+1) + (2+3)) + 4
 *     n = 7   ((0+1) + (2+3)) + ((4+5) + 6)
 *
 *     LS__PICK(ls__replicas_table)->sum[LS_F32](n, in, out, count);
 */
#ifndef LS__KERNELS_REPLICAS_H
#define LS__KERNELS_REPLICAS_H

#include <lockstep/tensor.h>

#include "kernels/isa_select.h"

/* `out` may be one of `in`, when an element of it is as wide: each place is written after
 * it was read in all. n is at least 1. */
typedef void ls__replicas_fn(int n, const void *const *in, void *out, int64_t count);

/* y = z = a + b, divided as by ls__divide_fn: the sum of two, with a copy for each of them. y and z
 * may be a and b, either way round. */
typedef void ls__pair_fn(const void *a, const void *b, void *y, void *z, int divisor,
                         int64_t count);

/* x /= divisor, in place; integers are rounded towards zero. 0 and 1: as it is. */
typedef void ls__divide_fn(void *x, int divisor, int64_t count);

/* For f32, f64, i32, i64 and u8, else NULL. Integers wrap. A mean is the sum divided by n: of a
 * float in its own type, of an integer in f64. */
typedef struct ls__replicas_kernels {
    ls__replicas_fn *sum[LS_BYTES + 1];
    ls__replicas_fn *mean[LS_BYTES + 1];
    ls__pair_fn *pair[LS_BYTES + 1];
    ls__divide_fn *divide[LS_BYTES + 1];
} ls__replicas_kernels;

LS__ISA_TABLE(ls__replicas_kernels, ls__replicas_table);

#endif
