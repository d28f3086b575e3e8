/*
 * Work in numbered parts, of which ranks claim one after the other: each its own, from the first on, as long as there are
 * any; then, from the last on, those of the rank that has most left. So a rank whose core is slow for a while is helped,
 * and otherwise everybody has the parts that it had the last time, which its caches may still know.
 *
 *     ls__claims_deal(&claims, ranks, parts);                    // before any rank begins
 *     while (ls__claims_next(&claims, rank, &part))              // on every rank's thread
 *         ...
 *
 * Who does a part changes no bit, if parts have nothing in common.
 */
#ifndef LS__COLLECTIVE_CLAIMS_H
#define LS__COLLECTIVE_CLAIMS_H

#include "os/range.h"

enum { LS__CLAIMS_MOST = 16 }; /* ranks */

typedef struct ls__claims {
    int ranks;
    struct {
        _Alignas(64) ls__range left;
    } of[LS__CLAIMS_MOST];
} ls__claims;

void ls__claims_deal(ls__claims *claims, int ranks, int64_t parts);
bool ls__claims_next(ls__claims *claims, int rank, int64_t *part);

#endif
