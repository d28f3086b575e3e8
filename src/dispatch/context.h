/*
 * What a call depends on beside its arguments, all of it per thread: where
 * random draws are counted, and whether numbers are checked.
 */
#ifndef LS__DISPATCH_CONTEXT_H
#define LS__DISPATCH_CONTEXT_H

#include <lockstep/random.h>
#include <lockstep/tape.h>

#include "base/philox.h"
#include "dispatch/call.h"

/* Where this thread's draws are counted. */
typedef struct ls__draw_state {
    uint64_t seed;
    int64_t replica;
    int64_t step;
    uint64_t draws;        /* in this step */
    uint64_t initialisers; /* since the seed was set */
    bool initialising;
} ls__draw_state;

/* All of it, for who runs a step of another thread, or undoes one. */
void ls__draws_get(ls__draw_state *out);
void ls__draws_set(const ls__draw_state *in);

/* The next draw of this step. */
void ls__next_draw(ls__draw *out);

/* While on, draws are initialisers: keyed by the seed and by how many there were
 * before, not by step and replica. Returns what was set before. */
bool ls__draw_initialisers(bool on);
bool ls__drawing_initialisers(void);

/* For a replayed step: the key of the draws of this thread's step, and the ordinal
 * of the first of `count`, which are then taken. */
void ls__take_draws(int64_t count, ls__draw *first);
void ls__give_back_draws(const ls__draw *first); /* the step failed: it never drew */

/* What a trace depends on beside its arguments: the replica that this thread hosts. */
int64_t ls__replica(void);

/* Whether this thread hosts one of several replicas: others may be at the same code, at the same
 * time. Set returns what was set before. */
bool ls__is_one_of_many(void);
bool ls__set_one_of_many(bool is);

ls_numerics ls__numerics(void);

/* The index of the first element that is NaN (or infinite, if this thread checks for those), or -1. */
int64_t ls__first_bad(const ls__spec *spec, const void *data);

/* LS_OK, or LS_INVALID naming the first bad output element when the outputs of
 * a finished call have one and its inputs have none. */
ls_status ls__check_outputs(const ls_call *c);

#endif
