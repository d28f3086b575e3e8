/*
 * Batch and layer normalisation, plainly: the oracle for f32, and what f64 runs
 * on.
 */
#include <math.h>

#include "kernels/norm.h"

#define T float
#define NAME(x) x##_f32
#include "kernels/ref/ref_norm_body.h"

#define T double
#define NAME(x) x##_f64
#include "kernels/ref/ref_norm_body.h"
