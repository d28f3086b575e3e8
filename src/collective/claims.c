/* See claims.h. Nothing is handed over by a claim: what parts are made of was there before, and is read when all ranks are
 * done. */
#include "collective/claims.h"

void ls__claims_deal(ls__claims *c, int ranks, int64_t parts)
{
    c->ranks = ranks;
    for (int r = 0; r < ranks; r++)
        ls__range_set(&c->of[r].left, parts * r / ranks, parts * (r + 1) / ranks);
}

static int with_most_left(ls__claims *c)
{
    int best = 0;
    int64_t most = -1;
    for (int r = 0; r < c->ranks; r++) {
        const int64_t left = ls__range_left(&c->of[r].left);
        if (left > most)
            best = r, most = left;
    }
    return most > 0 ? best : -1;
}

bool ls__claims_next(ls__claims *c, int rank, int64_t *part)
{
    if (ls__range_take(&c->of[rank].left, false, part))
        return true;
    for (int other = with_most_left(c); other >= 0; other = with_most_left(c))
        if (ls__range_take(&c->of[other].left, true, part))
            return true;
    return false;
}
