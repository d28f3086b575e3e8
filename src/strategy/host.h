/*
 * The threads of a strategy: replica r > 0 has one of its own, pinned to its device's core;
 * replica 0 is hosted by whoever calls run. They are started when first needed, and wait
 * for orders: to run a replica, to go on after a meeting, to replay a device's share.
 */
#ifndef LS__STRATEGY_HOST_H
#define LS__STRATEGY_HOST_H

#include "os/event.h"
#include <stdalign.h>

#include "strategy/strategy.h"

typedef enum ls__order {
    LS__ORDER_RUN,    /* `what` is a run: be your replica of it */
    LS__ORDER_RESUME, /* the meeting you wait in is over */
    LS__ORDER_REPLAY, /* `what` is a replay: drive your device's replicas */
    LS__ORDER_SHARE,  /* `what` is work of a meeting: do your device's share (team.h) */
    LS__ORDER_QUIT
} ls__order;

typedef struct ls__host {
    alignas(64) ls_strategy *strategy; /* one cache line: an order is one way of it and back */
    int replica;
    struct ls__thread *thread; /* NULL: not started */
    ls__event go;
    uint32_t seen; /* orders taken */
    ls__order order;
    void *what;
} ls__host;

/* Starts the threads of replicas `first` up to `end` that are not there yet; 0 has none. */
ls_status ls__hosts_start(ls_strategy *s, int first, int end);

/* For the thread that drives: gives host `replica` an order; it has none at the moment. */
void ls__host_tell(ls_strategy *s, int replica, ls__order order, void *what);

/* For a host: waits for its next order, helping whoever is at work (os/help.h), does it if it is a
 * piece of work, and returns it. */
ls__order ls__host_serve(ls__host *host);
ls__host *ls__host_of(ls_strategy *s, int replica);

/* Ends all threads. */
void ls__hosts_stop(ls_strategy *s);

#endif
