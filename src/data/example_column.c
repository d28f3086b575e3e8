/*
 * From lists on the wire to tensors. Invariant: values are never written past the room that was
 * made for them, whatever a walk finds; and room is made for what was asked, or for what a walk
 * counted in memory that is there, never for what a length claims.
 */
#include "data/example_column.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/convert.h"

ls_status ls__example_damaged(const ls__string *examples, int64_t example, const char *key,
                              const ls__wire *w)
{
    const ls__string *e = &examples[example];
    char place[160] = "";
    if (key)
        snprintf(place, sizeof place, ", feature '%s',", key);
    return ls__hint(ls__fail(LS_CORRUPT,
                             "ls_parse_examples: example %lld%s is damaged at byte %zu of %zu: %s",
                             (long long)example, place, (size_t)(w->at - (const uint8_t *)e->data),
                             e->length, w->why),
                    "is it a serialised tf.train.Example?");
}

/* ---- lists ------------------------------------------------------------------------------------- */

static ls__list_kind kind_of(ls_dtype dtype)
{
    return dtype == LS_F32 ? LS__FLOAT_LIST : dtype == LS_I64 ? LS__INT64_LIST : LS__BYTES_LIST;
}

static const char *kind_name(ls__list_kind kind)
{
    static const char *const names[] = { "nothing", "a list of bytes", "a list of floats",
                                         "a list of int64" };
    return names[kind];
}

static int64_t count_varints(const uint8_t *at, const uint8_t *end)
{
    int64_t count = 0;
    for (; at < end; at++)
        count += *at < 0x80;
    return count;
}

static bool count_list(ls__runs *r, int64_t *count)
{
    const uint8_t *at, *end;
    *count = 0;
    while (ls__runs_next(r, &at, &end))
        *count += r->kind == LS__INT64_LIST   ? count_varints(at, end)
                  : r->kind == LS__FLOAT_LIST ? (end - at) / 4
                                              : 1;
    return !r->wire.why;
}

/* These write at most `room` values and count all. */
static bool read_ints(ls__runs *r, int64_t *to, int64_t room, int64_t *count)
{
    const uint8_t *at, *end;
    int64_t n = 0;
    while (ls__runs_next(r, &at, &end)) {
        ls__wire run = { .at = at };
        for (uint64_t number; run.at < end; n++) {
            if (!ls__wire_varint(&run, end, &number)) {
                r->wire = run;
                return false;
            }
            if (n < room)
                to[n] = (int64_t)number;
        }
    }
    *count = n;
    return !r->wire.why;
}

static bool read_floats(ls__runs *r, float *to, int64_t room, int64_t *count)
{
    const uint8_t *at, *end;
    int64_t n = 0;
    while (ls__runs_next(r, &at, &end)) {
        int64_t more = (end - at) / 4, fit = room - n < more ? room - n : more;
        if (fit > 0)
            memcpy(to + n, at, (size_t)fit * sizeof *to);
        n += more;
    }
    *count = n;
    return !r->wire.why;
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "floats are copied from the wire");

static bool read_strings(ls__runs *r, ls__string *to, int64_t room, int64_t *count)
{
    const uint8_t *at, *end;
    int64_t n = 0;
    for (; ls__runs_next(r, &at, &end); n++)
        if (n < room)
            to[n] = (ls__string){ at, (size_t)(end - at) };
    *count = n;
    return !r->wire.why;
}

static bool read_list(ls__runs *r, void *to, int64_t room, int64_t *count)
{
    if (r->kind == LS__BYTES_LIST)
        return read_strings(r, to, room, count);
    return r->kind == LS__INT64_LIST ? read_ints(r, to, room, count)
                                     : read_floats(r, to, room, count);
}

/* ---- opening ------------------------------------------------------------------------------------ */

