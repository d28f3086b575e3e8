/*
 * An element as bytes, in this machine's byte order:
 *
 *     crc (4)  mark's bytes + 1, or 0 (4)  the input's words (8 each; light inputs)
 *     for each leaf: dtype (1) rank (1) 0 (6)  sizes (8 each)  bytes (8)
 *     the mark  each leaf's bytes, all with zeros behind up to a multiple of 8
 *
 * A string's bytes are itself; those of an array of strings are their lengths (8 each), then their
 * texts. Invariant of reading: whatever the bytes are, none behind them is looked at.
 */
#include <lockstep/tensor.h>
#include <stdlib.h>
#include <string.h>

#include "data/cache.h"
#include "tensor/tensor.h"

static size_t padded(size_t bytes)
{
    return (bytes + 7) & ~(size_t)7;
}

static bool is_string_array(const ls__spec *spec)
{
    return spec->dtype == LS_BYTES && spec->rank > 0;
}

static int words_in(const ls__cache_head *h)
{
    return h->positions == LS__CACHE_WORDS ? h->words : 0;
}

/* ---- writing ----------------------------------------------------------------------------------- */

static size_t payload_of(const ls__datum *d)
{
    if (!is_string_array(&d->spec))
        return d->bytes;
    const ls__string *strings = d->data;
    int64_t count = ls__spec_count(&d->spec);
    size_t bytes = 0;
    for (int64_t i = 0; i < count; i++)
        bytes += 8 + strings[i].length;
    return bytes;
}

size_t ls__record_size(const ls__cache_head *h, const ls__chunk *c, int i, const ls__mark *mark)
{
    size_t bytes = 8 + 8 * (size_t)words_in(h) + (mark ? padded(mark->bytes) : 0);
    for (int k = 0; k < c->leaves; k++) {
        const ls__datum *d = ls__chunk_datum(c, i, k);
        bytes += 16 + 8 * (size_t)d->spec.rank + padded(payload_of(d));
    }
    return bytes;
}

static unsigned char *put(unsigned char *to, const void *data, size_t bytes)
{
    if (bytes)
        memcpy(to, data, bytes);
    return to + bytes;
}

static unsigned char *pad(unsigned char *to, size_t bytes)
{
    memset(to, 0, padded(bytes) - bytes);
    return to + (padded(bytes) - bytes);
}

static unsigned char *put_spec(unsigned char *to, const ls__datum *d)
{
    const unsigned char front[8] = { (unsigned char)d->spec.dtype, (unsigned char)d->spec.rank };
    const uint64_t bytes = payload_of(d);
    to = put(to, front, 8);
    to = put(to, d->spec.dims, 8 * (size_t)d->spec.rank);
    return put(to, &bytes, 8);
}

static unsigned char *put_payload(unsigned char *to, const ls__datum *d)
{
    if (!is_string_array(&d->spec))
        return pad(put(to, d->data, d->bytes), d->bytes);
    const ls__string *strings = d->data;
    int64_t count = ls__spec_count(&d->spec);
    for (int64_t i = 0; i < count; i++)
        to = put(to, &(uint64_t){ strings[i].length }, 8);
    for (int64_t i = 0; i < count; i++)
        to = put(to, strings[i].data, strings[i].length);
    return pad(to, payload_of(d));
}

void ls__record_write(const ls__cache_head *h, const ls__chunk *c, int i, const ls__mark *mark,
                      unsigned char *to)
{
    const uint32_t front[2] = { 0, mark ? (uint32_t)mark->bytes + 1 : 0 };
    to = put(to, front, 8);
    to = put(to, ls__chunk_after(c, i) + 1, 8 * (size_t)words_in(h));
    for (int k = 0; k < c->leaves; k++)
        to = put_spec(to, ls__chunk_datum(c, i, k));
    if (mark)
        to = pad(put(to, mark->data, mark->bytes), mark->bytes);
    for (int k = 0; k < c->leaves; k++)
        to = put_payload(to, ls__chunk_datum(c, i, k));
}

/* ---- reading ----------------------------------------------------------------------------------- */

typedef struct bytes_left {
    const unsigned char *at;
    size_t left;
} bytes_left;

/* The next bytes, or NULL. */
static const void *next(bytes_left *b, uint64_t bytes)
{
    if (bytes > b->left)
        return NULL;
    const void *at = b->at;
    b->at += bytes;
    b->left -= bytes;
    return at;
}

static const void *next_padded(bytes_left *b, uint64_t bytes)
{
    return bytes > b->left ? NULL : next(b, padded(bytes));
}

