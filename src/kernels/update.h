/*
 * Optimizer updates in place, on one run of elements. An element's bits do not
 * depend on where in the run it stands (DESIGN rule C).
 */
#ifndef LS__KERNELS_UPDATE_H
#define LS__KERNELS_UPDATE_H

#include <stdint.h>

#include "kernels/isa_select.h"

/* Adam with its step size already corrected for the bias of the moments:
 *     m += (g - m) (1 - beta1);  v += (g^2 - v) (1 - beta2)
 *     w -= rate m / (sqrt(v) + epsilon) */
typedef struct ls__adam {
    double rate;
    double one_minus_beta1;
    double one_minus_beta2;
    double epsilon;
} ls__adam;

typedef struct ls__update_kernels {
    void (*sgd_f32)(float *w, const float *g, double rate, int64_t n);
    void (*sgd_f64)(double *w, const double *g, double rate, int64_t n);
    void (*adam_f32)(float *w, float *m, float *v, const float *g, const ls__adam *p, int64_t n);
    void (*adam_f64)(double *w, double *m, double *v, const double *g, const ls__adam *p,
                     int64_t n);
} ls__update_kernels;

LS__ISA_TABLE(ls__update_kernels, ls__update_table);

#endif
