/*
 * ls_filter: elements for which a function says yes. Words: as counted.h says; the count is the
 * element's number, of which what the function draws depends.
 *
 * Invariant: elements of `chunk` before `next` are done with, those from there on were not looked at,
 * but for the first of them when `failure` is its.
 */
#include <string.h>

#include "base/status.h"
#include "data/callback.h"
#include "data/counted.h"
#include "tensor/tensor.h"

typedef struct filter_options {
    ls_keep_fn fn;
    void *user;
} filter_options;

typedef struct filter_state {
    ls__counted counted;
    ls__chunk chunk; /* of the input */
    int next;
    ls__error_record failure; /* of element `next`, behind some that were given first */
} filter_state;

static void close(ls__it *it)
{
    filter_state *s = it->state;
    ls__chunk_free(&s->chunk);
    ls__it_close(s->counted.input);
}

/* ---- one element --------------------------------------------------------------------------- */

/* An element as a value, which the chunk has all the same. */
static ls_value *look_at(ls__chunk *c, int i)
{
    ls__datum *mine = ls__frame_alloc(sizeof *mine * (size_t)(c->leaves + 1));
    if (!mine)
        return NULL;
    for (int k = 0; k < c->leaves; k++) {
        ls__datum *d = ls__chunk_datum(c, i, k);
        if (ls__datum_own(d))
            return NULL;
    }
    for (int k = 0; k < c->leaves; k++) {
        mine[k] = *ls__chunk_datum(c, i, k);
        if (mine[k].hold == LS__OWNED)
            ls__storage_ref(mine[k].owner);
    }
    ls_value *v = ls__element_value(c, i);
    for (int k = 0; k < c->leaves; k++) {
        ls__datum_drop(ls__chunk_datum(c, i, k)); /* that the value did not take: it failed */
        *ls__chunk_datum(c, i, k) = mine[k];
    }
    return v;
}

static ls_status ask(const ls__it *it, int i, bool *keep)
{
    filter_state *s = it->state;
    const filter_options *o = it->dataset->options;
    ls__callback call;
    ls_status st = ls__callback_open(&call, it, s->counted.at);
    if (st)
        return st;
    ls_value *element = look_at(&s->chunk, i);
    *keep = element && o->fn(element, o->user);
    return ls__callback_close(&call, element ? LS_OK : ls_error_pending(), "ls_filter",
                              s->counted.at);
}

/* ---- failures behind elements -------------------------------------------------------------- */

/* For the next pull. An error that was pending before is the first, and stays. */
static void put_off(filter_state *s, ls_status st, bool pending)
{
    if (pending)
        s->failure = (ls__error_record){ .status = st };
    else
        ls__error_take(&s->failure);
}

static ls_status report(filter_state *s)
{
    ls_status st = s->failure.status;
    if (s->failure.text[0])
        ls__error_put(&s->failure);
    s->failure = (ls__error_record){ 0 };
    s->next++;
    s->counted.at++;
    return st;
}

/* ---- the stage ------------------------------------------------------------------------------- */

static void give(const ls__it *it, int i, ls__chunk *out)
{
    filter_state *s = it->state;
    for (int k = 0; k < s->chunk.leaves; k++)
        ls__datum_give(ls__chunk_datum(out, out->n, k), ls__chunk_datum(&s->chunk, i, k));
    int64_t *after = ls__chunk_after(out, out->n);
    after[0] = s->counted.at + 1;
    memcpy(after + 1, ls__chunk_after(&s->chunk, i), (size_t)(it->words - 1) * sizeof *after);
    out->n++;
}

/* What is left of the chunk. */
static ls_status sift(const ls__it *it, ls__chunk *out)
{
    filter_state *s = it->state;
    const bool pending = ls_error_pending() != LS_OK;
    ls_status st = ls__chunk_room(out, s->chunk.n - s->next, s->chunk.leaves, it->words);
    if (st)
        return st;
    out->structure = s->chunk.structure;
    for (; s->next < s->chunk.n; s->next++, s->counted.at++) {
        bool keep = false;
        st = ask(it, s->next, &keep);
        if (st && out->n > 0) {
            put_off(s, st, pending);
            return LS_OK;
        }
        if (st) {
            s->next++;
            s->counted.at++;
            return st;
        }
        if (keep)
            give(it, s->next, out);
    }
    return LS_OK;
}

static ls_status pull(ls__it *it, int most, ls__chunk *out)
{
    filter_state *s = it->state;
    if (s->failure.status)
        return report(s);
    ls_status st = LS_OK;
    while (!st && out->n == 0) {
        if (s->next == s->chunk.n) {
            ls__chunk_clear(&s->chunk);
            s->next = 0;
            st = ls__counted_pull(it, most, &s->chunk);
        }
        if (!st)
            st = sift(it, out);
    }
    return st;
}

static void words_now(ls__it *it, int64_t *words)
{
    filter_state *s = it->state;
    ls__counted_words_now(it, words);
    if (s->next < s->chunk.n && s->next > 0)
        memcpy(words + 1, ls__chunk_after(&s->chunk, s->next - 1),
               (size_t)(it->words - 1) * sizeof *words);
}

static void forget(filter_state *s)
{
    ls__chunk_clear(&s->chunk);
    s->next = 0;
    s->failure = (ls__error_record){ 0 };
}

static ls_status go(ls__it *it, const int64_t *words)
{
    forget(it->state);
    return ls__counted_go(it, words);
}

static ls_status load(ls__it *it, ls__bytes_in *from)
{
    forget(it->state);
    return ls__counted_load(it, from);
}

static const ls__stage filter_stage = { .name = "filter",
                                        .state_bytes = sizeof(filter_state),
                                        .open = ls__counted_open,
                                        .close = close,
                                        .pull = pull,
                                        .words_now = words_now,
                                        .go = go,
                                        .save = ls__counted_save,
                                        .load = load,
                                        .release = ls__counted_release };

/* ---- making --------------------------------------------------------------------------------- */

ls_dataset *ls_filter(ls_dataset *d, ls_keep_fn fn, void *user)
{
    if (ls__check_dataset("ls_filter", d))
        return NULL;
    if (!fn) {
        ls__fail(LS_INVALID, "ls_filter: fn is NULL");
        return NULL;
    }
    ls__dataset_draft draft = { .stage = &filter_stage, .n_inputs = 1, .inputs = &d };
    filter_options *o = ls__dataset_options(&draft, sizeof *o, NULL);
    if (!o)
        return NULL;
    *o = (filter_options){ fn, user };
    draft.cardinality = d->cardinality == 0 ? 0 : LS_UNKNOWN;
    draft.type = ls__type_ref(d->type);
    return ls__dataset_new(&draft, "filter");
}
