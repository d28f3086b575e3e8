/*
 * metric.h: means over many batches and replicas: loss, accuracy.
 *
 * How to use it
 *
 *     LS_SCOPE(s) hits = ls_accuracy("accuracy");
 *     ... in the step of each replica: ls_metric_update(hits, logits, labels);
 *     printf("%.4f\n", ls_metric_result(hits));      // outside
 *     ls_metric_reset(hits);                         // a new epoch
 *     ls_metric_free(hits);
 *
 * A metric is a sum (f64) and a count (i64) on every replica, so a batch of 96 rows counts as 96, a
 * replica without rows as nothing, and 2^31 samples as what they are. The sum over replicas goes in
 * the order of the tree: the same bits on any placement. Each is made in the scope of the strategy
 * whose steps update it, and is saved by saving its variables.
 */
#ifndef LOCKSTEP_METRIC_H
#define LOCKSTEP_METRIC_H

#include <lockstep/tensor.h>
#include <lockstep/variable.h>

LS_BEGIN_DECLS

typedef struct ls_metric ls_metric;

/* What of each row, or place, the mean is taken: any number or bool tensor. */
typedef ls_tensor *(*ls_metric_fn)(ls_tensor *outputs, ls_tensor *labels, void *user);

/* Yours until ls_metric_free, which takes NULL. ls_mean_metric: of whatever ls_metric_add gets.
 * ls_accuracy: the largest of the last axis of `outputs` is the label, an index; labels with that
 * axis are one-hot. ls_top_k_accuracy: the label is among the k largest. ls_binary_accuracy: an
 * output above `threshold` (logits: 0) is a 1. ls_mean_absolute_error. */
LS_API ls_metric *ls_mean_metric(const char *name);
LS_API ls_metric *ls_accuracy(const char *name);
LS_API ls_metric *ls_top_k_accuracy(const char *name, int64_t k);
LS_API ls_metric *ls_binary_accuracy(const char *name, double threshold);
LS_API ls_metric *ls_mean_absolute_error(const char *name);
LS_API ls_metric *ls_own_metric(const char *name, ls_metric_fn fn, void *user);
LS_API void ls_metric_free(ls_metric *m);

LS_API const char *ls_metric_name(const ls_metric *m);

/* In a replica, or outside of any; eager or traced. Weights (NULL: all 1) have the shape of the
 * values; the mean is then the sum of value * weight over the number of weights that are not 0. */
LS_API ls_status ls_metric_update(ls_metric *m, ls_tensor *outputs, ls_tensor *labels);
LS_API ls_status ls_metric_add(ls_metric *m, ls_tensor *values, ls_tensor *weights);

/* In cross-replica context, or outside of any. NaN when nothing was counted, and for NULL. */
LS_API double ls_metric_result(ls_metric *m);
LS_API int64_t ls_metric_samples(ls_metric *m);
LS_API ls_status ls_metric_reset(ls_metric *m);

/* Its two variables, for saving: the sum and the count. NULL for NULL. */
LS_API ls_variable *const *ls_metric_variables(const ls_metric *m);

LS_END_DECLS

#endif
