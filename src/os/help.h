/*
 * Help: threads, each at work of its own, take over parts of each other's when they have nothing
 * to do. A core that is slow for a while, since a neighbour on its machine is busy, holds up all
 * who meet it later; those lend a hand instead of waiting.
 *
 *     owner:   ls__help_join(&help, 0)                     // this thread is member 0
 *              ls__help_run(8, fn, arg)                    // fn(arg, 0..7, worker), by it and who is idle
 *     helper:  ls__help_wait(&help, &event, count, spin)   // waits, and helps meanwhile
 *
 * What is run so must be the same whoever does a part, in whatever order, must not fail, and runs
 * nothing so itself. A part has the scratch memory of its worker: 0 is the owner, 1 who helps him,
 * one at a time.
 */
#ifndef LS__OS_HELP_H
#define LS__OS_HELP_H

#include "os/event.h"
#include "os/range.h"

enum { LS__HELP_WORKERS = 2 };

typedef void ls__help_fn(void *arg, int64_t part, int worker);

/* On cache lines of its own: who waits looks at it all the time. */
typedef struct ls__help_member {
    _Alignas(64) ls__range parts; /* that nobody is at */
    _Atomic bool helped;          /* somebody is worker 1 */
    ls__help_fn *fn;
    void *arg;
    uint32_t given; /* parts that others took, in all jobs */
    ls__event done; /* those of them that are done */
    int64_t leaves; /* of each job, to helpers, however long they take: for tests, else 0 */
} ls__help_member;

typedef struct ls__help {
    ls__help_member *members;
    int count; /* 0: nobody helps anybody */
} ls__help;

/* False: there is no memory for it. */
bool ls__help_open(ls__help *help, int members);
void ls__help_close(ls__help *help);

/* This thread's jobs can be helped from now on; what it was before. */
ls__help_member *ls__help_join(ls__help *help, int member);
void ls__help_leave(ls__help_member *before);

/* Returns when all parts are done; this thread takes the first that are left, helpers the last. */
void ls__help_run(int64_t parts, ls__help_fn *fn, void *arg);

/* Any thread's, with a core for it (event.h on `spin`: who does not spin does not help). */
void ls__help_wait(ls__help *help, ls__event *e, uint32_t count, int spin);

#endif
