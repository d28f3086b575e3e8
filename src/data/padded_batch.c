/*
 * ls_padded_batch: elements that differ in shape as one, each filled up. Elements are held until their
 * batch is complete, since only then the largest is known; what is borrowed is copied when another pull
 * must come before. What fails on the way, and positions: rows.h. A batch that there is no memory
 * for is lost.
 */
#include <stdlib.h>
#include <string.h>

#include "data/padding.h"
#include "data/rows.h"
#include "tensor/tensor.h"

typedef struct padded_options {
    ls__rows_options rows;
    ls__type *shapes; /* NULL: the largest of each batch */
    double value;
} padded_options;

typedef struct padded_state {
    ls__rows rows;
    ls__datum *held;     /* rows x leaves */
    int64_t room, owned; /* of the rows the first so many last beyond the next pull */
    bool settled;        /* the structure is that of the shapes given */
} padded_state;

/* ---- holding ---------------------------------------------------------------------------------- */

static void drop_held(padded_state *s)
{
    for (int64_t i = 0; i < s->rows.n * s->rows.leaves; i++)
        ls__datum_drop(&s->held[i]);
    s->owned = 0;
}

static ls_status own_held(padded_state *s)
{
    const ls__rows *r = &s->rows;
    ls_status st = LS_OK;
    for (int64_t i = s->owned * r->leaves; i < r->n * r->leaves && !st; i++)
        st = ls__datum_own(&s->held[i]);
    s->owned = st ? s->owned : r->n;
    return st;
}

static ls_status make_room(padded_state *s)
{
    if (s->rows.n < s->room)
        return LS_OK;
    int64_t room = 2 * s->room + 16;
    size_t bytes = (size_t)room * (size_t)s->rows.leaves * sizeof *s->held;
    ls__datum *more = realloc(s->held, bytes + 1);
    if (!more)
        return ls__fail_memory("ls_padded_batch", bytes);
    s->held = more;
    s->room = room;
    return LS_OK;
}

static ls_status settle(const ls__it *it)
{
    padded_state *s = it->state;
    const padded_options *o = it->dataset->options;
    if (s->settled || !o->shapes)
        return LS_OK;
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    ls_status st = ls__error_scope_close(
        &scope, ls_same_structure(ls__type_structure(o->shapes), s->rows.structure),
        "ls_padded_batch: .shapes");
    s->settled = !st;
    return st;
}

/* Whether the next element of the chunk may be one of this batch. */
static ls_status check(const ls__it *it)
{
    const padded_state *s = it->state;
    const ls__rows *r = &s->rows;
    const padded_options *o = it->dataset->options;
    ls_status st = settle(it);
    for (int k = 0; k < r->leaves && !st; k++) {
        const ls__spec *spec = &ls__chunk_datum(&r->chunk, r->next, k)->spec;
        const ls__spec *first = r->n ? &s->held[k].spec : spec;
        const ls__leaf_type *shape = o->shapes ? ls__type_leaf(o->shapes, k) : NULL;
        if (spec->dtype != first->dtype || spec->rank != first->rank)
            return ls__fail(LS_SHAPE,
                            "ls_padded_batch: leaf %d of element %lld of a batch is %s, those "
                            "before are %s",
                            k, (long long)r->n, ls__spec_text(spec), ls__spec_text(first));
        st = ls__padding_check(k, spec, shape);
    }
    return st;
}

static ls_status hold(const ls__it *it)
{
    padded_state *s = it->state;
    const ls__rows *r = &s->rows;
    ls_status st = check(it);
    if (!st)
        st = make_room(s);
    for (int k = 0; k < r->leaves && !st; k++)
        ls__datum_give(&s->held[r->n * r->leaves + k], ls__chunk_datum(&r->chunk, r->next, k));
    return st;
}

/* ---- a batch --------------------------------------------------------------------------------- */

/* What is borrowed goes with the pull. */
static ls_status gather(ls__it *it)
{
    padded_state *s = it->state;
    ls_status st = LS_OK;
    while (s->rows.n < ls__rows_whole(it->dataset) && !st) {
        int end = 0;
        if (s->rows.next == s->rows.chunk.n)
            st = own_held(s);
        if (!st)
            st = ls__rows_more(it, &end);
        while (!st && s->rows.next < end)
            st = ls__rows_took(&s->rows, hold(it));
    }
    return st;
}

static ls_status give(ls__it *it, ls__chunk *out)
{
    padded_state *s = it->state;
    const ls__rows *r = &s->rows;
    const padded_options *o = it->dataset->options;
    ls_status st = ls__chunk_room(out, 1, r->leaves, it->words);
    int made = 0;
    for (; made < r->leaves && !st; made += !st)
        st = ls__pad(made, r->n, s->held + made, r->leaves,
                     o->shapes ? ls__type_leaf(o->shapes, made) : NULL, o->value,
                     ls__chunk_datum(out, 0, made));
    drop_held(s);
    if (!st) {
        ls__rows_given(it, out);
        return LS_OK;
    }
    for (int k = 0; k < made; k++)
        ls__datum_drop(ls__chunk_datum(out, 0, k));
    ls__rows_lost(it);
    return st;
}

