/*
 * How a file is made of records: what TFRecord files, lines and records of a fixed length differ in.
 * A framing knows the bytes of one file and nothing of datasets; file_records.h makes stages of it.
 */
#ifndef LS__DATA_FRAMING_H
#define LS__DATA_FRAMING_H

#include <stdint.h>

#include "os/stream.h"

/* A record, where it lies in the stream's buffer, and the byte of the file that follows it. */
typedef struct ls__record {
    const unsigned char *data;
    size_t bytes;
    uint64_t after;
} ls__record;

/* What is wrong with a file. It is described and not recorded: records may be left out. */
typedef struct ls__damage {
    uint64_t offset; /* where */
    bool rest;       /* nothing that follows in this file can be found */
    char what[160];
    const char *hint; /* or NULL */
} ls__damage;

/* Numbers of a framing. */
typedef struct ls__frame_sizes {
    uint64_t record, header, footer; /* bytes, of records of a fixed length */
    uint64_t longest;                /* that a line may be */
} ls__frame_sizes;

typedef struct ls__framing {
    /* Goes from a file's beginning to its first record. NULL: it is there. Returns as `next`. */
    ls_status (*begin)(ls__stream *s, const ls__frame_sizes *sizes, ls__damage *damage);

    /* Takes up to `most` records, one at least: those that are in the buffer together, which stay
     * there until the stream is asked for more. LS_END: the file has no more. LS_CORRUPT: see
     * `damage`, unless the stream itself failed (s->file.failed); the stream is behind what is
     * damaged, if not damage->rest. Any other status is the stream's. */
    ls_status (*next)(ls__stream *s, const ls__frame_sizes *sizes, int most, ls__record *out,
                      int *count, ls__damage *damage);
} ls__framing;

extern const ls__framing ls__tfrecord_framing, ls__line_framing, ls__fixed_framing;

/* What goes around a TFRecord: so many bytes before the data, so many behind. */
enum { LS__TFRECORD_HEAD = 12, LS__TFRECORD_TAIL = 4 };
void ls__tfrecord_frame(const void *data, size_t bytes, unsigned char *head, unsigned char *tail);

/* Describes it; returns LS_CORRUPT. */
ls_status ls__damaged(ls__damage *damage, uint64_t offset, bool rest, const char *format, ...)
    LS_PRINTF(4, 5);

#endif
