/*
 * The bytes of a file in their order, unpacked where it is gzip or zlib. Nothing is buffered but what
 * unpacking needs: stream.h and file.h are what others use.
 *
 * Failures while reading are kept, not recorded: what came before them is good, and whoever reads
 * decides whether he needs more. A file is never mapped: one that is cut off under a mapping would
 * kill the process.
 */
#ifndef LS__OS_PACKED_H
#define LS__OS_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef enum ls__compression {
    LS__PLAIN,
    LS__GZIP, /* one member or several, one behind the other */
    LS__ZLIB,
    LS__BY_MAGIC /* gzip if it begins so, else unpacked */
} ls__compression;

/* LS_UNSUPPORTED when this build cannot: `what` begins the text. */
ls_status ls__compression_check(const char *what, ls__compression compression);

typedef struct ls__packed {
    char *path;
    int file;
    bool open;
    ls__compression compression;
    uint64_t offset;         /* of the next byte, unpacked */
    bool ended;              /* there is no further byte */
    ls_status failed;        /* why there is none: LS_OK, LS_IO, LS_CORRUPT, LS_NO_MEMORY */
    char why[96];            /* what the system, or zlib, said */
    struct ls__unpacking *z; /* gzip and zlib */
} ls__packed;

/* Starts as zeros. LS_NOT_FOUND; LS_IO, also for directories. */
ls_status ls__packed_open(ls__packed *p, const char *path, ls__compression compression);
void ls__packed_close(ls__packed *p); /* takes one that is not open */

/* How many bytes were read: fewer than asked for at the end and when it failed. */
size_t ls__packed_read(ls__packed *p, void *to, size_t bytes);

/* Records why it failed. */
ls_status ls__packed_failure(const ls__packed *p);

/* Stands at this byte, or before it where only reading leads there: see p->offset. LS_IO. */
ls_status ls__packed_seek(ls__packed *p, uint64_t offset);

/* Of a packed byte at most so many come: deflate's best case is 258 by two bits. */
enum { LS__PACKED_MOST = 1032 };

/* The most bytes that can follow, by the file's size now. Whoever believes a length that is
 * written in a file asks this first. */
uint64_t ls__packed_can_follow(const ls__packed *p);

#endif
