/*
 * Positions as bytes: numbers, small ones in few bytes, and strings. Reading never leaves the bytes:
 * whatever they are, it ends with LS_CORRUPT.
 */
#ifndef LS__DATA_POSITION_H
#define LS__DATA_POSITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct ls__bytes_out {
    unsigned char *at;
    size_t used, room;
    bool failed; /* out of memory: found out at the end */
} ls__bytes_out;

void ls__put_int(ls__bytes_out *to, int64_t value);
void ls__put_ints(ls__bytes_out *to, int n, const int64_t *values);
void ls__put_bytes(ls__bytes_out *to, const void *data, size_t bytes);
void ls__bytes_out_free(ls__bytes_out *to);

typedef struct ls__bytes_in {
    const unsigned char *at, *end;
} ls__bytes_in;

/* LS_CORRUPT when there is none, or it is not from least to most. */
ls_status ls__get_int(ls__bytes_in *from, int64_t least, int64_t most, int64_t *out);
ls_status ls__get_ints(ls__bytes_in *from, int n, int64_t *out); /* any */

/* Points into the bytes. */
ls_status ls__get_bytes(ls__bytes_in *from, const void **data, size_t *bytes);

ls_status ls__position_corrupt(void); /* the error itself */

#endif
