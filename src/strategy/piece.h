/*
 * A part of a traced step (step.h): a graph, its plan, and the memory it runs in.
 */
#ifndef LS__STRATEGY_PIECE_H
#define LS__STRATEGY_PIECE_H

#include "strategy/fold.h"
#include "trace/execute.h"

/* Where an input comes from: of a meeting's, the replica and which of the things it brought;
 * of a replica's, the meeting and which of its results. */
typedef struct ls__source {
    int from, index;
} ls__source;

typedef struct ls__sources {
    ls__source *at;
    int count;
} ls__sources;

typedef struct ls__piece {
    ls__graph *recorded;
    ls__graph *as_traced; /* before products were moved (products.c); NULL: as `recorded` */
    ls__plan *plan;
    bool shares_plan; /* the plan is another replica's, whose program is the same */
    ls__instance *instance;
    ls__sources gained;  /* of a replica: inputs after the arguments. Of a meeting: all inputs */
    const void **inputs; /* addresses of all inputs */
    int n_arguments;     /* of a replica */
    ls__folded folded;   /* of a meeting: what it only adds up */
    ls__draw first;      /* of a meeting: its draws come after those of the ones before */
} ls__piece;

/* As it was traced, for people. */
static inline const ls__graph *ls__piece_traced(const ls__piece *p)
{
    return p->as_traced ? p->as_traced : p->recorded;
}

ls_status ls__source_add(ls__sources *list, int from, int index);

/* Room for the addresses of its inputs. */
ls_status ls__piece_make_inputs(ls__piece *p);

/* Replica r's meeting k: the node in a graph. NULL: it has none. */
ls__node *ls__meet_node(const ls__graph *g, int k);

void ls__piece_free(ls__piece *p);

#endif