/* ---- the stage --------------------------------------------------------------------------------- */

static void close(ls__it *it)
{
    padded_state *s = it->state;
    drop_held(s);
    free(s->held);
    ls__rows_close(it);
}

static ls_status pull(ls__it *it, int most, ls__chunk *out)
{
    (void)most; /* a batch is large enough for a chunk */
    ls_status st = ls__rows_collect(it, gather);
    return st ? st : give(it, out);
}

static ls_status go(ls__it *it, const int64_t *words)
{
    drop_held(it->state);
    return ls__rows_go(it, words);
}

static ls_status load(ls__it *it, ls__bytes_in *from)
{
    drop_held(it->state);
    return ls__rows_load(it, from);
}

static const ls__stage padded_stage = { .name = "padded_batch",
                                        .state_bytes = sizeof(padded_state),
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

void ls_padded_init(ls_padded_options *options)
{
    if (options)
        *options = (ls_padded_options){ .size = sizeof *options };
}

/* What is known of a leaf of a batch: sizes given, and where none is, that of all elements. */
static ls_status filled_up(int k, const ls__leaf_type *element, const ls__leaf_type *shape,
                           ls__leaf_type *out)
{
    *out = *element;
    if (!shape->dtype)
        return LS_OK;
    if (!element->dtype || element->rank < 0) {
        bool same = !element->dtype || element->dtype == shape->dtype;
        *out = *shape;
        return same ? LS_OK
                    : ls__fail(LS_SHAPE, "ls_padded_batch: leaf %d is %s, .shapes has %s", k,
                               ls_dtype_name(element->dtype), ls_dtype_name(shape->dtype));
    }
    ls__spec least = { .dtype = element->dtype, .rank = element->rank };
    for (int i = 0; i < element->rank; i++) {
        least.dims[i] = element->dims[i] < 0 ? 0 : element->dims[i];
        if (shape->rank == element->rank && shape->dims[i] >= 0)
            out->dims[i] = shape->dims[i];
    }
    return ls__padding_check(k, &least, shape);
}

static ls_status type_of(const ls__type *elements, const ls__type *shapes, int64_t rows,
                         ls__type **out)
{
    const char *who = "ls_padded_batch";
    if (!shapes || !ls__type_structure(elements))
        return ls__type_stacked(who, shapes ? shapes : elements, rows, out);
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    ls_status st = ls__error_scope_close(
        &scope, ls_same_structure(ls__type_structure(elements), ls__type_structure(shapes)),
        "%s: .shapes", who);
    ls__leaf_type leaves[256]; /* a spec has no more */
    for (int k = 0; k < ls__type_leaves(shapes) && !st; k++)
        st = filled_up(k, ls__type_leaf(elements, k), ls__type_leaf(shapes, k), &leaves[k]);
    if (st)
        return st;
    ls__type *filled = ls__type_with(elements, leaves);
    st = filled ? ls__type_stacked(who, filled, rows, out) : LS_NO_MEMORY;
    ls__type_unref(filled);
    return st;
}

static ls_status check_options(const ls_padded_options *o)
{
    if (o->size == sizeof *o)
        return LS_OK;
    return ls__hint(ls__fail(LS_INVALID, "ls_padded_batch: options of %zu bytes, wants %zu",
                             o->size, sizeof *o),
                    "fill options with LS_PADDED(...), or with ls_padded_init first");
}

static void release(void *options)
{
    ls__type_unref(((padded_options *)options)->shapes);
}

ls_dataset *ls_padded_batch(ls_dataset *d, int64_t n, const ls_padded_options *options)
{
    ls_padded_options given = { .size = sizeof given };
    if (options)
        given = *options;
    if (ls__check_dataset("ls_padded_batch", d) || ls__check_number("ls_padded_batch", "n", n, 1) ||
        check_options(&given))
        return NULL;
    ls__dataset_draft draft = { .stage = &padded_stage, .n_inputs = 1, .inputs = &d };
    padded_options *o = ls__dataset_options(&draft, sizeof *o, release);
    if (!o)
        return NULL;
    *o = (padded_options){ .rows = { n, given.full }, .value = given.value };
    int64_t rows;
    draft.cardinality = ls__rows_batches(d, &o->rows, &rows);
    if ((given.shapes && ls__type_parse("ls_padded_batch", given.shapes, &o->shapes)) ||
        type_of(d->type, o->shapes, rows, &draft.type))
        draft.type = NULL;
    return ls__dataset_new(&draft, "padded_batch %lld%s %s %.17g", (long long)n,
                           o->rows.full ? " full" : "", o->shapes ? ls__type_text(o->shapes) : "-",
                           o->value);
}
