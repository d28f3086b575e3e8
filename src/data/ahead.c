/*
 * Running ahead: the side of the stage, on the thread that pulls it. See ahead_crew.h.
 */
#include <stdlib.h>
#include <string.h>

#include "data/ahead_crew.h"
#include "os/event.h"

static ls_status lost_error(void)
{
    return ls__hint(ls__fail(LS_STATE, "this process was forked: the iterator's threads are in the "
                                       "parent"),
                    "open iterators after fork");
}

/* ---- opening and closing -------------------------------------------------------------------- */

/* Who pulls `it` itself is asked, too; nobody does while its threads are waited for. */
void ls__ahead_guard(ls__it *it, ls__stop *stop)
{
    stop->outer = it->how.stop;
    it->how.stop = stop;
}

ls_status ls__ahead_open(ls__it *it, ls__it *input, const ls__ahead_plan *plan, ls__ahead **out)
{
    ls__ahead *a = calloc(1, sizeof *a);
    if (!a)
        return ls__fail_memory("an iterator", sizeof *a);
    a->it = it;
    a->input = input;
    a->plan = *plan;
    a->spin = ls__spin_for(plan->threads + 1, LS__SPIN_SHORT);
    ls__lock_init(&a->lock);
    ls__place_init(&a->work);
    ls__place_init(&a->ready);
    a->released = calloc((size_t)input->words + 1, sizeof *a->released);
    a->to_release = calloc((size_t)input->words + 1, sizeof *a->to_release);
    a->position = calloc((size_t)it->words + 1, sizeof *a->position);
    a->threads = calloc((size_t)plan->threads + 1, sizeof *a->threads);
    if (!a->released || !a->to_release || !a->position || !a->threads) {
        ls__ahead_close(a);
        return ls__fail_memory("an iterator", sizeof *a);
    }
    *out = a;
    return LS_OK;
}

void ls__ahead_flush(ls__ahead *a)
{
    ls__crew_halt(a);
    while (a->first) {
        ls__entry *e = a->first;
        a->first = e->next;
        ls__crew_recycle(a, e);
    }
    a->last = a->to_work = NULL;
    a->taker = NULL;
    a->held = a->waiting = 0;
    a->busy = a->full = a->ended = a->release_wanted = a->warm = false;
}

static void free_entries(ls__entry *e)
{
    while (e) {
        ls__entry *next = e->next;
        ls__turn_free(&e->turn);
        free(e);
        e = next;
    }
}

bool ls__ahead_close(ls__ahead *a)
{
    if (!a)
        return true;
    const bool here = !ls__crew_is_lost(a);
    ls__ahead_flush(a);
    free_entries(a->spare);
    free(a->threads);
    free(a->released);
    free(a->to_release);
    free(a->position);
    if (here) { /* signals wait for those who wait for them */
        ls__place_end(&a->ready);
        ls__place_end(&a->work);
        ls__lock_end(&a->lock);
    }
    free(a);
    return here;
}

/* ---- pulling -------------------------------------------------------------------------------- */

bool ls__ahead_goes(ls__ahead *a)
{
    if (a->n_threads > 0)
        return true;
    bool second = a->warm;
    a->warm = true;
    return second && a->plan.threads > 0 && a->took >= a->plan.patience;
}

/* An average, in which one that took very long (the machine was busy elsewhere) is not enough: three are. */
void ls__ahead_took(ls__ahead *a, int64_t nanoseconds)
{
    const int64_t most = 2 * a->plan.patience;
    a->took += ((nanoseconds < most ? nanoseconds : most) - a->took) / 4;
}

/* The first turn is done with. */
static void end_turn(ls__ahead *a, ls__entry *e)
{
    ls__lock_take(&a->lock);
    a->first = e->next;
    if (!a->first)
        a->last = NULL;
    a->held -= ls__crew_weight(e);
    ls__crew_recycle(a, e);
    if (a->full && a->held <= a->plan.room / 2) {
        a->full = false;
        ls__place_tell(&a->work);
    }
    ls__lock_give(&a->lock);
}

/* Elements of the first turn, which is done and has some. */
static ls_status give(ls__ahead *a, ls__entry *e, int most, ls__chunk *out)
{
    ls__chunk *from = &e->turn.out;
    const int left = from->n - e->given, n = left < most ? left : most;
    ls_status st = ls__chunk_room(out, n, from->leaves, a->it->words);
    if (st)
        return st; /* they are still there */
    ls__it_holds(a->it, -ls__crew_bytes(from, e->given, n));
    for (int i = 0; i < n; i++)
        ls__chunk_move(out, from, e->given + i); /* nothing is borrowed: it cannot fail */
    memcpy(a->position, ls__chunk_after(out, n - 1), (size_t)a->it->words * sizeof *a->position);
    e->given += n;
    if (e->given == from->n)
        end_turn(a, e);
    return LS_OK;
}

/* Who pulls, and would have to wait, does what there is to do; false: nothing. Where there is no work but
 * taking, that is left to the thread that has the input's memory near it. */
static bool help(ls__ahead *a)
{
    if (!a->plan.work)
        return false;
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    const bool helped = ls__crew_step(a, a, a->plan.at_once);
    ls__error_scope_close(&scope, LS_OK, "%s", a->plan.name);
    return helped;
}

static ls__entry *wait_for_first(ls__ahead *a)
{
    ls__lock_take(&a->lock);
    while (!a->first || !a->first->done)
        if (!help(a))
            ls__place_wait(&a->ready, &a->lock, a->spin);
    ls__entry *e = a->first;
    ls__crew_tell_of_work(a); /* if it was told here, and is done by nobody now */
    ls__lock_give(&a->lock);
    return e;
}

ls_status ls__ahead_pull(ls__ahead *a, int most, ls__chunk *out)
{
    ls_status st = LS_OK;
    if (ls__crew_is_lost(a))
        return lost_error();
    if (a->n_threads == 0)
        st = ls__crew_start(a);
    if (st)
        return st;
    ls__entry *e = wait_for_first(a);
    st = e->status;
    if (!st)
        return give(a, e, most, out);
    memcpy(a->position, e->turn.after, (size_t)a->it->words * sizeof *a->position);
    if (st != LS_END) { /* the end stays where it is */
        ls__error_put(&e->error);
        a->it->none_lost = e->turn.none_lost;
        end_turn(a, e);
    }
    return st;
}

bool ls__ahead_words(const ls__ahead *a, int64_t *words)
{
    if (a->n_threads > 0)
        memcpy(words, a->position, (size_t)a->it->words * sizeof *words);
    return a->n_threads > 0;
}

/* ---- the input --------------------------------------------------------------------------------- */

ls_status ls__ahead_enter(ls__ahead *a)
{
    if (ls__crew_is_lost(a))
        return lost_error();
    ls__lock_take(&a->lock);
    a->input_wanted = true;
    while (a->busy)
        ls__place_wait(&a->ready, &a->lock, a->spin);
    a->input_wanted = false;
    a->busy = true;
    ls__lock_give(&a->lock);
    return LS_OK;
}

void ls__ahead_leave(ls__ahead *a)
{
    ls__lock_take(&a->lock);
    ls__crew_free_input(a);
    ls__lock_give(&a->lock);
}

void ls__ahead_release(ls__ahead *a, const int64_t *words)
{
    if (ls__crew_is_lost(a))
        return;
    if (a->n_threads == 0) {
        ls__it_release(a->input, words);
        return;
    }
    ls__lock_take(&a->lock);
    memcpy(a->released, words, (size_t)a->input->words * sizeof *words);
    a->release_wanted = true;
    ls__lock_give(&a->lock);
}
