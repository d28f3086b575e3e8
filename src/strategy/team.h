/*
 * The team of a strategy (collective/team.h): its devices' threads, which add up by the
 * schedule of its cross-device operation while a meeting is held.
 */
#ifndef LS__STRATEGY_TEAM_H
#define LS__STRATEGY_TEAM_H

#include "collective/team.h"
#include "strategy/strategy.h"

/* Makes what is not there yet: the schedule for this number of devices, compiled. Any thread; not
 * for the default strategy. */
ls_status ls__team_make(ls_strategy *s);

/* The same schedules for a thread that is in no meeting, whose hosts may be at work for another:
 * it does what all ranks would, one after another. */
ls_status ls__team_of_one(ls_strategy *s, ls__team *out);

/* Takes it down, when the placement changes. */
void ls__team_drop(ls_strategy *s);

/* Hosts call this when they are told to share work. */
struct ls__shared_work;
void ls__team_serve(struct ls__shared_work *work, int replica);

#endif
