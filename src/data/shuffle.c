/*
 * ls_shuffle: draws from a buffer. Draw k takes slot (random k) x (slots) / 2^64, random k being a pure
 * function of seed, iteration and k. Words: [draws and failures so far].
 *
 * A pull of ours pulls the input once at most, and before it draws: when that fails, nothing has
 * happened yet.
 */
#include "data/shuffle.h"

#include <stdlib.h>
#include <string.h>

#include "base/philox.h"

enum {
    LEAST_AHEAD = 16, /* pulled at once, whatever is asked for */
    SOON = 16,        /* draws from now: the slot is fetched from memory */
    SOONER = 8,       /* and the element that is kept of it... */
    FETCHED = 4       /* ...this many lines of it: more follow by themselves */
};

__extension__ typedef unsigned __int128 u128;

/* ---- draws ------------------------------------------------------------------------------------ */

/* Two to a block of four words. */
static void make_random(const ls__shuffle *s, int64_t block, uint64_t *out)
{
    const ls__draw draw = { .key = s->key };
    for (int i = 0; i < LS__SHUFFLE_BLOCK / 2; i++) {
        uint32_t words[4];
        ls__philox_block(&draw, (uint64_t)block * (LS__SHUFFLE_BLOCK / 2) + (uint64_t)i, words);
        out[2 * i] = (uint64_t)words[1] << 32 | words[0];
        out[2 * i + 1] = (uint64_t)words[3] << 32 | words[2];
    }
}

/* This block's numbers, and the next one's behind them. */
static void look_at_block(ls__shuffle *s, int64_t block)
{
    if (block == s->random_block)
        return;
    if (s->random_block >= 0 && block == s->random_block + 1)
        memcpy(s->random, s->random + LS__SHUFFLE_BLOCK, sizeof s->random / 2);
    else
        make_random(s, block, s->random);
    make_random(s, block + 1, s->random + LS__SHUFFLE_BLOCK);
    s->random_block = block;
}

static int64_t slot_of(uint64_t random, int64_t filled)
{
    return (int64_t)((u128)random * (uint64_t)filled >> 64);
}

/* Where a draw to come will look: at the end the buffer has one slot less from draw to draw. */
static int64_t slot_in(const ls__shuffle *s, int at, int draws)
{
    const int64_t filled = s->filled - (s->ended ? draws : 0);
    return filled > 0 ? slot_of(s->random[at + draws], filled) : 0;
}

/* Elements are all over the memory: those of draws to come are on their way while we go on. Inlined, since gcc
 * takes a function that only prefetches for one without effects, and drops calls of it. */
static inline __attribute__((always_inline)) void fetch(const ls__shuffle *s, int at)
{
    __builtin_prefetch(ls__shuffle_slot(s, slot_in(s, at, SOON)));
    if (s->again)
        return;
    const uintptr_t element = (uintptr_t)*ls__shuffle_slot(s, slot_in(s, at, SOONER));
    for (uintptr_t i = 0; i < FETCHED; i++) /* the hole's is NULL */
        __builtin_prefetch((const void *)(element + 64 * i));
}

static void draw(ls__shuffle *s, bool closed, ls__chunk *out)
{
    const int at = (int)(s->draws % LS__SHUFFLE_BLOCK);
    look_at_block(s, s->draws / LS__SHUFFLE_BLOCK);
    fetch(s, at);
    const int64_t number = slot_of(s->random[at], s->filled);
    int64_t *slot = ls__shuffle_slot(s, number);
    if (s->again)
        s->input->stage->again(s->input, slot + 2, ls__chunk_datum(out, out->n, 0));
    else
        ls__store_give(&s->store, ls__shuffle_kept(slot), out);
    slot[0] = 0;
    s->hole = number;
    s->draws++;
    ls__shuffle_write_note(s, closed ? LS__SHUFFLE_CLOSED : LS__SHUFFLE_FILLED, slot + 1);
    *ls__chunk_after(out, out->n++) = s->events;
}

/* ---- the stage ------------------------------------------------------------------------------- */

static ls_status open(ls__it *it)
{
    ls__shuffle *s = it->state;
    const ls__shuffle_options *o = it->dataset->options;
    s->hole = s->random_block = s->leaves = -1;
    ls_status st = ls__it_open(it->dataset->inputs[0], &it->how, &s->input);
    if (st)
        return st;
    it->words = 1;
    it->light = false;
    s->origin_words = s->input->light ? s->input->words : 0;
    s->again = s->input->light && s->input->stage->again;
    s->key = ls__draw_key(o->seed, LS__DRAW_DATASET, 0, o->once ? 0 : (int64_t)it->how.iteration);
    const size_t bytes = ((size_t)s->input->words + 1) * sizeof *s->before;
    s->before = malloc(bytes);
    if (!s->before)
        return ls__fail_memory("ls_shuffle", bytes);
    ls__it_words(s->input, s->before);
    st = ls__shuffle_make_notes_room(s, 1);
    if (!st)
        ls__shuffle_begin_notes(s);
    return st;
}

