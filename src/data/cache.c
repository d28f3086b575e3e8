/*
 * ls_cache. Words: [elements and failures so far][those of the input].
 *
 * An iterator does one of three things:
 *
 *     reads    the elements are kept already: the input is not even opened
 *     fills    gives what the input gives and records it; when the input ends, it is kept
 *     passes   gives what the input gives: somebody else fills, the iterator began in the middle
 *              (a position), or something failed on the way, and what is not all is not kept
 *
 * All three give the same elements, because the input is opened as iteration 0 in every iteration, and
 * the same positions. For a light input these are the input's own, which are recorded with the
 * elements; for another the last mark (cache_input.c), and how many elements have come.
 */
#include "data/cache.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_AT_ONCE = 256 };

/* ---- opening ------------------------------------------------------------------------------------- */

static void tell_memory(ls__it *it)
{
    ls__cache_state *s = it->state;
    size_t bytes =
        s->marks.bytes + (s->store ? s->store->bytes : 0) + (s->recorder ? s->recorder->bytes : 0);
    ls__it_holds(it, (int64_t)bytes - (int64_t)s->holds);
    s->holds = bytes;
}

static ls_status begin_reading(ls__it *it)
{
    ls__cache_state *s = it->state;
    const ls__cache_head *h = &s->store->head;
    it->words = 1 + h->words;
    it->light = h->positions == LS__CACHE_WORDS;
    s->now = calloc((size_t)it->words + 1, sizeof *s->now);
    if (!s->now)
        return ls__fail_memory("ls_cache", sizeof *s->now);
    if (it->light)
        memcpy(s->now + 1, h->start, (size_t)h->words * sizeof *s->now);
    s->unsaved = h->positions == LS__CACHE_NONE;
    return h->positions == LS__CACHE_MARKS
               ? ls__marks_add(&s->marks, 0, h->start_mark.data, h->start_mark.bytes)
               : LS_OK;
}

/* On another input than it was made for, which is a pipeline's share of the files, the file is another,
 * too. */
static ls_status name_file(ls__it *it)
{
    ls__cache_state *s = it->state;
    const ls__cache_options *o = it->dataset->options;
    const uint64_t fingerprint = it->dataset->inputs[0]->fingerprint;
    const size_t bytes = strlen(o->file) + sizeof "-0123456789abcdef";
    s->file = malloc(bytes);
    if (!s->file)
        return ls__fail_memory("ls_cache", bytes);
    if (fingerprint == o->of)
        strcpy(s->file, o->file);
    else
        snprintf(s->file, bytes, "%s-%016" PRIx64, o->file, fingerprint);
    return LS_OK;
}

static ls_status open(ls__it *it)
{
    ls__cache_state *s = it->state;
    ls__cache_options *o = it->dataset->options;
    const uint64_t fingerprint = it->dataset->inputs[0]->fingerprint;
    ls_status st = o->file ? name_file(it) : LS_OK;
    if (s->file)
        st = ls__file_find(s->file, fingerprint, &s->store);
    else if (!st)
        s->store = ls__memory_find(&o->shared, fingerprint);
    if (!st)
        st = s->store ? begin_reading(it) : ls__cache_open_input(it);
    if (!st)
        tell_memory(it);
    return st;
}

static void close(ls__it *it)
{
    ls__cache_state *s = it->state;
    ls__cache_stop(s);
    if (s->store)
        s->store->close(s->store);
    s->store = NULL;
    ls__it_close(s->input);
    ls__marks_clear(&s->marks);
    free(s->now);
    free(s->file);
    tell_memory(it);
}

/* ---- elements ------------------------------------------------------------------------------------- */

static ls_status pull_store(ls__it *it, int most, ls__chunk *out)
{
    ls__cache_state *s = it->state;
    if (s->at >= s->store->head.n)
        return LS_END;
    ls_status st = s->store->read(s->store, s->at, most, out, &s->marks);
    s->at += st ? 1 : out->n;
    if (!st)
        memcpy(s->now, ls__chunk_after(out, out->n - 1), (size_t)it->words * sizeof *s->now);
    return st;
}

static ls_status pull(ls__it *it, int most, ls__chunk *out)
{
    ls__cache_state *s = it->state;
    if (s->waiting.status) {
        ls_status st = s->waiting.status;
        ls__error_put(&s->waiting);
        s->waiting.status = LS_OK;
        return st;
    }
    most = most < MOST_AT_ONCE ? most : MOST_AT_ONCE;
    ls_status st = s->store ? pull_store(it, most, out) : ls__cache_pull_input(it, most, out);
    tell_memory(it);
    return st;
}

