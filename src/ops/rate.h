/* Learning rates as a row; see rate.c. */
#ifndef LS__OPS_RATE_H
#define LS__OPS_RATE_H

#include <lockstep/tensor.h>

/* A schedule as numbers, so that a cell holds it and a recorded step follows it: f64[LS__RATE_NUMBERS].
 * Steps are whole and below 2^53. All were checked by whoever wrote them. */
enum {
    LS__RATE_KIND, /* ls__rate_kind */
    LS__RATE_VALUE,
    LS__RATE_OWN,   /* the optimizer's, for schedules to come that have none; after VALUE */
    LS__RATE_STEPS, /* cosine */
    LS__RATE_ALPHA,
    LS__RATE_WARMUP_STEPS,
    LS__RATE_WARMUP_FROM,
    LS__RATE_COUNT, /* step: of boundaries */
    LS__RATE_BOUNDARIES,
    LS__RATE_MOST_BOUNDARIES = 64,
    LS__RATE_VALUES = LS__RATE_BOUNDARIES + LS__RATE_MOST_BOUNDARIES,
    LS__RATE_NUMBERS = LS__RATE_VALUES + LS__RATE_MOST_BOUNDARIES + 1
};

typedef enum ls__rate_kind { LS__RATE_CONSTANT, LS__RATE_STEP, LS__RATE_COSINE } ls__rate_kind;

/* The rate of the update that comes after `step` others. */
double ls__rate_at(const double *numbers, int64_t step);

/* The same as a row: f64[LS__RATE_NUMBERS], i64[] -> f64[]. */
ls_tensor *ls__rate(ls_tensor *numbers, ls_tensor *step);

/* cos(pi x) for x in [0, 1]: within 2e-16, the same bits everywhere. */
double ls__cos_pi(double x);

#endif
