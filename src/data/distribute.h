/*
 * Distributed datasets from inside: a stage on top of what each pipeline reads, whose elements are V
 * elements side by side (distribute_stage.c); made in distribute.c and input_fn.c.
 */
#ifndef LS__DATA_DISTRIBUTE_H
#define LS__DATA_DISTRIBUTE_H

#include <lockstep/input.h>

#include "data/iterator.h"
#include "data/plan.h"

/* Options of the stage. Its inputs: one for each pipeline, or one for all (LS__CUT_DATA, P = 1). */
typedef struct ls__distribution {
    ls__plan plan;
    ls_strategy *strategy; /* counted: where replicas are */
    bool called;           /* inputs are functions: the end of one is the end of all */
} ls__distribution;

extern const ls__stage ls__distribute_stage;

/* ls_distribute for `who`, in cross-replica context. */
ls_dataset *ls__distribute(const char *who, ls_strategy *s, ls_dataset *d);

/* A dataset whose P pipelines give elements for one replica each; the list is changed. Functions that are
 * called are not called ahead. */
ls_dataset *ls__distribute_each(const char *who, ls_strategy *s, ls_dataset **inputs, bool called);

/* What pipeline p is told. */
ls_input_context ls__input_context(const ls_strategy *s, int pipeline);

#endif
