/*
 * The line that a bar shows: what is known, laid out for a width. Pure.
 */
#ifndef LOCKSTEP_CLI_BAR_LINE_H
#define LOCKSTEP_CLI_BAR_LINE_H

#include "bar.h"
#include "text.h"

typedef enum bar_kind { BAR_TRAINS, BAR_TESTS, BAR_ENDED } bar_kind;

typedef struct bar_view {
    bar_kind kind;
    const bar_facts *facts;
    double samples_per_second, seconds, left, run_left; /* below 0: not known */
    bool plain;                                         /* for a log: all of it, and no bar */
    bool colour, utf8;
    int columns; /* at most */
    int pulse;   /* 0, 1, 2, ...: moves the bar of a length that nobody knows */
} bar_view;

void bar_line(textbuf *out, const bar_view *v); /* without an end of line */

#endif
