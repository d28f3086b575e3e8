/*
 * The oracle's elements as values of Lockstep, and back.
 */
#include <stdlib.h>
#include <string.h>

#include "random_datasets/model.h"

static const char *const keys[RD_CHILDREN] = { "a", "b", "c" };

/* ---- to values ------------------------------------------------------------------------------ */

static ls_tensor *string_tensor(const rd_tensor *t)
{
    const void **strings = calloc((size_t)t->count + 1, sizeof *strings);
    size_t *lengths = calloc((size_t)t->count + 1, sizeof *lengths);
    if (!strings || !lengths)
        abort();
    for (int64_t i = 0; i < t->count; i++) {
        strings[i] = t->cells[i].string;
        lengths[i] = (size_t)t->cells[i].length;
    }
    ls_tensor *out = ls_from_strings(t->rank, t->dims, strings, lengths);
    free(strings);
    free(lengths);
    return out;
}

static void write_number(unsigned char *to, ls_dtype dtype, int64_t number)
{
    float f = (float)number;
    double d = (double)number;
    int32_t i = (int32_t)number;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    uint16_t half = (uint16_t)(bits >> 16);
    switch (dtype) {
    case LS_F32:
        memcpy(to, &f, sizeof f);
        break;
    case LS_F64:
        memcpy(to, &d, sizeof d);
        break;
    case LS_I32:
        memcpy(to, &i, sizeof i);
        break;
    case LS_I64:
        memcpy(to, &number, sizeof number);
        break;
    case LS_BF16:
        memcpy(to, &half, sizeof half);
        break;
    default:
        *to = (unsigned char)number;
    }
}

static ls_tensor *tensor(const rd_tensor *t)
{
    if (t->dtype == LS_BYTES)
        return string_tensor(t);
    size_t each = ls_dtype_size(t->dtype);
    unsigned char *data = malloc((size_t)t->count * each + 1);
    if (!data)
        abort();
    for (int64_t i = 0; i < t->count; i++)
        write_number(data + (size_t)i * each, t->dtype, t->cells[i].number);
    ls_tensor *out = ls_from(t->dtype, t->rank, t->dims, data);
    free(data);
    return out;
}

/* Dicts are given their entries last to first: their order must not matter. */
static ls_value *nest_value(const rd_nest *nest, const rd_element *e, int *leaf)
{
    ls_value *items[RD_CHILDREN];
    const char *names[RD_CHILDREN];
    if (nest->kind == LS_LEAF)
        return ls_leaf(tensor(&e->leaf[(*leaf)++]));
    for (int i = 0; i < nest->count; i++) {
        int to = nest->kind == LS_LIST ? i : nest->count - 1 - i;
        items[to] = nest_value(nest->child[i], e, leaf);
        names[to] = keys[i];
    }
    return nest->kind == LS_LIST ? ls_list(nest->count, items) : ls_dict(nest->count, names, items);
}

ls_value *rd_value(const rd_element *e)
{
    int leaf = 0;
    return nest_value(e->nest, e, &leaf);
}

/* ---- from values ---------------------------------------------------------------------------- */

static int64_t read_number(const unsigned char *from, ls_dtype dtype)
{
    float f;
    double d;
    int32_t i;
    int64_t l;
    uint16_t half;
    uint32_t bits;
    switch (dtype) {
    case LS_F32:
        memcpy(&f, from, sizeof f);
        return (int64_t)f;
    case LS_F64:
        memcpy(&d, from, sizeof d);
        return (int64_t)d;
    case LS_I32:
        memcpy(&i, from, sizeof i);
        return i;
    case LS_I64:
        memcpy(&l, from, sizeof l);
        return l;
    case LS_BF16:
        memcpy(&half, from, sizeof half);
        bits = (uint32_t)half << 16;
        memcpy(&f, &bits, sizeof f);
        return (int64_t)f;
    default:
        return *from;
    }
}

static bool read_tensor(rd_pool *pool, ls_tensor *t, rd_tensor *out, const char **why)
{
    if (!t || ls_rank(t) > RD_RANK) {
        *why = t ? "a tensor of too many axes" : "a leaf without a tensor";
        return false;
    }
    *out = rd_tensor_of(pool, ls_dtype_of(t), ls_rank(t), ls_shape(t));
    size_t each = ls_dtype_size(out->dtype);
    const unsigned char *data = each ? ls_data(t) : NULL;
    for (int64_t i = 0; i < out->count; i++) {
        const void *string;
        size_t length;
        if (each) {
            out->cells[i].number = read_number(data + (size_t)i * each, out->dtype);
            continue;
        }
        if (ls_string_at(t, i, &string, &length)) {
            *why = "a string that cannot be read";
            return false;
        }
        char *copy = rd_room(pool, length + 1);
        memcpy(copy, string, length);
        out->cells[i] = (rd_cell){ .string = copy, .length = (int)length };
    }
    if (each)
        ls_data_done(t);
    return true;
}

static const rd_nest *read_nest(rd_pool *pool, const ls_value *v, rd_element *e, const char **why)
{
    const rd_nest *child[RD_CHILDREN];
    ls_value_kind kind = ls_kind_of(v);
    if (kind == LS_LEAF) {
        if (e->n == RD_LEAVES) {
            *why = "too many leaves";
            return NULL;
        }
        return read_tensor(pool, ls_leaf_tensor(v), &e->leaf[e->n++], why) ? &rd_leaf_nest : NULL;
    }
    int n = ls_length(v);
    if (n > RD_CHILDREN) {
        *why = "too many entries";
        return NULL;
    }
    for (int i = 0; i < n; i++) {
        if (kind == LS_DICT && strcmp(ls_key(v, i), keys[i]) != 0) {
            *why = "another key";
            return NULL;
        }
        child[i] = read_nest(pool, ls_child(v, i), e, why);
        if (!child[i])
            return NULL;
    }
    return rd_nest_of(pool, kind, n, child);
}

rd_element *rd_read(rd_pool *pool, const ls_value *v, const char **why)
{
    rd_element *e = rd_room(pool, sizeof *e);
    *why = "";
    if (!v) {
        *why = "NULL";
        return NULL;
    }
    e->nest = read_nest(pool, v, e, why);
    return e->nest ? e : NULL;
}
