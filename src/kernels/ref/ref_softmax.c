/*
 * Softmax and losses, plainly: the oracle for f32, and what f64 runs on.
 */
#include <math.h>

#include "kernels/softmax.h"

int64_t ls__labels_check(ls__labels labels, int64_t rows, int64_t n)
{
    for (int64_t r = 0; r < rows; r++) {
        int64_t label = ls__label(labels, r);
        if (label < 0 || label >= n)
            return r;
    }
    return -1;
}

#define T float
#define NAME(x) x##_f32
#include "kernels/ref/ref_softmax_body.h"

#define T double
#define NAME(x) x##_f64
#include "kernels/ref/ref_softmax_body.h"
