/*
 * A team: the ranks of a process that work on one thing at once, and the compiled schedules by
 * which they add up. A strategy makes one of its devices' threads while it holds a meeting;
 * rows that add over replicas find it here, and know nothing of strategies.
 */
#ifndef LS__COLLECTIVE_TEAM_H
#define LS__COLLECTIVE_TEAM_H

#include "collective/local.h"
#include "collective/packs.h"

typedef void ls__share_fn(void *arg, int rank);

typedef struct ls__team {
    int ranks, replicas;
    const ls__local *once;   /* replicas' values as they are */
    ls__packing packing;     /* how the arrays of one reduction are grouped */
    const ls__local *folded; /* nodes: operand i lies where the first replica of node i has it */
    /* Calls fn(arg, rank) for every rank, rank 0 on the calling thread, and returns when all are
     * done. */
    void (*share)(struct ls__team *team, ls__share_fn *fn, void *arg);
    void *owner;
} ls__team;

/* The team of this thread from now on, NULL: none; returns the one before. */
ls__team *ls__team_use(ls__team *team);
ls__team *ls__team_get(void);

/* Runs a job by the schedule: all rounds, by the team's threads when it is worth waking
 * them, else by this one. `team` NULL: by this one. */
void ls__team_reduce(ls__team *team, const ls__local *l, const ls__local_job *job);

/* For who has no team, or one of another number of replicas: V replicas on one rank. Kept for
 * ever; NULL when out of memory (error recorded). */
const ls__local *ls__local_alone(int replicas);

/* Calls fn(arg, rank) for `ranks` ranks by the team's threads, or one after another here. */
void ls__team_share(ls__team *team, int ranks, ls__share_fn *fn, void *arg);

#endif
