/*
 * A cache in memory: records in blocks of storage, one behind the other. All iterators of a dataset
 * share it. Several may fill one each at the same time: whoever is through first publishes his, and
 * the others let go of theirs.
 *
 * Invariant: a published store never changes, and lives as long as the options of its dataset. So
 * elements are given as they lie there.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "data/cache.h"

enum { FIRST_BLOCK = 16 << 10, LARGEST_BLOCK = 1 << 20 };

typedef struct place {
    ls__storage *block;
    const unsigned char *at;
    size_t bytes;
} place;

typedef struct ls__memory_store {
    ls__store store;
    struct ls__memory_store *next; /* of another input: sharding makes several of one dataset */
    ls__storage **blocks;
    int n_blocks, room_blocks;
    place *places; /* of the records */
    int64_t room;
} ls__memory_store;

typedef struct memory_recorder {
    ls__recorder recorder;
    ls__cache_shared *shared;
    ls__memory_store *into;   /* NULL: somebody else was faster */
    size_t block_bytes, used; /* of the last block */
} memory_recorder;

/* ---- stores ------------------------------------------------------------------------------------ */

static void free_store(ls__memory_store *m)
{
    if (!m)
        return;
    for (int i = 0; i < m->n_blocks; i++)
        ls__storage_unref(m->blocks[i]);
    free(m->blocks);
    free(m->places);
    ls__cache_head_free(&m->store.head);
    free(m);
}

void ls__memory_free(ls__cache_shared *shared)
{
    ls__memory_store *m = atomic_load_explicit(&shared->stores, memory_order_acquire);
    while (m) {
        ls__memory_store *next = m->next;
        free_store(m);
        m = next;
    }
}

ls__store *ls__memory_find(ls__cache_shared *shared, uint64_t fingerprint)
{
    /* Acquire pairs with the release in publish: what is found is complete. */
    ls__memory_store *m = atomic_load_explicit(&shared->stores, memory_order_acquire);
    while (m && m->store.head.fingerprint != fingerprint)
        m = m->next;
    return m ? &m->store : NULL;
}

/* False: there is one of this input already. */
static bool publish(ls__cache_shared *shared, ls__memory_store *m)
{
    m->next = atomic_load_explicit(&shared->stores, memory_order_acquire);
    do {
        if (ls__memory_find(shared, m->store.head.fingerprint))
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&shared->stores, &m->next, m,
                                                    memory_order_acq_rel, memory_order_acquire));
    return true;
}

static ls_status read_records(ls__store *s, int64_t number, int most, ls__chunk *out,
                              ls__marks *marks)
{
    const ls__memory_store *m = (const ls__memory_store *)s;
    const int64_t left = s->head.n - number;
    const int n = left < most ? (int)left : most;
    ls_status st = ls__chunk_room(out, n, s->head.leaves, 1 + s->head.words);
    for (int i = 0; i < n && !st; i++) {
        const place *p = &m->places[number + i];
        st = ls__record_read(&s->head, p->at, p->bytes, number + i, p->block, out, marks);
    }
    out->structure = s->head.structure;
    if (st)
        ls__chunk_clear(out);
    return st;
}

static void leave(ls__store *s)
{
    (void)s;
}

/* ---- filling ------------------------------------------------------------------------------------- */

static ls_status more_blocks(memory_recorder *r, size_t bytes)
{
    ls__memory_store *m = r->into;
    if (m->n_blocks == m->room_blocks) {
        int room = m->room_blocks ? 2 * m->room_blocks : 16;
        ls__storage **more = realloc(m->blocks, (size_t)room * sizeof *more);
        if (!more)
            return ls__fail_memory("ls_cache", (size_t)room * sizeof *more);
        m->blocks = more;
        m->room_blocks = room;
    }
    ls__storage *block = ls__storage_new("ls_cache", bytes);
    if (!block)
        return LS_NO_MEMORY;
    m->blocks[m->n_blocks++] = block;
    r->recorder.bytes += ls__storage_capacity(block);
    return LS_OK;
}

