/*
 * The structure of elements whose input comes and goes. A chunk's structure must live as long as the
 * iterator that gave it; that of an input goes with the input (repeat closes those of old epochs), and
 * two inputs of which nothing was known may differ (concatenate).
 */
#ifndef LS__DATA_STRUCTURE_H
#define LS__DATA_STRUCTURE_H

#include "data/iterator.h"

typedef struct ls__structure {
    ls_value *kept;       /* NULL: the dataset's type has it, or there was no element yet */
    const ls_value *seen; /* the last one that was found to be the same */
} ls__structure;          /* starts as zeros */

/* Gives a chunk just pulled from an input the structure that all elements of `it` have. LS_INVALID, and
 * the chunk is empty: they differ. */
ls_status ls__structure_settle(const char *who, const ls__it *it, ls__structure *s, ls__chunk *c);

/* A list of these, kept; NULL when out of memory. */
ls_value *ls__structure_list(int count, const ls_value *const *items);

/* The type of lists of one of each: not known where one of them is not. NULL when out of memory. */
ls__type *ls__type_list(int count, const ls__type *const *items);

void ls__structure_free(ls__structure *s);

#endif
