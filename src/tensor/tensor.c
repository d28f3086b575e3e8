/*
 * Tensors: making them from the outside world and reading them back.
 */
#include "tensor/tensor.h"

#include <math.h>
#include <string.h>

#include "tensor/convert.h"

uint64_t ls__new_id(void)
{
    /* Threads take ids by the thousand, so that a call costs no shared write. */
    enum { RUN = 1024 };
    static _Atomic uint64_t next_run = 1;
    static _Thread_local uint64_t next, end;
    if (next == end) {
        next = atomic_fetch_add_explicit(&next_run, RUN, memory_order_relaxed);
        end = next + RUN;
    }
    return next++;
}

ls_status ls__check_tensor(const char *who, const char *argument, const ls_tensor *t)
{
    if (t && t->live == LS__LIVE)
        return LS_OK;
    if (ls_error_pending())
        return ls_error_pending();
    if (!t)
        return ls__hint(ls__fail(LS_INVALID, "%s: %s is NULL", who, argument),
                        "give a tensor; an earlier call may have failed and its error been read");
    return ls__hint(
        ls__fail(LS_INVALID, "%s: %s is a tensor whose frame has closed", who, argument),
        "use ls_hand_up or ls_keep to take a tensor out of its frame");
}

ls_tensor *ls__tensor_new(const char *who, const ls__spec *spec)
{
    ls__device *device = ls__device_current();
    ls__storage *storage = ls__storage_new(who, ls__spec_bytes(spec));
    if (!storage)
        return NULL;
    return ls__handle(spec, storage, ls__new_id(), device);
}

ls_tensor *ls__same_value(const ls_tensor *t)
{
    ls_tensor *same = ls__handle(&t->spec, ls__storage_ref(t->storage), t->id, t->device);
    if (!same)
        return NULL;
    if (t->sparse_rows) {
        same->sparse_rows = ls__same_value(t->sparse_rows);
        if (!same->sparse_rows)
            return NULL;
    }
    return same;
}

ls_tensor *ls_import(const ls_tensor *t)
{
    return ls__check_tensor("ls_import", "t", t) ? NULL : ls__same_value(t);
}

ls_tensor *ls_from(ls_dtype dtype, int rank, const int64_t *dims, const void *data)
{
    ls__spec spec;
    if (ls__spec_make(&spec, "ls_from", dtype, rank, dims))
        return NULL;
    if (dtype == LS_BYTES) {
        ls__hint(ls__fail(LS_INVALID, "ls_from: dtype bytes"), "use ls_from_strings");
        return NULL;
    }
    size_t bytes = ls__spec_bytes(&spec);
    if (!data && bytes > 0) {
        ls__fail(LS_INVALID, "ls_from: data is NULL for %s", ls__spec_text(&spec));
        return NULL;
    }
    ls_tensor *t = ls__tensor_new("ls_from", &spec);
    if (t && bytes > 0)
        memcpy(ls__data(t), data, bytes);
    return t;
}

ls_tensor *ls_wrap(ls_dtype dtype, int rank, const int64_t *dims, void *data,
                   void (*release)(void *, void *), void *user)
{
    ls__spec spec;
    if (ls__spec_make(&spec, "ls_wrap", dtype, rank, dims))
        return NULL;
    size_t align = ls_dtype_size(dtype);
    if (align == 0) {
        ls__hint(ls__fail(LS_INVALID, "ls_wrap: dtype bytes"), "use ls_from_strings");
        return NULL;
    }
    if (!data && ls__spec_bytes(&spec) > 0) {
        ls__fail(LS_INVALID, "ls_wrap: data is NULL for %s", ls__spec_text(&spec));
        return NULL;
    }
    if ((uintptr_t)data % align != 0) {
        ls__fail(LS_INVALID, "ls_wrap: data at %p is not aligned for %s", data,
                 ls_dtype_name(dtype));
        return NULL;
    }
    ls__storage *storage = ls__storage_wrap("ls_wrap", data, NULL, user);
    ls_tensor *t = storage ? ls__handle(&spec, storage, ls__new_id(), ls__device_current()) : NULL;
    if (t)
        storage->release = release; /* last, so that a failure above releases nothing */
    return t;
}

_Static_assert(sizeof(ls__string) == 16, "LS_DTYPE_LIST says 16 bytes");

ls_tensor *ls_from_strings(int rank, const int64_t *dims, const void *const *strings,
                           const size_t *lengths)
{
    ls__spec spec;
    if (ls__spec_make(&spec, "ls_from_strings", LS_BYTES, rank, dims))
        return NULL;
    size_t count = (size_t)ls__spec_count(&spec), bytes = ls__spec_bytes(&spec);
    for (size_t i = 0; i < count; i++) {
        if (!strings || !strings[i]) {
            ls__fail(LS_INVALID, "ls_from_strings: string %zu is NULL", i);
            return NULL;
        }
        size_t length = lengths ? lengths[i] : strlen(strings[i]);
        if (__builtin_add_overflow(bytes, length, &bytes) ||
            __builtin_add_overflow(bytes, (size_t)1, &bytes)) {
            ls__fail_memory("ls_from_strings", SIZE_MAX);
            return NULL;
        }
    }
    ls__storage *storage = ls__storage_new("ls_from_strings", bytes);
    if (!storage)
        return NULL;
    ls__string *refs = storage->data;
    char *text = (char *)(refs + count);
    for (size_t i = 0; i < count; i++) {
        size_t length = lengths ? lengths[i] : strlen(strings[i]);
        memcpy(text, strings[i], length);
        text[length] = '\0';
        refs[i] = (ls__string){ text, length };
        text += length + 1;
    }
    return ls__handle(&spec, storage, ls__new_id(), ls__device_current());
}

