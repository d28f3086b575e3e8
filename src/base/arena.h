/*
 * An arena hands out memory that is all freed at once. Not shared between
 * threads. Chunks go back to a stock of the thread's, so that an arena that is
 * filled and cleared every step allocates nothing.
 *
 * What is cleared is overwritten, and used again as late as the stock allows: a
 * stale pointer into it (a handle of a closed frame) meets rubbish, not somebody
 * else's contents, for hundreds of frames.
 */
#ifndef LS__BASE_ARENA_H
#define LS__BASE_ARENA_H

#include <stddef.h>

typedef struct ls__arena {
    struct ls__chunk *chunks; /* newest first */
    size_t used;              /* bytes of the newest chunk */
} ls__arena;

/* 16-byte aligned; NULL when out of memory, with the error recorded. The
 * contents are not zeroed. An arena starts as all zeros. */
void *ls__arena_alloc(ls__arena *arena, size_t bytes);
char *ls__arena_string(ls__arena *arena, const char *text);

void ls__arena_clear(ls__arena *arena);

/* Frees the thread's stock of chunks (at the end of a thread). */
void ls__arena_thread_end(void);

#endif
