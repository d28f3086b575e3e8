/*
 * Running ahead. Invariants, under the lock:
 *
 * - `busy`: somebody has the input, who alone may touch it, without the lock.
 * - `first` to `last` are the turns in the order of the input. A turn belongs to the thread that took
 *   it until it is done, then to who pulls the stage; only the first is given from.
 * - `held` counts the elements of all of them. When it reaches the room, `full` is set until half of
 *   it has been given, so that threads do not wake up for every single element.
 * - Once `ended`, nothing is taken any more, and the threads end.
 */
#include "data/ahead.h"

#include <stdlib.h>
#include <string.h>

#include "os/lock.h"
#include "os/plain_thread.h"

/* Turns that are there from the start; others are made as they are needed. */
enum { TURNS_AT_START = 32 };

typedef struct entry {
    ls__turn turn;
    struct entry *next;
    ls_status status;
    bool done;
    int given; /* elements of it */
    ls__error_record error;
} entry;

struct ls__ahead {
    ls__it *it, *input;
    ls__ahead_plan plan;
    ls__lock lock;
    ls__signal work;  /* a thread may have something to do */
    ls__signal ready; /* what the puller waits for: the first turn is done, or the input is free */
    entry *first, *last, *spare;
    int64_t held;
    bool busy, full, ended, stop;
    bool input_wanted;   /* by the puller, before any other */
    bool release_wanted; /* up to `released` */
    bool warm;           /* there was a pull */
    int64_t *released;   /* words of the input */
    int64_t *to_release; /* the same, for who has the input */
    int64_t *position;   /* the stage's, where the next pull begins */
    ls__thread **threads;
    int n_threads; /* that run */
};

/* ---- turns -------------------------------------------------------------------------------- */

static entry *new_entry(const ls__ahead *a)
{
    entry *e = calloc(1, sizeof *e);
    if (e && ls__turn_open(&e->turn, a->it->words))
        return e;
    free(e);
    return NULL;
}

static void free_entries(entry *e)
{
    while (e) {
        entry *next = e->next;
        ls__turn_free(&e->turn);
        free(e);
        e = next;
    }
}

/* What elements of a turn keep in memory for themselves alone. */
static int64_t bytes_of(const ls__chunk *c, int from, int n)
{
    int64_t bytes = 0;
    for (int i = from * c->leaves; i < (from + n) * c->leaves; i++)
        bytes += c->data[i].hold == LS__OWNED ? (int64_t)c->data[i].bytes : 0;
    return bytes;
}

/* Elements that it counts for. */
static int weight(const entry *e)
{
    return e->turn.out.n > 0 ? e->turn.out.n : 1;
}

static void recycle(ls__ahead *a, entry *e)
{
    if (e->done && !e->status)
        ls__it_holds(a->it, -bytes_of(&e->turn.out, e->given, e->turn.out.n - e->given));
    ls__turn_clear(&e->turn);
    e->next = a->spare;
    a->spare = e;
}

/* ---- threads ------------------------------------------------------------------------------ */

/* A turn behind all others, and how many elements it may have. NULL: no memory; those that are on
 * their way have to do, and wake us up when they are given. */
static entry *begin_turn(ls__ahead *a, int *most)
{
    entry *e = a->spare;
    if (e)
        a->spare = e->next;
    else
        e = new_entry(a);
    if (!e) {
        a->full = true;
        return NULL;
    }
    int64_t left = a->plan.room - a->held;
    *most = left < a->plan.at_once ? (int)left : a->plan.at_once;
    a->held += *most;
    a->full = a->held >= a->plan.room;
    e->next = NULL;
    e->done = false;
    e->given = 0;
    e->status = LS_OK;
    if (a->last)
        a->last->next = e;
    else
        a->first = e;
    a->last = e;
    return e;
}

/* The input is free: for the puller first. */
static void free_input(ls__ahead *a)
{
    a->busy = false;
    ls__signal_one(a->input_wanted ? &a->ready : &a->work);
}

/* Waits for the next turn, and takes it; NULL: there is none any more. Has the lock before and after,
 * and not between. */
static entry *take_turn(ls__ahead *a)
{
    entry *e = NULL;
    int most = 0;
    while (!e && !a->stop && !a->ended) {
        if (!a->busy && !a->full && !a->input_wanted)
            e = begin_turn(a, &most);
        if (!e)
            ls__signal_wait(&a->work, &a->lock);
    }
    if (!e)
        return NULL;
    a->busy = true;
    bool release = a->release_wanted;
    a->release_wanted = false;
    if (release)
        memcpy(a->to_release, a->released, (size_t)a->input->words * sizeof *a->released);
    ls__lock_give(&a->lock);
    if (release)
        ls__it_release(a->input, a->to_release);
    ls_status st = a->plan.take(a->it, most, &e->turn);
    ls__lock_take(&a->lock);
    e->status = st;
    a->ended = st == LS_END;
    a->held += weight(e) - most;
    a->full = a->held >= a->plan.room;
    free_input(a);
    return e;
}

static void finish_turn(ls__ahead *a, entry *e, ls_status st)
{
    if (!st)
        ls__it_holds(a->it, bytes_of(&e->turn.out, 0, e->turn.out.n));
    ls__error_take(&e->error); /* a thread of ours has no other */
    ls__lock_take(&a->lock);
    e->status = st;
    e->done = true;
    if (e == a->first)
        ls__signal_one(&a->ready);
}

