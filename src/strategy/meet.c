/*
 * Meetings: replicas come with a function and arguments; the runner calls the function once
 * with the arguments grouped, and each gets its part of the result. What crosses between
 * threads is kept by the giver and imported by the taker (rule I).
 */
#include <stdio.h>
#include <string.h>

#include "dispatch/tape.h"
#include "os/symbol.h"
#include "strategy/combine.h"
#include "strategy/defect.h"
#include "strategy/host.h"
#include "strategy/phases.h"
#include "strategy/run_state.h"
#include "strategy/team.h"
#include "strategy/tracer.h"
#include "tensor/tensor.h"
#include "tensor/value.h"

/* ---- when replicas disagree ------------------------------------------------------------------ */

static bool did_the_same(const ls__member *a, const ls__member *b)
{
    return a->stop == b->stop &&
           (a->stop == LS__RETURNED
                ? a->meetings == b->meetings
                : a->fn == b->fn && a->subject == b->subject && strcmp(a->what, b->what) == 0);
}

/* "replicas 0, 2 came to ls_merge_call of `f`". */
static int describe(const ls__run *run, int like, char *out, int room)
{
    const ls__member *m = &run->members[like];
    int at = 0, same = 0, shown = 0;
    for (int r = 0; r < run->s->replicas; r++)
        same += did_the_same(m, &run->members[r]);
    at += snprintf(out, (size_t)room, "replica%s", same > 1 ? "s" : "");
    for (int r = 0; r < run->s->replicas && at < room; r++) {
        if (!did_the_same(m, &run->members[r]))
            continue;
        if (++shown > 6) {
            at += snprintf(out + at, (size_t)(room - at), " and %d more", same - 6);
            break;
        }
        at += snprintf(out + at, (size_t)(room - at), "%s %d", shown > 1 ? "," : "", r);
    }
    if (at < room && m->stop == LS__RETURNED)
        at += snprintf(out + at, (size_t)(room - at), " returned after %d meeting%s", m->meetings,
                       m->meetings == 1 ? "" : "s");
    else if (at < room)
        at += snprintf(out + at, (size_t)(room - at), " came to %s", m->what);
    return at < room ? at : room - 1;
}

/* Where replicas stopped, group by group. */
static void disagree(ls__run *run)
{
    enum { ROOM = 440 };
    char text[ROOM] = "";
    int at = 0;
    for (int r = 0; r < run->s->replicas && at < ROOM - 1; r++) {
        bool told = false;
        for (int q = 0; q < r && !told; q++)
            told = did_the_same(&run->members[r], &run->members[q]);
        if (told)
            continue;
        if (at > 0)
            at += snprintf(text + at, (size_t)(ROOM - at), "; ");
        if (at < ROOM - 1)
            at += describe(run, r, text + at, ROOM - at);
    }
    ls__hint(ls__fail(LS_STATE, "replicas did not meet: %s", text),
             "all replicas make the same calls of ls_merge_call, ls_all_reduce and so on, in the "
             "same order");
    ls__run_cancel(run);
}

/* ---- holding a meeting ----------------------------------------------------------------------- */

/* All stand at a meeting, and at the same one; or all have returned; or neither. */
typedef enum verdict { MEET, DONE, DISAGREE } verdict;

static verdict judge(const ls__run *run)
{
    const ls__member *first = &run->members[0];
    bool all_returned = first->stop == LS__RETURNED;
    for (int r = 1; r < run->s->replicas; r++) {
        const ls__member *m = &run->members[r];
        all_returned &= m->stop == LS__RETURNED;
        if (m->stop != first->stop || (m->stop == LS__AT_MEETING && !did_the_same(m, first)))
            return DISAGREE;
    }
    return all_returned ? DONE : MEET;
}

static ls_status give(ls__run *run, ls_value *result)
{
    ls_status st = LS_OK;
    for (int r = 0; r < run->s->replicas && !st; r++) {
        int part = LS__DEFECT(LS__FIRST_FOR_ALL) ? 0 : r;
        ls_value *mine = ls_select(result, part);
        run->members[r].given = mine ? ls_value_keep(mine) : NULL;
        if (!run->members[r].given)
            st = ls_error_pending();
    }
    return st;
}

