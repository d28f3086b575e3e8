/*
 * ls_decode_raw: strings that are numbers as they lie in memory. One copy a string, and bytes turned
 * round in place when their order is the other one.
 */
#include <lockstep/records.h>

#include <string.h>

#include "tensor/tensor.h"

/* ---- shapes ------------------------------------------------------------------------------------ */

static ls_status check_strings(const char *who, const ls_tensor *t, ls_dtype dtype)
{
    ls_status st = ls__check_tensor(who, "strings", t);
    if (st)
        return st;
    if (t->spec.dtype != LS_BYTES)
        return ls__fail(LS_SHAPE, "%s: wants bytes, got %s", who, ls_describe(t));
    if (t->storage->symbol)
        return ls__hint(ls__fail(LS_STATE, "%s: in a traced step", who),
                        "decode before the step, in ls_map");
    if (dtype == LS_BYTES)
        return ls__fail(LS_INVALID, "%s: strings are not made of bytes tensors", who);
    return LS_OK;
}

/* Checks dims, and what is to be left open: *open is its axis, or -1. *known has one there. */
static ls_status check_dims(const char *who, ls_dtype dtype, int rank, const int64_t *dims,
                            ls__spec *known, int *open)
{
    int64_t sizes[LS_MAX_RANK];
    *open = -1;
    for (int i = 0; dims && i < rank && i < LS_MAX_RANK; i++) {
        sizes[i] = dims[i];
        if (dims[i] != -1)
            continue;
        if (*open >= 0)
            return ls__fail(LS_INVALID, "%s: axes %d and %d are both -1", who, *open, i);
        *open = i;
        sizes[i] = 1;
    }
    return ls__spec_make(known, who, dtype, rank, dims ? sizes : NULL);
}

/* The size of the open axis, of the first string. */
static ls_status fill_open(const char *who, const ls_tensor *strings, ls__spec *each, int open)
{
    const ls__string *first = ls__data(strings);
    size_t unit = ls__spec_bytes(each);
    if (open < 0)
        return LS_OK;
    size_t length = ls__spec_count(&strings->spec) > 0 ? first->length : 0;
    if (unit > 0 && length % unit != 0)
        return ls__fail(LS_SHAPE, "%s: string 0 has %zu bytes, which is no multiple of %zu", who,
                        length, unit);
    each->dims[open] = unit > 0 ? (int64_t)(length / unit) : 0;
    return LS_OK;
}

static ls_status check_lengths(const char *who, const ls_tensor *strings, const ls__spec *each)
{
    const ls__string *s = ls__data(strings);
    int64_t count = ls__spec_count(&strings->spec);
    size_t want = ls__spec_bytes(each);
    for (int64_t i = 0; i < count; i++)
        if (s[i].length != want)
            return ls__fail(LS_SHAPE, "%s: string %lld has %zu bytes; %s has %zu", who,
                            (long long)i, s[i].length, ls__spec_text(each), want);
    return LS_OK;
}

static ls_status result_spec(const char *who, const ls_tensor *strings, const ls__spec *each,
                             ls__spec *out)
{
    int64_t dims[2 * LS_MAX_RANK];
    int front = strings->spec.rank;
    memcpy(dims, strings->spec.dims, (size_t)front * sizeof *dims);
    memcpy(dims + front, each->dims, (size_t)each->rank * sizeof *dims);
    return ls__spec_make(out, who, each->dtype, front + each->rank, dims);
}

/* ---- bytes -------------------------------------------------------------------------------------- */

static void turn(void *data, size_t size, int64_t count)
{
    if (size == 2)
        for (uint16_t *at = data, *end = at + count; at < end; at++)
            *at = __builtin_bswap16(*at);
    else if (size == 4)
        for (uint32_t *at = data, *end = at + count; at < end; at++)
            *at = __builtin_bswap32(*at);
    else if (size == 8)
        for (uint64_t *at = data, *end = at + count; at < end; at++)
            *at = __builtin_bswap64(*at);
}

/* A bool is 0 or 1, whatever the file says. */
static void make_bools(uint8_t *at, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        at[i] = at[i] != 0;
}

static void copy_rows(const ls_tensor *strings, char *to, size_t bytes)
{
    const ls__string *s = ls__data(strings);
    int64_t count = ls__spec_count(&strings->spec);
    if (bytes > 0)
        for (int64_t i = 0; i < count; i++, to += bytes)
            memcpy(to, s[i].data, bytes);
}

static ls_tensor *decode(const char *who, ls_tensor *strings, ls_dtype dtype, int rank,
                         const int64_t *dims, bool big)
{
    ls__spec each, spec;
    int open;
    if (check_strings(who, strings, dtype) || check_dims(who, dtype, rank, dims, &each, &open) ||
        fill_open(who, strings, &each, open) || check_lengths(who, strings, &each) ||
        result_spec(who, strings, &each, &spec))
        return NULL;
    ls_tensor *t = ls__tensor_new(who, &spec);
    if (!t)
        return NULL;
    copy_rows(strings, ls__data(t), ls__spec_bytes(&each));
    if (big != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__))
        turn(ls__data(t), ls_dtype_size(dtype), ls__spec_count(&spec));
    if (dtype == LS_BOOL)
        make_bools(ls__data(t), ls__spec_count(&spec));
    return t;
}

ls_tensor *ls_decode_raw(ls_tensor *strings, ls_dtype dtype, int rank, const int64_t *dims)
{
    return decode("ls_decode_raw", strings, dtype, rank, dims, false);
}

ls_tensor *ls_decode_raw_big_endian(ls_tensor *strings, ls_dtype dtype, int rank,
                                    const int64_t *dims)
{
    return decode("ls_decode_raw_big_endian", strings, dtype, rank, dims, true);
}
