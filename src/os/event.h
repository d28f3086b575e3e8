/*
 * Waiting for another thread: a counter that one side advances and the other waits
 * for. It spins for a moment, when that makes sense, and sleeps then.
 *
 *     waiter:  ls__event_wait(&e, seen + 1, spin);    // until the count has reached seen + 1
 *     other:   ls__event_post(&e);                    // adds one
 *
 * What was written before the post is seen after the wait. An event starts as zeros; the count
 * wraps, so waits are for counts less than 2^31 away. A poster may touch the event for a moment
 * after the waiter has gone on: it must outlive the call of ls__event_post.
 */
#ifndef LS__OS_EVENT_H
#define LS__OS_EVENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct ls__event {
    _Atomic uint32_t count;
    _Atomic uint32_t sleepers;
} ls__event;

/*
 * How long to spin before sleeping, in turns of a loop with a pause and later a yield of 0.3 us:
 *   short  50 to 100 us. For threads that share cores with others.
 *   long   some 5 ms, 10 at most. For threads that have cores to themselves and meet every few milliseconds. A core
 *          that sleeps is slow to wake, and a virtual one is given to a neighbour meanwhile: with a short
 *          spin between steps, two replicas of cnn on a loud machine had 0.86 of the long one's speed.
 * Both end early where another thread of this system computes on the core (yield.h).
 */
enum { LS__SPIN_NEVER = 0, LS__SPIN_SHORT = 400, LS__SPIN_LONG = 20000 };

/* How long so many threads that work at once should spin while they wait for each other: `spin`, or
 * not at all when they outnumber the cores. */
int ls__spin_for(int threads, int spin);

void ls__event_post(ls__event *e);
void ls__event_wait(ls__event *e, uint32_t count, int spin);

/* What a thread may do while it waits: true when it did something, which ends when it likes. */
typedef bool ls__meanwhile_fn(void *arg);

/* The same; while it spins, and only then, it calls `meanwhile` again and again. Doing something
 * begins the spin anew. */
void ls__event_wait_busy(ls__event *e, uint32_t count, int spin, ls__meanwhile_fn *meanwhile,
                         void *arg);

/* Posts so many at once: 2^30 end every wait that is under way or comes later. */
void ls__event_post_many(ls__event *e, uint32_t many);

/* Whether the count has been reached; what was posted is seen then. */
bool ls__event_reached(ls__event *e, uint32_t count);

/* How long a number of waits may take in all. Its time runs from the first of them that has to
 * sleep, so that waits that succeed at once do not read the clock. */
typedef struct ls__deadline {
    int64_t limit; /* nanoseconds; 0: for ever */
    int64_t at;    /* 0: does not run yet */
} ls__deadline;

/* False when the deadline came first. */
bool ls__event_wait_until(ls__event *e, uint32_t count, int spin, ls__deadline *deadline);

/* For a loop that looks for something no event tells: the turn'th pause, longer and longer, 50 us
 * at most. */
void ls__back_off(int turn);

#endif