/* Numbers must have as many bytes as their sizes say; strings have 8 for each, at least. */
static bool read_spec(bytes_left *b, ls__datum *d)
{
    const unsigned char *front = next(b, 8);
    if (!front || front[0] < LS_F32 || front[0] > LS_BYTES || front[1] > LS_MAX_RANK)
        return false;
    *d = (ls__datum){ .spec = { .dtype = (ls_dtype)front[0], .rank = front[1] } };
    const void *dims = next(b, 8 * (uint64_t)front[1]), *size = next(b, 8);
    if (!dims || !size)
        return false;
    memcpy(d->spec.dims, dims, 8 * (size_t)front[1]);
    uint64_t bytes;
    memcpy(&bytes, size, 8);
    int64_t want = d->spec.dtype == LS_BYTES ? 16 : (int64_t)ls_dtype_size(d->spec.dtype);
    bool empty = false;
    for (int i = 0; i < d->spec.rank; i++) {
        empty |= d->spec.dims[i] == 0;
        if (d->spec.dims[i] < 0 ||
            (d->spec.dims[i] > 0 && __builtin_mul_overflow(want, d->spec.dims[i], &want)))
            return false;
    }
    d->bytes = bytes;
    want = empty ? 0 : want;
    if (d->spec.dtype != LS_BYTES)
        return bytes == (uint64_t)want;
    return d->spec.rank == 0 || bytes >= (uint64_t)want / 2;
}

/* They get addresses again, and memory of their own. */
static ls_status read_strings(ls__datum *d, const unsigned char *payload)
{
    const size_t count = (size_t)ls__spec_count(&d->spec);
    const unsigned char *text = payload + 8 * count;
    size_t left = d->bytes - 8 * count;
    ls__string *strings = malloc(count * sizeof *strings + 1);
    if (!strings)
        return ls__fail_memory("ls_cache", count * sizeof *strings);
    ls_status st = LS_OK;
    for (size_t i = 0; i < count && !st; i++) {
        uint64_t length;
        memcpy(&length, payload + 8 * i, 8);
        if (length > left) {
            st = LS_CORRUPT;
            break;
        }
        strings[i] = (ls__string){ text, length };
        text += length;
        left -= length;
    }
    d->data = strings;
    d->bytes = ls__spec_bytes(&d->spec);
    if (!st)
        st = left ? LS_CORRUPT : ls__datum_own(d);
    free(strings);
    return st;
}

static ls_status read_payload(bytes_left *b, ls__datum *d, ls__storage *owner)
{
    const unsigned char *payload = next_padded(b, d->bytes);
    if (!payload)
        return LS_CORRUPT;
    if (is_string_array(&d->spec))
        return read_strings(d, payload);
    d->data = payload;
    d->owner = owner;
    d->hold = owner ? LS__LASTING : LS__BORROWED;
    return LS_OK;
}

static ls_status read_position(const ls__cache_head *h, bytes_left *b, int64_t number,
                               int64_t *after)
{
    const void *words = next(b, 8 * (uint64_t)words_in(h));
    if (!words)
        return LS_CORRUPT;
    after[0] = number + 1;
    memset(after + 1, 0, 8 * (size_t)h->words);
    memcpy(after + 1, words, 8 * (size_t)words_in(h));
    return LS_OK;
}

ls_status ls__record_read(const ls__cache_head *h, const unsigned char *at, size_t bytes,
                          int64_t number, ls__storage *owner, ls__chunk *out, ls__marks *marks)
{
    bytes_left b = { at, bytes };
    uint32_t front[2];
    if (bytes < 8 || bytes % 8 != 0)
        return LS_CORRUPT;
    memcpy(front, next(&b, 8), 8);
    ls_status st = read_position(h, &b, number, ls__chunk_after(out, out->n));
    for (int k = 0; k < h->leaves && !st; k++)
        if (!read_spec(&b, ls__chunk_datum(out, out->n, k)))
            st = LS_CORRUPT;
    const uint32_t mark_bytes = front[1] ? front[1] - 1 : 0;
    const void *mark = st ? NULL : next_padded(&b, mark_bytes);
    if (!mark)
        return LS_CORRUPT;
    int read = 0;
    for (; read < h->leaves && !st; read++)
        st = read_payload(&b, ls__chunk_datum(out, out->n, read), owner);
    if (!st && b.left)
        st = LS_CORRUPT;
    if (!st && front[1])
        st = ls__marks_add(marks, number + 1, mark, mark_bytes);
    if (st)
        for (int k = 0; k < read; k++)
            ls__datum_drop(ls__chunk_datum(out, out->n, k));
    else
        out->n++;
    return st;
}
