/*
 * The inside of a strategy: V replicas, a placement, and the threads that host them.
 */
#ifndef LS__STRATEGY_STRATEGY_H
#define LS__STRATEGY_STRATEGY_H

#include <lockstep/strategy.h>
#include <stdalign.h>
#include <stdatomic.h>

#include "collective/packs.h"
#include "collective/team.h"
#include "os/help.h"
#include "tensor/device.h"

struct ls__host;
struct ls__phases;

/* An eager step that was run before: later runs of it go at once. */
typedef struct ls__seen {
    ls_step step;
    void *user;
} ls__seen;

enum { LS__MOST_SEEN = 64 };

struct ls_strategy {
    _Atomic int refs; /* the program's, and one per variable */
    uint64_t serial;  /* no other strategy has or had it: 1, 2, ... */
    int replicas;     /* V */
    int n_devices;    /* D, at most V; 0: whatever is current (the default strategy) */
    ls__device **devices;
    const char **device_names;  /* D */
    const char **replica_names; /* V: the device of each replica */
    const struct ls__cross_device *cross;
    ls__packing packing;
    bool sequential;
    int pipelines;    /* P, which divides V; 0 (the default strategy): 1 */
    int prefetch;     /* as the options have it */
    bool whole_steps; /* of input */
    bool freed;       /* by the program; variables still hold it */
    int spin;         /* how long its threads spin while they wait */
    ls__team team;    /* how its devices add up; made when first needed (team.h) */
    atomic_flag team_lock;
    int64_t steps;
    _Atomic int scopes;     /* open on any thread */
    _Atomic bool running;   /* a top-level run is under way */
    struct ls__host *hosts; /* V, the first unused; NULL until one is needed */
    ls__help help;          /* with them: who waits helps the device whose number a member has */
    uint32_t rounds;
    /* One post a round, by the last who stops; here, not in the run, since who posts may look
     * at it once more when the run is over. On a cache line of its own: who waits looks at it all
     * the time. */
    alignas(64) ls__event done;
    /* Variables with a cell per replica, which replicas write while others run; and the lock of the
     * list. */
    alignas(64) struct ls_variable *own_first;
    atomic_flag own_lock;
    ls__seen seen[LS__MOST_SEEN];
    int n_seen;
    struct ls__phases *phases; /* where the time of replicas goes; NULL: the default strategy */
};

ls_strategy *ls__strategy_ref(ls_strategy *s);
void ls__strategy_unref(ls_strategy *s);

/* LS_OK when it can be used; else the pending error, or LS_INVALID or LS_STATE. */
ls_status ls__check_strategy(const char *who, const ls_strategy *s);

bool ls__is_default(const ls_strategy *s);

/* "strategy 3 (2 replicas on 2 devices)", in memory of the innermost frame. */
const char *ls__strategy_text(const ls_strategy *s);

/* The device of a replica: this thread's for the default strategy. */
ls__device *ls__device_of_replica(const ls_strategy *s, int replica);

/* Before replicas go at once: what anybody has read of a replica's own copies of variables gets
 * memory of its own, since the replica may write them while others look at what was read. */
ls_status ls__own_settle(ls_strategy *s);

/* Moves the replicas to other devices, between two runs. Results do not change. */
ls_status ls__strategy_place(ls_strategy *s, const char *devices);

#endif
