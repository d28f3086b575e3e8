/*
 * A dataset from inside: an immutable node of a tree. A stage is a table of functions (iterator.h),
 * its options are a struct of its own, its inputs are datasets. Rewriting (who shards, where) makes
 * new nodes that share options.
 *
 * Making one:
 *
 *     ls__dataset_draft draft = { .stage = &batch_stage, .n_inputs = 1, .inputs = { d },
 *                                 .cardinality = ..., .type = type };
 *     batch_options *o = ls__dataset_options(&draft, sizeof *o);
 *     ...
 *     return ls__dataset_new(&draft, "batch %lld", (long long)n);
 */
#ifndef LS__DATA_DATASET_H
#define LS__DATA_DATASET_H

#include <lockstep/data.h>
#include <stdatomic.h>

#include "base/status.h"
#include "data/type.h"

struct ls__stage;

/* Counted; the bytes of the stage's own struct follow. */
typedef struct ls__dataset_block ls__dataset_block;

struct ls_dataset {
    uint32_t live;
    _Atomic int64_t refs;
    const struct ls__stage *stage;
    void *options; /* the stage's own struct */
    ls__dataset_block *block;
    int n_inputs;
    ls_dataset **inputs;
    ls__type *type;
    int64_t cardinality;
    char *text;                 /* "batch 64": what makes it differ from another of its stage */
    uint64_t fingerprint;       /* of all stages' texts and types: the same in every process */
    _Atomic int64_t iterations; /* begun so far */
};

enum { LS__MOST_INPUTS = 64 };

typedef struct ls__dataset_draft {
    const struct ls__stage *stage;
    int n_inputs;
    ls_dataset *const *inputs;
    ls__type *type; /* taken over, also on failure; NULL: out of memory, which is passed on */
    int64_t cardinality;
    ls__dataset_block *block;
} ls__dataset_draft;

/* Memory for the stage's options, zeros; `release` (or NULL) is called when the last dataset
 * with them goes. NULL when out of memory. */
void *ls__dataset_options(ls__dataset_draft *draft, size_t bytes, void (*release)(void *options));

/* A dataset of the innermost frame. Takes over type and options, also when it fails. The text names
 * all that matters for which elements there are; callbacks are not known to it. */
ls_dataset *ls__dataset_new(ls__dataset_draft *draft, const char *format, ...) LS_PRINTF(2, 3);

/* The same stage and options on other inputs, with what follows from them left as it was:
 * for rewriting. */
ls_dataset *ls__dataset_on(const ls_dataset *d, ls_dataset *const *inputs);

ls_dataset *ls__dataset_ref(ls_dataset *d);
void ls__dataset_unref(ls_dataset *d);

/* LS_OK, the pending error, or LS_INVALID: `d` is NULL, gone, or distributed (which takes no stages). */
ls_status ls__check_dataset(const char *who, const ls_dataset *d);

/* LS_INVALID unless n is `least` or more. */
ls_status ls__check_number(const char *who, const char *what, int64_t n, int64_t least);

/* The product and quotient of cardinalities: unknown and infinite ones stay so. */
int64_t ls__cardinality_times(int64_t n, int64_t times);

#endif
