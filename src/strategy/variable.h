/*
 * The inside of a variable: components onto cells (DESIGN rule D). An ON_WRITE variable has
 * one cell per memory space, that is one; an ON_READ one, or one with local writes, has a cell per
 * replica. Whatever writes runs once per cell.
 */
#ifndef LS__STRATEGY_VARIABLE_H
#define LS__STRATEGY_VARIABLE_H

#include <lockstep/variable.h>

#include "tensor/cell.h"

struct ls_variable {
    char *name;
    uint64_t serial; /* no other variable or component has or had it */
    bool trainable;
    ls_synchronization synchronization;
    ls_aggregation aggregation;
    bool local_writes;
    ls_strategy
        *strategy; /* one reference (none in a component); NULL: made outside of any scope */
    int n_cells;   /* 1, or one per replica */
    ls__cell **cells;
    int n_components;               /* V; 1 without a strategy: itself */
    struct ls_variable *components; /* V handles; NULL in a component and without a strategy */
    struct ls_variable *own_next, *own_before; /* in the list of its strategy (variable_own.c) */
    struct ls_variable *container;             /* of a component: the variable it belongs to */
    int replica;                               /* of a component */
};

/* The list of variables whose replicas have cells of their own (variable_own.c). */
void ls__own_add(ls_variable *v);
void ls__own_remove(ls_variable *v);

/* LS_OK when `v` can be used; else the pending error or LS_INVALID. */
ls_status ls__check_variable(const char *who, const ls_variable *v);

/* The same, and LS_STATE when another strategy than the variable's is active here. */
ls_status ls__check_variable_here(const char *who, const ls_variable *v);

/* Whether every replica has a cell of its own, even if there is but one replica. */
bool ls__has_own_cells(const ls_variable *v);

/* The cell that replica `replica` reads (any number when there is one cell). */
ls__cell *ls__variable_cell(const ls_variable *v, int replica);

/* For optimizers: the one cell of a variable that all replicas share. LS_UNSUPPORTED when each
 * has its own. */
ls_status ls__shared_cell(const char *who, const ls_variable *v, ls__cell **out);

/* The same value, a handle of the innermost frame on this thread's device: replicas of one
 * process share memory. NULL for NULL. */
ls_tensor *ls__here(const ls_tensor *t);

/* "name/replica_i", in memory of the innermost frame; NULL when there is none. */
const char *ls__copy_name(const char *name, int replica);

/* LS_AGGREGATE_SUM -> LS_SUM...; 0 for NONE. */
ls_reduce_op ls__reduce_op_of(ls_aggregation aggregation);

/* Writes that were checked and cannot fail: each value (NULL: zeros) to its cell, which was unshared.
 * In memory of the innermost frame. */
typedef struct ls__cell_writes {
    int count;
    ls__cell **cells;
    ls_tensor **values;
} ls__cell_writes;
ls_status ls__cell_writes_room(ls__cell_writes *w, size_t most);
void ls__cell_writes_add(ls__cell_writes *w, ls__cell *cell, ls_tensor *value);
ls_status ls__cell_writes_unshare(const ls__cell_writes *w);
void ls__cell_writes_do(const ls__cell_writes *w);

/* ls_variables_restore up to the writes, for who has more to restore. */
ls_status ls__variables_plan(int count, ls_variable *const *variables, const ls_value *saved,
                             ls__cell_writes *out);

/* ---- writing ---------------------------------------------------------------------------- */

/* What a write by this thread, here and now, does to a variable. */
typedef struct ls__target {
    ls_variable *v;      /* the whole variable, also when a component was named */
    ls_replica *replica; /* not NULL: all replicas meet and write its one cell once */
    int first, count;    /* else: which cells are written... */
    bool all;            /* ...which are all of a variable seen from cross-replica context */
} ls__target;

/* LS_STATE and LS_INVALID when it may not be written here. */
ls_status ls__write_target(const char *who, ls_variable *v, ls__target *out);

/* The replicas meet to write target->v ("ls_assign"): fn combines what they give, and writes.
 * `user` as in ls_merge_call; `arguments` NULL is the pending error, and arrives as failed. */
ls_status ls__meet_to_write(const char *who, const ls__target *target, ls_merge_fn fn, void *user,
                            ls_value *arguments);

/* What a component gets when cross-replica context writes `value`: `value`, or value / V of an
 * ON_READ variable of SUM. Of integers replica 0 has the remainder, too: the sum is `value`. */
ls_tensor *ls__component_share(const ls_variable *v, int replica, ls_tensor *value);

#endif
