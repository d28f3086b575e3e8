/*
 * The inside of a traced function: what it runs, and the programs made of it.
 */
#ifndef LS__TRACE_FUNCTION_H
#define LS__TRACE_FUNCTION_H

#include <lockstep/function.h>
#include <stdatomic.h>

#include "trace/program.h"

struct ls_function {
    char *name;
    ls_step step;
    void *user;
    ls__pass_set off;
    int room;
    ls__program *programs; /* most recently used first */
    int64_t traces;
    int64_t thrown;  /* programs that had to go */
    int64_t warn_at; /* the number of those at which the next warning is due */
    atomic_bool busy;
    bool doomed; /* freed by the step that it is running */
    bool timed;  /* ls_operators_start */
    /* Steps of many replicas, which a strategy traces and keeps here. */
    void *steps;
    void (*free_steps)(void *steps);
    /* What was last called, for people; NULL when it is gone. */
    const ls__graph *last_recorded;
    const ls__plan *last_plan;
};

/* One call at a time: LS_STATE, or until leave. */
ls_status ls__function_enter(const char *who, ls_function *f);
void ls__function_leave(ls_function *f);

/* Whether argument i can be one: strings and symbols of other steps cannot. */
ls_status ls__function_takes(const ls_function *f, int i, const ls_tensor *t);

/* LS_STATE when there is no program that was last called. */
ls_status ls__function_called(const char *who, const ls_function *f);

/* A program had to go to make room for these arguments: warns when that happens again and
 * again. */
void ls__function_thrown(ls_function *f, const ls_value *arguments);

#endif
