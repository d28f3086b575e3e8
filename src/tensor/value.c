/*
 * Nests. Invariant: a value and all below it live in one frame (or are all
 * kept), never change, and a dict's entries are sorted by key without repeats.
 */
#include <lockstep/value.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "tensor/tensor.h"

struct ls_value {
    uint32_t live; /* LS__LIVE until its frame closes */
    int depth;     /* of the nest below it */
    ls_value_kind kind;
    bool kept; /* by ls_value_keep: no frame owns it */
    int count;
    ls_tensor *tensor; /* leaf */
    ls_value **items;  /* list, dict */
    char **keys;       /* dict */
};

/* Where the parts of a value are allocated: in the frame, or one by one (kept). */
typedef void *(*alloc_fn)(size_t bytes);

static void *heap_alloc(size_t bytes)
{
    void *at = calloc(1, bytes ? bytes : 1); /* so that a half-made value can be dropped */
    if (!at)
        ls__fail_memory("ls_value_keep", bytes);
    return at;
}

static ls_value *node(alloc_fn alloc, ls_value_kind kind, int count)
{
    size_t entries = (size_t)count;
    ls_value *v = alloc(sizeof *v);
    if (!v)
        return NULL;
    *v = (ls_value){ .live = LS__LIVE, .kind = kind, .kept = alloc == heap_alloc, .count = count };
    if (kind != LS_LEAF)
        v->items = alloc(sizeof *v->items * entries);
    if (kind == LS_DICT)
        v->keys = alloc(sizeof *v->keys * entries);
    if ((kind == LS_LEAF || v->items) && (kind != LS_DICT || v->keys))
        return v;
    if (v->kept) {
        free(v->items);
        free(v->keys);
        free(v);
    }
    return NULL;
}

static ls_status check(const char *who, const ls_value *v)
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

static ls_status check_count(const char *who, int count, const void *array)
{
    if (count < 0 || (count > 0 && !array))
        return ls__fail(LS_INVALID, "%s: %d entries in %s", who, count, array ? "a list" : "NULL");
    return LS_OK;
}

/* ---- copying a structure with other tensors at its leaves ------------------------ */

typedef ls_tensor *(*leaf_fn)(ls_tensor *t);

static ls_value *copy(alloc_fn alloc, const ls_value *v, leaf_fn leaf, ls_tensor *const **tensors);

static ls_status fill(alloc_fn alloc, const ls_value *v, leaf_fn leaf, ls_tensor *const **tensors,
                      ls_value *out)
{
    if (v->kind == LS_LEAF) {
        out->tensor = leaf(tensors ? *(*tensors)++ : v->tensor);
        return out->tensor ? LS_OK : LS_NO_MEMORY;
    }
    for (int i = 0; i < v->count; i++) {
        out->items[i] = copy(alloc, v->items[i], leaf, tensors);
        if (!out->items[i])
            return LS_NO_MEMORY;
        if (v->kind == LS_DICT) {
            size_t bytes = strlen(v->keys[i]) + 1;
            out->keys[i] = alloc(bytes);
            if (!out->keys[i])
                return LS_NO_MEMORY;
            memcpy(out->keys[i], v->keys[i], bytes);
        }
    }
    return LS_OK;
}

static ls_value *copy(alloc_fn alloc, const ls_value *v, leaf_fn leaf, ls_tensor *const **tensors)
{
    ls_value *out = node(alloc, v->kind, v->count);
    if (out)
        out->depth = v->depth;
    if (!out || fill(alloc, v, leaf, tensors, out) == LS_OK)
        return out;
    if (out->kept)
        ls_value_drop(out);
    return NULL;
}

static ls_tensor *same_value(ls_tensor *t)
{
    return ls__same_value(t);
}

/* A kept value may be dropped before the one it becomes a part of: that one gets
 * a copy. */
static ls_value *in_frame(ls_value *v)
{
    return v->kept ? copy(ls__frame_alloc, v, same_value, NULL) : v;
}

/* Walks are recursive: a nest has a bottom in reach of the stack. */
static ls_status count_depth(const char *who, ls_value *v, const ls_value *item)
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
    ls_value *v = node(ls__frame_alloc, LS_LEAF, 1);
    if (!v)
        return NULL;
    v->tensor = ls__same_value(t); /* `t` may be dropped before the value goes */
    return v->tensor ? v : NULL;
}

ls_value *ls_list(int count, ls_value *const *items)
{
    if (check_count("ls_list", count, items))
        return NULL;
    for (int i = 0; i < count; i++)
        if (check("ls_list", items[i]))
            return NULL;
    ls_value *v = node(ls__frame_alloc, LS_LIST, count);
    for (int i = 0; v && i < count; i++) {
        v->items[i] = in_frame(items[i]);
        if (!v->items[i] || count_depth("ls_list", v, items[i]))
            return NULL;
    }
    return v;
}

