/*
 * How fast training goes, and how long it will take: from marks of the last half minute. Pure: time is given.
 *
 * Only what was done in this process counts, and not its first step, in which much is prepared.
 * Tests, and all that is between an epoch's last step and its end, stop the clock of training.
 */
#ifndef LOCKSTEP_CLI_BAR_RATE_H
#define LOCKSTEP_CLI_BAR_RATE_H

#include <stdint.h>

#include "bar.h"

enum { RATE_MARKS = 128 };

typedef struct rate_mark {
    double time; /* of the clock of training */
    int64_t step, samples;
} rate_mark;

typedef struct rate {
    int calls;     /* 0, 1, 2, then 2 */
    double paused; /* what the clock of training is behind */
    double last_seen;
    rate_mark first, epoch, last;
    int64_t in_epoch; /* which one `epoch` began */
    int n_marks, newest;
    rate_mark marks[RATE_MARKS];
    double epoch_began;           /* on the real clock */
    double test_began, test_seen; /* of the test under way; below 0: none */
    double tests, n_tests;        /* seconds that they took, and how many they were */
    int64_t test_from;            /* the step that its first call told */
} rate;

void rate_init(rate *r);
void rate_step(rate *r, const bar_facts *facts, double now);
void rate_test(rate *r, const bar_facts *facts, double now);
void rate_epoch(rate *r, double now); /* ended, its test included */

/* Below 0: not known. */
double rate_samples(const rate *r);       /* a second, lately */
double rate_epoch_samples(const rate *r); /* a second, in the epoch so far, or that just ended */
double rate_epoch_seconds(const rate *r, double now);          /* real ones, since it began here */
double rate_epoch_left(const rate *r, const bar_facts *facts); /* its test is not in it */
double rate_run_left(const rate *r, const bar_facts *facts);
double rate_test_left(const rate *r, const bar_facts *facts);

#endif
