/*
 * ls_padded_batch: elements that differ in shape as one, each filled up. Elements are held until their
 * batch is complete, since only then the largest is known; what is borrowed is copied when another pull
 * must come before. Words: those of the last element in the batch.
 *
 * A batch that fails half-way is gone, as ls_batch's; the elements behind the one that failed it
 * begin the next.
 */
#include <stdlib.h>
#include <string.h>

#include "data/iterator.h"
#include "data/padding.h"
#include "tensor/tensor.h"

enum { MOST_AT_ONCE = 256 };

typedef struct padded_options {
    int64_t n;
    bool full;
    ls__type *shapes; /* NULL: the largest of each batch */
    double value;
} padded_options;

typedef struct padded_state {
    ls__it *input;
    ls__chunk chunk;           /* of the input */
    int next;                  /* elements of the chunk before it are held, or gone */
    ls__datum *held;           /* rows x leaves */
    int64_t rows, room, owned; /* of the rows the first so many last beyond the next pull */
    int leaves;
    const ls_value *structure;
    int64_t *last; /* the words after the last element held */
    bool settled;  /* the structure is that of the shapes given */
} padded_state;

/* ---- holding ---------------------------------------------------------------------------------- */

static void drop_held(padded_state *s)
{
    for (int64_t i = 0; i < s->rows * s->leaves; i++)
        ls__datum_drop(&s->held[i]);
    s->rows = s->owned = 0;
}

static ls_status own_held(padded_state *s)
{
    ls_status st = LS_OK;
    for (int64_t i = s->owned * s->leaves; i < s->rows * s->leaves && !st; i++)
        st = ls__datum_own(&s->held[i]);
    s->owned = st ? s->owned : s->rows;
    return st;
}

static ls_status make_room(padded_state *s)
{
    if (s->rows < s->room)
        return LS_OK;
    int64_t room = 2 * s->room + 16;
    size_t bytes = (size_t)room * (size_t)s->leaves * sizeof *s->held;
    ls__datum *more = realloc(s->held, bytes + 1);
    if (!more)
        return ls__fail_memory("ls_padded_batch", bytes);
    s->held = more;
    s->room = room;
    return LS_OK;
}

/* Whether an element may be one of this batch. */
static ls_status check(const ls__it *it, int i)
{
    const padded_state *s = it->state;
    const padded_options *o = it->dataset->options;
    for (int k = 0; k < s->leaves; k++) {
        const ls__spec *spec = &ls__chunk_datum(&s->chunk, i, k)->spec;
        const ls__spec *first = s->rows ? &s->held[k].spec : spec;
        const ls__leaf_type *shape = o->shapes ? ls__type_leaf(o->shapes, k) : NULL;
        if (spec->dtype != first->dtype || spec->rank != first->rank)
            return ls__fail(LS_SHAPE,
                            "ls_padded_batch: leaf %d of element %lld of a batch is %s, those "
                            "before are %s",
                            k, (long long)s->rows, ls__spec_text(spec), ls__spec_text(first));
        ls_status st = ls__padding_check(k, spec, shape);
        if (st)
            return st;
    }
    return LS_OK;
}

static ls_status hold(const ls__it *it, int i)
{
    padded_state *s = it->state;
    ls_status st = check(it, i);
    if (!st)
        st = make_room(s);
    for (int k = 0; k < s->leaves && !st; k++)
        ls__datum_give(&s->held[s->rows * s->leaves + k], ls__chunk_datum(&s->chunk, i, k));
    if (st)
        return st;
    s->rows++;
    memcpy(s->last, ls__chunk_after(&s->chunk, i), (size_t)it->words * sizeof *s->last);
    return LS_OK;
}

/* ---- a batch --------------------------------------------------------------------------------- */

static ls_status settle(const ls__it *it)
{
    padded_state *s = it->state;
    const padded_options *o = it->dataset->options;
    s->leaves = s->chunk.leaves;
    s->structure = s->chunk.structure;
    if (s->settled || !o->shapes)
        return LS_OK;
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    ls_status st = ls__error_scope_close(
        &scope, ls_same_structure(ls__type_structure(o->shapes), s->chunk.structure),
        "ls_padded_batch: .shapes");
    s->settled = !st;
    return st;
}

