/*
 * Writing safetensors files. The header needs the checksum of the data, so the tensors are gone through
 * twice: summed, then written, from where they lie. Large elements come first, so that each is
 * aligned. Invariant: the file has its name when all of it is on the disk (os/writer.h).
 */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/utf8.h"
#include "data/crc32c.h"
#include "os/writer.h"
#include "tensor/tensor.h"
#include "tensor/value.h"
#include "train/safetensors.h"

static const char *const who = "ls_safetensors_write";

typedef struct entry {
    const char *key;
    ls_tensor *tensor;
} entry;

/* ---- what is given ------------------------------------------------------------------------------- */

static ls_status take_entry(const ls_value *tensors, int i, entry *out)
{
    const ls_value *child = ls_child(tensors, i);
    out->key = ls_key(tensors, i);
    if (strcmp(out->key, "__metadata__") == 0)
        return ls__fail(LS_INVALID, "%s: a tensor of the name '__metadata__', which is the notes'",
                        who);
    if (ls_kind_of(child) != LS_LEAF)
        return ls__hint(ls__fail(LS_INVALID, "%s: '%s' is no tensor but a nest", who, out->key),
                        "give a flat dict of tensors");
    out->tensor = ls_leaf_tensor(child);
    ls_status st = out->tensor ? LS_OK : ls_error_pending();
    if (!st)
        st = ls__check_tensor(who, out->key, out->tensor);
    if (st)
        return st;
    if (out->tensor->storage->symbol)
        return ls__hint(
            ls__fail(LS_STATE, "%s: '%s' has no value while a step is traced", who, out->key),
            "write files outside of the traced function");
    if (out->tensor->spec.dtype == LS_BYTES || out->tensor->sparse_rows)
        return ls__fail(LS_SHAPE, "%s: '%s' is %s; wants a dense tensor of numbers", who, out->key,
                        out->tensor->sparse_rows ? "sparse" : ls_describe(out->tensor));
    return LS_OK;
}

/* Larger elements first, then by name. */
static int by_size(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    size_t bx = ls_dtype_size(x->tensor->spec.dtype), by = ls_dtype_size(y->tensor->spec.dtype);
    return bx != by ? (bx > by ? -1 : 1) : strcmp(x->key, y->key);
}

/* NULL: an error is recorded. */
static entry *take_entries(const ls_value *tensors, int *count)
{
    if (ls_kind_of(tensors) != LS_DICT) {
        if (!ls_error_pending())
            ls__hint(
                ls__fail(LS_INVALID, "%s: the tensors are %s", who, tensors ? "no dict" : "NULL"),
                "give a dict from names to tensors");
        return NULL;
    }
    const int n = ls_length(tensors);
    entry *all = ls__frame_alloc(((size_t)n + 1) * sizeof *all);
    for (int i = 0; all && i < n; i++)
        if (take_entry(tensors, i, &all[i]))
            return NULL;
    if (all)
        qsort(all, (size_t)n, sizeof *all, by_size);
    *count = n;
    return all;
}

/* ---- the header ---------------------------------------------------------------------------------- */

static ls_status check_text(const char *what, const char *text)
{
    const size_t good = ls__utf8_good(text);
    if (!text[good])
        return LS_OK;
    return ls__hint(ls__fail(LS_INVALID, "%s: %s '%.*s' is no UTF-8 from byte %zu on", who, what,
                             (int)(good < 100 ? good : 100), text, good),
                    "names and notes are texts in UTF-8");
}

static ls_status put_notes(json_t *to, int n, const ls_note *notes)
{
    if (n < 0 || (n > 0 && !notes))
        return ls__fail(LS_INVALID, "%s: %d notes in %s", who, n, notes ? "a list" : "NULL");
    for (int i = 0; i < n; i++) {
        if (!notes[i].key || !notes[i].text)
            return ls__fail(LS_INVALID, "%s: the %s of note %d is NULL", who,
                            notes[i].key ? "text" : "key", i);
        if (strcmp(notes[i].key, LS__SAFETENSORS_SUMS) == 0)
            return ls__fail(LS_INVALID, "%s: the note '%s' is the checksum's", who, notes[i].key);
        if (json_object_get(to, notes[i].key))
            return ls__fail(LS_INVALID, "%s: two notes '%s'", who, notes[i].key);
        ls_status st = check_text("the key of a note", notes[i].key);
        if (!st)
            st = check_text("the text of a note", notes[i].text);
        if (!st && json_object_set_new(to, notes[i].key, json_string(notes[i].text)))
            st = ls__fail_memory(who, strlen(notes[i].text));
        if (st)
            return st;
    }
    return LS_OK;
}

