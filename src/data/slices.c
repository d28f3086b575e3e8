/*
 * ls_slices: the rows of arrays in memory, which are not copied; ls_once: one element. Words: [how many
 * were given].
 */
#include <stdlib.h>

#include "data/indexed.h"
#include "tensor/tensor.h"
#include "tensor/value.h"

typedef struct slices_options {
    int leaves;
    ls_value *value;     /* kept */
    ls_tensor **tensors; /* of it */
    int64_t rows;
    bool whole; /* ls_once: the value itself is the only row */
} slices_options;

static void close(ls__it *it)
{
    (void)it;
}

/* Row `row`: numbers and arrays of strings lie there; one string is the bytes themselves. */
static ls__datum row_of(const ls_tensor *t, bool whole, int64_t row)
{
    ls__datum d = { .spec = t->spec, .owner = t->storage, .hold = LS__LASTING };
    if (!whole) {
        d.spec.rank--;
        for (int i = 0; i < d.spec.rank; i++)
            d.spec.dims[i] = t->spec.dims[i + 1];
    }
    size_t bytes = ls__spec_bytes(&d.spec);
    d.data = (const char *)ls__data(t) + (size_t)row * bytes;
    d.bytes = bytes;
    if (d.spec.dtype == LS_BYTES && d.spec.rank == 0) {
        const ls__string *string = d.data;
        d.data = string->data;
        d.bytes = string->length;
    }
    return d;
}

static ls_status pull(ls__it *it, int most, ls__chunk *out)
{
    ls__indexed *s = it->state;
    const slices_options *o = it->dataset->options;
    const int n = ls__indexed_left(it, most);
    if (n == 0)
        return LS_END;
    ls_status st = ls__chunk_room(out, n, o->leaves, 1);
    if (st)
        return st;
    out->structure = ls__type_structure(it->dataset->type);
    for (out->n = 0; out->n < n; out->n++) {
        for (int k = 0; k < o->leaves; k++)
            *ls__chunk_datum(out, out->n, k) = row_of(o->tensors[k], o->whole, s->at);
        *ls__chunk_after(out, out->n) = ++s->at;
    }
    return LS_OK;
}

static const ls__stage slices_stage = { .name = "slices",
                                        .state_bytes = sizeof(ls__indexed),
                                        .close = close,
                                        .pull = pull,
                                        LS__HAS_INDEX };

/* ---- making --------------------------------------------------------------------------------- */

static void release(void *options)
{
    slices_options *o = options;
    ls_value_drop(o->value);
    free(o->tensors);
}

static ls_status take_value(const char *who, slices_options *o, ls_value *value)
{
    if (ls_spread_of(value) != LS_SPREAD_PLAIN)
        return ls__hint(ls__fail(LS_INVALID, "%s: the value is spread over replicas", who),
                        "ls_select gives one replica's");
    o->leaves = ls_leaf_count(value);
    o->value = ls_value_keep(value);
    o->tensors = calloc((size_t)o->leaves + 1, sizeof *o->tensors);
    if (!o->value)
        return ls_error_pending();
    if (!o->tensors)
        return ls__fail_memory(who, sizeof *o->tensors);
    ls_status st = ls_flatten(o->value, o->tensors);
    for (int k = 0; k < o->leaves && !st; k++)
        if (o->tensors[k]->sparse_rows)
            st = ls__hint(ls__fail(LS_SHAPE, "%s: leaf %d is sparse", who, k),
                          "ls_densify makes it dense");
    return st;
}

static ls_status count_rows(const char *who, slices_options *o)
{
    o->rows = 1;
    if (o->leaves == 0 && !o->whole)
        return ls__hint(ls__fail(LS_INVALID, "%s: the value has no leaves, and so no rows", who),
                        "ls_once makes one element of a value");
    for (int k = 0; k < o->leaves && !o->whole; k++) {
        const ls__spec *spec = &o->tensors[k]->spec;
        if (spec->rank == 0)
            return ls__hint(ls__fail(LS_SHAPE, "%s: leaf %d is %s, which has no rows", who, k,
                                     ls__spec_text(spec)),
                            "ls_once makes one element of a value");
        if (k > 0 && spec->dims[0] != o->rows)
            return ls__fail(LS_SHAPE, "%s: leaf %d has %lld rows, leaf 0 has %lld", who, k,
                            (long long)spec->dims[0], (long long)o->rows);
        o->rows = spec->dims[0];
    }
    return LS_OK;
}

static ls_dataset *make(const char *who, ls_value *value, bool whole)
{
    if (ls__check_value(who, value))
        return NULL;
    ls__dataset_draft draft = { .stage = &slices_stage };
    slices_options *o = ls__dataset_options(&draft, sizeof *o, release);
    if (!o)
        return NULL;
    o->whole = whole;
    ls__type *all = NULL;
    if (!take_value(who, o, value) && !count_rows(who, o))
        all = ls__type_of_value(value);
    if (all && !whole && ls__type_row(who, all, &draft.type))
        draft.type = NULL;
    if (all && whole)
        draft.type = ls__type_ref(all);
    ls__type_unref(all);
    draft.cardinality = o->rows;
    return ls__dataset_new(&draft, "%s %lld", whole ? "once" : "slices", (long long)o->rows);
}

ls_dataset *ls_slices(ls_value *value)
{
    return make("ls_slices", value, false);
}

ls_dataset *ls_once(ls_value *value)
{
    return make("ls_once", value, true);
}
