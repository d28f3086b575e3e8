/*
 * Blocks of elements. Invariant: a block is of exactly the size of its class, and lies in a slab, so it
 * fits every element of that class; blocks go back to their class, slabs to nobody before the end.
 * Four classes a power of two: at most a fifth of a block is wasted.
 */
#include "data/kept.h"

#include <stdlib.h>
#include <string.h>

#include "base/sanitized.h"
#include "base/status.h"
#include "os/pages.h"

enum {
    COPIED = 4096, /* bytes of a datum up to which they are copied into the block: larger ones
                            * are owned apart, and can be handed on without another copy */
    LEAST_SLAB = 4 << 10, /* else half of what there is, up to a large page */
    LEAST = 128,          /* bytes of a block */
    LEAST_LOG = 7
};

/* ---- blocks -------------------------------------------------------------------------------- */

/* Rounds up to the size of the class. */
static int class_of(size_t *bytes)
{
    const size_t n = *bytes < LEAST ? LEAST : *bytes;
    const int log = 63 - __builtin_clzll((unsigned long long)n);
    const size_t step = (size_t)1 << (log - 2);
    const size_t quarter = (n - ((size_t)1 << log) + step - 1) / step;
    *bytes = ((size_t)1 << log) + quarter * step;
    return (log - LEAST_LOG) * 4 + (int)quarter;
}

static bool new_slab(ls__store *s, size_t least)
{
    size_t bytes = s->in_slabs / 2 < LEAST_SLAB ? LEAST_SLAB : s->in_slabs / 2;
    bytes = bytes < LS__LARGE_PAGE ? bytes : LS__LARGE_PAGE;
    bytes = bytes < least ? least : bytes;
    void **slabs = realloc(s->slabs, (size_t)(s->n_slabs + 1) * sizeof *slabs);
    if (slabs)
        s->slabs = slabs;
    char *slab = slabs ? ls__pages_new(bytes) : NULL;
    if (!slab)
        return false;
    s->slabs[s->n_slabs++] = slab;
    s->in_slabs += bytes;
    s->bytes += (int64_t)bytes;
    s->at = slab;
    s->end = slab + bytes;
    return true;
}

static void *cut(ls__store *s, size_t bytes)
{
    if ((size_t)(s->end - s->at) < bytes && !new_slab(s, bytes))
        return NULL;
    char *block = s->at;
    s->at += bytes;
    return block;
}

/* So that the sanitizer knows each. */
static void *apart(ls__store *s, size_t bytes)
{
    void *block = malloc(bytes);
    s->bytes += block ? (int64_t)bytes : 0;
    return block;
}

static ls__kept *new_block(ls__store *s, size_t bytes)
{
    const int class = class_of(&bytes);
    ls__kept *e = class < LS__STORE_CLASSES ? s->free[class] : NULL;
    if (e)
        s->free[class] = e->next;
    else if (class < LS__STORE_CLASSES)
        e = LS__SANITIZED ? apart(s, bytes) : cut(s, bytes);
    if (!e) {
        ls__fail_memory("an element of a dataset", bytes);
        return NULL;
    }
    e->size_class = class;
    e->bytes = bytes;
    e->owned = 0;
    return e;
}

static void free_block(ls__store *s, ls__kept *e)
{
    if (LS__SANITIZED) {
        s->bytes -= (int64_t)e->bytes;
        free(e);
        return;
    }
    e->next = s->free[e->size_class];
    s->free[e->size_class] = e;
}

/* ---- elements ------------------------------------------------------------------------------- */

static bool is_copied(const ls__datum *d)
{
    return d->hold == LS__BORROWED && d->bytes <= COPIED &&
           (d->spec.dtype != LS_BYTES || d->spec.rank == 0);
}

static size_t in_words(size_t bytes)
{
    return (bytes + 7) & ~(size_t)7;
}

/* What is not copied is owned; how many bytes are to be copied. */
static ls_status own_rest(ls__datum *data, int leaves, size_t *bytes)
{
    *bytes = 0;
    for (int k = 0; k < leaves; k++) {
        ls_status st = LS_OK;
        if (is_copied(&data[k]))
            *bytes += in_words(data[k].bytes);
        else
            st = ls__datum_own(&data[k]);
        if (st)
            return st;
    }
    return LS_OK;
}

static int64_t owned_bytes(const ls__datum *d)
{
    enum { HEADER = 64 }; /* of a storage */
    return HEADER + (int64_t)(d->owner->release ? d->bytes : ls__storage_capacity(d->owner));
}

ls__kept *ls__store_keep(ls__store *s, ls__chunk *c, int i)
{
    ls__datum *from = ls__chunk_datum(c, i, 0);
    const size_t data = (size_t)s->leaves * sizeof *from;
    size_t copied;
    if (own_rest(from, s->leaves, &copied))
        return NULL;
    ls__kept *e = new_block(s, sizeof *e + (size_t)s->words * sizeof *e->rest + data + copied);
    if (!e)
        return NULL;
    ls__datum *to = ls__kept_data(s, e);
    char *bytes = (char *)to + data;
    for (int k = 0; k < s->leaves; k++) {
        const bool copies = is_copied(&from[k]);
        ls__datum_give(&to[k], &from[k]);
        if (copies) {
            if (to[k].bytes)
                memcpy(bytes, to[k].data, to[k].bytes);
            to[k].data = bytes;
            bytes += in_words(to[k].bytes);
        } else if (to[k].hold == LS__OWNED) {
            e->owned += owned_bytes(&to[k]);
        }
    }
    s->bytes += e->owned;
    return e;
}

void ls__store_give(ls__store *s, ls__kept *e, ls__chunk *out)
{
    ls__datum *data = ls__kept_data(s, e);
    for (int k = 0; k < s->leaves; k++)
        ls__datum_give(ls__chunk_datum(out, out->n, k), &data[k]);
    s->bytes -= e->owned;
    s->alike = !s->given || (s->alike && e->size_class == s->given->size_class);
    if (!s->given)
        s->given_last = e;
    e->next = s->given;
    s->given = e;
}

/* Blocks that were given some time ago have left the caches: a list of one class goes back as it is, unread. */
void ls__store_begin(ls__store *s)
{
    if (s->given && s->alike && !LS__SANITIZED) {
        ls__kept **free_ones = &s->free[s->given->size_class];
        s->given_last->next = *free_ones;
        *free_ones = s->given;
        s->given = NULL;
    }
    while (s->given) {
        ls__kept *e = s->given;
        s->given = e->next;
        free_block(s, e);
    }
}

void ls__store_drop(ls__store *s, ls__kept *e)
{
    if (!e)
        return;
    for (int k = 0; k < s->leaves; k++)
        ls__datum_drop(&ls__kept_data(s, e)[k]);
    s->bytes -= e->owned;
    free_block(s, e);
}

void ls__store_free(ls__store *s)
{
    ls__store_begin(s);
    for (int i = 0; i < s->n_slabs; i++)
        free(s->slabs[i]);
    free(s->slabs);
    *s = (ls__store){ .words = s->words, .leaves = s->leaves };
}
