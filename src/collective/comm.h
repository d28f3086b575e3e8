/*
 * Inside a communicator of threads: the seats at which ranks meet (comm_meet.c), the schedules
 * (comm_plans.c), and what a call is made of (comm.c).
 */
#ifndef LS__COLLECTIVE_COMM_H
#define LS__COLLECTIVE_COMM_H

#include <lockstep/collective.h>
#include <stdatomic.h>

#include "collective/local.h"
#include "os/event.h"

typedef enum ls__comm_call {
    LS__COMM_ALL_REDUCE,
    LS__COMM_REDUCE,
    LS__COMM_BROADCAST
} ls__comm_call;

/* What a rank asks for. */
typedef struct ls__request {
    void *data;
    int64_t count;
    uint16_t root; /* 0 where there is none */
    uint8_t call, op, dtype;
} ls__request;

/* One for each rank, which alone writes it, on cache lines of its own (two: processors fetch them in
 * pairs). What others look at while they wait is apart from what the rank writes meanwhile. */
typedef struct ls__seat {
    _Alignas(128) ls__event came;    /* how often the rank came to a meeting */
    ls__request asks;                /* written before a meeting, read between it and the next */
    _Alignas(128) uint32_t meetings; /* the same as came, for the rank itself */
    _Atomic uint32_t busy;           /* a thread is in a call as this rank */
    _Atomic uint32_t entered;        /* calls it is in or was in; */
    _Atomic uint32_t left;           /* those in which it does not touch others' memory any more */
} ls__seat;

typedef enum ls__comm_state { LS__COMM_WELL, LS__COMM_FAILING, LS__COMM_FAILED } ls__comm_state;

typedef struct ls__comm_plan ls__comm_plan;

struct ls_comm {
    ls_comm_options options;
    ls_algorithm algorithm; /* never AUTO */
    int spin;
    int64_t timeout; /* nanoseconds; 0: for ever */
    ls__seat *seats;
    _Atomic(ls__comm_plan *) plans;
    void *scratch; /* rank 0's between meetings */
    size_t scratch_bytes;
    _Alignas(128) _Atomic int state;
    ls_status status; /* written once, before FAILED */
    char text[400];
    char hint[200];
};

/* ---- comm_plans.c ----- */

/* The compiled schedule of a call, made when it is first asked for. */
ls_status ls__comm_plan_of(ls_comm *comm, ls__comm_call call, int root, int subdivisions,
                           const ls__local **out);
void ls__comm_plans_free(ls_comm *comm);

/* ---- comm_meet.c ----- */

/* Begins a call: publishes what the rank asks for, waits for all others, and checks that all ask for
 * the same. Whatever it returns, ls__comm_leave must follow. */
ls_status ls__comm_enter(ls_comm *comm, int rank, const ls__request *asks);

/* All wait for all. What a rank wrote before, the others see after. */
ls_status ls__comm_meet(ls_comm *comm, int rank);

/* Ends a call with its status, of which the communicator's failure is recorded on this thread. Of a
 * failed one, waits until nobody reads this rank's memory any more. */
ls_status ls__comm_leave(ls_comm *comm, int rank, ls_status status);

/* Ends it for all, if this is the first failure; returns LS_CANCELLED, for ls__comm_leave. */
ls_status ls__comm_fail(ls_comm *comm, ls_status status, const char *text, const char *hint);

/* What has failed it, recorded on this thread. */
ls_status ls__comm_say(ls_comm *comm);

#endif
