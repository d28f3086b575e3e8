/*
 * Threads: a worker that runs jobs on its own pinned thread, a hook for the end
 * of any thread, and one-time initialisation.
 */
#ifndef LS__OS_THREAD_H
#define LS__OS_THREAD_H

#include <stdint.h>

#include "base/status.h"

typedef struct ls__worker ls__worker;
typedef ls_status (*ls__job)(void *user);

/* Starts a thread pinned to `core` (a number of the operating system, -1: not
 * pinned). `name` shows in tools like top; at most 15 characters of it. */
ls_status ls__worker_start(const char *name, int core, ls__worker **out);

/* Runs job(user) on the worker and waits. Jobs of several callers take turns.
 * The status and an error pending there come back to the caller. Called on the
 * worker itself, it runs the job in place. */
ls_status ls__worker_run(ls__worker *worker, ls__job job, void *user);

/* Waits for the job in hand, ends the thread and frees the worker. */
void ls__worker_stop(ls__worker *worker);

/* Calls `fn` when the calling thread ends (not at the end of the process): once,
 * however often it is given; at most eight functions a thread, the last first. */
void ls__at_thread_end(void (*fn)(void));

/* Calls `fn` in the first thread that comes; all return after it has. A flag starts
 * as zeros. */
typedef struct ls__once {
    int state;
} ls__once;
void ls__call_once(ls__once *once, void (*fn)(void));

#endif
