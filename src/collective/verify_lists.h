/*
 * The verifier's first half: every hop for itself and in its list, and then all of them in the
 * order in which they are followed.
 */
#ifndef LS__COLLECTIVE_VERIFY_LISTS_H
#define LS__COLLECTIVE_VERIFY_LISTS_H

#include "collective/schedule.h"

typedef struct ls__place {
    int rank, hop;
} ls__place;

typedef struct ls__lists {
    int *n_folds;      /* per rank: the first of its list */
    ls__place *places; /* of all other hops: by chunk, then round, then rank, then list */
    size_t *begin;     /* of each chunk in places, and an end */
} ls__lists;

/* LS_CORRUPT for a hop that is none or not where it belongs. Free it either way. */
ls_status ls__lists_open(ls__lists *l, const ls__schedule *s);
void ls__lists_close(ls__lists *l);

bool ls__hop_is_fold(const ls__hop *h);

/* Fails with LS_CORRUPT, naming the hop. */
ls_status ls__hop_wrong(const ls__schedule *s, ls__place at, const char *why);

#endif
