/*
 * Writing files that are there as a whole or not at all: bytes go to the name with ".part" behind it,
 * which becomes the name itself when all of them are on the disk.
 */
#ifndef LS__OS_WRITER_H
#define LS__OS_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "os/packed.h"

typedef struct ls__writer ls__writer;

/* LS_NOT_FOUND: there is no such directory. LS_IO: the system refuses, or somebody else is writing
 * this file. `compression` is LS__PLAIN, LS__GZIP or LS__ZLIB. */
ls_status ls__writer_open(const char *path, ls__compression compression, ls__writer **out);

/* The same for who can do without: NULL and LS_OK when somebody else is writing it. */
ls_status ls__writer_try(const char *path, ls__compression compression, ls__writer **out);

/* A writer that failed once fails for good. */
ls_status ls__writer_put(ls__writer *w, const void *data, size_t bytes);

/* Both free it. After LS_OK the file has its name and is on the disk; else there is nothing new. */
ls_status ls__writer_close(ls__writer *w);
void ls__writer_discard(ls__writer *w);

/* So that the name of a new file outlives a power failure, where the file system can. */
void ls__sync_directory_of(const char *path);

#endif