static ls_status check_feature(const char *who, const ls_feature *f)
{
    if (f->dtype != LS_F32 && f->dtype != LS_I64 && f->dtype != LS_BYTES)
        return ls__hint(ls__fail(LS_INVALID, "%s: dtype %s", who, ls_dtype_name(f->dtype)),
                        "examples hold f32, i64 and bytes; ls_cast and ls_decode_raw make others");
    if (f->rank < 0 || f->rank > LS_MAX_RANK)
        return ls__fail(LS_INVALID, "%s: rank %d", who, f->rank);
    if (f->variable && f->rank != 0)
        return ls__hint(ls__fail(LS_INVALID, "%s: variable, and of rank %d", who, f->rank),
                        "a variable feature has any number of values and no shape");
    return LS_OK;
}

static void *notes_new(int64_t count, size_t size)
{
    size_t bytes = (size_t)count * size; /* a spec of as much was made, or it lies in memory */
    void *notes = malloc(bytes ? bytes : 1);
    if (!notes)
        ls__fail_memory("ls_parse_examples", bytes);
    return notes;
}

ls_status ls__column_open(ls__column *c, const ls_feature *f, const ls__string *examples, int64_t n,
                          bool one)
{
    char who[160];
    int front = one ? 0 : 1;
    int64_t dims[LS_MAX_RANK + 1] = { n };
    *c = (ls__column){
        .feature = f, .key_length = strlen(f->key), .each = -1, .examples = examples
    };
    snprintf(who, sizeof who, "ls_parse_examples: feature '%s'", f->key);
    ls_status st = check_feature(who, f);
    if (st)
        return st;
    memcpy(dims + front, f->dims, (size_t)f->rank * sizeof *dims);
    st = ls__spec_make(&c->spec, who, f->variable ? LS_I64 : f->dtype, f->rank + front, dims);
    if (st)
        return st;
    if (f->variable) {
        c->lists = notes_new(n, sizeof *c->lists);
        c->counts = c->lists ? ls__tensor_new("ls_parse_examples", &c->spec) : NULL;
        return c->counts ? LS_OK : LS_NO_MEMORY;
    }
    c->each = 1;
    for (int i = 0; i < f->rank; i++)
        c->each *= f->dims[i];
    c->total = n * c->each;
    if (f->dtype == LS_BYTES) {
        c->strings = notes_new(c->total, sizeof *c->strings);
        return c->strings ? LS_OK : LS_NO_MEMORY;
    }
    c->data = ls__tensor_new("ls_parse_examples", &c->spec);
    return c->data ? LS_OK : LS_NO_MEMORY;
}

void ls__column_free(ls__column *c)
{
    free(c->lists);
    free(c->strings);
}

/* ---- taking --------------------------------------------------------------------------------------- */

/* Where the values of an example go, of a fixed shape. */
static void *row(const ls__column *c, int64_t example)
{
    if (c->strings)
        return c->strings + example * c->each;
    return (char *)ls__data(c->data) +
           (size_t)(example * c->each) * ls_dtype_size(c->feature->dtype);
}

static ls_status take_missing(ls__column *c, int64_t example)
{
    const ls_feature *f = c->feature;
    if (f->variable) {
        ((int64_t *)ls__data(c->counts))[example] = 0;
    } else if (!f->has_missing) {
        return ls__fail(LS_NOT_FOUND, "ls_parse_examples: example %lld has no feature '%s'",
                        (long long)example, f->key);
    } else if (c->strings) {
        memset(row(c, example), 0, (size_t)c->each * sizeof(ls__string));
    } else if (c->each > 0) {
        ls__store_double(f->dtype, row(c, example), 0, f->missing);
        ls__fill(row(c, example), ls_dtype_size(f->dtype), c->each);
    }
    return LS_OK;
}

static ls_status wrong_kind(const ls__column *c, int64_t example)
{
    const ls_feature *f = c->feature;
    return ls__fail(LS_SHAPE, "ls_parse_examples: example %lld: feature '%s' is %s; %s takes %s",
                    (long long)example, f->key, kind_name(c->seen.kind), ls_dtype_name(f->dtype),
                    kind_name(kind_of(f->dtype)));
}

