/*
 * Around every call of a user's function that a stage makes: a frame of its own, an error scope, draws
 * that depend on the dataset, the iteration and the element's number alone, and kernels on one
 * core, so that it does not matter which thread calls. What the thread was doing (a tape, a traced
 * step, its own draws, its kernels' threads) does not see the call.
 *
 *     ls__callback call;
 *     ls_status st = ls__callback_open(&call, it, number);
 *     if (st)
 *         return st;                                     // nothing is open
 *     ls_value *out = fn(element, user);                 // element: made in this frame
 *     if (!out)
 *         st = ls__callback_failed();
 *     else
 *         st = ls__chunk_put(chunk, out);                // what is to last leaves the frame
 *     return ls__callback_close(&call, st, "ls_map", number);
 */
#ifndef LS__DATA_CALLBACK_H
#define LS__DATA_CALLBACK_H

#include "base/status.h"
#include "data/iterator.h"
#include "dispatch/context.h"
#include "dispatch/sink.h"

typedef struct ls__callback {
    ls__error_scope errors;
    ls__draw_state draws;
    ls__sink *sink;
    int frame, tape, threads;
} ls__callback;

/* Of element `number` of this iterator's (its input's, counted from 0 in every iteration).
 * LS_NO_MEMORY. */
ls_status ls__callback_open(ls__callback *c, const ls__it *it, int64_t number);

/* All is as before. Returns the error that was left inside, else `st`; a failure is pending then, with
 * "who: element number" in front. */
ls_status ls__callback_close(ls__callback *c, ls_status st, const char *who, int64_t number);

/* Inside: the error of a function that gave NULL, also if it forgot to say why. */
ls_status ls__callback_failed(void);

#endif