static void close(ls__it *it)
{
    ls__shuffle *s = it->state;
    ls__shuffle_empty(s);
    ls__it_holds(it, -s->declared);
    ls__shuffle_free_marks(s);
    ls__chunk_free(&s->ahead);
    ls__it_close(s->input);
    free(s->before);
    free(s->slots);
    ls__store_free(&s->store);
    free(s->notes);
}

static ls_status fill_up(ls__it *it)
{
    ls__shuffle *s = it->state;
    const ls__shuffle_options *o = it->dataset->options;
    ls_status st = LS_OK;
    while (!st && s->filled < o->buffer && !s->ended) {
        const int64_t want = o->buffer - s->filled;
        st = ls__shuffle_pull_ahead(it, want < LS__SHUFFLE_MOST_AT_ONCE ? (int)want
                                                                        : LS__SHUFFLE_MOST_AT_ONCE);
        while (!st && s->next < s->ahead.n && !(st = ls__shuffle_make_room(s, o, s->filled + 1)))
            ls__shuffle_fill(s, s->filled++);
    }
    return st;
}

/* The hole is gone: filled (false) or closed (true). LS_END: with neither. */
static ls_status end_hole(ls__shuffle *s, bool *closed)
{
    *closed = false;
    if (s->hole < 0)
        return s->filled > 0 ? LS_OK : LS_END;
    if (s->next < s->ahead.n) {
        ls__shuffle_fill(s, s->hole);
        return LS_OK;
    }
    if (!s->ended || s->filled == 1)
        return LS_END;
    ls__shuffle_close_hole(s);
    *closed = true;
    return LS_OK;
}

/* The buffer is full, or its hole can be filled: or the input has ended. */
static ls_status get_ready(ls__it *it, int most)
{
    ls__shuffle *s = it->state;
    ls_status st = ls__shuffle_make_notes_room(s, most);
    if (!st)
        st = s->draws == 0 ? fill_up(it)
                           : ls__shuffle_pull_ahead(it, most > LEAST_AHEAD ? most : LEAST_AHEAD);
    if (!st)
        return ls__shuffle_make_room(s, it->dataset->options, s->filled);
    it->none_lost = s->input->none_lost;
    if (s->note_room > s->note_first + s->note_count)
        ls__shuffle_write_note(s, LS__SHUFFLE_FAILED, NULL);
    return st;
}

static ls_status pull(ls__it *it, int most, ls__chunk *out)
{
    ls__shuffle *s = it->state;
    most = most < LS__SHUFFLE_MOST_AT_ONCE ? most : LS__SHUFFLE_MOST_AT_ONCE;
    ls__store_begin(&s->store);
    ls_status st = get_ready(it, most);
    if (!st && s->leaves >= 0)
        st = ls__chunk_room(out, most, s->leaves, 1);
    out->structure = s->structure;
    bool closed = false;
    while (!st && out->n < most && !(st = end_hole(s, &closed)))
        draw(s, closed, out);
    ls__shuffle_declare(it);
    return st == LS_END && out->n > 0 ? LS_OK : st;
}

static void words_now(ls__it *it, int64_t *words)
{
    words[0] = ((ls__shuffle *)it->state)->events;
}

static void release(ls__it *it, const int64_t *words)
{
    ls__shuffle_forget_notes(it->state, words[0]);
}

static const ls__stage shuffle_stage = { .name = "shuffle",
                                         .state_bytes = sizeof(ls__shuffle),
                                         .open = open,
                                         .close = close,
                                         .pull = pull,
                                         .words_now = words_now,
                                         .save = ls__shuffle_save,
                                         .load = ls__shuffle_load,
                                         .release = release };

/* ---- making --------------------------------------------------------------------------------- */

static ls_dataset *make(const char *who, ls_dataset *d, int64_t buffer, uint64_t seed, bool once)
{
    if (ls__check_dataset(who, d) || ls__check_number(who, "buffer", buffer, 1))
        return NULL;
    ls__dataset_draft draft = {
        .stage = &shuffle_stage, .n_inputs = 1, .inputs = &d, .cardinality = d->cardinality
    };
    ls__shuffle_options *o = ls__dataset_options(&draft, sizeof *o, NULL);
    if (!o)
        return NULL;
    *o = (ls__shuffle_options){ buffer, seed, once };
    draft.type = ls__type_ref(d->type);
    return ls__dataset_new(&draft, "shuffle %lld %llu%s", (long long)buffer,
                           (unsigned long long)seed, once ? " once" : "");
}

ls_dataset *ls_shuffle(ls_dataset *d, int64_t buffer, uint64_t seed)
{
    return make("ls_shuffle", d, buffer, seed, false);
}

ls_dataset *ls_shuffle_once(ls_dataset *d, int64_t buffer, uint64_t seed)
{
    return make("ls_shuffle_once", d, buffer, seed, true);
}
