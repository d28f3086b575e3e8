/*
 * A structure as bytes: for each node its kind, for lists and dicts how many entries, and these, with a
 * dict's key before each.
 */
#include "data/nest.h"

#include <string.h>

#include "tensor/tensor.h"

enum { DEEPEST = 100 };

ls_value *ls__nest_keep(const ls_value *value)
{
    const int n = ls_leaf_count(value);
    ls_value *kept = NULL;
    LS_FRAME {
        ls_tensor *zero = ls_scalar_int(LS_I32, 0);
        ls_tensor **leaves = ls__frame_alloc(((size_t)n + 1) * sizeof *leaves);
        for (int i = 0; leaves && i < n; i++)
            leaves[i] = zero;
        ls_value *bare = leaves && zero ? ls_pack(value, n, leaves) : NULL;
        kept = bare ? ls_value_keep(bare) : NULL;
    }
    return kept;
}

void ls__nest_put(ls__bytes_out *to, const ls_value *value)
{
    const ls_value_kind kind = ls_kind_of(value);
    const int n = kind == LS_LEAF ? 0 : ls_length(value);
    ls__put_int(to, (int64_t)kind);
    if (kind != LS_LEAF)
        ls__put_int(to, n);
    for (int i = 0; i < n; i++) {
        if (kind == LS_DICT)
            ls__put_bytes(to, ls_key(value, i), strlen(ls_key(value, i)));
        ls__nest_put(to, ls_child(value, i));
    }
}

static ls_status get_key(ls__bytes_in *from, const char **out)
{
    const void *data;
    size_t bytes;
    ls_status st = ls__get_bytes(from, &data, &bytes);
    if (!st && memchr(data, 0, bytes))
        st = ls__position_corrupt();
    char *key = st ? NULL : ls__frame_alloc(bytes + 1);
    if (!st && !key)
        st = LS_NO_MEMORY;
    if (st)
        return st;
    memcpy(key, data, bytes);
    key[bytes] = '\0';
    *out = key;
    return LS_OK;
}

/* In the innermost frame. Every entry has a byte at least, so there are no more than bytes left. */
static ls_status get(ls__bytes_in *from, ls_tensor *leaf, int depth, ls_value **out)
{
    int64_t kind, n;
    ls_status st = ls__get_int(from, LS_LEAF, LS_DICT, &kind);
    if (st)
        return st;
    if (kind == LS_LEAF) {
        *out = ls_leaf(leaf);
        return *out ? LS_OK : LS_NO_MEMORY;
    }
    st = depth == DEEPEST ? ls__position_corrupt() : ls__get_int(from, 0, from->end - from->at, &n);
    if (st)
        return st;
    const char **keys = ls__frame_alloc(((size_t)n + 1) * sizeof *keys);
    ls_value **items = ls__frame_alloc(((size_t)n + 1) * sizeof *items);
    if (!keys || !items)
        return LS_NO_MEMORY;
    for (int64_t i = 0; i < n && !st; i++) {
        if (kind == LS_DICT)
            st = get_key(from, &keys[i]);
        if (!st && kind == LS_DICT && i > 0 && strcmp(keys[i - 1], keys[i]) >= 0)
            st = ls__position_corrupt(); /* they are written in their order */
        if (!st)
            st = get(from, leaf, depth + 1, &items[i]);
    }
    if (st)
        return st;
    *out = kind == LS_DICT ? ls_dict((int)n, keys, items) : ls_list((int)n, items);
    return *out ? LS_OK : LS_NO_MEMORY;
}

ls_status ls__nest_get(ls__bytes_in *from, ls_value **out)
{
    ls_status st = LS_OK;
    LS_FRAME {
        ls_value *value = NULL;
        ls_tensor *zero = ls_scalar_int(LS_I32, 0);
        st = zero ? get(from, zero, 0, &value) : LS_NO_MEMORY;
        if (!st) {
            *out = ls_value_keep(value);
            st = *out ? LS_OK : LS_NO_MEMORY;
        }
    }
    return st;
}