ls_status ls_string_at(const ls_tensor *t, int64_t index, const void **data, size_t *length)
{
    ls_status st = ls__check_tensor("ls_string_at", "t", t);
    if (st)
        return st;
    if (t->spec.dtype != LS_BYTES)
        return ls__fail(LS_SHAPE, "ls_string_at: wants bytes, got %s", ls_describe(t));
    if (!data || !length)
        return ls__fail(LS_INVALID, "ls_string_at: data and length must not be NULL");
    if (index < 0 || index >= ls__spec_count(&t->spec))
        return ls__fail(LS_INVALID, "ls_string_at: element %lld of %s", (long long)index,
                        ls_describe(t));
    const ls__string *ref = (const ls__string *)ls__data(t) + index;
    *data = ref->data;
    *length = ref->length;
    return LS_OK;
}

/* ---- asking ---------------------------------------------------------------- */

ls_dtype ls_dtype_of(const ls_tensor *t)
{
    return t ? t->spec.dtype : (ls_dtype)0;
}

int ls_rank(const ls_tensor *t)
{
    return t ? t->spec.rank : 0;
}

const int64_t *ls_shape(const ls_tensor *t)
{
    return t ? t->spec.dims : NULL;
}

int64_t ls_count(const ls_tensor *t)
{
    return t ? ls__spec_count(&t->spec) : 0;
}

size_t ls_size_in_bytes(const ls_tensor *t)
{
    return t && t->spec.dtype != LS_BYTES ? ls__spec_bytes(&t->spec) : 0;
}

int64_t ls_dim(const ls_tensor *t, int axis)
{
    if (ls__check_tensor("ls_dim", "t", t))
        return -1;
    int at = ls__axis(axis, t->spec.rank);
    if (at < 0) {
        ls__hint(ls__fail(LS_INVALID, "ls_dim: axis %d of %s", axis, ls_describe(t)),
                 "axes run from %d to %d", -t->spec.rank, t->spec.rank - 1);
        return -1;
    }
    return t->spec.dims[at];
}

const char *ls_describe(const ls_tensor *t)
{
    return t ? ls__spec_text(&t->spec) : "NULL";
}

/* ---- reading --------------------------------------------------------------- */

static ls_status readable(const char *who, const ls_tensor *t)
{
    ls_status st = ls__check_tensor(who, "t", t);
    if (st)
        return st;
    if (t->storage->symbol)
        return ls__hint(
            ls__fail(LS_STATE, "%s: the value of %s is known only when the traced step is replayed",
                     who, ls_describe(t)),
            "return it from the traced function and read it there; choose between "
            "values with ls_where");
    if (t->spec.dtype == LS_BYTES)
        return ls__hint(ls__fail(LS_SHAPE, "%s: %s has no flat memory", who, ls_describe(t)),
                        "read strings with ls_string_at");
    if (t->sparse_rows)
        return ls__hint(ls__fail(LS_SHAPE, "%s: the tensor is sparse", who),
                        "use ls_densify, or ls_sparse_rows and ls_sparse_values");
    return LS_OK;
}

ls_status ls_copy_out(const ls_tensor *t, void *to, size_t bytes)
{
    ls_status st = readable("ls_copy_out", t);
    if (st)
        return st;
    size_t want = ls__spec_bytes(&t->spec);
    if (bytes != want)
        return ls__fail(LS_INVALID, "ls_copy_out: room for %zu bytes, %s has %zu", bytes,
                        ls_describe(t), want);
    if (!to && want > 0)
        return ls__fail(LS_INVALID, "ls_copy_out: `to` is NULL");
    if (want > 0)
        memcpy(to, ls__data(t), want);
    return LS_OK;
}

/* A snapshot of a variable is a view that moves when the variable is written; an
 * address given out must not. So the handle, which one thread uses, gets a copy. */
static ls_status settle(ls_tensor *t)
{
    if (!t->storage->view)
        return LS_OK;
    size_t bytes = ls__spec_bytes(&t->spec);
    ls__storage *copy = ls__storage_new("ls_data", bytes);
    if (!copy)
        return LS_NO_MEMORY;
    memcpy(copy->data, t->storage->data, bytes);
    ls__storage_unref(t->storage);
    t->storage = copy;
    return LS_OK;
}

const void *ls_data(const ls_tensor *t)
{
    return readable("ls_data", t) || settle((ls_tensor *)t) ? NULL : ls__data(t);
}

void ls_data_done(const ls_tensor *t)
{
    (void)t; /* host memory stays where it is */
}

static ls_status one_element(const char *who, const ls_tensor *t)
{
    ls_status st = readable(who, t);
    if (st)
        return st;
    if (ls__spec_count(&t->spec) != 1)
        return ls__fail(LS_SHAPE, "%s: wants one element, got %s", who, ls_describe(t));
    return LS_OK;
}

double ls_to_double(const ls_tensor *t)
{
    return one_element("ls_to_double", t) ? (double)NAN
                                          : ls__load_double(t->spec.dtype, ls__data(t), 0);
}

float ls_to_float(const ls_tensor *t)
{
    return one_element("ls_to_float", t) ? NAN
                                         : (float)ls__load_double(t->spec.dtype, ls__data(t), 0);
}

int64_t ls_to_int(const ls_tensor *t)
{
    return one_element("ls_to_int", t) ? 0 : ls__load_int(t->spec.dtype, ls__data(t), 0);
}