static ls_value *grouped_arguments(ls__run *run)
{
    int n = run->s->replicas;
    ls_value **values = ls__frame_alloc(sizeof *values * (size_t)n);
    for (int r = 0; values && r < n; r++)
        values[r] = run->members[r].arguments;
    return values ? ls__regroup(run->s, values, "the arguments") : NULL;
}

static ls_status merge(ls__run *run)
{
    const ls__member *first = &run->members[0];
    ls_value *arguments =
        run->tracer ? ls__tracer_merge_begin(run->tracer, run) : grouped_arguments(run);
    ls_value *result = arguments ? first->fn(run->s, arguments, first->user) : NULL;
    if (result && LS__DEFECT(LS__MERGED_TWICE))
        result = first->fn(run->s, arguments, first->user);
    ls_status st = ls_error_pending();
    if (!st && !result)
        st = ls__hint(ls__fail(LS_INVALID, "the merge function returned NULL"),
                      "return ls_list(0, NULL) when there is nothing to return");
    if (!st)
        st = ls__check_components(run->s, "its result", result);
    if (run->tracer)
        return ls__tracer_merge_end(run->tracer, run, st ? NULL : result);
    return st ? st : give(run, result);
}

/* In cross-replica context, in a frame and with draws of its own. */
static ls_status merge_in_context(ls__run *run)
{
    char what[128];
    snprintf(what, sizeof what, "%s", run->members[0].what);
    ls__mode mode = { .strategy = run->s, .why = LS__BY_MERGE, .run = run };
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    int tape = ls__tape_pause();
    bool own_draws = !ls__is_default(run->s);
    if (own_draws)
        ls__run_draws_switch(&run->zero_draws, &run->merge_draws);
    ls__mode_push(&mode);
    int recorded = ls__run_records_for(run, -1);
    ls_status st = run->s->replicas > 1 ? ls__team_make(run->s) : LS_OK;
    ls__team *team = ls__team_use(run->s->replicas > 1 ? &run->s->team : NULL);
    const int phase = ls__phases_now(run->s->phases);
    ls__phases_room(run->s->phases, 8); /* it, and what it is part of */
    if (!run->tracer && !run->sink)
        ls__phases_enter(run->s->phases, 0, run->s->replicas, LS_PHASE_REDUCE);
    if (!st) {
        st = LS_NO_MEMORY;
        LS_FRAME
            st = merge(run);
    }
    ls__phases_enter(run->s->phases, 0, run->s->replicas, phase);
    ls__team_use(team);
    ls__run_records_for(run, recorded);
    ls__mode_pop(&mode);
    if (own_draws)
        ls__run_draws_switch(&run->merge_draws, &run->zero_draws);
    ls__tape_resume(tape);
    return ls__error_scope_close(&scope, st, "%s", what);
}

/* A replica's own error comes first, also one that it has not read yet. */
static void cancel_for_merge(ls__run *run)
{
    ls__error_record error;
    ls__error_take(&error);
    if (ls__cancel_for_unread(run))
        return;
    ls__error_put(&error);
    ls__run_cancel(run);
}

void ls__hold_meeting(ls__run *run)
{
    switch (judge(run)) {
    case MEET:
        if (merge_in_context(run))
            cancel_for_merge(run);
        break;
    case DISAGREE:
        if (!ls__cancel_for_unread(run))
            disagree(run);
        break;
    case DONE:
        break;
    }
}

/* ---- coming to a meeting ----------------------------------------------------------------------- */

/* A host waits for the end of the meeting; until then it serves the runs that the merge
 * function starts, on this same stack. */
static void wait_for_end(ls__run *run, int replica)
{
    ls__host *host = ls__host_of(run->s, replica);
    ls__run_stopped(run, replica);
    while (ls__host_serve(host) != LS__ORDER_RESUME)
        ;
}

static ls_value *cancelled(const char *what)
{
    if (!ls_error_pending())
        ls__hint(ls__fail(LS_CANCELLED, "%s: another replica failed first, or did not come", what),
                 "the call of run reports why");
    return NULL;
}

