/*
 * The inside of ls_interleave and ls_flat_map: going through (interleave.c), and positions
 * (interleave_position.c).
 */
#ifndef LS__DATA_INTERLEAVE_H
#define LS__DATA_INTERLEAVE_H

#include "data/history.h"

typedef struct ls__interleave_options {
    const char *who; /* "ls_flat_map" */
    ls_dataset_fn fn;
    void *user;
    int cycle;
    int64_t block;
    int parallel; /* slots from 0 on that are read ahead */
} ls__interleave_options;

/* Where the next pull begins; the history has where pulls before it did. */
typedef struct ls__interleave {
    ls__it *input;
    ls__chunk element; /* of the input */
    ls__chunk chunk;   /* of a dataset */
    ls__type *first;   /* element's; NULL: there was none */
    ls__history *history;
    int64_t count; /* elements given, and failures */
    int64_t number, given;
    int current, open;
    bool ended;        /* the input */
    ls__inner **slots; /* the history's */
    int64_t *before;   /* words of the input */
} ls__interleave;

/* Calls the function on the element in `from`, the number'th of the input, and opens the dataset that
 * it makes. `before`: the input's words in front of the element. */
ls_status ls__interleave_make(ls__it *it, int slot, ls__chunk *from, int64_t number,
                              const int64_t *before, ls__inner **out);

ls_status ls__interleave_save(ls__it *it, const int64_t *words, ls__bytes_out *to);
ls_status ls__interleave_load(ls__it *it, ls__bytes_in *from);

#endif
