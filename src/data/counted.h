/*
 * What stages have in common that count the elements of their only input: take, shard, filter, enumerate.
 * Their state begins with an ls__counted; words: [elements of the input so far][those of the
 * input]. An element that failed is one, too: where those behind it belong does not depend on it.
 */
#ifndef LS__DATA_COUNTED_H
#define LS__DATA_COUNTED_H

#include "data/iterator.h"

typedef struct ls__counted {
    ls__it *input;
    int64_t at;
} ls__counted;

ls_status ls__counted_open(ls__it *it);

/* Pulls the input, and counts an element that fails; those it gives are the caller's to count. */
ls_status ls__counted_pull(ls__it *it, int most, ls__chunk *out);

void ls__counted_words_now(ls__it *it, int64_t *words);
ls_status ls__counted_go(ls__it *it, const int64_t *words);
ls_status ls__counted_load(ls__it *it, ls__bytes_in *from);

/* These serve any stage whose state begins with its input and whose words are one, and the input's. */
ls_status ls__counted_save(ls__it *it, const int64_t *words, ls__bytes_out *to);
void ls__counted_release(ls__it *it, const int64_t *words);
#define LS__COUNTS_ELEMENTS                                                                        \
    .words_now = ls__counted_words_now, .go = ls__counted_go, .save = ls__counted_save,            \
    .load = ls__counted_load, .release = ls__counted_release

#endif
