/*
 * What the fuzz targets of pictures share. Bytes that say they are a picture are refused with an
 * error, or give a picture that is what image.h says. A broken promise aborts.
 */
#ifndef LS__FUZZ_IMAGE_FUZZ_H
#define LS__FUZZ_IMAGE_FUZZ_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/image.h"

/* A real picture may have more, and an input is to be done in no time. */
#define FUZZ_PIXELS ((int64_t)1 << 16)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void require(bool holds, const char *promise)
{
    if (holds)
        return;
    fprintf(stderr, "image fuzz: %s: %s\n", promise, ls_error_report());
    abort();
}

static inline void check_picture(const ls_tensor *t, const ls__image_file *f)
{
    require(ls_error_pending() == LS_OK, "an accepted picture leaves no error");
    require(ls_dtype_of(t) == LS_U8 && ls_rank(t) == 3, "it is u8 [height, width, channels]");
    require(ls_shape(t)[0] > 0 && ls_shape(t)[1] > 0, "it has pixels");
    require(ls_shape(t)[0] * ls_shape(t)[1] <= FUZZ_PIXELS, "not too many");
    require(!f->channels || ls_shape(t)[2] == f->channels, "and the channels asked for");
    unsigned sum = 0; /* all of it can be read */
    for (int64_t i = 0; i < ls_count(t); i++)
        sum += ((const uint8_t *)ls__data(t))[i];
    require(sum <= 255u * (uint64_t)ls_count(t), "samples are bytes");
}

/* With each number of channels up to `most`. */
static inline void try_channels(ls_tensor *(*decode)(const ls__image_file *f), const uint8_t *bytes,
                                size_t size, int most)
{
    static const int asked[] = { 0, 1, 3, 4 };
    for (int i = 0; i < 4 && asked[i] <= most; i++) {
        ls__image_file f = { "fuzz", bytes, size, asked[i], FUZZ_PIXELS };
        int depth = ls_frame_open();
        ls_tensor *t = decode(&f);
        if (t)
            check_picture(t, &f);
        else
            require(ls_error() != LS_OK, "what is refused is refused with an error");
        ls_frame_close(depth);
    }
}

/* A copy of this size, so that a sanitizer sees its end. */
static inline uint8_t *copy_of(const uint8_t *data, size_t size)
{
    uint8_t *bytes = malloc(size ? size : 1);
    if (bytes && size > 0)
        memcpy(bytes, data, size);
    return bytes;
}

#endif
