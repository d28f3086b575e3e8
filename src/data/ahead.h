/*
 * Running ahead: threads pull a stage's input and work on what they get, while elements are given in
 * the order of the input. What one pull brought is a turn.
 *
 *     input ---take---> turn 7 ---work---> (done)      take: one thread at a time, in order
 *                       turn 8 ---work--->             work: side by side
 *                       turn 9 (being taken)           given: by whoever pulls the stage, in order
 *
 * Failures and the end are turns, too, and come when they are due. Threads begin with the second
 * pull behind an opening or a flush: who goes from place to place for one element each (a
 * shuffle that is restored) starts none. Nor does who has patience, while pulls are short: waking a thread takes
 * longer than some of them, and where all cores are at work it takes one of them away.
 *
 * A stage keeps, for its own single-threaded way, take and work as plain functions.
 */
#ifndef LS__DATA_AHEAD_H
#define LS__DATA_AHEAD_H

#include "data/iterator.h"
#include "data/turn.h"

typedef struct ls__ahead_plan {
    int threads;      /* beside the one that pulls; 0: none are ever started */
    int64_t room;     /* elements that were taken and not given, at most */
    int at_once;      /* elements that are taken in a turn, at most; 1 where there is work */
    const char *name; /* of the threads, and in errors */
    int64_t
        patience; /* nanoseconds a pull may take before threads are started; 0: they are in any case */
    ls__stop *stop; /* as ls__ahead_guard was given */

    /* Pulls up to `most` elements; what is borrowed is owned before it returns. */
    ls_status (*take)(ls__it *it, int most, ls__turn *turn);
    ls_status (*work)(ls__it *it, ls__turn *turn); /* NULL: take has filled `out` */
} ls__ahead_plan;

typedef struct ls__ahead ls__ahead;

/* Before the input is opened: threads that are in a pull of it come back when they have to end. */
void ls__ahead_guard(ls__it *it, ls__stop *stop);

/* `it` has its words already; nobody but ahead touches `input` while threads run. */
ls_status ls__ahead_open(ls__it *it, ls__it *input, const ls__ahead_plan *plan, ls__ahead **out);

/* Waits for the threads, also for what they work on; takes NULL. True: the input is quiet then, perhaps in
 * the middle of something, and can be closed. False: in a process forked since, where it is as the thread
 * left it that had it, maybe half-way; it is nobody's then. */
bool ls__ahead_close(ls__ahead *a);

/* Called in every pull: whether to pull here, or to do it alone, by take and work; and how long that took, if there is
 * patience. */
bool ls__ahead_goes(ls__ahead *a);
void ls__ahead_took(ls__ahead *a, int64_t nanoseconds);
ls_status ls__ahead_pull(ls__ahead *a, int most, ls__chunk *out);

/* The stage's position where the next pull begins; false: threads do not run, so that it is the
 * input's. */
bool ls__ahead_words(const ls__ahead *a, int64_t *words);

/* The threads end and what they made is dropped: the input may go elsewhere. */
void ls__ahead_flush(ls__ahead *a);

/* The input is the caller's between enter and leave; LS_STATE in a process forked since. */
ls_status ls__ahead_enter(ls__ahead *a);
void ls__ahead_leave(ls__ahead *a);

/* ls__it_release for the input, by who pulls it next. */
void ls__ahead_release(ls__ahead *a, const int64_t *words);

#endif