ls_value *ls_tensors(int count, ls_tensor *const *tensors)
{
    if (check_count("ls_tensors", count, tensors))
        return NULL;
    ls_value *v = node(ls__frame_alloc, LS_LIST, count);
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
    item = in_frame(item);
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
    if (check_count("ls_dict", count, keys) || check_count("ls_dict", count, items))
        return NULL;
    ls_value *v = node(ls__frame_alloc, LS_DICT, count);
    for (int i = 0; v && i < count; i++)
        if (check("ls_dict", items[i]) || dict_insert(v, i, keys[i], items[i]) ||
            count_depth("ls_dict", v, items[i]))
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

static const char *kind_name(ls_value_kind kind)
{
    return kind == LS_LEAF ? "leaf" : kind == LS_LIST ? "list" : "dict";
}

static ls_status check_entry(const char *who, const ls_value *v, int index)
{
    ls_status st = check(who, v);
    if (st)
        return st;
    if (v->kind == LS_LEAF)
        return ls__fail(LS_INVALID, "%s: a leaf has no entries", who);
    if (index < 0 || index >= v->count)
        return ls__fail(LS_INVALID, "%s: entry %d of a %s with %d", who, index,
                        kind_name(v->kind), v->count);
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
    if (check("ls_get", v))
        return NULL;
    if (v->kind != LS_DICT || !key) {
        ls__fail(LS_INVALID, "ls_get: wants a dict and a key, got a %s and %s", kind_name(v->kind),
                 key ? key : "NULL");
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

ls_tensor *ls_leaf_tensor(const ls_value *v)
{
    if (check("ls_leaf_tensor", v))
        return NULL;
    if (v->kind != LS_LEAF) {
        ls__fail(LS_INVALID, "ls_leaf_tensor: the value is a %s of %d", kind_name(v->kind),
                 v->count);
        return NULL;
    }
    return v->tensor;
}

ls_tensor *ls_item(const ls_value *v, int index)
{
    return check_entry("ls_item", v, index) ? NULL : ls_leaf_tensor(v->items[index]);
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
    ls_status st = check("ls_flatten", v);
    if (!st && !out)
        st = ls__fail(LS_INVALID, "ls_flatten: out is NULL");
    if (!st)
        flatten(v, out);
    return st;
}

/* ---- the same structure elsewhere ------------------------------------------------- */

ls_value *ls_pack(const ls_value *structure, int count, ls_tensor *const *tensors)
{
    if (check("ls_pack", structure) || check_count("ls_pack", count, tensors))
        return NULL;
    int leaves = ls_leaf_count(structure);
    if (leaves != count) {
        ls__fail(LS_INVALID, "ls_pack: %d tensors for a structure of %d leaves", count, leaves);
        return NULL;
    }
    for (int i = 0; i < count; i++)
        if (ls__check_tensor("ls_pack", "a tensor", tensors[i]))
            return NULL;
    return copy(ls__frame_alloc, structure, same_value, &tensors);
}

ls_value *ls_value_hand_up(ls_value *v)
{
    if (check("ls_value_hand_up", v))
        return NULL;
    ls__frame *before = ls__frame_aim(1);
    ls_value *up = copy(ls__frame_alloc, v, same_value, NULL);
    ls__frame_aim_back(before);
    return up;
}

ls_value *ls_value_keep(ls_value *v)
{
    return check("ls_value_keep", v) ? NULL : copy(heap_alloc, v, ls_keep, NULL);
}

void ls_value_drop(ls_value *kept)
{
    if (!kept)
        return;
    if (kept->live != LS__LIVE || !kept->kept) {
        ls__hint(ls__fail(LS_INVALID, "ls_value_drop: this value was not kept"),
                 "values of a frame go with it");
        return;
    }
    kept->live = LS__DEAD;
    if (kept->kind == LS_LEAF)
        ls_drop(kept->tensor);
    else
        for (int i = 0; i < kept->count; i++)
            ls_value_drop(kept->items[i]);
    if (kept->kind == LS_DICT)
        for (int i = 0; i < kept->count; i++)
            free(kept->keys[i]);
    free(kept->keys);
    free(kept->items);
    free(kept);
}

/* ---- comparing ---------------------------------------------------------------------- */

/* `path` is where we are, as a text that grows on the way down. */
static ls_status same(const ls_value *a, const ls_value *b, char *path, size_t room, size_t at)
{
    if (a->kind != b->kind)
        return ls__fail(LS_INVALID, "structures differ at '%s': a %s and a %s", path,
                        kind_name(a->kind), kind_name(b->kind));
    if (a->kind != LS_LEAF && a->count != b->count)
        return ls__fail(LS_INVALID, "structures differ at '%s': %d and %d entries", path,
                        a->count, b->count);
    for (int i = 0; a->kind != LS_LEAF && i < a->count; i++) {
        if (a->kind == LS_DICT && strcmp(a->keys[i], b->keys[i]) != 0)
            return ls__fail(LS_INVALID, "structures differ at '%s': keys '%s' and '%s'", path,
                            a->keys[i], b->keys[i]);
        int written = a->kind == LS_DICT ? snprintf(path + at, room - at, ".%s", a->keys[i])
                                         : snprintf(path + at, room - at, "[%d]", i);
        size_t next = at + (size_t)written < room ? at + (size_t)written : room - 1;
        ls_status st = same(a->items[i], b->items[i], path, room, next);
        if (st)
            return st;
        path[at] = '\0';
    }
    return LS_OK;
}

ls_status ls_same_structure(const ls_value *a, const ls_value *b)
{
    ls_status st = check("ls_same_structure", a);
    if (!st)
        st = check("ls_same_structure", b);
    char path[256] = "value";
    return st ? st : same(a, b, path, sizeof path, 5);
}
