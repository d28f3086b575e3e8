/*
 * States of the recent past: for stages whose words are a counter, and that are asked later what the
 * state was at a count. A mark is bytes at a count; marks are added in the order of their counts and
 * let go from the front.
 */
#ifndef LS__DATA_MARKS_H
#define LS__DATA_MARKS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct ls__mark {
    int64_t at;
    size_t bytes;
    unsigned char *data;
} ls__mark;

/* Starts as zeros. */
typedef struct ls__marks {
    ls__mark *list;
    int first, n, room; /* list[first] up to list[n] */
    size_t bytes;       /* of all there are */
} ls__marks;

/* Copies the bytes. `at` is larger than those before, or LS_OK and nothing is done. LS_NO_MEMORY. */
ls_status ls__marks_add(ls__marks *m, int64_t at, const void *data, size_t bytes);

/* The last one at `at` or before it; NULL: there is none. */
const ls__mark *ls__marks_find(const ls__marks *m, int64_t at);

/* Those before the one that find(at) gives are gone. */
void ls__marks_release(ls__marks *m, int64_t at);

void ls__marks_clear(ls__marks *m); /* all, with their memory */

#endif
