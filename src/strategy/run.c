/*
 * Running eagerly: rounds, as run_state.h draws them. Invariants: the runner alone decides,
 * between rounds, when nobody else goes; a replica's thread touches its own member only; so
 * events are all the locking there is.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/placement.h"
#include "collective/team.h"
#include "dispatch/tape.h"
#include "kernels/threads.h"
#include "os/thread.h"
#include "strategy/defect.h"
#include "strategy/host.h"
#include "strategy/run_state.h"
#include "strategy/tracer.h"
#include "tensor/tensor.h"
#include "tensor/value.h"

/* ---- batons: who goes after whom ---------------------------------------------------------- */

static int baton_begin(const ls__run *run, int baton)
{
    return run->one_by_one ? (baton ? run->s->replicas : 0)
                           : ls__block_begin(run->s->replicas, run->s->n_devices, baton);
}

static int batons(const ls__run *run)
{
    return run->one_by_one ? 1 : run->s->n_devices;
}

/* The first from `r` on, below `end`, that has not returned; or -1. */
static int next_going(const ls__run *run, int r, int end)
{
    for (; r < end; r++)
        if (run->members[r].stop != LS__RETURNED)
            return r;
    return -1;
}

static void tell(ls__run *run, int replica)
{
    bool begun = run->members[replica].stop != LS__NOT_BEGUN;
    ls__host_tell(run->s, replica, begun ? LS__ORDER_RESUME : LS__ORDER_RUN, run);
}

void ls__run_stopped(ls__run *run, int replica)
{
    ls_strategy *s = run->s;
    if (s->replicas == 1)
        return; /* alone: nobody to wait for (and the default strategy is any thread's) */
    int baton = run->one_by_one ? 0 : ls__block_of(s->replicas, s->n_devices, replica);
    int next = next_going(run, replica + 1, baton_begin(run, baton + 1));
    if (next >= 0)
        tell(run, next);
    else if (atomic_fetch_sub(&run->pending, 1) == 1)
        ls__event_post(&s->done); /* the run may be over at once: nothing of it is touched after */
}

static void settle(ls__run *run)
{
    ls__error_scope scope; /* an error pending here is replica 0's */
    ls__error_scope_open(&scope);
    if (ls__own_settle(run->s))
        ls__run_cancel(run);
    ls__error_put(&scope.outer);
}

void ls__run_round_begin(ls__run *run)
{
    int going = 0;
    if (run->s->replicas == 1)
        return;
    if (!run->one_by_one && !run->cancelled)
        settle(run);
    for (int b = 0; b < batons(run); b++)
        going += next_going(run, baton_begin(run, b), baton_begin(run, b + 1)) >= 0;
    atomic_store(&run->pending, going);
    atomic_store(&run->zero_stopped, run->members[0].stop == LS__RETURNED);
    run->s->rounds += going > 0;
    for (int b = 0; b < batons(run); b++) {
        int first = next_going(run, baton_begin(run, b), baton_begin(run, b + 1));
        if (first > 0) /* replica 0 is the runner itself */
            tell(run, first);
    }
}

/* ---- deciding ----------------------------------------------------------------------------- */

void ls__run_cancel(ls__run *run)
{
    ls__error_record error;
    ls__error_take(&error);
    if (run->cancelled)
        return; /* the first reason stays */
    run->error = error;
    run->cancelled = true;
}

/* The lowest replica that failed by itself, or -1. */
static int first_failed(const ls__run *run)
{
    int n = run->s->replicas;
    for (int i = 0; i < n; i++) {
        int r = LS__DEFECT(LS__HIGHEST_ERROR) ? n - 1 - i : i;
        if (run->members[r].error.status)
            return r;
    }
    return -1;
}

ls_status ls__fail_as_replica(const ls_strategy *s, int replica, const ls__error_record *own)
{
    ls_status st = s->replicas == 1 ? ls__fail(own->status, "%s", own->text)
                                    : ls__fail(own->status, "replica %d: %s", replica, own->text);
    return own->hint[0] ? ls__hint(st, "%s", own->hint) : st;
}