static ls_status put_entries(json_t *to, int n, const entry *all)
{
    json_int_t at = 0;
    for (int i = 0; i < n; i++) {
        const ls__spec *spec = &all[i].tensor->spec;
        json_int_t end = at + (json_int_t)ls__spec_bytes(spec);
        json_t *shape = json_array();
        for (int d = 0; d < spec->rank; d++)
            json_array_append_new(shape, json_integer(spec->dims[d]));
        json_t *info =
            json_pack("{s:s, s:o, s:[I, I]}", "dtype", ls__safetensors_type_of(spec->dtype)->name,
                      "shape", shape, "data_offsets", at, end);
        ls_status st = check_text("the name", all[i].key);
        if (!st && (json_array_size(json_object_get(info, "shape")) != (size_t)spec->rank ||
                    json_object_set(to, all[i].key, info)))
            st = ls__fail_memory(who, 256);
        json_decref(info);
        if (st)
            return st;
        at = end;
    }
    return LS_OK;
}

/* The texts of two objects as one header, its sums zeros. */
static char *join(const char *notes, const char *tensors, size_t *length)
{
    const char *const zeros = "00000000 00000000";
    const size_t n = strlen(notes) + strlen(tensors) + 100;
    char *text = malloc(n);
    if (!text)
        return NULL;
    /* Both begin with {, which is there; one without members is closed at once. */
    char *end = stpcpy(stpcpy(stpcpy(text, LS__SAFETENSORS_BEGIN), zeros), "\"");
    end = stpcpy(stpcpy(end, notes[1] == '}' ? "" : ","), notes + 1);
    end = stpcpy(stpcpy(end, tensors[1] == '}' ? "" : ","), tensors + 1);
    *length = (size_t)(end - text);
    while (*length % 8 > 0)
        text[(*length)++] = ' ';
    return text;
}

static char *header_of(int n, const entry *all, int n_notes, const ls_note *notes, size_t *length)
{
    json_t *about = json_object(), *tensors = json_object();
    char *first = NULL, *second = NULL, *text = NULL;
    ls_status st = about && tensors ? put_notes(about, n_notes, notes) : LS_NO_MEMORY;
    if (!st)
        st = put_entries(tensors, n, all);
    if (!st) {
        first = json_dumps(about, JSON_COMPACT);
        second = json_dumps(tensors, JSON_COMPACT);
        text = first && second ? join(first, second, length) : NULL;
    }
    if (!text && !ls_error_pending())
        ls__fail_memory(who, 256);
    json_decref(about);
    json_decref(tensors);
    free(first);
    free(second);
    return text;
}

static void put_sum(char *at, uint32_t sum)
{
    for (int i = 0; i < 8; i++)
        at[i] = "0123456789abcdef"[sum >> (28 - 4 * i) & 15];
}

/* ---- the file ------------------------------------------------------------------------------------ */

static ls_status write_file(const char *path, int n, const entry *all, char *header, size_t length)
{
    unsigned char front[8];
    uint32_t sum = 0;
    for (int i = 0; i < n; i++)
        sum = ls__crc32c(sum, ls__data(all[i].tensor), ls__spec_bytes(&all[i].tensor->spec));
    for (int i = 0; i < 8; i++)
        front[i] = (unsigned char)((uint64_t)length >> (8 * i));
    put_sum(header + LS__SAFETENSORS_SUMS_AT + 9, sum);
    put_sum(header + LS__SAFETENSORS_SUMS_AT, ls__crc32c(ls__crc32c(0, front, 8), header, length));
    ls__writer *w = NULL;
    ls_status st = ls__writer_open(path, LS__PLAIN, &w);
    if (st)
        return st;
    st = ls__writer_put(w, front, 8);
    if (!st)
        st = ls__writer_put(w, header, length);
    for (int i = 0; i < n && !st; i++)
        st = ls__writer_put(w, ls__data(all[i].tensor), ls__spec_bytes(&all[i].tensor->spec));
    if (!st)
        return ls__writer_close(w);
    ls__writer_discard(w);
    return st;
}

ls_status ls_safetensors_write(const char *path, ls_value *tensors, int n_notes,
                               const ls_note *notes)
{
    ls_status st = LS_OK;
    LS_FRAME {
        int n = 0;
        size_t length = 0;
        const entry *all = take_entries(tensors, &n);
        char *header = all ? header_of(n, all, n_notes, notes, &length) : NULL;
        if (header && length > LS__SAFETENSORS_MOST_HEADER)
            st = ls__fail(LS_INVALID, "%s: a header of %zu bytes; the format ends at %llu", who,
                          length, (unsigned long long)LS__SAFETENSORS_MOST_HEADER);
        else
            st = header ? write_file(path, n, all, header, length) : ls_error_pending();
        free(header);
    }
    return st;
}
