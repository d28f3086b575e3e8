/*
 * JPEG by libjpeg-turbo.
 *
 * Invariant: a picture is given only if the library found nothing to complain about. Its
 * warnings (data that ends early, codes that do not exist) leave holes in the picture, so they count as
 * damage, and the first one stops the work.
 */
#include "data/image.h"

#ifdef LS_HAVE_TURBOJPEG

#include <turbojpeg.h>

/* ---- the frame header: what the library does not tell ---------------------------------------- */

/* Marker, length, precision, height, width, components. NULL when there is none before the data:
 * the library finds words for that. */
static const uint8_t *frame_of(const ls__image_file *f)
{
    size_t i = 2;
    while (i + 10 <= f->size && f->at[i] == 0xFF) {
        int marker = f->at[i + 1], length = f->at[i + 2] << 8 | f->at[i + 3];
        if (marker == 0xFF) { /* filling */
            i++;
            continue;
        }
        if (marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC)
            return f->at + i + 1;
        if (marker == 0xDA || length < 2)
            return NULL;
        i += 2 + (size_t)length;
    }
    return NULL;
}

static bool is_arithmetic(const uint8_t *frame)
{
    return frame[0] > 0xC8;
}

static ls_status check_frame(const ls__image_file *f, const uint8_t *frame)
{
    static const uint8_t kinds[] = { 0xC0, 0xC1, 0xC2, 0xC9, 0xCA };
    bool known = !frame;
    for (size_t i = 0; i < sizeof kinds; i++)
        known = known || frame[0] == kinds[i];
    if (known && (!frame || frame[3] == 8))
        return LS_OK;
    return ls__fail(LS_UNSUPPORTED, "%s: a JPEG of kind ff %02x with %d bits a sample", f->who,
                    frame[0], frame[3]);
}

/* ---- decoding ----------------------------------------------------------------------------------- */

typedef struct header {
    int width, height, subsampling, colours;
} header;

static ls_status read_header(const ls__image_file *f, tjhandle tj, header *h)
{
    *h = (header){ .subsampling = -1, .colours = -1 };
    int failed = tjDecompressHeader3(tj, f->at, f->size, &h->width, &h->height, &h->subsampling,
                                     &h->colours);
    /* Subsampling without a name is an error there, though it decodes. */
    bool unnamed = h->width > 0 && h->height > 0 && h->colours >= 0 && h->subsampling < 0;
    if (failed && !unnamed)
        return ls__image_damaged(f, tjGetErrorStr2(tj));
    return h->width > 0 ? LS_OK
                        : ls__image_damaged(f, "there is no picture in it"); /* only tables */
}

static ls_status check_header(const ls__image_file *f, const uint8_t *frame, const header *h)
{
    if (h->colours == TJCS_CMYK || h->colours == TJCS_YCCK)
        return ls__hint(ls__fail(LS_UNSUPPORTED, "%s: a CMYK picture", f->who),
                        "convert the file to RGB");
    /* A block of 8 x 8 pixels takes one bit at least, if it is not arithmetic. */
    int64_t blocks = (int64_t)(h->width / 8) * (h->height / 8);
    return ls__image_fits(f, h->height, h->width, frame && is_arithmetic(frame) ? 0 : blocks / 8);
}

static ls_tensor *decode(const ls__image_file *f, tjhandle tj)
{
    const uint8_t *frame = frame_of(f);
    header h;
    ls__image image;
    if (check_frame(f, frame) || read_header(f, tj, &h) || check_header(f, frame, &h))
        return NULL;
    int channels = f->channels ? f->channels : h.colours == TJCS_GRAY ? 1 : 3;
    if (ls__image_begin(f, h.height, h.width, channels, &image))
        return NULL;
    ls_status st = LS_OK;
    if (tjDecompress2(tj, f->at, f->size, image.pixels, h.width, 0, h.height,
                      channels == 1 ? TJPF_GRAY : TJPF_RGB,
                      TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS))
        st = ls__image_damaged(f, tjGetErrorStr2(tj));
    return ls__image_finish(&image, st);
}

ls_tensor *ls__decode_jpeg(const ls__image_file *f)
{
    if (f->channels == 4) {
        ls__hint(ls__fail(LS_INVALID, "%s: 4 channels of a JPEG", f->who),
                 "a JPEG has no alpha: ask for 1, 3 or 0");
        return NULL;
    }
    if (!ls__is_jpeg(f)) {
        ls__image_damaged(f, "it does not begin as a JPEG");
        return NULL;
    }
    tjhandle tj = tjInitDecompress();
    if (!tj) {
        ls__fail(LS_NO_MEMORY, "%s: %s", f->who, tjGetErrorStr2(NULL));
        return NULL;
    }
    ls_tensor *t = decode(f, tj);
    tjDestroy(tj);
    return t;
}

#else

ls_tensor *ls__decode_jpeg(const ls__image_file *f)
{
    ls__hint(ls__fail(LS_UNSUPPORTED, "%s: this build has no libjpeg-turbo", f->who),
             "build with libturbojpeg0-dev installed");
    return NULL;
}

#endif
