/*
 * What an interleave did since the oldest element whose position may still be asked for: enough to say,
 * for any element since, and behind any failure, which datasets were open then, from where, and at which place in each.
 *
 *     moments    7          8                    9        elements given, and failures
 *     events     | taken 1  | closed 1, input,   |
 *                |          | opened 1, taken 1  |
 *     base ------+                                        events are applied to it when released
 *
 * Datasets that were read to their end stay open until no moment has them any more.
 */
#ifndef LS__DATA_HISTORY_H
#define LS__DATA_HISTORY_H

#include "data/iterator.h"

/* A dataset that is open, made of an element of the input. */
typedef struct ls__inner {
    ls__it *it;
    int64_t number;  /* of the element */
    int64_t *before; /* the input's words in front of it */
    unsigned char
        *saved; /* the same as bytes, for an input that does not know the words any more */
    size_t saved_bytes;
    bool is_saved;
    int64_t *words; /* of `it` at the base, or where it was opened */
    bool checked;   /* its elements are like others' */
} ls__inner;

/* For an input with so many words. NULL when out of memory; takes `it` over when it works. */
ls__inner *ls__inner_new(ls__it *it, int64_t number, const int64_t *before, int n_before);
void ls__inner_free(ls__inner *inner); /* takes NULL */

/* Where an interleave stands. */
typedef struct ls__moment {
    int64_t count;         /* elements given, and failures */
    int64_t number;        /* of the next element of the input */
    const int64_t *input;  /* the input's words */
    int current;           /* the slot whose turn it is */
    int64_t given;         /* elements of it, in this block */
    ls__inner **slots;     /* NULL: empty */
    const int64_t **words; /* the place in each */
} ls__moment;

typedef struct ls__history ls__history;

/* NULL when out of memory. Begins at count 0, where the input stands now. */
ls__history *ls__history_new(ls__it *input, int slots);
void ls__history_free(ls__history *h); /* and all datasets in it; takes NULL */

/* Room for so many events and their words: noting them cannot fail then. LS_NO_MEMORY. */
ls_status ls__history_room(ls__history *h, int events, size_t words);
void ls__history_input(ls__history *h, const int64_t *words, int64_t number);
void ls__history_opened(ls__history *h, int slot, ls__inner *inner); /* takes it over */
void ls__history_closed(ls__history *h, int slot);
void ls__history_taken(ls__history *h, int slot, const int64_t *words, int n_words, int current,
                       int64_t given);

/* A failure: of the dataset in a slot, which stands behind it, or (NULL) another one. */
void ls__history_failed(ls__history *h, int slot, ls__it *inner, int current, int64_t given);

/* The moment after `count` elements and failures, until the next call here. LS_STATE when it is gone. */
ls_status ls__history_at(ls__history *h, int64_t count, ls__moment *out);

/* No moment before this will be asked for. */
void ls__history_release(ls__history *h, int64_t count);

/* As if it began with this moment, whose datasets and words it takes over or copies; there must have
 * been no event. */
void ls__history_begin(ls__history *h, const ls__moment *m);

#endif
