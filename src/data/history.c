/*
 * Histories. Invariant: base and the events behind it, applied in order, give the moment after any
 * element since; a dataset belongs to the base that has it in a slot, else to the event that opened
 * it. Words lie in a queue of their own, in the order of the events that have them.
 */
#include "data/history.h"

#include <stdlib.h>
#include <string.h>

/* A dataset that is open so many elements of the input longer than others has its origin turned into
 * bytes, so that the input need not remember it. */
enum { LONG_OPEN = 256 };

typedef enum what { INPUT, OPENED, CLOSED, TAKEN, FAILED } what;

typedef struct event {
    what what;
    int slot;
    int n_words;
    int current;      /* taken, failed: the slot whose turn it is then */
    int64_t given;    /* taken, failed: elements of it */
    int64_t number;   /* input: of its next element */
    ls__inner *inner; /* opened */
} event;

/* A queue in one piece. */
typedef struct queue {
    char *at;
    size_t item, first, n, room;
} queue;

struct ls__history {
    ls__it *input;
    int n_slots;
    ls__moment base, asked;
    int64_t *input_words; /* the base's */
    queue events, words;
};

/* ---- queues --------------------------------------------------------------------------------- */

static ls_status make_room(queue *q, size_t more)
{
    if (q->room - q->first - q->n >= more)
        return LS_OK;
    if (q->room - q->n >= more &&
        q->first >= q->n) { /* each item moves once at most for each pop */
        memmove(q->at, q->at + q->first * q->item, q->n * q->item);
        q->first = 0;
        return LS_OK;
    }
    size_t room = 2 * (q->n + more) + 64;
    char *at = malloc(room * q->item);
    if (!at)
        return ls__fail_memory("the history of an iterator", room * q->item);
    if (q->n)
        memcpy(at, q->at + q->first * q->item, q->n * q->item);
    free(q->at);
    q->at = at;
    q->first = 0;
    q->room = room;
    return LS_OK;
}

static void *front(const queue *q)
{
    return q->at + q->first * q->item;
}

/* There is room. Nothing for items: none. */
static void push(queue *q, const void *items, size_t n)
{
    if (items)
        memcpy(q->at + (q->first + q->n) * q->item, items, n * q->item);
    q->n += n;
}

static void pop(queue *q, size_t n)
{
    q->n -= n;
    q->first = q->n ? q->first + n : 0;
}

/* ---- datasets --------------------------------------------------------------------------------- */

ls__inner *ls__inner_new(ls__it *it, int64_t number, const int64_t *before, int n_before)
{
    ls__inner *inner = calloc(1, sizeof *inner);
    if (inner) {
        inner->before = malloc(((size_t)n_before + 1) * sizeof *before);
        inner->words = malloc(((size_t)it->words + 1) * sizeof *before);
    }
    if (!inner || !inner->before || !inner->words) {
        ls__inner_free(inner);
        ls__fail_memory("an iterator", sizeof *inner);
        return NULL;
    }
    inner->it = it;
    inner->number = number;
    memcpy(inner->before, before, (size_t)n_before * sizeof *before);
    ls__it_words(it, inner->words);
    return inner;
}

void ls__inner_free(ls__inner *inner)
{
    if (!inner)
        return;
    ls__it_close(inner->it);
    free(inner->saved);
    free(inner->before);
    free(inner->words);
    free(inner);
}

/* ---- making ----------------------------------------------------------------------------------- */

static bool make_moment(ls__moment *m, int slots)
{
    m->slots = calloc((size_t)slots, sizeof *m->slots);
    m->words = calloc((size_t)slots, sizeof *m->words);
    return m->slots && m->words;
}

ls__history *ls__history_new(ls__it *input, int slots)
{
    ls__history *h = calloc(1, sizeof *h);
    if (!h)
        goto no_memory;
    h->input = input;
    h->n_slots = slots;
    h->events.item = sizeof(event);
    h->words.item = sizeof(int64_t);
    h->input_words = calloc((size_t)input->words + 1, sizeof *h->input_words);
    if (!make_moment(&h->base, slots) || !make_moment(&h->asked, slots) || !h->input_words ||
        make_room(&h->events, 1) || make_room(&h->words, 1))
        goto no_memory;
    h->base.input = h->input_words;
    ls__it_words(input, h->input_words);
    return h;
no_memory:
    ls__fail_memory("the history of an iterator", (size_t)slots * sizeof(ls__inner *));
    ls__history_free(h);
    return NULL;
}

void ls__history_free(ls__history *h)
{
    if (!h)
        return;
    for (int i = 0; h->base.slots && i < h->n_slots; i++)
        ls__inner_free(h->base.slots[i]);
    for (size_t i = 0; i < h->events.n; i++)
        ls__inner_free(((event *)front(&h->events))[i].inner);
    free(h->base.slots);
    free(h->base.words);
    free(h->asked.slots);
    free(h->asked.words);
    free(h->input_words);
    free(h->events.at);
    free(h->words.at);
    free(h);
}

void ls__history_begin(ls__history *h, const ls__moment *m)
{
    h->base.count = m->count;
    h->base.number = m->number;
    h->base.current = m->current;
    h->base.given = m->given;
    ls__it_words(h->input, h->input_words);
    for (int i = 0; i < h->n_slots; i++) {
        h->base.slots[i] = m->slots[i];
        h->base.words[i] = m->slots[i] ? m->slots[i]->words : NULL;
    }
}

/* ---- noting ------------------------------------------------------------------------------------- */

