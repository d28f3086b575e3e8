/*
 * Comparing what two ways of running one program give.
 */
#ifndef LS__TESTS_SAME_H
#define LS__TESTS_SAME_H

#include <lockstep/tensor.h>

/* The same dtype, shape, sparseness and bits. One NaN is as good as another: which of two
 * operands' NaN an addition hands on depends on how a compiler orders them. */
bool same_bits(ls_tensor *a, ls_tensor *b);

/* How far two tensors are apart, in units of the larger of 1 and the largest finite element of
 * `want`: 0 when equal, infinity when they differ in kind, or in where a NaN or an
 * infinity is. */
double same_apart(ls_tensor *want, ls_tensor *got);

/* How far another order of sums may take elements of this dtype apart, in those units. */
double same_near(ls_dtype dtype);

#endif
