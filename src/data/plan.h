/*
 * The input plan (DESIGN rule A): which rows of which batch each replica gets, as a pure function of V
 * replicas, P pipelines and how many rows there are. No I/O, no threads, no strategy: so what happens
 * among several workers is tested without any.
 *
 * Pipeline p feeds replicas pV/P up to (p+1)V/P: R = V/P of them, here numbered 0 to R - 1. A batch
 * is cut into V pieces, however many pipelines there are:
 *
 *     LS__CUT_OWN    Each pipeline has batches of its own (P = 1, or policy FILE or OFF) and uses one
 *                    up in P steps ("turns"), R pieces a step. Pieces have ceil(B/V) rows B mod V times,
 *                    then floor(B/V); pipeline p begins pR pieces further on, so that all pipelines
 *                    together use B rows in every step. B = 7, P = 2, R = 2:
 *
 *                                   step 0   step 1
 *                      pipeline 0    2, 2     2, 1
 *                      pipeline 1    2, 1     2, 2
 *
 *                    A batch of fewer rows fills the same pieces until it has no more, and what no
 *                    replica has rows in at its end is left out.
 *
 *     LS__CUT_DATA   All pipelines have the same batches (policy DATA), one a step. Pieces have
 *                    ceil(rows/V) rows until there are no more, and are dealt out: replica j of
 *                    pipeline p has piece p + jP.
 *
 *     LS__CUT_NONE   Elements are what one replica gets, R of them a step and pipeline.
 */
#ifndef LS__DATA_PLAN_H
#define LS__DATA_PLAN_H

#include <stdbool.h>
#include <stdint.h>

typedef enum ls__cut { LS__CUT_OWN, LS__CUT_DATA, LS__CUT_NONE } ls__cut;

typedef struct ls__plan {
    ls__cut cut;
    int replicas;     /* V */
    int pipelines;    /* P, which divides V */
    int64_t batch;    /* B; -1: not known, every batch is a whole one */
    bool whole_steps; /* the data ends where a replica would go without */
} ls__plan;

/* R: the replicas of each pipeline. */
static inline int ls__plan_each(const ls__plan *plan)
{
    return plan->replicas / plan->pipelines;
}

/* Rows [first, first + count) of a batch. */
typedef struct ls__window {
    int64_t first, count;
    bool without; /* it has none because the batch has not as many as others */
} ls__window;

/* How many rows piece `turn` x R + j of a whole batch of pipeline p has (LS__CUT_OWN). */
int64_t ls__plan_size(const ls__plan *plan, int pipeline, int piece);

/* How many steps a batch of so many rows lasts: 1 or more. */
int ls__plan_turns(const ls__plan *plan, int pipeline, int64_t rows);

/* What replica j of the pipeline gets of it in one of these. */
ls__window ls__plan_window(const ls__plan *plan, int pipeline, int64_t rows, int turn, int j);

/* ---- when it ends ---------------------------------------------------------------------------- */

/* What a pipeline says before each step. One that has ended says LS__SAYS_SHORT alone. */
enum ls__says {
    LS__SAYS_DATA = 1,  /* it has rows for this step, or a batch that is made of none */
    LS__SAYS_MORE = 2,  /* it has not ended: after this batch there may be another */
    LS__SAYS_SHORT = 4, /* some of its replicas go without */
    LS__SAYS_END = 8    /* and so must all others end */
};

/* With a batch of so many rows, in one of its turns; with so many elements for R replicas. */
unsigned ls__plan_says(const ls__plan *plan, int pipeline, int64_t rows, int turn);
unsigned ls__plan_says_elements(const ls__plan *plan, int elements);

typedef enum ls__step_fate {
    LS__STEP_GIVE, /* a step; those that have ended give 0 rows */
    LS__STEP_SKIP, /* nobody has a row in it: on to the next turn, without a step */
    LS__STEP_END
} ls__step_fate;

/* "Does anyone still have data?": what all pipelines say, or-ed together, `mine` among it. Whoever hosts
 * pipelines elsewhere supplies it, and every pipeline asks once a step. NULL: all are here. */
typedef unsigned (*ls__anyone)(void *user, unsigned mine);
ls__step_fate ls__plan_step(const ls__plan *plan, unsigned mine, ls__anyone anyone, void *user);

#endif
