/*
 * Reading safetensors files: tensor by tensor, from the file to where it stays. Invariants: no memory
 * is asked for before the file was found to have so many bytes; nothing is given to anybody before
 * the last byte was read and the checksum, if there is one, was right.
 */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "data/crc32c.h"
#include "os/directory.h"
#include "tensor/tensor.h"
#include "train/safetensors.h"

/* Read and summed at once: it stays in the second cache between. */
enum { AT_ONCE = 256 << 10 };

/* ---- opening ------------------------------------------------------------------------------------- */

static ls_status read_failed(const ls__safetensors *f)
{
    if (f->file.failed)
        return ls__packed_failure(&f->file);
    return ls__fail(LS_CORRUPT, "'%s' became shorter while it was read", f->path);
}

static ls_status too_short(const ls__safetensors *f, uint64_t size, const char *what)
{
    return ls__hint(ls__fail(LS_CORRUPT, "'%s' is damaged: %s, and it has %llu bytes", f->path,
                             what, (unsigned long long)size),
                    "it is cut short, or no safetensors file: write or fetch it again");
}

static ls_status read_header(ls__safetensors *f)
{
    const uint64_t size = ls__packed_can_follow(&f->file);
    unsigned char front[8];
    uint64_t length = 0;
    if (size < 8)
        return too_short(f, size, "it wants 8 for the length of its header");
    if (ls__packed_read(&f->file, front, 8) != 8)
        return read_failed(f);
    for (int i = 0; i < 8; i++)
        length |= (uint64_t)front[i] << (8 * i);
    if (length > size - 8 || length > LS__SAFETENSORS_MOST_HEADER) {
        char what[80];
        snprintf(what, sizeof what, "a header of %llu bytes", (unsigned long long)length);
        return too_short(f, size, what);
    }
    f->data = size - 8 - length;
    char *text = malloc((size_t)length + 1);
    if (!text)
        return ls__fail_memory(f->path, (size_t)length);
    ls_status st =
        ls__packed_read(&f->file, text, (size_t)length) == length ? LS_OK : read_failed(f);
    if (!st)
        st = ls__safetensors_parse(f->path, text, (size_t)length, f->data, &f->header);
    free(text);
    return st;
}

ls_status ls__safetensors_open(const char *who, const char *path, ls__safetensors *out)
{
    *out = (ls__safetensors){ .path = path };
    if (!path)
        return ls_error_pending() ? ls_error_pending()
                                  : ls__fail(LS_INVALID, "%s: the path is NULL", who);
    if (ls__path_kind_of(path) == LS__SOMETHING_ELSE)
        return ls__fail(LS_IO, "cannot read '%s': it is there, and no file", path);
    ls_status st = ls__packed_open(&out->file, path, LS__PLAIN);
    return st ? st : read_header(out);
}

void ls__safetensors_close(ls__safetensors *f)
{
    if (f->file.open)
        ls__packed_close(&f->file);
    ls__safetensors_header_free(&f->header);
}

const char *ls__safetensors_note_of(const ls__safetensors *f, const char *key)
{
    return json_string_value(json_object_get(f->header.notes, key));
}

/* ---- data ---------------------------------------------------------------------------------------- */

static ls_status read_summed(ls__safetensors *f, void *to, size_t bytes, uint32_t *sum)
{
    for (char *at = to; bytes > 0;) {
        size_t run = bytes < AT_ONCE ? bytes : AT_ONCE;
        if (ls__packed_read(&f->file, at, run) != run)
            return read_failed(f);
        *sum = ls__crc32c(*sum, at, run);
        at += run;
        bytes -= run;
    }
    return LS_OK;
}

static ls_status check_sum(const ls__safetensors *f, uint32_t sum)
{
    if (!f->header.summed || sum == f->header.data_sum)
        return LS_OK;
    return ls__hint(
        ls__fail(LS_CORRUPT, "'%s' is damaged: the checksum of its data is wrong", f->path),
        "write or fetch it again");
}

