/*
 * Optimizer updates in place, on one run of elements, and sums of squares for norms. An
 * element's bits do not depend on where in the run it stands (DESIGN rule C).
 *
 *     LS__PICK(ls__update_table)->update[LS__UPDATE_ADAM][wide](at, g, &numbers, n);
 */
#ifndef LS__KERNELS_UPDATE_H
#define LS__KERNELS_UPDATE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernels/isa_select.h"

typedef enum ls__update_id {
    LS__UPDATE_SGD,      /* w -= rate g */
    LS__UPDATE_MOMENTUM, /* m = momentum m - rate g;  w += m, or nesterov: momentum m - rate g */
    LS__UPDATE_ADAM,     /* m += (g - m) (1 - beta1);  v += (g^2 - v) (1 - beta2)
                          * w -= rate m / (sqrt(v) + epsilon), the rate corrected for the bias of
                          * the moments */
    LS__UPDATES
} ls__update_id;

/* What is the same for all elements of a variable. First g is scaled and clipped, and w
 * decays: g = clip(scale g), w -= decay w. */
typedef struct ls__update {
    double rate;
    double scale; /* 1: none */
    double clip;  /* to [-clip, clip]; infinite: none */
    double decay; /* 0: none */
    double momentum;
    bool nesterov;
    double one_minus_beta1;
    double one_minus_beta2;
    double epsilon;
} ls__update;

/* Whether g and w are taken as they are. */
static inline bool ls__update_is_plain(const ls__update *p)
{
    return p->scale == 1 && isinf(p->clip) && p->decay == 0;
}

/* `at` has where the variable and its slots begin, `g` the gradient: n elements of one
 * dtype. None overlaps another. */
typedef void ls__update_fn(void *const *at, const void *g, const ls__update *p, int64_t n);

/* The sum of squares of at most LS__NORM_BLOCK elements, in double and in a fixed order. */
enum { LS__NORM_BLOCK = 4096 };
typedef double ls__squares_fn(const void *x, int64_t n);

typedef struct ls__update_kernels {
    ls__update_fn *update[LS__UPDATES][2]; /* [1]: f64 */
    ls__squares_fn *squares[2];
} ls__update_kernels;

LS__ISA_TABLE(ls__update_kernels, ls__update_table);

#endif
