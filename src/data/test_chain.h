/*
 * What tests of stages that run ahead share: elements as numbers, stopping and going on at every
 * position, and a source that watches how it is used.
 */
#ifndef LS__DATA_TEST_CHAIN_H
#define LS__DATA_TEST_CHAIN_H

#include <lockstep.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "data/iterator.h"
#include "tensor/test_support.h"

enum { MOST_ELEMENTS = 1024 };

/* ---- elements ------------------------------------------------------------------------------ */

/* All there is in an element, as a number: an i64 is itself. */
static inline int64_t digest(const ls_value *v)
{
    const int n = ls_leaf_count(v);
    ls_tensor *tensors[8];
    uint64_t h = 0;
    assert_true(n <= 8);
    assert_int_equal(ls_flatten(v, tensors), LS_OK);
    if (n == 1 && ls_dtype_of(tensors[0]) == LS_I64 && ls_rank(tensors[0]) == 0)
        return ls_to_int(tensors[0]);
    for (int k = 0; k < n; k++) {
        const unsigned char *bytes = ls_data(tensors[k]);
        h = (h ^ (uint64_t)ls_count(tensors[k])) * 0x100000001b3u;
        for (size_t i = 0; i < ls_size_in_bytes(tensors[k]); i++)
            h = (h ^ bytes[i]) * 0x100000001b3u;
    }
    return (int64_t)h;
}

static inline int64_t number_of(const ls_value *v)
{
    return ls_to_int(ls_leaf_tensor(v));
}

/* The next element; false: the end. */
static inline bool next_number(ls_iterator *it, int64_t *out)
{
    ls_status st = LS_OK;
    LS_FRAME {
        ls_value *v = NULL;
        st = ls_next(it, &v);
        if (!st)
            *out = digest(v);
    }
    if (st && st != LS_END)
        fail_msg("%s", ls_error_report());
    return st == LS_OK;
}

/* Elements up to the end. */
static inline int rest_of(ls_iterator *it, int64_t *out)
{
    int n = 0;
    while (n < MOST_ELEMENTS && next_number(it, &out[n]))
        n++;
    return n;
}

static inline int all_of(ls_dataset *d, int64_t *out)
{
    ls_iterator *it = ls_iterate(d);
    int n = rest_of(it, out);
    ls_iterator_free(it);
    return n;
}

static inline void gives(ls_dataset *d, int n, const int64_t *want)
{
    int64_t got[MOST_ELEMENTS];
    assert_int_equal(all_of(d, got), n);
    if (n)
        assert_memory_equal(got, want, (size_t)n * sizeof *got);
}

/* ---- positions ------------------------------------------------------------------------------ */

static inline void same_position(ls_iterator *it, const ls_tensor *want)
{
    LS_FRAME {
        ls_tensor *p = ls_position(it);
        if (!p)
            fail_msg("%s", ls_error_report());
        assert_int_equal(ls_count(p), ls_count(want));
        assert_memory_equal(ls_data(p), ls_data(want), (size_t)ls_count(p));
    }
}

/* Stops after every element and goes on in a fresh iterator: the same elements, and the same positions
 * as those of one that never stopped. `wait`, if given, is called before positions are taken. */
static inline void resumes_everywhere(ls_dataset *d, void (*wait)(int64_t taken))
{
    int64_t all[MOST_ELEMENTS], rest[MOST_ELEMENTS];
    int n = 0;
    LS_FRAME {
        ls_tensor *positions[MOST_ELEMENTS + 1];
        ls_iterator *straight = ls_iterate(d);
        positions[0] = ls_position(straight);
        while (n < MOST_ELEMENTS && next_number(straight, &all[n])) {
            if (wait)
                wait(n + 1);
            positions[++n] = ls_position(straight);
            assert_non_null(positions[n]);
        }
        same_position(straight, positions[n]);
        ls_iterator_free(straight);
        for (int k = 0; k <= n; k++) {
            ls_iterator *other = ls_iterate(d);
            if (ls_seek(other, positions[k]))
                fail_msg("at %d: %s", k, ls_error_report());
            same_position(other, positions[k]);
            if (k < n) {
                assert_true(next_number(other, &rest[0]));
                assert_int_equal(rest[0], all[k]);
                same_position(other, positions[k + 1]);
                assert_int_equal(rest_of(other, rest + 1), n - k - 1);
                assert_memory_equal(rest, all + k, (size_t)(n - k) * sizeof *rest);
            } else {
                assert_int_equal(rest_of(other, rest), 0);
            }
            same_position(other, positions[n]);
            ls_iterator_free(other);
        }
    }
}

/* Lets go of an iterator after every number of elements, whatever its threads are at. */
static inline void frees_everywhere(ls_dataset *d)
{
    const size_t before = memory();
    int64_t all[MOST_ELEMENTS], x;
    const int n = all_of(d, all);
    for (int k = 0; k <= n; k++) {
        ls_iterator *it = ls_iterate(d);
        for (int i = 0; i < k; i++)
            assert_true(next_number(it, &x));
        ls_iterator_free(it);
    }
    assert_int_equal(memory(), before);
}

/* ---- a source that watches ---------------------------------------------------------------------- */

