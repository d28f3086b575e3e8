/*
 * ls_batch: n elements stacked along a new axis. Elements are copied as they come, straight to where
 * they belong in the batch; strings behind one another, and pointed at when all are there. What fails on
 * the way, and positions: rows.h.
 */
#include <stdlib.h>
#include <string.h>

#include "data/gathered.h"
#include "data/rows.h"
#include "tensor/tensor.h"

/* A leaf of the batch in the making. */
typedef struct column {
    ls__spec spec; /* of an element */
    ls__storage *storage;
    size_t used;   /* bytes of it. Strings: their text is behind n ls__strings, which hold offsets
                    * until all are there */
    size_t before; /* that the batch before used: what to expect */
} column;

typedef struct batch_state {
    ls__rows rows;
    column *columns; /* of all leaves; NULL before the first element */
    int leaves;
    bool later; /* rows may be copied by who looks at them (gathered.h) */
} batch_state;

/* ---- columns ------------------------------------------------------------------------------- */

static ls_status more_text(column *c, int64_t n, size_t bytes)
{
    if ((size_t)n > SIZE_MAX / 8 / sizeof(ls__string)) /* what follows would wrap around */
        return ls__fail_memory("a batch", SIZE_MAX);
    size_t pointers = (size_t)n * sizeof(ls__string), used = c->storage ? c->used : pointers;
    if (c->storage && ls__storage_capacity(c->storage) - used >= bytes)
        return LS_OK;
    size_t room = used + bytes > c->before ? 2 * (used + bytes) : c->before;
    ls__storage *more = ls__storage_new("a batch", room);
    if (!more)
        return LS_NO_MEMORY;
    if (c->storage) {
        memcpy(more->data, c->storage->data, used);
        ls__storage_unref(c->storage);
    }
    c->storage = more;
    c->used = used;
    return LS_OK;
}

/* The strings of a datum: one, or an array of them. */
static const ls__string *strings_of(const ls__datum *d, ls__string *one)
{
    *one = (ls__string){ (void *)(uintptr_t)d->data, d->bytes };
    return d->spec.rank > 0 ? d->data : one;
}

/* What they take, with a NUL each. */
static size_t text_bytes(const ls__datum *d)
{
    ls__string one;
    const ls__string *strings = strings_of(d, &one);
    size_t bytes = 0;
    for (int64_t i = 0; i < ls__spec_count(&d->spec); i++)
        bytes += strings[i].length + 1;
    return bytes;
}

static ls_status put_strings(column *c, int64_t row, int64_t n, const ls__datum *d)
{
    ls__string one;
    const ls__string *strings = strings_of(d, &one);
    const int64_t each = ls__spec_count(&d->spec);
    int64_t all;
    ls_status st = __builtin_mul_overflow(n, each, &all) ? ls__fail_memory("a batch", SIZE_MAX)
                                                         : more_text(c, all, text_bytes(d));
    if (st)
        return st;
    for (int64_t i = 0; i < each; i++) {
        char *at = (char *)c->storage->data + c->used;
        const size_t length = strings[i].length;
        if (length)
            memcpy(at, strings[i].data, length);
        at[length] = '\0';
        ((ls__string *)c->storage->data)[row * each + i] = (ls__string){ (void *)c->used, length };
        c->used += length + 1;
    }
    return LS_OK;
}

/* Bytes. Of smaller rows there is more to be noted than to be copied. */
enum { LARGE_ROW = 128 };

/* Whether the row, which lasts, is left where it is. */
static bool leaves_row(column *c, const ls__datum *d)
{
    if (d->hold != LS__LASTING || !d->owner || d->bytes < LARGE_ROW)
        return false;
    return !c->storage || ls__gathered_takes(c->storage, d->owner);
}

static ls_status put_later(column *c, int64_t row, int64_t n, const ls__datum *d)
{
    if (!c->storage)
        c->storage = ls__gathered_new(n, d->bytes, d->owner);
    if (!c->storage)
        return LS_NO_MEMORY;
    ls__gathered_put(c->storage, row, d->data);
    c->used += d->bytes;
    return LS_OK;
}

