/*
 * The input of a cache that is not there yet: what it gives is handed on, and recorded while nothing is
 * missing.
 *
 * Positions of an input that is not light are too large to be kept with every element. A mark, its
 * position, is made from time to time: when so many bytes of elements went by that it is cheap (16
 * times its own size). That depends on the elements alone, so it is at the same places in every process.
 */
#include <stdlib.h>
#include <string.h>

#include "data/cache.h"
#include "data/nest.h"

enum { MARK_EVERY = 16, LEAST_MARK = 256, ELEMENT = 64, MOST_AT_ONCE = 256 };

/* ---- heads ------------------------------------------------------------------------------------- */

void ls__cache_head_free(ls__cache_head *h)
{
    free(h->start);
    free(h->start_mark.data);
    ls_value_drop(h->structure);
    *h = (ls__cache_head){ 0 };
}

ls_status ls__cache_structure(ls__cache_head *h, const ls__chunk *c)
{
    if (h->structure)
        return ls_same_structure(h->structure, c->structure);
    h->structure = ls__nest_keep(c->structure);
    h->leaves = c->leaves;
    return h->structure ? LS_OK : ls_error_pending();
}

static ls_status make_head(const ls__it *it, ls__cache_head *h)
{
    ls__cache_state *s = it->state;
    const ls__mark *m = ls__marks_find(&s->marks, 0);
    *h = (ls__cache_head){ .fingerprint = it->dataset->inputs[0]->fingerprint,
                           .words = s->input->words,
                           .positions = it->light ? LS__CACHE_WORDS
                                        : m       ? LS__CACHE_MARKS
                                                  : LS__CACHE_NONE };
    h->start = calloc((size_t)h->words + 1, sizeof *h->start);
    h->start_mark = (ls__mark){ .bytes = m ? m->bytes : 0, .data = malloc((m ? m->bytes : 0) + 1) };
    if (!h->start || !h->start_mark.data) {
        ls__cache_head_free(h);
        return ls__fail_memory("ls_cache", sizeof *h);
    }
    ls__it_words(s->input, h->start);
    if (m)
        memcpy(h->start_mark.data, m->data, m->bytes);
    return LS_OK;
}

/* ---- marks --------------------------------------------------------------------------------------- */

/* A mark that cannot be made leaves positions with the one before. */
static const ls__mark *make_mark(ls__cache_state *s, int64_t at, const int64_t *words)
{
    ls__bytes_out bytes = { 0 };
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    ls_status st = ls__it_save(s->input, words, &bytes);
    if (!st && (bytes.failed || bytes.used > INT32_MAX))
        st = ls__fail_memory("ls_cache", bytes.room);
    if (!st)
        st = ls__marks_add(&s->marks, at, bytes.at, bytes.used);
    if (st)
        ls__error_take(&s->why);
    ls__error_put(&scope.outer);
    ls__bytes_out_free(&bytes);
    s->cost = 0;
    return st ? NULL : ls__marks_find(&s->marks, at);
}

/* The mark behind element i of the chunk, if it is time for one. */
static const ls__mark *mark_when_due(const ls__it *it, const ls__chunk *c, int i)
{
    ls__cache_state *s = it->state;
    if (it->light || s->unsaved)
        return NULL;
    const ls__mark *last = ls__marks_find(&s->marks, s->at);
    for (int k = 0; k < c->leaves; k++)
        s->cost += ls__chunk_datum(c, i, k)->bytes;
    s->cost += ELEMENT;
    if (s->cost < MARK_EVERY * ((last ? last->bytes : 0) + LEAST_MARK))
        return NULL;
    return make_mark(s, s->at, ls__chunk_after(c, i) + 1);
}

/* ---- opening, closing ---------------------------------------------------------------------------- */

void ls__cache_stop(ls__cache_state *s)
{
    if (s->recorder)
        s->recorder->discard(s->recorder);
    s->recorder = NULL;
}

