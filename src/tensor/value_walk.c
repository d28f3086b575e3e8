/*
 * Walks over nests: copying one elsewhere, making one from others, comparing. A copy has
 * handles of its own onto the same tensors, all components of distributed leaves included.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/value_node.h"

/* ---- the same value elsewhere ------------------------------------------------------- */

typedef ls_tensor *(*tensor_fn)(ls_tensor *t);

static ls_value *copy(ls__value_alloc alloc, const ls_value *v, tensor_fn same);

/* What is filled in at any moment can be dropped. */
static ls_status fill_leaf(ls__value_alloc alloc, const ls_value *v, tensor_fn same, ls_value *out)
{
    out->spread = v->spread;
    out->object = v->object;
    out->object_kind = v->object_kind;
    out->object_serial = v->object_serial;
    if (v->spread != LS_SPREAD_PLAIN) {
        ls_tensor **components = alloc(sizeof *components * (size_t)v->n_components);
        if (!components)
            return LS_NO_MEMORY;
        out->components = components;
    }
    out->n_components = 0;
    for (int i = 0; i < v->n_components; i++) {
        out->components[i] = same(v->components[i]);
        if (!out->components[i])
            return LS_NO_MEMORY;
        out->n_components++;
    }
    return LS_OK;
}

static ls_status fill(ls__value_alloc alloc, const ls_value *v, tensor_fn same, ls_value *out)
{
    if (v->kind == LS_LEAF)
        return fill_leaf(alloc, v, same, out);
    for (int i = 0; i < v->count; i++) {
        out->items[i] = copy(alloc, v->items[i], same);
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

static ls_value *copy(ls__value_alloc alloc, const ls_value *v, tensor_fn same)
{
    ls_value *out = ls__value_node(alloc, v->kind, v->count);
    if (out)
        out->depth = v->depth;
    if (!out || fill(alloc, v, same, out) == LS_OK)
        return out;
    if (out->kept)
        ls_value_drop(out);
    return NULL;
}

static ls_tensor *same_value(ls_tensor *t)
{
    return ls__same_value(t);
}

ls_value *ls__value_in_frame(const ls_value *v)
{
    return v->kept ? copy(ls__frame_alloc, v, same_value) : (ls_value *)v;
}

ls_value *ls__value_import(const ls_value *v)
{
    return ls__check_value("importing a value", v) ? NULL : copy(ls__frame_alloc, v, same_value);
}

ls_value *ls_value_hand_up(ls_value *v)
{
    if (ls__check_value("ls_value_hand_up", v))
        return NULL;
    ls__frame *before = ls__frame_aim(1);
    ls_value *up = copy(ls__frame_alloc, v, same_value);
    ls__frame_aim_back(before);
    return up;
}

ls_value *ls_value_keep(ls_value *v)
{
    return ls__check_value("ls_value_keep", v) ? NULL : copy(ls__value_heap_alloc, v, ls_keep);
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
    for (int i = 0; i < kept->n_components; i++)
        ls_drop(kept->components[i]);
    if (kept->components != &kept->tensor)
        free(kept->components);
    for (int i = 0; kept->items && i < kept->count; i++)
        ls_value_drop(kept->items[i]);
    for (int i = 0; kept->keys && i < kept->count; i++)
        free(kept->keys[i]);
    free(kept->keys);
    free(kept->items);
    free(kept);
}

/* ---- a nest from nests ------------------------------------------------------------- */

static ls_value *zip(int count, const ls_value *const *values, ls__leaves_fn fn, void *user)
{
    const ls_value *first = values[0];
    if (first->kind == LS_LEAF) {
        ls_value *leaf = fn(count, values, user);
        return leaf ? ls__value_in_frame(leaf) : NULL;
    }
    ls_value *out = ls__value_node(ls__frame_alloc, first->kind, first->count);
    const ls_value **entries = ls__frame_alloc(sizeof *entries * (size_t)count);
    if (!out || !entries)
        return NULL;
    for (int i = 0; i < first->count; i++) {
        for (int k = 0; k < count; k++)
            entries[k] = values[k]->items[i];
        out->items[i] = zip(count, entries, fn, user);
        if (!out->items[i] || ls__value_count_depth("a value", out, out->items[i]))
            return NULL;
        if (first->kind == LS_DICT && !(out->keys[i] = ls__frame_string(first->keys[i])))
            return NULL;
    }
    return out;
}

typedef struct one {
    ls__leaf_fn fn;
    void *user;
} one;

static ls_value *map_one(int count, const ls_value *const *leaves, void *user)
{
    (void)count;
    const one *o = user;
    return o->fn(leaves[0], o->user);
}

ls_value *ls__value_map(const ls_value *v, ls__leaf_fn fn, void *user)
{
    return ls__check_value("a value", v) ? NULL : zip(1, &v, map_one, &(one){ fn, user });
}

ls_value *ls__values_zip(int count, ls_value *const *values, const char *what, ls__leaves_fn fn,
                         void *user)
{
    for (int i = 0; i < count; i++)
        if (ls__check_value(what, values[i]))
            return NULL;
    for (int i = 1; i < count; i++) {
        ls__error_scope scope;
        ls__error_scope_open(&scope);
        ls_status st = ls_same_structure(values[0], values[i]);
        if (ls__error_scope_close(&scope, st, "%s: replica %d differs from replica 0", what, i))
            return NULL;
    }
    return zip(count, (const ls_value *const *)values, fn, user);
}

static const ls_value **leaves(const ls_value *v, const ls_value **out)
{
    if (v->kind == LS_LEAF) {
        *out = v;
        return out + 1;
    }
    for (int i = 0; i < v->count; i++)
        out = leaves(v->items[i], out);
    return out;
}

void ls__leaves(const ls_value *v, const ls_value **out)
{
    if (v && v->live == LS__LIVE)
        leaves(v, out);
}

/* ---- comparing ---------------------------------------------------------------------- */

/* `path` is where we are, as a text that grows on the way down. */
static ls_status same(const ls_value *a, const ls_value *b, char *path, size_t room, size_t at)
{
    if (a->kind != b->kind)
        return ls__fail(LS_INVALID, "structures differ at '%s': a %s and a %s", path,
                        ls__value_kind_name(a->kind), ls__value_kind_name(b->kind));
    if (a->kind != LS_LEAF && a->count != b->count)
        return ls__fail(LS_INVALID, "structures differ at '%s': %d and %d entries", path, a->count,
                        b->count);
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
    ls_status st = ls__check_value("ls_same_structure", a);
    if (!st)
        st = ls__check_value("ls_same_structure", b);
    char path[256] = "value";
    return st ? st : same(a, b, path, sizeof path, 5);
}
