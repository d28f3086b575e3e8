/*
 * Positions of an interleave as bytes: elements given and failures, the slot whose turn it is and how many it
 * has given, elements of the input; for each slot whether it is open, and if so the number of the
 * element it was made of, the position of the input in front of that, the position in the dataset;
 * then the position of the input.
 *
 * Loading goes to each of those positions of the input, with an iterator of its own, calls the function
 * on the element there, and goes to the place in what it made.
 */
#include <stdlib.h>
#include <string.h>

#include "data/interleave.h"

/* ---- saving ----------------------------------------------------------------------------------- */

/* The position of the input in front of the element. One that was loaded, or that the input has
 * forgotten, is there as bytes. */
static ls_status save_before(ls__it *input, const ls__inner *inner, ls__bytes_out *to)
{
    if (inner->is_saved) {
        ls__put_bytes(to, inner->saved, inner->saved_bytes);
        return LS_OK;
    }
    ls__bytes_out before = { 0 };
    ls_status st = ls__it_save(input, inner->before, &before);
    if (!st)
        ls__put_bytes(to, before.at, before.used);
    to->failed |= before.failed;
    ls__bytes_out_free(&before);
    return st;
}

ls_status ls__interleave_save(ls__it *it, const int64_t *words, ls__bytes_out *to)
{
    ls__interleave *s = it->state;
    const ls__interleave_options *o = it->dataset->options;
    ls__moment m;
    ls_status st = ls__history_at(s->history, words[0], &m);
    if (st)
        return st;
    ls__put_ints(to, 4, (int64_t[]){ m.count, m.current, m.given, m.number });
    for (int i = 0; i < o->cycle && !st; i++) {
        const ls__inner *inner = m.slots[i];
        ls__put_int(to, inner != NULL);
        if (!inner)
            continue;
        ls__put_int(to, inner->number);
        st = save_before(s->input, inner, to);
        if (!st)
            st = ls__it_save(inner->it, m.words[i], to);
    }
    return st ? st : ls__it_save(s->input, m.input, to);
}

/* ---- loading ---------------------------------------------------------------------------------- */

/* The element that `input` stands in front of. */
static ls_status pull_again(ls__it *input, ls__chunk *element)
{
    ls__chunk_clear(element);
    ls_status st = ls__it_pull(input, 1, element);
    return st == LS_END ? ls__position_corrupt() : st;
}

static ls_status load_slot(ls__it *it, int slot, ls__bytes_in *from, ls__inner **out)
{
    ls__interleave *s = it->state;
    const void *bytes;
    size_t n;
    int64_t number;
    ls__it *input = NULL;
    ls__inner *inner = NULL;
    ls_status st = ls__get_int(from, 0, INT64_MAX - 1, &number);
    if (!st)
        st = ls__get_bytes(from, &bytes, &n);
    if (!st)
        st = ls__it_open(it->dataset->inputs[0], &it->how, &input);
    if (st)
        return st;
    ls__bytes_in before = { bytes, (const unsigned char *)bytes + n };
    st = ls__it_load(input, &before);
    if (!st && before.at != before.end)
        st = ls__position_corrupt();
    if (!st) {
        ls__it_words(input, s->before);
        st = pull_again(input, &s->element);
    }
    if (!st)
        st = ls__interleave_make(it, slot, &s->element, number, s->before, &inner);
    ls__chunk_clear(&s->element);
    ls__it_close(input);
    if (st)
        return st;
    *out = inner;
    inner->saved = malloc(n + 1);
    if (!inner->saved)
        return ls__fail_memory("a position", n);
    memcpy(inner->saved, bytes, n);
    inner->saved_bytes = n;
    inner->is_saved = true;
    st = ls__it_load(inner->it, from);
    if (!st)
        ls__it_words(inner->it, inner->words);
    return st;
}

static ls_status load_all(ls__it *it, ls__bytes_in *from, ls__moment *m)
{
    ls__interleave *s = it->state;
    const ls__interleave_options *o = it->dataset->options;
    int64_t current, is_open;
    ls_status st = ls__get_int(from, 0, INT64_MAX - 1, &m->count);
    if (!st)
        st = ls__get_int(from, 0, o->cycle - 1, &current);
    if (!st)
        st = ls__get_int(from, 0, o->block - 1, &m->given);
    if (!st)
        st = ls__get_int(from, 0, INT64_MAX - 1, &m->number);
    for (int i = 0; i < o->cycle && !st; i++) {
        st = ls__get_int(from, 0, 1, &is_open);
        if (!st && is_open)
            st = load_slot(it, i, from, &m->slots[i]);
    }
    if (st)
        return st;
    m->current = (int)current;
    return ls__it_load(s->input, from);
}

/* Everything anew: what was pulled so far has nothing to do with where we go. */
static ls_status begin_again(ls__it *it)
{
    ls__interleave *s = it->state;
    const ls__interleave_options *o = it->dataset->options;
    ls__history_free(s->history);
    s->history = NULL;
    ls__it_close(s->input);
    s->input = NULL;
    memset(s->slots, 0, (size_t)o->cycle * sizeof *s->slots);
    s->open = 0;
    s->ended = false;
    ls_status st = ls__it_open(it->dataset->inputs[0], &it->how, &s->input);
    if (st)
        return st;
    s->history = ls__history_new(s->input, o->cycle);
    return s->history ? LS_OK : LS_NO_MEMORY;
}

ls_status ls__interleave_load(ls__it *it, ls__bytes_in *from)
{
    ls__interleave *s = it->state;
    const ls__interleave_options *o = it->dataset->options;
    ls__moment m = { .slots = s->slots };
    ls_status st = begin_again(it);
    if (!st)
        st = load_all(it, from, &m);
    if (st) { /* nothing of it is anybody's yet */
        for (int i = 0; i < o->cycle; i++) {
            ls__inner_free(s->slots[i]);
            s->slots[i] = NULL;
        }
        return st;
    }
    ls__history_begin(s->history, &m);
    s->count = m.count;
    s->number = m.number;
    s->current = m.current;
    s->given = m.given;
    for (int i = 0; i < o->cycle; i++)
        s->open += s->slots[i] != NULL;
    return LS_OK;
}
