/*
 * Tracing a run: replicas run one after another on symbols, each with a recorder of its own;
 * a merge function is recorded once, on symbols for what the replicas brought. A run
 * (run_state.h) with a tracer calls these where it would handle values.
 *
 * A value keeps its identity (tensor id) when it crosses from one recorder to another, so
 * grouping finds what is the same on all replicas as it does with real tensors.
 */
#ifndef LS__STRATEGY_TRACER_H
#define LS__STRATEGY_TRACER_H

#include "strategy/run_state.h"

typedef struct ls__tracer ls__tracer;
struct ls__traced_step;

ls__tracer *ls__tracer_new(ls_strategy *s, const char *name, ls_value *arguments);

/* Ends the recording; gives the recorded step if it is wanted, else NULL. */
struct ls__traced_step *ls__tracer_end(ls__tracer *t, bool wanted);

/* On the replica's thread: where its calls go, its arguments as symbols, and what a meeting
 * gave it (kept by ls__tracer_merge_end) as symbols of its own. */
ls__sink *ls__tracer_sink(ls__tracer *t, int replica);
ls_value *ls__tracer_arguments(ls__tracer *t, int replica);
ls_value *ls__tracer_given(ls__tracer *t, int replica, ls_value *given);

/* The number of the call at which replica `replica` stands, for errors. */
int ls__tracer_at(const ls__tracer *t, int replica);

/* On the runner's, around the merge function: its grouped arguments; then its result, or NULL
 * when it failed. */
ls_value *ls__tracer_merge_begin(ls__tracer *t, ls__run *run);
ls_status ls__tracer_merge_end(ls__tracer *t, ls__run *run, ls_value *result);

/* When all have returned: their results grouped, as symbols. */
ls_value *ls__tracer_results(ls__tracer *t, ls__run *run);

#endif
