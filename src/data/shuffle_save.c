/*
 * The position of a shuffle: what was in the buffer after a draw (or a failure), as places in the input.
 *
 *     draws, filled, hole (if there was a draw), then
 *       input light:      its words then; slots in the order of the input: the slot (as -1 - slot: it
 *                         follows the one before), words before the element as differences
 *       else:             a mark: number and position; how many elements the input had given since, and
 *                         how often it had failed since the last; slots in the order of the input:
 *                         difference of numbers, slot
 *
 * The bytes depend on the draws taken alone, not on what was drawn or pulled since.
 */
#include <stdlib.h>
#include <string.h>

#include "data/shuffle.h"

static ls_status no_memory(int64_t slots)
{
    return ls__fail_memory("a position of ls_shuffle", (size_t)slots * sizeof(ls__shuffle_place));
}

void ls__shuffle_free_past(ls__shuffle_past *p)
{
    free(p->origin);
    free(p->places);
}

/* ---- what was -------------------------------------------------------------------------------- */

/* Undoes events, the last one first. */
static void undo(const ls__shuffle *s, int64_t event, int64_t *origin)
{
    const size_t each = 1 + (size_t)s->origin_words, bytes = each * sizeof *origin;
    for (int64_t i = s->events; i > event; i--) {
        const ls__shuffle_note note = ls__shuffle_read_note(s, i);
        const ls__shuffle_note before = ls__shuffle_read_note(s, i - 1);
        if (note.event == LS__SHUFFLE_FAILED)
            continue;
        memcpy(origin + (size_t)note.hole * each, note.origin, bytes);
        if (note.event == LS__SHUFFLE_CLOSED && before.hole != note.filled)
            memcpy(origin + (size_t)note.filled * each, origin + (size_t)before.hole * each, bytes);
    }
}

static int by_number(const void *a, const void *b)
{
    const int64_t x = ((const ls__shuffle_place *)a)->number,
                  y = ((const ls__shuffle_place *)b)->number;
    return (x > y) - (x < y);
}

static ls_status find_past(const ls__shuffle *s, int64_t event, ls__shuffle_past *p)
{
    const size_t each = 1 + (size_t)s->origin_words;
    const ls__shuffle_note note = ls__shuffle_read_note(s, event);
    *p = (ls__shuffle_past){ .draws = note.draws,
                             .filled = note.filled,
                             .hole = note.hole,
                             .pulled = note.pulled,
                             .failures = note.failures,
                             .stand = note.stand };
    const int64_t most = s->filled + s->events - event;
    p->origin = malloc(((size_t)most + 1) * each * sizeof *p->origin);
    p->places = malloc(((size_t)most + 1) * sizeof *p->places);
    if (!p->origin || !p->places)
        return no_memory(most);
    for (int64_t slot = 0; slot < s->filled && slot < s->room; slot++)
        if (*ls__shuffle_slot(s, slot))
            memcpy(p->origin + (size_t)slot * each, ls__shuffle_origin(s, slot),
                   each * sizeof *p->origin);
    undo(s, event, p->origin);
    for (int64_t slot = 0; slot < p->filled; slot++)
        if (slot != p->hole)
            p->places[p->n++] = (ls__shuffle_place){ p->origin[(size_t)slot * each], slot };
    qsort(p->places, (size_t)p->n, sizeof *p->places, by_number);
    return LS_OK;
}

/* ---- saving ------------------------------------------------------------------------------------ */

static void put_differences(ls__bytes_out *to, int n, const int64_t *words, const int64_t *before)
{
    for (int i = 0; i < n; i++)
        ls__put_int(to, (int64_t)((uint64_t)words[i] - (uint64_t)before[i]));
}

static void put_words(const ls__shuffle *s, const ls__shuffle_past *p, ls__bytes_out *to)
{
    const int words = s->origin_words;
    const int64_t *before = p->stand;
    ls__put_ints(to, words, p->stand);
    for (int64_t i = 0; i < p->n; i++) {
        const ls__shuffle_place *at = &p->places[i];
        const int64_t *origin = &p->origin[at->slot * (1 + words)];
        if (i > 0 && at->number == p->places[i - 1].number + 1) {
            ls__put_int(to, -1 - at->slot);
            continue;
        }
        ls__put_int(to, at->slot);
        put_differences(to, words, origin + 1, before);
        before = origin + 1;
    }
}

static ls_status put_numbers(const ls__shuffle *s, const ls__shuffle_past *p, ls__bytes_out *to)
{
    int64_t before;
    ls_status st = ls__shuffle_put_mark(s, p->n ? p->places[0].number : p->pulled - 1, &before, to);
    if (st)
        return st;
    ls__put_int(to, p->pulled - before);
    ls__put_int(to, p->failures);
    for (int64_t i = 0; i < p->n; before = p->places[i++].number) {
        ls__put_int(to, p->places[i].number - before);
        ls__put_int(to, p->places[i].slot);
    }
    return LS_OK;
}

ls_status ls__shuffle_save(ls__it *it, const int64_t *words, ls__bytes_out *to)
{
    const ls__shuffle *s = it->state;
    if (words[0] < s->first_noted || words[0] > s->events)
        return ls__fail(LS_STATE, "ls_shuffle: the position after event %lld is forgotten",
                        (long long)words[0]);
    ls__shuffle_past p;
    ls_status st = find_past(s, words[0], &p);
    if (!st) {
        ls__put_int(to, p.draws);
        ls__put_int(to, p.filled);
        if (p.draws > 0)
            ls__put_int(to, p.hole);
        if (s->input->light)
            put_words(s, &p, to);
        else
            st = put_numbers(s, &p, to);
    }
    ls__shuffle_free_past(&p);
    return st;
}
