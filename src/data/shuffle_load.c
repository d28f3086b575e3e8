/*
 * A shuffle where a position says (shuffle_save.c). The elements in its buffer are read again, runs of
 * neighbours at once: as many as there are in it, wherever that is. An input that is not light is gone
 * through from a mark before the oldest of them.
 */
#include <stdlib.h>
#include <string.h>

#include "data/shuffle.h"

static ls_status no_memory(int64_t slots)
{
    return ls__fail_memory("a position of ls_shuffle", (size_t)slots * sizeof(ls__shuffle_place));
}

/* ---- reading what was saved ------------------------------------------------------------------- */

static ls_status get_head(const ls__shuffle_options *o, ls__bytes_in *from, ls__shuffle_past *p)
{
    ls_status st = ls__get_int(from, 0, INT64_MAX, &p->draws);
    /* a slot is a byte or more: what the bytes do not have need not be made room for */
    const int64_t bytes = from->end - from->at, drawn = p->draws > 0;
    p->hole = -1;
    if (!st)
        st = ls__get_int(from, drawn, o->buffer < bytes ? o->buffer : bytes, &p->filled);
    if (!st && drawn)
        st = ls__get_int(from, 0, p->filled - 1, &p->hole);
    if (st)
        return st;
    p->places = malloc(((size_t)p->filled + 1) * sizeof *p->places);
    return p->places ? LS_OK : no_memory(p->filled);
}

static int64_t slots_to_get(const ls__shuffle_past *p)
{
    return p->filled - (p->draws > 0);
}

/* Every slot is there once, and the hole is not. */
static ls_status check_slots(const ls__shuffle_past *p)
{
    unsigned char *seen = calloc((size_t)p->filled + 1, 1);
    if (!seen)
        return no_memory(p->filled);
    ls_status st = LS_OK;
    for (int64_t i = 0; i < p->filled && !st; i++) {
        const int64_t slot = i < p->n ? p->places[i].slot : p->hole;
        if (slot < 0 || slot >= p->filled || seen[slot]++)
            st = ls__position_corrupt();
    }
    free(seen);
    return st;
}

static ls_status get_words(const ls__shuffle *s, ls__bytes_in *from, ls__shuffle_past *p)
{
    const size_t words = (size_t)s->origin_words;
    p->origin = malloc(((size_t)p->filled + 1) * (words + 1) * sizeof *p->origin);
    if (!p->origin)
        return no_memory(p->filled);
    int64_t *at = p->origin, *before = at; /* the first is the input's own place */
    ls_status st = ls__get_ints(from, (int)words, at);
    p->stand = at;
    for (; p->n < slots_to_get(p) && !st; p->n++) {
        ls__shuffle_place *to = &p->places[p->n];
        st = ls__get_int(from, -p->filled, p->filled - 1, &to->slot);
        to->number = to->slot >= 0;
        if (!st && p->n == 0 && to->slot < 0)
            st = ls__position_corrupt();
        at += words;
        if (st || to->slot < 0) {
            to->slot = -1 - to->slot;
            continue;
        }
        st = ls__get_ints(from, (int)words, at);
        for (size_t w = 0; w < words; w++)
            at[w] = (int64_t)((uint64_t)at[w] + (uint64_t)before[w]);
        before = at;
    }
    return st ? st : check_slots(p);
}

static ls_status get_numbers(ls__bytes_in *from, int64_t first, ls__shuffle_past *p)
{
    ls_status st = LS_OK;
    for (int64_t number = first; p->n < slots_to_get(p) && !st; p->n++) {
        int64_t step;
        st = ls__get_int(from, p->n > 0, p->pulled - number, &step);
        if (!st)
            st = ls__get_int(from, 0, p->filled - 1, &p->places[p->n].slot);
        if (!st)
            p->places[p->n].number = number += step;
        if (!st && number >= p->pulled)
            st = ls__position_corrupt();
    }
    return st ? st : check_slots(p);
}

/* ---- reading the elements again ---------------------------------------------------------------- */

/* The slots are empty yet. */
static void begin(ls__shuffle *s, const ls__shuffle_past *p)
{
    s->filled = p->filled;
    s->hole = p->hole;
}

static int at_once(int64_t want)
{
    return want < LS__SHUFFLE_MOST_AT_ONCE ? (int)want : LS__SHUFFLE_MOST_AT_ONCE;
}

