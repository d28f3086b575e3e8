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

#include "dispatch/sink.h"
#include "tensor/tensor.h"
#include "trace/graph.h"

typedef struct ls__recorder ls__recorder;

/* Open starts the recording on the calling thread, close ends it there. */
ls__recorder *ls__recorder_open(const char *name);
ls__graph *ls__recorder_close(ls__recorder *r, bool wanted);

/* The same in pieces, for who records on several threads: the sink is set by hand, on one thread
 * at a time. End takes NULL. */
ls__recorder *ls__recorder_new(const char *name);
ls__sink *ls__recorder_sink(ls__recorder *r);
ls__graph *ls__recorder_end(ls__recorder *r, bool wanted);

ls__graph *ls__recorder_graph(ls__recorder *r);

/* The number of the call that comes next or, after an error, of the one that failed. */
int ls__recorder_at(const ls__recorder *r);

/* A symbol of the innermost frame that is the next input of the graph. */
ls_tensor *ls__recorder_argument(ls__recorder *r, const ls__spec *spec, ls__device *device);

/* The same with an identity that a value elsewhere has: the symbol it has here already, or the
 * next input. */
ls_tensor *ls__recorder_argument_as(ls__recorder *r, uint64_t id, const ls__spec *spec,
                                    ls__device *device);
bool ls__recorder_knows(const ls__recorder *r, uint64_t id);

/* Replicas meet here (a row of ops/meet.h): what they bring, and the variables that are written
 * meanwhile, which are read anew afterwards. */
ls_status ls__recorder_meet(ls__recorder *r, const ls_op *op, int n_inputs,
                            ls_tensor *const *inputs, int n_cells, ls__cell *const *cells);

/* The wire of a tensor: -1 and the error when it is a symbol of another step. */
int ls__recorder_wire(ls__recorder *r, const ls_tensor *t);

#endif