static void run(void *user)
{
    ls__ahead *a = user;
    ls__lock_take(&a->lock);
    for (entry *e = take_turn(a); e; e = take_turn(a)) {
        ls_status st = e->status;
        ls__lock_give(&a->lock);
        if (!st && a->plan.work)
            st = a->plan.work(a->it, &e->turn);
        finish_turn(a, e, st);
    }
    ls__signal_all(&a->work); /* the others end, too */
    ls__lock_give(&a->lock);
}

/* At least one turn, so that there is always one that is on its way or to be had. */
static ls_status make_turns(ls__ahead *a)
{
    if (a->spare)
        return LS_OK;
    for (int i = 0; i < TURNS_AT_START && i < a->plan.room; i++) {
        entry *e = new_entry(a);
        if (e)
            recycle(a, e);
    }
    return a->spare ? LS_OK : ls__fail_memory(a->plan.name, sizeof(entry));
}

static ls_status start(ls__ahead *a)
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

/* In a process that was forked since they started there are no threads, and the lock may be taken
 * for ever. */
static bool lost(const ls__ahead *a)
{
    return a->n_threads > 0 && !ls__thread_is_here(a->threads[0]);
}

static ls_status lost_error(void)
{
    return ls__hint(ls__fail(LS_STATE, "this process was forked: the iterator's threads are in the "
                                       "parent"),
                    "open iterators after fork");
}

static void halt(ls__ahead *a)
{
    if (!lost(a)) {
        ls__lock_take(&a->lock);
        a->stop = true;
        ls__signal_all(&a->work);
        ls__lock_give(&a->lock);
    } else {
        a->first = NULL; /* nobody knows in what state they are */
    }
    for (int i = 0; i < a->n_threads; i++)
        ls__thread_join(a->threads[i]);
    a->n_threads = 0;
    a->stop = false;
}

/* ---- opening and closing -------------------------------------------------------------------- */

ls_status ls__ahead_open(ls__it *it, ls__it *input, const ls__ahead_plan *plan, ls__ahead **out)
{
    ls__ahead *a = calloc(1, sizeof *a);
    if (!a)
        return ls__fail_memory("an iterator", sizeof *a);
    a->it = it;
    a->input = input;
    a->plan = *plan;
    ls__lock_init(&a->lock);
    ls__signal_init(&a->work);
    ls__signal_init(&a->ready);
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
    halt(a);
    while (a->first) {
        entry *e = a->first;
        a->first = e->next;
        recycle(a, e);
    }
    a->last = NULL;
    a->held = 0;
    a->busy = a->full = a->ended = a->release_wanted = a->warm = false;
}

void ls__ahead_close(ls__ahead *a)
{
    if (!a)
        return;
    const bool here = !lost(a);
    ls__ahead_flush(a);
    free_entries(a->spare);
    free(a->threads);
    free(a->released);
    free(a->to_release);
    free(a->position);
    if (here) { /* signals wait for those who wait for them */
        ls__signal_end(&a->ready);
        ls__signal_end(&a->work);
        ls__lock_end(&a->lock);
    }
    free(a);
}

/* ---- pulling -------------------------------------------------------------------------------- */

bool ls__ahead_goes(ls__ahead *a)
{
    if (a->n_threads > 0)
        return true;
    bool second = a->warm;
    a->warm = true;
    return second && a->plan.threads > 0;
}

/* The first turn is done with. */
static void end_turn(ls__ahead *a, entry *e)
{
    ls__lock_take(&a->lock);
    a->first = e->next;
    if (!a->first)
        a->last = NULL;
    a->held -= weight(e);
    recycle(a, e);
    if (a->full && a->held <= a->plan.room / 2) {
        a->full = false;
        ls__signal_one(&a->work);
    }
    ls__lock_give(&a->lock);
}

/* Elements of the first turn, which is done and has some. */
static ls_status give(ls__ahead *a, entry *e, int most, ls__chunk *out)
{
    ls__chunk *from = &e->turn.out;
    const int left = from->n - e->given, n = left < most ? left : most;
    ls_status st = ls__chunk_room(out, n, from->leaves, a->it->words);
    if (st)
        return st; /* they are still there */
    ls__it_holds(a->it, -bytes_of(from, e->given, n));
    for (int i = 0; i < n; i++)
        ls__chunk_move(out, from, e->given + i); /* nothing is borrowed: it cannot fail */
    memcpy(a->position, ls__chunk_after(out, n - 1), (size_t)a->it->words * sizeof *a->position);
    e->given += n;
    if (e->given == from->n)
        end_turn(a, e);
    return LS_OK;
}

ls_status ls__ahead_pull(ls__ahead *a, int most, ls__chunk *out)
{
    ls_status st = LS_OK;
    if (lost(a))
        return lost_error();
    if (a->n_threads == 0)
        st = start(a);
    if (st)
        return st;
    ls__lock_take(&a->lock);
    while (!a->first || !a->first->done)
        ls__signal_wait(&a->ready, &a->lock);
    entry *e = a->first;
    ls__lock_give(&a->lock);
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
    if (lost(a))
        return lost_error();
    ls__lock_take(&a->lock);
    a->input_wanted = true;
    while (a->busy)
        ls__signal_wait(&a->ready, &a->lock);
    a->input_wanted = false;
    a->busy = true;
    ls__lock_give(&a->lock);
    return LS_OK;
}

void ls__ahead_leave(ls__ahead *a)
{
    ls__lock_take(&a->lock);
    free_input(a);
    ls__lock_give(&a->lock);
}

void ls__ahead_release(ls__ahead *a, const int64_t *words)
{
    if (lost(a))
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
