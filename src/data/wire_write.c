/*
 * Writing protobuf's wire format. A message has its length in front, which is known at its end: it is
 * put in then, and what is in the message moves on by those few bytes. So a byte moves as often as
 * it lies deep, which is nothing for what is written here (make_example.c, which writes
 * pictures, works sizes out first).
 */
#include "data/wire_write.h"

#include <string.h>

#include "data/wire.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "floats are copied to the wire");

static void put_number(ls__buffer *b, uint64_t value)
{
    uint8_t bytes[10];
    ls__buffer_add(b, bytes, (size_t)(ls__varint_put(bytes, value) - bytes));
}

void ls__wire_put_varint(ls__buffer *b, uint32_t field, uint64_t value)
{
    put_number(b, LS__WIRE_TAG(field, LS__WIRE_VARINT));
    put_number(b, value);
}

void ls__wire_put_float(ls__buffer *b, uint32_t field, float value)
{
    put_number(b, LS__WIRE_TAG(field, LS__WIRE_FIXED32));
    ls__buffer_add(b, &value, sizeof value);
}

void ls__wire_put_double(ls__buffer *b, uint32_t field, double value)
{
    put_number(b, LS__WIRE_TAG(field, LS__WIRE_FIXED64));
    ls__buffer_add(b, &value, sizeof value);
}

void ls__wire_put_bytes(ls__buffer *b, uint32_t field, const void *data, size_t bytes)
{
    put_number(b, LS__WIRE_TAG(field, LS__WIRE_BYTES));
    put_number(b, bytes);
    ls__buffer_add(b, data, bytes);
}

void ls__wire_put_string(ls__buffer *b, uint32_t field, const char *text)
{
    ls__wire_put_bytes(b, field, text, strlen(text));
}

size_t ls__wire_begin(ls__buffer *b, uint32_t field)
{
    put_number(b, LS__WIRE_TAG(field, LS__WIRE_BYTES));
    return b->used;
}

void ls__wire_end(ls__buffer *b, size_t begun)
{
    uint8_t length[10];
    size_t bytes = (size_t)(ls__varint_put(length, b->used - begun) - length);
    ls__buffer_insert(b, begun, length, bytes);
}
