/*
 * One feature of all examples of a call, on its way to tensors (ls_parse_examples).
 *
 *     ls__column_open      checks the feature; numbers of a fixed shape get their tensor
 *     ls__column_take      once an example, in order, with its list in c->seen
 *     ls__column_close     the value of the column
 *     ls__column_free      its notes; the tensors are the frame's
 *
 * Numbers of a fixed shape are written when they are taken. Of strings, and of lists of any
 * length, it is noted where they lie, and they are written when it is known how much there is.
 */
#ifndef LS__DATA_EXAMPLE_COLUMN_H
#define LS__DATA_EXAMPLE_COLUMN_H

#include <lockstep/records.h>

#include "data/example_wire.h"
#include "tensor/tensor.h"

typedef struct ls__column {
    const ls_feature *feature;
    size_t key_length;
    ls__spec spec; /* of the tensor of a fixed shape, n in front; variable: of counts */
    int64_t each;  /* values an example has to have; -1: any number */
    ls__list seen; /* in the example at work */

    const ls__string *examples;
    ls__list *lists;     /* notes, variable: of each example... */
    int64_t total;       /* ...and values in all of them */
    ls__string *strings; /* notes: where they lie in the examples */
    ls_tensor *data, *counts;
} ls__column;

/* n examples; `one`: their axis is left out. To be freed also when it fails. */
ls_status ls__column_open(ls__column *c, const ls_feature *f, const ls__string *examples, int64_t n,
                          bool one);

/* LS_NOT_FOUND, LS_SHAPE or LS_CORRUPT names example and feature. */
ls_status ls__column_take(ls__column *c, int64_t example);

/* A leaf, or a dict of "values" and "counts". NULL: failed. */
ls_value *ls__column_close(ls__column *c, int64_t n);

void ls__column_free(ls__column *c);

/* LS_CORRUPT: what w found in the example. `key` may be NULL. */
ls_status ls__example_damaged(const ls__string *examples, int64_t example, const char *key,
                              const ls__wire *w);

#endif
