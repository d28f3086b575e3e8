/*
 * The oracle's elements: memory, text, and what stages do to shapes.
 */
#include "random_datasets/model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory and text ------------------------------------------------------------------------ */

typedef struct rd_block {
    struct rd_block *next;
    _Alignas(max_align_t) char data[];
} rd_block;

void *rd_room(rd_pool *pool, size_t bytes)
{
    rd_block *block = calloc(1, sizeof *block + bytes);
    if (!block)
        abort();
    block->next = pool->first;
    pool->first = block;
    return block->data;
}

void rd_pool_free(rd_pool *pool)
{
    while (pool->first) {
        rd_block *next = pool->first->next;
        free(pool->first);
        pool->first = next;
    }
}

void rd_print(rd_text *to, const char *format, ...)
{
    for (;;) {
        va_list list;
        va_start(list, format);
        size_t left = to->room - to->length;
        int n = vsnprintf(to->at ? to->at + to->length : NULL, left, format, list);
        va_end(list);
        if ((size_t)n < left) {
            to->length += (size_t)n;
            return;
        }
        to->room = 2 * to->room + (size_t)n + 256;
        to->at = realloc(to->at, to->room);
        if (!to->at)
            abort();
    }
}

void rd_text_free(rd_text *text)
{
    free(text->at);
    *text = (rd_text){ 0 };
}

/* ---- making --------------------------------------------------------------------------------- */

const rd_nest rd_leaf_nest = { LS_LEAF, 1, { NULL, NULL, NULL } };

const rd_nest *rd_nest_of(rd_pool *pool, ls_value_kind kind, int count, const rd_nest *const *child)
{
    rd_nest *nest = rd_room(pool, sizeof *nest);
    nest->kind = kind;
    nest->count = count;
    for (int i = 0; i < count; i++)
        nest->child[i] = child[i];
    return nest;
}

int rd_nest_leaves(const rd_nest *nest)
{
    int n = nest->kind == LS_LEAF;
    for (int i = 0; nest->kind != LS_LEAF && i < nest->count; i++)
        n += rd_nest_leaves(nest->child[i]);
    return n;
}

rd_tensor rd_tensor_of(rd_pool *pool, ls_dtype dtype, int rank, const int64_t *dims)
{
    rd_tensor t = { .dtype = dtype, .rank = rank, .count = 1 };
    for (int i = 0; i < rank; i++)
        t.count *= t.dims[i] = dims[i];
    t.cells = rd_room(pool, (size_t)t.count * sizeof *t.cells);
    for (int64_t i = 0; dtype == LS_BYTES && i < t.count; i++)
        t.cells[i].string = "";
    return t;
}

static rd_element *leaf_of(rd_pool *pool, ls_dtype dtype)
{
    rd_element *e = rd_room(pool, sizeof *e);
    e->nest = &rd_leaf_nest;
    e->n = 1;
    e->leaf[0] = rd_tensor_of(pool, dtype, 0, NULL);
    return e;
}

rd_element *rd_number(rd_pool *pool, int64_t number)
{
    rd_element *e = leaf_of(pool, LS_I64);
    e->leaf[0].cells->number = number;
    return e;
}

rd_element *rd_string(rd_pool *pool, const char *string, int length)
{
    rd_element *e = leaf_of(pool, LS_BYTES);
    char *copy = rd_room(pool, (size_t)length + 1);
    memcpy(copy, string, (size_t)length);
    *e->leaf[0].cells = (rd_cell){ .string = copy, .length = length };
    return e;
}

void rd_store(rd_cell *cell, ls_dtype dtype, int64_t number)
{
    cell->number = dtype == LS_U8     ? number & 255
                   : dtype == LS_BOOL ? number & 1
                   : dtype == LS_I64  ? number
                                      : number % 100; /* exact in every type, bf16 too */
}

/* ---- looking -------------------------------------------------------------------------------- */

