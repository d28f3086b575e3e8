/*
 * variable.h: memory that lasts from step to step.
 *
 * How to use it
 *
 *     ls_variable *w = ls_variable_new("w", ls_truncated_normal(LS_F32,
 *                                      LS_DIMS(784, 10), 0, 0.05), true);
 *     ls_tensor *y = ls_matmul(x, ls_read(w));
 *     ls_assign_sub(w, step);
 *     ls_variable_free(w);
 *
 * ls_read is a snapshot: what you read stays what it was, although no copy is
 * made until somebody writes. Writes keep shape and dtype. Any number of threads
 * may read a variable at once; who writes it must be alone.
 */
#ifndef LOCKSTEP_VARIABLE_H
#define LOCKSTEP_VARIABLE_H

#include <lockstep/tensor.h>

LS_BEGIN_DECLS

typedef struct ls_variable ls_variable;

/* A variable that starts as a copy of `initial`; it wants a name. Yours until ls_variable_free,
 * which takes NULL. */
LS_API ls_variable *ls_variable_new(const char *name, ls_tensor *initial, bool trainable);
LS_API void ls_variable_free(ls_variable *v);

LS_API const char *ls_variable_name(const ls_variable *v);
LS_API bool ls_variable_trainable(const ls_variable *v);
LS_API void ls_variable_set_trainable(ls_variable *v, bool trainable);

LS_API ls_tensor *ls_read(ls_variable *v);
LS_API ls_status ls_assign(ls_variable *v, ls_tensor *value);
LS_API ls_status ls_assign_add(ls_variable *v, ls_tensor *value);
LS_API ls_status ls_assign_sub(ls_variable *v, ls_tensor *value);

/* Glorot-uniform, he-normal initial values: fan-in and fan-out are read off the
 * shape ([in, out], or [kh, kw, in, out]). Keyed by the seed and by how many
 * were drawn before, not by the step. */
LS_API ls_tensor *ls_glorot_uniform(ls_dtype dtype, int rank, const int64_t *dims);
LS_API ls_tensor *ls_he_normal(ls_dtype dtype, int rank, const int64_t *dims);

LS_END_DECLS

#endif
