/*
 * The threads that run ahead. Each does what there is to do: take a turn from the input, or work on one.
 * Who took last goes on taking while others can work on what he took: the input's memory is near him.
 */
#include "data/ahead_crew.h"

#include <stdlib.h>
#include <string.h>

#include "os/event.h"

/* Turns that are there from the start; others are made as they are needed. */
enum { TURNS_AT_START = 32 };

/* ---- turns -------------------------------------------------------------------------------- */

static ls__entry *new_entry(const ls__ahead *a)
{
    ls__entry *e = calloc(1, sizeof *e);
    if (e && ls__turn_open(&e->turn, a->it->words))
        return e;
    free(e);
    return NULL;
}

int64_t ls__crew_bytes(const ls__chunk *c, int from, int n)
{
    int64_t bytes = 0;
    for (int i = from * c->leaves; i < (from + n) * c->leaves; i++)
        bytes += c->data[i].hold == LS__OWNED ? (int64_t)c->data[i].bytes : 0;
    return bytes;
}

int ls__crew_weight(const ls__entry *e)
{
    return e->turn.out.n > 0 ? e->turn.out.n : 1;
}

void ls__crew_recycle(ls__ahead *a, ls__entry *e)
{
    if (e->done && !e->status)
        ls__it_holds(a->it, -ls__crew_bytes(&e->turn.out, e->given, e->turn.out.n - e->given));
    ls__turn_clear(&e->turn);
    e->next = a->spare;
    a->spare = e;
}

/* A turn behind all others, and how many elements it may have. NULL: no memory; those that are on
 * their way have to do, and wake us up when they are given. */
static ls__entry *begin_turn(ls__ahead *a, int *most)
{
    ls__entry *e = a->spare;
    if (e)
        a->spare = e->next;
    else
        e = new_entry(a);
    if (!e) {
        a->full = true;
        return NULL;
    }
    int64_t left = a->plan.room - a->held;
    left = left < *most ? left : *most;
    *most = left < a->plan.at_once ? (int)left : a->plan.at_once;
    a->held += *most;
    a->full = a->held >= a->plan.room;
    e->next = NULL;
    e->taken = e->done = false;
    e->given = 0;
    e->status = LS_OK;
    if (a->last)
        a->last->next = e;
    else
        a->first = e;
    a->last = e;
    if (!a->to_work)
        a->to_work = e;
    return e;
}

/* ---- taking ------------------------------------------------------------------------------------ */

static bool can_take(const ls__ahead *a)
{
    return !a->busy && !a->full && !a->ended && !a->stop && !a->input_wanted;
}

void ls__crew_free_input(ls__ahead *a)
{
    a->busy = false;
    ls__place_tell(a->input_wanted ? &a->ready : &a->work);
}

/* There is something to work on: for who need not be woken up, else for who sleeps and has not been told
 * of other work. Whoever comes for it tells the next if there is more. */
void ls__crew_tell_of_work(ls__ahead *a)
{
    if (a->waiting > 0)
        ls__place_tell(a->ready.looking == 0 && ls__place_is_manned(&a->work) ? &a->work
                                                                              : &a->ready);
}

static bool take(ls__ahead *a, const void *who, int most)
{
    ls__entry *e = begin_turn(a, &most);
    if (!e)
        return false;
    a->busy = true;
    a->taker = who;
    const bool release = a->release_wanted;
    a->release_wanted = false;
    if (release)
        memcpy(a->to_release, a->released, (size_t)a->input->words * sizeof *a->released);
    ls__lock_give(&a->lock);
    if (release)
        ls__it_release(a->input, a->to_release);
    const ls_status st = a->plan.take(a->it, most, &e->turn);
    ls__error_take(&e->error);
    ls__lock_take(&a->lock);
    e->status = st;
    e->taken = true;
    a->ended = st == LS_END;
    a->held += ls__crew_weight(e) - most;
    a->full = a->held >= a->plan.room;
    a->waiting++;
    ls__crew_free_input(a);
    return true;
}

