/*
 * What ls_batch and ls_padded_batch have in common: they gather elements of their input, one a row. When
 * one fails (a damaged record, another shape) that is reported at once, and the rows gathered so far stay:
 * it alone is missing.
 *
 * Words: [events][those of the input where the batch begins]. An event is an element or a failure of the
 * input since then. Behind a batch there was none yet; behind a failure inside of one there were some. Who
 * is put there gathers their rows again, and says nothing of those that failed: it was said before.
 *
 *     input      a   b   fails   c   d   e
 *     batch 3    [ . . . (reported) . ]              given: a b c
 *     words      0 at a      3 at a     0 behind c
 *
 * A stage's state begins with an ls__rows, its options with an ls__rows_options. Its pull is
 *
 *     st = ls__rows_collect(it, gather);      // gather: rows_more and rows_took, up to n rows
 *     ... makes the element of r->n rows ...
 *     ls__rows_given(it, out);
 */
#ifndef LS__DATA_ROWS_H
#define LS__DATA_ROWS_H

#include "data/iterator.h"

typedef struct ls__rows_options {
    int64_t n; /* of a whole batch */
    bool full; /* gives no others */
} ls__rows_options;

typedef struct ls__rows {
    ls__it *input;
    ls__chunk chunk;           /* of the input */
    int next;                  /* elements of the chunk before it are rows, or failed */
    const ls_value *structure; /* of elements; known with the first */
    int leaves;                /* the same */
    int64_t n;                 /* rows gathered */
    int64_t failed;            /* events that are none; 0 while there are no rows */
    int64_t known;             /* so many events are not news: we were put behind them */
    int64_t *begin;            /* the input's words where the batch begins */
    int64_t *behind;           /* and behind the last event, unless the chunk has it */
} ls__rows;

ls_status ls__rows_open(ls__it *it);
void ls__rows_close(ls__it *it);

/* There are elements in the chunk then, of which those before `end` are wanted. */
ls_status ls__rows_more(ls__it *it, int *end);

/* The next element of the chunk is a row, or failed with `st`, which it returns. */
static inline ls_status ls__rows_took(ls__rows *r, ls_status st)
{
    r->next++;
    r->n += !st;
    r->failed += st != LS_OK;
    return st;
}

/* Rows for a batch, by a function that returns when all are there, or with the first failure. LS_END: there
 * are not enough. After a failure those that there are stay. */
ls_status ls__rows_collect(ls__it *it, ls_status (*gather)(ls__it *it));

/* The rows are the only element of `out`, which has room for it: its position. Lost: they are nobody's.
 * Both: the next batch begins. */
void ls__rows_given(ls__it *it, ls__chunk *out);
void ls__rows_lost(ls__it *it);

/* Positions. What was made of the rows is the stage's to drop before it calls go or load. */
void ls__rows_words_now(ls__it *it, int64_t *words);
ls_status ls__rows_go(ls__it *it, const int64_t *words);
ls_status ls__rows_save(ls__it *it, const int64_t *words, ls__bytes_out *to);
ls_status ls__rows_load(ls__it *it, ls__bytes_in *from);
void ls__rows_release(ls__it *it, const int64_t *words);

/* Of a dataset that batches: the rows of a whole batch. Of one to be made on `d`: how many batches, and
 * (-1: not known) how many rows each has. */
int64_t ls__rows_whole(const ls_dataset *d);
int64_t ls__rows_batches(const ls_dataset *d, const ls__rows_options *o, int64_t *rows);

#endif
