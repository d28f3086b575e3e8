/*
 * Adding up over replicas, for rows. See replicas.c.
 *
 * A row that does it has the flag LS__OP_REDUCES, attributes that begin with ls__reduce_attrs,
 * and from input `first` on groups of V inputs: one array of every replica, array after array.
 * Whoever runs it may have folded replicas before (rule B): then `folded` is set, and of a group
 * those inputs count that are first of a node of the team's folded schedule; they hold the node.
 */
#ifndef LS__OPS_REPLICAS_H
#define LS__OPS_REPLICAS_H

#include <lockstep/strategy.h>

#include "collective/team.h"
#include "tensor/spec.h"

typedef struct ls__reduce_attrs {
    int64_t replicas; /* V; 0: all inputs are one group */
    int64_t first;    /* inputs before the groups */
    int64_t folded;   /* 1: see above. Set by whoever folds, on the node it runs */
} ls__reduce_attrs;

/* The sum or mean of one tensor per replica; NULL on failure. */
ls_tensor *ls__sum_replicas(ls_reduce_op op, int count, ls_tensor *const *xs);

/* The same of many at once: `xs` has all replicas' of tensor 0, then of tensor 1...; `out` gets a sum
 * each. Those of one call are reduced together. */
ls_status ls__sum_replicas_all(ls_reduce_op op, int replicas, int tensors, ls_tensor *const *xs,
                               ls_tensor **out);

/* Of a sum_replicas node's attributes: whether it is a sum of all replicas (no mean, nothing
 * folded), and of how many. */
bool ls__is_sum_of_replicas(const void *attrs, int *replicas);

/* LS_SHAPE when replicas differ in dtype or shape (along `but_axis` they may: -1: nowhere). */
ls_status ls__replicas_alike(const char *who, int count, const ls__spec *const *specs,
                             int but_axis);

/* ---- for kernels of such rows ------------------------------------------------------- */

/* Adds up by the schedule of this thread's team (collective/team.h), or alone. Arrays of one
 * dtype; `parts` is the row's in_data from `first` on, or a choice of its groups. The sum of array i
 * goes to sums[i] (sums NULL: nowhere) and, block by block while it is in the first cache, to
 * `consume`. Fails before anything was consumed, if at all; with `room`, and on a team that needs
 * neither packs nor scratch (ls__sums_are_sure), it cannot fail. */
typedef struct ls__replica_sums {
    int replicas;
    bool folded;
    ls_dtype dtype;
    bool mean; /* floats only */
    int arrays;
    const int64_t *counts;
    const void *const *parts; /* arrays x replicas */
    void *const *sums;
    ls__consume *consume;
    void *user;
    void *room; /* ls__replica_sums_room bytes, 8-byte aligned; NULL: the frame's memory */
} ls__replica_sums;
ls_status ls__replica_sums_run(const ls__replica_sums *job);
size_t ls__replica_sums_room(int arrays, int replicas);

/* Whether the rows above cannot fail on this team once they have their scratch. */
bool ls__sums_are_sure(const ls__team *team);

#endif