static ls_status put_numbers(column *c, int64_t n, const ls__datum *d)
{
    if (!c->storage) {
        size_t bytes;
        if (__builtin_mul_overflow(d->bytes, (size_t)n, &bytes))
            return ls__fail_memory("a batch", SIZE_MAX);
        c->storage = ls__storage_new("a batch", bytes);
        if (!c->storage)
            return LS_NO_MEMORY;
    }
    if (d->bytes)
        memcpy((char *)ls__storage_look(c->storage) + c->used, d->data, d->bytes);
    c->used += d->bytes;
    return LS_OK;
}

/* The first element of a batch says what the others are like. */
static ls_status check_first(column *c, int leaf, const ls__spec *spec)
{
    if (spec->rank == LS_MAX_RANK)
        return ls__fail(LS_SHAPE, "ls_batch: leaf %d is %s; a batch would have %d axes", leaf,
                        ls__spec_text(spec), LS_MAX_RANK + 1);
    c->spec = *spec;
    return LS_OK;
}

static ls_status differs(const column *c, int leaf, int64_t row, const ls__spec *spec)
{
    return ls__hint(ls__fail(LS_SHAPE,
                             "ls_batch: leaf %d of element %lld of a batch is %s, "
                             "those before are %s",
                             leaf, (long long)row, ls__spec_text(spec), ls__spec_text(&c->spec)),
                    "ls_padded_batch fills them up");
}

static ls_status put(column *c, int leaf, int64_t row, int64_t n, const ls__datum *d, bool later)
{
    ls_status st = LS_OK;
    if (row == 0)
        st = check_first(c, leaf, &d->spec);
    else if (!ls__spec_equal(&c->spec, &d->spec))
        st = differs(c, leaf, row, &d->spec);
    if (st)
        return st;
    if (d->spec.dtype == LS_BYTES)
        return put_strings(c, row, n, d);
    return later && leaves_row(c, d) ? put_later(c, row, n, d) : put_numbers(c, n, d);
}

/* ---- a batch --------------------------------------------------------------------------------- */

static void drop_batch(batch_state *s)
{
    for (int k = 0; k < s->leaves; k++) {
        column *c = &s->columns[k];
        if (c->storage)
            ls__storage_unref(c->storage);
        c->before = c->before > c->used ? c->before : c->used;
        c->storage = NULL;
        c->used = 0;
    }
}

static ls_status make_columns(batch_state *s)
{
    if (s->columns)
        return LS_OK;
    s->columns = calloc((size_t)s->rows.leaves + 1, sizeof *s->columns);
    if (!s->columns)
        return ls__fail_memory("a batch", (size_t)s->rows.leaves * sizeof *s->columns);
    s->leaves = s->rows.leaves;
    return LS_OK;
}

/* Leaf `end` of the next element failed: those before it are no row, either. */
static ls_status take_back(batch_state *s, int end, ls_status st)
{
    if (s->rows.n == 0)
        drop_batch(s);
    for (int k = 0; k < end && s->rows.n > 0; k++) {
        const ls__datum *d = ls__chunk_datum(&s->rows.chunk, s->rows.next, k);
        s->columns[k].used -= d->spec.dtype == LS_BYTES ? text_bytes(d) : d->bytes;
    }
    return st;
}

/* The next element of the chunk: all of it, or nothing. */
static ls_status add(batch_state *s, int64_t n)
{
    const ls__rows *r = &s->rows;
    ls_status st = make_columns(s);
    if (st)
        return st;
    for (int k = 0; k < s->leaves; k++) {
        st = put(&s->columns[k], k, r->n, n, ls__chunk_datum(&r->chunk, r->next, k), s->later);
        if (st)
            return take_back(s, k, st);
    }
    return LS_OK;
}

/* Small rows, labels say, are all over the memory: those to come are on their way while we go on. (Inlined: see fetch in
 * shuffle.c.) */
static inline __attribute__((always_inline)) void fetch(const ls__rows *r, int end)
{
    enum { SOON = 16 };
    const int coming = r->next + SOON;
    for (int k = 0; coming < end && k < r->leaves; k++) {
        const ls__datum *d = ls__chunk_datum(&r->chunk, coming, k);
        if (d->bytes < LARGE_ROW)
            __builtin_prefetch(d->data);
    }
}

