/*
 * ls_make_example: a dict as a serialised tf.train.Example (data/example_wire.h has the format).
 * Numbers are packed, features come in the order of the dict, which is that of their keys: the bytes
 * are those of protobuf's own deterministic writer.
 *
 * A message has its length in front. So sizes are worked out from the inside, and then all is
 * written from the front in one go; size_ and put_ functions stand side by side and must agree.
 */
#include <lockstep/records.h>

#include <string.h>

#include "data/example_wire.h"
#include "data/wire_write.h"
#include "tensor/convert.h"
#include "tensor/tensor.h"
#include "tensor/value.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "floats are copied to the wire");

#define MOST_BYTES ((size_t)INT32_MAX) /* that protobuf reads */

static ls__list_kind kind_of(ls_dtype dtype)
{
    if (dtype == LS_BYTES)
        return LS__BYTES_LIST;
    return ls_dtype_is_float(dtype) ? LS__FLOAT_LIST : LS__INT64_LIST;
}

/* ---- numbers and messages ----------------------------------------------------------------------- */

/* A field below 16 of so many bytes, with its tag and length. */
static size_t size_field(size_t bytes)
{
    return 1 + ls__varint_size(bytes) + bytes;
}

static uint8_t *put_head(uint8_t *to, uint32_t field, size_t bytes)
{
    *to++ = (uint8_t)LS__WIRE_TAG(field, LS__WIRE_BYTES);
    return ls__varint_put(to, bytes);
}

static uint8_t *put_field(uint8_t *to, uint32_t field, const void *data, size_t bytes)
{
    to = put_head(to, field, bytes);
    if (bytes > 0)
        memcpy(to, data, bytes);
    return to + bytes;
}

/* ---- lists --------------------------------------------------------------------------------------- */

/* Of packed numbers, without tag and length. */
static size_t size_packed(const ls_tensor *t)
{
    int64_t count = ls__spec_count(&t->spec);
    size_t bytes = 0;
    if (kind_of(t->spec.dtype) == LS__FLOAT_LIST)
        return (size_t)count * sizeof(float);
    for (int64_t i = 0; i < count; i++)
        bytes += ls__varint_size((uint64_t)ls__load_int(t->spec.dtype, ls__data(t), i));
    return bytes;
}

static size_t size_list(const ls_tensor *t)
{
    if (t->spec.dtype != LS_BYTES) {
        size_t packed = size_packed(t);
        return packed > 0 ? size_field(packed) : 0;
    }
    const ls__string *strings = ls__data(t);
    int64_t count = ls__spec_count(&t->spec);
    size_t bytes = 0;
    for (int64_t i = 0; i < count && bytes <= MOST_BYTES; i++)
        bytes += strings[i].length <= MOST_BYTES ? size_field(strings[i].length) : MOST_BYTES;
    return bytes;
}

static uint8_t *put_number(uint8_t *to, const ls_tensor *t, int64_t i)
{
    if (kind_of(t->spec.dtype) == LS__INT64_LIST)
        return ls__varint_put(to, (uint64_t)ls__load_int(t->spec.dtype, ls__data(t), i));
    float number = (float)ls__load_double(t->spec.dtype, ls__data(t), i);
    memcpy(to, &number, sizeof number);
    return to + sizeof number;
}

static uint8_t *put_list(uint8_t *to, const ls_tensor *t)
{
    int64_t count = ls__spec_count(&t->spec);
    if (t->spec.dtype == LS_BYTES) {
        const ls__string *strings = ls__data(t);
        for (int64_t i = 0; i < count; i++)
            to = put_field(to, 1, strings[i].data, strings[i].length);
        return to;
    }
    if (t->spec.dtype == LS_F32 && count > 0) /* every bit of a NaN, too */
        return put_field(to, 1, ls__data(t), size_packed(t));
    if (count > 0)
        to = put_head(to, 1, size_packed(t));
    for (int64_t i = 0; i < count; i++)
        to = put_number(to, t, i);
    return to;
}

/* ---- features -------------------------------------------------------------------------------------- */

static size_t size_entry(const char *key, const ls_tensor *t)
{
    return size_field(strlen(key)) + size_field(size_field(size_list(t)));
}

static uint8_t *put_entry(uint8_t *to, const char *key, const ls_tensor *t)
{
    size_t list = size_list(t);
    to = put_field(to, 1, key, strlen(key));
    to = put_head(to, 2, size_field(list));
    to = put_head(to, (uint32_t)kind_of(t->spec.dtype), list);
    return put_list(to, t);
}

static ls_status check_leaf(const char *key, const ls_value *v)
{
    if (ls_kind_of(v) != LS_LEAF)
        return ls__hint(ls__fail(LS_INVALID, "ls_make_example: '%s' is a %s", key,
                                 ls__value_kind_name(ls_kind_of(v))),
                        "a feature is a tensor");
    const ls_tensor *t = ls_leaf_tensor(v);
    if (!t)
        return ls_error_pending();
    if (t->storage->symbol)
        return ls__hint(ls__fail(LS_STATE, "ls_make_example: '%s' in a traced step", key),
                        "its value is known when the step is replayed: return it from there");
    if (t->sparse_rows)
        return ls__hint(ls__fail(LS_SHAPE, "ls_make_example: '%s' is sparse", key),
                        "use ls_densify");
    return LS_OK;
}

/* The bytes of all entries. */
static ls_status size_features(const ls_value *features, size_t *out)
{
    ls_status st = ls__check_value("ls_make_example", features);
    if (!st && ls_kind_of(features) != LS_DICT)
        st = ls__fail(LS_INVALID, "ls_make_example: wants a dict, got a %s",
                      ls__value_kind_name(ls_kind_of(features)));
    *out = 0;
    for (int i = 0; !st && i < ls_length(features); i++) {
        st = check_leaf(ls_key(features, i), ls_child(features, i));
        if (!st)
            *out += size_field(size_entry(ls_key(features, i), ls_item(features, i)));
        if (!st && *out > MOST_BYTES)
            st = ls__hint(ls__fail(LS_INVALID, "ls_make_example: more than 2 GiB with '%s'",
                                   ls_key(features, i)),
                          "protobuf reads no larger message");
    }
    return st;
}

ls_tensor *ls_make_example(const ls_value *features)
{
    size_t inside;
    if (size_features(features, &inside))
        return NULL;
    size_t length = size_field(inside);
    ls__spec spec = { .dtype = LS_BYTES };
    ls__storage *storage = ls__storage_new("ls_make_example", sizeof(ls__string) + length + 1);
    if (!storage)
        return NULL;
    ls__string *string = storage->data;
    uint8_t *text = (uint8_t *)(string + 1);
    *string = (ls__string){ text, length };
    uint8_t *to = put_head(text, 1, inside);
    for (int i = 0; i < ls_length(features); i++) {
        const char *key = ls_key(features, i);
        const ls_tensor *t = ls_item(features, i);
        to = put_head(to, 1, size_entry(key, t));
        to = put_entry(to, key, t);
    }
    *to = '\0';
    return ls__handle(&spec, storage, ls__new_id(), ls__device_current());
}
