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
 *
 * A variable made in the scope of a strategy (strategy.h) has a component on every
 * replica. How the components stay in step is its synchronization:
 *
 *     LS_SYNC_ON_WRITE (the default, AUTO): all are the same at all times. A write in a
 *     replica is a meeting: what the replicas give is combined as `.aggregation` says, and
 *     written for all. Without an aggregation such a write is LS_INVALID, unless `.local_writes`.
 *     LS_SYNC_ON_READ: each replica has its own and writes it alone (a count of samples, say).
 *     A read in cross-replica context combines them.
 *
 *     ls_variable *seen = ls_variable_with(LS_VARIABLE(.synchronization = LS_SYNC_ON_READ,
 *                             .aggregation = LS_AGGREGATE_SUM), "seen", ls_scalar(LS_F32, 0));
 *
 * Variables may also be made by the step that replicas run: replica 0 makes them, and the
 * call gives the others the same ones, by name and order. Each is freed once, after the run. If
 * the step fails, the variables it made are there all the same, with their initial values, and
 * are freed by who made them.
 */
#ifndef LOCKSTEP_VARIABLE_H
#define LOCKSTEP_VARIABLE_H

#include <lockstep/strategy.h>
#include <lockstep/tensor.h>
#include <lockstep/value.h>

LS_BEGIN_DECLS

typedef struct ls_variable ls_variable;

/* A variable that starts as a copy of `initial`; it wants a name. Yours until ls_variable_free,
 * which takes NULL; in one of several replicas it records LS_STATE and frees nothing. */
LS_API ls_variable *ls_variable_new(const char *name, ls_tensor *initial, bool trainable);
LS_API void ls_variable_free(ls_variable *v);

/* X(name, value, text). */
#define LS_SYNCHRONIZATION_LIST(X)                                       \
    X(LS_SYNC_AUTO, 0, "AUTO") /* ON_WRITE */                            \
    X(LS_SYNC_NONE, 1, "NONE") /* refused */                             \
    X(LS_SYNC_ON_WRITE, 2, "ON_WRITE")                                   \
    X(LS_SYNC_ON_READ, 3, "ON_READ")

/* Not numbers of ls_reduce_op, so that one taken for the other is noticed. */
#define LS_AGGREGATION_LIST(X)                                           \
    X(LS_AGGREGATE_NONE, 0, "NONE")                                      \
    X(LS_AGGREGATE_SUM, 17, "SUM")                                       \
    X(LS_AGGREGATE_MEAN, 18, "MEAN")                                     \
    X(LS_AGGREGATE_ONLY_FIRST, 19, "ONLY_FIRST_REPLICA")

#define LS__VARIABLE_ENUM(name, value, text) name = value,
typedef enum ls_synchronization { LS_SYNCHRONIZATION_LIST(LS__VARIABLE_ENUM) } ls_synchronization;
typedef enum ls_aggregation { LS_AGGREGATION_LIST(LS__VARIABLE_ENUM) } ls_aggregation;
#undef LS__VARIABLE_ENUM

typedef enum ls_trainable { LS_TRAINABLE_DEFAULT, LS_TRAINABLE, LS_FROZEN } ls_trainable;

/* Zero means default. */
typedef struct ls_variable_options {
    size_t size;
    ls_synchronization synchronization;
    ls_aggregation aggregation; /* MEAN wants a float variable */
    ls_trainable trainable;     /* yes; no for LS_SYNC_ON_READ */
    bool local_writes; /* ON_WRITE without aggregation: a replica's write is its own copy's alone,
                        * and copies may part */
} ls_variable_options;
LS_API void ls_variable_init(ls_variable_options *options);
#ifndef __cplusplus
#define LS_VARIABLE(...) (&(ls_variable_options){ .size = sizeof(ls_variable_options), __VA_ARGS__ })
#endif

/* The same with options (NULL: defaults). */
LS_API ls_variable *ls_variable_with(const ls_variable_options *options, const char *name,
                                     ls_tensor *initial);

LS_API const char *ls_variable_name(const ls_variable *v);

/* Set it between steps, or in a merge function: in one of several replicas it records LS_STATE
 * and changes nothing. */
