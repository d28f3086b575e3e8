/*
 * For tests: serialised examples written by hand, a piece at a time, in every way that protobuf
 * allows, and tensors of them whose memory ends with the last byte, so that a sanitizer sees it.
 */
#ifndef LS__DATA_EXAMPLE_TEST_SUPPORT_H
#define LS__DATA_EXAMPLE_TEST_SUPPORT_H

#include <lockstep/records.h>

#include <stdlib.h>

#include "tensor/tensor.h"
#include "tensor/test_support.h"

typedef struct bytes {
    uint8_t at[6000];
    size_t n;
} bytes;

static inline void put(bytes *b, const void *data, size_t n)
{
    assert_true(b->n + n <= sizeof b->at);
    if (n > 0)
        memcpy(b->at + b->n, data, n);
    b->n += n;
}

/* In at least `least` bytes, of which the last ones may say nothing. */
static inline void put_padded(bytes *b, uint64_t value, int least)
{
    do {
        uint8_t byte = (uint8_t)(value & 0x7f);
        value >>= 7;
        least--;
        byte |= value || least > 0 ? 0x80 : 0;
        put(b, &byte, 1);
    } while (value || least > 0);
}

static inline void put_varint(bytes *b, uint64_t value)
{
    put_padded(b, value, 1);
}

static inline void put_tag(bytes *b, uint32_t field, uint32_t type)
{
    put_varint(b, (uint64_t)field << 3 | type);
}

static inline void put_bytes(bytes *b, uint32_t field, const void *data, size_t n)
{
    put_tag(b, field, 2);
    put_varint(b, n);
    put(b, data, n);
}

static inline void put_message(bytes *b, uint32_t field, const bytes *inner)
{
    put_bytes(b, field, inner->at, inner->n);
}

/* ---- the messages of tf.train.Example -------------------------------------------------------- */

/* A Feature of packed numbers, or of strings. */
static inline bytes int_feature(int n, const int64_t *values)
{
    bytes packed = { .n = 0 }, list = { .n = 0 }, feature = { .n = 0 };
    for (int i = 0; i < n; i++)
        put_varint(&packed, (uint64_t)values[i]);
    put_message(&list, 1, &packed);
    put_message(&feature, 3, &list);
    return feature;
}

static inline bytes float_feature(int n, const float *values)
{
    bytes list = { .n = 0 }, feature = { .n = 0 };
    put_bytes(&list, 1, values, (size_t)n * sizeof *values);
    put_message(&feature, 2, &list);
    return feature;
}

static inline bytes bytes_feature(int n, const char *const *values)
{
    bytes list = { .n = 0 }, feature = { .n = 0 };
    for (int i = 0; i < n; i++)
        put_bytes(&list, 1, values[i], strlen(values[i]));
    put_message(&feature, 1, &list);
    return feature;
}

/* Adds an entry to the body of Features. */
static inline void put_entry(bytes *features, const char *key, const bytes *feature)
{
    bytes entry = { .n = 0 };
    put_bytes(&entry, 1, key, strlen(key));
    put_message(&entry, 2, feature);
    put_message(features, 1, &entry);
}

/* ---- tensors ----------------------------------------------------------------------------------- */

typedef struct exact {
    int64_t n;
    ls__string strings[64];
} exact;

static inline void free_exact(void *data, void *user)
{
    exact *e = user;
    (void)data;
    for (int64_t i = 0; i < e->n; i++)
        free((void *)e->strings[i].data);
    free(e);
}

/* bytes[n], or bytes[] when n is -1. */
static inline ls_tensor *exact_strings(int64_t n, const uint8_t *const *data, const size_t *lengths)
{
    exact *e = calloc(1, sizeof *e);
    assert_non_null(e);
    e->n = n < 0 ? 1 : n;
    assert_true(e->n <= 64);
    for (int64_t i = 0; i < e->n; i++) {
        void *copy = malloc(lengths[i]);
        if (lengths[i] > 0)
            memcpy(copy, data[i], lengths[i]);
        e->strings[i] = (ls__string){ copy, lengths[i] };
    }
    ls__spec spec = { .dtype = LS_BYTES, .rank = n < 0 ? 0 : 1, .dims = { e->n } };
    ls__storage *storage = ls__storage_wrap("a test", e->strings, free_exact, e);
    assert_non_null(storage);
    return ls__handle(&spec, storage, ls__new_id(), ls__device_current());
}

static inline ls_tensor *exact_string(const void *data, size_t length)
{
    const uint8_t *at = data;
    return exact_strings(-1, &at, &length);
}

/* An Example of this body of Features, as bytes[]. */
static inline ls_tensor *example_of(const bytes *features)
{
    bytes example = { .n = 0 };
    put_message(&example, 1, features);
    return exact_string(example.at, example.n);
}

/* ---- errors ----------------------------------------------------------------------------------- */

/* The last call failed like this, and said so. Takes the error. */
static inline void says(ls_status want, const char *text)
{
    if (ls_error_pending() != want || !strstr(ls_error_report(), text))
        fail_msg("wanted %s with '%s', got %s", ls_status_name(want), text, ls_error_report());
    ls_error();
}

/* ---- random numbers ------------------------------------------------------------------------------ */

static inline uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u; /* splitmix64 */
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline int below(uint64_t *state, int n)
{
    return (int)(draw(state) % (uint64_t)n);
}

#endif
