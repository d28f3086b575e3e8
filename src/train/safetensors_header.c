/*
 * Headers of safetensors files: JSON to a list of tensors. Invariant: what comes out describes the
 * data from its first byte to its last, each once; numbers in a header are believed as far as the
 * bytes are there.
 */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "data/crc32c.h"
#include "train/safetensors.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "tensors are copied to and from the file");

/* ---- dtypes -------------------------------------------------------------------------------------- */

/* Those that are the same here come first. */
static const ls__safetensors_type types[] = {
    { "F64", { 'f', 8, LS_F64 } },   { "I64", { 'i', 8, LS_I64 } }, { "F32", { 'f', 4, LS_F32 } },
    { "I32", { 'i', 4, LS_I32 } },   { "BF16", { 0, 2, LS_BF16 } }, { "U8", { 'u', 1, LS_U8 } },
    { "BOOL", { 'b', 1, LS_BOOL } }, { "F16", { 'f', 2, LS_F32 } }, { "I16", { 'i', 2, LS_I32 } },
    { "U16", { 'u', 2, LS_I32 } },   { "I8", { 'i', 1, LS_I32 } },  { "U32", { 'u', 4, LS_I64 } },
    { "U64", { 'u', 8, LS_I64 } },
};
enum { TYPES = sizeof types / sizeof *types };

const ls__safetensors_type *ls__safetensors_type_named(const char *name)
{
    for (int i = 0; i < TYPES; i++)
        if (strcmp(types[i].name, name) == 0)
            return &types[i];
    return NULL;
}

const ls__safetensors_type *ls__safetensors_type_of(ls_dtype dtype)
{
    for (int i = 0; i < TYPES; i++)
        if (types[i].type.dtype == dtype)
            return &types[i];
    return NULL;
}

/* ---- errors -------------------------------------------------------------------------------------- */

static ls_status damaged(const char *path, const char *why)
{
    return ls__hint(ls__fail(LS_CORRUPT, "'%s' is no safetensors file, or damaged: %s", path, why),
                    "write or fetch it again");
}

static ls_status bad_tensor(const char *path, const char *name, const char *why)
{
    return ls__fail(LS_CORRUPT, "'%s' is damaged: tensor '%.100s': %s", path, name, why);
}

/* ---- one tensor ---------------------------------------------------------------------------------- */

/* A number that is 0 or more. */
static bool natural(const json_t *value, uint64_t *out)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *out = (uint64_t)json_integer_value(value);
    return true;
}

static ls_status read_type(const char *path, const char *name, const json_t *info,
                           ls__safetensors_entry *e)
{
    const char *dtype = json_string_value(json_object_get(info, "dtype"));
    if (!dtype)
        return bad_tensor(path, name, "no dtype");
    e->type = ls__safetensors_type_named(dtype);
    if (e->type)
        return LS_OK;
    return ls__hint(
        ls__fail(LS_UNSUPPORTED, "'%s': tensor '%.100s' is of dtype '%.20s'", path, name, dtype),
        "Lockstep reads F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8 and "
        "BOOL");
}

/* The shape, and how many bytes of the file it takes. */
static ls_status read_shape(const char *path, const char *name, const json_t *info,
                            ls__safetensors_entry *e, uint64_t *bytes)
{
    const json_t *shape = json_object_get(info, "shape");
    if (!json_is_array(shape))
        return bad_tensor(path, name, "no shape");
    const size_t rank = json_array_size(shape);
    int64_t here = (int64_t)ls_dtype_size(e->type->type.dtype); /* bytes, were no dimension 0 */
    bool fits = rank <= LS_MAX_RANK;
    e->spec = (ls__spec){ .dtype = e->type->type.dtype, .rank = fits ? (int)rank : 0 };
    *bytes = e->type->type.bytes;
    for (size_t i = 0; i < rank; i++) {
        uint64_t dim;
        if (!natural(json_array_get(shape, i), &dim) || __builtin_mul_overflow(*bytes, dim, bytes))
            return bad_tensor(path, name, "a shape that none can have");
        if (dim > 0 && __builtin_mul_overflow(here, (int64_t)dim, &here))
            fits = false;
        if (i < LS_MAX_RANK)
            e->spec.dims[i] = (int64_t)dim;
    }
    if (fits)
        return LS_OK;
    return ls__hint(ls__fail(LS_UNSUPPORTED,
                             "'%s': tensor '%.100s' has a shape of %zu dimensions "
                             "that no tensor here can have",
                             path, name, rank),
                    "there are %d dimensions at most, and 2^63 bytes", LS_MAX_RANK);
}

static ls_status read_offsets(const char *path, const char *name, const json_t *info,
                              ls__safetensors_entry *e)
{
    const json_t *offsets = json_object_get(info, "data_offsets");
    if (json_array_size(offsets) != 2 || !natural(json_array_get(offsets, 0), &e->begin) ||
        !natural(json_array_get(offsets, 1), &e->end) || e->end < e->begin)
        return bad_tensor(path, name, "no data_offsets, or such as cannot be");
    return LS_OK;
}

