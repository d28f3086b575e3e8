/*
 * .npy: the elements of an array go from the file to where they belong in the tensor, a block at a
 * time where they have to be turned or widened on the way.
 *
 * Invariant: no memory is asked for before the sizes in the header were found to be those of the
 * file.
 */
#include "data/npy.h"

#include <errno.h>
#include <lockstep/data.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_HEADER = 1 << 16, BLOCK = 1024 /* elements */ };

/* ---- one element ---------------------------------------------------------------------------- */

/* Exact: every half has a float; what a NaN carries is kept. */
static uint32_t half_to_float(uint32_t half)
{
    uint32_t sign = (half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 1023;
    if (exponent == 31)
        return sign | 0x7f800000 | fraction << 13;
    if (exponent == 0 && fraction == 0)
        return sign;
    if (exponent == 0) { /* too small for a leading one: it is found, and left out */
        exponent = 1;
        for (; !(fraction & 1024); fraction <<= 1)
            exponent--;
        fraction &= 1023;
    }
    return sign | (exponent + 112) << 23 | fraction << 13;
}

static void swap_bytes(unsigned char *at, size_t n, size_t bytes)
{
    for (; n > 0; n--, at += bytes)
        for (size_t i = 0; i < bytes / 2; i++) {
            unsigned char low = at[i];
            at[i] = at[bytes - 1 - i];
            at[bytes - 1 - i] = low;
        }
}

size_t ls__npy_widen(const ls__npy_type *type, const void *from, size_t n, void *to)
{
    int32_t *i32 = to;
    int64_t *i64 = to;
    if (type->kind == 'b')
        for (size_t i = 0; i < n; i++)
            ((uint8_t *)to)[i] = ((const uint8_t *)from)[i] != 0;
    else if (type->kind == 'f' && type->bytes == 2)
        for (size_t i = 0; i < n; i++)
            ((uint32_t *)to)[i] = half_to_float(((const uint16_t *)from)[i]);
    else if (type->kind == 'i' && type->bytes == 1)
        for (size_t i = 0; i < n; i++)
            i32[i] = ((const int8_t *)from)[i];
    else if (type->kind == 'i' && type->bytes == 2)
        for (size_t i = 0; i < n; i++)
            i32[i] = ((const int16_t *)from)[i];
    else if (type->kind == 'u' && type->bytes == 2)
        for (size_t i = 0; i < n; i++)
            i32[i] = ((const uint16_t *)from)[i];
    else if (type->kind == 'u' && type->bytes == 4)
        for (size_t i = 0; i < n; i++)
            i64[i] = ((const uint32_t *)from)[i];
    else if (type->kind == 'u' && type->bytes == 8)
        for (size_t i = 0; i < n; i++) {
            if (((const uint64_t *)from)[i] > INT64_MAX)
                return i;
            i64[i] = (int64_t)((const uint64_t *)from)[i];
        }
    else
        memcpy(to, from, n * type->bytes);
    return n;
}

/* ---- where elements go ---------------------------------------------------------------------- */

/* Goes through a tensor with its first axis running fastest. */
typedef struct walk {
    int64_t index[LS_MAX_RANK], stride[LS_MAX_RANK]; /* strides in elements */
    int64_t at;
} walk;

static void begin(walk *w, const ls__spec *spec)
{
    int64_t stride = 1;
    *w = (walk){ 0 };
    for (int i = spec->rank - 1; i >= 0; i--) {
        w->stride[i] = stride;
        stride *= spec->dims[i];
    }
}

static void step(walk *w, const ls__spec *spec)
{
    for (int i = 0; i < spec->rank; i++) {
        w->at += w->stride[i];
        if (++w->index[i] < spec->dims[i])
            return;
        w->at -= w->stride[i] * spec->dims[i];
        w->index[i] = 0;
    }
}

static void scatter(walk *w, const ls__spec *spec, const char *from, size_t n, char *to)
{
    const size_t bytes = ls_dtype_size(spec->dtype);
    for (; n > 0; n--, from += bytes) {
        memcpy(to + (size_t)w->at * bytes, from, bytes);
        step(w, spec);
    }
}

/* ---- all elements ---------------------------------------------------------------------------- */

static bool lies_as_it_should(const ls__npy_header *h)
{
    const bool u64 = h->type.kind == 'u' && h->type.bytes == 8; /* may not fit */
    return !h->swapped && (!h->fortran || h->spec.rank < 2) && h->type.kind != 'b' && !u64 &&
           h->type.bytes == ls_dtype_size(h->type.dtype);
}

static ls_status read_blocks(const ls__npy_input *in, const ls__npy_header *h, char *to)
{
    _Alignas(8) unsigned char raw[BLOCK * 8], wide[BLOCK * 8];
    const bool turned = h->fortran && h->spec.rank > 1;
    const size_t bytes = ls_dtype_size(h->spec.dtype);
    walk w;
    begin(&w, &h->spec);
    for (int64_t done = 0, count = ls__spec_count(&h->spec); done < count;) {
        size_t n = count - done < BLOCK ? (size_t)(count - done) : BLOCK;
        ls_status st = in->read(in->user, raw, n * h->type.bytes);
        if (st)
            return st;
        if (h->swapped)
            swap_bytes(raw, n, h->type.bytes);
        size_t fit =
            ls__npy_widen(&h->type, raw, n, turned ? (void *)wide : to + (size_t)done * bytes);
        if (fit < n)
            return ls__hint(ls__fail(LS_SHAPE,
                                     "%s: element %lld of the file is a u8 of numpy's, %llu, "
                                     "which no i64 can be",
                                     in->name, (long long)(done + (int64_t)fit),
                                     (unsigned long long)((uint64_t *)(void *)raw)[fit]),
                            "astype('float64') before saving, if that will do");
        if (turned)
            scatter(&w, &h->spec, (const char *)wide, n, to);
        done += (int64_t)n;
    }
    return LS_OK;
}

/* ---- an array ---------------------------------------------------------------------------------- */

static ls_status too_short(const ls__npy_input *in, uint64_t want)
{
    return ls__hint(ls__fail(LS_CORRUPT, "%s: has %llu bytes, wants %llu at least", in->name,
                             (unsigned long long)in->bytes, (unsigned long long)want),
                    "the file is cut short: fetch or write it again");
}

/* Up to the dict; tells how long that is. */
static ls_status read_front(const ls__npy_input *in, uint64_t *done, uint32_t *length)
{
    unsigned char head[12];
    if (in->bytes < 10)
        return too_short(in, 10);
    ls_status st = in->read(in->user, head, 8);
    if (st)
        return st;
    if (memcmp(head, "\x93NUMPY", 6) != 0)
        return ls__hint(ls__fail(LS_CORRUPT,
                                 "%s: is no array of numpy's: it begins with "
                                 "%02x %02x %02x %02x %02x %02x",
                                 in->name, head[0], head[1], head[2], head[3], head[4], head[5]),
                        "a .npy begins with 93 'NUMPY'");
    if (head[6] < 1 || head[6] > 3 || head[7] != 0)
        return ls__fail(LS_UNSUPPORTED,
                        "%s: version %d.%d of the format; read are 1.0, 2.0 and 3.0", in->name,
                        head[6], head[7]);
    const unsigned size = head[6] == 1 ? 2 : 4;
    if (in->bytes < 8 + size)
        return too_short(in, 8 + size);
    st = in->read(in->user, head + 8, size);
    *length = 0;
    for (unsigned i = 0; i < size && !st; i++)
        *length |= (uint32_t)head[8 + i] << (8 * i);
    *done = 8 + size;
    return st;
}

static ls_status read_header(const ls__npy_input *in, ls__npy_header *out)
{
    uint64_t done = 0;
    uint32_t length = 0;
    ls_status st = read_front(in, &done, &length);
    if (st)
        return st;
    if (length > in->bytes - done)
        return too_short(in, done + length);
    if (length > MOST_HEADER)
        return ls__fail(LS_UNSUPPORTED,
                        "%s: a header of %lu letters; those of plain arrays are short", in->name,
                        (unsigned long)length);
    char *text = malloc(length + 1u);
    if (!text)
        return ls__fail_memory("ls_read_npy", length);
    st = in->read(in->user, text, length);
    if (!st)
        st = ls__npy_parse(in->name, text, length, out);
    free(text);
    if (!st && out->bytes != in->bytes - done - length)
        st = ls__hint(ls__fail(LS_CORRUPT, "%s: %llu bytes of elements, %s wants %llu", in->name,
                               (unsigned long long)(in->bytes - done - length),
                               ls__spec_text(&out->spec), (unsigned long long)out->bytes),
                      "the file is cut short, or another one's end hangs on it: write it again");
    return st;
}

ls_tensor *ls__npy_read(const ls__npy_input *in)
{
    ls__npy_header h;
    ls_tensor *all = NULL;
    if (read_header(in, &h))
        return NULL;
    LS_FRAME { /* half an array goes at once */
        ls_tensor *t = ls__tensor_new("ls_read_npy", &h.spec);
        ls_status st = LS_OK;
        if (t && h.bytes > 0)
            st = lies_as_it_should(&h) ? in->read(in->user, ls__data(t), h.bytes)
                                       : read_blocks(in, &h, ls__data(t));
        if (t && !st)
            all = ls_hand_up(t);
    }
    return all;
}

/* ---- a file -------------------------------------------------------------------------------------- */

typedef struct npy_file {
    FILE *stream;
    const char *path;
} npy_file;

static ls_status refused(const char *what, const char *path)
{
    int error = errno;
    return ls__fail(error == ENOENT || error == ENOTDIR ? LS_NOT_FOUND : LS_IO,
                    "ls_read_npy: cannot %s '%s': %s", what, path, strerror(error));
}

static ls_status read_file(void *user, void *to, size_t bytes)
{
    const npy_file *f = user;
    if (fread(to, 1, bytes, f->stream) == bytes)
        return LS_OK;
    if (ferror(f->stream))
        return refused("read", f->path);
    return ls__fail(LS_CORRUPT, "ls_read_npy: '%s' became shorter while it was read", f->path);
}

ls_tensor *ls_read_npy(const char *path)
{
    if (!path) {
        ls__fail(LS_INVALID, "ls_read_npy: the path is NULL");
        return NULL;
    }
    npy_file f = { fopen(path, "rbe"), path };
    if (!f.stream) {
        refused("open", path);
        return NULL;
    }
    ls_tensor *t = NULL;
    char name[300];
    snprintf(name, sizeof name, "ls_read_npy: '%s'", path);
    getc(f.stream);
    off_t end = -1;
    if (!ferror(f.stream) && !fseeko(f.stream, 0, SEEK_END))
        end = ftello(f.stream);
    if (ferror(f.stream)) /* a directory opens but does not read */
        refused("read", path);
    else if (end < 0 || fseeko(f.stream, 0, SEEK_SET))
        refused("find the end of", path);
    else
        t = ls__npy_read(&(ls__npy_input){ name, (uint64_t)end, read_file, &f });
    fclose(f.stream);
    return t;
}