static void cancel_for(ls__run *run, int failed)
{
    ls__fail_as_replica(run->s, failed, &run->members[failed].error);
    ls__run_cancel(run);
}

/* An error that a replica came with and may still read is its own, too, once the run fails. */
static int first_unread(const ls__run *run, int below)
{
    for (int r = 0; r < below; r++)
        if (run->members[r].stop == LS__AT_MEETING && run->members[r].unread.status)
            return r;
    return -1;
}

bool ls__cancel_for_unread(ls__run *run)
{
    int r = first_unread(run, run->s->replicas);
    if (r < 0)
        return false;
    run->members[r].error = run->members[r].unread;
    cancel_for(run, r);
    return true;
}

static void decide(ls__run *run)
{
    int failed = first_failed(run);
    if (run->cancelled || (failed >= 0 && LS__DEFECT(LS__LOST_CANCEL)))
        return;
    ls__error_scope scope; /* an error pending here is replica 0's, and none of this */
    ls__error_scope_open(&scope);
    if (failed >= 0 && first_unread(run, failed) >= 0)
        ls__cancel_for_unread(run);
    else if (failed >= 0)
        cancel_for(run, failed);
    else
        ls__hold_meeting(run);
    ls__error_put(&scope.outer);
}

void ls__run_round_end(ls__run *run)
{
    atomic_store(&run->zero_stopped, true);
    ls__event_post(&run->made); /* who waits for a variable of replica 0's waits in vain */
    if (run->s->replicas > 1)
        ls__event_wait(&run->s->done, run->s->rounds, run->s->spin);
    decide(run);
}

/* ---- one replica ----------------------------------------------------------------------------- */

/* The runner's thread is also replica 0 and merges: each has draws of its own. Host threads
 * are one replica always; a nested run goes on where the outer one is. */
static bool draws_go_on(const ls__run *run)
{
    return ls__is_default(run->s) || (run->outer && run->s->replicas == 1);
}

static void enter_draws(ls__run *run, int replica, ls__draw_state *before)
{
    ls__draws_get(before);
    if (draws_go_on(run))
        return;
    ls__draw_state mine = run->draws;
    mine.replica = replica;
    mine.step = run->s->steps;
    mine.draws = 0;
    if (LS__DEFECT(LS__DRAWS_BY_DEVICE))
        mine.replica = ls__block_of(run->s->replicas, run->s->n_devices, replica);
    if (run->outer && replica == 0)
        mine = run->outer->zero_draws;
    if (!run->outer || replica == 0)
        ls__draws_set(&mine);
}

static void leave_draws(ls__run *run, int replica, const ls__draw_state *before)
{
    ls__draw_state mine;
    if (!draws_go_on(run) && replica == 0)
        ls__run_draws_switch(run->outer ? &run->outer->zero_draws : &mine, before);
}

void ls__run_draws_switch(ls__draw_state *save, const ls__draw_state *next)
{
    ls__draw_state now, then = *next;
    ls__draws_get(&now);
    *save = now;
    then.initialisers =
        now.initialisers; /* of the thread: variables were made, the count goes on */
    ls__draws_set(&then);
}

int ls__run_records_for(ls__run *run, int replica)
{
    if (!run->sink)
        return -1;
    int before = run->sink->replica;
    run->sink->replica = replica;
    return before;
}

/* What belongs to the thread, and is another's while it hosts the replica. */
typedef struct outside {
    ls__mode mode;
    ls__device *device;
    ls__journal *journal;
    ls__sink *sink;
    ls__team *team; /* for meetings only: its threads host replicas now */
    ls_numerics numerics;
    int kernel_threads, tape, sink_replica;
    bool one_of_many;
    ls__draw_state draws;
    ls__error_scope errors;
} outside;