static ls_status read_entry(const char *path, const char *name, const json_t *info,
                            ls__safetensors_entry *e)
{
    uint64_t bytes = 0;
    e->name = name;
    if (!json_is_object(info))
        return bad_tensor(path, name, "no dtype, shape and data_offsets");
    ls_status st = read_type(path, name, info, e);
    if (!st)
        st = read_shape(path, name, info, e, &bytes);
    if (!st)
        st = read_offsets(path, name, info, e);
    if (!st && e->end - e->begin != bytes)
        st = bad_tensor(path, name, "its data_offsets are not what its dtype and shape take");
    return st;
}

/* ---- all of them ------------------------------------------------------------------------------------ */

static int by_offset(const void *a, const void *b)
{
    const ls__safetensors_entry *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    return strcmp(x->name, y->name);
}

static ls_status check_offsets(const char *path, const ls__safetensors_header *h, uint64_t data)
{
    uint64_t at = 0;
    for (int i = 0; i < h->count; i++) {
        const ls__safetensors_entry *e = &h->entries[i];
        if (e->begin != at)
            return bad_tensor(path, e->name, "its data does not begin where that before it ends");
        if (e->end > data)
            return bad_tensor(path, e->name, "its data ends behind the end of the file");
        at = e->end;
    }
    return at == data ? LS_OK
                      : damaged(path, data > at ? "there are bytes that belong to no tensor"
                                                : "bytes are missing at its end");
}

static ls_status check_notes(const char *path, const json_t *notes)
{
    const char *key;
    json_t *text;
    if (!json_is_object(notes))
        return damaged(path, "its __metadata__ is no object");
    json_object_foreach((json_t *)(uintptr_t)notes, key, text)
    {
        if (!json_is_string(text))
            return damaged(path, "its __metadata__ has something else than texts in it");
    }
    return LS_OK;
}

static ls_status read_entries(const char *path, ls__safetensors_header *h)
{
    const char *name;
    json_t *info;
    const size_t most = json_object_size(h->json);
    if (most > INT32_MAX / 2)
        return damaged(path, "more tensors than can be");
    h->entries = malloc((most + 1) * sizeof *h->entries);
    if (!h->entries)
        return ls__fail_memory(path, (most + 1) * sizeof *h->entries);
    json_object_foreach(h->json, name, info)
    {
        const bool notes = strcmp(name, "__metadata__") == 0;
        if (notes && json_is_null(info))
            continue;
        ls_status st =
            notes ? check_notes(path, info) : read_entry(path, name, info, &h->entries[h->count]);
        if (st)
            return st;
        if (notes)
            h->notes = info;
        else
            h->count++;
    }
    qsort(h->entries, (size_t)h->count, sizeof *h->entries, by_offset);
    return LS_OK;
}

/* ---- sums -------------------------------------------------------------------------------------------- */

static bool hexadecimal(const char *at, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < 8; i++) {
        const char *digits = "0123456789abcdef", *digit = at[i] ? strchr(digits, at[i]) : NULL;
        if (!digit)
            return false;
        *out = *out << 4 | (uint32_t)(digit - digits);
    }
    return true;
}

static ls_status check_sum(const char *path, char *text, size_t length, ls__safetensors_header *h)
{
    if (length < (size_t)LS__SAFETENSORS_SUMS_AT + LS__SAFETENSORS_SUMS_LENGTH ||
        memcmp(text, LS__SAFETENSORS_BEGIN, LS__SAFETENSORS_SUMS_AT) != 0)
        return LS_OK; /* of another program */
    char *sums = text + LS__SAFETENSORS_SUMS_AT;
    if (!hexadecimal(sums, &h->header_sum) || sums[8] != ' ' ||
        !hexadecimal(sums + 9, &h->data_sum))
        return damaged(path, "its checksums are none");
    unsigned char front[8];
    for (int i = 0; i < 8; i++)
        front[i] = (unsigned char)((uint64_t)length >> (8 * i));
    memset(sums, '0', 8);
    uint32_t sum = ls__crc32c(ls__crc32c(0, front, 8), text, length);
    h->summed = true;
    return sum == h->header_sum ? LS_OK : damaged(path, "the checksum of its header is wrong");
}

ls_status ls__safetensors_parse(const char *path, char *text, size_t length, uint64_t data,
                                ls__safetensors_header *out)
{
    *out = (ls__safetensors_header){ 0 };
    if (length == 0 || text[0] != '{')
        return damaged(path, "its header does not begin with {");
    ls_status st = check_sum(path, text, length, out);
    if (st)
        return st;
    json_error_t error;
    out->json = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    /* Without memory it mostly says nothing at all. */
    if (!out->json && (!error.text[0] || json_error_code(&error) == json_error_out_of_memory))
        return ls__fail_memory(path, length);
    if (!out->json) {
        char why[sizeof error.text + 60];
        snprintf(why, sizeof why, "its header: line %d, column %d: %s", error.line, error.column,
                 error.text);
        return damaged(path, why);
    }
    if (!json_is_object(out->json))
        return damaged(path, "its header is no object");
    st = read_entries(path, out);
    return st ? st : check_offsets(path, out, data);
}

void ls__safetensors_header_free(ls__safetensors_header *h)
{
    json_decref(h->json);
    free(h->entries);
    *h = (ls__safetensors_header){ 0 };
}
