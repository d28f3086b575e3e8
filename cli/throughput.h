/*
 * How fast training goes: samples a second in windows of steps, and the median of those after the
 * first, in which steps are traced and caches are cold. Tests belong to no window; a checkpoint is part
 * of the step that follows it, unless the clock was told to stand.
 */
#ifndef LOCKSTEP_CLI_THROUGHPUT_H
#define LOCKSTEP_CLI_THROUGHPUT_H

#include <stdint.h>

enum { THROUGHPUT_WINDOW = 20, THROUGHPUT_MOST = 4096 };

typedef struct throughput {
    double began; /* of the window under way; negative: with the next step */
    int64_t steps, samples;
    int windows, count; /* windows so far, and those kept */
    double rates[THROUGHPUT_MOST];
    double all_seconds, all_samples; /* of all steps but those that start the clock */
    double last;                     /* when the last step ended */
} throughput;

void throughput_start(throughput *t);

/* After a step of so many samples. */
void throughput_step(throughput *t, double now, int64_t samples);

/* The clock stands from now until the next step. */
void throughput_pause(throughput *t);

/* Samples a second: the median; before there are two windows, all steps but the first. NaN: none. */
double throughput_median(const throughput *t);

#endif
