/*
 * Giving a core to whoever else wants it, in loops that wait for another thread; and seeing when
 * somebody keeps it, so that waiting asleep is better: who is woken gets the core before one that
 * has run for a while, and who yields gets it last.
 *
 *     ls__yields y = { 0 };
 *     while (!is_there() && ls__yield(&y))
 *         ;                               // then, if it is not there, sleep until it is
 */
#ifndef LS__OS_YIELD_H
#define LS__OS_YIELD_H

#include <stdbool.h>
#include <stdint.h>

/* One spin's. Starts as zeros. */
typedef struct ls__yields {
    int64_t since;    /* its first yield */
    int64_t switches; /* of the thread, until the last long one */
} ls__yields;

/* False: it is time to sleep, since another thread of this system kept the core, or since the
 * first yield was 10 ms ago. */
bool ls__yield(ls__yields *y);

/* Whether that was so on this thread a moment ago: it had better not yield at all. */
bool ls__core_is_shared(void);

#endif
