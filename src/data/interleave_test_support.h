/*
 * What tests of interleave and flat_map share: datasets of numbers, some long, some of nothing.
 */
#ifndef LS__DATA_INTERLEAVE_TEST_SUPPORT_H
#define LS__DATA_INTERLEAVE_TEST_SUPPORT_H

#include "data/test_chain.h"

static const int64_t sizes[] = { 3, 0, 2, 5, 1, 4, 0, 0, 7, 2, 1, 1, 40, 3 };
enum { SIZES = sizeof sizes / sizeof *sizes };

typedef struct plan {
    const int64_t *sizes;
    bool light; /* the datasets */
} plan;

/* Element i: the numbers from 100 i on, sizes[i] of them. */
static inline ls_dataset *numbers(ls_value *v, void *user)
{
    const plan *p = user;
    const int64_t i = number_of(v);
    return watched(
        (watched_options){ .from = 100 * i, .count = p->sizes[i], .fails = -1, .light = p->light });
}

#endif
