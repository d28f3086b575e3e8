/*
 * Chunks and data. Invariant: a datum that is LS__OWNED has one reference on its owner, and is the
 * only one that has this one; whoever takes it leaves the place behind LS__BORROWED and empty.
 */
#include "data/element.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "data/gathered.h"
#include "tensor/tensor.h"
#include "tensor/value.h"

/* ---- chunks ------------------------------------------------------------------------------ */

ls_status ls__chunk_room(ls__chunk *c, int elements, int leaves, int words)
{
    ls__chunk_clear(c);
    const int stride = c->lead + words;
    if (elements <= c->room && leaves == c->leaves && stride == c->stride)
        return LS_OK;
    size_t data = (size_t)elements * (size_t)leaves, after = (size_t)elements * (size_t)stride;
    ls__chunk_free(c);
    c->data = calloc(data + 1, sizeof *c->data);
    c->after = calloc(after + 1, sizeof *c->after);
    if (!c->data || !c->after) {
        ls__chunk_free(c);
        return ls__fail_memory("elements of a dataset", data * sizeof *c->data);
    }
    c->room = elements;
    c->leaves = leaves;
    c->stride = stride;
    return LS_OK;
}

void ls__chunk_clear(ls__chunk *c)
{
    for (int i = 0; i < c->n * c->leaves; i++)
        ls__datum_drop(&c->data[i]);
    c->n = 0;
}

void ls__chunk_free(ls__chunk *c)
{
    ls__chunk_clear(c);
    free(c->data);
    free(c->after);
    *c = (ls__chunk){ .lead = c->lead };
}

ls_status ls__chunk_move(ls__chunk *to, ls__chunk *from, int i)
{
    for (int k = 0; k < from->leaves; k++) {
        ls_status st = ls__datum_own(ls__chunk_datum(from, i, k));
        if (st)
            return st;
    }
    for (int k = 0; k < from->leaves; k++) {
        ls__datum *d = ls__chunk_datum(from, i, k);
        *ls__chunk_datum(to, to->n, k) = *d;
        if (d->hold == LS__OWNED)
            *d = (ls__datum){ .hold = LS__BORROWED };
    }
    memcpy(ls__chunk_after(to, to->n), ls__chunk_after(from, i),
           (size_t)(from->stride - from->lead) * sizeof(int64_t));
    to->structure = from->structure;
    to->n++;
    return LS_OK;
}

/* ---- data -------------------------------------------------------------------------------- */

static bool is_string(const ls__spec *spec)
{
    return spec->dtype == LS_BYTES && spec->rank == 0;
}

/* Strings as a tensor has them. */
static ls__storage *copy_strings(int64_t count, const ls__string *strings)
{
    size_t bytes = (size_t)count * sizeof *strings;
    for (int64_t i = 0; i < count; i++)
        bytes += strings[i].length + 1;
    ls__storage *storage = ls__storage_new("an element of a dataset", bytes);
    if (!storage)
        return NULL;
    ls__string *to = storage->data;
    char *text = (char *)(to + count);
    for (int64_t i = 0; i < count; i++) {
        if (strings[i].length)
            memcpy(text, strings[i].data, strings[i].length);
        text[strings[i].length] = '\0';
        to[i] = (ls__string){ text, strings[i].length };
        text += strings[i].length + 1;
    }
    return storage;
}

/* As a tensor's storage, with a reference for the caller. */
static ls__storage *copy_datum(const ls__datum *d)
{
    if (is_string(&d->spec))
        return copy_strings(1, &(ls__string){ d->data, d->bytes });
    if (d->spec.dtype == LS_BYTES)
        return copy_strings(ls__spec_count(&d->spec), d->data);
    ls__storage *storage = ls__storage_new("an element of a dataset", d->bytes);
    if (storage && d->bytes)
        memcpy(storage->data, d->data, d->bytes);
    return storage;
}

static void point_at(ls__datum *d, ls__storage *storage)
{
    d->owner = storage;
    d->hold = LS__OWNED;
    d->data = is_string(&d->spec) ? ((const ls__string *)storage->data)->data : storage->data;
}

ls_status ls__datum_own(ls__datum *d)
{
    if (d->hold != LS__BORROWED)
        return LS_OK;
    ls__storage *storage = copy_datum(d);
    if (!storage)
        return LS_NO_MEMORY;
    point_at(d, storage);
    return LS_OK;
}

