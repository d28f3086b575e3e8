/*
 * What all stages' iterators have in common: opening, closing, and positions of those whose words are
 * all of it.
 */
#include "data/iterator.h"

#include <stdlib.h>

enum { MOST_WORDS = 4096 };

ls_status ls__it_open(ls_dataset *d, const ls__opening *how, ls__it **out)
{
    size_t own = (sizeof(ls__it) + 63) / 64 * 64;
    ls__it *it = calloc(1, own + d->stage->state_bytes);
    if (!it)
        return ls__fail_memory("an iterator", own + d->stage->state_bytes);
    it->stage = d->stage;
    it->dataset = ls__dataset_ref(d);
    it->state = (char *)it + own;
    it->how = *how;
    it->later = how->later;
    it->how.later = how->later && d->stage->flags & LS__STAGE_HANDS_ON;
    ls_status st = d->stage->open(it);
    if (!st && it->words > MOST_WORDS)
        st = ls__fail(LS_UNSUPPORTED, "ls_iterate: a position of %d words; %d are possible",
                      it->words, MOST_WORDS);
    if (st) {
        ls__it_close(it);
        return st;
    }
    *out = it;
    return LS_OK;
}

void ls__it_close(ls__it *it)
{
    if (!it)
        return;
    it->stage->close(it);
    ls__dataset_unref(it->dataset);
    free(it);
}

ls_status ls__it_open_input(ls__it *it, int own, ls__it **input)
{
    ls_status st = ls__it_open(it->dataset->inputs[0], &it->how, input);
    if (st)
        return st;
    it->words = own + (*input)->words;
    it->light = (*input)->light;
    return LS_OK;
}

ls_status ls__stopped(void)
{
    return ls__fail(LS_CANCELLED, "the iterator goes elsewhere, or ends");
}

void ls__it_words(ls__it *it, int64_t *words)
{
    it->stage->words_now(it, words);
}

ls_status ls__it_go(ls__it *it, const int64_t *words)
{
    return it->stage->go(it, words);
}

ls_status ls__it_save(ls__it *it, const int64_t *words, ls__bytes_out *to)
{
    if (!it->light)
        return it->stage->save(it, words, to);
    ls__put_ints(to, it->words, words);
    return LS_OK;
}

ls_status ls__it_load(ls__it *it, ls__bytes_in *from)
{
    if (!it->light)
        return it->stage->load(it, from);
    int64_t words[MOST_WORDS];
    ls_status st = ls__get_ints(from, it->words, words);
    return st ? st : it->stage->go(it, words);
}

void ls__it_release(ls__it *it, const int64_t *words)
{
    if (it->stage->release)
        it->stage->release(it, words);
}

void ls__it_holds(ls__it *it, int64_t bytes)
{
    atomic_fetch_add_explicit(&it->how.going->bytes, bytes, memory_order_relaxed);
}

/* ---- positions of the input ------------------------------------------------------------------- */

static ls__it *input_of(const ls__it *it)
{
    return *(ls__it **)it->state;
}

void ls__pass_words_now(ls__it *it, int64_t *words)
{
    ls__it_words(input_of(it), words);
}

ls_status ls__pass_go(ls__it *it, const int64_t *words)
{
    return ls__it_go(input_of(it), words);
}

ls_status ls__pass_save(ls__it *it, const int64_t *words, ls__bytes_out *to)
{
    return ls__it_save(input_of(it), words, to);
}

ls_status ls__pass_load(ls__it *it, ls__bytes_in *from)
{
    return ls__it_load(input_of(it), from);
}

void ls__pass_release(ls__it *it, const int64_t *words)
{
    ls__it_release(input_of(it), words);
}
