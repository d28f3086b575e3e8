/*
 * Running ahead, from inside: what ahead.c (the stage's side) and ahead_crew.c (turns, and the threads
 * that take them and work on them) share. Invariants, under the lock:
 *
 * - `busy`: somebody has the input, who alone may touch it, without the lock.
 * - `first` to `last` are the turns in the order of the input. The last may be in the making; from
 *   `to_work` on nobody works on them yet; those before it are worked on, or done. Only the first is
 *   given from.
 * - `held` counts the elements of all of them. When it reaches the room, `full` is set until half of
 *   it has been given, so that threads do not wake up for every single element.
 * - Once `ended`, nothing is taken any more; when all that was taken is done, the threads end.
 */
#ifndef LS__DATA_AHEAD_CREW_H
#define LS__DATA_AHEAD_CREW_H

#include "data/ahead.h"
#include "os/lock.h"
#include "os/plain_thread.h"

typedef struct ls__entry {
    ls__turn turn;
    struct ls__entry *next;
    ls_status status;
    bool taken, done;
    int given; /* elements of it */
    ls__error_record error;
} ls__entry;

struct ls__ahead {
    ls__it *it, *input;
    ls__ahead_plan plan;
    ls__lock lock;
    ls__place work;  /* a thread may have something to do */
    ls__place ready; /* what the puller waits for: the first turn is done, or the input is free */
    int spin;        /* how long to look before sleeping there */
    ls__entry *first, *last, *to_work, *spare;
    int64_t held;
    int waiting; /* turns from to_work on that are taken */
    bool busy, full, ended, stop;
    bool input_wanted;   /* by the puller, before any other */
    bool release_wanted; /* up to `released` */
    bool warm;           /* there was a pull */
    int64_t took;        /* pulls without threads, on the average, in nanoseconds */
    int64_t *released;   /* words of the input */
    int64_t *to_release; /* the same, for who has the input */
    int64_t *position;   /* the stage's, where the next pull begins */
    ls__thread **threads;
    int n_threads;     /* that run */
    const void *taker; /* who took last: a thread, as ls__crew_step knows it */
};

/* One thing that there is to do, by `who` (the puller: `a`): taking a turn of up to `most` elements, or
 * working on one that is taken. False: there is none now. Has the lock before and after, and not between; the thread has no
 * error of another's. */
bool ls__crew_step(ls__ahead *a, const void *who, int most);

ls_status ls__crew_start(ls__ahead *a);
void ls__crew_halt(ls__ahead *a);

/* In a process that was forked since they started there are no threads, and the lock may be taken
 * for ever. */
bool ls__crew_is_lost(const ls__ahead *a);

/* The input is free; there may be something to work on. Under the lock. */
void ls__crew_free_input(ls__ahead *a);
void ls__crew_tell_of_work(ls__ahead *a);

/* Elements that a turn counts for; the turn is over and its memory can be used again. */
int ls__crew_weight(const ls__entry *e);
void ls__crew_recycle(ls__ahead *a, ls__entry *e);

/* What elements of a turn keep in memory for themselves alone. */
int64_t ls__crew_bytes(const ls__chunk *c, int from, int n);

#endif
