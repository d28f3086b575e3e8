/*
 * What a person and a script see of training, and how a signal ends it: a callback of ls_fit that
 * moves the bar, writes events and looks for interrupts.
 */
#ifndef LOCKSTEP_CLI_TRAIN_WATCH_H
#define LOCKSTEP_CLI_TRAIN_WATCH_H

#include "bar.h"
#include "events.h"
#include "throughput.h"

typedef struct train_watch {
    ls_callback callback;
    const session *session;
    events *events;
    bar *bar; /* NULL: none */
    throughput speed;
    double began;         /* the fit; 0: it never did */
    double deadline;      /* seconds since then; 0: none */
    double step_began;    /* the step under way */
    double step_seconds;  /* of the steps since the last step event... */
    int64_t step_samples; /* ...and their samples; 0: there are none */
    double before[LS_PHASES]; /* seconds of the replicas at the beginning */
    int64_t step;             /* the last one done */
    int64_t tested;           /* the step after which the last test was; -1: none */
    double seconds;           /* of the fit, at its end */
    double loss;
    const char *signal;      /* that ended it; NULL */
    const char *checkpoints; /* where they go; NULL: nowhere */
} train_watch;

/* `deadline`: seconds after which it ends; 0: none. `checkpoints`: their directory, or NULL. */
void train_watch_open(train_watch *w, const session *s, events *e, double deadline,
                      const char *checkpoints);

#endif
