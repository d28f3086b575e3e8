/* What ls_sync_batch_norm knows beside what it gives. */
#ifndef LS__STRATEGY_SYNC_BATCH_NORM_H
#define LS__STRATEGY_SYNC_BATCH_NORM_H

#include <lockstep/strategy.h>

/* ls_sync_batch_norm among several replicas, with a fourth item: how many rows (and places of rows)
 * all of them have, f64[]. */
ls_value *ls__sync_batch_norm(ls_replica *replica, ls_tensor *x, ls_tensor *scale,
                              ls_tensor *offset, double epsilon);

#endif
