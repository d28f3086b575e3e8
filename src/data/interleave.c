/*
 * ls_interleave and ls_flat_map: the elements of datasets that a user's function makes of the input's
 * elements, `cycle` of them by turns, `block` elements each. Words: [elements given, and failures, so
 * far]; what was open at that count is found in the history.
 *
 * A slot is filled when its turn comes and it is empty; a dataset that ends before its block does passes
 * the turn on. (So does tf.data.) Some slots' datasets are read ahead, each by a prefetch in
 * front of it, which changes neither order nor positions.
 */
#include "data/interleave.h"

#include <stdlib.h>
#include <string.h>

#include "data/callback.h"
#include "data/first.h"
#include "os/topology.h"

enum { DEFAULT_CYCLE = 16, MOST_CYCLE = 65536, MOST_PARALLEL = 1024 };

/* Elements of a dataset that are read ahead. */
enum { READ_AHEAD = 16 };

/* ---- datasets ------------------------------------------------------------------------------- */

static ls_status open_made(ls__it *it, ls__chunk *from, bool ahead, ls__it **out)
{
    const ls__interleave_options *o = it->dataset->options;
    ls_value *element = ls__element_value(from, 0);
    ls_dataset *d = element ? o->fn(element, o->user) : NULL;
    if (!d)
        return ls__callback_failed();
    ls_status st = ls__check_dataset("the dataset it made", d);
    if (!st && ahead) {
        d = ls_prefetch(d, READ_AHEAD);
        st = d ? LS_OK : ls_error_pending();
    }
    return st ? st : ls__it_open(d, &it->how, out);
}

ls_status ls__interleave_make(ls__it *it, int slot, ls__chunk *from, int64_t number,
                              const int64_t *before, ls__inner **out)
{
    const ls__interleave *s = it->state;
    const ls__interleave_options *o = it->dataset->options;
    ls__it *made = NULL;
    ls__callback call;
    ls_status st = ls__callback_open(&call, it, number);
    if (st)
        return st;
    st = open_made(it, from, slot < o->parallel, &made);
    st = ls__callback_close(&call, st, o->who, number);
    if (!st && !(*out = ls__inner_new(made, number, before, s->input->words)))
        st = LS_NO_MEMORY;
    if (st)
        ls__it_close(made);
    return st;
}

/* A failure is an event like an element: a position may be behind it. `inner`: the dataset whose it is, of
 * the slot whose turn it is, or NULL. There is room in the history. */
static ls_status fail(ls__it *it, ls__it *inner, ls_status st)
{
    ls__interleave *s = it->state;
    s->count++;
    ls__history_failed(s->history, s->current, inner, s->current, s->given);
    return st;
}

/* The next element of the input for the slot whose turn it is. */
static ls_status fill_slot(ls__it *it)
{
    ls__interleave *s = it->state;
    ls__inner *inner = NULL;
    ls_status st = ls__history_room(s->history, 3, (size_t)s->input->words);
    if (st)
        return st;
    ls__it_words(s->input, s->before);
    ls__chunk_clear(&s->element);
    st = ls__it_pass(it, s->input, 1, &s->element);
    s->ended = st == LS_END;
    if (s->ended)
        return LS_OK;
    const int64_t number = s->number;
    s->number += !it->none_lost; /* one that failed is one, too */
    if (!st)
        st = ls__interleave_make(it, s->current, &s->element, number, s->before, &inner);
    ls__chunk_clear(&s->element);
    ls__it_words(s->input, s->before);
    ls__history_input(s->history, s->before, s->number);
    if (st)
        return fail(it, NULL, st);
    ls__history_opened(s->history, s->current, inner);
    s->slots[s->current] = inner;
    s->open++;
    return LS_OK;
}

static void next_slot(ls__it *it)
{
    ls__interleave *s = it->state;
    s->current = (s->current + 1) % ((const ls__interleave_options *)it->dataset->options)->cycle;
    s->given = 0;
}

/* The dataset is at its end; it stays open for positions in it. */
static void empty_slot(ls__it *it)
{
    ls__interleave *s = it->state;
    ls__history_closed(s->history, s->current);
    s->slots[s->current] = NULL;
    s->open--;
    next_slot(it);
}

/* ---- elements -------------------------------------------------------------------------------- */

