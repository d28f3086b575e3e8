/*
 * Gathering rows. Invariant: from `begin` on there were n + failed events, n of which are rows; behind them
 * is the next element of the chunk, or of the input.
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

static ls_status refill(ls__rows *r, int want)
{
    if (r->chunk.n > 0)
        memcpy(r->behind, ls__chunk_after(&r->chunk, r->chunk.n - 1), words_bytes(r));
    ls__chunk_clear(&r->chunk);
    r->next = 0;
    ls_status st = ls__it_pull(r->input, want, &r->chunk);
    if (!st) {
        r->structure = r->chunk.structure;
        r->leaves = r->chunk.leaves;
    } else if (st != LS_END) {
        r->failed++;
        ls__it_words(r->input, r->behind);
    }
    return st;
}

ls_status ls__rows_more(ls__it *it, int *end)
{
    ls__rows *r = it->state;
    const int64_t missing = ls__rows_whole(it->dataset) - r->n;
    const int want = missing < MOST_AT_ONCE ? (int)missing : MOST_AT_ONCE;
    ls_status st = r->next < r->chunk.n ? LS_OK : refill(r, want);
    *end = r->chunk.n - r->next < want ? r->chunk.n : r->next + want;
    return st;
}

static int64_t events(const ls__rows *r)
{
    return r->n + r->failed;
}

/* The next batch begins behind the last event. */
static void begin(ls__rows *r)
{
    memcpy(r->begin, r->next > 0 ? ls__chunk_after(&r->chunk, r->next - 1) : r->behind,
           words_bytes(r));
    r->known = r->known > events(r) ? r->known - events(r) : 0;
    r->n = r->failed = 0;
}

/* No batch is lost by a row. *news: a failure that nobody has heard of. */
static ls_status gather_on(ls__it *it, ls_status (*gather)(ls__it *it), bool *news)
{
    ls__rows *r = it->state;
    ls_status st = gather(it);
    it->none_lost = st && st != LS_END;
    *news = events(r) > r->known || st == LS_NO_MEMORY;
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
    r->known = 0;
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
    words[0] = events(r) > r->known ? events(r) : r->known;
    memcpy(words + 1, r->begin, words_bytes(r));
}

static void forget(ls__rows *r)
{
    ls__chunk_clear(&r->chunk);
    r->next = 0;
    r->n = r->failed = r->known = 0;
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
