/*
 * Which strategy a thread is in, and as what. A mode is pushed by a scope, by each
 * replica of a run, by a merge function, and by ls_update.
 */
#ifndef LS__STRATEGY_CONTEXT_H
#define LS__STRATEGY_CONTEXT_H

#include <lockstep/strategy.h>

struct ls_replica {
    ls_strategy *strategy;
    int id;
    struct ls__run *run; /* NULL: the default replica, outside of any run */
};

typedef enum ls__why { LS__BY_SCOPE, LS__BY_RUN, LS__BY_MERGE, LS__BY_UPDATE } ls__why;

typedef struct ls__mode {
    ls_strategy *strategy;
    ls_replica *replica; /* NULL: cross-replica context */
    struct ls__run *run; /* under way here, or NULL */
    ls__why why;
    int count;            /* LS__BY_SCOPE: how often it was entered */
    const void *updating; /* LS__BY_UPDATE: the variable (or NULL: update_non_slot)... */
    int component;        /* ...and which component of it may be written */
    struct ls__mode *outer;
} ls__mode;

/* The innermost mode of this thread, NULL outside of all. */
const ls__mode *ls__mode_now(void);

/* Pushing and popping; the mode lies in the caller's stack frame. Popping also ends scopes
 * that were entered inside and not left, with an LS_STATE error. */
void ls__mode_push(ls__mode *mode);
void ls__mode_pop(ls__mode *mode);

/* The replica this thread is in a run, else NULL: also NULL for the default replica outside
 * of runs. */
ls_replica *ls__hosted(void);

/* For functions that belong in cross-replica context: checks the strategy and the context of
 * this thread, and enters the scope (pop the mode afterwards). LS_STATE in a replica ("use
 * ls_merge_call") and under another strategy ("mixing"). */
ls_status ls__enter_cross(const char *who, ls_strategy *s, ls__mode *mode);

/* For uses of a thing (`what`, "variable 'w'") of strategy `s`: LS_STATE when another strategy
 * than it is active here. */
ls_status ls__check_mixing(const char *who, const char *what, const ls_strategy *s);

/* For what changes a thing that replicas share, and is no meeting: LS_STATE in one of several
 * replicas of a run. `instead`: "free it after the run". */
ls_status ls__check_alone(const char *who, const char *instead);

/* LS_OK when this thread is that replica, now. */
ls_status ls__check_replica(const char *who, const ls_replica *replica);

#endif
