/*
 * What a training left behind, as bytes with names. Invariant: entries cover the bytes in order,
 * without gaps, so two records differ where their bytes or their entries do.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "same_bits/same_bits.h"

/* Room for one more of `size` and a margin; NULL when there is no memory. */
static void *grown(void *old, size_t *room, size_t wanted, size_t size)
{
    if (wanted <= *room)
        return old;
    size_t more = wanted + wanted / 2 + 64;
    void *new = realloc(old, more * size);
    if (new)
        *room = more;
    return new;
}

static bool make_room(sb_record *r, size_t bytes)
{
    void *b = grown(r->bytes, &r->room_bytes, r->n_bytes + bytes, 1);
    if (b)
        r->bytes = b;
    size_t room = (size_t)r->room_entries;
    void *e = grown(r->entries, &room, (size_t)r->n_entries + 1, sizeof *r->entries);
    if (e) {
        r->entries = e;
        r->room_entries = (int)room;
    }
    return b && e;
}

void sb_add(sb_record *r, const char *name, ls_dtype dtype, const void *data, size_t bytes)
{
    if (r->failed || !make_room(r, bytes)) {
        r->failed = true;
        return;
    }
    sb_entry *e = &r->entries[r->n_entries++];
    *e = (sb_entry){ .dtype = dtype, .at = r->n_bytes, .bytes = bytes };
    snprintf(e->name, sizeof e->name, "%s", name);
    memcpy(r->bytes + r->n_bytes, data, bytes);
    r->n_bytes += bytes;
}

void sb_add_tensor(sb_record *r, const char *name, ls_tensor *t)
{
    const void *data = t ? ls_data(t) : NULL;
    if (data)
        sb_add(r, name, ls_dtype_of(t), data, ls_size_in_bytes(t));
    else
        r->failed = true;
}

void sb_add_int(sb_record *r, const char *name, int64_t value)
{
    sb_add(r, name, LS_I64, &value, sizeof value);
}

void sb_record_free(sb_record *r)
{
    free(r->bytes);
    free(r->entries);
    *r = (sb_record){ 0 };
}

static uint64_t fnv(uint64_t h, const void *data, size_t bytes)
{
    const unsigned char *b = data;
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ b[i]) * 0x100000001b3u;
    return h;
}

uint64_t sb_digest(const sb_record *r)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (int i = 0; i < r->n_entries; i++)
        h = fnv(h, r->entries[i].name, strlen(r->entries[i].name));
    return fnv(h, r->bytes, r->n_bytes);
}

static double number_at(const sb_record *r, const sb_entry *e, size_t i)
{
    const unsigned char *at = r->bytes + e->at + i * ls_dtype_size(e->dtype);
    float f;
    double d;
    int64_t n;
    switch (e->dtype) {
    case LS_F32:
        memcpy(&f, at, sizeof f);
        return (double)f;
    case LS_F64:
        memcpy(&d, at, sizeof d);
        return d;
    case LS_I64:
        memcpy(&n, at, sizeof n);
        return (double)n;
    default:
        return *at;
    }
}

static bool same_entry(const sb_entry *a, const sb_entry *b)
{
    return strcmp(a->name, b->name) == 0 && a->dtype == b->dtype && a->bytes == b->bytes;
}

static void first_difference(const sb_record *want, const sb_record *got, const sb_entry *e,
                             char *out)
{
    size_t size = ls_dtype_size(e->dtype), n = e->bytes / size, first = n, count = 0;
    for (size_t i = n; i-- > 0;)
        if (memcmp(want->bytes + e->at + i * size, got->bytes + e->at + i * size, size) != 0) {
            first = i;
            count++;
        }
    snprintf(out, SB_TEXT, "%s, element %zu of %zu: %a (%.9g), not %a (%.9g); %zu differ", e->name,
             first, n, number_at(got, e, first), number_at(got, e, first),
             number_at(want, e, first), number_at(want, e, first), count);
}

bool sb_same(const sb_record *want, const sb_record *got, char difference[SB_TEXT])
{
    for (int i = 0; i < want->n_entries; i++) {
        const sb_entry *e = &want->entries[i];
        if (i >= got->n_entries || !same_entry(e, &got->entries[i])) {
            snprintf(difference, SB_TEXT, "%s is missing, or of another size", e->name);
            return false;
        }
        if (memcmp(want->bytes + e->at, got->bytes + e->at, e->bytes) != 0) {
            first_difference(want, got, e, difference);
            return false;
        }
    }
    if (want->n_entries != got->n_entries)
        snprintf(difference, SB_TEXT, "%s is too much", got->entries[want->n_entries].name);
    return want->n_entries == got->n_entries;
}

bool sb_finite(const sb_record *r, char which[SB_TEXT])
{
    for (int i = 0; i < r->n_entries; i++) {
        const sb_entry *e = &r->entries[i];
        for (size_t k = 0; k < e->bytes / ls_dtype_size(e->dtype); k++)
            if (!isfinite(number_at(r, e, k))) {
                snprintf(which, SB_TEXT, "%s, element %zu: %g, which would hide differences",
                         e->name, k, number_at(r, e, k));
                return false;
            }
    }
    return true;
}