/* Pulls and makes room; the end of the input is none that was saved. */
static ls_status pull(ls__it *it, int64_t want)
{
    ls__shuffle *s = it->state;
    ls_status st = ls__shuffle_pull_ahead(it, at_once(want));
    if (!st && s->ended)
        st = ls__position_corrupt();
    return st ? st : ls__shuffle_make_room(s, it->dataset->options, s->filled);
}

static ls_status read_run(ls__it *it, const ls__shuffle_past *p, int64_t first, int64_t end)
{
    ls__shuffle *s = it->state;
    const int64_t *words = p->origin + (first + 1) * s->origin_words;
    ls_status st = ls__it_go(s->input, words);
    if (st)
        return st;
    memcpy(s->before, words, (size_t)s->origin_words * sizeof *words);
    s->pulled++; /* no neighbour of the run before */
    for (int64_t i = first; i < end && !st;) {
        st = pull(it, end - i);
        for (; !st && s->next < s->ahead.n && i < end; i++)
            ls__shuffle_fill(s, p->places[i].slot);
    }
    return st;
}

static ls_status read_words(ls__it *it, const ls__shuffle_past *p)
{
    ls__shuffle *s = it->state;
    const size_t bytes = (size_t)s->origin_words * sizeof *s->before;
    ls_status st = LS_OK;
    for (int64_t i = 0, end; i < p->n && !st; i = end) {
        for (end = i + 1; end < p->n && !p->places[end].number;)
            end++;
        st = read_run(it, p, i, end);
    }
    if (!st && memcmp(s->before, p->stand, bytes) != 0) {
        st = ls__it_go(s->input, p->stand);
        memcpy(s->before, p->stand, bytes);
        s->pulled++;
    }
    return st;
}

/* What fails on the way has failed before: nobody need hear of it. */
static ls_status pull_silently(ls__it *it, int64_t want)
{
    ls__shuffle *s = it->state;
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    ls_status st = pull(it, want);
    if (st && st != LS_NO_MEMORY && !s->ended) {
        ls_error();
        st = LS_OK;
    }
    return ls__error_scope_close(&scope, st, "ls_shuffle");
}

/* Elements up to the last one it had given, and the failures it had seen behind that. */
static ls_status go_through(ls__it *it, const ls__shuffle_past *p)
{
    ls__shuffle *s = it->state;
    ls_status st = LS_OK;
    for (int64_t i = 0; s->pulled < p->pulled && !st;) {
        st = pull_silently(it, p->pulled - s->pulled);
        while (s->next < s->ahead.n && !st)
            if (i < p->n && p->places[i].number == s->pulled)
                ls__shuffle_fill(s, p->places[i++].slot);
            else
                ls__shuffle_pass_over(s);
    }
    while (s->failures < p->failures && s->next == s->ahead.n && !st)
        st = pull_silently(it, 1);
    return st;
}

static ls_status load_by_words(ls__it *it, ls__bytes_in *from, ls__shuffle_past *p)
{
    ls__shuffle *s = it->state;
    ls_status st = get_words(s, from, p);
    if (st)
        return st;
    begin(s, p);
    return read_words(it, p);
}

static ls_status load_by_mark(ls__it *it, ls__bytes_in *from, ls__shuffle_past *p)
{
    ls__shuffle *s = it->state;
    int64_t number, longest;
    ls_status st = ls__shuffle_get_mark(it, from, &number, &longest);
    if (!st)
        st = ls__get_int(from, 0, longest, &p->pulled);
    if (!st && __builtin_add_overflow(p->pulled, number, &p->pulled))
        st = ls__position_corrupt();
    if (!st)
        st = ls__get_int(from, 0, INT64_MAX, &p->failures);
    if (!st)
        st = get_numbers(from, number, p);
    if (st)
        return st;
    begin(s, p);
    return go_through(it, p);
}

ls_status ls__shuffle_load(ls__it *it, ls__bytes_in *from)
{
    ls__shuffle *s = it->state;
    ls__shuffle_past p = { 0 };
    ls_status st = get_head(it->dataset->options, from, &p);
    if (!st)
        st = s->input->light ? load_by_words(it, from, &p) : load_by_mark(it, from, &p);
    if (!st) { /* not before: notes were of what was before */
        s->draws = s->events = p.draws;
        ls__shuffle_begin_notes(s);
    }
    ls__shuffle_free_past(&p);
    ls__shuffle_declare(it);
    return st;
}
