/*
 * The inside of nests that strategies need: leaves with a tensor per replica, leaves that
 * are objects (a variable), and walking several nests at once.
 */
#ifndef LS__TENSOR_VALUE_H
#define LS__TENSOR_VALUE_H

#include <lockstep/value.h>

/* LS_OK when `v` can be used; else the pending error or LS_INVALID. */
ls_status ls__check_value(const char *who, const ls_value *v);

const char *ls__value_kind_name(ls_value_kind kind); /* "list" */

/* A distributed leaf of the innermost frame: `spread` is LS_SPREAD_PER_REPLICA or LS_SPREAD_MIRRORED, `count`
 * at least 1; the tensors get handles of that frame. A tensor that is NULL: as ls_leaf. */
ls_value *ls__leaf_spread(ls_spread spread, int count, ls_tensor *const *components);

/* Of a leaf: component i of a distributed one (0 up to ls_components), or the tensor of a plain
 * one whatever i. NULL for an object. */
ls_tensor *ls__leaf_component(const ls_value *leaf, int i);

/* A leaf that is no tensor but an object that outlives it; LS_SPREAD_PLAIN. `serial` is a number
 * that no other object has or had: addresses are used again. `kind` says what it
 * is, for errors ("variable", when ls_leaf_variable gives it); a literal. ls__leaf_object gives
 * NULL for other leaves. */
ls_value *ls__object_leaf(void *object, const char *kind, uint64_t serial);
void *ls__leaf_object(const ls_value *leaf);
uint64_t ls__leaf_serial(const ls_value *leaf);

/* A copy of the structure in the innermost frame with fn's leaf for every leaf of `v`. NULL
 * when fn gave NULL (its error is pending). */
typedef ls_value *(*ls__leaf_fn)(const ls_value *leaf, void *user);
ls_value *ls__value_map(const ls_value *v, ls__leaf_fn fn, void *user);

/* The same over `count` nests of one structure at once, one of each replica: fn sees their
 * leaves side by side. When they differ the error is LS_INVALID; it begins with `what` ("the
 * results") and names the first replica that differs from replica 0, and where. */
typedef ls_value *(*ls__leaves_fn)(int count, const ls_value *const *leaves, void *user);
ls_value *ls__values_zip(int count, ls_value *const *values, const char *what, ls__leaves_fn fn,
                         void *user);

/* A copy in the innermost frame of a value that another thread's frame, or nobody (kept), owns;
 * its owner is paused or has kept it. */
ls_value *ls__value_import(const ls_value *v);

/* All leaves, depth first; `out` has ls_leaf_count(v) entries. */
void ls__leaves(const ls_value *v, const ls_value **out);

#endif
