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
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/topology.h"
#include "os/yield.h"

/* Turns of some 30 ns: a few microseconds, longer than a meeting of threads that run takes. */
enum { BEFORE_YIELDING = 200 };

/* Turns without a pause, a nanosecond or two each. */
enum { AT_ONCE = 150 };

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

int ls__spin_for(int threads, int spin)
{
    return threads > ls__cores() ? LS__SPIN_NEVER : spin;
}

void ls__event_post_many(ls__event *e, uint32_t many)
{
    /* Also a release, that pairs with the loads in ls__event_wait. */
    atomic_fetch_add_explicit(&e->count, many, memory_order_seq_cst);
    if (atomic_load_explicit(&e->sleepers, memory_order_seq_cst) > 0)
        syscall(SYS_futex, &e->count, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void ls__event_post(ls__event *e)
{
    ls__event_post_many(e, 1);
}

/* Starts the deadline's time if it has not begun; how much is left, as a pointer that the kernel takes
 * for "for ever" when it is NULL. */
static const struct timespec *time_left(ls__deadline *d, struct timespec *room)
{
    if (!d || d->limit <= 0)
        return NULL;
    int64_t t = ls__now(), left = d->at ? d->at - t : d->limit;
    if (!d->at)
        d->at = d->limit > INT64_MAX - t ? INT64_MAX : t + d->limit;
    left = left > 0 ? left : 0;
    *room = (struct timespec){ .tv_sec = left / 1000000000, .tv_nsec = left % 1000000000 };
    return room;
}

static bool sleep_until(ls__event *e, uint32_t want, ls__deadline *deadline)
{
    bool came = true;
    atomic_fetch_add_explicit(&e->sleepers, 1, memory_order_seq_cst);
    for (;;) {
        uint32_t count = atomic_load_explicit(&e->count, memory_order_seq_cst);
        if (reached(count, want))
            break;
        struct timespec room;
        const struct timespec *left = time_left(deadline, &room);
        came = !left || left->tv_sec || left->tv_nsec;
        if (!came)
            break;
        /* Comes back at once when the count is another by now; for a signal, too. */
        syscall(SYS_futex, &e->count, FUTEX_WAIT_PRIVATE, count, left, NULL, 0);
    }
    atomic_fetch_sub_explicit(&e->sleepers, 1, memory_order_relaxed);
    return came;
}

bool ls__event_reached(ls__event *e, uint32_t want)
{
    /* Pairs with the release in ls__event_post. */
    return reached(atomic_load_explicit(&e->count, memory_order_acquire), want);
}

/* False: it has spun long enough. */
static bool spin_until(ls__event *e, uint32_t want, int spin, ls__meanwhile_fn *meanwhile,
                       void *arg)
{
    ls__yields yields = { 0 };
    /* Threads that meet at once are there within tens of nanoseconds, less than a pause takes. */
    for (int turn = 0; turn < AT_ONCE && spin > 0; turn++)
        if (ls__event_reached(e, want))
            return true;
    if (spin > BEFORE_YIELDING && ls__core_is_shared())
        spin = BEFORE_YIELDING - 1;
    for (int turn = 0; turn <= spin; turn++) {
        if (ls__event_reached(e, want))
            return true;
        if (meanwhile && spin > 0 && meanwhile(arg)) {
            turn = 0;
            yields = (ls__yields){ 0 };
        } else if (turn < BEFORE_YIELDING) {
            pause_a_moment();
        } else if (!ls__yield(&yields)) { /* who is waited for may want this very core */
            return false;
        }
    }
    return false;
}

bool ls__event_wait_until(ls__event *e, uint32_t want, int spin, ls__deadline *deadline)
{
    return spin_until(e, want, spin, NULL, NULL) || sleep_until(e, want, deadline);
}

void ls__event_wait(ls__event *e, uint32_t want, int spin)
{
    ls__event_wait_until(e, want, spin, NULL);
}

void ls__event_wait_busy(ls__event *e, uint32_t want, int spin, ls__meanwhile_fn *meanwhile,
                         void *arg)
{
    if (!spin_until(e, want, spin, meanwhile, arg))
        sleep_until(e, want, NULL);
}

void ls__back_off(int turn)
{
    if (turn < BEFORE_YIELDING)
        pause_a_moment();
    else if (turn < LS__SPIN_SHORT)
        sched_yield();
    else
        nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
}