/* The dataset's elements are like those of others. */
static ls_status check(ls__it *it, ls__inner *inner)
{
    ls__interleave *s = it->state;
    const ls__interleave_options *o = it->dataset->options;
    if (inner->checked)
        return LS_OK;
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    ls_status st = ls__first_check(&s->first, s->chunk.structure, &s->chunk, 0);
    inner->checked = !st;
    return ls__error_scope_close(&scope, st, "%s: the dataset of element %lld", o->who,
                                 (long long)inner->number);
}

/* Lasting is what lasts as long as the dataset at hand: here, one that goes before ours. */
static ls__datum pass_on(ls__datum *d)
{
    ls__datum out = *d;
    if (d->hold == LS__OWNED) {
        *d = (ls__datum){ .hold = LS__BORROWED };
    } else if (d->hold == LS__LASTING) {
        const bool one_string = d->spec.dtype == LS_BYTES && d->spec.rank == 0;
        out.hold = d->owner && !one_string ? LS__OWNED : LS__BORROWED;
        out.owner = out.hold == LS__OWNED ? ls__storage_ref(d->owner) : NULL;
    }
    return out;
}

static void give(ls__it *it, const ls__inner *inner, ls__chunk *out)
{
    ls__interleave *s = it->state;
    const ls__interleave_options *o = it->dataset->options;
    const int slot = s->current;
    for (; out->n < s->chunk.n; out->n++) {
        for (int k = 0; k < s->chunk.leaves; k++)
            *ls__chunk_datum(out, out->n, k) = pass_on(ls__chunk_datum(&s->chunk, out->n, k));
        if (++s->given == o->block)
            next_slot(it);
        *ls__chunk_after(out, out->n) = ++s->count;
        ls__history_taken(s->history, slot, ls__chunk_after(&s->chunk, out->n), inner->it->words,
                          s->current, s->given);
    }
    out->structure = ls__type_structure(s->first);
}

/* Elements of the slot whose turn it is. None and LS_OK: it has come to its end. */
static ls_status take(ls__it *it, int most, ls__chunk *out)
{
    ls__interleave *s = it->state;
    const ls__interleave_options *o = it->dataset->options;
    ls__inner *inner = s->slots[s->current];
    if (o->block - s->given < most)
        most = (int)(o->block - s->given);
    ls_status st = ls__history_room(s->history, most + 1, (size_t)most * (size_t)inner->it->words);
    if (!st && s->first)
        st = ls__chunk_room(out, most, ls__type_leaves(s->first), it->words);
    if (st)
        return st;
    ls__chunk_clear(&s->chunk);
    st = ls__it_pass(it, inner->it, most, &s->chunk);
    if (st == LS_END) {
        empty_slot(it);
        return LS_OK;
    }
    if (st)
        return fail(it, inner->it, st);
    st = check(it, inner);
    if (st) {
        empty_slot(it);
        return fail(it, NULL, st);
    }
    st = ls__chunk_room(out, s->chunk.n, s->chunk.leaves, it->words);
    if (st)
        return fail(it, inner->it, st);
    give(it, inner, out);
    return LS_OK;
}

static ls_status pull(ls__it *it, int most, ls__chunk *out)
{
    ls__interleave *s = it->state;
    ls_status st = LS_OK;
    while (!st && out->n == 0) {
        if (s->slots[s->current])
            st = take(it, most, out);
        else if (!s->ended)
            st = fill_slot(it);
        else if (s->open > 0)
            next_slot(it);
        else
            st = LS_END;
    }
    return st;
}

/* ---- the stage ------------------------------------------------------------------------------ */

static ls_status open(ls__it *it)
{
    ls__interleave *s = it->state;
    const ls__interleave_options *o = it->dataset->options;
    ls_status st = ls__it_open_input(it, 0, &s->input);
    if (st)
        return st;
    it->words = 1;
    it->light = false;
    s->slots = calloc((size_t)o->cycle, sizeof(ls__inner *));
    s->before = calloc((size_t)s->input->words + 1, sizeof *s->before);
    if (!s->slots || !s->before)
        return ls__fail_memory(o->who, (size_t)o->cycle * sizeof(ls__inner *));
    s->history = ls__history_new(s->input, o->cycle);
    return s->history ? LS_OK : LS_NO_MEMORY;
}