static ls_status wrong_count(const ls__column *c, int64_t example, int64_t count)
{
    const ls_feature *f = c->feature;
    ls__spec shape = { .dtype = f->dtype, .rank = f->rank };
    memcpy(shape.dims, f->dims, sizeof shape.dims);
    return ls__hint(ls__fail(LS_SHAPE,
                             "ls_parse_examples: example %lld: feature '%s' has %lld value%s; %s "
                             "takes %lld",
                             (long long)example, f->key, (long long)count, count == 1 ? "" : "s",
                             ls__spec_text(&shape), (long long)c->each),
                    ".variable takes any number of values");
}

ls_status ls__column_take(ls__column *c, int64_t example)
{
    int64_t count;
    ls__runs runs;
    if (c->lists)
        c->lists[example] = c->seen;
    if (c->seen.kind == LS__NO_LIST)
        return take_missing(c, example);
    if (c->seen.kind != kind_of(c->feature->dtype))
        return wrong_kind(c, example);
    ls__runs_open(&runs, &c->seen);
    bool whole =
        c->lists ? count_list(&runs, &count) : read_list(&runs, row(c, example), c->each, &count);
    if (!whole)
        return ls__example_damaged(c->examples, example, c->feature->key, &runs.wire);
    if (!c->lists)
        return count == c->each ? LS_OK : wrong_count(c, example, count);
    ((int64_t *)ls__data(c->counts))[example] = count;
    c->total += count;
    return LS_OK;
}

/* ---- closing --------------------------------------------------------------------------------------- */

/* Variable: all lists behind one another. */
static ls_status read_lists(ls__column *c, char *to, size_t size, int64_t n)
{
    const int64_t *counts = ls__data(c->counts);
    for (int64_t i = 0, count; i < n; to += size * (size_t)counts[i++]) {
        ls__runs runs;
        ls__runs_open(&runs, &c->lists[i]);
        if (!read_list(&runs, to, counts[i], &count))
            return ls__example_damaged(c->examples, i, c->feature->key, &runs.wire);
    }
    return LS_OK;
}

static ls_status close_lists(ls__column *c, int64_t n)
{
    ls_dtype dtype = c->feature->dtype;
    c->spec = (ls__spec){ .dtype = dtype, .rank = 1, .dims = { c->total } };
    if (dtype == LS_BYTES) {
        c->strings = notes_new(c->total, sizeof *c->strings);
        return c->strings ? read_lists(c, (char *)c->strings, sizeof *c->strings, n) : LS_NO_MEMORY;
    }
    c->data = ls__tensor_new("ls_parse_examples", &c->spec);
    return c->data ? read_lists(c, ls__data(c->data), ls_dtype_size(dtype), n) : LS_NO_MEMORY;
}

/* Copies what was noted: pointers first, then the text, each string with a NUL behind it. */
static ls_status close_strings(ls__column *c)
{
    size_t bytes = ls__spec_bytes(&c->spec) + (size_t)c->total;
    for (int64_t i = 0; i < c->total; i++)
        if (__builtin_add_overflow(bytes, c->strings[i].length, &bytes))
            return ls__fail_memory("ls_parse_examples", SIZE_MAX);
    ls__storage *storage = ls__storage_new("ls_parse_examples", bytes);
    if (!storage)
        return LS_NO_MEMORY;
    ls__string *to = storage->data;
    char *text = (char *)(to + c->total);
    for (int64_t i = 0; i < c->total; i++) {
        size_t length = c->strings[i].length;
        if (length > 0)
            memcpy(text, c->strings[i].data, length);
        text[length] = '\0';
        to[i] = (ls__string){ text, length };
        text += length + 1;
    }
    c->data = ls__handle(&c->spec, storage, ls__new_id(), ls__device_current());
    return c->data ? LS_OK : LS_NO_MEMORY;
}

ls_value *ls__column_close(ls__column *c, int64_t n)
{
    if ((c->lists && close_lists(c, n)) || (c->strings && close_strings(c)))
        return NULL;
    if (!c->counts)
        return ls_leaf(c->data);
    ls_value *parts[] = { ls_leaf(c->data), ls_leaf(c->counts) };
    return ls_dict(2, (const char *const[]){ "values", "counts" }, parts);
}
