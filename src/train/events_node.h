/*
 * Writing nodes of a tensorflow.GraphDef.
 *
 *     size_t node = ls__node_def_begin(b, "conv/relu", "relu");
 *     ls__node_def_input(b, "conv/add", 0);         // all inputs first
 *     ls__node_def_specs(b, 1, &spec);              // then what is known of it
 *     ls__wire_end(b, node);
 */
#ifndef LS__TRAIN_EVENTS_NODE_H
#define LS__TRAIN_EVENTS_NODE_H

#include "base/buffer.h"
#include "trace/graph.h"

size_t ls__node_def_begin(ls__buffer *b, const char *name, const char *op);

/* Takes output number `index` of the node of that name. */
void ls__node_def_input(ls__buffer *b, const char *name, int index);

/* What its outputs are: shapes, with which TensorBoard labels edges, and the first one's dtype. */
void ls__node_def_specs(ls__buffer *b, int count, const ls__spec *const *specs);

void ls__node_def_int(ls__buffer *b, const char *key, int64_t value);
void ls__node_def_text(ls__buffer *b, const char *key, const char *text, size_t bytes);

/* The attributes of the call. */
void ls__node_def_attrs(ls__buffer *b, const ls__node *node);

#endif
