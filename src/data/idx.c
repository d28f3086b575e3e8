/*
 * idx files, the format of MNIST: two zero bytes, a type, a rank, the sizes as
 * big-endian 32-bit numbers, then the elements, big-endian too.
 *
 * Invariant: memory is only asked for as far as a file of this size is likely to go: what a
 * damaged header claims beyond that is read in steps, so it cannot make us allocate for it.
 */
#include <lockstep/data.h>

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "os/file.h"
#include "tensor/tensor.h"

typedef struct idx_type {
    uint8_t code;
    uint8_t bytes; /* in the file */
    ls_dtype dtype;
} idx_type;

static const idx_type types[] = { { 0x08, 1, LS_U8 },  { 0x09, 1, LS_I32 }, { 0x0B, 2, LS_I32 },
                                  { 0x0C, 4, LS_I32 }, { 0x0D, 4, LS_F32 }, { 0x0E, 8, LS_F64 } };

static ls_status read_header(ls__reader *r, const char *path, const idx_type **type, ls__spec *spec)
{
    uint8_t head[4], sizes[4 * LS_MAX_RANK];
    ls_status st = ls__reader_read(r, head, sizeof head);
    if (st)
        return st;
    *type = NULL;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].code == head[2])
            *type = &types[i];
    if (head[0] || head[1] || !*type || head[3] > LS_MAX_RANK)
        return ls__hint(ls__fail(LS_CORRUPT,
                                 "'%s' is no idx file: it begins with %02x %02x %02x %02x", path,
                                 head[0], head[1], head[2], head[3]),
                        "an idx file begins with 00 00, a type (08 09 0b 0c 0d 0e) and a rank");
    st = ls__reader_read(r, sizes, 4u * head[3]);
    if (st)
        return st;
    int64_t dims[LS_MAX_RANK];
    for (int i = 0; i < head[3]; i++) {
        const uint8_t *at = sizes + 4 * i;
        dims[i] =
            (int64_t)((uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]);
    }
    return ls__spec_make(spec, path, (*type)->dtype, head[3], dims);
}

/* Big-endian elements become native ones; 8 and 16 bits become i32. */
static void to_native(const idx_type *type, const uint8_t *from, void *to, int64_t count)
{
    for (int64_t i = 0; i < count; i++, from += type->bytes) {
        uint64_t bits = 0;
        for (int b = 0; b < type->bytes; b++)
            bits = bits << 8 | from[b];
        uint32_t low = (uint32_t)bits;
        if (type->code == 0x09)
            ((int32_t *)to)[i] = (int8_t)low;
        else if (type->code == 0x0B)
            ((int32_t *)to)[i] = (int16_t)low;
        else if (type->bytes == 4)
            memcpy((char *)to + 4 * i, &low, 4);
        else
            memcpy((char *)to + 8 * i, &bits, 8);
    }
}

/* Reads `bytes` in steps that double, so that a lying header costs little. */
static ls_status read_all(ls__reader *r, size_t bytes, uint8_t **out)
{
    uint8_t *data = NULL;
    size_t done = 0, room = 1 << 20;
    while (done < bytes || !data) {
        size_t next = room < bytes ? room : bytes;
        uint8_t *bigger = realloc(data, next ? next : 1);
        if (!bigger) {
            free(data);
            return ls__fail_memory("ls_read_idx", next);
        }
        data = bigger;
        ls_status st = ls__reader_read(r, data + done, next - done);
        if (st) {
            free(data);
            return st;
        }
        done = next;
        room *= 2;
    }
    *out = data;
    return LS_OK;
}

/* Bytes as they are, of a file that is large enough for them: read where they stay. */
static ls_tensor *read_bytes(ls__reader *r, const ls__spec *spec)
{
    ls_tensor *t = ls__tensor_new("ls_read_idx", spec);
    if (!t || ls__reader_read(r, ls__data(t), ls__spec_bytes(spec)) || ls__reader_at_end(r))
        return NULL;
    return t;
}

static ls_tensor *read_body(ls__reader *r, const char *path)
{
    const idx_type *type;
    ls__spec spec;
    uint8_t *raw = NULL;
    if (read_header(r, path, &type, &spec))
        return NULL;
    int64_t count = ls__spec_count(&spec);
    if (type->dtype == LS_U8 && ls__reader_likely_has(r, (size_t)count))
        return read_bytes(r, &spec);
    if (read_all(r, (size_t)count * type->bytes, &raw) || ls__reader_at_end(r)) {
        free(raw);
        return NULL;
    }
    ls_tensor *t = ls__tensor_new("ls_read_idx", &spec);
    if (t && type->dtype == LS_U8)
        memcpy(ls__data(t), raw, (size_t)count);
    else if (t)
        to_native(type, raw, ls__data(t), count);
    free(raw);
    return t;
}

ls_tensor *ls_read_idx(const char *path)
{
    ls__reader *r;
    if (!path)
        ls__fail(LS_INVALID, "ls_read_idx: the path is NULL");
    if (!path || ls__reader_open(path, &r))
        return NULL;
    ls_tensor *t = read_body(r, path);
    ls__reader_close(r);
    return t;
}
