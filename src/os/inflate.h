/*
 * Unpacking deflate in gzip's or zlib's wrapping, step by step, checksums verified: by isa-l, which takes
 * half of zlib's time, or by zlib, whichever this build has.
 *
 *     ls__inflate *z = ls__inflate_new(gzip);
 *     z->in = ..., z->in_left = ..., z->out = ..., z->out_left = ...;
 *     switch (ls__inflate_run(z)) ...                  // both advance
 */
#ifndef LS__OS_INFLATE_H
#define LS__OS_INFLATE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct ls__inflate {
    const unsigned char *in;
    unsigned char *out;
    size_t in_left, out_left;
    const char *why; /* what is wrong, when it failed */
    void *state;     /* of the library */
    bool gzip;
} ls__inflate;

typedef enum ls__inflate_result {
    LS__INFLATE_MORE, /* it wants bytes, or room */
    LS__INFLATE_END,  /* of the stream; its checksum was right */
    LS__INFLATE_CUT,  /* it wants bytes, has none left and room, and gave nothing */
    LS__INFLATE_BAD,
    LS__INFLATE_NO_MEMORY
} ls__inflate_result;

/* Whether this build can. */
bool ls__inflate_there(void);

ls__inflate *ls__inflate_new(bool gzip); /* NULL: no memory */
void ls__inflate_free(ls__inflate *z);   /* takes NULL */
void ls__inflate_again(ls__inflate *z);  /* another stream: of the bytes from `in` on */
ls__inflate_result ls__inflate_run(ls__inflate *z);

#endif
