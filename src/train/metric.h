/* The inside of a metric. metric.c: a sum and a count; metric_kinds.c: what is counted. */
#ifndef LS__TRAIN_METRIC_H
#define LS__TRAIN_METRIC_H

#include <lockstep/metric.h>

struct ls_metric {
    char *name;
    ls_metric_fn fn; /* NULL: of what ls_metric_add gets */
    void *user;
    int64_t k;                 /* of a top-k accuracy */
    double threshold;          /* of a binary one; `user` of both is the metric */
    ls_variable *variables[2]; /* the sum, f64[], and the count, i64[] */
};

/* A metric of `name`, or, when that is NULL, of `usual`. */
ls_metric *ls__metric_new(const char *who, const char *name, const char *usual, ls_metric_fn fn,
                          void *user);

#endif
