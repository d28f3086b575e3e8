/*
 * Nests. Invariant: a value and all below it live in one frame (or are all
 * kept), never change, and a dict's entries are sorted by key without repeats.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/value_node.h"

void *ls__value_heap_alloc(size_t bytes)
{
    void *at = calloc(1, bytes ? bytes : 1); /* so that a half-made value can be dropped */
    if (!at)
        ls__fail_memory("ls_value_keep", bytes);
    return at;
}

ls_value *ls__value_node(ls__value_alloc alloc, ls_value_kind kind, int count)
{
    size_t entries = (size_t)count;
    ls_value *v = alloc(sizeof *v);
    if (!v)
        return NULL;
    *v = (ls_value){
        .live = LS__LIVE, .kind = kind, .kept = alloc == ls__value_heap_alloc, .count = count
    };
    if (kind == LS_LEAF) {
        v->spread = LS_SPREAD_PLAIN;
        v->n_components = 1;
        v->components = &v->tensor;
        return v;
    }
    v->items = alloc(sizeof *v->items * entries);
    if (kind == LS_DICT)
        v->keys = alloc(sizeof *v->keys * entries);
    if (v->items && (kind != LS_DICT || v->keys))
        return v;
    if (v->kept) {
        free(v->items);
        free(v->keys);
        free(v);
    }
    return NULL;
}

ls_status ls__check_value(const char *who, const ls_value *v)
{
    if (v && v->live == LS__LIVE)
        return LS_OK;
    if (ls_error_pending())
        return ls_error_pending();
    if (!v)
        return ls__fail(LS_INVALID, "%s: the value is NULL", who);
    return ls__hint(ls__fail(LS_INVALID, "%s: the value's frame has closed", who),
                    "use ls_value_hand_up or ls_value_keep to take a value out of its frame");
}

ls_status ls__check_count(const char *who, int count, const void *array)
{
    if (count < 0 || (count > 0 && !array))
        return ls__fail(LS_INVALID, "%s: %d entries in %s", who, count, array ? "a list" : "NULL");
    return LS_OK;
}

ls_status ls__value_count_depth(const char *who, ls_value *v, const ls_value *item)
{
    enum { DEEPEST = 1000 };
    if (item->depth + 1 > v->depth)
        v->depth = item->depth + 1;
    if (v->depth > DEEPEST)
        return ls__fail(LS_INVALID, "%s: a nest deeper than %d", who, DEEPEST);
    return LS_OK;
}

/* ---- making ------------------------------------------------------------------- */

ls_value *ls_leaf(ls_tensor *t)
{
    if (ls__check_tensor("ls_leaf", "t", t))
        return NULL;
    ls_value *v = ls__value_node(ls__frame_alloc, LS_LEAF, 1);
    if (!v)
        return NULL;
    v->tensor = ls__same_value(t); /* `t` may be dropped before the value goes */
    return v->tensor ? v : NULL;
}

ls_value *ls_list(int count, ls_value *const *items)
{
    if (ls__check_count("ls_list", count, items))
        return NULL;
    for (int i = 0; i < count; i++)
        if (ls__check_value("ls_list", items[i]))
            return NULL;
    ls_value *v = ls__value_node(ls__frame_alloc, LS_LIST, count);
    for (int i = 0; v && i < count; i++) {
        v->items[i] = ls__value_in_frame(items[i]);
        if (!v->items[i] || ls__value_count_depth("ls_list", v, items[i]))
            return NULL;
    }
    return v;
}

ls_value *ls_tensors(int count, ls_tensor *const *tensors)
{
    if (ls__check_count("ls_tensors", count, tensors))
        return NULL;
    ls_value *v = ls__value_node(ls__frame_alloc, LS_LIST, count);
    for (int i = 0; v && i < count; i++) {
        v->items[i] = ls_leaf(tensors[i]);
        if (!v->items[i])
            return NULL;
        v->depth = 1;
    }
    return v;
}

