/*
 * Replicas that meet. For who builds on runs: variables, all-reduce, optimizers.
 */
#ifndef LS__STRATEGY_RUN_H
#define LS__STRATEGY_RUN_H

#include <lockstep/strategy.h>
#include <lockstep/variable.h>

/* As ls_merge_call, for meetings of the library's own. `what` says what the replica is doing
 * ("ls_assign of variable 'w'"): replicas must meet with the same text and function, else
 * the error tells what each of them did. `arguments` NULL with an error pending still
 * arrives, as failed. The text and `user` are read while the replica waits. */
ls_value *ls__meet(ls_replica *replica, const char *what, ls_merge_fn fn, void *user,
                   ls_value *arguments);

/* The same about a thing (a variable) that must be one and the same, too: names may repeat. */
ls_value *ls__meet_about(ls_replica *replica, const char *what, const void *subject, ls_merge_fn fn,
                         void *user, ls_value *arguments);

/* Groups V values, one of each replica: a leaf is plain when it is the same tensor (id) or
 * object on all, the variable when they are its components, else per-replica. V = 1: the value
 * itself. `what` begins the error when structures differ ("the results"). */
ls_value *ls__regroup(ls_strategy *s, ls_value *const *values, const char *what);

/* Variables made inside a run. `find` gives replica 0 NULL in *out: it makes the variable and
 * hands it to `add`. Others get the one that replica 0 made under this name, the n-th for the n-th
 * call with that name ("w_1" counts as "w"); LS_STATE when it made none. Both do nothing outside
 * of runs and for V = 1. */
ls_status ls__created_find(ls_replica *replica, const char *name, ls_variable **out);
ls_status ls__created_add(ls_replica *replica, const char *name, ls_variable *v);

#endif
