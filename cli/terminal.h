/*
 * What the place that a stream writes to can show: whether somebody sees lines change, in which
 * columns, colours and characters.
 */
#ifndef LOCKSTEP_CLI_TERMINAL_H
#define LOCKSTEP_CLI_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

typedef struct terminal {
    int file;    /* the descriptor; -1: none, so that columns and rows stay as they are */
    bool live;   /* a terminal on which what was written can be written over */
    bool colour; /* NO_COLOR: none; CLICOLOR_FORCE: even where no terminal is */
    bool utf8;   /* else ASCII only */
    int columns, rows;
} terminal;

terminal terminal_look(FILE *to);

/* Looks at its size anew: it costs less than a microsecond, so that who draws asks every time and
 * no signal has to be caught. Where no size is known, COLUMNS and LINES count, then 80 x 24. */
void terminal_measure(terminal *t);

#endif
