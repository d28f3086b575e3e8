/*
 * Two threads pinned to two cores, for benchmarks that need no more: a team (collective/team.h) of the
 * calling thread, which is rank 0, and one other; and the cheapest way for the two to meet.
 *
 *     static void all(pair *p, void *user) { ... }      // on rank 0's thread
 *     pair_run(all, user);
 */
#ifndef LS__BENCH_PAIR_H
#define LS__BENCH_PAIR_H

#include "collective/team.h"

typedef struct pair pair;

/* Calls fn(pair, user) on a thread pinned to the first core, with the other at its disposal and
 * the team in use; returns when it has. Ends the program when that cannot be had. */
void pair_run(void (*fn)(pair *p, void *user), void *user);

/* Calls fn(arg, rank) on both and returns when both are done. Wakes the other when it sleeps. */
void pair_share(pair *p, ls__share_fn *fn, void *arg);

/* In such a function: both wait for both. Each has a flag of its own and looks at the other's: one
 * line goes each way, and there is no cheaper way to meet. */
void pair_meet(pair *p, int rank);

#endif
