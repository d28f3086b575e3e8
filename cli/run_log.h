/*
 * What a run wrote down of itself: the events of `lockstep train --json` in DIR/run.jsonl, one object
 * a line.
 *
 *     start   model, parameters, replicas, global_batch, and as they are there: command, resumed_step
 *     step    step, loss
 *     epoch   epoch, step, and figures by name: loss, accuracy, test_loss, ...
 *     end     steps, samples_per_second, seconds
 *
 * `replica_seconds` in epoch and end events has an object for each replica: its seconds in each
 * phase (profile.h) since the start event. A run that goes on appends. What was written after the step
 * that a start event resumes from did not happen: it is dropped. A start event that resumes
 * nothing begins anew.
 */
#ifndef LOCKSTEP_CLI_RUN_LOG_H
#define LOCKSTEP_CLI_RUN_LOG_H

#include <lockstep/profile.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define RUN_LOG_NAME "run.jsonl"

/* A row of a figure: where, and its value, NAN when it was not finite. */
typedef struct run_point {
    int64_t step;
    int64_t epoch; /* 0: of a step */
    double value;
} run_point;

typedef struct run_figure {
    char *name; /* "loss" and "test_accuracy" of epochs; "step loss" of steps */
    size_t n, room;
    run_point *points; /* ascending */
} run_figure;

typedef double run_phases[LS_PHASES];

typedef struct run_log {
    char *model, *command; /* "" when it is not told */
    int64_t parameters, replicas, global_batch, starts;
    int64_t steps;                      /* done, as far as it is known */
    double samples_per_second, seconds; /* 0: not known, as before its end */
    size_t n_figures;
    run_figure *figures; /* in the order in which they were met */
    int n_replicas;
    run_phases *phases; /* of each replica, in all */
    int64_t lines, damaged;
    bool out_of_memory;
    struct run_part *parts; /* inside */
    size_t n_parts;
} run_log;

/* NULL without memory. */
run_log *run_log_new(void);
void run_log_free(run_log *log);

/* A line; counts as damaged what is no event. */
void run_log_add(run_log *log, const char *line, size_t length);

/* All lines. A last one that was not ended and is no event is torn, and ignored. False: reading
 * failed (errno), or memory did not suffice. */
bool run_log_read(run_log *log, FILE *from);

/* NULL: there is none. */
const run_figure *run_log_find(const run_log *log, const char *name);

/* profile.h's, without the library. */
const char *run_phase_name(int phase);

#define RUN_STEP_LOSS "step loss"

#endif
