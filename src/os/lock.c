/*
 * Locks and signals over POSIX mutexes and conditions, which lie in the space that the header leaves.
 */
#include "os/lock.h"

#include <pthread.h>

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
