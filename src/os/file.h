/*
 * Files read from front to back in pieces of known size, plain or gzip (told apart by their first
 * bytes), with errors that name the path.
 */
#ifndef LS__OS_FILE_H
#define LS__OS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct ls__reader ls__reader;

ls_status ls__reader_open(const char *path, ls__reader **out);
void ls__reader_close(ls__reader *reader);

/* Reads exactly `bytes`; LS_CORRUPT when the file ends before, saying where. */
ls_status ls__reader_read(ls__reader *reader, void *to, size_t bytes);

/* Whether that much is likely to follow, by the file's size: then memory for it may be had before it is read.
 * Never for what is no regular file, or would have to be packed to less than an eighth. */
bool ls__reader_likely_has(const ls__reader *reader, size_t bytes);

/* LS_OK when nothing follows; else LS_CORRUPT. */
ls_status ls__reader_at_end(ls__reader *reader);

#endif