/* Insertion keeps the entries sorted; dicts are small. */
static ls_status dict_insert(ls_value *v, int filled, const char *key, ls_value *item)
{
    if (!key)
        return ls__fail(LS_INVALID, "ls_dict: key %d is NULL", filled);
    int at = filled;
    while (at > 0 && strcmp(v->keys[at - 1], key) > 0)
        at--;
    if (at > 0 && strcmp(v->keys[at - 1], key) == 0)
        return ls__fail(LS_INVALID, "ls_dict: key '%s' twice", key);
    char *own_key = ls__frame_string(key);
    item = ls__value_in_frame(item);
    if (!own_key || !item)
        return LS_NO_MEMORY;
    memmove(v->keys + at + 1, v->keys + at, sizeof *v->keys * (size_t)(filled - at));
    memmove(v->items + at + 1, v->items + at, sizeof *v->items * (size_t)(filled - at));
    v->keys[at] = own_key;
    v->items[at] = item;
    return LS_OK;
}

ls_value *ls_dict(int count, const char *const *keys, ls_value *const *items)
{
    if (ls__check_count("ls_dict", count, keys) || ls__check_count("ls_dict", count, items))
        return NULL;
    ls_value *v = ls__value_node(ls__frame_alloc, LS_DICT, count);
    for (int i = 0; v && i < count; i++)
        if (ls__check_value("ls_dict", items[i]) || dict_insert(v, i, keys[i], items[i]) ||
            ls__value_count_depth("ls_dict", v, items[i]))
            return NULL;
    return v;
}

/* ---- asking ------------------------------------------------------------------- */

ls_value_kind ls_kind_of(const ls_value *v)
{
    return v && v->live == LS__LIVE ? v->kind : (ls_value_kind)0;
}

int ls_length(const ls_value *v)
{
    return v && v->live == LS__LIVE ? v->count : 0;
}

const char *ls__value_kind_name(ls_value_kind kind)
{
    return kind == LS_LEAF ? "leaf" : kind == LS_LIST ? "list" : "dict";
}

static ls_status check_entry(const char *who, const ls_value *v, int index)
{
    ls_status st = ls__check_value(who, v);
    if (st)
        return st;
    if (v->kind == LS_LEAF)
        return ls__fail(LS_INVALID, "%s: a leaf has no entries", who);
    if (index < 0 || index >= v->count)
        return ls__fail(LS_INVALID, "%s: entry %d of a %s with %d", who, index,
                        ls__value_kind_name(v->kind), v->count);
    return LS_OK;
}

ls_value *ls_child(const ls_value *v, int index)
{
    return check_entry("ls_child", v, index) ? NULL : v->items[index];
}

const char *ls_key(const ls_value *v, int index)
{
    if (check_entry("ls_key", v, index))
        return NULL;
    if (v->kind != LS_DICT) {
        ls__fail(LS_INVALID, "ls_key: a list has no keys");
        return NULL;
    }
    return v->keys[index];
}

ls_value *ls_get(const ls_value *v, const char *key)
{
    if (ls__check_value("ls_get", v))
        return NULL;
    if (v->kind != LS_DICT || !key) {
        ls__fail(LS_INVALID, "ls_get: wants a dict and a key, got a %s and %s",
                 ls__value_kind_name(v->kind), key ? key : "NULL");
        return NULL;
    }
    for (int i = 0; i < v->count; i++)
        if (strcmp(v->keys[i], key) == 0)
            return v->items[i];
    char keys[256] = "";
    for (int i = 0, at = 0; i < v->count && at < (int)sizeof keys - 1; i++)
        at += snprintf(keys + at, sizeof keys - (size_t)at, "%s%s", i ? ", " : "", v->keys[i]);
    ls__hint(ls__fail(LS_NOT_FOUND, "ls_get: no key '%s'", key), "the keys are: %s", keys);
    return NULL;
}

