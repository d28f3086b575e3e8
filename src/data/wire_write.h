/*
 * Writing the wire format of protobuf (data/wire.h reads it): fields one behind the other, messages
 * in messages.
 *
 *     ls__buffer b = { 0 };
 *     ls__wire_put_varint(&b, 1, 42);                    // field 1
 *     size_t inner = ls__wire_begin(&b, 2);              // field 2, a message
 *     ls__wire_put_string(&b, 1, "name");
 *     ls__wire_end(&b, inner);                           // its length is known now
 *
 * A field that has its default (zero, "") may be left out, and protobuf's own writers leave it out;
 * here that is the caller's choice. Knows no messages: who writes one has their numbers of fields.
 */
#ifndef LS__DATA_WIRE_WRITE_H
#define LS__DATA_WIRE_WRITE_H

#include <stdint.h>

#include "base/buffer.h"

/* Bytes of a varint, up to 10. */
static inline size_t ls__varint_size(uint64_t value)
{
    size_t bytes = 1;
    for (; value >= 0x80; value >>= 7)
        bytes++;
    return bytes;
}

/* Writes one; the byte behind it. */
static inline uint8_t *ls__varint_put(uint8_t *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *to++ = (uint8_t)(value | 0x80);
    *to++ = (uint8_t)value;
    return to;
}

void ls__wire_put_varint(ls__buffer *b, uint32_t field, uint64_t value);
void ls__wire_put_float(ls__buffer *b, uint32_t field, float value);
void ls__wire_put_double(ls__buffer *b, uint32_t field, double value);
void ls__wire_put_bytes(ls__buffer *b, uint32_t field, const void *data, size_t bytes);
void ls__wire_put_string(ls__buffer *b, uint32_t field, const char *text);

/* Begins a message; what it gives goes to ls__wire_end. They nest. */
size_t ls__wire_begin(ls__buffer *b, uint32_t field);
void ls__wire_end(ls__buffer *b, size_t begun);

#endif