static void enter(ls__run *run, int replica, outside *o)
{
    o->mode = (ls__mode){
        .strategy = run->s, .replica = &run->members[replica].replica, .run = run, .why = LS__BY_RUN
    };
    ls__mode_push(&o->mode);
    o->device = ls__device_use(ls__device_of_replica(run->s, replica));
    o->journal = ls__journal_use(&run->journal);
    o->team = ls__team_use(NULL);
    o->sink = ls__sink_set(run->tracer ? ls__tracer_sink(run->tracer, replica) : run->sink);
    o->sink_replica = ls__run_records_for(run, run->s->replicas > 1 ? replica : -1);
    o->numerics = ls_check_numerics(run->numerics);
    o->kernel_threads = ls__kernel_threads_get();
    ls__kernel_threads(run->kernel_threads);
    o->one_of_many = ls__set_one_of_many(run->s->replicas > 1);
    o->tape = ls__tape_pause();
    enter_draws(run, replica, &o->draws);
    ls__error_scope_open(&o->errors);
}

static void leave(ls__run *run, int replica, outside *o)
{
    ls__error_put(&o->errors.outer);
    leave_draws(run, replica, &o->draws);
    ls__tape_resume(o->tape);
    ls__set_one_of_many(o->one_of_many);
    ls__kernel_threads(o->kernel_threads);
    ls_check_numerics(o->numerics);
    ls__run_records_for(run, o->sink_replica);
    ls__sink_set(o->sink);
    ls__team_use(o->team);
    ls__journal_use(o->journal);
    ls__device_use(o->device);
}

/* What is another on every replica is so also where it happens to be one tensor. */
static ls_value *own_leaf(const ls_value *leaf, void *user)
{
    int replica = *(const int *)user;
    ls_value *mine = ls_select(leaf, replica);
    ls_tensor *t =
        mine && ls_spread_of(leaf) == LS_SPREAD_PER_REPLICA ? ls__leaf_component(mine, 0) : NULL;
    if (t)
        t->id = ls__id_on_replica(t->id, replica);
    return mine;
}

/* Its component of what is distributed, everything else as it is. */
static ls_value *arguments_of(ls__run *run, int replica)
{
    if (LS__DEFECT(LS__WRONG_ARGUMENT))
        replica = (replica + 1) % run->s->replicas;
    if (run->tracer)
        return ls__tracer_arguments(run->tracer, replica);
    return run->s->replicas == 1 ? ls_select(run->arguments, 0)
                                 : ls__value_map(run->arguments, own_leaf, &replica);
}

static ls_status call_step(ls__run *run, int replica)
{
    ls__member *m = &run->members[replica];
    ls_value *arguments = arguments_of(run, replica);
    ls_value *result = arguments ? run->step(arguments, run->user) : NULL;
    if (ls_error_pending() && !LS__DEFECT(LS__LOST_ERROR))
        return ls_error_pending();
    if (!result)
        return ls__hint(ls__fail(LS_INVALID, "the function returned NULL"),
                        "return ls_list(0, NULL) when there is nothing to return");
    m->result = ls_value_keep(result);
    return m->result ? LS_OK : ls_error_pending();
}

/* An error of a traced step tells the call at which it was noticed. */
static void say_where(ls__run *run, ls__member *m)
{
    ls__error_record was = m->error;
    ls_status st = ls__fail(was.status, "tracing, at operator %d: %s",
                            ls__tracer_at(run->tracer, m->replica.id), was.text);
    if (was.hint[0])
        ls__hint(st, "%s", was.hint);
    ls__error_take(&m->error);
}

