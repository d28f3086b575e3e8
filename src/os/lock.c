/*
 * Locks and signals over POSIX mutexes and conditions, which lie in the space that the header leaves.
 */
#include "os/lock.h"

#include <pthread.h>

#include "os/event.h"

_Static_assert(sizeof(pthread_mutex_t) <= sizeof(ls__lock) &&
                   _Alignof(pthread_mutex_t) <= _Alignof(ls__lock),
               "a mutex has room in an ls__lock");
_Static_assert(sizeof(pthread_cond_t) <= sizeof(ls__signal) &&
                   _Alignof(pthread_cond_t) <= _Alignof(ls__signal),
               "a condition has room in an ls__signal");

static pthread_mutex_t *mutex(ls__lock *lock)
{
    return (pthread_mutex_t *)(void *)lock->space;
}

static pthread_cond_t *condition(ls__signal *signal)
{
    return (pthread_cond_t *)(void *)signal->space;
}

void ls__lock_init(ls__lock *lock)
{
    pthread_mutex_init(mutex(lock), NULL);
}

void ls__lock_end(ls__lock *lock)
{
    pthread_mutex_destroy(mutex(lock));
}

void ls__lock_take(ls__lock *lock)
{
    pthread_mutex_lock(mutex(lock));
}

void ls__lock_give(ls__lock *lock)
{
    pthread_mutex_unlock(mutex(lock));
}

void ls__signal_init(ls__signal *signal)
{
    pthread_cond_init(condition(signal), NULL);
}

void ls__signal_end(ls__signal *signal)
{
    pthread_cond_destroy(condition(signal));
}

void ls__signal_wait(ls__signal *signal, ls__lock *lock)
{
    pthread_cond_wait(condition(signal), mutex(lock));
}

void ls__signal_one(ls__signal *signal)
{
    pthread_cond_signal(condition(signal));
}

void ls__signal_all(ls__signal *signal)
{
    pthread_cond_broadcast(condition(signal));
}

/* ---- places ---------------------------------------------------------------------------------- */

void ls__place_init(ls__place *place)
{
    *place = (ls__place){ .looking = 0 };
    ls__signal_init(&place->signal);
}

void ls__place_end(ls__place *place)
{
    ls__signal_end(&place->signal);
}

/* The count changes under the lock alone: who has it, and finds it as it was before he let go of the lock,
 * has missed nothing. */
static bool has_changed(ls__place *place, uint32_t seen)
{
    return atomic_load_explicit(&place->changes, memory_order_relaxed) != seen;
}

void ls__place_wait(ls__place *place, ls__lock *lock, int spin)
{
    const uint32_t seen = atomic_load_explicit(&place->changes, memory_order_relaxed);
    if (spin > 0) {
        place->looking++;
        ls__lock_give(lock);
        for (int turn = 0; turn < spin && !has_changed(place, seen); turn++)
            ls__back_off(turn);
        ls__lock_take(lock);
        place->looking--;
    }
    if (has_changed(place, seen))
        return;
    place->asleep++;
    ls__signal_wait(&place->signal, lock);
    place->asleep--;
    place->told -= place->told > 0; /* or it came without: who was told comes in vain then */
}

static void change(ls__place *place)
{
    atomic_fetch_add_explicit(&place->changes, 1, memory_order_relaxed);
}

void ls__place_tell(ls__place *place)
{
    change(place);
    if (place->looking > 0 || place->asleep <= place->told)
        return;
    place->told++;
    ls__signal_one(&place->signal);
}

void ls__place_tell_all(ls__place *place)
{
    change(place);
    place->told = place->asleep;
    if (place->asleep > 0)
        ls__signal_all(&place->signal);
}
