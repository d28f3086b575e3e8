/*
 * Dtypes and shapes. Invariant: a spec that ls__spec_make accepted has a valid
 * dtype, sizes of 0 or more, and counts and bytes that fit an int64 even when
 * zero sizes are taken as 1 (so sums of its sizes do not overflow either).
 */
#include "tensor/spec.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"

static size_t stored_bytes(ls_dtype dtype)
{
    switch (dtype) {
#define BYTES_CASE(name, value, text, bytes)                                                     \
    case name:                                                                                     \
        return bytes;
        LS_DTYPE_LIST(BYTES_CASE)
#undef BYTES_CASE
    }
    return 0;
}

const char *ls_dtype_name(ls_dtype dtype)
{
    switch (dtype) {
#define NAME_CASE(name, value, text, bytes)                                                      \
    case name:                                                                                     \
        return text;
        LS_DTYPE_LIST(NAME_CASE)
#undef NAME_CASE
    }
    return "?";
}

size_t ls_dtype_size(ls_dtype dtype)
{
    return dtype == LS_BYTES ? 0 : stored_bytes(dtype);
}

bool ls_dtype_is_float(ls_dtype dtype)
{
    return dtype == LS_F32 || dtype == LS_F64 || dtype == LS_BF16;
}

bool ls_dtype_is_integer(ls_dtype dtype)
{
    return dtype == LS_I32 || dtype == LS_I64 || dtype == LS_U8;
}

ls_status ls__spec_make(ls__spec *out, const char *who, ls_dtype dtype, int rank,
                        const int64_t *dims)
{
    size_t element = stored_bytes(dtype);
    if (element == 0)
        return ls__fail(LS_INVALID, "%s: %d is no dtype", who, (int)dtype);
    if (rank < 0 || rank > LS_MAX_RANK)
        return ls__hint(ls__fail(LS_INVALID, "%s: rank %d", who, rank), "ranks run from 0 to %d",
                        LS_MAX_RANK);
    if (rank > 0 && !dims)
        return ls__fail(LS_INVALID, "%s: dims is NULL for rank %d", who, rank);
    int64_t bytes = (int64_t)element;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return ls__fail(LS_INVALID, "%s: size %lld on axis %d", who, (long long)dims[i], i);
        if (dims[i] > 0 && __builtin_mul_overflow(bytes, dims[i], &bytes))
            return ls__fail(LS_INVALID, "%s: the size of a rank-%d %s tensor overflows at axis %d (%lld)",
                            who, rank, ls_dtype_name(dtype), i, (long long)dims[i]);
    }
    ls__spec made = { .dtype = dtype, .rank = rank };
    if (rank > 0) /* `dims` may lie in `out` */
        memcpy(made.dims, dims, sizeof *dims * (size_t)rank);
    *out = made;
    return LS_OK;
}

bool ls__spec_same_shape(const ls__spec *a, const ls__spec *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, sizeof *a->dims * (size_t)a->rank) == 0;
}

bool ls__spec_equal(const ls__spec *a, const ls__spec *b)
{
    return a->dtype == b->dtype && ls__spec_same_shape(a, b);
}

size_t ls__spec_bytes(const ls__spec *spec)
{
    return (size_t)ls__spec_count(spec) * stored_bytes(spec->dtype);
}

const char *ls__spec_text(const ls__spec *spec)
{
    enum { RING = 8, ROOM = 24 * LS_MAX_RANK };
    static _Thread_local char texts[RING][ROOM];
    static _Thread_local unsigned turn;
    char *text = texts[turn++ % RING];
    int at = snprintf(text, ROOM, "%s[", ls_dtype_name(spec->dtype));
    for (int i = 0; i < spec->rank; i++)
        at += snprintf(text + at, (size_t)(ROOM - at), i ? ",%lld" : "%lld",
                       (long long)spec->dims[i]);
    snprintf(text + at, (size_t)(ROOM - at), "]");
    return text;
}
