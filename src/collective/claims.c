/* See claims.h. A rank's parts that are left are one number, so that its owner and who helps it never claim the same one.
 * Nothing else is handed over by it: what parts are made of was there before, and is read when all ranks are done. */
#include "collective/claims.h"

static uint64_t range(int64_t first, int64_t past)
{
    return (uint64_t)past << 32 | (uint64_t)first;
}

static int64_t first_of(uint64_t left)
{
    return (int64_t)(left & UINT32_MAX);
}

static int64_t past_of(uint64_t left)
{
    return (int64_t)(left >> 32);
}

void ls__claims_deal(ls__claims *c, int ranks, int64_t parts)
{
    c->ranks = ranks;
    for (int r = 0; r < ranks; r++)
        atomic_init(&c->of[r].left, range(parts * r / ranks, parts * (r + 1) / ranks));
}

/* The first part of `rank`, or its last; false: it has none. */
static bool take(ls__claims *c, int rank, bool last, int64_t *part)
{
    uint64_t left = atomic_load_explicit(&c->of[rank].left, memory_order_relaxed), then;
    do {
        const int64_t first = first_of(left), past = past_of(left);
        if (first >= past)
            return false;
        *part = last ? past - 1 : first;
        then = last ? range(first, past - 1) : range(first + 1, past);
    } while (!atomic_compare_exchange_weak_explicit(&c->of[rank].left, &left, then,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

static int with_most_left(ls__claims *c)
{
    int best = 0;
    int64_t most = -1;
    for (int r = 0; r < c->ranks; r++) {
        const uint64_t left = atomic_load_explicit(&c->of[r].left, memory_order_relaxed);
        if (past_of(left) - first_of(left) > most)
            best = r, most = past_of(left) - first_of(left);
    }
    return most > 0 ? best : -1;
}

bool ls__claims_next(ls__claims *c, int rank, int64_t *part)
{
    if (take(c, rank, false, part))
        return true;
    for (int other = with_most_left(c); other >= 0; other = with_most_left(c))
        if (take(c, other, true, part))
            return true;
    return false;
}
