/*
 * The surroundings of a user's function. Invariant: whatever the function does, after close the thread
 * is as it was before open.
 */
#include "data/callback.h"

#include <lockstep/tensor.h>

#include "base/philox.h"
#include "dispatch/tape.h"
#include "kernels/threads.h"

/* The stage enters through its fingerprint: two maps one behind the other, which number their elements
 * alike, draw independently. */
static void draw_by_number(const ls__it *it, int64_t number)
{
    const uint64_t stage = it->dataset->fingerprint;
    const int64_t iteration = (int64_t)it->how.iteration;
    ls__draws_set(&(ls__draw_state){ .seed = ls__draw_key(stage, LS__DRAW_DATASET, 0, iteration),
                                     .step = number });
}

ls_status ls__callback_open(ls__callback *c, const ls__it *it, int64_t number)
{
    c->frame = ls_frame_open();
    if (c->frame < 0)
        return LS_NO_MEMORY;
    ls__error_scope_open(&c->errors);
    c->sink = ls__sink_set(NULL);
    c->tape = ls__tape_pause();
    c->threads = ls__kernel_threads_get();
    ls__kernel_threads(1);
    ls__draws_get(&c->draws);
    draw_by_number(it, number);
    return LS_OK;
}

ls_status ls__callback_close(ls__callback *c, ls_status st, const char *who, int64_t number)
{
    /* In the scope: frames and tapes that the function left open are its error. */
    ls_frame_close(c->frame);
    ls__draws_set(&c->draws);
    ls__kernel_threads(c->threads);
    ls__tape_resume(c->tape);
    ls__sink_set(c->sink);
    return ls__error_scope_close(&c->errors, st, "%s: element %lld", who, (long long)number);
}

ls_status ls__callback_failed(void)
{
    if (ls_error_pending())
        return ls_error_pending();
    return ls__hint(ls__fail(LS_INVALID, "the function gave NULL and no error"),
                    "a call that fails says why; ls_error_text keeps it");
}