void ls__datum_drop(ls__datum *d)
{
    if (d->hold == LS__OWNED && d->owner)
        ls__storage_unref(d->owner);
    d->hold = LS__BORROWED;
    d->owner = NULL;
}

/* ---- as values ---------------------------------------------------------------------------- */

static void let_go(void *data, void *user)
{
    (void)data;
    ls__storage_unref(user);
}

/* Storage whose contents are the datum, with a reference for the caller; what the datum owns is taken
 * over. A part of a larger storage becomes a window onto it. */
static ls__storage *take_storage(ls__datum *d)
{
    ls__storage *owner = d->owner;
    const bool string = is_string(&d->spec);
    const bool whole = owner && (string ? ((const ls__string *)owner->data)->data == d->data
                                        : owner->data == d->data);
    if (d->hold == LS__BORROWED || !owner || (string && !whole))
        return copy_datum(d); /* a window would not begin with an ls__string */
    if (d->hold == LS__LASTING)
        ls__storage_ref(owner);
    else
        *d = (ls__datum){ .spec = d->spec, .data = d->data, .bytes = d->bytes };
    if (ls__storage_waits(owner))
        return ls__gathered_part(owner, d->data, d->bytes);
    if (whole)
        return owner;
    ls__storage *window =
        ls__storage_wrap("an element of a dataset", (void *)(uintptr_t)d->data, let_go, owner);
    if (!window)
        ls__storage_unref(owner);
    return window;
}

ls_tensor *ls__datum_tensor(ls__datum *d, ls__device *device)
{
    ls__spec spec = d->spec;
    ls__storage *storage = take_storage(d);
    return storage ? ls__handle(&spec, storage, ls__new_id(), device) : NULL;
}

ls_value *ls__element_value(ls__chunk *c, int i)
{
    ls_tensor **tensors = ls__frame_alloc(sizeof *tensors * (size_t)(c->leaves + 1));
    for (int k = 0; tensors && k < c->leaves; k++) {
        tensors[k] = ls__datum_tensor(ls__chunk_datum(c, i, k), ls__device_current());
        if (!tensors[k])
            return NULL;
    }
    return tensors ? ls_pack(c->structure, c->leaves, tensors) : NULL;
}

static ls_status check_leaf(int i, const ls_value *leaf)
{
    if (ls_spread_of(leaf) != LS_SPREAD_PLAIN || ls__leaf_object(leaf))
        return ls__hint(ls__fail(LS_SHAPE, "leaf %d of an element is no tensor of its own", i),
                        "elements of datasets are plain values: ls_select one replica's, ls_read "
                        "variables");
    const ls_tensor *t = ls__leaf_component(leaf, 0);
    if (t->sparse_rows)
        return ls__hint(
            ls__fail(LS_SHAPE, "leaf %d of an element is sparse, %s", i, ls_describe(t)),
            "ls_densify makes it dense");
    return LS_OK;
}

ls_status ls__chunk_put(ls__chunk *c, const ls_value *value, bool later)
{
    const ls_value *leaves[256];
    if (c->leaves > 256)
        return ls__fail(LS_UNSUPPORTED, "an element of %d leaves; datasets take up to 256",
                        c->leaves);
    ls__leaves(value, leaves);
    ls_status st = LS_OK;
    for (int k = 0; k < c->leaves && !st; k++)
        st = check_leaf(k, leaves[k]);
    for (int k = 0; k < c->leaves && !st; k++) {
        ls_tensor *t = ls__leaf_component(leaves[k], 0);
        ls__datum *d = ls__chunk_datum(c, c->n, k);
        *d = (ls__datum){ .spec = t->spec };
        if (t->storage->view) { /* of a variable, which goes on changing */
            d->data = ls__data(t);
            d->bytes = ls__spec_bytes(&t->spec);
            st = ls__datum_own(d);
        } else {
            if (!later)
                ls__data(t);
            point_at(d, ls__storage_ref(t->storage));
            d->bytes = is_string(&t->spec) ? ((const ls__string *)ls__data(t))->length
                                           : ls__spec_bytes(&t->spec);
        }
    }
    if (st)
        for (int k = 0; k < c->leaves; k++)
            ls__datum_drop(ls__chunk_datum(c, c->n, k));
    else
        c->n++;
    return st;
}