void ls__run_replica(ls__run *run, int replica)
{
    ls__member *m = &run->members[replica];
    outside o;
    m->stop = LS__GOING;
    enter(run, replica, &o);
    int frame = ls_frame_open();
    ls_status st = frame < 0 ? LS_NO_MEMORY : call_step(run, replica);
    if (frame >= 0 && ls_frame_close(frame) && !st)
        st = ls_error_pending();
    ls__mode_pop(&o.mode);
    if (!st)
        st = LS__DEFECT(LS__LOST_ERROR) ? LS_OK : ls_error_pending();
    ls__error_record error;
    ls__error_take(&error);
    if (st && !m->error.status && !run->cancelled)
        m->error = error;
    if (run->tracer && m->error.status)
        say_where(run, m);
    leave(run, replica, &o);
    m->stop = LS__RETURNED;
    if (replica > 0)
        ls__run_stopped(run, replica);
}

/* ---- all of them ------------------------------------------------------------------------------- */

static ls_status prepare(ls__run *run)
{
    ls_strategy *s = run->s;
    run->members = calloc((size_t)s->replicas, sizeof *run->members);
    if (!run->members)
        return ls__fail_memory("a run", (size_t)s->replicas * sizeof *run->members);
    for (int r = 0; r < s->replicas; r++)
        run->members[r].replica = (ls_replica){ .strategy = s, .id = r, .run = run };
    run->one_by_one |= s->replicas == 1;
    run->numerics = ls__numerics();
    run->kernel_threads = ls__kernel_threads_get();
    ls__draws_get(&run->draws);
    if (run->outer) /* merge functions of nested runs go on drawing where the outer one's are */
        run->merge_draws = run->draws;
    else
        run->merge_draws =
            (ls__draw_state){ .seed = run->draws.seed, .replica = -1, .step = s->steps };
    ls__journal_open(&run->journal, ls__journal_used());
    return ls__hosts_start(s, 1, s->replicas);
}

static void clean_up(ls__run *run)
{
    for (int r = 0; run->members && r < run->s->replicas; r++) {
        ls_value_drop(run->members[r].result);
        ls_value_drop(run->members[r].given);
    }
    ls__created_free(run);
    free(run->members);
}

/* Everybody has returned: the results in one value. */
static ls_value *results_of(ls__run *run)
{
    if (run->cancelled) {
        ls__error_put(&run->error);
        return NULL;
    }
    int n = run->s->replicas;
    ls_value **results = ls__frame_alloc(sizeof *results * (size_t)n);
    for (int r = 0; results && r < n; r++)
        results[r] = run->members[r].result;
    return results ? ls__regroup(run->s, results, "the results") : NULL;
}

static ls_value *go(ls__run *run)
{
    ls__run_round_begin(run);
    ls__run_replica(run, 0);
    ls__run_stopped(run, 0);
    ls__run_round_end(run);
    while (next_going(run, 0, run->s->replicas) >= 0) { /* cancelled: to their ends */
        ls__run_round_begin(run);
        ls__run_round_end(run);
    }
    if (run->tracer && !run->cancelled)
        return ls__tracer_results(run->tracer, run);
    return results_of(run);
}

ls_value *ls__run_all(ls__run *run)
{
    ls_status st = prepare(run);
    bool crowded = run->sink && run->sink->crowded;
    int recorded = run->sink ? run->sink->mark(run->sink) : 0;
    if (run->sink)
        run->sink->crowded = run->s->replicas > 1;
    ls_value *results = st ? NULL : go(run);
    if (run->sink)
        run->sink->crowded = crowded;
    if (run->sink && !results) /* who started it may go on without it */
        run->sink->forget(run->sink, recorded);
    if (results || LS__DEFECT(LS__LOST_UNDO))
        ls__journal_commit(&run->journal);
    else
        ls__journal_undo(&run->journal);
    ls__draw_state unused;
    if (!results && draws_go_on(run)) /* a step that failed never drew */
        ls__run_draws_switch(&unused, &run->draws);
    if (run->outer && !draws_go_on(run))
        ls__run_draws_switch(
            &unused, &run->merge_draws); /* the merge function around goes on after the nested */
    clean_up(run);
    return results;
}
