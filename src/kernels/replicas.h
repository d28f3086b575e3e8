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

/* For f32, f64, i32, i64 and u8, else NULL. Integers wrap. A mean is the sum divided by n: of a
 * float in its own type, of an integer in f64. */
typedef struct ls__replicas_kernels {
    ls__replicas_fn *sum[LS_BYTES + 1];
    ls__replicas_fn *mean[LS_BYTES + 1];
} ls__replicas_kernels;

LS__ISA_TABLE(ls__replicas_kernels, ls__replicas_table);

#endif
