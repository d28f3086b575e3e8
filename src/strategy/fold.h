/*
 * Values that replicas bring to a meeting only to be added up: gradients. Replicas that take turns
 * on a device need not keep all of them: each writes its own into a buffer lent for the
 * piece before the meeting, and as soon as a node of the tree is complete (collective/tree.h) its
 * two parts become one buffer (rule B). A device of r replicas so needs at most 2 log2(r) + 2.
 *
 *     4 replicas, one device      after 0    after 1    after 2      after 3
 *                                 {0}        {01}       {01} {2}     {01}{23} -> {0123}
 *
 * Which nodes are folded is read from the schedule's folds (ls__local_folds).
 */
#ifndef LS__STRATEGY_FOLD_H
#define LS__STRATEGY_FOLD_H

#include "collective/local.h"
#include "tensor/storage.h"
#include "trace/execute.h"

struct ls__traced_step;

/* One array of every replica, side by side with the others of the meeting. */
typedef struct ls__folded_array {
    ls_dtype dtype;
    int64_t count;
    size_t offset;          /* in a buffer */
    int made;               /* when the backward pass finishes it: the order of the buffer */
    int *brought;           /* per replica: which of the things it brings; -1: a constant */
    int instruction, input; /* of the meeting: who adds it up, and which input is replica 0's */
    const void *constant;   /* given by all replicas alike */
} ls__folded_array;

/* Of one meeting. */
typedef struct ls__folded {
    int count;
    ls__folded_array *arrays;
    size_t bytes; /* of a buffer */
} ls__folded;

/* Finds what the meeting with this plan only adds up, and tells its rows that it will come folded. */
ls_status ls__folded_find(struct ls__traced_step *step, int meeting);
void ls__folded_free(ls__folded *f);

/* What a replica's plan needs to know of all meetings; *out is malloc'ed. */
ls_status ls__folded_lent(const struct ls__traced_step *step, int replica, ls__lent **out, int *n);

/* The buffers of one device for one meeting. */
typedef struct ls__fold_stack {
    int n_buffers;
    ls__storage **buffers;
    ls__storage **spare; /* a stack of those not in use */
    int n_spare;
    ls__tree_node *nodes; /* a stack of partial sums, and where they are */
    ls__storage **at;
    int n_nodes;
    int folded; /* of the device's folds */
} ls__fold_stack;

/* For replicas [first, end). */
ls_status ls__fold_stack_make(ls__fold_stack *stack, const ls__folded *f, const ls__local *l,
                              int rank, int first, int end);
void ls__fold_stack_free(ls__fold_stack *stack);
void ls__fold_stack_empty(ls__fold_stack *stack);

/* Before a replica's piece: where it puts its values. */
void *ls__fold_buffer(const ls__fold_stack *stack);

/* After it: the replica's buffer is full; folds what can be folded. */
void ls__fold_take(ls__fold_stack *stack, const ls__folded *f, const ls__local *l, int rank,
                   int replica);

#endif
