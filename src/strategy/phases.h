/*
 * Where the time of replicas goes. Each replica is in one phase, or in none between runs; changing
 * it adds what has passed to the phase before. So phases never overlap, and those of a run add up
 * to its time.
 *
 *     ls__phases_begin(p, s->steps);                   // a run: all are in LS_PHASE_OTHER
 *     ls__phases_enter(p, r, r + 1, LS_PHASE_FORWARD); // looks at the clock if that is a change
 *     ls__phases_end(p, s->steps);                     // of the next
 *
 * Invariant: a replica's clock is changed by one thread at a time: by the one that runs its
 * piece in a round, by the runner between rounds; what orders those orders this. Sums can be read at
 * any time. Nothing here allocates but ls__phases_room, and that while phases are recorded only.
 */
#ifndef LS__STRATEGY_PHASES_H
#define LS__STRATEGY_PHASES_H

#include <lockstep/profile.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "strategy/phase_log.h"

enum { LS__NO_PHASE = -1 };

/* Of one replica, on cache lines of its own. */
typedef struct ls__phase_clock {
    alignas(128) _Atomic int64_t spent[LS_PHASES]; /* nanoseconds; one writes, others may look */
    int64_t since;
    int phase;   /* the one it is in, or LS__NO_PHASE */
    bool logged; /* phases go to the log, too */
    int64_t step;
    ls__phase_log log;
} ls__phase_clock;

typedef struct ls__phases {
    ls__phase_clock *of; /* per replica */
    int replicas;
    _Atomic int64_t step;         /* of the run that is under way, or comes next */
    _Atomic(const void *) runner; /* the thread that has it under way; NULL: there is no run */
    _Atomic int64_t waited;       /* for input between runs, in nanoseconds: all replicas did */
    /* While phases are recorded (profile.c). Waits are any thread's, so they have a lock. */
    bool recording; /* set between runs, under the lock */
    int64_t begun;
    int64_t most; /* LS_PROFILE_MOST, but for tests */
    atomic_flag lock;
    ls__phase_log waits;
} ls__phases;

/* NULL: the error is recorded. */
ls__phases *ls__phases_new(int replicas);
void ls__phases_free(ls__phases *p);

/* A run, on the thread that has it under way. All of these take NULL and do nothing then: the default
 * strategy, which is any thread's, counts nothing. */
void ls__phases_begin(ls__phases *p, int64_t step);
void ls__phases_end(ls__phases *p, int64_t next);

/* The number of the next step is another. */
void ls__phases_next(ls__phases *p, int64_t step);

/* Replicas from `first` up to `end` are in another phase from now on. */
void ls__phases_enter(ls__phases *p, int first, int end, int phase);

/* While phases are recorded: room for so many more of each replica. Between rounds. */
void ls__phases_room(ls__phases *p, int64_t more);

/* What all are in, between rounds. */
int ls__phases_now(const ls__phases *p);

/* Around what is any thread's: whether phases are recorded, and waits. */
void ls__phases_lock(ls__phases *p);
void ls__phases_unlock(ls__phases *p);

/* For ls__watch: of one replica's clock, and of all. */
void ls__phase_watch(void *clock, ls_phase phase);
void ls__phases_watch(void *phases, ls_phase phase);

/* A wait for the next element of a distributed dataset: end takes what begin gave. */
typedef struct ls__input_wait {
    int64_t since;
    int before; /* in a run: the phase it was in */
    enum { LS__WAIT_UNSEEN, LS__WAIT_BETWEEN, LS__WAIT_INSIDE } kind;
} ls__input_wait;
ls__input_wait ls__input_wait_begin(ls__phases *p);
void ls__input_wait_end(ls__phases *p, ls__input_wait wait);

#endif
