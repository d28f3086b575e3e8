/*
 * Signatures: a walk over the arguments that writes down all a trace depends on.
 */
#include "trace/signature.h"

#include <stdio.h>
#include <string.h>

#include "dispatch/context.h"
#include "kernels/threads.h"
#include "tensor/tensor.h"
#include "tensor/value.h"

static ls_status put(ls__signature *s, const void *from, size_t bytes)
{
    if (s->size + bytes > s->room) {
        size_t room = 2 * (s->room + bytes);
        unsigned char *more = ls__frame_alloc(room);
        if (!more)
            return LS_NO_MEMORY;
        memcpy(more, s->bytes, s->size);
        s->bytes = more;
        s->room = room;
    }
    memcpy(s->bytes + s->size, from, bytes);
    s->size += bytes;
    return LS_OK;
}

ls_status ls__signature_number(ls__signature *s, int64_t number)
{
    return put(s, &number, sizeof number);
}

static ls_status put_tensor(ls__signature *s, const ls_tensor *t, bool with_device)
{
    const ls__spec *spec = &t->spec;
    ls_status st = with_device ? put(s, &t->device, sizeof t->device) : LS_OK;
    if (!st)
        st =
            ls__signature_number(s, spec->dtype | spec->rank << 8 | (t->sparse_rows ? 1 << 16 : 0));
    if (!st)
        st = put(s, spec->dims, sizeof *spec->dims * (size_t)spec->rank);
    return st || !t->sparse_rows ? st : put_tensor(s, t->sparse_rows, with_device);
}

static ls_status put_leaf(ls__signature *s, const ls_value *leaf, bool with_devices)
{
    const void *object = ls__leaf_object(leaf);
    ls_status st = ls__signature_number(s, ls_spread_of(leaf) | (object ? 1 << 8 : 0));
    if (object)
        return st ? st : ls__signature_number(s, (int64_t)ls__leaf_serial(leaf));
    for (int i = 0; i < ls_components(leaf) && !st; i++)
        st = put_tensor(s, ls__leaf_component(leaf, i), with_devices);
    return st;
}

ls_status ls__signature_value(ls__signature *s, const ls_value *v, bool with_devices)
{
    ls_value_kind kind = ls_kind_of(v);
    ls_status st = ls__signature_number(s, kind);
    if (kind == LS_LEAF)
        return st ? st : put_leaf(s, v, with_devices);
    int n = ls_length(v);
    if (!st)
        st = ls__signature_number(s, n);
    for (int i = 0; i < n && !st; i++) {
        if (kind == LS_DICT)
            st = put(s, ls_key(v, i), strlen(ls_key(v, i)) + 1);
        if (!st)
            st = ls__signature_value(s, ls_child(v, i), with_devices);
    }
    return st;
}

void ls__signature_begin(ls__signature *s)
{
    s->bytes = s->few;
    s->size = 0;
    s->room = sizeof s->few;
}

ls_status ls__signature_of(const ls_value *arguments, ls__signature *out)
{
    ls__signature_begin(out);
    ls__device *device = ls__device_current();
    ls_status st = put(out, &device, sizeof device);
    if (!st)
        st = ls__signature_number(out, ls__replica());
    if (!st)
        st = ls__signature_number(out, ls__numerics());
    if (!st)
        st = ls__signature_number(out, ls__kernel_threads_get());
    return st ? st : ls__signature_value(out, arguments, true);
}

const char *ls__signature_text(const ls_value *arguments)
{
    enum { ROOM = 240 };
    char *text = ls__frame_alloc(ROOM);
    int n = ls_leaf_count(arguments), at = 1;
    const ls_value **leaves = ls__frame_alloc(sizeof *leaves * (size_t)(n + 1));
    if (!text || !leaves)
        return "(?)";
    ls__leaves(arguments, leaves);
    text[0] = '(';
    for (int i = 0; i < n && at < ROOM - 64; i++)
        at += snprintf(text + at, (size_t)(ROOM - at), "%s%s", i ? ", " : "",
                       i > 5 ? "..." : ls_describe(ls__leaf_component(leaves[i], 0)));
    snprintf(text + at, (size_t)(ROOM - at), ")");
    return text;
}