LS_API bool ls_variable_trainable(const ls_variable *v);
LS_API void ls_variable_set_trainable(ls_variable *v, bool trainable);

LS_API ls_synchronization ls_variable_synchronization(const ls_variable *v); /* never AUTO */
LS_API ls_aggregation ls_variable_aggregation(const ls_variable *v);

/* The strategy it was made in; the default one for others. */
LS_API ls_strategy *ls_variable_strategy(const ls_variable *v);

/* In a replica: its own component. In cross-replica context: what all have; of an ON_READ
 * variable the components combined (LS_INVALID when it has no aggregation). */
LS_API ls_tensor *ls_read(ls_variable *v);
LS_API ls_status ls_assign(ls_variable *v, ls_tensor *value);
LS_API ls_status ls_assign_add(ls_variable *v, ls_tensor *value);
LS_API ls_status ls_assign_sub(ls_variable *v, ls_tensor *value);

/* In cross-replica context, of an ON_READ variable: `value` for every component (SUM:
 * value / V, and no assign_add and assign_sub; of integers replica 0 also gets the
 * remainder, so that the sum is the value). ls_assign_value takes a leaf: of a mirrored one
 * each component gets its own, a per-replica one is refused. */
LS_API ls_status ls_assign_value(ls_variable *v, ls_value *value);

/* Rows of a variable: rows[i] names the row that values[i] goes to; rows that repeat take
 * effect in order. ON_READ variables, and min, max and update of SUM or MEAN ones, are
 * LS_UNSUPPORTED. In a replica the rows of all replicas are taken, in replica order (MEAN
 * divides the values by V). A row out of range is LS_INVALID and nothing is written. */
LS_API ls_status ls_scatter_add(ls_variable *v, ls_tensor *rows, ls_tensor *values);
LS_API ls_status ls_scatter_sub(ls_variable *v, ls_tensor *rows, ls_tensor *values);
LS_API ls_status ls_scatter_update(ls_variable *v, ls_tensor *rows, ls_tensor *values);
LS_API ls_status ls_scatter_min(ls_variable *v, ls_tensor *rows, ls_tensor *values);
LS_API ls_status ls_scatter_max(ls_variable *v, ls_tensor *rows, ls_tensor *values);

/* ---- components ---------------------------------------------------------------------- */

/* A component is a variable too: "w", "w/replica_1", ... 1 for a variable without a strategy
 * (itself). It lives as long as its variable and is not freed. */
LS_API int ls_variable_components(const ls_variable *v);
LS_API ls_variable *ls_variable_component(ls_variable *v, int replica);

/* The variable a component belongs to; any other variable itself. */
LS_API ls_variable *ls_value_container(ls_variable *component);

/* A leaf that is a variable, for arguments and results of a run: passed as it is; the
 * components of one variable, returned by their replicas, become that variable. */
LS_API ls_value *ls_variable_leaf(ls_variable *v);
LS_API ls_variable *ls_leaf_variable(const ls_value *leaf);

/* ---- saving ---------------------------------------------------------------------------- */

/* A dict from names to tensors: a variable's value under its name; of an ON_READ one (or with
 * .local_writes) the combined value, if it has an aggregation, and every component under
 * "name/replica_i". Names must differ. In cross-replica context, eager. */
LS_API ls_value *ls_variables_save(int count, ls_variable *const *variables);

/* Back from such a dict: components when it has as many as there are replicas, else the
 * combined value, as ls_assign would write it. All are checked before any is written:
 * LS_NOT_FOUND names what is missing, LS_SHAPE what does not fit. Other entries are ignored. */
LS_API ls_status ls_variables_restore(int count, ls_variable *const *variables, ls_value *saved);

/* Glorot-uniform, he-normal initial values: fan-in and fan-out are read off the
 * shape ([in, out], or [kh, kw, in, out]). Keyed by the seed and by how many
 * were drawn before, not by the step. */
LS_API ls_tensor *ls_glorot_uniform(ls_dtype dtype, int rank, const int64_t *dims);
LS_API ls_tensor *ls_he_normal(ls_dtype dtype, int rank, const int64_t *dims);

LS_END_DECLS

#endif
