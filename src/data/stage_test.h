/*
 * What tests of stages share: elements as numbers that can be compared, and positions tried at every
 * element.
 */
#ifndef LS__DATA_STAGE_TEST_H
#define LS__DATA_STAGE_TEST_H

#include <lockstep.h>
#include <stdlib.h>

#include "data/iterator.h"
#include "data/watched_test.h"
#include "tensor/tensor.h"
#include "tensor/test_support.h"
#include "tensor/value.h"

/* ---- elements ------------------------------------------------------------------------------------ */

static inline uint64_t hash_bytes(uint64_t h, const void *data, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = (h ^ ((const unsigned char *)data)[i]) * 0x100000001b3u;
    return h;
}

/* All that there is to an element, as a number. */
static inline uint64_t hash_value(const ls_value *v)
{
    const int n = ls_leaf_count(v);
    uint64_t h = 0xcbf29ce484222325u + (uint64_t)ls_kind_of(v);
    ls_tensor *tensors[64];
    assert_true(n <= 64);
    assert_int_equal(ls_flatten(v, tensors), LS_OK);
    for (int i = 0; i < n; i++) {
        const ls_tensor *t = tensors[i];
        const char *spec = ls__spec_text(&t->spec);
        h = hash_bytes(h, spec, strlen(spec) + 1);
        if (t->spec.dtype != LS_BYTES) {
            h = hash_bytes(h, ls__data(t), ls__spec_bytes(&t->spec));
            continue;
        }
        for (int64_t k = 0; k < ls__spec_count(&t->spec); k++) {
            const ls__string *string = (const ls__string *)ls__data(t) + k;
            assert_int_equal(((const char *)string->data)[string->length], 0);
            h = hash_bytes(h, string->data, string->length + 1);
        }
    }
    return h;
}

/* Numbers, all of i64 in the first leaf. */
static inline int64_t number_of(const ls_value *v)
{
    ls_tensor *tensors[64];
    assert_int_equal(ls_flatten(v, tensors), LS_OK);
    assert_int_equal(tensors[0]->spec.dtype, LS_I64);
    return *(const int64_t *)ls__data(tensors[0]);
}

/* The first numbers of all elements; failures are left out. Returns how many. */
static inline int numbers_of(ls_iterator *it, int most, int64_t *out)
{
    int n = 0;
    for (ls_status st = LS_OK; st != LS_END && n < most;) {
        LS_FRAME {
            ls_value *v = NULL;
            st = ls_next(it, &v);
            if (!st)
                out[n++] = number_of(v);
            else if (st != LS_END)
                assert_int_equal(ls_error(), st);
        }
    }
    assert_int_equal(ls_error(), LS_OK);
    return n;
}

static inline int run(ls_dataset *d, int most, int64_t *out)
{
    ls_iterator *it = ls_iterate(d);
    assert_non_null(it);
    int n = numbers_of(it, most, out);
    ls_iterator_free(it);
    return n;
}

static inline void expect(ls_dataset *d, int count, const int64_t *want)
{
    int64_t got[1024];
    assert_true(count < 1024);
    assert_int_equal(run(d, count + 1, got), count);
    if (count)
        assert_memory_equal(got, want, (size_t)count * sizeof *got);
}
#define EXPECT(d, ...)                                                                             \
    expect(d, (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / 8), (int64_t[]){ __VA_ARGS__ })

/* ---- positions ------------------------------------------------------------------------------------ */

typedef ls_dataset *(*build_fn)(uint64_t seed);

/* A place on the way: after an element, or behind a failure. */
typedef struct place {
    int elements, failures; /* so far */
    ls__bytes_out saved;
} place;

typedef struct trail {
    int n, failures;
    uint64_t elements[512];
    int64_t words[513][64]; /* before the first, after each */
    place places[513];      /* the same, saved at once */
    place behind[256];      /* each failure */
    int failed_at[256];     /* elements before each failure */
} trail;

static inline uint64_t draw_number(uint64_t *state)
{
    *state += 0x9E3779B97F4A7C15u;
    uint64_t h = (*state ^ *state >> 30) * 0xBF58476D1CE4E5B9u;
    h = (h ^ h >> 27) * 0x94D049BB133111EBu;
    return h ^ h >> 31;
}

/* A chunk's elements at the end of the trail. */
static inline ls_status follow(ls__it *it, int most, trail *t)
{
    ls__chunk chunk = { 0 };
    ls_status st = ls__it_pull(it, most, &chunk);
    if (st && st != LS_END) {
        assert_int_equal(ls_error(), st);
        assert_true(t->failures < 256);
        t->failed_at[t->failures++] = t->n;
    }
    assert_int_equal(ls_error(), LS_OK);
    assert_true(st ? chunk.n == 0 : chunk.n >= 1 && chunk.n <= most);
    assert_true(it->words <= 64);
    for (int i = 0; i < chunk.n && !st; i++, t->n++) {
        LS_FRAME {
            assert_true(t->n < 512);
            memcpy(t->words[t->n + 1], ls__chunk_after(&chunk, i), (size_t)it->words * 8);
            ls_value *v = ls__element_value(&chunk, i);
            assert_non_null(v);
            t->elements[t->n] = hash_value(v);
        }
    }
    ls__chunk_free(&chunk);
    return st;
}

