/*
 * PNG by libspng.
 *
 * Invariant: the library does not see the chunks that change no pixel (texts, profiles, times). It
 * would unpack, keep and judge them; passed over, they cost nothing and refuse no picture. All
 * others, unknown ones too, go through its checksums.
 *
 * Alpha that was not asked for is left out, not blended. Grey is made of colours with the weights of
 * JPEG's luminance (0.299, 0.587, 0.114).
 */
#include "data/image.h"

#ifdef LS_HAVE_SPNG

#include <spng.h>
#include <stdlib.h>
#include <string.h>

/* ---- the stream: chunk after chunk, without those passed over -------------------------------- */

typedef struct reader {
    const ls__image_file *f;
    spng_ctx *png;
    size_t at, end; /* of the chunk being read */
    bool cut;       /* there was no more to read */
} reader;

enum { AROUND = 12 }; /* bytes of a chunk beside its data: length, type, checksum */

static bool is_passed_over(const uint8_t *type)
{
    static const char types[][5] = { "bKGD", "cHRM", "eXIf", "gAMA", "hIST", "iCCP", "iTXt", "oFFs",
                                     "pHYs", "sBIT", "sPLT", "sRGB", "tEXt", "tIME", "zTXt" };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (memcmp(type, types[i], 4) == 0)
            return true;
    return false;
}

/* Goes to the next chunk that is not passed over; false at the end of the file. One that is cut off
 * goes as far as the file does: the library will miss the rest. */
static bool next_chunk(reader *r)
{
    while (r->f->size - r->at >= AROUND) {
        const uint8_t *p = r->f->at + r->at;
        size_t length = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
        size_t left = r->f->size - r->at - AROUND;
        size_t next = length <= left ? r->at + AROUND + length : r->f->size;
        if (!is_passed_over(p + 4)) {
            r->end = next;
            return true;
        }
        r->at = next;
    }
    r->end = r->f->size;
    return r->at < r->end;
}

static int read_some(spng_ctx *png, void *user, void *to, size_t length)
{
    reader *r = user;
    char *out = to;
    (void)png;
    while (length > 0) {
        if (r->at == r->end && !next_chunk(r)) {
            r->cut = true;
            return SPNG_IO_ERROR; /* its name for an end is also that of a checksum to ignore */
        }
        size_t n = length < r->end - r->at ? length : r->end - r->at;
        memcpy(out, r->f->at + r->at, n);
        r->at += n;
        out += n;
        length -= n;
    }
    return 0;
}

/* ---- what is asked of the library ---------------------------------------------------------- */

static ls_status said(const reader *r, int error)
{
    if (!error)
        return LS_OK;
    if (error == SPNG_EMEM)
        return ls__fail(LS_NO_MEMORY, "%s: %s", r->f->who, spng_strerror(error));
    return ls__image_damaged(r->f, r->cut ? "it ends early" : spng_strerror(error));
}

static int samples_of(const struct spng_ihdr *h)
{
    switch (h->color_type) {
    case SPNG_COLOR_TYPE_GRAYSCALE_ALPHA:
        return 2;
    case SPNG_COLOR_TYPE_TRUECOLOR:
        return 3;
    case SPNG_COLOR_TYPE_TRUECOLOR_ALPHA:
        return 4;
    default: /* grey, or an index into the palette */
        return 1;
    }
}

/* Channels of the result. */
static ls_status channels_of(const reader *r, const struct spng_ihdr *h, int *out)
{
    int asked = r->f->channels;
    struct spng_trns transparent;
    *out = asked ? asked : samples_of(h);
    if (asked || h->color_type != SPNG_COLOR_TYPE_INDEXED)
        return LS_OK;
    int error = spng_get_trns(r->png, &transparent);
    *out = error ? 3 : 4;
    return error == SPNG_ECHUNKAVAIL ? LS_OK : said(r, error);
}

/* The library's format that is the result as it is, or 0. */
static int direct_format(const struct spng_ihdr *h, int channels)
{
    if (h->bit_depth == 16) /* it would cut off the lower bytes */
        return 0;
    if (channels == 4)
        return SPNG_FMT_RGBA8;
    if (channels == 3)
        return SPNG_FMT_RGB8;
    if (channels == 2) /* of a file with grey and alpha, 8 bits each */
        return SPNG_FMT_PNG;
    return h->color_type == SPNG_COLOR_TYPE_GRAYSCALE ? SPNG_FMT_G8 : 0;
}

