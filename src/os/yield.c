/*
 * See yield.h. A yield that takes long is no sign by itself: a hypervisor may have given the core
 * away, and then a thread that sleeps loses even more (event.h). Of that this system knows nothing,
 * while it counts when another of its threads had the core.
 */
#include "os/yield.h"

#include <sched.h>
#include <sys/resource.h>

#include "os/clock.h"

/*
 * Nanoseconds. Others that come and go have the core for less than KEPT; one that computes, for a
 * slice of the scheduler's, some 3 ms: what a look at it costs after each MOMENT. Where somebody
 * computes on one of two cores, two replicas of cnn are 2.7 times as fast as if they went on
 * yielding, of cnn2 4 times (Zen 5, Linux 6.18).
 */
enum { KEPT = 500000, AT_MOST = 10000000, MOMENT = 100000000 };

/* Of a yield in which another thread may have run; one without takes 300. */
enum { SWITCHED = 2000 };

static _Thread_local int64_t shared_until; /* 0: it never was */

static int64_t switches(void)
{
    struct rusage u;
    return getrusage(RUSAGE_THREAD, &u) ? 0 : (int64_t)u.ru_nvcsw + u.ru_nivcsw;
}

bool ls__yield(ls__yields *y)
{
    const int64_t before = ls__now();
    if (!y->since)
        *y = (ls__yields){ .since = before, .switches = switches() };
    sched_yield();
    const int64_t after = ls__now(), took = after - before;
    if (took > SWITCHED) {
        /* Looked at each time: a short visit now and a core that is stolen later are no long visit. */
        const int64_t now = switches();
        const bool visited = now > y->switches;
        y->switches = now;
        if (visited && took > KEPT) {
            shared_until = after + MOMENT;
            return false;
        }
    }
    return after - y->since < AT_MOST;
}

bool ls__core_is_shared(void)
{
    return shared_until && ls__now() < shared_until;
}
