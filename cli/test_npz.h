/*
 * For tests: .npy and .npz files as numpy writes them, not deflated.
 */
#ifndef LOCKSTEP_CLI_TEST_NPZ_H
#define LOCKSTEP_CLI_TEST_NPZ_H

#include <stdint.h>

#include "test_data.h"

typedef struct blob {
    unsigned char at[1 << 18];
    size_t n;
} blob;

static inline void put(blob *b, const void *data, size_t n)
{
    assert_true(b->n + n <= sizeof b->at);
    if (n > 0)
        memcpy(b->at + b->n, data, n);
    b->n += n;
}

static inline void put_le(blob *b, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++, value >>= 8)
        put(b, (unsigned char[]){ (unsigned char)value }, 1);
}

/* descr "|u1", shape "(2, 3)". */
static inline void put_npy(blob *b, const char *descr, const char *shape, const void *data,
                           size_t n)
{
    char header[119];
    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr,
             shape);
    size_t length = strlen(header);
    memset(header + length, ' ', 118 - length);
    header[117] = '\n';
    put(b, "\x93NUMPY\1\0", 8);
    put_le(b, 118, 2);
    put(b, header, 118);
    put(b, data, n);
}

static inline uint32_t crc32_of(const unsigned char *at, size_t n)
{
    uint32_t crc = ~0u;
    for (size_t i = 0; i < n; i++) {
        crc ^= at[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (0xedb88320u & -(crc & 1));
    }
    return ~crc;
}

typedef struct npz {
    blob file, directory;
    int entries;
} npz;

/* What both of a zip's headers have of an entry. */
static inline void put_entry(blob *b, const char *name, const blob *its)
{
    put_le(b, 20, 2); /* version */
    put_le(b, 0, 2);
    put_le(b, 0, 2); /* stored */
    put_le(b, 0, 4);
    put_le(b, crc32_of(its->at, its->n), 4);
    put_le(b, its->n, 4);
    put_le(b, its->n, 4);
    put_le(b, strlen(name), 2);
    put_le(b, 0, 2);
}

static inline void npz_add(npz *z, const char *key, const char *descr, const char *shape,
                           const void *data, size_t n)
{
    static blob array;
    char name[64];
    const size_t offset = z->file.n;
    array.n = 0;
    put_npy(&array, descr, shape, data, n);
    snprintf(name, sizeof name, "%s.npy", key);
    put(&z->file, "PK\3\4", 4);
    put_entry(&z->file, name, &array);
    put(&z->file, name, strlen(name));
    put(&z->file, array.at, array.n);
    put(&z->directory, "PK\1\2\24\0", 6);
    put_entry(&z->directory, name, &array);
    put_le(&z->directory, 0, 2 + 2 + 2);
    put_le(&z->directory, 0, 4);
    put_le(&z->directory, offset, 4);
    put(&z->directory, name, strlen(name));
    z->entries++;
}

/* Writes it, and begins anew. */
static inline const char *npz_write(npz *z, const char *name)
{
    const size_t at = z->file.n, n = z->directory.n;
    put(&z->file, z->directory.at, n);
    put(&z->file, "PK\5\6\0\0\0\0", 8);
    put_le(&z->file, (uint64_t)z->entries, 2);
    put_le(&z->file, (uint64_t)z->entries, 2);
    put_le(&z->file, n, 4);
    put_le(&z->file, at, 4);
    put_le(&z->file, 0, 2);
    const char *path = write_file(name, z->file.at, z->file.n);
    z->file.n = z->directory.n = 0;
    z->entries = 0;
    return path;
}

#endif
