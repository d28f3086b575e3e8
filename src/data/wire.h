/*
 * The wire format of protobuf: tags, varints, lengths, and how to pass over what one does not know.
 * Zero-copy, and bounded: every read is given the end of the message it belongs to, which lies
 * inside the end of the message around it, and never goes past it.
 *
 *     ls__wire w = { .at = begin };
 *     while (w.at < end) {
 *         uint32_t tag;
 *         if (!ls__wire_tag(&w, end, &tag))
 *             return false;                    // w.why says what is wrong at w.at
 *         if (tag == LS__WIRE_TAG(1, LS__WIRE_BYTES))
 *             ...ls__wire_length...
 *         else if (!ls__wire_skip(&w, end, tag))
 *             return false;
 *     }
 */
#ifndef LS__DATA_WIRE_H
#define LS__DATA_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ls__wire {
    const uint8_t *at; /* the next byte; after a failure about where it went wrong */
    const char *why;   /* what went wrong, for people; a literal. NULL: nothing */
} ls__wire;

enum {
    LS__WIRE_VARINT = 0,
    LS__WIRE_FIXED64 = 1,
    LS__WIRE_BYTES = 2, /* a length, then so many bytes: strings, messages, packed numbers */
    LS__WIRE_GROUP = 3,
    LS__WIRE_GROUP_END = 4,
    LS__WIRE_FIXED32 = 5,
};
#define LS__WIRE_TAG(field, type) ((uint32_t)(field) << 3 | (uint32_t)(type))

/* Notes what is wrong; false. */
static inline bool ls__wire_bad(ls__wire *w, const char *why)
{
    w->why = why;
    return false;
}

/* Passes over the field that `tag`, which was just read, began. */
bool ls__wire_skip(ls__wire *w, const uint8_t *end, uint32_t tag);

bool ls__wire_long_varint(ls__wire *w, const uint8_t *end, uint64_t *out);
bool ls__wire_long_tag(ls__wire *w, const uint8_t *end, uint32_t *out);

/* Up to 10 bytes; of the tenth only the lowest bit has room, as in protobuf. (Two bytes are quick:
 * the length of a small picture.) */
static inline bool ls__wire_varint(ls__wire *w, const uint8_t *end, uint64_t *out)
{
    const uint8_t *at = w->at;
    if (at < end && at[0] < 0x80) {
        *out = at[0];
        w->at = at + 1;
        return true;
    }
    if (end - at >= 2 && at[1] < 0x80) {
        *out = (uint64_t)at[0] - 0x80 + ((uint64_t)at[1] << 7);
        w->at = at + 2;
        return true;
    }
    return ls__wire_long_varint(w, end, out);
}

/* A field's number and type. Up to 5 bytes; no field has number 0. */
static inline bool ls__wire_tag(ls__wire *w, const uint8_t *end, uint32_t *out)
{
    if (w->at < end && *w->at < 0x80 && *w->at >= LS__WIRE_TAG(1, 0)) {
        *out = *w->at++;
        return true;
    }
    return ls__wire_long_tag(w, end, out);
}

/* Reads a length; what has it goes from w->at to *inner. */
static inline bool ls__wire_length(ls__wire *w, const uint8_t *end, const uint8_t **inner)
{
    uint64_t length;
    if (!ls__wire_varint(w, end, &length))
        return false;
    if (length > (size_t)(end - w->at))
        return ls__wire_bad(w, "a length goes past the end");
    *inner = w->at + length;
    return true;
}

#endif
