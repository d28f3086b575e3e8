/*
 * What callbacks do with elements, and what is in sources that have elements of their own: pure
 * functions, called by the oracle and by the callbacks of the real dataset.
 */
#include <stdio.h>
#include <string.h>

#include "random_datasets/program.h"

/* ---- types ---------------------------------------------------------------------------------- */

static rd_leaf leaf_type(ls_dtype dtype, int rank, int64_t dim, int64_t most)
{
    return (rd_leaf){ .dtype = dtype, .rank = rank, .dims = { dim }, .most = most };
}

static void child_type(const rd_type *in, int i, rd_type *out)
{
    int at = 0;
    for (int k = 0; k < i; k++)
        at += rd_nest_leaves(in->nest->child[k]);
    out->nest = in->nest->child[i];
    out->n = rd_nest_leaves(out->nest);
    memcpy(out->leaf, in->leaf + at, (size_t)out->n * sizeof *out->leaf);
}

static void reversed_type(rd_pool *pool, const rd_type *in, rd_type *out)
{
    const rd_nest *nests[RD_CHILDREN] = { in->nest };
    int count = in->nest->kind == LS_LIST ? in->nest->count : 1;
    rd_type part = *in;
    out->n = 0;
    for (int i = 0; i < count; i++) {
        if (in->nest->kind == LS_LIST)
            child_type(in, count - 1 - i, &part);
        nests[i] = part.nest;
        memcpy(out->leaf + out->n, part.leaf, (size_t)part.n * sizeof *part.leaf);
        out->n += part.n;
    }
    out->nest = rd_nest_of(pool, LS_LIST, count, nests);
}

bool rd_fn_type(rd_pool *pool, rd_fn fn, const rd_type *in, rd_type *out)
{
    const rd_nest *two[2] = { in->nest, &rd_leaf_nest };
    *out = *in;
    out->set = -1;
    switch (fn) {
    case RD_DICT:
        if (in->n == RD_LEAVES)
            return false;
        out->nest = rd_nest_of(pool, LS_DICT, 2, two);
        out->leaf[out->n++] = leaf_type(LS_I64, 0, 0, 1);
        out->rows = false;
        return true;
    case RD_REVERSE:
        reversed_type(pool, in, out);
        return true;
    case RD_FIRST:
        if (in->nest->kind != LS_LEAF)
            child_type(in, 0, out);
        return true;
    case RD_RAGGED:
        two[0] = &rd_leaf_nest;
        *out = (rd_type){ .nest = rd_nest_of(pool, LS_LIST, 2, two), .n = 2, .set = -1 };
        out->leaf[0] = leaf_type(LS_I64, 0, 0, 1);
        out->leaf[1] = leaf_type(LS_F32, 1, -1, 3);
        return true;
    case RD_LENGTHS:
        for (int i = 0; i < out->n; i++)
            out->leaf[i].dtype = in->leaf[i].dtype == LS_BYTES ? LS_I64 : LS_F32;
        return true;
    case RD_FAILS:
        out->set = in->set;
        return true;
    default:
        return true;
    }
}

/* ---- maps and filters ----------------------------------------------------------------------- */

static rd_element *copy_of(rd_pool *pool, const rd_element *e)
{
    rd_element *out = rd_room(pool, sizeof *out);
    *out = *e;
    for (int i = 0; i < e->n; i++) {
        const rd_tensor *t = &e->leaf[i];
        out->leaf[i] = rd_tensor_of(pool, t->dtype, t->rank, t->dims);
        memcpy(out->leaf[i].cells, t->cells, (size_t)t->count * sizeof *t->cells);
    }
    return out;
}

static rd_element *added(rd_pool *pool, const rd_element *e, int64_t k)
{
    rd_element *out = copy_of(pool, e);
    for (int i = 0; i < out->n; i++)
        for (int64_t c = 0; c < out->leaf[i].count; c++) {
            rd_cell *cell = &out->leaf[i].cells[c];
            if (out->leaf[i].dtype != LS_BYTES) {
                rd_store(cell, out->leaf[i].dtype, (int64_t)((uint64_t)cell->number + (uint64_t)k));
                continue;
            }
            char *longer = rd_room(pool, (size_t)cell->length + 2);
            memcpy(longer, cell->string, (size_t)cell->length);
            longer[cell->length++] = (char)('a' + k % 26);
            cell->string = longer;
        }
    return out;
}

