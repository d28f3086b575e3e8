/*
 * ls_decode_jpeg, ls_decode_png, ls_decode_image: the arguments, which decoder, and
 * what decoders share (image.h).
 */
#include "data/image.h"

#include <lockstep/image.h>

#include <string.h>

/* ---- the public functions ----------------------------------------------------------------- */

static bool open_file(const char *who, const ls_tensor *file, int channels, ls__image_file *f)
{
    const void *at;
    if (ls__check_tensor(who, "file", file))
        return false;
    if (ls_dtype_of(file) != LS_BYTES || ls_rank(file) != 0) {
        ls__hint(ls__fail(LS_SHAPE, "%s: given %s, wants bytes[]", who, ls_describe(file)),
                 "give the contents of one file as one string");
        return false;
    }
    if (channels != 0 && channels != 1 && channels != 3 && channels != 4) {
        ls__hint(ls__fail(LS_INVALID, "%s: channels %d", who, channels),
                 "1 is grey, 3 colour, 4 colour with alpha, 0 what the file has");
        return false;
    }
    *f = (ls__image_file){ .who = who, .channels = channels, .most = LS__IMAGE_PIXELS };
    if (ls_string_at(file, 0, &at, &f->size))
        return false;
    f->at = at;
    return true;
}

ls_tensor *ls_decode_jpeg(ls_tensor *file, int channels)
{
    ls__image_file f;
    return open_file("ls_decode_jpeg", file, channels, &f) ? ls__decode_jpeg(&f) : NULL;
}

ls_tensor *ls_decode_png(ls_tensor *file, int channels)
{
    ls__image_file f;
    return open_file("ls_decode_png", file, channels, &f) ? ls__decode_png(&f) : NULL;
}

ls_tensor *ls_decode_image(ls_tensor *file, int channels)
{
    ls__image_file f;
    if (!open_file("ls_decode_image", file, channels, &f))
        return NULL;
    if (ls__is_jpeg(&f))
        return ls__decode_jpeg(&f);
    if (ls__is_png(&f))
        return ls__decode_png(&f);
    uint8_t head[4] = { 0 };
    memcpy(head, f.at, f.size < sizeof head ? f.size : sizeof head);
    ls__hint(ls__fail(LS_CORRUPT,
                      "%s: %zu bytes that begin with %02x %02x %02x %02x are no picture", f.who,
                      f.size, head[0], head[1], head[2], head[3]),
             "a JPEG begins with ff d8 ff, a PNG with 89 50 4e 47; others are not read");
    return NULL;
}

/* ---- what decoders share -------------------------------------------------------------------- */

static bool begins_with(const ls__image_file *f, const char *magic, size_t length)
{
    return f->size >= length && memcmp(f->at, magic, length) == 0;
}

bool ls__is_jpeg(const ls__image_file *f)
{
    return begins_with(f, "\xff\xd8\xff", 3);
}

bool ls__is_png(const ls__image_file *f)
{
    return begins_with(f, "\x89PNG\r\n\x1a\n", 8);
}

ls_status ls__image_damaged(const ls__image_file *f, const char *words)
{
    return ls__fail(LS_CORRUPT, "%s: a file of %zu bytes is damaged: %s", f->who, f->size, words);
}

ls_status ls__image_fits(const ls__image_file *f, int64_t height, int64_t width, int64_t least)
{
    if (height > f->most / width)
        return ls__fail(LS_INVALID, "%s: a picture of %lld x %lld pixels, at most %lld pixels",
                        f->who, (long long)height, (long long)width, (long long)f->most);
    if (least > 0 && f->size < (size_t)least)
        return ls__fail(LS_CORRUPT,
                        "%s: a file of %zu bytes is damaged: it claims %lld x %lld pixels, which "
                        "take %lld bytes at least",
                        f->who, f->size, (long long)height, (long long)width, (long long)least);
    return LS_OK;
}

ls_status ls__image_begin(const ls__image_file *f, int64_t height, int64_t width, int channels,
                          ls__image *out)
{
    const int64_t dims[] = { height, width, channels };
    ls_status st = ls__spec_make(&out->spec, f->who, LS_U8, 3, dims);
    if (st)
        return st;
    out->memory = ls__storage_new(f->who, ls__spec_bytes(&out->spec));
    if (!out->memory)
        return LS_NO_MEMORY;
    out->pixels = out->memory->data;
    return LS_OK;
}

ls_tensor *ls__image_finish(ls__image *image, ls_status status)
{
    if (!status)
        return ls__handle(&image->spec, image->memory, ls__new_id(), ls__device_current());
    ls__storage_unref(image->memory);
    return NULL;
}
