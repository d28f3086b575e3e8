/*
 * A thread that runs one function, pinned to a core or not. What it is given to do
 * beside that is its owner's business (see event.h for waiting).
 */
#ifndef LS__OS_PLAIN_THREAD_H
#define LS__OS_PLAIN_THREAD_H

#include "base/status.h"

#include <stdbool.h>

typedef struct ls__thread ls__thread;

/* Starts fn(arg) on a thread pinned to `core` (a number of the operating system, -1: not
 * pinned). `name` shows in tools like top; at most 15 characters of it. */
ls_status ls__thread_start(const char *name, int core, void (*fn)(void *arg), void *arg,
                           ls__thread **out);

/* Waits for its end and frees it; takes NULL. In a child that fork() made there is no such
 * thread: only frees. */
void ls__thread_join(ls__thread *t);

/* Whether the thread is of this process, not of the parent that forked it. */
bool ls__thread_is_here(const ls__thread *t);

/* Whether it is the calling thread. */
bool ls__thread_is_this(const ls__thread *t);

#endif
