/*
 * Timing several jobs by turns, in windows of some tenths of a second, so that a busy neighbour
 * hits all of them alike; the medians count.
 */
#ifndef LS__BENCH_TURNS_H
#define LS__BENCH_TURNS_H

#include <lockstep.h>

#include "measure.h"

enum { ROUNDS = 7 };

static double window = 0.4; /* seconds */

/* Something to be called again and again, a frame a call. */
typedef struct job {
    void (*call)(void *);
    void *user;
    int turns; /* calls in a window */
    double took[ROUNDS];
} job;

static inline double seconds_each(job *j)
{
    double start = now();
    for (int i = 0; i < j->turns; i++)
        LS_FRAME
            j->call(j->user);
    return (now() - start) / j->turns;
}

/* Leaves in each one's took[0] the median seconds of a call. */
static inline void time_by_turns(int n, job *jobs)
{
    for (int i = 0; i < n; i++) {
        jobs[i].turns = 2; /* the first traces, or makes oneDNN's primitives */
        seconds_each(&jobs[i]);
        double each = seconds_each(&jobs[i]);
        jobs[i].turns = each < window ? (int)(window / each) : 1;
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < n; i++)
            jobs[i].took[round] = seconds_each(&jobs[i]);
    for (int i = 0; i < n; i++)
        jobs[i].took[0] = median(jobs[i].took, ROUNDS);
}

#endif
