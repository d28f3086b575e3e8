/*
 * Types of elements: immutable, counted, with their text made once.
 */
#include "data/type.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "tensor/tensor.h"
#include "tensor/value.h"

struct ls__type {
    _Atomic int refs;
    ls_value *structure; /* kept; NULL: not known */
    int count;
    ls__leaf_type *leaves;
    char *text;
};

/* ---- text ---------------------------------------------------------------------------------- */

typedef struct text {
    char *at;
    size_t used, room;
    bool failed;
} text;

static void put(text *t, const char *word)
{
    size_t n = strlen(word);
    if (t->used + n + 1 > t->room && !t->failed) {
        size_t room = 2 * (t->used + n) + 64;
        char *at = realloc(t->at, room);
        t->failed = !at;
        if (at) {
            t->at = at;
            t->room = room;
        }
    }
    if (t->failed)
        return;
    memcpy(t->at + t->used, word, n + 1);
    t->used += n;
}

static void put_leaf(text *t, const ls__leaf_type *leaf)
{
    char number[32];
    if (!leaf->dtype) {
        put(t, "?");
        return;
    }
    put(t, ls_dtype_name(leaf->dtype));
    if (leaf->rank < 0)
        return;
    put(t, "[");
    for (int i = 0; i < leaf->rank; i++) {
        snprintf(number, sizeof number, leaf->dims[i] < 0 ? "%s?" : "%s%lld", i ? "," : "",
                 (long long)leaf->dims[i]);
        put(t, number);
    }
    put(t, "]");
}

static void put_nest(text *t, const ls_value *v, const ls__leaf_type **leaf, bool top)
{
    const int n = ls_length(v);
    switch (ls_kind_of(v)) {
    case LS_LEAF:
        put_leaf(t, (*leaf)++);
        return;
    case LS_LIST:
        top &= n > 1;
        put(t, top ? "" : "(");
        for (int i = 0; i < n; i++) {
            put(t, i ? ", " : "");
            put_nest(t, ls_child(v, i), leaf, false);
        }
        put(t, top ? "" : n == 1 ? ",)" : ")");
        return;
    case LS_DICT:
        put(t, "{");
        for (int i = 0; i < n; i++) {
            put(t, i ? ", " : "");
            put(t, ls_key(v, i));
            put(t, ": ");
            put_nest(t, ls_child(v, i), leaf, false);
        }
        put(t, "}");
        return;
    }
}

/* ---- making -------------------------------------------------------------------------------- */

ls__type *ls__type_new(const ls_value *structure, int count, const ls__leaf_type *leaves)
{
    ls__type *t = calloc(1, sizeof *t);
    text words = { 0 };
    if (!t)
        goto no_memory;
    atomic_init(&t->refs, 1);
    t->count = count;
    t->leaves = calloc((size_t)count + 1, sizeof *leaves);
    if (!t->leaves)
        goto no_memory;
    if (count)
        memcpy(t->leaves, leaves, (size_t)count * sizeof *leaves);
    if (structure) {
        const ls__leaf_type *leaf = t->leaves;
        t->structure = ls_value_keep((ls_value *)(uintptr_t)structure);
        if (!t->structure)
            goto no_memory;
        put_nest(&words, structure, &leaf, true);
    } else {
        put(&words, "?");
    }
    put(&words, "");
    t->text = words.at;
    if (!words.failed)
        return t;
no_memory:
    ls__fail_memory("the type of elements", sizeof *t);
    ls__type_unref(t);
    return NULL;
}

ls__type *ls__type_unknown(void)
{
    return ls__type_new(NULL, 0, NULL);
}

static ls__leaf_type leaf_of(const ls__spec *spec)
{
    ls__leaf_type leaf = { .dtype = spec->dtype, .rank = spec->rank };
    memcpy(leaf.dims, spec->dims, sizeof leaf.dims);
    return leaf;
}

ls__type *ls__type_of_value(const ls_value *value)
{
    const int n = ls_leaf_count(value);
    ls__type *t = NULL;
    LS_FRAME {
        ls_tensor **tensors = ls__frame_alloc(sizeof *tensors * (size_t)(n + 1));
        ls__leaf_type *leaves = ls__frame_alloc(sizeof *leaves * (size_t)(n + 1));
        if (tensors && leaves && !ls_flatten(value, tensors)) {
            for (int i = 0; i < n; i++)
                leaves[i] = leaf_of(&tensors[i]->spec);
            t = ls__type_new(value, n, leaves);
        }
    }
    return t;
}

ls__type *ls__type_with(const ls__type *t, const ls__leaf_type *leaves)
{
    return ls__type_new(t->structure, t->count, leaves);
}

ls__type *ls__type_ref(const ls__type *t)
{
    ls__type *same = (ls__type *)(uintptr_t)t;
    atomic_fetch_add_explicit(&same->refs, 1, memory_order_relaxed);
    return same;
}

void ls__type_unref(ls__type *t)
{
    /* Acquire and release: whoever frees it has seen all that others did with it. */
    if (!t || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) > 1)
        return;
    ls_value_drop(t->structure);
    free(t->leaves);
    free(t->text);
    free(t);
}

