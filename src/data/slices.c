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
    ls_value *value;  /* kept */
    ls__datum *first; /* row of each leaf; data that last as long as the dataset */
    int64_t rows;
    bool whole; /* ls_once: the value itself is the only row */
} slices_options;

static void close(ls__it *it)
{
    (void)it;
}

/* Numbers and arrays of strings lie there; one string is the bytes themselves. */
static void put_row(const slices_options *o, int64_t row, ls__datum *data)
{
    for (int k = 0; k < o->leaves; k++) {
        data[k] = o->first[k];
        data[k].data = (const char *)data[k].data + (size_t)row * data[k].bytes;
        if (data[k].spec.dtype == LS_BYTES && data[k].spec.rank == 0) {
            const ls__string *string = data[k].data;
            data[k].data = string->data;
            data[k].bytes = string->length;
        }
    }
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
        put_row(o, s->at, ls__chunk_datum(out, out->n, 0));
        *ls__chunk_after(out, out->n) = ++s->at;
    }
    return LS_OK;
}

static void again(ls__it *it, const int64_t *words, ls__datum *data)
{
    put_row(it->dataset->options, words[0], data);
}

static const ls__stage slices_stage = { .name = "slices",
                                        .state_bytes = sizeof(ls__indexed),
                                        .close = close,
                                        .pull = pull,
                                        .again = again,
                                        LS__HAS_INDEX };

/* ---- making --------------------------------------------------------------------------------- */

static void release(void *options)
{
    slices_options *o = options;
    ls_value_drop(o->value);
    free(o->first);
}

static ls__datum first_row(const ls_tensor *t, bool whole)
{
    ls__datum d = { .spec = t->spec, .owner = t->storage, .hold = LS__LASTING };
    if (!whole) {
        d.spec.rank--;
        for (int i = 0; i < d.spec.rank; i++)
            d.spec.dims[i] = t->spec.dims[i + 1];
    }
    d.data = ls__data(t);
    d.bytes = ls__spec_bytes(&d.spec);
    return d;
}

static ls_status check_leaf(const char *who, const slices_options *o, int k, const ls_tensor *t)
{
    if (t->sparse_rows)
        return ls__hint(ls__fail(LS_SHAPE, "%s: leaf %d is sparse", who, k),
                        "ls_densify makes it dense");
    if (t->spec.rank == 0 && !o->whole)
        return ls__hint(ls__fail(LS_SHAPE, "%s: leaf %d is %s, which has no rows", who, k,
                                 ls__spec_text(&t->spec)),
                        "ls_once makes one element of a value");
    if (k > 0 && !o->whole && t->spec.dims[0] != o->rows)
        return ls__fail(LS_SHAPE, "%s: leaf %d has %lld rows, leaf 0 has %lld", who, k,
                        (long long)t->spec.dims[0], (long long)o->rows);
    /* What a variable was goes elsewhere when that is written: a copy stays. */
    return t->storage->view && !ls_data(t) ? ls_error_pending() : LS_OK;
}

static ls_status take_leaves(const char *who, slices_options *o)
{
    ls_tensor **tensors = calloc((size_t)o->leaves + 1, sizeof *tensors);
    o->first = calloc((size_t)o->leaves + 1, sizeof *o->first);
    ls_status st = tensors && o->first ? ls_flatten(o->value, tensors)
                                       : ls__fail_memory(who, sizeof *o->first);
    for (int k = 0; k < o->leaves && !st; k++) {
        st = check_leaf(who, o, k, tensors[k]);
        if (st)
            break;
        o->first[k] = first_row(tensors[k], o->whole);
        o->rows = o->whole ? 1 : tensors[k]->spec.dims[0];
    }
    free(tensors);
    return st;
}

static ls_status take_value(const char *who, slices_options *o, ls_value *value)
{
    if (ls_spread_of(value) != LS_SPREAD_PLAIN)
        return ls__hint(ls__fail(LS_INVALID, "%s: the value is spread over replicas", who),
                        "ls_select gives one replica's");
    o->rows = 1;
    o->leaves = ls_leaf_count(value);
    if (o->leaves == 0 && !o->whole)
        return ls__hint(ls__fail(LS_INVALID, "%s: the value has no leaves, and so no rows", who),
                        "ls_once makes one element of a value");
    o->value = ls_value_keep(value);
    return o->value ? take_leaves(who, o) : ls_error_pending();
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
    if (!take_value(who, o, value))
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
