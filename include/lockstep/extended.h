/*
 * extended.h: what libraries build on strategies with; most programs need none of it.
 *
 * How to use it
 *
 * These are the methods of TensorFlow's `strategy.extended`, as functions of a strategy. They
 * belong in cross-replica context: in a scope, or in the function of ls_merge_call. An
 * optimizer, for one, applies a step's gradients like this:
 *
 *     static ls_value *apply(ls_strategy *s, ls_value *gradient, void *user)
 *     {
 *         model *m = user;
 *         ls_value *sum = ls_reduce_to(s, LS_SUM, gradient, ls_at_variable(m->w));
 *         return ls_update(s, m->w, descend, NULL, sum, true);   // w -= 0.1 sum
 *     }
 *
 * Where devices share memory, a mirrored value exists once, and what writes runs once.
 */
#ifndef LOCKSTEP_EXTENDED_H
#define LOCKSTEP_EXTENDED_H

#include <lockstep/strategy.h>
#include <lockstep/variable.h>

LS_BEGIN_DECLS

/* ---- devices ----------------------------------------------------------------------- */

/* The device of each replica: V canonical names, repeats where replicas share one. The
 * array lives as long as the placement. NULL for NULL. */
LS_API const char *const *ls_worker_devices(const ls_strategy *s, int *count);

/* The distinct ones; also where variables without a slot go. */
LS_API const char *const *ls_parameter_devices(const ls_strategy *s, int *count);
LS_API const char *const *ls_non_slot_devices(const ls_strategy *s, int *count);

/* ---- what this process does for the cluster ---------------------------------------------- */

LS_API bool ls_should_checkpoint(const ls_strategy *s);   /* true for mirrored and default */
LS_API bool ls_should_save_summary(const ls_strategy *s); /* true */
LS_API bool ls_should_init(const ls_strategy *s);         /* true */
LS_API bool ls_between_graph(const ls_strategy *s);       /* false */
LS_API bool ls_require_static_shapes(const ls_strategy *s); /* false */

/* ---- moving values -------------------------------------------------------------------------- */

/* Where a result goes: to the devices of a value or of a variable, or to a device. Belongs to
 * the innermost frame. */
typedef struct ls_destination ls_destination;
LS_API ls_destination *ls_at_value(ls_value *value);
LS_API ls_destination *ls_at_variable(ls_variable *v);
LS_API ls_destination *ls_at_device(const char *device); /* one; a list is refused */

/* The sum, mean or first component of every leaf, at the destination: mirrored for a
 * distributed value or a variable, plain for a tensor or a device. Sparse leaves: all
 * rows and values, in replica order (MEAN divides the values by V). Mirrored and plain leaves as
 * in ls_reduce. */
LS_API ls_value *ls_reduce_to(ls_strategy *s, ls_reduce_op op, ls_value *value,
                              ls_destination *destination);

/* Many at once: a list of the results, in order. */
LS_API ls_value *ls_batch_reduce_to(ls_strategy *s, ls_reduce_op op, int count,
                                    ls_value *const *values, ls_destination *const *destinations);

/* The same tensor everywhere. */
LS_API ls_value *ls_mirror_to(ls_strategy *s, ls_tensor *tensor, ls_destination *destination);

/* ---- updating ---------------------------------------------------------------------------------- */

/* Calls fn once per copy of the variable (copies that share memory count once) with its
 * component and the arguments, mirrored leaves as that replica sees them; per-replica ones are
 * refused. fn may write the component, and returns a value (ls_list(0, NULL) for none).
 * With `group` the results are one mirrored value, else a list with one per replica. */
typedef ls_value *(*ls_update_fn)(ls_variable *component, ls_value *arguments, void *user);
LS_API ls_value *ls_update(ls_strategy *s, ls_variable *v, ls_update_fn fn, void *user,
                           ls_value *arguments, bool group);

/* The same without a variable, once per memory of the devices given (of ls_non_slot_devices). */
LS_API ls_value *ls_update_non_slot(ls_strategy *s, int count, const char *const *devices, ls_step fn,
                                    void *user, ls_value *arguments, bool group);

/* Waits for all that a value stands for. Eager and replayed steps are done when they return, so
 * this only checks the value. */
LS_API ls_status ls_group(ls_strategy *s, ls_value *value);

/* ---- variables ----------------------------------------------------------------------- */

/* The variable as cross-replica context sees it: an ON_READ one combined. */
LS_API ls_tensor *ls_read_var(ls_strategy *s, ls_variable *v);

LS_API bool ls_variable_created_in_scope(const ls_strategy *s, const ls_variable *v);

/* Variables made from here to the end are placed like `v`, a variable of this strategy. Inside
 * its scope only; ends in the order of beginning. */
LS_API ls_status ls_colocate_begin(ls_strategy *s, ls_variable *v);
LS_API ls_status ls_colocate_end(ls_strategy *s);

LS_END_DECLS

#endif
