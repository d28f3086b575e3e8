/*
 * What the decoders of pictures share: the file in memory, limits, and the memory of
 * the result.
 *
 * A decoder (image_jpeg.c, image_png.c) asks its library for the sizes, lets ls__image_fits look
 * at them, and only then asks for memory. Damage is what the library calls it.
 */
#ifndef LS__DATA_IMAGE_H
#define LS__DATA_IMAGE_H

#include "tensor/tensor.h"

/* Most pixels of a picture (image.h promises it). */
#define LS__IMAGE_PIXELS ((int64_t)1 << 28)

typedef struct ls__image_file {
    const char *who; /* the public function, for errors */
    const uint8_t *at;
    size_t size;
    int channels; /* asked for: 0 (what the file has), 1, 3 or 4 */
    int64_t most; /* pixels: LS__IMAGE_PIXELS; fuzz targets have less memory */
} ls__image_file;

/* u8 [height, width, channels]; NULL on failure. LS_UNSUPPORTED in a build without the library. */
ls_tensor *ls__decode_jpeg(const ls__image_file *f);
ls_tensor *ls__decode_png(const ls__image_file *f);

/* Whether the file begins as one does. */
bool ls__is_jpeg(const ls__image_file *f);
bool ls__is_png(const ls__image_file *f);

/* LS_CORRUPT, with the library's words. */
ls_status ls__image_damaged(const ls__image_file *f, const char *words);

/* LS_INVALID for too many pixels; LS_CORRUPT when the file has fewer than `least` bytes, which
 * such a picture takes at least: what a damaged header claims is not asked for. */
ls_status ls__image_fits(const ls__image_file *f, int64_t height, int64_t width, int64_t least);

/* A picture being decoded. Finish gives the tensor, or NULL and the memory back when the decoder
 * returned a failure. */
typedef struct ls__image {
    ls__spec spec;
    ls__storage *memory;
    uint8_t *pixels;
} ls__image;
ls_status ls__image_begin(const ls__image_file *f, int64_t height, int64_t width, int channels,
                          ls__image *out);
ls_tensor *ls__image_finish(ls__image *image, ls_status status);

#endif
