/*
 * Replaying a traced step: every device's share of the replicas goes on a thread of its own,
 * piece by piece; see replay.c.
 */
#ifndef LS__STRATEGY_REPLAY_H
#define LS__STRATEGY_REPLAY_H

#include "strategy/step.h"

typedef struct ls__replay ls__replay;

/* Hosts call this when they are told to: the piece that is due, for all replicas of the device
 * whose first replica this is. */
void ls__replay_share(ls__replay *replay, int replica);

/* Runs the step once; results in the innermost frame. */
ls_value *ls__replay_step(ls_strategy *s, ls__traced_step *step, const ls_value *arguments);

#endif
