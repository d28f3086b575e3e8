/*
 * What runs along one axis, every type: argmax and argmin, running sums (one
 * after another, so their order is fixed by definition), and the k largest by a
 * heap that lives in the outputs.
 */
#include <math.h>

#include "kernels/reduce.h"

#define T float
#define U float
#define NAME(x) x##_f32
#include "kernels/ref/ref_reduce_scan_body.h"

#define T double
#define U double
#define NAME(x) x##_f64
#include "kernels/ref/ref_reduce_scan_body.h"

#define T int32_t
#define U uint32_t
#define NAME(x) x##_i32
#include "kernels/ref/ref_reduce_scan_body.h"

#define T int64_t
#define U uint64_t
#define NAME(x) x##_i64
#include "kernels/ref/ref_reduce_scan_body.h"

#define T uint8_t
#define U uint8_t
#define NAME(x) x##_u8
#include "kernels/ref/ref_reduce_scan_body.h"