ls_status ls__check_plain(const char *who, const char *word, int index, const ls_value *leaf)
{
    if (leaf->spread == LS_SPREAD_PLAIN && !leaf->object)
        return LS_OK;
    char place[64];
    if (index < 0)
        snprintf(place, sizeof place, "%s", word);
    else
        snprintf(place, sizeof place, "%s %d", word, index);
    if (leaf->object)
        return ls__hint(
            ls__fail(LS_INVALID, "%s: %s is a %s, not a tensor", who, place, leaf->object_kind),
            "ls_leaf_%s gives it", leaf->object_kind);
    return ls__hint(ls__fail(LS_INVALID, "%s: %s is %s, with %d component%s", who, place,
                             leaf->spread == LS_SPREAD_MIRRORED ? "mirrored" : "per-replica",
                             leaf->n_components, leaf->n_components == 1 ? "" : "s"),
                    "ls_select gives one replica's, ls_reduce combines them, ls_run runs a "
                    "function on them (strategy.h)");
}

static ls_tensor *tensor_of(const char *who, const char *word, int index, const ls_value *v)
{
    if (v->kind == LS_LEAF)
        return ls__check_plain(who, word, index, v) ? NULL : v->tensor;
    if (index < 0)
        ls__fail(LS_INVALID, "%s: %s is a %s of %d", who, word, ls__value_kind_name(v->kind),
                 v->count);
    else
        ls__fail(LS_INVALID, "%s: %s %d is a %s of %d", who, word, index,
                 ls__value_kind_name(v->kind), v->count);
    return NULL;
}

ls_tensor *ls_leaf_tensor(const ls_value *v)
{
    return ls__check_value("ls_leaf_tensor", v) ? NULL
                                                : tensor_of("ls_leaf_tensor", "the value", -1, v);
}

ls_tensor *ls_item(const ls_value *v, int index)
{
    return check_entry("ls_item", v, index) ? NULL
                                            : tensor_of("ls_item", "entry", index, v->items[index]);
}

int ls_leaf_count(const ls_value *v)
{
    if (!v || v->live != LS__LIVE)
        return 0;
    if (v->kind == LS_LEAF)
        return 1;
    int count = 0;
    for (int i = 0; i < v->count; i++)
        count += ls_leaf_count(v->items[i]);
    return count;
}

/* The leaves may be distributed or objects: all are looked at before any is written. */
static ls_status check_all_plain(const char *who, const ls_value *v, int *leaf)
{
    if (v->kind == LS_LEAF)
        return ls__check_plain(who, "leaf", (*leaf)++, v);
    ls_status st = LS_OK;
    for (int i = 0; i < v->count && !st; i++)
        st = check_all_plain(who, v->items[i], leaf);
    return st;
}

static ls_tensor **flatten(const ls_value *v, ls_tensor **out)
{
    if (v->kind == LS_LEAF) {
        *out = v->tensor;
        return out + 1;
    }
    for (int i = 0; i < v->count; i++)
        out = flatten(v->items[i], out);
    return out;
}

ls_status ls_flatten(const ls_value *v, ls_tensor **out)
{
    ls_status st = ls__check_value("ls_flatten", v);
    if (!st && !out)
        st = ls__fail(LS_INVALID, "ls_flatten: out is NULL");
    int leaf = 0;
    if (!st)
        st = check_all_plain("ls_flatten", v, &leaf);
    if (!st)
        flatten(v, out);
    return st;
}

static ls_value *next_tensor(const ls_value *leaf, void *user)
{
    (void)leaf;
    ls_tensor *const **tensors = user;
    return ls_leaf(*(*tensors)++);
}

ls_value *ls_pack(const ls_value *structure, int count, ls_tensor *const *tensors)
{
    int leaf = 0;
    if (ls__check_value("ls_pack", structure) || ls__check_count("ls_pack", count, tensors) ||
        check_all_plain("ls_pack", structure, &leaf))
        return NULL;
    if (leaf != count) {
        ls__fail(LS_INVALID, "ls_pack: %d tensors for a structure of %d leaves", count, leaf);
        return NULL;
    }
    for (int i = 0; i < count; i++)
        if (ls__check_tensor("ls_pack", "a tensor", tensors[i]))
            return NULL;
    return ls__value_map(structure, next_tensor, &tensors);
}
