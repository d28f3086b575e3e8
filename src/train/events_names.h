/*
 * Names for the nodes of a graph that is shown. TensorBoard makes boxes of what stands before a
 * slash, and a recorded step has no boxes: only variables have names with layers in them,
 * "conv/kernel". So a call is put into the layer of the variable it takes, or of what it goes on
 * from; a gradient into that of the call it is the gradient of, under "gradients".
 *
 *     conv/kernel  conv/kernel/read  conv/conv2d  conv/add  conv/relu  loss/mean
 *     gradients/conv/relu_grad  gradients/conv/conv2d_grad_filter  updates/conv/sgd_update
 *
 * This is a guess for people. Edges, shapes and calls are as recorded.
 */
#ifndef LS__TRAIN_EVENTS_NAMES_H
#define LS__TRAIN_EVENTS_NAMES_H

#include "base/arena.h"
#include "trace/graph.h"

/* Names that were given: no two are the same, and each is one that TensorFlow takes. */
typedef struct ls__node_names {
    ls__arena arena;
    const char **at; /* a hash table */
    size_t used, room;
} ls__node_names;

void ls__node_names_free(ls__node_names *names);

/* "scope/name", with a number behind it when that is taken: it lives as long as `names`. An empty
 * scope gives "name". NULL when out of memory. */
const char *ls__node_name(ls__node_names *names, const char *scope, const char *name);

/* The scope of every node of a graph, in `names`; `inside` is the scope around all of them. Gradients
 * and updates are told apart when it is "". NULL when out of memory; free() the list. */
const char **ls__node_scopes(ls__node_names *names, const ls__graph *g, const char *inside);

#endif
