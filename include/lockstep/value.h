/*
 * value.h: nests of tensors.
 *
 * How to use it
 *
 * A value is a leaf (one tensor), a list of values, or a dict of values. It is
 * what crosses a boundary that carries "some tensors": arguments and results
 * of a step, elements of a dataset, operators with several results.
 *
 *     ls_value *batch = ls_tensors(2, (ls_tensor *[]){ images, labels });
 *     ls_tensor *x = ls_item(batch, 0);
 *
 *     ls_value *named = ls_dict(2, (const char *[]){ "loss", "logits" },
 *                               (ls_value *[]){ ls_leaf(loss), ls_leaf(logits) });
 *     ls_tensor *l = ls_leaf_tensor(ls_get(named, "loss"));
 *
 * A value belongs to the innermost frame, like a tensor, and never changes. A
 * dict is ordered by key, whatever order its entries were given in.
 *
 * A leaf may be distributed: it then holds one tensor for each replica of a strategy
 * (strategy.h). ls_spread_of tells, ls_select gives the value as one replica sees it.
 */
#ifndef LOCKSTEP_VALUE_H
#define LOCKSTEP_VALUE_H

#include <lockstep/tensor.h>

LS_BEGIN_DECLS

typedef struct ls_value ls_value;

typedef enum ls_value_kind { LS_LEAF = 1, LS_LIST, LS_DICT } ls_value_kind;

LS_API ls_value *ls_leaf(ls_tensor *t);
LS_API ls_value *ls_list(int count, ls_value *const *items);
LS_API ls_value *ls_dict(int count, const char *const *keys, ls_value *const *items);

/* A list of leaves. */
LS_API ls_value *ls_tensors(int count, ls_tensor *const *tensors);

LS_API ls_value_kind ls_kind_of(const ls_value *v);

/* Entries of a list or dict; 1 for a leaf. */
LS_API int ls_length(const ls_value *v);

/* Entry i of a list or dict (a dict's in key order). */
LS_API ls_value *ls_child(const ls_value *v, int index);
LS_API const char *ls_key(const ls_value *v, int index);

/* The entry of a dict under `key`; LS_NOT_FOUND names the keys there are. */
LS_API ls_value *ls_get(const ls_value *v, const char *key);

/* The tensor of a leaf, and the tensor of the leaf that is entry i. A leaf with a tensor for
 * each replica has none of its own, nor has a variable: LS_INVALID (also for ls_flatten and
 * ls_pack). */
LS_API ls_tensor *ls_leaf_tensor(const ls_value *v);
LS_API ls_tensor *ls_item(const ls_value *v, int index);

/* All tensors, depth first, dicts in key order. ls_flatten writes
 * ls_leaf_count(v) pointers; ls_pack makes a value of the same structure from
 * as many tensors. */
LS_API int ls_leaf_count(const ls_value *v);
LS_API ls_status ls_flatten(const ls_value *v, ls_tensor **out);
LS_API ls_value *ls_pack(const ls_value *structure, int count, ls_tensor *const *tensors);

/* LS_OK when both have the same structure; else LS_INVALID with a text that
 * says where they part. */
LS_API ls_status ls_same_structure(const ls_value *a, const ls_value *b);

/* ---- distributed values ------------------------------------------------------------ */

/* What a value is to replicas: the same tensor for all, one for each, or one for each with
 * the same contents; LS_SPREAD_MIXED is a nest with leaves of several kinds. A nest without leaves is
 * plain, and so is a leaf that is a variable, whatever its components are. */
typedef enum ls_spread {
    LS_SPREAD_PLAIN = 1,
    LS_SPREAD_PER_REPLICA,
    LS_SPREAD_MIRRORED,
    LS_SPREAD_MIXED
} ls_spread;
LS_API ls_spread ls_spread_of(const ls_value *v);

/* How many components its distributed leaves have; 1 when it has none. */
LS_API int ls_components(const ls_value *v);

/* The value as replica `i` sees it: plain throughout. */
LS_API ls_value *ls_select(const ls_value *v, int i);

/* As ls_hand_up, ls_keep and ls_drop, for a value with all that is in it. */
LS_API ls_value *ls_value_hand_up(ls_value *v);
LS_API ls_value *ls_value_keep(ls_value *v);
LS_API void ls_value_drop(ls_value *kept);

LS_END_DECLS

#endif