/* A large record has a block of its own; small ones share blocks, which become larger the more there
 * are. */
static ls_status room_for(memory_recorder *r, size_t bytes, place *out)
{
    ls__memory_store *m = r->into;
    ls_status st = LS_OK;
    size_t at = r->used;
    if (bytes > LARGEST_BLOCK / 4) {
        st = more_blocks(r, bytes);
        at = 0;
        r->used = r->block_bytes; /* what is left of the block before is not used */
    } else if (r->block_bytes - r->used < bytes) {
        size_t next = r->block_bytes < LARGEST_BLOCK ? 2 * r->block_bytes : LARGEST_BLOCK;
        next = next < FIRST_BLOCK ? FIRST_BLOCK : next;
        next = next < bytes ? LARGEST_BLOCK : next;
        st = more_blocks(r, next);
        at = 0;
        r->block_bytes = st ? 0 : next;
        r->used = st ? 0 : bytes;
    } else {
        r->used += bytes;
    }
    if (!st) {
        ls__storage *block = m->blocks[m->n_blocks - 1];
        *out = (place){ block, (unsigned char *)block->data + at, bytes };
    }
    return st;
}

static ls_status room_for_place(ls__memory_store *m, int64_t n, size_t *bytes)
{
    if (n < m->room)
        return LS_OK;
    int64_t room = m->room ? 2 * m->room : 64;
    place *more = realloc(m->places, (size_t)room * sizeof *more);
    if (!more)
        return ls__fail_memory("ls_cache", (size_t)room * sizeof *more);
    *bytes += (size_t)(room - m->room) * sizeof *more;
    m->places = more;
    m->room = room;
    return LS_OK;
}

static ls_status add(ls__recorder *base, const ls__chunk *c, int i, const ls__mark *mark)
{
    memory_recorder *r = (memory_recorder *)base;
    ls__cache_head *h = &base->head;
    if (r->into && ls__memory_find(r->shared, h->fingerprint)) {
        free_store(r->into);
        r->into = NULL;
        base->bytes = 0;
    }
    if (!r->into)
        return LS_OK;
    ls_status st = ls__cache_structure(h, c);
    if (!st)
        st = room_for_place(r->into, h->n, &base->bytes);
    if (!st)
        st = room_for(r, ls__record_size(h, c, i, mark), &r->into->places[h->n]);
    if (!st)
        ls__record_write(h, c, i, mark, (unsigned char *)(uintptr_t)r->into->places[h->n++].at);
    return st;
}

static void discard(ls__recorder *base)
{
    free_store(((memory_recorder *)base)->into);
    ls__cache_head_free(&base->head);
    free(base);
}

static ls_status finish(ls__recorder *base)
{
    memory_recorder *r = (memory_recorder *)base;
    if (r->into) {
        r->into->store.head = base->head;
        r->into->store.bytes = base->bytes;
        base->head = (ls__cache_head){ 0 };
        if (publish(r->shared, r->into))
            r->into = NULL;
    }
    discard(base);
    return LS_OK;
}

ls_status ls__memory_record(ls__cache_shared *shared, ls__cache_head *head, ls__recorder **out)
{
    memory_recorder *r = calloc(1, sizeof *r);
    if (r)
        r->into = calloc(1, sizeof *r->into);
    if (!r || !r->into) {
        free(r);
        ls__cache_head_free(head);
        return ls__fail_memory("ls_cache", sizeof *r);
    }
    r->shared = shared;
    r->into->store.read = read_records;
    r->into->store.close = leave;
    r->recorder = (ls__recorder){ .head = *head, .add = add, .finish = finish, .discard = discard };
    *head = (ls__cache_head){ 0 };
    *out = &r->recorder;
    return LS_OK;
}
