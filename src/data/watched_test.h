/*
 * A source for tests of stages, which watches how it is used: what it lends is gone with the next pull,
 * it gives chunks of any length, and a position may be asked for only if it was not released.
 */
#ifndef LS__DATA_WATCHED_TEST_H
#define LS__DATA_WATCHED_TEST_H

#include <stdlib.h>

#include "data/iterator.h"
#include "tensor/test_support.h"

/* Numbers 0 .. count - 1, i64[]. */
typedef struct watched {
    int64_t count;
    bool heavy;         /* not light: save() is asked, and checks that it may be */
    bool lasting;       /* what it gives is never borrowed; modulo 16 */
    bool unknown;       /* nothing is known of its elements */
    int64_t fail_every; /* elements fail - 1, 2 fail - 1, ... fail; 0: none */
    bool leave_out;     /* those that would fail */
    bool by_iteration;  /* numbers are 1001 x the iteration more */
    bool unsaved;       /* heavy, and save() refuses */
    int64_t *reads;     /* counts elements given; may be NULL */
} watched;

typedef struct watched_state {
    int64_t at, released;
    int64_t *numbers; /* overwritten with the next pull */
    int room;
    uint64_t turn;
    ls__type *type;
} watched_state;

/* Of elements, modulo 16. */
static const int64_t watched_lasting[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };

static inline ls_status watched_open(ls__it *it)
{
    it->words = 2; /* one of which says nothing */
    const watched *o = it->dataset->options;
    it->light = !o->heavy && !o->unsaved;
    return ls__type_parse("watched", "i64[]", &((watched_state *)it->state)->type);
}

static inline void watched_close(ls__it *it)
{
    watched_state *s = it->state;
    free(s->numbers);
    ls__type_unref(s->type);
}

static inline bool watched_fails(const watched *o, int64_t at)
{
    return o->fail_every && at % o->fail_every == o->fail_every - 1;
}

static inline void watched_words(int64_t at, int64_t *words)
{
    words[0] = at;
    words[1] = -7;
}

static inline ls_status watched_pull(ls__it *it, int most, ls__chunk *out)
{
    watched_state *s = it->state;
    const watched *o = it->dataset->options;
    assert_int_equal(out->n, 0);
    while (o->leave_out && s->at < o->count && watched_fails(o, s->at))
        s->at++;
    if (s->at >= o->count)
        return LS_END;
    if (watched_fails(o, s->at)) {
        s->at++;
        return ls__fail(LS_IO, "watched: element %lld fails", (long long)s->at - 1);
    }
    int n = 1 + (int)(++s->turn * 0x9E3779B97F4A7C15u >> 33) % most; /* any number */
    ls_status st = ls__chunk_room(out, n, 1, 2);
    if (st)
        return st;
    for (int i = 0; i < s->room; i++)
        s->numbers[i] = -1; /* what was borrowed is gone */
    if (n > s->room) {
        free(s->numbers);
        s->numbers = malloc((size_t)n * sizeof *s->numbers);
        s->room = s->numbers ? n : 0;
        if (!s->numbers)
            return ls__fail_memory("watched", 8);
    }
    out->structure = ls__type_structure(s->type);
    for (; out->n < n && s->at < o->count && !watched_fails(o, s->at); out->n++) {
        uint64_t more = o->by_iteration ? 1001 * it->how.iteration : 0; /* modulo 2^64 */
        s->numbers[out->n] = (int64_t)((uint64_t)s->at + more);
        *ls__chunk_datum(out, out->n, 0) =
            (ls__datum){ .spec = { .dtype = LS_I64 },
                         .data = o->lasting ? &watched_lasting[s->at % 16] : &s->numbers[out->n],
                         .bytes = 8,
                         .hold = o->lasting ? LS__LASTING : LS__BORROWED };
        watched_words(++s->at, ls__chunk_after(out, out->n));
    }
    if (o->reads)
        *o->reads += out->n;
    return LS_OK;
}

static inline void watched_words_now(ls__it *it, int64_t *words)
{
    watched_words(((watched_state *)it->state)->at, words);
}

static inline ls_status watched_go(ls__it *it, const int64_t *words)
{
    watched_state *s = it->state;
    assert_true(it->light);
    if (words[0] < 0 || words[0] > ((const watched *)it->dataset->options)->count || words[1] != -7)
        return ls__position_corrupt();
    s->at = words[0];
    return LS_OK;
}

static inline ls_status watched_save(ls__it *it, const int64_t *words, ls__bytes_out *to)
{
    const watched_state *s = it->state;
    assert_true(words[0] >= s->released && words[0] <= s->at && words[1] == -7);
    if (((const watched *)it->dataset->options)->unsaved)
        return ls__fail(LS_UNSUPPORTED, "watched: cannot be saved");
    ls__put_int(to, words[0]);
    return LS_OK;
}

static inline ls_status watched_load(ls__it *it, ls__bytes_in *from)
{
    watched_state *s = it->state;
    ls_status st = ls__get_int(from, 0, ((const watched *)it->dataset->options)->count, &s->at);
    s->released = s->at;
    return st;
}

static inline void watched_release(ls__it *it, const int64_t *words)
{
    watched_state *s = it->state;
    assert_true(words[0] >= s->released && words[0] <= s->at && words[1] == -7);
    s->released = words[0];
}

static const ls__stage watched_stage = { .name = "watched",
                                         .state_bytes = sizeof(watched_state),
                                         .open = watched_open,
                                         .close = watched_close,
                                         .pull = watched_pull,
                                         .words_now = watched_words_now,
                                         .go = watched_go,
                                         .save = watched_save,
                                         .load = watched_load,
                                         .release = watched_release };

static inline ls_dataset *watch(watched options)
{
    ls__dataset_draft draft = { .stage = &watched_stage, .cardinality = options.count };
    watched *o = ls__dataset_options(&draft, sizeof *o, NULL);
    *o = options;
    if (options.unknown)
        draft.type = ls__type_unknown();
    else
        assert_int_equal(ls__type_parse("watched", "i64[]", &draft.type), LS_OK);
    return ls__dataset_new(&draft, "watched %lld", (long long)options.count);
}
#define WATCH(...) watch((watched){ __VA_ARGS__ })

#endif
