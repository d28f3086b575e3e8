/*
 * A file as a window that moves along it: bytes are read in large pieces into one buffer, looked at
 * there and taken. The buffer is small enough to stay in a core's own cache between being
 * read, checked and copied to where the bytes belong.
 *
 *     while ((st = ls__stream_fill(&s, 12)) == LS_OK) {     // or LS_END, or why not
 *         look at s.at[0] to s.at[11];
 *         s.at += 12;
 *     }
 */
#ifndef LS__OS_STREAM_H
#define LS__OS_STREAM_H

#include "os/packed.h"

enum { LS__STREAM_BYTES = 256 << 10 }; /* of the buffer, unless somebody asks for more at once */

/* Starts as zeros. */
typedef struct ls__stream {
    const unsigned char *at, *end; /* bytes that are there, from the position on */
    unsigned char *buffer;
    size_t room; /* of the buffer */
    ls__packed file;
} ls__stream;

/* Closes the file that was open, and keeps the buffer. */
ls_status ls__stream_open(ls__stream *s, const char *path, ls__compression compression);
void ls__stream_close(ls__stream *s);
void ls__stream_free(ls__stream *s); /* the buffer, too */

static inline size_t ls__stream_left(const ls__stream *s)
{
    return (size_t)(s->end - s->at);
}

/* The position: bytes from the file's beginning, unpacked. */
static inline uint64_t ls__stream_offset(const ls__stream *s)
{
    return s->file.offset - ls__stream_left(s);
}

/* Reads until `least` bytes are there; those from the position on move, others go. LS_END: the file
 * ends before, and all that is left is there. Any other status is why no more could be read; it
 * is not recorded yet (ls__stream_failure does), and what came before is there. */
ls_status ls__stream_fill(ls__stream *s, size_t least);
ls_status ls__stream_failure(const ls__stream *s);

/* Whether `bytes` can be left, by the file's size. A length that is written in a file is asked about
 * here before it is believed. */
bool ls__stream_can_have(const ls__stream *s, uint64_t bytes);

/* Goes to a byte; packed files are read again from the beginning to go back. LS_CORRUPT: the file ends
 * before. */
ls_status ls__stream_seek(ls__stream *s, uint64_t offset);

#endif
