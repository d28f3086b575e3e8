/*
 * ls_unbatch: the rows of elements as elements, looked at where they lie. Words: [rows given of the
 * element][those of the input before it]; behind the last row, [0][those after it].
 *
 * Invariant: `chunk` has the elements whose rows are being given, `now` is where the next pull begins.
 */
#include <stdlib.h>
#include <string.h>

#include "data/counted.h"
#include "tensor/tensor.h"

enum { MOST_AT_ONCE = 16 };

typedef struct unbatch_state {
    ls__it *input;
    ls__chunk chunk;
    int element; /* of the chunk, at which we are */
    int64_t *now;
} unbatch_state;

static ls_status open(ls__it *it)
{
    unbatch_state *s = it->state;
    ls_status st = ls__it_open_input(it, 1, &s->input);
    if (st)
        return st;
    s->now = calloc((size_t)it->words, sizeof *s->now);
    if (!s->now)
        return ls__fail_memory("ls_unbatch", (size_t)it->words * sizeof *s->now);
    ls__it_words(s->input, s->now + 1);
    return LS_OK;
}

static void close(ls__it *it)
{
    unbatch_state *s = it->state;
    ls__chunk_free(&s->chunk);
    ls__it_close(s->input);
    free(s->now);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* -1: they have not all the same number. */
static int64_t rows_of(const ls__chunk *c, int i)
{
    int64_t rows = -1;
    for (int k = 0; k < c->leaves; k++) {
        const ls__spec *spec = &ls__chunk_datum(c, i, k)->spec;
        if (spec->rank == 0 || (k > 0 && spec->dims[0] != rows))
            return -1;
        rows = spec->dims[0];
    }
    return rows;
}

/* Why an element has no rows. */
static ls_status complain(const ls__chunk *c, int i)
{
    for (int k = 0; k < c->leaves; k++) {
        const ls__spec *spec = &ls__chunk_datum(c, i, k)->spec;
        const ls__spec *first = &ls__chunk_datum(c, i, 0)->spec;
        if (spec->rank == 0)
            return ls__fail(LS_SHAPE, "ls_unbatch: leaf %d of an element is %s, which has no rows",
                            k, ls__spec_text(spec));
        if (spec->dims[0] != first->dims[0])
            return ls__fail(LS_SHAPE,
                            "ls_unbatch: leaf %d of an element has %lld rows, leaf 0 has %lld", k,
                            (long long)spec->dims[0], (long long)first->dims[0]);
    }
    return c->leaves ? ls__position_corrupt() /* it goes on behind the last row */
                     : ls__fail(LS_SHAPE, "ls_unbatch: an element without leaves has no rows");
}

/* What an element owns, we own: its rows are borrowed, so that nobody holds on to a batch for the sake
 * of one row. */
static ls__datum row_of(const ls__datum *d, int64_t row)
{
    ls__datum r = { .spec = { .dtype = d->spec.dtype, .rank = d->spec.rank - 1 } };
    memcpy(r.spec.dims, d->spec.dims + 1, (size_t)r.spec.rank * sizeof *r.spec.dims);
    r.bytes = ls__spec_bytes(&r.spec);
    r.data = (const char *)d->data + (size_t)row * r.bytes;
    if (r.spec.dtype == LS_BYTES && r.spec.rank == 0) {
        const ls__string *string = r.data;
        r.data = string->data;
        r.bytes = string->length;
    }
    if (d->hold == LS__LASTING) {
        r.hold = LS__LASTING;
        r.owner = d->owner;
    }
    return r;
}

/* ---- the stage ------------------------------------------------------------------------------- */

/* Done with the element: the next begins behind it. */
static void next_element(const ls__it *it)
{
    unbatch_state *s = it->state;
    s->now[0] = 0;
    memcpy(s->now + 1, ls__chunk_after(&s->chunk, s->element),
           (size_t)s->input->words * sizeof *s->now);
    s->element++;
}

/* We may have been put in the middle of an element: it is there again, unless it fails now. */
static ls_status refill(unbatch_state *s)
{
    if (s->element < s->chunk.n)
        return LS_OK;
    ls__chunk_clear(&s->chunk);
    s->element = 0;
    ls_status st = ls__it_pull(s->input, MOST_AT_ONCE, &s->chunk);
    if (st == LS_END && s->now[0] > 0)
        st = ls__position_corrupt();
    if (st && st != LS_END) { /* go on behind it */
        if (!s->input->none_lost)
            s->now[0] = 0;
        ls__it_words(s->input, s->now + 1);
    }
    return st;
}

/* Rows of the element at which we are, up to `most` in all. Behind its last one the position is that
 * behind the element, whatever comes then. */
static void give(const ls__it *it, int64_t rows, int most, ls__chunk *out)
{
    unbatch_state *s = it->state;
    const size_t words = (size_t)it->words * sizeof *s->now;
    while (s->now[0] < rows && out->n < most) {
        for (int k = 0; k < s->chunk.leaves; k++)
            *ls__chunk_datum(out, out->n, k) =
                row_of(ls__chunk_datum(&s->chunk, s->element, k), s->now[0]);
        if (++s->now[0] == rows)
            next_element(it);
        memcpy(ls__chunk_after(out, out->n++), s->now, words);
        if (s->now[0] == 0)
            return;
    }
    if (s->now[0] == rows)
        next_element(it);
}

static ls_status pull(ls__it *it, int most, ls__chunk *out)
{
    unbatch_state *s = it->state;
    ls_status st = LS_OK;
    while (!st && out->n == 0) {
        st = refill(s);
        if (!st)
            st = ls__chunk_room(out, most, s->chunk.leaves, it->words);
        out->structure = s->chunk.structure;
        while (!st && s->element < s->chunk.n && out->n < most) {
            int64_t rows = rows_of(&s->chunk, s->element);
            if (rows >= s->now[0]) {
                give(it, rows, most, out);
            } else if (out->n > 0) {
                break; /* the next pull says it */
            } else {
                st = complain(&s->chunk, s->element);
                next_element(it);
            }
        }
    }
    return st;
}

/* ---- positions -------------------------------------------------------------------------------- */

static void words_now(ls__it *it, int64_t *words)
{
    memcpy(words, ((unbatch_state *)it->state)->now, (size_t)it->words * sizeof *words);
}

/* Nothing is being given any more, and the input stands before element `now`. */
static ls_status begin_at_row(unbatch_state *s, int64_t row)
{
    if (row < 0)
        return ls__position_corrupt();
    ls__chunk_clear(&s->chunk);
    s->element = 0;
    s->now[0] = row;
    ls__it_words(s->input, s->now + 1);
    return LS_OK;
}

static ls_status go(ls__it *it, const int64_t *words)
{
    unbatch_state *s = it->state;
    ls_status st = ls__it_go(s->input, words + 1);
    return st ? st : begin_at_row(s, words[0]);
}

static ls_status load(ls__it *it, ls__bytes_in *from)
{
    unbatch_state *s = it->state;
    int64_t row;
    ls_status st = ls__get_int(from, 0, INT64_MAX, &row);
    if (!st)
        st = ls__it_load(s->input, from);
    return st ? st : begin_at_row(s, row);
}

static const ls__stage unbatch_stage = { .name = "unbatch",
                                         .state_bytes = sizeof(unbatch_state),
                                         .open = open,
                                         .close = close,
                                         .pull = pull,
                                         .words_now = words_now,
                                         .go = go,
                                         .save = ls__counted_save,
                                         .load = load,
                                         .release = ls__counted_release };

/* ---- making --------------------------------------------------------------------------------- */

/* All elements have as many rows as any leaf of the type is known to have; -1: not known. LS_SHAPE: leaves
 * are known to differ. */
static ls_status rows_of_type(const ls__type *t, int64_t *rows)
{
    *rows = -1;
    for (int k = 0; k < ls__type_leaves(t); k++) {
        const ls__leaf_type *leaf = ls__type_leaf(t, k);
        if (!leaf->dtype || leaf->rank < 1 || leaf->dims[0] < 0)
            continue;
        if (*rows >= 0 && leaf->dims[0] != *rows)
            return ls__fail(LS_SHAPE, "ls_unbatch: leaf %d of %s has %lld rows, others have %lld",
                            k, ls__type_text(t), (long long)leaf->dims[0], (long long)*rows);
        *rows = leaf->dims[0];
    }
    return LS_OK;
}

ls_dataset *ls_unbatch(ls_dataset *d)
{
    int64_t rows;
    ls__dataset_draft draft = { .stage = &unbatch_stage, .n_inputs = 1, .inputs = &d };
    if (ls__check_dataset("ls_unbatch", d) || rows_of_type(d->type, &rows) ||
        ls__type_row("ls_unbatch", d->type, &draft.type))
        return NULL;
    draft.cardinality = rows >= 0             ? ls__cardinality_times(d->cardinality, rows)
                        : d->cardinality == 0 ? 0
                                              : LS_UNKNOWN;
    return ls__dataset_new(&draft, "unbatch");
}
