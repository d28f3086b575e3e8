/*
 * One tensor a replica, added up: all that combines replicas goes through this row.
 */
#ifndef LS__OPS_REPLICAS_H
#define LS__OPS_REPLICAS_H

#include <lockstep/strategy.h>

#include "tensor/spec.h"

/* The element-wise sum (LS_SUM) of `count` tensors of one spec in the order of the tree
 * (kernels/replicas.h), or that sum divided by `count` (LS_MEAN; f64 for integers). Replica i's
 * is xs[i]; they are on one device. LS_SHAPE tells which replicas differ. */
ls_tensor *ls__sum_replicas(ls_reduce_op op, int count, ls_tensor *const *xs);

/* LS_OK when all specs are equal, but for their size along `but_axis` (-1: no exception). Else
 * LS_SHAPE: "WHO: replica 0 has f32[4], replicas 1 to 3 f32[2]". */
ls_status ls__replicas_alike(const char *who, int count, const ls__spec *const *specs,
                             int but_axis);

#endif
