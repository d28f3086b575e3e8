/*
 * A turn: what one pull of a stage's input brought, on its way through the stage. One thread at a time
 * has it.
 */
#ifndef LS__DATA_TURN_H
#define LS__DATA_TURN_H

#include <stdbool.h>

#include "data/element.h"

typedef struct ls__turn {
    ls__chunk in;   /* for the stage: what work is to be done on */
    ls__chunk out;  /* what is to be given, with the stage's positions; nothing borrowed in it */
    int64_t number; /* for the stage */
    int64_t *after; /* the stage's position behind it, also if it failed */
    bool none_lost; /* by its failure: see ls__it */
} ls__turn;

bool ls__turn_open(ls__turn *turn, int words); /* false: no memory */
void ls__turn_clear(ls__turn *turn);
void ls__turn_free(ls__turn *turn);

/* Owns all that is borrowed in it. LS_NO_MEMORY: it is empty then. */
ls_status ls__chunk_own(ls__chunk *c);

#endif
