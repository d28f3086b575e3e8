/*
 * The window. Invariant: buffer <= at <= end <= buffer + room, and `end` is where the file stands, so
 * what lies between buffer and end is a piece of the file whose place is known.
 */
#include "os/stream.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_KEPT = 4 << 20 }; /* of a buffer that grew, when less would do again */

/* `room` bytes of which the first are those that are left. */
static bool move_to_room(ls__stream *s, size_t room)
{
    size_t left = ls__stream_left(s);
    if (room != s->room) {
        unsigned char *other = malloc(room);
        if (!other)
            return false;
        if (left)
            memcpy(other, s->at, left);
        free(s->buffer);
        s->buffer = other;
        s->room = room;
    } else if (left && s->at != s->buffer) {
        memmove(s->buffer, s->at, left);
    }
    s->at = s->buffer;
    s->end = s->buffer + left;
    return true;
}

static void forget_buffered(ls__stream *s)
{
    s->at = s->end = s->buffer;
}

ls_status ls__stream_open(ls__stream *s, const char *path, ls__compression compression)
{
    ls__stream_close(s);
    if ((s->room == 0 || s->room > MOST_KEPT) && !move_to_room(s, LS__STREAM_BYTES))
        return ls__fail_memory(path, LS__STREAM_BYTES);
    return ls__packed_open(&s->file, path, compression);
}

void ls__stream_close(ls__stream *s)
{
    ls__packed_close(&s->file);
    forget_buffered(s);
}

void ls__stream_free(ls__stream *s)
{
    ls__packed_close(&s->file);
    free(s->buffer);
    *s = (ls__stream){ 0 };
}

/* The buffer grows as bytes come, never ahead of them: whoever asks for too much gets the end of the
 * file before the end of memory. */
static bool make_room(ls__stream *s, size_t want)
{
    size_t left = ls__stream_left(s), room = s->room;
    if (want <= LS__STREAM_BYTES && room > MOST_KEPT)
        room = LS__STREAM_BYTES;
    else if (want > room && left == room)
        room = want / 2 > room ? 2 * room : want;
    return move_to_room(s, room);
}

ls_status ls__stream_fill(ls__stream *s, size_t least)
{
    const size_t want = least > LS__STREAM_BYTES ? least : LS__STREAM_BYTES;
    size_t left;
    while ((left = ls__stream_left(s)) < least && !s->file.ended && !s->file.failed) {
        if (!make_room(s, want)) {
            s->file.failed = LS_NO_MEMORY;
            strcpy(s->file.why, "no memory for so many bytes at once");
            break;
        }
        size_t room = (s->room < want ? s->room : want) - left;
        s->end += ls__packed_read(&s->file, s->buffer + left, room);
    }
    if (left >= least)
        return LS_OK;
    return s->file.failed ? s->file.failed : LS_END;
}

ls_status ls__stream_failure(const ls__stream *s)
{
    return ls__packed_failure(&s->file);
}

bool ls__stream_can_have(const ls__stream *s, uint64_t bytes)
{
    size_t left = ls__stream_left(s);
    return bytes <= left || bytes - left <= ls__packed_can_follow(&s->file);
}

ls_status ls__stream_seek(ls__stream *s, uint64_t offset)
{
    const uint64_t first = s->file.offset - (uint64_t)(s->end - s->buffer);
    if (offset < first || offset > s->file.offset) {
        /* The byte before it, if there is one, is read: so it is known to be there. */
        ls_status st = ls__packed_seek(&s->file, offset ? offset - 1 : 0);
        if (st)
            return st;
        forget_buffered(s);
    }
    while (s->file.offset < offset) {
        forget_buffered(s);
        s->end += ls__packed_read(&s->file, s->buffer, LS__STREAM_BYTES);
        if (s->end > s->buffer)
            continue;
        if (s->file.failed)
            return ls__stream_failure(s);
        return ls__fail(LS_CORRUPT, "'%s': ends at byte %llu, before byte %llu", s->file.path,
                        (unsigned long long)s->file.offset, (unsigned long long)offset);
    }
    s->at = s->end - (s->file.offset - offset);
    return LS_OK;
}