static void close(ls__it *it)
{
    ls__interleave *s = it->state;
    ls__chunk_free(&s->element);
    ls__chunk_free(&s->chunk);
    ls__history_free(s->history);
    ls__type_unref(s->first);
    ls__it_close(s->input);
    free(s->slots);
    free(s->before);
}

static void words_now(ls__it *it, int64_t *words)
{
    words[0] = ((ls__interleave *)it->state)->count;
}

static void release(ls__it *it, const int64_t *words)
{
    ls__history_release(((ls__interleave *)it->state)->history, words[0]);
}

static const ls__stage interleave_stage = { .name = "interleave",
                                            .state_bytes = sizeof(ls__interleave),
                                            .open = open,
                                            .close = close,
                                            .pull = pull,
                                            .words_now = words_now,
                                            .save = ls__interleave_save,
                                            .load = ls__interleave_load,
                                            .release = release,
                                            .flags = LS__STAGE_OPAQUE };

/* ---- making --------------------------------------------------------------------------------- */

void ls_interleave_init(ls_interleave_options *options)
{
    if (options)
        *options = (ls_interleave_options){ .size = sizeof *options };
}

static ls_dataset *make(ls_dataset *d, const ls__interleave_options *options)
{
    if (ls__check_dataset(options->who, d))
        return NULL;
    if (!options->fn) {
        ls__fail(LS_INVALID, "%s: the function is NULL", options->who);
        return NULL;
    }
    ls__dataset_draft draft = { .stage = &interleave_stage,
                                .n_inputs = 1,
                                .inputs = &d,
                                .cardinality = d->cardinality == 0 ? 0 : LS_UNKNOWN };
    ls__interleave_options *o = ls__dataset_options(&draft, sizeof *o, NULL);
    if (!o)
        return NULL;
    *o = *options;
    draft.type = ls__type_unknown();
    if (o->cycle == 1) /* blocks do not matter */
        return ls__dataset_new(&draft, "flat_map");
    return ls__dataset_new(&draft, "interleave %d %lld", o->cycle, (long long)o->block);
}

ls_dataset *ls_flat_map(ls_dataset *d, ls_dataset_fn fn, void *user)
{
    return make(d, &(ls__interleave_options){ "ls_flat_map", fn, user, 1, INT64_MAX, 0 });
}

static ls_status check_options(const ls_interleave_options *o)
{
    if (!o)
        return ls__hint(ls__fail(LS_INVALID, "ls_interleave: the options are NULL"),
                        "LS_INTERLEAVE(.fn = ...) makes them");
    if (o->size != sizeof *o)
        return ls__hint(ls__fail(LS_INVALID, "ls_interleave: options of %zu bytes, wants %zu",
                                 o->size, sizeof *o),
                        "fill options with LS_INTERLEAVE(...), or with ls_interleave_init first");
    if (o->cycle < 0 || o->cycle > MOST_CYCLE)
        return ls__hint(ls__fail(LS_INVALID, "ls_interleave: .cycle is %d", o->cycle),
                        "1 to %d datasets by turns; 0 stands for %d", MOST_CYCLE, DEFAULT_CYCLE);
    if (o->block < 0)
        return ls__hint(ls__fail(LS_INVALID, "ls_interleave: .block is %lld", (long long)o->block),
                        "1 element or more each; 0 stands for 1");
    if (o->parallel < -1 || o->parallel > MOST_PARALLEL)
        return ls__hint(ls__fail(LS_INVALID, "ls_interleave: .parallel is %d", o->parallel),
                        "0 to %d threads; -1 stands for one a core", MOST_PARALLEL);
    return LS_OK;
}

ls_dataset *ls_interleave(ls_dataset *d, const ls_interleave_options *o)
{
    if (ls__check_dataset("ls_interleave", d) || check_options(o))
        return NULL;
    const int cycle = o->cycle ? o->cycle : DEFAULT_CYCLE;
    const int64_t block = cycle == 1 ? INT64_MAX : o->block ? o->block : 1;
    const int parallel = o->parallel < 0 ? ls__cores() : o->parallel;
    return make(
        d, &(ls__interleave_options){ "ls_interleave", o->fn, o->user, cycle, block, parallel });
}
