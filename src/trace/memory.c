/*
 * Greedy by size: the largest block first, each into the smallest gap it fits
 * among the blocks already placed that live while it does. On training steps, where
 * a few large activations decide, this meets the lower bound or comes near it.
 */
#include "trace/memory.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/status.h"

static int by_size(const void *a, const void *b)
{
    const ls__block *x = *(ls__block *const *)a, *y = *(ls__block *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x < y ? -1 : x > y;
}

static bool overlap(const ls__block *a, const ls__block *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* `placed` is sorted by offset. Returns the best gap for `b`. */
static size_t best_gap(const ls__block *b, ls__block *const *placed, int n)
{
    size_t need = ls__arena_round(b->bytes), end = 0, best = SIZE_MAX, best_size = SIZE_MAX;
    for (int i = 0; i < n; i++) {
        if (!overlap(b, placed[i]))
            continue;
        if (placed[i]->offset > end) {
            size_t gap = placed[i]->offset - end;
            if (gap >= need && gap < best_size) {
                best = end;
                best_size = gap;
            }
        }
        size_t stop = placed[i]->offset + ls__arena_round(placed[i]->bytes);
        end = stop > end ? stop : end;
    }
    return best == SIZE_MAX ? end : best;
}

static void insert_sorted(ls__block **placed, int n, ls__block *b)
{
    int at = n;
    for (; at > 0 && placed[at - 1]->offset > b->offset; at--)
        placed[at] = placed[at - 1];
    placed[at] = b;
}

ls_status ls__memory_plan(int n, ls__block *blocks, bool reuse, size_t *arena)
{
    ls__block **order = malloc(sizeof *order * (size_t)(2 * n + 1)), **placed = order + n;
    if (!order)
        return ls__fail_memory("a memory plan", sizeof *order * (size_t)(2 * n + 1));
    for (int i = 0; i < n; i++)
        order[i] = &blocks[i];
    qsort(order, (size_t)n, sizeof *order, by_size);
    size_t top = 0;
    for (int i = 0; i < n; i++) {
        ls__block *b = order[i];
        b->offset = reuse ? best_gap(b, placed, i) : top;
        insert_sorted(placed, i, b);
        size_t stop = b->offset + ls__arena_round(b->bytes);
        top = stop > top ? stop : top;
    }
    free(order);
    *arena = top;
    return LS_OK;
}

ls_status ls__memory_least(int n, const ls__block *blocks, size_t *out)
{
    int end = 0;
    for (int i = 0; i < n; i++)
        end = blocks[i].last > end ? blocks[i].last : end;
    /* What begins at an instruction, and what ended before it. */
    size_t *begins = calloc(2 * ((size_t)end + 2), sizeof *begins);
    if (!begins)
        return ls__fail_memory("a memory plan", 2 * ((size_t)end + 2) * sizeof *begins);
    size_t *ends = begins + end + 2, alive = 0, most = 0;
    for (int i = 0; i < n; i++) {
        begins[blocks[i].first] += ls__arena_round(blocks[i].bytes);
        ends[blocks[i].last + 1] += ls__arena_round(blocks[i].bytes);
    }
    for (int t = 0; t <= end; t++) {
        alive += begins[t] - ends[t];
        most = alive > most ? alive : most;
    }
    free(begins);
    *out = most;
    return LS_OK;
}
