/*
 * Plots of a run: its figures as curves, and where the time of its replicas went; for terminals and
 * as SVG. All but plot_command.c is pure: a log in, text out.
 */
#ifndef LOCKSTEP_CLI_PLOT_H
#define LOCKSTEP_CLI_PLOT_H

#include "axis.h"
#include "run_log.h"
#include "terminal.h"
#include "text.h"

typedef enum plot_role { PLOT_STEPS, PLOT_TRAIN, PLOT_TEST, PLOT_ROLES } plot_role;

typedef struct plot_curve {
    plot_role role;
    size_t n;
    double *x, *y; /* NAN in y: the curve has a gap */
    double last;   /* the last value */
    double best;   /* NAN: it is the last */
    int64_t best_epoch;
} plot_curve;

typedef struct plot_chart {
    char title[64];      /* "loss" */
    const char *x_label; /* "step", "epoch" */
    int n_curves;
    plot_curve curves[PLOT_ROLES];
    double x_low, x_high, y_low, y_high; /* what to show; curves may leave it at the top */
} plot_chart;

typedef struct plot {
    const run_log *log;
    textbuf facts; /* "347,146 parameters, 2 replicas, ..." */
    int n_charts;
    plot_chart *charts;
} plot;

/* NULL without memory. The log outlives it; a chart is there for each figure that has a value. */
plot *plot_make(const run_log *log);
void plot_free(plot *p);
bool plot_is_empty(const plot *p);

const char *plot_role_name(plot_role role); /* "step", "train", "test" */

/* All of a replica's time; and the share of it that was a phase, or of the time of all (-1). */
double plot_seconds(const run_log *log, int replica);
double plot_share(const run_log *log, int replica, int phase);

/* Lines for a terminal (its columns and rows, colours, characters), each with its end. */
void plot_text(textbuf *out, const plot *p, const terminal *screen);

/* One file, complete in itself. */
void plot_svg(textbuf *out, const plot *p);

/* ---- files and screens ------------------------------------------------------------------ */

#define PLOT_SVG_NAME "plot.svg"

/* As a whole or not at all. False: errno says why; ENOMEM when p is NULL. */
bool plot_save(const plot *p, const char *path);

/* On a terminal, or wherever `to` leads: `screen` says how wide it is. */
void plot_print(const plot *p, FILE *to, const terminal *screen);

#endif
