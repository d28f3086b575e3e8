/*
 * One run: what V replicas do from the call to their results. Shared by the files that
 * make it: run.c (rounds), meet.c (meetings), created.c (variables made inside), and the
 * tracing of steps.
 *
 * A run goes in rounds. In a round every replica that has not returned goes from where it
 * stands to its next stop: a meeting, or its return. Then, with all of them standing
 * still, the thread that called run decides: all at one meeting: it is held, and the next round
 * begins; all returned: done; else the run is cancelled, and in the next round the others
 * go to their end, each meeting on the way failing with LS_CANCELLED. What is decided
 * depends on where replicas stopped, never on when.
 *
 *          round 1              decide    round 2            decide
 *     r0   |--- maths ---meet|           |--- maths ---return|
 *     r1   |--- maths ------- meet|      |-- fails: return|
 *                                 merge                      cancelled: r1's error
 *
 * Replicas of one device take turns in a round, in order (a baton); with `one_by_one` all
 * replicas do.
 */
#ifndef LS__STRATEGY_RUN_STATE_H
#define LS__STRATEGY_RUN_STATE_H

#include <lockstep/variable.h>

#include "base/status.h"
#include "dispatch/context.h"
#include "dispatch/sink.h"
#include "os/event.h"
#include "strategy/context.h"
#include "strategy/run.h"
#include "strategy/strategy.h"
#include "tensor/journal.h"

typedef enum ls__stop { LS__NOT_BEGUN, LS__GOING, LS__AT_MEETING, LS__RETURNED } ls__stop;

/* One replica in one run. Written by the replica's thread in a round, by the runner
 * between rounds. */
typedef struct ls__member {
    ls_replica replica;
    ls__stop stop;
    int meetings;     /* it has come to */
    const char *what; /* of the meeting it stands at... */
    const void *subject;
    ls_merge_fn fn;
    void *user;
    ls_value *arguments; /* ...in its own frame */
    ls_tensor **brought; /* tracing: its symbols that the meeting takes (tracer.c) */
    int n_brought;
    ls_value *given;         /* kept: what it gets from the meeting */
    ls_value *result;        /* kept: what it returned */
    ls__error_record error;  /* its own failure; LS_OK: none */
    ls__error_record unread; /* that was pending when it came to the meeting */
    char **made;             /* names of variables it made, in order (created.c) */
    int n_made;
} ls__member;

/* A variable that replica 0 has made in this run. */
typedef struct ls__created {
    struct ls__created *next; /* made before */
    ls_variable *variable;
    int nth;     /* of this name, from 0 */
    char name[]; /* canonical */
} ls__created;

/* What tracing adds to a run (tracer.c). */
struct ls__tracer;

typedef struct ls__run {
    ls_strategy *s;
    struct ls__run *outer; /* the run whose merge function called this one, or NULL */
    ls_step step;
    void *user;
    ls_value *arguments; /* in the runner's frame */
    ls__member *members; /* V */
    bool one_by_one;
    bool cancelled;
    ls__error_record error; /* why */
    _Atomic int pending;    /* batons still on their way in this round */
    ls__journal journal;
    /* What replicas inherit from the runner. */
    ls__draw_state draws;
    ls_numerics numerics;
    int kernel_threads;
    ls__sink *sink; /* the run is part of a step that is being traced */
    struct ls__tracer *tracer;
    /* Draws of the runner's other selves while it is replica 0 or merges. */
    ls__draw_state zero_draws, merge_draws;
    /* Variables made inside. */
    _Atomic(ls__created *) created;
    ls__event made; /* posted when one was, and when replica 0 stops */
    _Atomic bool zero_stopped;
} ls__run;

/* Hosts call this when they are told to run; see run.c. */
void ls__run_replica(ls__run *run, int replica);

/* In a run that is part of a traced step: whose calls are recorded from now on (-1: those of
 * nobody in particular); returns whose were before. */
int ls__run_records_for(ls__run *run, int replica);

/* For meet.c: the replica has stopped; passes the baton on. */
void ls__run_stopped(ls__run *run, int replica);

/* The runner's thread is replica 0, merges, and is itself: each has its own draws. Puts those of
 * now to `save` and takes `next`. */
void ls__run_draws_switch(ls__draw_state *save, const ls__draw_state *next);

/* For the runner, when replica 0 has stopped: waits for the others and decides. */
void ls__run_round_end(ls__run *run);
void ls__run_round_begin(ls__run *run);

/* Fails with a replica's own error, which names it when there are several. */
ls_status ls__fail_as_replica(const ls_strategy *s, int replica, const ls__error_record *own);

/* Cancels with the error pending on this thread, which is taken. */
void ls__run_cancel(ls__run *run);

/* Cancels with the error of the lowest replica that came to a meeting with one unread; false
 * when there is none. */
bool ls__cancel_for_unread(ls__run *run);

/* meet.c: holds the meeting at which all members stand. */
void ls__hold_meeting(ls__run *run);

/* Runs it all: V replicas from the beginning to their results, grouped in the innermost
 * frame; NULL and the error. The caller has filled in s, outer, step, user, arguments,
 * one_by_one, sink and tracer. */
ls_value *ls__run_all(ls__run *run);

void ls__created_free(ls__run *run);

#endif
