/*
 * The memory plan: blocks with a size and a lifetime, laid into one arena so that
 * no two that live at once overlap. Pure: it knows nothing of graphs.
 */
#ifndef LS__TRACE_MEMORY_H
#define LS__TRACE_MEMORY_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stddef.h>

#define LS__ARENA_ALIGN ((size_t)64)

typedef struct ls__block {
    size_t bytes;
    int first, last; /* the instructions between which it lives, both included */
    size_t offset;   /* the answer */
} ls__block;

/* Fills the offsets, multiples of LS__ARENA_ALIGN, and the size of the arena. Without
 * `reuse` every block has its own place. */
ls_status ls__memory_plan(int n, ls__block *blocks, bool reuse, size_t *arena);

/* The most bytes alive at one instruction (sizes rounded up as the plan must): no
 * plan can do with less. */
ls_status ls__memory_least(int n, const ls__block *blocks, size_t *out);

static inline size_t ls__arena_round(size_t bytes)
{
    return (bytes + LS__ARENA_ALIGN - 1) & ~(LS__ARENA_ALIGN - 1);
}

#endif
