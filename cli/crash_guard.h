/*
 * When a user's code crashes, or ends the program: one line that says so and what is left, and exit status 1.
 *
 * How to use it: install it before the code is loaded, say now and then where things stand, and remove
 * it when the code is no longer called. "lockstep train: the model mine.c crashed (SIGSEGV) in step 17;
 * the last checkpoint, run/step-000000010.safetensors, is whole".
 */
#ifndef LOCKSTEP_CLI_CRASH_GUARD_H
#define LOCKSTEP_CLI_CRASH_GUARD_H

#include "cli.h"

/* exit, and SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT of any thread; on the calling one a stack that is full,
 * too. `what`: "the model mine.c". With --json the event is told on stdout. */
void crash_guard_install(const cli *c, const char *what);
void crash_guard_remove(void);
bool crash_guard_is_on(void);

/* What the line says of the moment: "in lockstep_model()"; NULL: nothing. A text that stays. */
void crash_guard_where(const char *where);

/* Instead: "in step N". Cheap enough for every step. */
void crash_guard_step(int64_t step);

/* The checkpoint that is on the disk; NULL: none. */
void crash_guard_saved(const char *path);

#endif
