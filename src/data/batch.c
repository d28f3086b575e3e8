/*
 * ls_batch: n elements stacked along a new axis. Elements are copied as they come, straight to where
 * they belong in the batch; strings behind one another, and pointed at when all are there. Words:
 * those of the last element in the batch.
 *
 * A batch that fails half-way (an element of another shape) is gone, and the next pull begins a new
 * one behind the element that failed it, which may be in the middle of a chunk of the input.
 */
#include <stdlib.h>
#include <string.h>

#include "data/iterator.h"
#include "tensor/tensor.h"

enum { MOST_AT_ONCE = 256 };

typedef struct batch_options {
    int64_t n;
    bool full;
} batch_options;

/* A leaf of the batch in the making. */
typedef struct column {
    ls__spec spec; /* of an element */
    ls__storage *storage;
    size_t used;   /* bytes of it. Strings: their text is behind n ls__strings, which hold offsets
                    * until all are there */
    size_t before; /* that the batch before used: what to expect */
} column;

typedef struct batch_state {
    ls__it *input;
    ls__chunk chunk; /* of the input */
    int next;        /* elements of the chunk before it are in the batch, or gone */
    column *columns;
    int leaves;
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
        memcpy((char *)c->storage->data + c->used, d->data, d->bytes);
    c->used += d->bytes;
    return LS_OK;
}

static ls_status put(batch_state *s, int leaf, int64_t row, int64_t n, const ls__datum *d)
{
    column *c = &s->columns[leaf];
    if (row == 0) {
        c->spec = d->spec;
        if (d->spec.rank == LS_MAX_RANK)
            return ls__fail(LS_SHAPE, "ls_batch: leaf %d is %s; a batch would have %d axes", leaf,
                            ls__spec_text(&d->spec), LS_MAX_RANK + 1);
    } else if (!ls__spec_equal(&c->spec, &d->spec)) {
        return ls__hint(ls__fail(LS_SHAPE,
                                 "ls_batch: leaf %d of element %lld of a batch is %s, "
                                 "those before are %s",
                                 leaf, (long long)row, ls__spec_text(&d->spec),
                                 ls__spec_text(&c->spec)),
                        "ls_padded_batch fills them up");
    }
    return d->spec.dtype == LS_BYTES ? put_strings(c, row, n, d) : put_numbers(c, n, d);
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

static ls_status make_columns(batch_state *s, int leaves)
{
    if (s->columns)
        return LS_OK;
    s->columns = calloc((size_t)leaves + 1, sizeof *s->columns);
    if (!s->columns)
        return ls__fail_memory("a batch", (size_t)leaves * sizeof *s->columns);
    s->leaves = leaves;
    return LS_OK;
}

static ls_status add(batch_state *s, int64_t row, int64_t n)
{
    ls_status st = make_columns(s, s->chunk.leaves);
    for (int k = 0; k < s->leaves && !st; k++)
        st = put(s, k, row, n, ls__chunk_datum(&s->chunk, s->next, k));
    s->next++;
    return st;
}

static ls_status refill(batch_state *s, int64_t want)
{
    if (s->next < s->chunk.n)
        return LS_OK;
    ls__chunk_clear(&s->chunk);
    s->next = 0;
    return ls__it_pull(s->input, want < MOST_AT_ONCE ? (int)want : MOST_AT_ONCE, &s->chunk);
}

/* All strings are there: offsets become addresses. */
static void point_at_strings(column *c, int64_t rows)
{
    ls__string *strings = c->storage->data;
    for (int64_t i = 0; i < rows * ls__spec_count(&c->spec); i++)
        strings[i].data = (char *)c->storage->data + (size_t)strings[i].data;
}

static void give(batch_state *s, int64_t rows, ls__chunk *out)
{
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
    out->n = 1;
}

/* ---- the stage --------------------------------------------------------------------------------- */

static ls_status open(ls__it *it)
{
    return ls__it_open_input(it, 0, &((batch_state *)it->state)->input);
}

static void close(ls__it *it)
{
    batch_state *s = it->state;
    drop_batch(s);
    free(s->columns);
    ls__chunk_free(&s->chunk);
    ls__it_close(s->input);
}

/* A batch is large enough for a chunk. */
static ls_status pull(ls__it *it, int most, ls__chunk *out)
{
    batch_state *s = it->state;
    const batch_options *o = it->dataset->options;
    int64_t rows = 0;
    ls_status st = LS_OK;
    (void)most;
    while (rows < o->n && !st) {
        st = refill(s, o->n - rows);
        if (!st && rows == 0)
            st = ls__chunk_room(out, 1, s->chunk.leaves, it->words);
        if (!st)
            out->structure = s->chunk.structure;
        while (!st && s->next < s->chunk.n && rows < o->n) {
            st = add(s, rows, o->n);
            rows += !st;
        }
        if (!st)
            memcpy(ls__chunk_after(out, 0), ls__chunk_after(&s->chunk, s->next - 1),
                   (size_t)it->words * sizeof *out->after);
    }
    if (st == LS_END && rows > 0 && !o->full)
        st = LS_OK;
    if (!st)
        give(s, rows, out);
    drop_batch(s);
    return st;
}

/* Behind an element that failed, others of its chunk may be left. */
static void words_now(ls__it *it, int64_t *words)
{
    batch_state *s = it->state;
    if (s->next > 0 && s->next < s->chunk.n)
        memcpy(words, ls__chunk_after(&s->chunk, s->next - 1), (size_t)it->words * sizeof *words);
    else
        ls__it_words(s->input, words);
}

static void forget(batch_state *s)
{
    ls__chunk_clear(&s->chunk);
    s->next = 0;
}

static ls_status go(ls__it *it, const int64_t *words)
{
    forget(it->state);
    return ls__pass_go(it, words);
}

static ls_status load(ls__it *it, ls__bytes_in *from)
{
    forget(it->state);
    return ls__pass_load(it, from);
}

static int64_t batch_rows(const ls_dataset *d)
{
    return ((const batch_options *)d->options)->n;
}

static const ls__stage batch_stage = { .name = "batch",
                                       .state_bytes = sizeof(batch_state),
                                       .open = open,
                                       .close = close,
                                       .pull = pull,
                                       .words_now = words_now,
                                       .go = go,
                                       .save = ls__pass_save,
                                       .load = load,
                                       .release = ls__pass_release,
                                       .batch = batch_rows };

/* ---- making ------------------------------------------------------------------------------------- */

static ls_dataset *batch(const char *who, ls_dataset *d, int64_t n, bool full)
{
    if (ls__check_dataset(who, d) || ls__check_number(who, "n", n, 1))
        return NULL;
    ls__dataset_draft draft = { .stage = &batch_stage, .n_inputs = 1, .inputs = &d };
    batch_options *o = ls__dataset_options(&draft, sizeof *o, NULL);
    bool whole =
        full || (d->cardinality >= 0 && d->cardinality % n == 0) || d->cardinality == LS_INFINITE;
    if (!o)
        return NULL;
    *o = (batch_options){ n, full };
    if (ls__type_stacked(who, d->type, whole ? n : -1, &draft.type))
        draft.type = NULL;
    draft.cardinality = d->cardinality < 0
                            ? d->cardinality
                            : d->cardinality / n + (!full && d->cardinality % n != 0);
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