/* What has no end is never through. */
static ls_status begin_recording(ls__it *it)
{
    ls__cache_state *s = it->state;
    ls__cache_options *o = it->dataset->options;
    if (it->dataset->inputs[0]->cardinality == LS_INFINITE)
        return LS_OK;
    ls__cache_head head;
    ls_status st = make_head(it, &head);
    if (st)
        return st;
    return s->file ? ls__file_record(s->file, &head, &s->recorder)
                   : ls__memory_record(&o->shared, &head, &s->recorder);
}

ls_status ls__cache_open_input(ls__it *it)
{
    ls__cache_state *s = it->state;
    const ls__opening how = { .going = it->how.going, .stop = it->how.stop };
    ls_status st = ls__it_open(it->dataset->inputs[0], &how, &s->input);
    if (st)
        return st;
    it->words = 1 + s->input->words;
    it->light = s->input->light;
    if (!it->light) {
        int64_t *words = calloc((size_t)s->input->words + 1, sizeof *words);
        if (!words)
            return ls__fail_memory("ls_cache", sizeof *words);
        ls__it_words(s->input, words);
        s->unsaved = !make_mark(s, 0, words);
        free(words);
    }
    return begin_recording(it);
}

/* ---- elements ------------------------------------------------------------------------------------- */

/* Trouble with the record is told in the next pull: the elements are good. */
static void record(ls__cache_state *s, const ls__chunk *c, int i, const ls__mark *mark)
{
    if (!s->recorder)
        return;
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    if (s->recorder->add(s->recorder, c, i, mark)) {
        ls__error_take(&s->waiting);
        ls__cache_stop(s);
    }
    ls__error_put(&scope.outer);
}

static ls_status end(ls__cache_state *s)
{
    ls__recorder *r = s->recorder;
    s->recorder = NULL;
    ls_status st = r ? r->finish(r) : LS_OK;
    return st ? st : LS_END;
}

/* A failure is an event like an element. A mark is behind it: what failed once is not tried again. */
static ls_status fail(ls__it *it, ls_status st)
{
    ls__cache_state *s = it->state;
    s->at++;
    if (it->light || s->unsaved)
        return st;
    int64_t *words = malloc((size_t)it->words * sizeof *words);
    if (words) {
        ls__it_words(s->input, words);
        make_mark(s, s->at, words);
    }
    free(words);
    return st;
}

ls_status ls__cache_pull_input(ls__it *it, int most, ls__chunk *out)
{
    ls__cache_state *s = it->state;
    out->lead++;
    ls_status st = ls__it_pass(it, s->input, most, out);
    out->lead--;
    if (st == LS_END)
        return end(s);
    if (st) { /* what is not all is not kept */
        ls__cache_stop(s);
        return fail(it, st);
    }
    for (int i = 0; i < out->n; i++) {
        ls__chunk_after(out, i)[0] = ++s->at;
        record(s, out, i, mark_when_due(it, out, i));
    }
    if (!it->light)
        ls__it_release(s->input, ls__chunk_after(out, out->n - 1) + 1);
    return LS_OK;
}

/* From the mark to the element. Nothing failed on that way: there is a mark behind every failure. */
static ls_status come_to(ls__it *it, int64_t at)
{
    ls__cache_state *s = it->state;
    ls__chunk passed = { 0 };
    ls_status st = LS_OK;
    while (s->at < at && !st) {
        int64_t want = at - s->at;
        ls__chunk_clear(&passed);
        st = ls__cache_pull_input(it, want < MOST_AT_ONCE ? (int)want : MOST_AT_ONCE, &passed);
    }
    ls__chunk_free(&passed);
    return st == LS_END ? ls__position_corrupt() : st;
}

ls_status ls__cache_load_input(ls__it *it, int64_t at, const ls__mark *mark)
{
    ls__cache_state *s = it->state;
    ls__bytes_in from = { mark->data, mark->data + mark->bytes };
    ls__cache_stop(s);
    s->at = mark->at;
    s->cost = 0;
    ls_status st = ls__it_load(s->input, &from);
    if (!st && from.at != from.end)
        st = ls__position_corrupt();
    return st ? st : come_to(it, at);
}
