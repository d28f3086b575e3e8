/*
 * From a replay's memory to tensors of the program. They are made before the replay
 * runs: what could fail after it would fail after variables have changed.
 */
#ifndef LS__TRACE_OUTPUTS_H
#define LS__TRACE_OUTPUTS_H

#include "tensor/tensor.h"
#include "trace/execute.h"

/* A tensor of the innermost frame for output k of the graph. It shares the memory of an argument
 * (one of the first `n_arguments` inputs; `inputs` are their tensors) or of a constant that it
 * is; else ls__output_fill copies its elements when the replay has ended. */
ls_tensor *ls__output_make(const ls__plan *plan, int k, ls_tensor *const *inputs, int n_arguments,
                           ls__device *device);
void ls__output_fill(const ls__plan *plan, const ls__instance *instance, int k, int n_arguments,
                     ls_tensor *out);

#endif
