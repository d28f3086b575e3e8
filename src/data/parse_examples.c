/*
 * ls_parse_examples: one pass over each example for all features. Entries are compared with the
 * feature that came at their place in the example before: writers put them in one order, mostly.
 */
#include <lockstep/records.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/example_column.h"
#include "tensor/value.h"

typedef struct parse {
    const ls__string *examples;
    int64_t n;
    bool one;
    int count;
    ls__column *columns;
    int *order; /* of columns in the example before; a guess */
    int found;  /* entries of this example that we want, so far */
} parse;

/* ---- an example ------------------------------------------------------------------------------- */

static bool is(const ls__column *c, const ls__entry *e)
{
    return e->key_length == c->key_length && memcmp(e->key, c->feature->key, c->key_length) == 0;
}

/* The column of an entry; NULL: nobody asked for it. */
static ls__column *find(parse *p, const ls__entry *e)
{
    int *guess = p->found < p->count ? &p->order[p->found] : NULL;
    if (guess && is(&p->columns[*guess], e)) {
        p->found++;
        return &p->columns[*guess];
    }
    for (int k = 0; k < p->count; k++) {
        if (!is(&p->columns[k], e))
            continue;
        if (guess) {
            *guess = k;
            p->found++;
        }
        return &p->columns[k];
    }
    return NULL;
}

/* The keys there are, for who asked for another. They come from a file: nothing but plain
 * characters of them goes to a terminal. */
static ls_status name_keys(ls_status st, const ls__string *example)
{
    char keys[128];
    size_t used = 0;
    ls__example e;
    ls__entry entry;
    ls__example_open(&e, example->data, example->length);
    while (ls__example_next(&e, &entry)) {
        /* what comes in front of it, the key, and what may come behind it */
        if (entry.key_length > sizeof keys ||
            used + strlen(", ") + entry.key_length + sizeof ", ..." > sizeof keys) {
            used += (size_t)sprintf(keys + used, used ? ", ..." : "...");
            break;
        }
        used += (size_t)sprintf(keys + used, used ? ", " : "");
        for (size_t i = 0; i < entry.key_length; i++) {
            uint8_t byte = entry.key[i];
            keys[used++] = byte < ' ' || byte > '~' ? '?' : (char)byte;
        }
    }
    keys[used] = '\0';
    return ls__hint(st, "it has: %s; .has_missing is for features that need not be there",
                    used ? keys : "nothing");
}

static ls_status read_example(parse *p, int64_t i)
{
    ls__example e;
    ls__entry entry;
    for (int k = 0; k < p->count; k++)
        p->columns[k].seen = (ls__list){ 0 };
    p->found = 0;
    ls__example_open(&e, p->examples[i].data, p->examples[i].length);
    while (ls__example_next(&e, &entry)) {
        ls__column *c = find(p, &entry);
        if (c)
            c->seen = entry.list; /* the last of a key counts */
    }
    if (e.wire.why)
        return ls__example_damaged(p->examples, i, NULL, &e.wire);
    for (int k = 0; k < p->count; k++) {
        ls_status st = ls__column_take(&p->columns[k], i);
        if (st == LS_NOT_FOUND)
            return name_keys(st, &p->examples[i]);
        if (st)
            return st;
    }
    return LS_OK;
}

/* ---- all of them ------------------------------------------------------------------------------ */

static ls_status check_features(int count, const ls_feature *features)
{
    if (count < 0 || (count > 0 && !features))
        return ls__fail(LS_INVALID, "ls_parse_examples: %d features in %s", count,
                        features ? "a list" : "NULL");
    for (int k = 0; k < count; k++) {
        if (!features[k].key)
            return ls__fail(LS_INVALID, "ls_parse_examples: feature %d has no key", k);
        for (int j = 0; j < k; j++)
            if (strcmp(features[j].key, features[k].key) == 0)
                return ls__fail(LS_INVALID, "ls_parse_examples: feature '%s' twice",
                                features[k].key);
    }
    return LS_OK;
}

static ls_status check_examples(const ls_tensor *t)
{
    ls_status st = ls__check_tensor("ls_parse_examples", "examples", t);
    if (st)
        return st;
    if (t->spec.dtype != LS_BYTES || t->spec.rank > 1)
        return ls__fail(LS_SHAPE, "ls_parse_examples: wants bytes[] or bytes[n], got %s",
                        ls_describe(t));
    if (t->storage->symbol)
        return ls__hint(ls__fail(LS_STATE, "ls_parse_examples: in a traced step"),
                        "parse before the step, in ls_map");
    return LS_OK;
}

static ls_status open_columns(parse *p, const ls_feature *features)
{
    ls_status st = LS_OK;
    size_t count = (size_t)p->count;
    p->columns = calloc(count + 1, sizeof *p->columns + sizeof *p->order);
    if (!p->columns)
        return ls__fail_memory("ls_parse_examples", count * sizeof *p->columns);
    p->order = (int *)(p->columns + count);
    for (int k = 0; k < p->count && !st; k++) {
        p->order[k] = k;
        st = ls__column_open(&p->columns[k], &features[k], p->examples, p->n, p->one);
    }
    return st;
}

static void free_columns(parse *p)
{
    for (int k = 0; p->columns && k < p->count; k++)
        ls__column_free(&p->columns[k]);
    free(p->columns);
}

static ls_value *close_columns(parse *p)
{
    size_t count = (size_t)p->count;
    const char **keys = ls__frame_alloc(count * sizeof *keys);
    ls_value **values = ls__frame_alloc(count * sizeof *values);
    if (!keys || !values)
        return NULL;
    for (int k = 0; k < p->count; k++) {
        keys[k] = p->columns[k].feature->key;
        values[k] = ls__column_close(&p->columns[k], p->n);
        if (!values[k])
            return NULL;
    }
    return ls_dict(p->count, keys, values);
}

ls_value *ls_parse_examples(ls_tensor *examples, int count, const ls_feature *features)
{
    if (check_examples(examples) || check_features(count, features))
        return NULL;
    parse p = { .examples = ls__data(examples),
                .n = ls__spec_count(&examples->spec),
                .one = examples->spec.rank == 0,
                .count = count };
    ls_status st = open_columns(&p, features);
    for (int64_t i = 0; i < p.n && !st; i++)
        st = read_example(&p, i);
    ls_value *result = st ? NULL : close_columns(&p);
    free_columns(&p);
    return result;
}
