/*
 * What sources have in common that know how many elements they have, and any of them by its number:
 * range, slices, files. Their state begins with an ls__indexed; words: [how many were given].
 */
#ifndef LS__DATA_INDEXED_H
#define LS__DATA_INDEXED_H

#include "data/iterator.h"

typedef struct ls__indexed {
    int64_t at;
} ls__indexed;

ls_status ls__indexed_open(ls__it *it);

/* How many to give in this pull; 0: it is at the end. */
int ls__indexed_left(const ls__it *it, int most);

void ls__indexed_words_now(ls__it *it, int64_t *words);
ls_status ls__indexed_go(ls__it *it, const int64_t *words);
#define LS__HAS_INDEX                                                                              \
    .open = ls__indexed_open, .words_now = ls__indexed_words_now, .go = ls__indexed_go

#endif
