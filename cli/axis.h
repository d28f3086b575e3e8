/*
 * Axes: ranges that show what matters, ticks at round numbers, and their labels. Pure.
 */
#ifndef LOCKSTEP_CLI_AXIS_H
#define LOCKSTEP_CLI_AXIS_H

#include <stdbool.h>
#include <stddef.h>

#include "text.h"

typedef struct axis {
    double low, high;   /* low < high */
    double first, step; /* ticks are at first + i * step... */
    int ticks;          /* ...for so many i */
} axis;

/* Of values from low to high, with at most so many ticks (taken as 3 if less). `whole`: ticks are
 * whole numbers. What is no range (not finite, empty) becomes one. */
axis axis_make(double low, double high, int most_ticks, bool whole);

/* The same with some room below and above, so that nothing is drawn on the edge. */
axis axis_around(double low, double high, int most_ticks);

double axis_tick(const axis *a, int i);
const char *axis_label(const axis *a, int i, text_number out); /* "0.25", "1200", "15k" */

double axis_place(const axis *a, double value); /* 0 at low, 1 at high */

/* The range of values of which a few at the top may be far off, as the first losses of a run are: then
 * the range leaves them out. False: no value is finite, and nothing is written. */
bool axis_range(size_t n, const double *values, double *low, double *high);

#endif
