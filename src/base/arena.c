/*
 * Bump allocation in chunks. Invariant: `used` counts into the newest chunk
 * only; older chunks are full. Only chunks of the common size are kept in stock:
 * a queue of at most STOCK of them, from which the oldest is taken, but only while
 * LATE are there: what was in a chunk stays recognisable rubbish for that long. An
 * arena filled and cleared again and again with up to STOCK - LATE chunks comes to
 * live on the stock alone.
 */
#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

/* Small chunks, so that a small frame touches little of the stock's 2 MiB. */
#define CHUNK_BYTES ((size_t)4 << 10)
#define STOCK 512
#define LATE 256
#define RUBBISH 0xDD

typedef struct ls__chunk {
    struct ls__chunk *next;
    size_t bytes; /* of data[] */
    _Alignas(16) char data[];
} ls__chunk;

static _Thread_local ls__chunk *oldest, *newest;
static _Thread_local int stocked;

static ls__chunk *take_oldest(void)
{
    ls__chunk *chunk = oldest;
    oldest = chunk->next;
    stocked--;
    return chunk;
}

static void put_newest(ls__chunk *chunk)
{
    chunk->next = NULL;
    if (stocked++ == 0)
        oldest = chunk;
    else
        newest->next = chunk;
    newest = chunk;
}

static ls__chunk *chunk_new(size_t bytes)
{
    if (bytes <= CHUNK_BYTES) {
        bytes = CHUNK_BYTES;
        if (stocked >= LATE)
            return take_oldest();
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
    size_t used = arena->used;
    while (arena->chunks) {
        ls__chunk *chunk = arena->chunks;
        arena->chunks = chunk->next;
        memset(chunk->data, RUBBISH, used);
        used = CHUNK_BYTES; /* the older ones are full */
        if (chunk->bytes == CHUNK_BYTES && stocked < STOCK)
            put_newest(chunk);
        else
            free(chunk);
        if (arena->chunks && arena->chunks->bytes < used)
            used = arena->chunks->bytes;
    }
    arena->used = 0;
}

void ls__arena_thread_end(void)
{
    while (stocked > 0)
        free(take_oldest());
}