/* ---- positions -------------------------------------------------------------------------------------- */

static void words_now(ls__it *it, int64_t *words)
{
    ls__cache_state *s = it->state;
    if (s->store)
        memcpy(words, s->now, (size_t)it->words * sizeof *words);
    else
        ls__it_words(s->input, words + 1);
    words[0] = s->at;
}

static bool stands_there(ls__it *it, const int64_t *words)
{
    ls__cache_state *s = it->state;
    int64_t *here = malloc((size_t)it->words * sizeof *here);
    bool same = false;
    if (here) {
        words_now(it, here);
        same = memcmp(here, words, (size_t)it->words * sizeof *here) == 0;
    }
    free(here);
    return same && words[0] == s->at;
}

/* Elsewhere than where it stands, an iterator that fills has a gap, and passes from there on. */
static ls_status go(ls__it *it, const int64_t *words)
{
    ls__cache_state *s = it->state;
    if (words[0] < 0 || (s->store && words[0] > s->store->head.n))
        return ls__position_corrupt();
    if (s->store) {
        memcpy(s->now, words, (size_t)it->words * sizeof *words);
    } else if (!stands_there(it, words)) {
        ls__cache_stop(s);
        ls_status st = ls__it_go(s->input, words + 1);
        if (st)
            return st;
    }
    s->at = words[0];
    return LS_OK;
}

static ls_status save(ls__it *it, const int64_t *words, ls__bytes_out *to)
{
    ls__cache_state *s = it->state;
    const ls__mark *m = ls__marks_find(&s->marks, words[0]);
    if (s->unsaved && s->why.status) {
        ls__error_put(&s->why);
        return s->why.status;
    }
    if (s->unsaved || !m)
        return ls__fail(LS_UNSUPPORTED, "ls_position: what is before ls_cache cannot be saved");
    ls__put_int(to, words[0]);
    ls__put_int(to, m->at);
    ls__put_bytes(to, m->data, m->bytes);
    return LS_OK;
}

static ls_status load(ls__it *it, ls__bytes_in *from)
{
    ls__cache_state *s = it->state;
    int64_t at, mark;
    const void *data;
    size_t bytes;
    ls_status st = ls__get_int(from, 0, s->store ? s->store->head.n : INT64_MAX, &at);
    if (!st)
        st = ls__get_int(from, 0, at, &mark);
    if (!st)
        st = ls__get_bytes(from, &data, &bytes);
    if (st || at == 0) /* it stands there */
        return st;
    ls__marks_clear(&s->marks);
    st = ls__marks_add(&s->marks, mark, data, bytes);
    if (!st && !s->store)
        st = ls__cache_load_input(it, at, ls__marks_find(&s->marks, mark));
    s->at = at;
    tell_memory(it);
    return st;
}

static void release(ls__it *it, const int64_t *words)
{
    ls__cache_state *s = it->state;
    if (!it->light)
        ls__marks_release(&s->marks, words[0]);
    else if (s->input)
        ls__it_release(s->input, words + 1);
}

static const ls__stage cache_stage = { .name = "cache",
                                       .state_bytes = sizeof(ls__cache_state),
                                       .open = open,
                                       .close = close,
                                       .pull = pull,
                                       .words_now = words_now,
                                       .go = go,
                                       .save = save,
                                       .load = load,
                                       .release = release };

/* ---- making ----------------------------------------------------------------------------------------- */

static void free_options(void *options)
{
    ls__cache_options *o = options;
    ls__memory_free(&o->shared);
    free(o->file);
}

ls_dataset *ls_cache(ls_dataset *d, const char *file)
{
    if (ls__check_dataset("ls_cache", d))
        return NULL;
    if (file && !file[0]) {
        ls__hint(ls__fail(LS_INVALID, "ls_cache: the file has no name"), "NULL caches in memory");
        return NULL;
    }
    ls__dataset_draft draft = { .stage = &cache_stage,
                                .n_inputs = 1,
                                .inputs = &d,
                                .type = ls__type_ref(d->type),
                                .cardinality = d->cardinality };
    ls__cache_options *o = ls__dataset_options(&draft, sizeof *o, free_options);
    if (!o) {
        ls__type_unref(draft.type);
        return NULL;
    }
    o->of = d->fingerprint;
    o->file = file ? strdup(file) : NULL;
    if (file && !o->file) {
        ls__fail_memory("ls_cache", strlen(file));
        ls__type_unref(draft.type);
        draft.type = NULL;
    }
    return ls__dataset_new(&draft, "cache");
}