/* What fails to come still arrives, so that nobody waits for it. */
static void arrive(ls__member *m, const ls__member *as, ls_value *arguments)
{
    m->what = as->what;
    m->subject = as->subject;
    m->fn = as->fn;
    m->user = as->user;
    m->arguments = arguments;
    m->meetings++;
    m->unread.status = LS_OK;
    if (ls_error_pending()) {
        ls__error_take(&m->unread);
        ls__error_put(&m->unread);
    }
    if (!arguments && !m->error.status)
        m->error = m->unread;
    m->stop = LS__AT_MEETING;
}

static ls_value *take_given(ls__member *m)
{
    ls_value *mine = ls__value_import(m->given);
    ls_value_drop(m->given);
    m->given = NULL;
    return mine;
}

static ls_value *meet(ls__run *run, int replica, const ls__member *as, ls_value *arguments)
{
    ls__member *m = &run->members[replica];
    if (run->cancelled)
        return cancelled(as->what);
    arrive(m, as, arguments);
    if (replica > 0) {
        wait_for_end(run, replica);
    } else {
        ls__run_stopped(run, 0);
        ls__run_round_end(run);
        if (m->stop != LS__RETURNED)
            m->stop = LS__GOING;
        ls__run_round_begin(run);
    }
    m->stop = LS__GOING;
    ls__run_records_for(run, replica);
    if (run->cancelled || !m->given)
        return cancelled(as->what);
    return run->tracer ? ls__tracer_given(run->tracer, replica, take_given(m)) : take_given(m);
}

/* One replica meets itself: the function is called where it stands. */
static ls_value *meet_alone(ls_replica *replica, const char *what, ls_merge_fn fn, void *user,
                            ls_value *arguments)
{
    ls__mode mode = { .strategy = replica->strategy, .why = LS__BY_MERGE, .run = replica->run };
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    int tape = ls__tape_pause();
    ls__mode_push(&mode);
    arguments = ls__regroup(replica->strategy, &arguments, "the arguments");
    ls_value *result = arguments ? fn(replica->strategy, arguments, user) : NULL;
    ls__mode_pop(&mode);
    ls__tape_resume(tape);
    ls_status st = result ? LS_OK : ls_error_pending();
    if (!result && !st)
        st = ls__hint(ls__fail(LS_INVALID, "the merge function returned NULL"),
                      "return ls_list(0, NULL) when there is nothing to return");
    if (!st)
        st = ls__check_components(replica->strategy, "its result", result);
    result = st ? NULL : ls_select(result, 0);
    if (!st && !result)
        st = ls_error_pending();
    return ls__error_scope_close(&scope, st, "%s", what) ? NULL : result;
}

ls_value *ls__meet(ls_replica *replica, const char *what, ls_merge_fn fn, void *user,
                   ls_value *arguments)
{
    return ls__meet_about(replica, what, NULL, fn, user, arguments);
}

ls_value *ls__meet_about(ls_replica *replica, const char *what, const void *subject, ls_merge_fn fn,
                         void *user, ls_value *arguments)
{
    if (arguments && !ls_kind_of(arguments)) {
        ls__fail(LS_INVALID, "%s: the arguments' frame has closed", what);
        arguments = NULL;
    }
    if (!arguments && !ls_error_pending())
        ls__hint(ls__fail(LS_INVALID, "%s: the arguments are NULL", what),
                 "ls_list(0, NULL) stands for none");
    if (replica->run && replica->strategy->replicas > 1)
        return meet(replica->run, replica->id,
                    &(ls__member){ .what = what, .subject = subject, .fn = fn, .user = user },
                    arguments);
    return arguments ? meet_alone(replica, what, fn, user, arguments) : NULL;
}

ls_value *ls_merge_call(ls_replica *replica, ls_merge_fn fn, void *user, ls_value *arguments)
{
    if (ls__check_replica("ls_merge_call", replica))
        return NULL;
    if (!fn) {
        ls__fail(LS_INVALID, "ls_merge_call: the function is NULL");
        arguments = NULL;
    }
    char name[96], what[128];
    snprintf(what, sizeof what, "ls_merge_call of %s",
             fn ? ls__symbol_name((const void *)fn, name, sizeof name) : "NULL");
    return ls__meet(replica, what, fn, user, arguments);
}
