/*
 * What the tests of decoders share: the files of tests/images, a JPEG made of zeros, and a PNG
 * that claims another size.
 */
#ifndef LS__DATA_IMAGE_TEST_SUPPORT_H
#define LS__DATA_IMAGE_TEST_SUPPORT_H

#include <stdio.h>
#include <stdlib.h>

#include "tensor/test_support.h"

#ifdef LS_HAVE_TURBOJPEG
#define READS_JPEG true
#else
#define READS_JPEG false
#endif
#ifdef LS_HAVE_SPNG
#define READS_PNG true
#else
#define READS_PNG false
#endif

typedef struct blob {
    uint8_t *at; /* to be freed */
    size_t size;
} blob;

static inline FILE *open_image(const char *name)
{
    char path[512];
    const char *root = getenv("LOCKSTEP_TEST_DIR");
    snprintf(path, sizeof path, "%s/images/%s", root ? root : "tests", name);
    FILE *in = fopen(path, "rb");
    if (!in)
        fail_msg("cannot open %s", path);
    return in;
}

static inline blob load_image(const char *name)
{
    enum { MOST = 1 << 16 };
    blob b = { malloc(MOST), 0 };
    assert_non_null(b.at);
    FILE *in = open_image(name);
    b.size = fread(b.at, 1, MOST, in);
    fclose(in);
    assert_true(b.size > 0 && b.size < MOST);
    return b;
}

/* ---- a JPEG whose blocks are zero bits ---------------------------------------------------------------
 *
 * Of a plain one (0xC0) every block is two: no difference to the last, no more coefficients. Of a
 * progressive one (0xC2) there is the first scan alone, one bit a block. */

typedef struct plain {
    int width, height, components;
    int kind, precision; /* 0: 0xC0, 8 */
    int sampling[4];     /* 0: 0x11 */
    int scans;           /* 0: 1 */
    long bits;           /* of the data of a scan; 0: as many as are needed */
} plain;
#define PLAIN(...) (&(plain){ __VA_ARGS__ })

static inline void put(blob *b, int count, const int *bytes)
{
    for (int i = 0; i < count; i++)
        b->at[b->size++] = (uint8_t)bytes[i];
}
#define PUT(b, ...)                                                                                \
    put(b, (int)(sizeof((int[]){ __VA_ARGS__ }) / sizeof(int)), (int[]){ __VA_ARGS__ })

/* Bits of all blocks of a scan with all components. */
static inline long bits_of(const plain *p, const int *sampling)
{
    int wide = 1, high = 1, blocks = 0;
    for (int i = 0; i < p->components; i++) {
        int h = sampling[i] >> 4, v = sampling[i] & 15;
        wide = h > wide ? h : wide;
        high = v > high ? v : high;
        blocks += h * v;
    }
    long across = (p->width + 8 * wide - 1) / (8 * wide);
    long down = (p->height + 8 * high - 1) / (8 * high);
    return (p->kind == 0xC2 ? 1 : 2) * blocks * across * down;
}

static inline blob plain_jpeg(const plain *p)
{
    int sampling[4];
    for (int i = 0; i < 4; i++)
        sampling[i] = p->sampling[i] ? p->sampling[i] : 0x11;
    long bits = p->bits ? p->bits : bits_of(p, sampling);
    int scans = p->scans ? p->scans : 1;
    blob b = { malloc(512 + (size_t)scans * (32 + (size_t)bits / 8)), 0 };
    assert_non_null(b.at);
    PUT(&b, 0xFF, 0xD8, 0xFF, 0xDB, 0, 67, 0); /* a quantisation table of ones */
    for (int i = 0; i < 64; i++)
        PUT(&b, 1);
    PUT(&b, 0xFF, p->kind ? p->kind : 0xC0, 0, 8 + 3 * p->components);
    PUT(&b, p->precision ? p->precision : 8, p->height >> 8, p->height, p->width >> 8, p->width);
    PUT(&b, p->components);
    for (int i = 0; i < p->components; i++)
        PUT(&b, i + 1, sampling[i], 0);
    for (int table = 0; table < 2; table++) { /* one code each, of one bit, for 0 */
        PUT(&b, 0xFF, 0xC4, 0, 20, table << 4, 1);
        for (int i = 1; i < 16; i++)
            PUT(&b, 0);
        PUT(&b, 0);
    }
    for (int k = 0; k < scans; k++) {
        PUT(&b, 0xFF, 0xDA, 0, 6 + 2 * p->components, p->components);
        for (int i = 0; i < p->components; i++)
            PUT(&b, i + 1, 0);
        PUT(&b, 0, p->kind == 0xC2 ? 0 : 63, 0);
        for (long i = 0; i < bits / 8; i++)
            PUT(&b, 0);
        if (bits % 8)
            PUT(&b, 0xFF >> bits % 8);
    }
    PUT(&b, 0xFF, 0xD9);
    return b;
}

/* ---- a PNG's header -------------------------------------------------------------------------------- */

static inline void put_32(uint8_t *to, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* Other sizes in the header, and a checksum that is right. */
static inline void png_claim(blob *b, uint32_t width, uint32_t height)
{
    uint32_t crc = 0xFFFFFFFFu;
    put_32(b->at + 16, width);
    put_32(b->at + 20, height);
    for (int i = 12; i < 29; i++) {
        crc ^= b->at[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    put_32(b->at + 29, ~crc);
}

#endif
