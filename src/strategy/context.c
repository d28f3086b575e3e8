/*
 * Contexts: a stack of modes per thread. Invariant: a mode of another strategy is never
 * pushed upon one, so a thread is in one strategy at a time (the default one, outside of
 * everything, aside).
 */
#include "strategy/context.h"

#include <stdlib.h>

#include "base/status.h"
#include "os/thread.h"
#include "strategy/strategy.h"
#include "tensor/tensor.h"

static _Thread_local ls__mode *top;
static _Thread_local ls__mode base; /* of ls_set_strategy; `count` tells whether it is in use */

const ls__mode *ls__mode_now(void)
{
    return top;
}

void ls__mode_push(ls__mode *mode)
{
    mode->outer = top;
    top = mode;
}

static void drop_top(void)
{
    ls__mode *mode = top;
    top = mode->outer;
    if (mode->why != LS__BY_SCOPE)
        return;
    atomic_fetch_sub(&mode->strategy->scopes, 1);
    if (mode != &base)
        free(mode);
}

void ls__mode_pop(ls__mode *mode)
{
    if (top != mode)
        ls__hint(ls__fail(LS_STATE, "a scope was entered in a step or merge function and not left"),
                 "leave it where it was entered; LS_SCOPE does it for you");
    while (top != mode)
        drop_top();
    top = mode->outer;
}

/* Outside of everything a thread is the one replica of the default strategy. */
static ls_replica *default_replica(void)
{
    static _Thread_local ls_replica it;
    it.strategy = ls_default_strategy();
    return &it;
}

ls_replica *ls_get_replica_context(void)
{
    return top ? top->replica : default_replica();
}

ls_replica *ls__hosted(void)
{
    return top ? top->replica : NULL;
}

ls_strategy *ls_get_strategy(void)
{
    return top ? top->strategy : ls_default_strategy();
}

bool ls_has_strategy(void)
{
    return !ls__is_default(ls_get_strategy());
}

bool ls_in_cross_replica_context(void)
{
    return top && !top->replica;
}

int ls_replica_id(const ls_replica *replica)
{
    return replica ? replica->id : -1;
}

ls_strategy *ls_replica_strategy(const ls_replica *replica)
{
    return replica ? replica->strategy : NULL;
}

/* ---- checking --------------------------------------------------------------------------- */

ls_status ls__check_mixing(const char *who, const char *what, const ls_strategy *s)
{
    if (!top || top->strategy == s)
        return LS_OK;
    return ls__hint(ls__fail(LS_STATE, "%s: mixing strategies: %s%sof %s, and %s is active here",
                             who, what, what[0] ? " " : "", ls__strategy_text(s),
                             ls__strategy_text(top->strategy)),
                    "one strategy at a time: leave the other's scope or run first");
}

static ls_status check_cross(const char *who, const ls_strategy *s)
{
    if (!top)
        return LS_OK;
    if (top->replica)
        return ls__hint(ls__fail(LS_STATE,
                                 "%s: called by replica %d of a run, wants cross-replica "
                                 "context",
                                 who, top->replica->id),
                        "call it in a function given to ls_merge_call, or after the run");
    return ls__check_mixing(who, "called for something", s);
}

ls_status ls__enter_cross(const char *who, ls_strategy *s, ls__mode *mode)
{
    ls_status st = ls__check_strategy(who, s);
    if (!st)
        st = check_cross(who, s);
    if (st)
        return st;
    *mode = top ? *top : (ls__mode){ .strategy = s, .why = LS__BY_MERGE };
    if (mode->why == LS__BY_SCOPE)
        mode->why = LS__BY_MERGE; /* lies on the caller's stack, counts for no scope */
    ls__mode_push(mode);
    return LS_OK;
}

ls_status ls__check_alone(const char *who, const char *instead)
{
    const ls_replica *replica = ls__hosted();
    if (!replica || replica->strategy->replicas == 1)
        return LS_OK;
    return ls__hint(ls__fail(LS_STATE, "%s: called by replica %d of %d, for all of them", who,
                             replica->id, replica->strategy->replicas),
                    "%s", instead);
}

ls_status ls__check_replica(const char *who, const ls_replica *replica)
{
    const ls_replica *here = ls_get_replica_context();
    if (replica && replica == here)
        return LS_OK;
    if (!here)
        return ls__hint(ls__fail(LS_STATE, "%s: this is cross-replica context, not a replica", who),
                        "call it in the function that ls_run runs on each replica");
    if (!replica)
        return ls__hint(ls__fail(LS_INVALID, "%s: the replica context is NULL", who),
                        "get it where it is used, with ls_get_replica_context()");
    return ls__hint(
        ls__fail(LS_STATE, "%s: the replica context is not that of this thread now", who),
        "a replica context is good for its own run and thread; ask "
        "ls_get_replica_context() where you use it");
}

/* ---- scopes ------------------------------------------------------------------------------- */

static ls_status check_scope(const char *who, ls_strategy *s)
{
    ls_status st = ls__check_strategy(who, s);
    return st ? st : check_cross(who, s);
}

/* A thread that ends in a scope leaves it: the strategy can be freed. */
static void thread_end(void)
{
    while (top)
        drop_top();
}

static void open_scope(ls__mode *mode, ls_strategy *s)
{
    ls__at_thread_end(thread_end);
    *mode =
        (ls__mode){ .strategy = s, .why = LS__BY_SCOPE, .count = 1, .run = top ? top->run : NULL };
    atomic_fetch_add(&s->scopes, 1);
    ls__mode_push(mode);
}

ls_status ls_scope_enter(ls_strategy *s)
{
    ls_status st = check_scope("ls_scope_enter", s);
    if (st)
        return st;
    if (top && top->why == LS__BY_SCOPE && top != &base) {
        top->count++;
        return LS_OK;
    }
    ls__mode *mode = malloc(sizeof *mode);
    if (!mode)
        return ls__fail_memory("ls_scope_enter", sizeof *mode);
    open_scope(mode, s);
    return LS_OK;
}

ls_status ls_scope_leave(ls_strategy *s)
{
    if (!s)
        return ls__fail(LS_INVALID, "ls_scope_leave: the strategy is NULL");
    if (!top || top->why != LS__BY_SCOPE || top == &base || top->strategy != s)
        return ls__hint(ls__fail(LS_STATE,
                                 "ls_scope_leave: the scope of %s is not the innermost one",
                                 ls__strategy_text(s)),
                        "scopes are left in the order they were entered, in the function that "
                        "entered them; LS_SCOPE does it for you");
    if (--top->count == 0)
        drop_top();
    return LS_OK;
}

ls_status ls_set_strategy(ls_strategy *s)
{
    ls_status st = s ? ls__check_strategy("ls_set_strategy", s) : LS_OK;
    if (st)
        return st;
    if (top && top != &base)
        return ls__hint(ls__fail(LS_STATE, "ls_set_strategy: called inside %s of %s",
                                 top->replica ? "a run" : "a scope",
                                 ls__strategy_text(top->strategy)),
                        "set the strategy of a thread outside of all scopes and runs");
    if (top == &base)
        drop_top();
    if (s && !ls__is_default(s))
        open_scope(&base, s);
    return LS_OK;
}
