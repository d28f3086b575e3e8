/*
 * Bump allocation in chunks. Invariant: `used` counts into the newest chunk
 * only; older chunks are full. Only chunks of the common size are kept in
 * stock, and at most STOCK of them.
 */
#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

#define CHUNK_BYTES ((size_t)16 << 10)
#define STOCK 16

typedef struct ls__chunk {
    struct ls__chunk *next;
    size_t bytes; /* of data[] */
    _Alignas(16) char data[];
} ls__chunk;

static _Thread_local ls__chunk *stock;
static _Thread_local int stocked;

static ls__chunk *chunk_new(size_t bytes)
{
    if (bytes <= CHUNK_BYTES) {
        bytes = CHUNK_BYTES;
        if (stock) {
            ls__chunk *chunk = stock;
            stock = chunk->next;
            stocked--;
            return chunk;
        }
    }
    ls__chunk *chunk = bytes <= SIZE_MAX - sizeof *chunk ? malloc(sizeof *chunk + bytes) : NULL;
    if (!chunk) {
        ls__fail_memory("arena", bytes);
        return NULL;
    }
    chunk->bytes = bytes;
    return chunk;
}

void *ls__arena_alloc(ls__arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX - 15) {
        ls__fail_memory("arena", bytes);
        return NULL;
    }
    bytes = (bytes + 15) & ~(size_t)15;
    if (!arena->chunks || arena->chunks->bytes - arena->used < bytes) {
        ls__chunk *chunk = chunk_new(bytes);
        if (!chunk)
            return NULL;
        chunk->next = arena->chunks;
        arena->chunks = chunk;
        arena->used = 0;
    }
    void *at = arena->chunks->data + arena->used;
    arena->used += bytes;
    return at;
}

char *ls__arena_string(ls__arena *arena, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = ls__arena_alloc(arena, bytes);
    if (copy)
        memcpy(copy, text, bytes);
    return copy;
}

void ls__arena_clear(ls__arena *arena)
{
    while (arena->chunks) {
        ls__chunk *chunk = arena->chunks;
        arena->chunks = chunk->next;
        if (chunk->bytes == CHUNK_BYTES && stocked < STOCK) {
            chunk->next = stock;
            stock = chunk;
            stocked++;
        } else {
            free(chunk);
        }
    }
    arena->used = 0;
}

void ls__arena_thread_end(void)
{
    while (stock) {
        ls__chunk *next = stock->next;
        free(stock);
        stock = next;
    }
    stocked = 0;
}
