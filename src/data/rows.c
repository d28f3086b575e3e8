/*
 * Gathering rows. Invariant: begin and `events` events from there on, done with in order, are how the input
 * came to where the next element of the chunk is; n of them are rows, the others failed.
 */
#include "data/rows.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_AT_ONCE = 256 };

static size_t words_bytes(const ls__rows *r)
{
    return (size_t)r->input->words * sizeof *r->begin;
}

/* ---- opening and closing --------------------------------------------------------------------- */

ls_status ls__rows_open(ls__it *it)
{
    ls__rows *r = it->state;
    ls_status st = ls__it_open_input(it, 1, &r->input);
    if (st)
        return st;
    r->begin = calloc(2 * (size_t)it->words, sizeof *r->begin);
    if (!r->begin)
        return ls__fail_memory("a batch", 2 * words_bytes(r));
    r->behind = r->begin + it->words;
    ls__it_words(r->input, r->begin);
    return LS_OK;
}

void ls__rows_close(ls__it *it)
{
    ls__rows *r = it->state;
    ls__chunk_free(&r->chunk);
    ls__it_close(r->input);
    free(r->begin);
}

/* ---- gathering -------------------------------------------------------------------------------- */

ls_status ls__rows_more(ls__it *it)
{
    ls__rows *r = it->state;
    const int64_t want = ls__rows_whole(it->dataset) - r->n;
    if (r->next < r->chunk.n)
        return LS_OK;
    if (r->chunk.n > 0)
        memcpy(r->behind, ls__chunk_after(&r->chunk, r->chunk.n - 1), words_bytes(r));
    ls__chunk_clear(&r->chunk);
    r->next = 0;
    ls_status st = ls__it_pull(r->input, want < MOST_AT_ONCE ? (int)want : MOST_AT_ONCE, &r->chunk);
    if (!st) {
        r->structure = r->chunk.structure;
        r->leaves = r->chunk.leaves;
    } else if (st != LS_END) {
        r->events++;
        ls__it_words(r->input, r->behind);
    }
    return st;
}

/* The next batch begins behind the last event. */
static void begin(ls__rows *r)
{
    memcpy(r->begin, r->next > 0 ? ls__chunk_after(&r->chunk, r->next - 1) : r->behind,
           words_bytes(r));
    r->known = r->known > r->events ? r->known - r->events : 0;
    r->events = 0;
}

/* No batch is lost by a row. *news: a failure that nobody has heard of. */
static ls_status gather_on(ls__it *it, ls_status (*gather)(ls__it *it), bool *news)
{
    ls__rows *r = it->state;
    ls_status st = gather(it);
    it->none_lost = st && st != LS_END;
    *news = r->events > r->known || st == LS_NO_MEMORY;
    if (it->none_lost && r->n == 0)
        begin(r);
    return st;
}

/* The first events are those of before. An error of the caller's stays as it is. */
static ls_status gather_again(ls__it *it, ls_status (*gather)(ls__it *it))
{
    ls__error_record outer;
    ls__error_take(&outer);
    ls_status st;
    bool news;
    do {
        ls_error();
        st = gather_on(it, gather, &news);
    } while (it->none_lost && !news);
    if (outer.status) {
        ls_error();
        ls__error_put(&outer);
    }
    return st;
}

ls_status ls__rows_collect(ls__it *it, ls_status (*gather)(ls__it *it))
{
    const ls__rows *r = it->state;
    const ls__rows_options *o = it->dataset->options;
    bool news;
    ls_status st = r->known ? gather_again(it, gather) : gather_on(it, gather, &news);
    return st == LS_END && r->n > 0 && !o->full ? LS_OK : st;
}

void ls__rows_lost(ls__it *it)
{
    ls__rows *r = it->state;
    begin(r);
    r->n = r->known = 0;
}

void ls__rows_given(ls__it *it, ls__chunk *out)
{
    ls__rows *r = it->state;
    int64_t *after = ls__chunk_after(out, 0);
    ls__rows_lost(it);
    after[0] = 0;
    memcpy(after + 1, r->begin, words_bytes(r));
    out->structure = r->structure;
    out->n = 1;
}

/* ---- positions --------------------------------------------------------------------------------- */

void ls__rows_words_now(ls__it *it, int64_t *words)
{
    const ls__rows *r = it->state;
    words[0] = r->events > r->known ? r->events : r->known;
    memcpy(words + 1, r->begin, words_bytes(r));
}

static void forget(ls__rows *r)
{
    ls__chunk_clear(&r->chunk);
    r->next = 0;
    r->n = r->events = r->known = 0;
}

/* The input stands there. */
static void begin_at(ls__rows *r, int64_t known)
{
    r->known = known;
    ls__it_words(r->input, r->begin);
}

ls_status ls__rows_go(ls__it *it, const int64_t *words)
{
    ls__rows *r = it->state;
    forget(r);
    ls_status st = words[0] < 0 ? ls__position_corrupt() : ls__it_go(r->input, words + 1);
    if (!st)
        begin_at(r, words[0]);
    return st;
}

ls_status ls__rows_save(ls__it *it, const int64_t *words, ls__bytes_out *to)
{
    ls__put_int(to, words[0]);
    return ls__it_save(((ls__rows *)it->state)->input, words + 1, to);
}

ls_status ls__rows_load(ls__it *it, ls__bytes_in *from)
{
    ls__rows *r = it->state;
    int64_t known;
    forget(r);
    ls_status st = ls__get_int(from, 0, INT64_MAX, &known);
    if (!st)
        st = ls__it_load(r->input, from);
    if (!st)
        begin_at(r, known);
    return st;
}

void ls__rows_release(ls__it *it, const int64_t *words)
{
    ls__it_release(((ls__rows *)it->state)->input, words + 1);
}

/* ---- datasets ----------------------------------------------------------------------------------- */

int64_t ls__rows_whole(const ls_dataset *d)
{
    return ((const ls__rows_options *)d->options)->n;
}

int64_t ls__rows_batches(const ls_dataset *d, const ls__rows_options *o, int64_t *rows)
{
    const int64_t c = d->cardinality;
    *rows = o->full || c == LS_INFINITE || (c >= 0 && c % o->n == 0) ? o->n : -1;
    return c < 0 ? c : c / o->n + (!o->full && c % o->n != 0);
}