uint64_t rd_mix(uint64_t a, uint64_t b)
{
    uint64_t z = a * 0x9e3779b97f4a7c15u + b + 0x7f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t rd_hash(const rd_element *e)
{
    uint64_t h = (uint64_t)e->n;
    for (int i = 0; i < e->n; i++) {
        const rd_tensor *t = &e->leaf[i];
        h = rd_mix(h, (uint64_t)t->dtype * 16 + (uint64_t)t->rank);
        for (int k = 0; k < t->rank; k++)
            h = rd_mix(h, (uint64_t)t->dims[k]);
        for (int64_t k = 0; k < t->count; k++) {
            h = rd_mix(h, (uint64_t)t->cells[k].number);
            for (int c = 0; c < t->cells[k].length; c++)
                h = rd_mix(h, (unsigned char)t->cells[k].string[c]);
        }
    }
    return h;
}

static void print_tensor(rd_text *to, const rd_tensor *t)
{
    rd_print(to, "%s[", ls_dtype_name(t->dtype));
    for (int i = 0; i < t->rank; i++)
        rd_print(to, "%s%lld", i ? "," : "", (long long)t->dims[i]);
    rd_print(to, "]{");
    for (int64_t i = 0; i < t->count; i++) {
        const rd_cell *c = &t->cells[i];
        rd_print(to, "%s", i ? "," : "");
        if (t->dtype != LS_BYTES) {
            rd_print(to, "%lld", (long long)c->number);
            continue;
        }
        uint64_t h = 0; /* of long ones: no more than a sum */
        for (int k = 0; k < c->length; k++)
            h = rd_mix(h, (unsigned char)c->string[k]);
        rd_print(to, "%d:", c->length);
        for (int k = 0; k < c->length && k < 12; k++)
            rd_print(to, "%c", c->string[k] > ' ' && c->string[k] < 127 ? c->string[k] : '.');
        if (c->length)
            rd_print(to, ":%x", (unsigned)h & 0xffffff);
    }
    rd_print(to, "}");
}

static int print_nest(rd_text *to, const rd_nest *nest, const rd_element *e, int leaf)
{
    if (nest->kind == LS_LEAF) {
        print_tensor(to, &e->leaf[leaf]);
        return leaf + 1;
    }
    rd_print(to, nest->kind == LS_LIST ? "(" : "{");
    for (int i = 0; i < nest->count; i++) {
        rd_print(to, i ? ", " : "");
        if (nest->kind == LS_DICT)
            rd_print(to, "%c: ", 'a' + i);
        leaf = print_nest(to, nest->child[i], e, leaf);
    }
    rd_print(to, nest->kind == LS_LIST ? ")" : "}");
    return leaf;
}

void rd_print_element(rd_text *to, const rd_element *e)
{
    print_nest(to, e->nest, e, 0);
}

/* ---- shapes --------------------------------------------------------------------------------- */

/* Copies t into the corner of row `i` of `to`. */
static void put_row(rd_tensor *to, int64_t i, const rd_tensor *t)
{
    int64_t at[RD_RANK] = { 0 };
    for (int64_t k = 0; k < t->count; k++) {
        int64_t where = i;
        for (int a = 0; a < t->rank; a++)
            where = where * to->dims[a + 1] + at[a];
        to->cells[where] = t->cells[k];
        for (int a = t->rank - 1; a >= 0 && ++at[a] == t->dims[a]; a--)
            at[a] = 0;
    }
}

rd_element *rd_padded(rd_pool *pool, int n, rd_element *const *e, const int64_t *dims, int64_t fill)
{
    rd_element *out = rd_room(pool, sizeof *out);
    out->nest = e[0]->nest;
    out->n = e[0]->n;
    for (int i = 0; i < out->n; i++) {
        const rd_tensor *first = &e[0]->leaf[i];
        int64_t shape[RD_RANK] = { n };
        for (int a = 0; a < first->rank; a++) {
            for (int k = 0; k < n; k++)
                if (shape[a + 1] < e[k]->leaf[i].dims[a])
                    shape[a + 1] = e[k]->leaf[i].dims[a];
            if (dims && dims[i * RD_RANK + a] >= 0)
                shape[a + 1] = dims[i * RD_RANK + a];
        }
        rd_tensor *t = &out->leaf[i];
        *t = rd_tensor_of(pool, first->dtype, first->rank + 1, shape);
        for (int64_t k = 0; first->dtype != LS_BYTES && k < t->count; k++)
            rd_store(&t->cells[k], first->dtype, fill);
        for (int k = 0; k < n; k++)
            put_row(t, k, &e[k]->leaf[i]);
    }
    return out;
}

rd_element *rd_stacked(rd_pool *pool, int n, rd_element *const *e)
{
    return rd_padded(pool, n, e, NULL, 0);
}

rd_element *rd_row(rd_pool *pool, const rd_element *e, int64_t i)
{
    rd_element *out = rd_room(pool, sizeof *out);
    *out = *e;
    for (int k = 0; k < e->n; k++) {
        rd_tensor *t = &out->leaf[k];
        t->rank--;
        for (int a = 0; a < t->rank; a++)
            t->dims[a] = t->dims[a + 1];
        t->count /= e->leaf[k].dims[0];
        t->cells += i * t->count;
    }
    return out;
}

rd_element *rd_listed(rd_pool *pool, int n, rd_element *const *e)
{
    const rd_nest *nests[RD_CHILDREN];
    rd_element *out = rd_room(pool, sizeof *out);
    for (int i = 0; i < n; i++) {
        nests[i] = e[i]->nest;
        for (int k = 0; k < e[i]->n; k++)
            out->leaf[out->n++] = e[i]->leaf[k];
    }
    out->nest = rd_nest_of(pool, LS_LIST, n, nests);
    return out;
}

rd_element *rd_child(rd_pool *pool, const rd_element *e, int i)
{
    int at = 0;
    for (int k = 0; k < i; k++)
        at += rd_nest_leaves(e->nest->child[k]);
    rd_element *out = rd_room(pool, sizeof *out);
    out->nest = e->nest->child[i];
    out->n = rd_nest_leaves(out->nest);
    memcpy(out->leaf, e->leaf + at, (size_t)out->n * sizeof *out->leaf);
    return out;
}
