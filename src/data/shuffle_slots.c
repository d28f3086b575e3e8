/*
 * The buffer of a shuffle, and the notes of what was done with it. Invariant: data and origin of a slot
 * that is not the hole belong to one element; the notes of events first_noted .. events are there.
 */
#include <stdlib.h>
#include <string.h>

#include "data/shuffle.h"
#include "os/pages.h"

/* ---- memory ---------------------------------------------------------------------------------- */

/* Bytes of slots from which on they are all over a large page: draws go from end to end, and of small pages a processor
 * has forgotten most from batch to batch. */
enum { MANY = LS__LARGE_PAGE / 4 };

/* Grows with what there is to hold: a buffer may be given far too large. */
ls_status ls__shuffle_make_room(ls__shuffle *s, const ls__shuffle_options *o, int64_t slots)
{
    if (slots <= s->room || s->leaves < 0)
        return LS_OK;
    int64_t room = slots + s->room + 64;
    room = room < o->buffer ? room : o->buffer;
    const size_t each = (size_t)ls__shuffle_slot_words(s) * sizeof *s->slots;
    const size_t bytes = (size_t)room * each, before = (size_t)s->room * each;
    if ((size_t)room > SIZE_MAX / 2 / each)
        return ls__fail_memory("the buffer of ls_shuffle", SIZE_MAX);
    char *more = ls__pages_new(bytes > MANY && bytes < LS__LARGE_PAGE ? LS__LARGE_PAGE : bytes);
    if (!more)
        return ls__fail_memory("the buffer of ls_shuffle", bytes);
    if (before)
        memcpy(more, s->slots, before);
    memset(more + before, 0, bytes - before);
    free(s->slots);
    s->slots = (int64_t *)more;
    s->bytes += (int64_t)(bytes - before);
    s->room = room;
    return LS_OK;
}

void ls__shuffle_empty(ls__shuffle *s)
{
    for (int64_t i = 0; i < s->filled && i < s->room; i++) {
        int64_t *slot = ls__shuffle_slot(s, i);
        ls__store_drop(&s->store, ls__shuffle_kept(slot));
        slot[0] = 0;
    }
    for (; s->next < s->kept; s->next++)
        ls__store_drop(&s->store, s->coming[s->next]);
    ls__chunk_clear(&s->ahead);
    s->next = s->kept = 0;
    s->filled = 0;
    s->hole = -1;
}

/* Once a pull: the count is shared with other threads. */
void ls__shuffle_declare(ls__it *it)
{
    ls__shuffle *s = it->state;
    const int64_t bytes = s->bytes + s->store.bytes;
    if (bytes != s->declared)
        ls__it_holds(it, bytes - s->declared);
    s->declared = bytes;
}

/* ---- elements --------------------------------------------------------------------------------- */

/* The next element is behind what failed: no neighbour of the last, where neighbours matter. */
static ls_status lose(ls__shuffle *s, ls_status st)
{
    s->pulled += s->input->light;
    s->failures++;
    ls__chunk_clear(&s->ahead);
    ls__it_words(s->input, s->before);
    return st;
}

/* When memory runs out half-way, the next call goes on. */
static ls_status keep_ahead(ls__shuffle *s)
{
    for (; s->kept < s->ahead.n; s->kept++) {
        ls__kept *e = s->again ? NULL : ls__store_keep(&s->store, &s->ahead, s->kept);
        if (!e && !s->again)
            return LS_NO_MEMORY;
        s->coming[s->kept] = e;
    }
    return LS_OK;
}

ls_status ls__shuffle_pull_ahead(ls__it *it, int most)
{
    ls__shuffle *s = it->state;
    ls_status st = LS_OK;
    if (!s->input->light)
        st = ls__shuffle_mark_start(it);
    if (st)
        return st;
    if (s->next == s->ahead.n && !s->ended) {
        ls__chunk_clear(&s->ahead);
        s->next = s->kept = 0;
        st = ls__it_pull(s->input, most, &s->ahead);
        s->ended = st == LS_END;
    }
    if (st)
        return s->ended ? LS_OK : lose(s, st);
    if (s->kept == s->ahead.n)
        return LS_OK;
    if (s->leaves < 0) {
        s->leaves = s->ahead.leaves;
        s->store = (ls__store){ .leaves = s->leaves };
    }
    s->structure = s->ahead.structure;
    if (s->leaves != s->ahead.leaves)
        return lose(s, ls__fail(LS_SHAPE, "ls_shuffle: an element of %d leaves after those of %d",
                                s->ahead.leaves, s->leaves));
    if (!s->input->light)
        st = ls__shuffle_mark_ahead(it);
    if (!st)
        st = keep_ahead(s);
    if (!st)
        s->failures = 0;
    return st;
}

