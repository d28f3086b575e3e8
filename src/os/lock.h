/*
 * A lock, and signals to wait for under it: what threads share is looked at and changed under the lock;
 * who finds it not as he needs it waits for the signal that it has changed, and looks again.
 *
 *     ls__lock_take(&l);                          ls__lock_take(&l);
 *     while (!ready)                              ready = true;
 *         ls__signal_wait(&s, &l);                ls__signal_one(&s);
 *     ls__lock_give(&l);                          ls__lock_give(&l);
 *
 * Waits for one event of a known thread are cheaper with event.h.
 */
#ifndef LS__OS_LOCK_H
#define LS__OS_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct ls__lock {
    _Alignas(16) unsigned char space[64];
} ls__lock;

typedef struct ls__signal {
    _Alignas(16) unsigned char space[64];
} ls__signal;

void ls__lock_init(ls__lock *lock);
void ls__lock_end(ls__lock *lock);
void ls__lock_take(ls__lock *lock);
void ls__lock_give(ls__lock *lock);

void ls__signal_init(ls__signal *signal);
void ls__signal_end(ls__signal *signal);

/* Gives the lock while it waits; may come back without a signal. */
void ls__signal_wait(ls__signal *signal, ls__lock *lock);
void ls__signal_one(ls__signal *signal); /* one of those that wait */
void ls__signal_all(ls__signal *signal);

/* A signal for what comes soon, often: who waits looks for a moment whether it has come, and sleeps then,
 * since to wake a thread up takes longer than many a thing it waits for. All under one lock. */
typedef struct ls__place {
    ls__signal signal;
    _Atomic uint32_t changes;
    int looking, asleep; /* so many wait here */
    int told;            /* of those asleep: they are on their way */
} ls__place;

void ls__place_init(ls__place *place);
void ls__place_end(ls__place *place);

/* `spin`: how long to look, see event.h. May come back without having been told. */
void ls__place_wait(ls__place *place, ls__lock *lock, int spin);
void ls__place_tell(ls__place *place); /* one of those that wait, or all that look */
void ls__place_tell_all(ls__place *place);

/* Whether somebody waits who has not been told yet. */
static inline bool ls__place_is_manned(const ls__place *place)
{
    return place->looking > 0 || place->asleep > place->told;
}

#endif