static rd_element *reversed(rd_pool *pool, const rd_element *e)
{
    rd_element *parts[RD_CHILDREN];
    int count = e->nest->kind == LS_LIST ? e->nest->count : 1;
    for (int i = 0; i < count; i++)
        parts[i] = e->nest->kind == LS_LIST ? rd_child(pool, e, count - 1 - i) : copy_of(pool, e);
    return rd_listed(pool, count, parts);
}

static rd_element *in_dict(rd_pool *pool, const rd_element *e)
{
    rd_element *parts[2] = { copy_of(pool, e), rd_number(pool, (int64_t)(rd_hash(e) % 1000)) };
    rd_element *out = rd_listed(pool, 2, parts);
    out->nest = rd_nest_of(pool, LS_DICT, 2, out->nest->child);
    return out;
}

static rd_element *ragged(rd_pool *pool, const rd_element *e)
{
    uint64_t h = rd_hash(e);
    rd_element *parts[2] = { rd_number(pool, (int64_t)(h % 1000)), rd_number(pool, 0) };
    rd_tensor *t = &parts[1]->leaf[0];
    *t = rd_tensor_of(pool, LS_F32, 1, (int64_t[]){ (int64_t)(h / 1000 % 4) });
    for (int64_t i = 0; i < t->count; i++)
        rd_store(&t->cells[i], LS_F32, (int64_t)(rd_mix(h, (uint64_t)i) % 50));
    return rd_listed(pool, 2, parts);
}

static rd_element *lengths(rd_pool *pool, const rd_element *e)
{
    rd_element *out = copy_of(pool, e);
    for (int i = 0; i < out->n; i++) {
        rd_tensor *t = &out->leaf[i];
        bool strings = t->dtype == LS_BYTES;
        t->dtype = strings ? LS_I64 : LS_F32;
        for (int64_t c = 0; c < t->count; c++) {
            int64_t number = strings ? t->cells[c].length : t->cells[c].number;
            t->cells[c] = (rd_cell){ 0 };
            rd_store(&t->cells[c], t->dtype, number);
        }
    }
    return out;
}

rd_element *rd_fn_apply(rd_pool *pool, const rd_node *map, const rd_element *e)
{
    switch (map->fn) {
    case RD_DICT:
        return in_dict(pool, e);
    case RD_REVERSE:
        return reversed(pool, e);
    case RD_FIRST:
        return e->nest->kind == LS_LEAF ? added(pool, e, map->a) : rd_child(pool, e, 0);
    case RD_RAGGED:
        return ragged(pool, e);
    case RD_LENGTHS:
        return lengths(pool, e);
    case RD_FAILS:
        return rd_hash(e) % 4 == (uint64_t)map->a % 4 ? NULL : copy_of(pool, e);
    default:
        return added(pool, e, map->a);
    }
}

bool rd_filter_keeps(const rd_node *filter, const rd_element *e)
{
    return rd_hash(e) % (uint64_t)filter->a != (uint64_t)filter->b;
}

/* ---- contents of sources -------------------------------------------------------------------- */

rd_element *rd_content(rd_pool *pool, const rd_node *source, int64_t i)
{
    rd_element *e = rd_room(pool, sizeof *e);
    e->nest = source->type.nest;
    e->n = source->type.n;
    for (int k = 0; k < e->n; k++) {
        const rd_leaf *leaf = &source->type.leaf[k];
        rd_tensor *t = &e->leaf[k];
        *t = rd_tensor_of(pool, leaf->dtype, leaf->rank, leaf->dims);
        for (int64_t c = 0; c < t->count; c++) {
            uint64_t h = rd_mix(rd_mix(source->seed, (uint64_t)i), (uint64_t)(k * 1000 + c));
            if (leaf->dtype != LS_BYTES) {
                rd_store(&t->cells[c], leaf->dtype, (int64_t)(h % 199) - 99);
                continue;
            }
            char *string = rd_room(pool, 16);
            t->cells[c].length = (int)(h % 7);
            snprintf(string, 16, "%08x", (unsigned)(h >> 32));
            t->cells[c].string = string;
        }
    }
    return e;
}
