/*
 * The executor of schedules in shared memory. What a schedule moves by messages is read
 * here where it lies, and what it adds one by one is added in one pass: a schedule is compiled once
 * into a list of sums, each the work of one rank in one round.
 *
 *     direct, 2 ranks, each with its own copy:
 *         round 0   rank 0: chunk 0 of both  =  {0} + {1}
 *                   rank 1: chunk 1 of both  =  {0} + {1}
 *
 * Nothing in it knows algorithms: it reads hops. Invariants: the bits are those of the schedule's
 * expression, whatever was fused; a place is written in a round only when nobody else reads it in that
 * round.
 *
 * How to use it
 *
 *     ls__local_compile(schedule, LS__LOCAL_ONCE, &l);
 *     for (int round = 0; round < ls__local_rounds(l); round++)
 *         all ranks, at once or one after another:
 *             ls__local_run(l, round, rank, &job);
 *         // and all wait for all
 *
 * or with a team (team.h): ls__team_reduce(team, l, &job).
 */
#ifndef LS__COLLECTIVE_LOCAL_H
#define LS__COLLECTIVE_LOCAL_H

#include <lockstep/tensor.h>

#include "collective/schedule.h"

typedef struct ls__local ls__local;

typedef enum ls__local_ends {
    LS__LOCAL_OWN, /* every rank that the schedule promises it to ends with its own copy, in place of
                      * what it gave (V = ranks); partial sums on the way overwrite it, too */
    LS__LOCAL_ONCE, /* the sum exists once, in memory of its own or at a consumer; what replicas gave
                      * stays as it is */
    LS__LOCAL_FOLDED /* the same, where each rank has folded its replicas before: it gives the nodes of
                      * its block, not its replicas */
} ls__local_ends;

ls_status ls__local_compile(const ls__schedule *s, ls__local_ends ends, ls__local **out);
void ls__local_free(ls__local *l);
int ls__local_rounds(const ls__local *l);
int ls__local_ranks(const ls__local *l);
int ls__local_replicas(const ls__local *l);

/* The nodes that ranks give, in replica order: of OWN and ONCE all V replicas. Operand i of an
 * array is the value of node i. */
int ls__local_operands(const ls__local *l, const ls__tree_node **nodes);

/* FOLDED: the folds of a rank, in order: `sum` = left + right over whole arrays. */
typedef struct ls__fold {
    ls__tree_node sum, left, right;
} ls__fold;
int ls__local_folds(const ls__local *l, int rank, const ls__fold **folds);

/* One array: `count` elements of each operand. Arrays of a job are cut as if they lay behind
 * one another, each on a 64-byte border: chunk borders are 64-byte borders. */
typedef struct ls__array {
    int64_t count;
    const void *const *operands; /* where each lies, ls__local_operands of them */
    void *const *results; /* OWN: unused, operands are overwritten; ONCE, FOLDED: one, where the sum
                                  * goes; NULL: to the consumer only */
} ls__array;

/* Takes the sum of elements [begin, begin + count) of an array, once for each; `sum` is gone when
 * it returns. begin is a multiple of 64 bytes; so is the end, but at the array's own. Called by the
 * rank that has the sum; several ranks call at once, never for the same elements. */
typedef void ls__consume(void *user, int array, int64_t begin, int64_t count, const void *sum);

typedef struct ls__local_job {
    ls_dtype dtype; /* f32, f64, i32, i64, u8 */
    int divisor;    /* of the sum when it is complete (MEAN: the number of replicas; integers are
                     * rounded towards zero); 0: none */
    int n_arrays;
    const ls__array *arrays;
    ls__consume *consume; /* ONCE and FOLDED; NULL: none */
    void *user;
    void *scratch; /* ls__local_scratch bytes, 64-byte aligned; may be NULL when that is 0 */
} ls__local_job;

/* Room for partial sums that one rank computes and another reads (0 for direct). */
size_t ls__local_scratch(const ls__local *l, const ls__local_job *job);
bool ls__local_wants_scratch(const ls__local *l); /* of some job */

/* What rank `rank` does in round `round`. Cannot fail. */
void ls__local_run(const ls__local *l, int round, int rank, const ls__local_job *job);

#endif
