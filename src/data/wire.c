/*
 * The less common ways through a protobuf message. Invariant: w->at never passes `end`, and what
 * is deep in the input is no deeper on our stack.
 */
#include "data/wire.h"

enum { DEEPEST = 100 }; /* groups in groups, as protobuf's own readers take */

bool ls__wire_long_varint(ls__wire *w, const uint8_t *end, uint64_t *out)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        if (w->at == end)
            return ls__wire_bad(w, "a number is cut off");
        uint64_t byte = *w->at++;
        value |= (byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = value;
            return true;
        }
    }
    return ls__wire_bad(w, "a number has more than 10 bytes");
}

bool ls__wire_long_tag(ls__wire *w, const uint8_t *end, uint32_t *out)
{
    const uint8_t *begin = w->at;
    uint64_t tag;
    if (!ls__wire_long_varint(w, end, &tag))
        return false;
    if (w->at - begin > 5 || tag > UINT32_MAX || tag >> 3 == 0) {
        w->at = begin;
        return ls__wire_bad(w, "no field has such a number");
    }
    *out = (uint32_t)tag;
    return true;
}

static bool skip_bytes(ls__wire *w, const uint8_t *end, size_t n)
{
    if ((size_t)(end - w->at) < n)
        return ls__wire_bad(w, "a number is cut off");
    w->at += n;
    return true;
}

static bool skip_plain(ls__wire *w, const uint8_t *end, uint32_t type)
{
    uint64_t number;
    const uint8_t *inner;
    switch (type) {
    case LS__WIRE_VARINT:
        return ls__wire_varint(w, end, &number);
    case LS__WIRE_FIXED64:
        return skip_bytes(w, end, 8);
    case LS__WIRE_FIXED32:
        return skip_bytes(w, end, 4);
    case LS__WIRE_BYTES:
        if (!ls__wire_length(w, end, &inner))
            return false;
        w->at = inner;
        return true;
    case LS__WIRE_GROUP_END:
        return ls__wire_bad(w, "a group ends that did not begin");
    default:
        return ls__wire_bad(w, "no field has such a type");
    }
}

static bool skip_group(ls__wire *w, const uint8_t *end, uint32_t tag)
{
    uint32_t open[DEEPEST] = { tag >> 3 };
    int depth = 1;
    while (depth > 0) {
        if (w->at == end)
            return ls__wire_bad(w, "a group is cut off");
        if (!ls__wire_tag(w, end, &tag))
            return false;
        uint32_t type = tag & 7;
        if (type == LS__WIRE_GROUP) {
            if (depth == DEEPEST)
                return ls__wire_bad(w, "groups are more than 100 deep");
            open[depth++] = tag >> 3;
        } else if (type == LS__WIRE_GROUP_END) {
            if (open[--depth] != tag >> 3)
                return ls__wire_bad(w, "a group ends that did not begin");
        } else if (!skip_plain(w, end, type)) {
            return false;
        }
    }
    return true;
}

bool ls__wire_skip(ls__wire *w, const uint8_t *end, uint32_t tag)
{
    uint32_t type = tag & 7;
    return type == LS__WIRE_GROUP ? skip_group(w, end, tag) : skip_plain(w, end, type);
}
