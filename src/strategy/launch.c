/*
 * The public ways to run: checks, one run at a time, and the count of steps. What happens
 * then is run.c's (eager) or replay.c's (traced).
 */
#include <stdio.h>

#include "base/status.h"
#include "strategy/combine.h"
#include "strategy/defect.h"
#include "strategy/phases.h"
#include "strategy/run_state.h"
#include "strategy/step.h"
#include "tensor/tensor.h"
#include "tensor/value.h"
#include "trace/function.h"

/* ---- arguments ----------------------------------------------------------------------------- */

static ls_status check_leaf(const ls_strategy *s, int i, const ls_value *leaf)
{
    char what[32];
    snprintf(what, sizeof what, "argument %d", i);
    ls_status st = ls__check_fits(s, what, leaf);
    for (int k = 0; k < ls_components(leaf) && !st; k++) {
        const ls_tensor *t = ls__leaf_component(leaf, k);
        st = t ? ls__check_tensor("arguments", "one of them", t) : LS_OK;
        if (!st && t)
            st = ls__check_symbol("argument", i, t);
    }
    return st;
}

static ls_status check_arguments(const ls_strategy *s, const ls_value *arguments)
{
    if (!arguments)
        return ls__hint(ls__fail(LS_INVALID, "the arguments are NULL"),
                        "ls_list(0, NULL) stands for none");
    if (!ls_kind_of(arguments))
        return ls__hint(ls__fail(LS_INVALID, "the arguments are of a frame that has closed"),
                        "use ls_value_hand_up or ls_value_keep to take a value out of its frame");
    int n = ls_leaf_count(arguments);
    const ls_value **leaves = ls__frame_alloc(sizeof *leaves * (size_t)(n + 1));
    if (!leaves)
        return LS_NO_MEMORY;
    ls__leaves(arguments, leaves);
    ls_status st = LS_OK;
    for (int i = 0; i < n && !st; i++)
        st = check_leaf(s, i, leaves[i]);
    return st;
}

/* ---- one at a time ------------------------------------------------------------------------- */

/* What a run is made in: cross-replica context of the strategy. A nested one belongs to the
 * run whose merge function this thread is in. */
typedef struct place {
    ls__mode mode;
    ls__error_scope errors;
} place;

static ls_status begin(const char *who, ls_strategy *s, const void *given, place *p)
{
    if (!given && ls_error_pending())
        return ls_error_pending(); /* passed on, not replaced */
    ls_status st = ls__enter_cross(who, s, &p->mode);
    if (st)
        return st;
    if (!p->mode.run && !ls__is_default(s) && atomic_exchange(&s->running, true)) {
        ls__mode_pop(&p->mode);
        return ls__hint(
            ls__fail(LS_STATE, "%s: %s is running a step already", who, ls__strategy_text(s)),
            "one run at a time; give each thread a strategy of its own");
    }
    if (!p->mode.run)
        ls__phases_begin(s->phases, s->steps);
    ls__error_scope_open(&p->errors);
    return LS_OK;
}

static ls_value *end(const char *who, ls_strategy *s, place *p, ls_value *results)
{
    bool top = !p->mode.run;
    if (top && (results || LS__DEFECT(LS__STEP_AFTER_FAILURE)) && !ls__is_default(s))
        s->steps++;
    if (top)
        ls__phases_end(s->phases, s->steps);
    ls_status st = results ? LS_OK : ls_error_pending();
    if (top && !ls__is_default(s))
        atomic_store(&s->running, false);
    ls__mode_pop(&p->mode);
    return ls__error_scope_close(&p->errors, st, "%s", who) ? NULL : results;
}

/* ---- which go one by one ---------------------------------------------------------------------- */

static bool was_seen(const ls_strategy *s, ls_step step, const void *user)
{
    for (int i = 0; i < s->n_seen; i++)
        if (s->seen[i].step == step && s->seen[i].user == user)
            return true;
    return false;
}

/* Forgetting one costs a run that goes one by one, nothing else. */
static void note_seen(ls_strategy *s, ls_step step, void *user)
{
    if (!ls__is_default(s) && !was_seen(s, step, user))
        s->seen[s->n_seen < LS__MOST_SEEN ? s->n_seen++ : 0] = (ls__seen){ step, user };
}

static ls_value *run_eagerly(ls_strategy *s, const place *p, ls_step step, void *user,
                             ls_value *arguments)
{
    ls__run run = { .s = s,
                    .outer = p->mode.run,
                    .step = step,
                    .user = user,
                    .arguments = arguments,
                    .sink = ls__sink_get() };
    run.one_by_one = s->sequential || run.sink || !was_seen(s, step, user);
    ls_value *results = ls__run_all(&run);
    if (results && !run.sink)
        note_seen(s, step, user);
    return results;
}

ls_value *ls_run_eager(ls_strategy *s, ls_step step, void *user, ls_value *arguments)
{
    static const char who[] = "ls_run_eager";
    place p;
    if (begin(who, s, arguments, &p))
        return NULL;
    ls_value *results = NULL;
    if (!step)
        ls__fail(LS_INVALID, "the function is NULL");
    else if (!check_arguments(s, arguments))
        results = run_eagerly(s, &p, step, user, arguments);
    return end(who, s, &p, results);
}

/* ---- with an iterator ---------------------------------------------------------------------------- */

static ls_value *next_arguments(ls_get_next next, void *iterator)
{
    if (!next)
        return ls_list(0, NULL);
    ls_value *arguments = NULL;
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    ls_status st = next(iterator, &arguments);
    if (!st && !ls_error_pending() && !arguments)
        st = ls__fail(LS_INVALID, "it returned LS_OK and no value");
    if (st && !ls_error_pending())
        ls__fail(st, "%s", ls_status_text(st));
    return ls__error_scope_close(&scope, st, "get_next") ? NULL : arguments;
}

ls_value *ls_run_next(ls_strategy *s, ls_step step, void *user, ls_get_next next, void *iterator)
{
    static const char who[] = "ls_run_next";
    place p;
    if (begin(who, s, s, &p))
        return NULL;
    ls_value *results = NULL;
    ls_value *arguments = step ? next_arguments(next, iterator) : NULL;
    if (!step)
        ls__fail(LS_INVALID, "the function is NULL");
    else if (arguments && !check_arguments(s, arguments))
        results = run_eagerly(s, &p, step, user, arguments);
    return end(who, s, &p, results);
}

/* ---- traced --------------------------------------------------------------------------------------- */

/* A run that is part of a step being traced is the function itself. */
static ls_value *run_traced(ls_strategy *s, const place *p, ls_function *f, ls_value *arguments)
{
    if (ls__sink_get())
        return run_eagerly(s, p, f->step, f->user, arguments);
    return ls__step_run(s, p->mode.run, f, arguments);
}

ls_value *ls_run(ls_strategy *s, ls_function *f, ls_value *arguments)
{
    static const char who[] = "ls_run";
    place p;
    if (begin(who, s, f ? (void *)arguments : NULL, &p))
        return NULL;
    ls_value *results = NULL;
    if (!f)
        ls__hint(ls__fail(LS_INVALID, "the function is NULL"), "make one with ls_trace");
    else if (!check_arguments(s, arguments))
        results = run_traced(s, &p, f, arguments);
    return end(who, s, &p, results);
}
