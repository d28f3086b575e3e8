/*
 * Padding. Numbers: the block is filled with the padding where there is any, then each element is put
 * into its row. Strings: the same with their places, and then their text is brought together behind
 * them.
 */
#include "data/padding.h"

#include <string.h>

#include "base/status.h"
#include "tensor/convert.h"
#include "tensor/tensor.h"

ls_status ls__padding_check(int leaf, const ls__spec *spec, const ls__leaf_type *shape)
{
    if (!shape || !shape->dtype)
        return LS_OK;
    bool fits = spec->dtype == shape->dtype && (shape->rank < 0 || spec->rank == shape->rank);
    for (int i = 0; i < shape->rank && fits; i++)
        fits = shape->dims[i] < 0 || spec->dims[i] <= shape->dims[i];
    if (fits)
        return LS_OK;
    ls__spec room = { .dtype = shape->dtype, .rank = shape->rank < 0 ? 0 : shape->rank };
    memcpy(room.dims, shape->dims, sizeof room.dims);
    return ls__hint(ls__fail(LS_SHAPE,
                             "ls_padded_batch: leaf %d of an element is %s, .shapes "
                             "has %s",
                             leaf, ls__spec_text(spec),
                             shape->rank < 0 ? ls_dtype_name(shape->dtype) : ls__spec_text(&room)),
                    "a size of ? (-1) is that of the largest in the batch");
}

/* The shape of all rows together; whether some row has to be filled up. */
static ls_status common_shape(int leaf, int64_t rows, const ls__datum *first, int stride,
                              const ls__leaf_type *shape, ls__spec *out, bool *uneven)
{
    const int rank = first->spec.rank;
    int64_t dims[LS_MAX_RANK + 1] = { rows };
    if (rank == LS_MAX_RANK)
        return ls__fail(LS_SHAPE, "ls_padded_batch: leaf %d is %s; a batch would have %d axes",
                        leaf, ls__spec_text(&first->spec), LS_MAX_RANK + 1);
    for (int64_t r = 0; r < rows; r++)
        for (int i = 0; i < rank; i++) {
            const int64_t n = first[r * stride].spec.dims[i];
            dims[i + 1] = n > dims[i + 1] ? n : dims[i + 1];
        }
    for (int i = 0; shape && shape->dtype && i < shape->rank; i++)
        dims[i + 1] = shape->dims[i] < 0 ? dims[i + 1] : shape->dims[i];
    for (int64_t r = 0; r < rows && !*uneven; r++)
        *uneven = memcmp(first[r * stride].spec.dims, dims + 1, (size_t)rank * sizeof *dims) != 0;
    return ls__spec_make(out, "ls_padded_batch", first->spec.dtype, rank + 1, dims);
}

static size_t row_bytes(const int64_t *dims, int rank, size_t size)
{
    for (int i = 1; i < rank; i++)
        size *= (size_t)dims[i];
    return size;
}

/* Puts an array of these sizes into the corner of a larger one, `size` bytes an item. */
static void place(char *to, const int64_t *large, const char *from, const int64_t *small, int rank,
                  size_t size)
{
    if (rank == 0) {
        memcpy(to, from, size);
        return;
    }
    const size_t there = row_bytes(large, rank, size), here = row_bytes(small, rank, size);
    if (small[0] == 0 || here == 0)
        return;
    if (memcmp(large + 1, small + 1, (size_t)(rank - 1) * sizeof *large) == 0) {
        memcpy(to, from, (size_t)small[0] * here);
        return;
    }
    for (int64_t i = 0; i < small[0]; i++)
        place(to + (size_t)i * there, large + 1, from + (size_t)i * here, small + 1, rank - 1,
              size);
}

static ls__storage *pad_numbers(const ls__spec *spec, const ls__datum *first, int stride,
                                bool uneven, double value)
{
    const size_t size = ls_dtype_size(spec->dtype), bytes = ls__spec_bytes(spec);
    ls__storage *storage = ls__storage_new("a batch", bytes);
    if (!storage)
        return NULL;
    char *at = storage->data;
    if (uneven && bytes && value == 0) {
        memset(at, 0, bytes);
    } else if (uneven && bytes) {
        ls__store_double(spec->dtype, at, 0, value);
        ls__fill(at, size, ls__spec_count(spec));
    }
    const size_t row = row_bytes(spec->dims, spec->rank, size);
    for (int64_t r = 0; r < spec->dims[0]; r++) {
        const ls__datum *d = &first[r * stride];
        place(at + (size_t)r * row, spec->dims + 1, d->data, d->spec.dims, d->spec.rank, size);
    }
    return storage;
}

/* ---- strings ------------------------------------------------------------------------------- */

static size_t text_bytes(int64_t count, const ls__string *strings)
{
    size_t bytes = 0;
    for (int64_t i = 0; i < count; i++)
        bytes += strings[i].length;
    return bytes;
}

/* Text from where the strings are now to where it belongs. */
static void gather_text(int64_t count, ls__string *strings)
{
    char *text = (char *)(strings + count);
    for (int64_t i = 0; i < count; i++) {
        if (strings[i].length)
            memcpy(text, strings[i].data, strings[i].length);
        text[strings[i].length] = '\0';
        strings[i].data = text;
        text += strings[i].length + 1;
    }
}

static ls__storage *pad_strings(const ls__spec *spec, const ls__datum *first, int stride)
{
    const int64_t count = ls__spec_count(spec);
    size_t bytes = ls__spec_bytes(spec) + (size_t)count; /* a NUL each */
    for (int64_t r = 0; r < spec->dims[0]; r++) {
        const ls__datum *d = &first[r * stride];
        bytes += d->spec.rank ? text_bytes(ls__spec_count(&d->spec), d->data) : d->bytes;
    }
    ls__storage *storage = ls__storage_new("a batch", bytes);
    if (!storage)
        return NULL;
    ls__string *strings = storage->data;
    for (int64_t i = 0; i < count; i++)
        strings[i] = (ls__string){ "", 0 };
    const int64_t row = spec->dims[0] ? count / spec->dims[0] : 0;
    for (int64_t r = 0; r < spec->dims[0]; r++) {
        const ls__datum *d = &first[r * stride];
        const ls__string one = { d->data, d->bytes };
        place((char *)(strings + r * row), spec->dims + 1, d->spec.rank ? d->data : (void *)&one,
              d->spec.dims, d->spec.rank, sizeof one);
    }
    gather_text(count, strings);
    return storage;
}

ls_status ls__pad(int leaf, int64_t rows, const ls__datum *first, int stride,
                  const ls__leaf_type *shape, double value, ls__datum *out)
{
    ls__spec spec;
    bool uneven = false;
    ls_status st = common_shape(leaf, rows, first, stride, shape, &spec, &uneven);
    if (st)
        return st;
    ls__storage *storage = spec.dtype == LS_BYTES
                               ? pad_strings(&spec, first, stride)
                               : pad_numbers(&spec, first, stride, uneven, value);
    if (!storage)
        return LS_NO_MEMORY;
    *out = (ls__datum){ .spec = spec,
                        .data = storage->data,
                        .bytes = ls__spec_bytes(&spec),
                        .owner = storage,
                        .hold = LS__OWNED };
    return LS_OK;
}