/* Numbers from `from` on. One thread at a time may be in it; what it gave goes bad with the next pull;
 * positions are asked for only if they were not released; it is loaded before it is pulled. */
typedef struct watched_options {
    int64_t from, count, fails; /* fails: this element does, -1: none */
    bool light;
} watched_options;

typedef struct watched_state {
    _Atomic int inside;
    int64_t at, released;
    bool pulled;
    int64_t given[2][64];
    int side;
} watched_state;

static _Atomic int violations;
static _Atomic int64_t watched_pulls, watched_releases, watched_released;

static inline void watched_enter(watched_state *s)
{
    violations += atomic_fetch_add(&s->inside, 1) != 0;
}

static inline void watched_leave(watched_state *s)
{
    atomic_fetch_sub(&s->inside, 1);
}

static inline ls_status watched_open(ls__it *it)
{
    it->words = 1;
    it->light = ((const watched_options *)it->dataset->options)->light;
    return LS_OK;
}

static inline void watched_close(ls__it *it)
{
    watched_enter(it->state);
}

static inline ls_status watched_fill(ls__it *it, int most, ls__chunk *out)
{
    watched_state *s = it->state;
    const watched_options *o = it->dataset->options;
    s->pulled = true;
    watched_pulls++;
    for (int i = 0; i < 64; i++)
        s->given[s->side][i] = -777;
    s->side = !s->side;
    if (s->at == o->count)
        return LS_END;
    if (s->at == o->fails) {
        s->at++;
        return ls__fail(LS_CORRUPT, "number %lld is damaged", (long long)o->fails);
    }
    int64_t n = most < 64 ? most : 64;
    n = n < o->count - s->at ? n : o->count - s->at;
    if (s->at < o->fails && o->fails < s->at + n)
        n = o->fails - s->at;
    ls_status st = ls__chunk_room(out, (int)n, 1, 1);
    if (st)
        return st;
    out->structure = ls__type_structure(it->dataset->type);
    for (; out->n < n; out->n++) {
        s->given[s->side][out->n] = o->from + s->at;
        *ls__chunk_datum(out, out->n, 0) = (ls__datum){ .spec = { .dtype = LS_I64 },
                                                        .data = &s->given[s->side][out->n],
                                                        .bytes = sizeof(int64_t) };
        *ls__chunk_after(out, out->n) = ++s->at;
    }
    return LS_OK;
}

static inline ls_status watched_pull(ls__it *it, int most, ls__chunk *out)
{
    watched_enter(it->state);
    ls_status st = watched_fill(it, most, out);
    watched_leave(it->state);
    return st;
}

static inline void watched_words(ls__it *it, int64_t *words)
{
    watched_enter(it->state);
    words[0] = ((watched_state *)it->state)->at;
    watched_leave(it->state);
}

static inline ls_status watched_go(ls__it *it, const int64_t *words)
{
    watched_state *s = it->state;
    const watched_options *o = it->dataset->options;
    if (words[0] < 0 || words[0] > o->count)
        return ls__position_corrupt();
    watched_enter(s);
    s->at = words[0];
    watched_leave(s);
    return LS_OK;
}

static inline ls_status watched_save(ls__it *it, const int64_t *words, ls__bytes_out *to)
{
    watched_state *s = it->state;
    watched_enter(s);
    violations += words[0] < s->released || words[0] > s->at;
    ls__put_int(to, words[0]);
    watched_leave(s);
    return LS_OK;
}

static inline ls_status watched_load(ls__it *it, ls__bytes_in *from)
{
    watched_state *s = it->state;
    const watched_options *o = it->dataset->options;
    violations += s->pulled;
    ls_status st = ls__get_int(from, 0, o->count, &s->at);
    s->released = s->at;
    return st;
}

static inline void watched_release(ls__it *it, const int64_t *words)
{
    watched_state *s = it->state;
    watched_enter(s);
    violations += words[0] < s->released || words[0] > s->at;
    s->released = words[0];
    watched_released = words[0];
    watched_releases++;
    watched_leave(s);
}

static const ls__stage watched_stage = { .name = "watched",
                                         .state_bytes = sizeof(watched_state),
                                         .open = watched_open,
                                         .close = watched_close,
                                         .pull = watched_pull,
                                         .words_now = watched_words,
                                         .go = watched_go,
                                         .save = watched_save,
                                         .load = watched_load,
                                         .release = watched_release };

static inline ls_dataset *watched(watched_options options)
{
    ls__dataset_draft draft = { .stage = &watched_stage, .cardinality = options.count };
    watched_options *o = ls__dataset_options(&draft, sizeof *o, NULL);
    assert_non_null(o);
    *o = options;
    assert_int_equal(ls__type_parse("watched", "i64[]", &draft.type), LS_OK);
    return ls__dataset_new(&draft, "watched %lld %lld", (long long)o->from, (long long)o->count);
}

static inline ls_dataset *watched_range(int64_t count)
{
    return watched((watched_options){ .count = count, .fails = -1 });
}

/* Before a test: nothing is pending, nothing was seen. */
static inline int clean_chain(void **state)
{
    violations = 0;
    watched_pulls = watched_releases = watched_released = 0;
    return clean(state);
}

#endif