/* More elements; what is borrowed goes with the pull. */
static ls_status refill(const ls__it *it)
{
    padded_state *s = it->state;
    const int64_t want = ((const padded_options *)it->dataset->options)->n - s->rows;
    if (s->next < s->chunk.n)
        return LS_OK;
    ls_status st = own_held(s);
    if (st)
        return st;
    ls__chunk_clear(&s->chunk);
    s->next = 0;
    st = ls__it_pull(s->input, want < MOST_AT_ONCE ? (int)want : MOST_AT_ONCE, &s->chunk);
    if (!st && (st = settle(it)))
        s->next = s->chunk.n;
    return st;
}

static ls_status give(const ls__it *it, ls__chunk *out)
{
    padded_state *s = it->state;
    const padded_options *o = it->dataset->options;
    ls_status st = ls__chunk_room(out, 1, s->leaves, it->words);
    int made = 0;
    for (; made < s->leaves && !st; made += !st)
        st = ls__pad(made, s->rows, s->held + made, s->leaves,
                     o->shapes ? ls__type_leaf(o->shapes, made) : NULL, o->value,
                     ls__chunk_datum(out, 0, made));
    if (st) {
        for (int k = 0; k < made; k++)
            ls__datum_drop(ls__chunk_datum(out, 0, k));
        return st;
    }
    memcpy(ls__chunk_after(out, 0), s->last, (size_t)it->words * sizeof *s->last);
    out->structure = s->structure;
    out->n = 1;
    return LS_OK;
}

static ls_status pull(ls__it *it, int most, ls__chunk *out)
{
    padded_state *s = it->state;
    const padded_options *o = it->dataset->options;
    (void)most; /* a batch is large enough for a chunk */
    ls_status st = LS_OK;
    while (s->rows < o->n && !st) {
        st = refill(it);
        for (; !st && s->next < s->chunk.n && s->rows < o->n; s->next++)
            st = hold(it, s->next);
    }
    if (st == LS_END && s->rows > 0 && !o->full)
        st = LS_OK;
    if (!st)
        st = give(it, out);
    drop_held(s);
    return st;
}

/* ---- the stage --------------------------------------------------------------------------------- */

static ls_status open(ls__it *it)
{
    padded_state *s = it->state;
    ls_status st = ls__it_open_input(it, 0, &s->input);
    if (st)
        return st;
    s->last = calloc((size_t)it->words + 1, sizeof *s->last);
    return s->last ? LS_OK
                   : ls__fail_memory("ls_padded_batch", (size_t)it->words * sizeof *s->last);
}

static void close(ls__it *it)
{
    padded_state *s = it->state;
    drop_held(s);
    free(s->held);
    free(s->last);
    ls__chunk_free(&s->chunk);
    ls__it_close(s->input);
}

/* Behind an element that failed, others of its chunk may be left. */
static void words_now(ls__it *it, int64_t *words)
{
    padded_state *s = it->state;
    if (s->next > 0 && s->next < s->chunk.n)
        memcpy(words, ls__chunk_after(&s->chunk, s->next - 1), (size_t)it->words * sizeof *words);
    else
        ls__it_words(s->input, words);
}

static void forget(padded_state *s)
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
    return ((const padded_options *)d->options)->n;
}

static const ls__stage padded_stage = { .name = "padded_batch",
                                        .state_bytes = sizeof(padded_state),
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
    *o = (padded_options){ .n = n, .full = given.full, .value = given.value };
    const int64_t c = d->cardinality;
    const bool whole = o->full || c == LS_INFINITE || (c >= 0 && c % n == 0);
    draft.cardinality = c < 0 ? c : c / n + (!o->full && c % n != 0);
    if ((given.shapes && ls__type_parse("ls_padded_batch", given.shapes, &o->shapes)) ||
        type_of(d->type, o->shapes, whole ? n : -1, &draft.type))
        draft.type = NULL;
    return ls__dataset_new(&draft, "padded_batch %lld%s %s %.17g", (long long)n,
                           o->full ? " full" : "", o->shapes ? ls__type_text(o->shapes) : "-",
                           o->value);
}