/* ---- asking -------------------------------------------------------------------------------- */

const ls_value *ls__type_structure(const ls__type *t)
{
    return t->structure;
}

int ls__type_leaves(const ls__type *t)
{
    return t->count;
}

const ls__leaf_type *ls__type_leaf(const ls__type *t, int i)
{
    return &t->leaves[i];
}

const char *ls__type_text(const ls__type *t)
{
    return t->text;
}

/* ---- rows ---------------------------------------------------------------------------------- */

ls_status ls__type_row(const char *who, const ls__type *t, ls__type **out)
{
    ls__leaf_type *leaves = calloc((size_t)t->count + 1, sizeof *leaves);
    if (!leaves)
        return ls__fail_memory(who, sizeof *leaves);
    ls_status st = LS_OK;
    for (int i = 0; i < t->count && !st; i++) {
        leaves[i] = t->leaves[i];
        if (leaves[i].dtype && leaves[i].rank == 0)
            st = ls__hint(ls__fail(LS_SHAPE, "%s: leaf %d of %s has no rows", who, i, t->text),
                          "every leaf needs an axis 0");
        if (leaves[i].rank > 0)
            memmove(leaves[i].dims, leaves[i].dims + 1,
                    (size_t)--leaves[i].rank * sizeof *leaves[i].dims);
    }
    if (!st && !(*out = ls__type_with(t, leaves)))
        st = LS_NO_MEMORY;
    free(leaves);
    return st;
}

ls_status ls__type_stacked(const char *who, const ls__type *t, int64_t n, ls__type **out)
{
    ls__leaf_type *leaves = calloc((size_t)t->count + 1, sizeof *leaves);
    if (!leaves)
        return ls__fail_memory(who, sizeof *leaves);
    ls_status st = LS_OK;
    for (int i = 0; i < t->count && !st; i++) {
        leaves[i] = t->leaves[i];
        if (leaves[i].dtype && leaves[i].rank == LS_MAX_RANK)
            st = ls__fail(LS_SHAPE, "%s: leaf %d of %s has %d axes already", who, i, t->text,
                          LS_MAX_RANK);
        if (st || !leaves[i].dtype || leaves[i].rank < 0)
            continue;
        memmove(leaves[i].dims + 1, leaves[i].dims,
                (size_t)leaves[i].rank++ * sizeof *leaves[i].dims);
        leaves[i].dims[0] = n;
    }
    if (!st && !(*out = ls__type_with(t, leaves)))
        st = LS_NO_MEMORY;
    free(leaves);
    return st;
}

/* ---- comparing ----------------------------------------------------------------------------- */

static bool merge_leaf(ls__leaf_type *a, const ls__leaf_type *b)
{
    if (!a->dtype || !b->dtype) {
        a->dtype = (ls_dtype)0;
        return true;
    }
    if (a->dtype != b->dtype)
        return false;
    if (a->rank != b->rank) {
        a->rank = -1;
        return true;
    }
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i])
            a->dims[i] = -1;
    return true;
}

ls_status ls__type_common(const char *who, const ls__type *a, const ls__type *b, ls__type **out)
{
    if (!a->structure || !b->structure) {
        *out = ls__type_unknown();
        return *out ? LS_OK : LS_NO_MEMORY;
    }
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    ls_status st =
        ls__error_scope_close(&scope, ls_same_structure(a->structure, b->structure), "%s", who);
    if (st)
        return st;
    ls__leaf_type *leaves = calloc((size_t)a->count + 1, sizeof *leaves);
    if (!leaves)
        return ls__fail_memory(who, sizeof *leaves);
    for (int i = 0; i < a->count && !st; i++) {
        leaves[i] = a->leaves[i];
        if (!merge_leaf(&leaves[i], &b->leaves[i]))
            st = ls__fail(LS_SHAPE, "%s: leaf %d is %s in %s and %s in %s", who, i,
                          ls_dtype_name(a->leaves[i].dtype), a->text,
                          ls_dtype_name(b->leaves[i].dtype), b->text);
    }
    if (!st && !(*out = ls__type_with(a, leaves)))
        st = LS_NO_MEMORY;
    free(leaves);
    return st;
}

static bool fits(const ls__leaf_type *leaf, const ls__spec *spec)
{
    if (!leaf->dtype)
        return true;
    if (leaf->dtype != spec->dtype || (leaf->rank >= 0 && leaf->rank != spec->rank))
        return false;
    for (int i = 0; i < leaf->rank; i++)
        if (leaf->dims[i] >= 0 && leaf->dims[i] != spec->dims[i])
            return false;
    return true;
}

ls_status ls__type_check(const char *who, const ls__type *t, const ls_value *structure, int leaves,
                         const ls__spec *const *specs)
{
    if (!t->structure)
        return LS_OK;
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    ls_status st =
        ls__error_scope_close(&scope, ls_same_structure(t->structure, structure), "%s", who);
    for (int i = 0; i < leaves && !st; i++)
        if (!fits(&t->leaves[i], specs[i]))
            st = ls__fail(LS_SHAPE, "%s: leaf %d of an element is %s, of %s", who, i,
                          ls__spec_text(specs[i]), t->text);
    return st;
}