ls_status ls__safetensors_check(ls__safetensors *f)
{
    uint32_t sum = 0;
    ls_status st = LS_OK;
    char *buffer = malloc(AT_ONCE);
    if (!buffer)
        return ls__fail_memory(f->path, AT_ONCE);
    for (uint64_t left = f->data; left > 0 && !st;) {
        size_t run = left < AT_ONCE ? (size_t)left : AT_ONCE;
        st = read_summed(f, buffer, run, &sum);
        left -= run;
    }
    free(buffer);
    return st ? st : check_sum(f, sum);
}

/* Where the file's elements are not as the tensor's. */
static ls_status read_widened(ls__safetensors *f, const ls__safetensors_entry *e, char *to,
                              uint32_t *sum)
{
    enum { BLOCK = 4096 };
    _Alignas(8) unsigned char raw[BLOCK * 8];
    const ls__npy_type *type = &e->type->type;
    for (int64_t done = 0, count = ls__spec_count(&e->spec); done < count;) {
        const size_t n = count - done < BLOCK ? (size_t)(count - done) : BLOCK;
        ls_status st = read_summed(f, raw, n * type->bytes, sum);
        if (st)
            return st;
        if (ls__npy_widen(type, raw, n, to + (size_t)done * ls_dtype_size(type->dtype)) < n)
            return ls__fail(LS_SHAPE, "'%s': tensor '%.100s' has numbers that no i64 can be",
                            f->path, e->name);
        done += (int64_t)n;
    }
    return LS_OK;
}

static ls_value *read_tensor(ls__safetensors *f, const ls__safetensors_entry *e, uint32_t *sum)
{
    const ls__npy_type *type = &e->type->type;
    const bool as_it_is = type->bytes == ls_dtype_size(type->dtype) && type->kind != 'b' &&
                          !(type->kind == 'u' && type->bytes == 8);
    ls_tensor *t = ls__tensor_new("ls_safetensors_read", &e->spec);
    if (!t)
        return NULL;
    ls_status st = as_it_is ? read_summed(f, ls__data(t), (size_t)(e->end - e->begin), sum)
                            : read_widened(f, e, ls__data(t), sum);
    return st ? NULL : ls_leaf(t);
}

typedef struct named {
    const char *key;
    ls_value *item;
} named;

static int by_key(const void *a, const void *b)
{
    return strcmp(((const named *)a)->key, ((const named *)b)->key);
}

static ls_value *read_all(ls__safetensors *f)
{
    const size_t n = (size_t)f->header.count;
    named *all = ls__frame_alloc((n + 1) * sizeof *all);
    const char **keys = ls__frame_alloc((n + 1) * sizeof *keys);
    ls_value **items = ls__frame_alloc((n + 1) * sizeof *items);
    uint32_t sum = 0;
    if (!all || !keys || !items)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        const ls__safetensors_entry *e = &f->header.entries[i];
        all[i] = (named){ e->name, read_tensor(f, e, &sum) };
        if (!all[i].item)
            return NULL;
    }
    if (check_sum(f, sum))
        return NULL;
    qsort(all, n, sizeof *all, by_key); /* so that the dict is made in one go */
    for (size_t i = 0; i < n; i++) {
        keys[i] = all[i].key;
        items[i] = all[i].item;
    }
    return ls_dict((int)n, keys, items);
}

ls_value *ls__safetensors_tensors(ls__safetensors *f)
{
    ls_value *out = NULL;
    LS_FRAME { /* half a file goes at once */
        ls_value *all = read_all(f);
        if (all)
            out = ls_value_hand_up(all);
    }
    return out;
}

/* ---- as programs see them ------------------------------------------------------------------------ */

ls_value *ls_safetensors_read(const char *path)
{
    ls__safetensors f;
    ls_value *all = NULL;
    if (!ls__safetensors_open("ls_safetensors_read", path, &f))
        all = ls__safetensors_tensors(&f);
    ls__safetensors_close(&f);
    return all;
}

const char *ls_safetensors_note(const char *path, const char *key)
{
    ls__safetensors f;
    const char *text = NULL;
    ls_status st = ls__safetensors_open("ls_safetensors_note", path, &f);
    if (!st && !key)
        st = ls__fail(LS_INVALID, "ls_safetensors_note: the key is NULL");
    const char *found = st ? NULL : ls__safetensors_note_of(&f, key);
    if (found)
        text = ls__frame_string(found);
    ls__safetensors_close(&f);
    return text;
}