/* ---- colours with alpha, 8 or 16 bits, to what is wanted -------------------------------------- */

/* In place: rounded, from the front, so that what is written was read. */
static void narrow(void *samples, int64_t count)
{
    const char *from = samples;
    uint8_t *to = samples;
    for (int64_t i = 0; i < count; i++) {
        uint16_t v;
        memcpy(&v, from + 2 * i, sizeof v);
        to[i] = (uint8_t)((v * 255u + 32767u) / 65535u);
    }
}

static void pack(const uint8_t *from, uint8_t *to, int64_t pixels, int channels)
{
    for (int64_t i = 0; i < pixels; i++, from += 4, to += channels) {
        if (channels >= 3) {
            memcpy(to, from, (size_t)channels);
            continue;
        }
        to[0] = (uint8_t)((19595u * from[0] + 38470u * from[1] + 7471u * from[2] + 32768u) >> 16);
        if (channels == 2)
            to[1] = from[3];
    }
}

static ls_status decode_packed(const reader *r, const struct spng_ihdr *h, int flags,
                               ls__image *image)
{
    bool wide = h->bit_depth == 16;
    int64_t pixels = (int64_t)h->width * h->height;
    size_t bytes = (size_t)pixels * (wide ? 8 : 4);
    uint8_t *colours = malloc(bytes);
    if (!colours)
        return ls__fail_memory(r->f->who, bytes);
    int format = wide ? SPNG_FMT_RGBA16 : SPNG_FMT_RGBA8;
    ls_status st = said(r, spng_decode_image(r->png, colours, bytes, format, flags));
    if (!st && wide)
        narrow(colours, 4 * pixels);
    if (!st)
        pack(colours, image->pixels, pixels, (int)image->spec.dims[2]);
    free(colours);
    return st;
}

/* ---- decoding ------------------------------------------------------------------------------------ */

static ls_status decode_into(const reader *r, const struct spng_ihdr *h, ls__image *image)
{
    int channels = (int)image->spec.dims[2], format = direct_format(h, channels);
    int flags = channels == 4 ? SPNG_DECODE_TRNS : 0;
    size_t bytes = ls__spec_bytes(&image->spec);
    ls_status st = format ? said(r, spng_decode_image(r->png, image->pixels, bytes, format, flags))
                          : decode_packed(r, h, flags, image);
    return st ? st : said(r, spng_decode_chunks(r->png)); /* up to the end, which must be there */
}

static ls_tensor *decode(reader *r)
{
    struct spng_ihdr h;
    int channels;
    ls__image image;
    if (said(r, spng_set_crc_action(r->png, SPNG_CRC_ERROR, SPNG_CRC_ERROR)) ||
        said(r, spng_set_png_stream(r->png, read_some, r)) || said(r, spng_get_ihdr(r->png, &h)))
        return NULL;
    /* Deflate makes at most 1032 bytes out of one. */
    int64_t pixels = (int64_t)h.width * h.height, bits = (int64_t)samples_of(&h) * h.bit_depth;
    if (ls__image_fits(r->f, h.height, h.width, pixels / (8 * 1032) * bits) ||
        channels_of(r, &h, &channels) || ls__image_begin(r->f, h.height, h.width, channels, &image))
        return NULL;
    return ls__image_finish(&image, decode_into(r, &h, &image));
}

ls_tensor *ls__decode_png(const ls__image_file *f)
{
    if (!ls__is_png(f)) {
        ls__image_damaged(f, "it does not begin as a PNG");
        return NULL;
    }
    reader r = { .f = f, .png = spng_ctx_new(0), .end = 8 }; /* the signature */
    if (!r.png) {
        ls__fail(LS_NO_MEMORY, "%s: libspng has no memory", f->who);
        return NULL;
    }
    ls_tensor *t = decode(&r);
    spng_ctx_free(r.png);
    return t;
}

#else

ls_tensor *ls__decode_png(const ls__image_file *f)
{
    ls__hint(ls__fail(LS_UNSUPPORTED, "%s: this build has no libspng", f->who),
             "build with libspng-dev installed");
    return NULL;
}

#endif
