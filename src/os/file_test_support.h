/*
 * What tests of files share: a directory that is removed, bytes that grow, and gzip and zlib files
 * made by hand (stored blocks), so that no library is its own witness.
 */
#ifndef LS__OS_FILE_TEST_SUPPORT_H
#define LS__OS_FILE_TEST_SUPPORT_H

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- a directory --------------------------------------------------------------------------- */

static char test_dir[64];

static inline int make_test_dir(void **state)
{
    (void)state;
    strcpy(test_dir, "/tmp/lockstep-test-XXXXXX");
    return mkdtemp(test_dir) ? 0 : -1;
}

/* A file in it; eight names live at once. */
static inline const char *in_dir(const char *name)
{
    static char names[8][512];
    static int turn;
    char *at = names[turn++ % 8];
    snprintf(at, sizeof names[0], "%s/%s", test_dir, name);
    return at;
}

static inline int entries(void)
{
    int n = 0;
    DIR *d = opendir(test_dir);
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

static inline void empty_test_dir(void)
{
    DIR *d = opendir(test_dir);
    for (struct dirent *e; d && (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            unlink(in_dir(e->d_name)))
            rmdir(in_dir(e->d_name));
    if (d)
        closedir(d);
}

static inline int remove_test_dir(void **state)
{
    (void)state;
    empty_test_dir();
    return rmdir(test_dir);
}

static inline int open_files(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

/* ---- bytes --------------------------------------------------------------------------------- */

typedef struct bytes {
    unsigned char *at;
    size_t n, room;
} bytes;

static inline void add_bytes(bytes *b, const void *data, size_t n)
{
    if (b->n + n > b->room) {
        b->room = 2 * (b->n + n);
        b->at = realloc(b->at, b->room);
        assert_non_null(b->at);
    }
    if (n)
        memcpy(b->at + b->n, data, n);
    b->n += n;
}

static inline void add_number(bytes *b, uint64_t value, int n) /* little-endian */
{
    for (int i = 0; i < n; i++) {
        unsigned char byte = (unsigned char)(value >> (8 * i));
        add_bytes(b, &byte, 1);
    }
}

static inline void free_bytes(bytes *b)
{
    free(b->at);
    *b = (bytes){ 0 };
}

static inline void put_file(const char *name, const void *data, size_t n)
{
    FILE *f = fopen(in_dir(name), "wb");
    assert_non_null(f);
    if (n)
        assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* The same in memory, for who writes thousands: there is one, whose path this is. */
static inline const char *put_in_memory(const void *data, size_t n)
{
    static char path[64];
    static int file = -1;
    if (file < 0)
        file = memfd_create("test", 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    assert_int_equal(ftruncate(file, 0), 0);
    assert_int_equal(pwrite(file, data, n, 0), n);
    return path;
}

/* The same ones for the same state, which moves on. */
static inline uint64_t random_number(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u; /* splitmix64 */
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* ---- packing by hand ----------------------------------------------------------------------- */

/* A reflected CRC, bit by bit. */
static inline uint32_t slow_crc(uint32_t polynomial, const void *data, size_t n)
{
    uint32_t crc = 0xFFFFFFFFu;
    for (size_t i = 0; i < n; i++) {
        crc ^= ((const unsigned char *)data)[i];
        for (int k = 0; k < 8; k++)
            crc = (crc >> 1) ^ (crc & 1 ? polynomial : 0);
    }
    return ~crc;
}

static inline void add_stored_blocks(bytes *b, const unsigned char *data, size_t n)
{
    do {
        size_t run = n < 65535 ? n : 65535;
        add_number(b, run == n, 1);
        add_number(b, run, 2);
        add_number(b, ~run & 0xFFFF, 2);
        add_bytes(b, data, run);
        data += run;
        n -= run;
    } while (n > 0);
}

static inline void add_gzip(bytes *b, const void *data, size_t n)
{
    add_bytes(b, "\x1F\x8B\x08\0\0\0\0\0\0\xFF", 10);
    add_stored_blocks(b, data, n);
    add_number(b, slow_crc(0xEDB88320u, data, n), 4);
    add_number(b, n, 4);
}

static inline void add_zlib(bytes *b, const void *data, size_t n)
{
    uint32_t low = 1, high = 0;
    for (size_t i = 0; i < n; i++) {
        low = (low + ((const unsigned char *)data)[i]) % 65521;
        high = (high + low) % 65521;
    }
    add_bytes(b, "\x78\x01", 2);
    add_stored_blocks(b, data, n);
    for (int i = 3; i >= 0; i--)
        add_number(b, ((uint64_t)high << 16 | low) >> (8 * i) & 0xFF, 1);
}

#ifdef LS_HAVE_ZLIB
enum { HAVE_ZLIB = 1 };
#else
enum { HAVE_ZLIB = 0 };
#endif

#endif