static ls_status gather(ls__it *it)
{
    batch_state *s = it->state;
    const int64_t n = ls__rows_whole(it->dataset);
    ls_status st = LS_OK;
    while (s->rows.n < n && !st) {
        int end;
        st = ls__rows_more(it, &end);
        while (!st && s->rows.next < end) {
            fetch(&s->rows, end);
            st = ls__rows_took(&s->rows, add(s, n));
        }
    }
    return st;
}

/* All strings are there: offsets become addresses. */
static void point_at_strings(column *c, int64_t rows)
{
    ls__string *strings = c->storage->data;
    for (int64_t i = 0; i < rows * ls__spec_count(&c->spec); i++)
        strings[i].data = (char *)c->storage->data + (size_t)strings[i].data;
}

static void give(ls__it *it, ls__chunk *out)
{
    batch_state *s = it->state;
    const int64_t rows = s->rows.n;
    for (int k = 0; k < s->leaves; k++) {
        column *c = &s->columns[k];
        ls__spec spec = { .dtype = c->spec.dtype, .rank = c->spec.rank + 1, .dims = { rows } };
        memcpy(spec.dims + 1, c->spec.dims, (size_t)c->spec.rank * sizeof *spec.dims);
        if (spec.dtype == LS_BYTES)
            point_at_strings(c, rows);
        *ls__chunk_datum(out, 0, k) = (ls__datum){ .spec = spec,
                                                   .data = c->storage->data,
                                                   .bytes = ls__spec_bytes(&spec),
                                                   .owner = c->storage,
                                                   .hold = LS__OWNED };
        c->storage = NULL;
    }
    ls__rows_given(it, out);
    drop_batch(s);
}

/* ---- the stage --------------------------------------------------------------------------------- */

static void close(ls__it *it)
{
    batch_state *s = it->state;
    drop_batch(s);
    free(s->columns);
    ls__rows_close(it);
}

/* A batch is large enough for a chunk. */
static ls_status pull(ls__it *it, int most, ls__chunk *out)
{
    batch_state *s = it->state;
    (void)most;
    s->later = it->later;
    ls_status st = ls__rows_collect(it, gather);
    if (!st)
        st = ls__chunk_room(out, 1, s->leaves, it->words);
    if (!st)
        give(it, out);
    return st;
}

static ls_status go(ls__it *it, const int64_t *words)
{
    drop_batch(it->state);
    return ls__rows_go(it, words);
}

static ls_status load(ls__it *it, ls__bytes_in *from)
{
    drop_batch(it->state);
    return ls__rows_load(it, from);
}

static const ls__stage batch_stage = { .name = "batch",
                                       .state_bytes = sizeof(batch_state),
                                       .open = ls__rows_open,
                                       .close = close,
                                       .pull = pull,
                                       .words_now = ls__rows_words_now,
                                       .go = go,
                                       .save = ls__rows_save,
                                       .load = load,
                                       .release = ls__rows_release,
                                       .batch = ls__rows_whole };

/* ---- making ------------------------------------------------------------------------------------- */

static ls_dataset *batch(const char *who, ls_dataset *d, int64_t n, bool full)
{
    if (ls__check_dataset(who, d) || ls__check_number(who, "n", n, 1))
        return NULL;
    ls__dataset_draft draft = { .stage = &batch_stage, .n_inputs = 1, .inputs = &d };
    ls__rows_options *o = ls__dataset_options(&draft, sizeof *o, NULL);
    int64_t rows;
    if (!o)
        return NULL;
    *o = (ls__rows_options){ n, full };
    draft.cardinality = ls__rows_batches(d, o, &rows);
    if (ls__type_stacked(who, d->type, rows, &draft.type))
        draft.type = NULL;
    return ls__dataset_new(&draft, "batch %lld%s", (long long)n, full ? " full" : "");
}

ls_dataset *ls_batch(ls_dataset *d, int64_t n)
{
    return batch("ls_batch", d, n, false);
}

ls_dataset *ls_batch_full(ls_dataset *d, int64_t n)
{
    return batch("ls_batch_full", d, n, true);
}