/* Behind the next element. */
static void go_on(ls__shuffle *s)
{
    s->pulled++;
    memcpy(s->before, ls__chunk_after(&s->ahead, s->next),
           (size_t)s->input->words * sizeof *s->before);
    s->next++;
}

void ls__shuffle_fill(ls__shuffle *s, int64_t slot)
{
    int64_t *to = ls__shuffle_slot(s, slot);
    to[0] = s->again ? LS__SHUFFLE_AGAIN : (int64_t)(intptr_t)s->coming[s->next];
    to[1] = s->pulled;
    memcpy(to + 2, s->before, (size_t)s->origin_words * sizeof *to);
    go_on(s);
}

void ls__shuffle_pass_over(ls__shuffle *s)
{
    ls__store_drop(&s->store, s->coming[s->next]);
    go_on(s);
}

void ls__shuffle_close_hole(ls__shuffle *s)
{
    const int64_t last = --s->filled;
    if (s->hole != last) {
        int64_t *from = ls__shuffle_slot(s, last);
        memcpy(ls__shuffle_slot(s, s->hole), from,
               (size_t)ls__shuffle_slot_words(s) * sizeof *from);
        from[0] = 0;
    }
}

/* ---- notes: event, draws, filled, hole, pulled, failures; number, words before; words of the input */

enum { HEAD = 6 };

static size_t note_words(const ls__shuffle *s)
{
    return HEAD + 1 + 2 * (size_t)s->origin_words;
}

ls_status ls__shuffle_make_notes_room(ls__shuffle *s, int events)
{
    const size_t each = note_words(s);
    if (s->note_first > s->note_count) { /* more than half is forgotten */
        memmove(s->notes, s->notes + s->note_first * each, s->note_count * each * sizeof *s->notes);
        s->note_first = 0;
    }
    const size_t want = s->note_first + s->note_count + (size_t)events;
    if (want <= s->note_room)
        return LS_OK;
    const size_t room = 2 * want + 64, bytes = room * each * sizeof *s->notes;
    int64_t *more = realloc(s->notes, bytes);
    if (!more)
        return ls__fail_memory("the draws of ls_shuffle", bytes);
    s->notes = more;
    s->bytes += (int64_t)((room - s->note_room) * each * sizeof *s->notes);
    s->note_room = room;
    return LS_OK;
}

static void put_note(ls__shuffle *s, ls__shuffle_event event, const int64_t *origin)
{
    const size_t words = (size_t)s->origin_words;
    int64_t *note = s->notes + (s->note_first + s->note_count++) * note_words(s);
    note[0] = event;
    note[1] = s->draws;
    note[2] = s->filled;
    note[3] = s->hole;
    note[4] = s->pulled;
    note[5] = s->failures;
    if (origin)
        memcpy(note + HEAD, origin, (1 + words) * sizeof *note);
    memcpy(note + HEAD + 1 + words, s->before, words * sizeof *note);
}

void ls__shuffle_write_note(ls__shuffle *s, ls__shuffle_event event, const int64_t *origin)
{
    s->events++;
    put_note(s, event, origin);
}

void ls__shuffle_begin_notes(ls__shuffle *s)
{
    s->note_first = s->note_count = 0;
    s->first_noted = s->events;
    put_note(s, LS__SHUFFLE_FAILED, NULL);
}

ls__shuffle_note ls__shuffle_read_note(const ls__shuffle *s, int64_t number)
{
    const int64_t *note =
        s->notes + (s->note_first + (size_t)(number - s->first_noted)) * note_words(s);
    return (ls__shuffle_note){ .event = note[0],
                               .draws = note[1],
                               .filled = note[2],
                               .hole = note[3],
                               .pulled = note[4],
                               .failures = note[5],
                               .origin = note + HEAD,
                               .stand = note + HEAD + 1 + s->origin_words };
}

void ls__shuffle_forget_notes(ls__shuffle *s, int64_t before)
{
    if (before > s->events)
        before = s->events;
    if (before <= s->first_noted)
        return;
    const size_t gone = (size_t)(before - s->first_noted);
    s->note_first += gone;
    s->note_count -= gone;
    s->first_noted = before;
}
