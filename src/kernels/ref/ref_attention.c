/*
 * Attention, plainly: the oracle for f32, and what f64 runs on. Scratch: one
 * row of scores.
 */
#include <math.h>

#include "kernels/attention.h"

#define T float
#define NAME(x) x##_f32
#include "kernels/ref/ref_attention_body.h"

#define T double
#define NAME(x) x##_f64
#include "kernels/ref/ref_attention_body.h"
