/*
 * Recording a step: while a recorder is at work, operator calls of this thread
 * append nodes to its graph and give symbols, tensors without a value.
 *
 *     ls__recorder *r = ls__recorder_open("step");
 *     x = ls__recorder_argument(r, &spec, device);   // a symbol
 *     ... run the C function ...
 *     wire = ls__recorder_wire(r, result);           // a symbol's, or a new constant
 *     graph = ls__recorder_close(r, true);           // NULL when false: nothing is wanted
 */
#ifndef LS__TRACE_RECORD_H
#define LS__TRACE_RECORD_H

#include "tensor/tensor.h"
#include "trace/graph.h"

typedef struct ls__recorder ls__recorder;

/* Open starts the recording on the calling thread, close ends it there. */
ls__recorder *ls__recorder_open(const char *name);
ls__graph *ls__recorder_close(ls__recorder *r, bool wanted);

ls__graph *ls__recorder_graph(ls__recorder *r);

/* The number of the call that comes next or, after an error, of the one that failed. */
int ls__recorder_at(const ls__recorder *r);

/* A symbol of the innermost frame that is the next input of the graph. */
ls_tensor *ls__recorder_argument(ls__recorder *r, const ls__spec *spec, ls__device *device);

/* The wire of a tensor: -1 and the error when it is a symbol of another step. */
int ls__recorder_wire(ls__recorder *r, const ls_tensor *t);

#endif
