/*
 * A replay while it is under way, for the files of it: replay.c drives, replay_round.c is what
 * devices do.
 */
#ifndef LS__STRATEGY_REPLAY_STATE_H
#define LS__STRATEGY_REPLAY_STATE_H

#include <stdalign.h>
#include <stdatomic.h>

#include "strategy/replay.h"
#include "tensor/journal.h"

/* One replica's part of the replay. */
typedef struct ls__replay_part {
    ls_status status;
    ls__error_record error;
    int meeting;        /* the instruction it stands at, -1: none */
    int came;           /* early updates it keeps nobody from */
    ls_tensor **inputs; /* its arguments' tensors */
    ls_tensor **outputs;
} ls__replay_part;

/* All that the devices' threads look at is on one cache line. */
struct ls__replay {
    alignas(64) ls_strategy *s;
    ls__traced_step *step;
    ls__replay_part *parts;   /* V */
    ls__journal *journal_now; /* what pieces run under: the journal, or NULL */
    int piece;                /* meetings held so far */
    bool to_tail;             /* pieces stop where nothing can fail any more */
    int devices;              /* that work at once: 1 for the default strategy */
    ls_numerics numerics;
    int kernel_threads;
    _Atomic int pending; /* devices still at work in this round */
    ls__early *early;    /* updates that begin in this round; NULL: none do */
    _Atomic bool failed; /* a replica, before any of them */
    ls__journal journal;
};

/* All devices run the piece that is due, side by side; the error is the lowest replica's that
 * failed. Under the journal or not, and to the end of the piece, or only where nothing can fail any
 * more. */
ls_status ls__replay_round(ls__replay *p, bool journaled, bool to_tail);

/* What the meeting to come only adds up, and the device's buffers for it; NULL: nothing. */
ls__fold_stack *ls__replay_folds(const ls__replay *p, int device);

#endif
