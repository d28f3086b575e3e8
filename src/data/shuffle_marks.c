/*
 * Marks: positions of an input that is not light, from where a shuffle goes through it again. One is
 * made every `buffer` elements, and more seldom where it is large (it costs about what it is long), and
 * kept as long as an element from behind it may be in the buffer, or in a buffer that may be asked for.
 */
#include <stdlib.h>
#include <string.h>

#include "data/shuffle.h"

enum { BYTES_AN_ELEMENT = 16 };

static int64_t way_to_next(const ls__shuffle_options *o, size_t bytes)
{
    const int64_t least = (int64_t)(bytes / BYTES_AN_ELEMENT);
    return o->buffer > least ? o->buffer : least;
}

void ls__shuffle_free_marks(ls__shuffle *s)
{
    for (int i = 0; i < s->n_marks; i++)
        ls__bytes_out_free(&s->marks[i].bytes);
    free(s->marks);
    s->marks = NULL;
    s->n_marks = s->mark_room = 0;
}

/* Takes the bytes over, also when it fails. */
static ls_status add(ls__it *it, int64_t number, ls__bytes_out *bytes)
{
    ls__shuffle *s = it->state;
    if (s->n_marks == s->mark_room) {
        const int room = 2 * s->mark_room + 4;
        ls__shuffle_mark *more = realloc(s->marks, (size_t)room * sizeof *more);
        if (!more) {
            ls__bytes_out_free(bytes);
            return ls__fail_memory("ls_shuffle", (size_t)room * sizeof *more);
        }
        s->marks = more;
        s->mark_room = room;
    }
    s->marks[s->n_marks++] = (ls__shuffle_mark){ number, *bytes };
    s->bytes += (int64_t)bytes->room;
    const int64_t way = way_to_next(it->dataset->options, bytes->used);
    if (__builtin_add_overflow(number, way, &s->next_mark))
        s->next_mark = INT64_MAX;
    return LS_OK;
}

/* The oldest element that may be asked for. */
static int64_t oldest(const ls__shuffle *s)
{
    int64_t least = ls__shuffle_read_note(s, s->first_noted).pulled - 1;
    for (int64_t i = s->first_noted + 1; i <= s->events; i++) {
        const ls__shuffle_note note = ls__shuffle_read_note(s, i);
        if (note.event != LS__SHUFFLE_FAILED && note.origin[0] < least)
            least = note.origin[0];
    }
    for (int64_t slot = 0; slot < s->filled && s->filled <= s->room; slot++)
        if (*ls__shuffle_slot(s, slot) && ls__shuffle_origin(s, slot)[0] < least)
            least = ls__shuffle_origin(s, slot)[0];
    return least;
}

static void forget_old(ls__shuffle *s)
{
    const int64_t least = oldest(s);
    int gone = 0;
    while (gone + 1 < s->n_marks && s->marks[gone + 1].number <= least) {
        s->bytes -= (int64_t)s->marks[gone].bytes.room;
        ls__bytes_out_free(&s->marks[gone++].bytes);
    }
    s->n_marks -= gone;
    memmove(s->marks, s->marks + gone, (size_t)s->n_marks * sizeof *s->marks);
}

/* An input that cannot be saved is an error of who wants to save, not of who pulls. */
static ls_status save_input(ls__shuffle *s, const int64_t *words, ls__bytes_out *to)
{
    ls__error_record outer;
    ls__error_take(&outer);
    ls_status st = ls__it_save(s->input, words, to);
    if (!st && to->failed)
        st = ls__fail_memory("a position", to->room);
    if (st && st != LS_NO_MEMORY) {
        ls__error_take(&s->no_marks);
        s->no_marks.status = st;
    }
    if (outer.status) { /* the first stays */
        ls__error_record later;
        ls__error_take(&later);
        ls__error_put(&outer);
    }
    return st;
}

static ls_status mark(ls__it *it, int64_t number, const int64_t *words)
{
    ls__shuffle *s = it->state;
    ls__bytes_out bytes = { 0 };
    ls_status st = save_input(s, words, &bytes);
    if (!st)
        return add(it, number, &bytes);
    ls__bytes_out_free(&bytes);
    return st == LS_NO_MEMORY ? st : LS_OK;
}

ls_status ls__shuffle_mark_start(ls__it *it)
{
    ls__shuffle *s = it->state;
    return s->n_marks > 0 || s->no_marks.status ? LS_OK : mark(it, s->pulled, s->before);
}

ls_status ls__shuffle_mark_ahead(ls__it *it)
{
    ls__shuffle *s = it->state;
    for (int i = 0; i < s->ahead.n && !s->no_marks.status; i++) {
        /* behind one that failed no element stands before: there is no position to save */
        if (s->pulled + i < s->next_mark || (i == 0 && s->failures))
            continue;
        ls_status st = mark(it, s->pulled + i, i ? ls__chunk_after(&s->ahead, i - 1) : s->before);
        if (st)
            return st;
        forget_old(s);
    }
    ls__it_release(s->input, ls__chunk_after(&s->ahead, s->ahead.n - 1));
    return LS_OK;
}

/* ---- saving and restoring ----------------------------------------------------------------------- */

ls_status ls__shuffle_put_mark(const ls__shuffle *s, int64_t first, int64_t *number,
                               ls__bytes_out *to)
{
    if (s->no_marks.status) {
        ls__error_put(&s->no_marks);
        return s->no_marks.status;
    }
    if (s->n_marks == 0) { /* nothing was pulled yet */
        ls__bytes_out start = { 0 };
        ls_status st = ls__it_save(s->input, s->before, &start);
        ls__put_int(to, s->pulled);
        ls__put_bytes(to, start.at, start.used);
        to->failed |= start.failed;
        ls__bytes_out_free(&start);
        *number = s->pulled;
        return st;
    }
    int i = s->n_marks - 1;
    while (i > 0 && s->marks[i].number > first)
        i--;
    *number = s->marks[i].number;
    ls__put_int(to, *number);
    ls__put_bytes(to, s->marks[i].bytes.at, s->marks[i].bytes.used);
    return LS_OK;
}

ls_status ls__shuffle_get_mark(ls__it *it, ls__bytes_in *from, int64_t *number, int64_t *longest)
{
    ls__shuffle *s = it->state;
    const ls__shuffle_options *o = it->dataset->options;
    const void *data = NULL;
    size_t bytes = 0;
    ls_status st = ls__get_int(from, 0, INT64_MAX, number);
    if (!st)
        st = ls__get_bytes(from, &data, &bytes);
    if (st)
        return st;
    ls__bytes_in at = { data, (const unsigned char *)data + bytes };
    st = ls__it_load(s->input, &at);
    if (!st && at.at != at.end)
        st = ls__position_corrupt();
    if (st)
        return st;
    ls__it_words(s->input, s->before);
    s->pulled = s->next_mark = *number; /* made again before the first pull */
    /* An element stays for more than 200 buffers with a chance of e^-200: no way is as long. */
    if (__builtin_mul_overflow(way_to_next(o, bytes) + LS__SHUFFLE_BLOCK, 256, longest))
        *longest = INT64_MAX;
    return LS_OK;
}
