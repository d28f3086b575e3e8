/*
 * The progress bar of training.
 *
 * How to use it
 *
 *     bar *b = bar_open(stdout, NULL);
 *     bar_show(b, &facts);            // before the first step: where it begins, after a resume too
 *     ...after every step...
 *     if (bar_due(b))                 // about ten times a second: figures cost time to find out
 *         bar_show(b, &facts);
 *     else
 *         bar_pass(b, &facts);        // where it stands; figures may be missing
 *     ...after the steps of a test that are due, and the last...
 *     bar_test(b, &facts);
 *     ...after every epoch...
 *     bar_epoch(b, &facts);           // a line that stays
 *     bar_close(b);
 *
 * On a terminal it is one line, written over, that fits the window: the less important parts leave
 * first when it gets narrow. Elsewhere it is plain lines without any control character: the first
 * step, then one every 10 s (of long epochs: every tenth of them, at least one a minute), one for each
 * test and each epoch.
 *
 * The cursor is never hidden, so that no end of the program can lose it.
 */
#ifndef LOCKSTEP_CLI_BAR_H
#define LOCKSTEP_CLI_BAR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "terminal.h"

typedef struct bar bar;

typedef struct bar_figure {
    const char
        *name; /* "accuracy"; of those that begin with "test_", the rest is shown after "test" */
    double value;
} bar_figure;

#define BAR_FIGURES 16 /* at most so many are shown */

/* Where training stands. */
typedef struct bar_facts {
    int64_t epoch, epochs;       /* 1, 2, ... of so many; epochs 0: there are none */
    int64_t step, steps;         /* done in this epoch, or test; of so many, negative: unknown */
    int64_t run_step, run_steps; /* done in the whole run; of so many, negative: unknown */
    int64_t samples;             /* done in the whole run */
    double loss;                 /* NAN: none yet */
    int n_figures;
    const bar_figure *figures;
    double input,
        reduce; /* waiting for them, as a share of the time: 0 to 1; negative: not known */
} bar_facts;

/* What a test replaces; NULL means the real thing. */
typedef struct bar_options {
    const terminal *screen;    /* terminal_look(to) */
    double (*now)(void *user); /* seconds */
    int (*columns)(void *user);
    void *user;
} bar_options;

/* NULL without memory, which all the others take, and do nothing. One at a time is that of
 * bar_restore. */
bar *bar_open(FILE *to, const bar_options *options);

/* May something be drawn or written now? */
bool bar_due(bar *b);

void bar_show(bar *b, const bar_facts *facts);

/* A step that is not shown: speed and time left learn of it. */
void bar_pass(bar *b, const bar_facts *facts);

void bar_test(bar *b, const bar_facts *facts);
void bar_epoch(bar *b, const bar_facts *facts);

/* Around what anybody else prints, on any thread: the bar is away, and stays away until then. */
void bar_clear(bar *b);
void bar_redraw(bar *b);

/* The line of what was shown last stays, if it is newer than the last that stays. */
void bar_close(bar *b);

/* For handlers of signals that end the program: leaves the line as it is and goes to the next.
 * Async-signal-safe. */
void bar_restore(void);

#endif
