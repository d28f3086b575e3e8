/*
 * What a program should do, by the rules alone: no call of Lockstep runs here. Replicas are
 * rows of an array; each operation is done for all of them before the next.
 */
#ifndef LS__TESTS_RANDOM_STRATEGIES_ORACLE_H
#define LS__TESTS_RANDOM_STRATEGIES_ORACLE_H

#include "random_strategies/program.h"

/* Never changes once made; the same pointer is the same tensor. */
typedef struct or_tensor {
    rs_type type;
    bool unknown; /* it was drawn */
    double at[RS_ROOM];
} or_tensor;

/* parts[0] NULL: it failed. A plain leaf has one part. */
typedef struct or_leaf {
    ls_spread spread;
    const or_tensor *parts[RS_REPLICAS];
} or_leaf;

enum { OR_LEAVES = 8, OR_ANY = -2, OR_NOBODY = -1 };

/* How a run or a merge function ended: what its leaves are, or which error. */
typedef struct or_outcome {
    int status; /* ls_status, or OR_ANY */
    int who;    /* a replica, OR_NOBODY, OR_ANY */
    or_leaf leaves[OR_LEAVES];
} or_outcome;

typedef struct oracle {
    const rs_program *p;
    int v; /* replicas */
    const or_tensor *cells[RS_VARIABLES][RS_REPLICAS];
    struct or_chunk *memory;
} oracle;

or_outcome or_run(oracle *o, const rs_body *body, const or_leaf *arguments);
or_outcome or_merge(oracle *o, const rs_body *body, const or_leaf *arguments, int who);

/* Tensors. NULL in is NULL out. */
or_tensor *or_new(oracle *o, const rs_type *type);
or_tensor *or_copy(oracle *o, const or_tensor *t);
double or_rounded(const or_tensor *t, double x); /* to its dtype */
void or_free_all(oracle *o);
or_tensor *or_full(oracle *o, const rs_type *type, double k);
const or_tensor *or_arith(oracle *o, int which, const or_tensor *a, const or_tensor *b);
const or_tensor *or_plain_op(oracle *o, const rs_op *op, const or_tensor *a, const or_tensor *b,
                             int replica);
const or_tensor *or_reduce(oracle *o, int which, int n, const or_tensor *const *parts);
const or_tensor *or_sum_axis(oracle *o, const or_tensor *t, int axis);
const or_tensor *or_divided(oracle *o, const or_tensor *t, double by);

/* The n parts of all replicas, grouped. */
or_leaf or_grouped(const oracle *o, const or_tensor *const *parts);
or_leaf or_plain(const or_tensor *t);
const or_tensor *or_component(oracle *o, const or_leaf *leaf, int replica); /* what it sees */
or_leaf or_mirrored(const oracle *o, const or_tensor *t);

/* A variable as cross-replica context reads it; NULL when that is refused. */
const or_tensor *or_combined(oracle *o, int variable);
const or_tensor *or_written(oracle *o, int which, const or_tensor *old, const or_tensor *value);

#endif
