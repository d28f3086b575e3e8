/*
 * SHA-256 (FIPS 180-4) of bytes that come in pieces.
 */
#ifndef LS__BASE_SHA256_H
#define LS__BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

typedef struct ls__sha256 {
    uint32_t state[8];
    uint64_t bytes; /* so far */
    unsigned char block[64];
} ls__sha256;

void ls__sha256_begin(ls__sha256 *s);
void ls__sha256_add(ls__sha256 *s, const void *data, size_t bytes);

/* 64 hexadecimal digits and a NUL. */
void ls__sha256_end(ls__sha256 *s, char out[65]);

#endif
