/*
 * Inside the executor of shared memory (local.h): what a schedule says once it was read, and what
 * the executor runs. local_read.c makes values of hops, local_compile.c sums of values, and
 * local_run.c runs sums.
 */
#ifndef LS__COLLECTIVE_LOCAL_PLAN_H
#define LS__COLLECTIVE_LOCAL_PLAN_H

#include "collective/local.h"

/* ---- what the schedule says: values ------------------------------------------------- */

/* A value some rank has: given by a rank, or the sum of two. A value stands behind those it is
 * made of, and in the order of rounds; of one round, in the order of ranks and of their lists. */
typedef struct ls__value {
    uint32_t node;
    uint32_t chunk;  /* LS__EVERY_CHUNK: given, or a fold */
    int left, right; /* the values it is the sum of; -1: given */
    int operand;     /* of what is given: which one; else -1 */
    int rank;        /* who gives or adds it */
    int round;       /* when; -1: before the first round */
} ls__value;

typedef struct ls__reading {
    ls__value *values;
    int n_values, room;
    int *ends; /* ranks x chunks: the value this rank ends with; -1: none is promised to it */
    ls__tree_node *operands;
    int n_operands;
    ls__fold *folds; /* those of rank r: first_fold[r] up to first_fold[r + 1] */
    int *first_fold;
} ls__reading;

/* LS_CORRUPT names rank, round and hop. Both take a reading that was filled in part. */
ls_status ls__reading_make(const ls__schedule *s, ls__local_ends ends, ls__reading *out);
void ls__reading_clear(ls__reading *r);

/* ---- what is run: sums --------------------------------------------------------------- */

/* Where a value lies: operand i is place i, scratch slot k is place n_operands + k. */
enum { LS__PLACE_RESULT = -1 };

/* A program is a list of: n > 0, push the tree's sum of the next n sources; ADD, replace the
 * two on top by below + top; ADD_TURNED, by top + below. */
enum { LS__ADD = 0, LS__ADD_TURNED = -1 };

typedef struct ls__sum {
    int rank, round;
    uint32_t chunk;
    int op, n_ops; /* from here on in the list of all ops, so many */
    int source, n_sources;
    int target, n_targets;
    bool complete; /* all of the sum: it is divided, and handed to the consumer */
} ls__sum;

typedef struct ls__ints {
    int *at;
    int n, room;
} ls__ints;

struct ls__local {
    ls__local_ends ends;
    int ranks, replicas, chunks, rounds;
    int n_slots; /* of scratch, each as long as all arrays */
    ls__sum *sums;
    int n_sums, room;
    int *first_sum; /* rounds x ranks + 1 */
    ls__ints ops, sources, targets;
    ls__tree_node *operands;
    int n_operands;
    ls__fold *folds;
    int *first_fold;
};

/* ---- while it is compiled -------------------------------------------------------------- */

enum { LS__SEVERAL = -1 };

/* Of what lies somewhere: the last round in which it is read; by which rank then, or LS__SEVERAL; and
 * the last sum of that rank that does. */
typedef struct ls__reads {
    int round, rank, sum;
} ls__reads;

typedef struct ls__compiling {
    const ls__reading *in;
    ls__local *l;
    int *uses;    /* of a value, by sums that count; */
    int *user;    /* the last of them; */
    int *place;   /* where it lies; */
    bool *ending; /* whether somebody ends with it; */
    int *sum;     /* and the sum that makes it, -1: none */
    ls__reads *reads;
    ls__reads *given_reads; /* OWN: ranks x chunks, of what ranks gave */
    int *here;              /* OWN: ranks x chunks, the value in a rank's array; -1: what it gave */
    ls__ints slots;         /* chunks for each slot of scratch, the value in it; -1: none yet */
} ls__compiling;

static inline bool ls__is_given(const ls__compiling *w, int v)
{
    return w->in->values[v].left < 0;
}

static inline size_t ls__cell(const ls__compiling *w, int rank, uint32_t chunk)
{
    return (size_t)rank * (size_t)w->l->chunks + chunk;
}

/* False when out of memory, which is recorded. */
bool ls__ints_add(ls__ints *list, int value);
bool ls__sum_add(ls__local *l, const ls__sum *sum);

/* local_place.c. What was given and ranks end with is never overwritten; a sum about to be added reads
 * its sources, which are values still; then all that sums make gets a place, and sources become
 * places. */
void ls__keep_given(ls__compiling *w);
void ls__note_sources(ls__compiling *w, const ls__sum *sum);
ls_status ls__place_all(ls__compiling *w);

/* The most values a program keeps beside one another: each add needs both sides to hold as many,
 * so 1,024 sources need no more than 11. */
enum { LS__MOST_STACK = 12 };

#endif
