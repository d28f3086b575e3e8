/*
 * Facts in an open hash table, at most half full, so every search ends at a free slot. A slot
 * counts only with the stamp of now: forgetting is a new stamp.
 */
#include "collective/verify_facts.h"

#include <stdlib.h>

bool ls__facts_open(ls__facts *f, size_t most)
{
    size_t size = 16;
    while (size < 2 * most)
        size *= 2;
    *f = (ls__facts){ .slots = calloc(size, sizeof *f->slots),
                      .order = malloc((most + 1) * sizeof *f->order),
                      .mask = size - 1,
                      .stamp = 1 };
    return f->slots && f->order;
}

void ls__facts_close(ls__facts *f)
{
    free(f->slots);
    free(f->order);
}

void ls__facts_forget(ls__facts *f)
{
    f->stamp++;
    f->n = 0;
}

/* The slot of this fact, or the free one where it would be. */
static size_t slot(const ls__facts *f, ls__fact_kind kind, uint32_t a, uint32_t b, uint32_t c)
{
    uint64_t h = ((uint64_t)a << 32 | b) * 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 29 ^ ((uint64_t)c << 2 | kind)) * 0xbf58476d1ce4e5b9u;
    for (size_t i = (h ^ h >> 32) & f->mask;; i = (i + 1) & f->mask) {
        const ls__fact *at = &f->slots[i];
        if (at->stamp != f->stamp || (at->kind == kind && at->a == a && at->b == b && at->c == c))
            return i;
    }
}

ls__fact *ls__fact_find(const ls__facts *f, ls__fact_kind kind, uint32_t a, uint32_t b, uint32_t c)
{
    ls__fact *at = &f->slots[slot(f, kind, a, b, c)];
    return at->stamp == f->stamp ? at : NULL;
}

ls__fact *ls__fact_new(ls__facts *f, ls__fact_kind kind, uint32_t a, uint32_t b, uint32_t c)
{
    size_t i = slot(f, kind, a, b, c);
    if (f->slots[i].stamp == f->stamp)
        return NULL;
    f->slots[i] = (ls__fact){ .stamp = f->stamp, .kind = kind, .a = a, .b = b, .c = c, .hop = -1 };
    f->order[f->n++] = (uint32_t)i;
    return &f->slots[i];
}
