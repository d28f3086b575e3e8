/*
 * A leaf as the tensors of V replicas, and those combined into one: what ls_reduce,
 * ls_reduce_to and ls_all_reduce share. In cross-replica context; tensors are never read, so it
 * works on the symbols of a traced step too.
 */
#ifndef LS__STRATEGY_COMBINE_H
#define LS__STRATEGY_COMBINE_H

#include <lockstep/strategy.h>

#include "tensor/device.h"

/* What the replicas have, brought together on one device. */
typedef struct ls__parts {
    ls_spread spread; /* not LS_SPREAD_MIXED */
    int count;        /* V when per-replica, else 1: one stands for all */
    ls_tensor **at;   /* memory of the frame */
} ls__parts;

/* A leaf that is a variable counts as what its components hold: per-replica when each has a
 * cell of its own, else mirrored. LS_INVALID for a leaf of another number of replicas. */
ls_status ls__parts_of(const ls_strategy *s, const char *who, const ls_value *leaf,
                       ls__device *device, ls__parts *out);

/* The sum, mean or first of them. Sparse ones: rows and values of all in replica order (MEAN
 * divides the values). Plain and mirrored ones are their own mean, and have no sum unless V is
 * 1 or they are the number 0: LS_INVALID. */
ls_tensor *ls__combine(const ls_strategy *s, const char *who, ls_reduce_op op,
                       const ls__parts *parts);

/* The same of several at once: what can be added up together is (one row, so one set of packs). */
typedef struct ls__combining {
    char who[48];   /* as above */
    char where[24]; /* what begins its error beside `who` ("value 2"), or "" */
    ls__parts parts;
    ls_tensor *out; /* the answer */
} ls__combining;
ls_status ls__combine_all(const ls_strategy *s, ls_reduce_op op, int count, ls__combining *list);

/* LS_INVALID when `op` is no ls_reduce_op, or LS_ONLY_FIRST without `first`. */
ls_status ls__check_reduce_op(const char *who, ls_reduce_op op, bool first);

/* LS_INVALID when a leaf ("argument 1") is distributed and has not V components. */
ls_status ls__check_fits(const ls_strategy *s, const char *what, const ls_value *leaf);

/* LS_INVALID when a distributed leaf in `value` has not V components. */
ls_status ls__check_components(const ls_strategy *s, const char *who, const ls_value *value);

/* A mirrored leaf: on each replica's device a handle onto one memory. */
ls_value *ls__mirrored_leaf(const ls_strategy *s, ls_tensor *t);

/* `t` on the device; `t` itself when it is there. NULL for NULL. */
ls_tensor *ls__on_device(ls_tensor *t, const ls__device *device);

/* LS_INVALID for the sum of a value that is the same on all replicas. */
ls_status ls__refuse_sum(const ls_strategy *s, const char *who, const ls__parts *parts);

#endif