/* ---- working ----------------------------------------------------------------------------------- */

static void work(ls__ahead *a)
{
    ls__entry *e = a->to_work;
    a->to_work = e->next;
    a->waiting--;
    ls__crew_tell_of_work(a);
    ls_status st = e->status;
    ls__lock_give(&a->lock);
    if (!st && a->plan.work) {
        st = a->plan.work(a->it, &e->turn);
        ls__error_take(&e->error);
    }
    if (!st)
        ls__it_holds(a->it, ls__crew_bytes(&e->turn.out, 0, e->turn.out.n));
    ls__lock_take(&a->lock);
    e->status = st;
    e->done = true;
    if (e == a->first)
        ls__place_tell(&a->ready);
    if (a->ended && !a->to_work)
        ls__place_tell_all(&a->work); /* the others can end */
}

/* Who pulls takes nothing while a turn is on its way: how long a take lasts is the input's business, and
 * that turn may be done before. */
static bool may_take(const ls__ahead *a, const void *who)
{
    const bool goes_on = a->taker == who && a->plan.work && a->waiting <= a->plan.threads;
    return can_take(a) && (a->waiting == 0 || goes_on) && !(who == a && a->first);
}

/* What was taken is worked on at once, unless who took it goes on and somebody else does that. */
bool ls__crew_step(ls__ahead *a, const void *who, int most)
{
    if (may_take(a, who) && take(a, who, most)) {
        if (a->plan.work)
            ls__crew_tell_of_work(a);
        else
            work(a);
        return true;
    }
    if (a->waiting == 0 || a->stop)
        return false;
    work(a);
    return true;
}

/* ---- threads ------------------------------------------------------------------------------------ */

static void run(void *user)
{
    ls__ahead *a = user;
    const char me = 0; /* its address is this thread's */
    ls__lock_take(&a->lock);
    while (!a->stop && !(a->ended && a->waiting == 0))
        if (!ls__crew_step(a, &me, a->plan.at_once))
            ls__place_wait(&a->work, &a->lock, a->full ? 0 : a->spin);
    ls__place_tell_all(&a->work);
    ls__lock_give(&a->lock);
}

/* At least one turn, so that there is always one that is on its way or to be had. */
static ls_status make_turns(ls__ahead *a)
{
    if (a->spare)
        return LS_OK;
    for (int i = 0; i < TURNS_AT_START && i < a->plan.room; i++) {
        ls__entry *e = new_entry(a);
        if (e)
            ls__crew_recycle(a, e);
    }
    return a->spare ? LS_OK : ls__fail_memory(a->plan.name, sizeof(ls__entry));
}

ls_status ls__crew_start(ls__ahead *a)
{
    ls_status st = make_turns(a);
    if (st)
        return st;
    ls__it_words(a->it, a->position);
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    while (a->n_threads < a->plan.threads && !st) {
        st = ls__thread_start(a->plan.name, -1, run, a, &a->threads[a->n_threads]);
        a->n_threads += !st;
    }
    if (st && a->n_threads > 0) { /* some are enough */
        ls_error();
        st = LS_OK;
    }
    return ls__error_scope_close(&scope, st, "%s", a->plan.name);
}

bool ls__crew_is_lost(const ls__ahead *a)
{
    return a->n_threads > 0 && !ls__thread_is_here(a->threads[0]);
}

void ls__crew_halt(ls__ahead *a)
{
    if (!ls__crew_is_lost(a)) {
        ls__lock_take(&a->lock);
        a->stop = true;
        atomic_store_explicit(&a->plan.stop->asked, true, memory_order_relaxed);
        ls__place_tell_all(&a->work);
        ls__lock_give(&a->lock);
    } else {
        a->first = NULL; /* nobody knows in what state they are */
    }
    for (int i = 0; i < a->n_threads; i++)
        ls__thread_join(a->threads[i]);
    a->n_threads = 0;
    a->stop = false;
    atomic_store_explicit(&a->plan.stop->asked, false, memory_order_relaxed);
}
