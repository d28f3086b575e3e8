/*
 * Mean and variance of each column over the rows of several replicas; see moments.c.
 */
#ifndef LS__OPS_MOMENTS_H
#define LS__OPS_MOMENTS_H

#include <lockstep/tensor.h>

/* Moments of some rows: mean [c] and variance [c] (divided by the rows; both 0 for none), and how
 * many rows, f64[]. */
typedef struct ls__moments {
    ls_tensor *mean, *variance, *rows;
} ls__moments;

/* Of x [.., c], f32 or f64, over all axes but the last. Stops gradients. */
ls_status ls__batch_moments(ls_tensor *x, ls__moments *out);

/* Of all rows of V replicas, out of the moments of each: `parts` has V means, then V variances,
 * then V numbers of rows. Stops gradients. */
ls_status ls__merge_moments(int replicas, ls_tensor *const *parts, ls__moments *out);

#endif
