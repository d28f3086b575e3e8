/*
 * What printing and storing a graph share: words, and the numbers under which wires are shown
 * and stored.
 */
#ifndef LS__TRACE_GRAPH_OUT_H
#define LS__TRACE_GRAPH_OUT_H

#include "base/buffer.h"
#include "trace/graph.h"

/* A name somebody else chose: quotes, backslashes and control characters are
 * escaped, so that it stays on its line and inside its quotes. */
void ls__buffer_name(ls__buffer *b, const char *name);

/* A number as the shortest text that reads back as the same one. */
void ls__buffer_f64(ls__buffer *b, double value);
void ls__buffer_f32(ls__buffer *b, float value);

/* The attributes as "axis 1 keep 0", nothing for a row without any. */
void ls__buffer_attrs(ls__buffer *b, const ls__node *node);

/* Passes leave holes: wires nobody makes any more, constants nobody uses. These
 * numbers have none: inputs first, then constants that are used, then results in
 * program order. They depend on what the graph says, not on how it came about, so
 * a graph that was stored and read again has the same ones. */
typedef struct ls__numbers {
    int *of;         /* of[wire], -1 for one that is not part of the graph */
    int *constants;  /* the wires of the used constants, in order */
    int n_constants; /* how many */
} ls__numbers;

ls_status ls__numbers_find(const ls__graph *g, ls__numbers *out);
void ls__numbers_free(ls__numbers *n);

/* "%4" for a wire, "k0" for a constant. */
void ls__buffer_wire(ls__buffer *b, const ls__graph *g, const ls__numbers *n, int wire);

/* The first elements of a constant wire, "all" before a splat's. */
void ls__buffer_constant(ls__buffer *b, const ls__graph *g, int wire);

#endif
