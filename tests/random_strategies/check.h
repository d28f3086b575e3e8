/*
 * One program on all its placements, compared with the oracle and with one another.
 */
#ifndef LS__TESTS_RANDOM_STRATEGIES_CHECK_H
#define LS__TESTS_RANDOM_STRATEGIES_CHECK_H

#include "random_strategies/program.h"

/* How often what was compared was something. */
typedef struct rs_seen {
    int well, failed; /* runs */
    int traced;       /* programs */
} rs_seen;

/* Which placements. */
typedef enum rs_ways { RS_EAGER = 1, RS_TRACED = 2, RS_ALL_WAYS = RS_EAGER | RS_TRACED } rs_ways;

/* NULL, or what is wrong. `loud`: prints the program and its logs. */
const char *rs_check(uint64_t seed, rs_ways ways, bool loud, rs_seen *seen);

/* Ends the process, with the seed printed, unless called again within so many seconds. 0: no more
 * watching. */
void rs_watch(uint64_t seed, unsigned seconds);

#endif
