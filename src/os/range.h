/*
 * Numbered parts of some work, of which threads take the first or the last, each part once.
 *
 *     ls__range parts;
 *     ls__range_set(&parts, 0, 8);                 // what parts are made of was written before
 *     while (ls__range_take(&parts, false, &i))    // on any thread, which sees that
 *         ...
 *
 * Those that are left are one number, so that who takes the first and who takes the last never
 * get the same one. Fewer than 2^31 of them.
 */
#ifndef LS__OS_RANGE_H
#define LS__OS_RANGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef _Atomic uint64_t
    ls__range; /* the first that is left, and above it the one behind the last */

static inline uint64_t ls__range_of(int64_t first, int64_t past)
{
    return (uint64_t)past << 32 | (uint64_t)first;
}

static inline void ls__range_set(ls__range *p, int64_t first, int64_t past)
{
    atomic_store_explicit(p, ls__range_of(first, past), memory_order_release);
}

/* A moment later there may be fewer. */
static inline int64_t ls__range_left(const ls__range *p)
{
    const uint64_t left = atomic_load_explicit(p, memory_order_relaxed);
    return (int64_t)(left >> 32) - (int64_t)(left & UINT32_MAX);
}

/* False: there are none. Pairs with the release in ls__range_set. */
static inline bool ls__range_take(ls__range *p, bool last, int64_t *part)
{
    uint64_t left = atomic_load_explicit(p, memory_order_relaxed), then;
    do {
        const int64_t first = (int64_t)(left & UINT32_MAX), past = (int64_t)(left >> 32);
        if (first >= past)
            return false;
        *part = last ? past - 1 : first;
        then = last ? ls__range_of(first, past - 1) : ls__range_of(first + 1, past);
    } while (!atomic_compare_exchange_weak_explicit(p, &left, then, memory_order_acquire,
                                                    memory_order_relaxed));
    return true;
}

#endif
