/*
 * Who takes a thread's calls instead of the eager executor: a recorder of a traced
 * step. While a sink is set, calls with a symbol among their inputs and calls with
 * effects go to it; what is made of known values alone still runs at once, and so
 * becomes a constant of the step.
 */
#ifndef LS__DISPATCH_SINK_H
#define LS__DISPATCH_SINK_H

#include <lockstep/profile.h>

#include "dispatch/call.h"

typedef struct ls__sink {
    uint64_t serial; /* what ls__storage.symbol of its symbols says */
    /* Several replicas are at work in this one step (a run inside a traced function): whose the
     * numbers of a draw would be could not be told when it is replayed. */
    bool crowded;
    int replica;    /* whose calls these are, then; -1: nobody's in particular */
    ls_phase phase; /* what the calls are part of; LS_PHASE_REDUCE: all of them are a meeting's */
    /* Records a call whose specs are known; writes handles of the innermost frame to `out`. */
    ls_status (*record)(struct ls__sink *sink, const ls_call *c, ls_tensor *const *inputs,
                        ls_tensor **out);
    /* How many calls are recorded; and forgets those after the first `count`: what they would have
     * done did not happen. */
    int (*mark)(struct ls__sink *sink);
    void (*forget)(struct ls__sink *sink, int count);
} ls__sink;

/* LS_OK when the tensor can be used here: it is no symbol, or one of the step that is being traced
 * on this thread. `what` and `i` name it: "input", 2. */
ls_status ls__check_symbol(const char *what, int i, const ls_tensor *t);

/* Of the calling thread; NULL: calls run now. Set returns the one before. */
ls__sink *ls__sink_get(void);
ls__sink *ls__sink_set(ls__sink *sink);

/* Calls of this thread are part of `phase` from now on, where a step is traced and this is no
 * meeting; returns what they were part of before. */
ls_phase ls__sink_phase(ls_phase phase);

#endif