static inline void save_place(ls__it *it, const int64_t *words, const trail *t, place *out)
{
    *out = (place){ .elements = t->n, .failures = t->failures };
    assert_int_equal(ls__it_save(it, words, &out->saved), LS_OK);
    assert_false(out->saved.failed);
}

static inline void expect_saved(ls__it *it, const int64_t *words, const place *want)
{
    ls__bytes_out got = { 0 };
    assert_int_equal(ls__it_save(it, words, &got), LS_OK);
    assert_int_equal(got.used, want->saved.used);
    assert_memory_equal(got.at, want->saved.at, got.used);
    ls__bytes_out_free(&got);
}

static inline ls__it *open_one(ls_dataset *d, ls__going *going, uint64_t iteration, trail *t)
{
    ls__it *it = NULL;
    assert_non_null(d);
    assert_int_equal(ls__it_open(d, &(ls__opening){ .going = going, .iteration = iteration }, &it),
                     LS_OK);
    t->n = t->failures = 0;
    ls__it_words(it, t->words[0]);
    return it;
}

/* One by one, saving at once. */
static inline void go_slowly(ls_dataset *d, uint64_t iteration, trail *t)
{
    ls__going going = { 0 };
    ls__it *it = open_one(d, &going, iteration, t);
    save_place(it, t->words[0], t, &t->places[0]);
    for (ls_status st = LS_OK; st != LS_END;) {
        const int failures = t->failures;
        st = follow(it, 1, t);
        if (!st) {
            ls__it_release(it, t->words[t->n]);
            save_place(it, t->words[t->n], t, &t->places[t->n]);
        } else if (t->failures > failures) {
            int64_t now[64];
            ls__it_words(it, now);
            ls__it_release(it, now);
            save_place(it, now, t, &t->behind[failures]);
        }
    }
    assert_int_equal(follow(it, 3, t), LS_END); /* again and again */
    ls__it_close(it);
    assert_int_equal(going.bytes, 0);
}

/* The same elements, and failures at the same places. */
static inline void expect_rest(const trail *got, const trail *want, int elements, int failures)
{
    assert_int_equal(got->n, want->n - elements);
    assert_memory_equal(got->elements, want->elements + elements, (size_t)got->n * 8);
    assert_int_equal(got->failures, want->failures - failures);
    for (int i = 0; i < got->failures; i++)
        assert_int_equal(elements + got->failed_at[i], want->failed_at[failures + i]);
}

/* In chunks, saving and releasing late. */
static inline void go_ahead(ls_dataset *d, uint64_t iteration, uint64_t seed, const trail *want)
{
    static trail t;
    ls__going going = { 0 };
    ls__it *it = open_one(d, &going, iteration, &t);
    ls_status st;
    int released = 0;
    do {
        st = follow(it, 1 + (int)(draw_number(&seed) % 9), &t);
        if (draw_number(&seed) % 3 == 0)
            for (int i = t.n; i >= released; i -= 1 + (int)(draw_number(&seed) % 4))
                expect_saved(it, t.words[i], &want->places[i]);
        if (draw_number(&seed) % 3 == 0) {
            released += (int)(draw_number(&seed) % (uint64_t)(t.n - released + 1));
            ls__it_release(it, t.words[released]);
        }
    } while (st != LS_END);
    for (int i = released; i <= t.n; i++)
        expect_saved(it, t.words[i], &want->places[i]);
    ls__it_close(it);
    expect_rest(&t, want, 0, 0);
    assert_int_equal(going.bytes, 0);
}

/* From a place to the end, in a dataset built anew. */
static inline void go_on(ls_dataset *d, uint64_t iteration, uint64_t seed, const place *from,
                         const trail *want)
{
    static trail t;
    ls__going going = { 0 };
    ls__it *it = open_one(d, &going, iteration, &t);
    ls__bytes_in in = { from->saved.at, from->saved.at + from->saved.used };
    assert_int_equal(ls__it_load(it, &in), LS_OK);
    assert_ptr_equal(in.at, in.end);
    ls__it_words(it, t.words[0]);
    expect_saved(it, t.words[0], from);
    while (follow(it, 1 + (int)(draw_number(&seed) % 5), &t) != LS_END)
        if (t.n > 0 && draw_number(&seed) % 4 == 0)
            expect_saved(it, t.words[t.n], &want->places[from->elements + t.n]);
    ls__it_close(it);
    expect_rest(&t, want, from->elements, from->failures);
    assert_int_equal(going.bytes, 0);
}

/* Stops at every position of build(seed), also behind failures, saves, restores and compares; saves also
 * late, and from what was restored. Returns how many elements there are. */
static inline int check_positions(build_fn build, uint64_t seed, uint64_t iteration)
{
    static trail slow;
    LS_FRAME {
        go_slowly(build(seed), iteration, &slow);
        for (uint64_t i = 0; i < 3; i++)
            go_ahead(build(seed), iteration, seed + i, &slow);
        for (int i = 0; i <= slow.n; i++)
            LS_FRAME {
                go_on(build(seed), iteration, seed, &slow.places[i], &slow);
            }
        for (int i = 0; i < slow.failures; i++)
            LS_FRAME {
                go_on(build(seed), iteration, seed, &slow.behind[i], &slow);
            }
    }
    for (int i = 0; i <= slow.n; i++)
        ls__bytes_out_free(&slow.places[i].saved);
    for (int i = 0; i < slow.failures; i++)
        ls__bytes_out_free(&slow.behind[i].saved);
    return slow.n;
}

#endif
