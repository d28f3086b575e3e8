/*
 * A map from three numbers to a value, for reading schedules: (rank, chunk, node) and the like.
 * Open addressing; starts as zeros, entries are freed by its owner.
 */
#ifndef LS__COLLECTIVE_LOCAL_MAP_H
#define LS__COLLECTIVE_LOCAL_MAP_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

typedef struct ls__map_entry {
    uint32_t a, b, c;
    int value; /* -1: empty */
} ls__map_entry;

typedef struct ls__map {
    ls__map_entry *entries;
    size_t room, used; /* room is 0 or a power of two, at least twice what is used */
} ls__map;

static inline ls__map_entry *ls__map_at(const ls__map *m, uint32_t a, uint32_t b, uint32_t c)
{
    uint64_t h = ((uint64_t)a << 32 | b) * 0x9E3779B97F4A7C15u;
    h = (h ^ h >> 29 ^ c) * 0xBF58476D1CE4E5B9u;
    size_t i = (size_t)(h >> 24) & (m->room - 1);
    while (m->entries[i].value >= 0 &&
           (m->entries[i].a != a || m->entries[i].b != b || m->entries[i].c != c))
        i = (i + 1) & (m->room - 1);
    return &m->entries[i];
}

static inline int ls__map_get(const ls__map *m, uint32_t a, uint32_t b, uint32_t c)
{
    return m->used ? ls__map_at(m, a, b, c)->value : -1;
}

static inline void ls__map_empty(ls__map *m)
{
    if (m->used)
        memset(m->entries, 0xff, m->room * sizeof *m->entries);
    m->used = 0;
}

static inline ls_status ls__map_grow(ls__map *m)
{
    ls__map bigger = { .room = m->room ? 2 * m->room : 64, .used = m->used };
    bigger.entries = malloc(bigger.room * sizeof *bigger.entries);
    if (!bigger.entries)
        return ls__fail_memory("reading a schedule", bigger.room * sizeof *bigger.entries);
    memset(bigger.entries, 0xff, bigger.room * sizeof *bigger.entries);
    for (size_t i = 0; i < m->room; i++)
        if (m->entries[i].value >= 0)
            *ls__map_at(&bigger, m->entries[i].a, m->entries[i].b, m->entries[i].c) = m->entries[i];
    free(m->entries);
    *m = bigger;
    return LS_OK;
}

/* What was not there before. */
static inline ls_status ls__map_put(ls__map *m, uint32_t a, uint32_t b, uint32_t c, int value)
{
    if (2 * (m->used + 1) > m->room && ls__map_grow(m))
        return LS_NO_MEMORY;
    *ls__map_at(m, a, b, c) = (ls__map_entry){ a, b, c, value };
    m->used++;
    return LS_OK;
}

#endif
