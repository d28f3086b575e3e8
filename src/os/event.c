/*
 * Events over futexes. No wake-up is lost: a waiter counts itself as a sleeper and then looks
 * at the count; a poster advances the count and then looks for sleepers. All four steps are
 * sequentially consistent, so there is one order of them that both sides agree on, and in it
 * either the waiter's look comes after the post (it does not sleep) or the poster's look comes
 * after the sleeper was counted (it wakes). A post between the waiter's look and its sleep has
 * changed the word that the kernel compares before it puts anybody to sleep.
 */
#include "os/event.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Turns of some 30 ns: a few microseconds, longer than a meeting of threads that run takes. */
enum { BEFORE_YIELDING = 200 };

/* The count of posts wraps: what counts is which side of `want` it is on. */
static bool reached(uint32_t count, uint32_t want)
{
    return (int32_t)(count - want) >= 0;
}

/* Tells the core that this is a loop that waits; its twin on the core gets the units. */
static void pause_a_moment(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

void ls__event_post(ls__event *e)
{
    /* Also a release, that pairs with the loads in ls__event_wait. */
    atomic_fetch_add_explicit(&e->count, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&e->sleepers, memory_order_seq_cst) > 0)
        syscall(SYS_futex, &e->count, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void sleep_until(ls__event *e, uint32_t want)
{
    atomic_fetch_add_explicit(&e->sleepers, 1, memory_order_seq_cst);
    for (;;) {
        uint32_t count = atomic_load_explicit(&e->count, memory_order_seq_cst);
        if (reached(count, want))
            break;
        /* Comes back at once when the count is another by now; for a signal, too. */
        syscall(SYS_futex, &e->count, FUTEX_WAIT_PRIVATE, count, NULL, NULL, 0);
    }
    atomic_fetch_sub_explicit(&e->sleepers, 1, memory_order_relaxed);
}

void ls__event_wait(ls__event *e, uint32_t want, int spin)
{
    for (int turn = 0; turn <= spin; turn++) {
        if (reached(atomic_load_explicit(&e->count, memory_order_acquire), want))
            return;
        /* Who is waited for may be kept from this very core by the waiting. */
        if (turn < BEFORE_YIELDING)
            pause_a_moment();
        else
            sched_yield();
    }
    sleep_until(e, want);
}
