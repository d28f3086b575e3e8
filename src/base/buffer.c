/*
 * The growing buffer. Invariant: `used` never exceeds `room`; once `failed`, it stays as it is.
 */
#include "base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

static bool make_room(ls__buffer *b, size_t count)
{
    if (b->failed)
        return false;
    if (count <= b->room - b->used)
        return true;
    size_t room = b->room * 2 + count + 256;
    char *at = room > count ? realloc(b->at, room) : NULL;
    if (!at) {
        b->failed = true;
        return false;
    }
    b->at = at;
    b->room = room;
    return true;
}

void ls__buffer_add(ls__buffer *b, const void *bytes, size_t count)
{
    if (count == 0 || !make_room(b, count))
        return;
    memcpy(b->at + b->used, bytes, count);
    b->used += count;
}

void ls__buffer_print(ls__buffer *b, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    if (length >= 0 && make_room(b, (size_t)length + 1)) {
        vsnprintf(b->at + b->used, (size_t)length + 1, format, again);
        b->used += (size_t)length;
    }
    va_end(again);
    va_end(args);
}

void ls__buffer_insert(ls__buffer *b, size_t at, const void *bytes, size_t count)
{
    if (count == 0 || !make_room(b, count))
        return;
    memmove(b->at + at + count, b->at + at, b->used - at);
    memcpy(b->at + at, bytes, count);
    b->used += count;
}

char *ls__buffer_end(ls__buffer *b, const char *what, size_t *size)
{
    char *at = NULL;
    if (make_room(b, 1)) {
        b->at[b->used] = '\0';
        at = b->at;
        if (size)
            *size = b->used;
    } else {
        ls__fail_memory(what, b->room);
        free(b->at);
    }
    *b = (ls__buffer){ 0 };
    return at;
}

void ls__buffer_free(ls__buffer *b)
{
    free(b->at);
    *b = (ls__buffer){ 0 };
}