ls_status ls__history_room(ls__history *h, int events, size_t words)
{
    ls_status st = make_room(&h->events, (size_t)events);
    return st ? st : make_room(&h->words, words);
}

static void note(ls__history *h, const event *e, const int64_t *words)
{
    push(&h->events, e, 1);
    push(&h->words, words, (size_t)e->n_words);
}

void ls__history_input(ls__history *h, const int64_t *words, int64_t number)
{
    note(h, &(event){ .what = INPUT, .n_words = h->input->words, .number = number }, words);
}

void ls__history_opened(ls__history *h, int slot, ls__inner *inner)
{
    note(h, &(event){ .what = OPENED, .slot = slot, .inner = inner }, NULL);
}

void ls__history_closed(ls__history *h, int slot)
{
    note(h, &(event){ .what = CLOSED, .slot = slot }, NULL);
}

void ls__history_taken(ls__history *h, int slot, const int64_t *words, int n_words, int current,
                       int64_t given)
{
    note(h,
         &(event){
             .what = TAKEN, .slot = slot, .n_words = n_words, .current = current, .given = given },
         words);
}

void ls__history_failed(ls__history *h, int slot, ls__it *inner, int current, int64_t given)
{
    const event e = { .what = FAILED,
                      .slot = slot,
                      .n_words = inner ? inner->words : 0,
                      .current = current,
                      .given = given };
    note(h, &e, NULL);
    if (inner)
        ls__it_words(inner, (int64_t *)front(&h->words) + h->words.n - e.n_words);
}

/* ---- moments -------------------------------------------------------------------------------------- */

static void apply(ls__moment *m, const event *e, const int64_t *words)
{
    switch (e->what) {
    case INPUT:
        m->input = words;
        m->number = e->number;
        break;
    case OPENED:
        m->slots[e->slot] = e->inner;
        m->words[e->slot] = e->inner->words;
        break;
    case CLOSED:
        m->slots[e->slot] = NULL;
        break;
    case TAKEN:
    case FAILED:
        if (e->n_words > 0)
            m->words[e->slot] = words;
        m->current = e->current;
        m->given = e->given;
        m->count++;
        break;
    }
}

ls_status ls__history_at(ls__history *h, int64_t count, ls__moment *out)
{
    const size_t slots = (size_t)h->n_slots;
    ls__moment m = h->base;
    m.slots = memcpy(h->asked.slots, h->base.slots, slots * sizeof *m.slots);
    m.words = memcpy(h->asked.words, h->base.words, slots * sizeof *m.words);
    const event *e = front(&h->events), *end = e + h->events.n;
    const int64_t *words = front(&h->words);
    for (; e < end && m.count < count; words += e->n_words, e++)
        apply(&m, e, words);
    if (m.count != count)
        return ls__fail(LS_STATE, "a position after %lld elements and failures, which is gone",
                        (long long)count);
    *out = m;
    return LS_OK;
}

/* ---- releasing -------------------------------------------------------------------------------------- */

/* The oldest element of the input whose position would be asked for; NULL: only where it stands. */
static ls__inner *oldest(const ls__history *h)
{
    ls__inner *found = NULL;
    for (int i = 0; i < h->n_slots; i++) {
        ls__inner *inner = h->base.slots[i];
        if (inner && !inner->is_saved && (!found || inner->number < found->number))
            found = inner;
    }
    return found;
}

/* What cannot be saved is refused when somebody asks for it. */
static bool save_origin(const ls__history *h, ls__inner *inner)
{
    ls__bytes_out saved = { 0 };
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    ls_status st = ls__it_save(h->input, inner->before, &saved);
    ls_error();
    ls__error_scope_close(&scope, LS_OK, "a position");
    if (st || saved.failed) {
        ls__bytes_out_free(&saved);
        return false;
    }
    inner->saved = saved.at;
    inner->saved_bytes = saved.used;
    return inner->is_saved = true;
}

static void release_input(ls__history *h)
{
    if (h->input->light)
        return;
    ls__inner *inner = oldest(h);
    while (inner && h->base.number - inner->number > LONG_OPEN) {
        if (!save_origin(h, inner))
            break;
        inner = oldest(h);
    }
    ls__it_release(h->input, inner ? inner->before : h->base.input);
}

/* The base keeps its words where it has memory for them, and closes what only it had. */
static void apply_to_base(ls__history *h, const event *e, const int64_t *words)
{
    const bool moved = (e->what == TAKEN || e->what == FAILED) && e->n_words > 0;
    ls__inner *inner = e->what == CLOSED || moved ? h->base.slots[e->slot] : NULL;
    apply(&h->base, e, words);
    if (e->what == INPUT) {
        memcpy(h->input_words, words, (size_t)e->n_words * sizeof *words);
        h->base.input = h->input_words;
    } else if (moved) {
        memcpy(inner->words, words, (size_t)e->n_words * sizeof *words);
        h->base.words[e->slot] = inner->words;
        ls__it_release(inner->it, inner->words);
    } else if (e->what == CLOSED) {
        ls__inner_free(inner);
    }
}

void ls__history_release(ls__history *h, int64_t count)
{
    bool input = false;
    while (h->base.count < count && h->events.n > 0) {
        const event *e = front(&h->events);
        const size_t words = (size_t)e->n_words;
        input |= e->what != TAKEN;
        apply_to_base(h, e, front(&h->words));
        pop(&h->words, words);
        pop(&h->events, 1);
    }
    if (input)
        release_input(h);
}
