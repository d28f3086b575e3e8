/*
 * Turns.
 */
#include "data/turn.h"

#include <stdlib.h>

bool ls__turn_open(ls__turn *turn, int words)
{
    *turn = (ls__turn){ .after = calloc((size_t)words + 1, sizeof *turn->after) };
    return turn->after;
}

void ls__turn_clear(ls__turn *turn)
{
    ls__chunk_clear(&turn->in);
    ls__chunk_clear(&turn->out);
}

void ls__turn_free(ls__turn *turn)
{
    ls__chunk_free(&turn->in);
    ls__chunk_free(&turn->out);
    free(turn->after);
}

ls_status ls__chunk_own(ls__chunk *c)
{
    ls_status st = LS_OK;
    for (int i = 0; i < c->n * c->leaves && !st; i++)
        st = ls__datum_own(&c->data[i]);
    if (st)
        ls__chunk_clear(c);
    return st;
}
