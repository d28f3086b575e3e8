/*
 * An iterator of a distributed dataset from inside: distribute_stage.c gets what a step is made of,
 * distribute_step.c makes it.
 */
#ifndef LS__DATA_DISTRIBUTE_STATE_H
#define LS__DATA_DISTRIBUTE_STATE_H

#include "data/distribute.h"

/* What a pipeline reads, or all of them when they share one. */
typedef struct ls__source {
    ls__it *input;
    ls__chunk pulled;
    ls__chunk held; /* what the next step is made of: a batch, or an element for each replica */
    int64_t bytes;  /* of a batch that is held, as was declared */
    int64_t rows;   /* of it */
    int turn;       /* of the batch that is held, or of the next, after a position inside of it */
    int64_t events; /* elements for replicas: those pulled for the next step, and failures; */
    int64_t known;  /* so many of them are not news: we were put behind them */
    bool ended;
    int64_t *stand; /* its words, where it stands */
} ls__source;

typedef struct ls__distributing {
    int count;
    ls__source *sources;
    int64_t *stand; /* all words */
    bool over;
} ls__distributing;

static inline const ls__distribution *ls__distribution_of(const ls__it *it)
{
    return it->dataset->options;
}

static inline ls__source *ls__source_of(const ls__distributing *s, int pipeline)
{
    return &s->sources[s->count == 1 ? 0 : pipeline];
}

/* The step that sources hold, as the only element of the chunk: V x leaves data, replica after replica;
 * windows onto batches, which are not copied. At least one source holds something. */
ls_status ls__step_fill(const ls__it *it, ls__chunk *out);

/* It as a value of the innermost frame, per-replica: plain when V is 1. */
ls_value *ls__step_value(ls__it *it, ls__chunk *c, int i);

#endif
