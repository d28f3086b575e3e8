/*
 * image.h: pictures: decoding, and what is done to them before a model sees them.
 *
 * How to use it
 *
 *     ls_tensor *x = ls_decode_image(file, 3);                  // u8 [height, width, 3]
 *     x = ls_resize_bilinear(x, 224, 224);                      // f32 [224, 224, 3]
 *     x = ls_random_flip_left_right(ls_random_crop(x, 200, 200));
 *
 * Pictures are [height, width, channels], or batches [n, height, width, channels] where that is
 * said. Decoding wants a build with libjpeg-turbo and libspng (LS_UNSUPPORTED says which is not
 * there). Random ones draw as random.h says: in a dataset's map, by the element's number. All but
 * decoding can be traced, and has gradients.
 */
#ifndef LOCKSTEP_IMAGE_H
#define LOCKSTEP_IMAGE_H

#include <lockstep/tensor.h>

LS_BEGIN_DECLS

/* bytes[] to u8 [height, width, channels]; channels 1 (grey), 3, 4 (PNG: with alpha) or 0: what the
 * file has (2 for a PNG of grey with alpha; 3 for a palette, 4 if parts of it are transparent).
 * ls_decode_image tells the format by its first bytes. LS_CORRUPT for damaged files, also where the
 * library would only warn; LS_INVALID for pictures of more than 2^28 pixels; LS_UNSUPPORTED for
 * CMYK. 16-bit PNGs are rounded to 8 bits; alpha that is not asked for is left out. */
LS_API ls_tensor *ls_decode_jpeg(ls_tensor *file, int channels);
LS_API ls_tensor *ls_decode_png(ls_tensor *file, int channels);
LS_API ls_tensor *ls_decode_image(ls_tensor *file, int channels);

/* Also batches. Centres of pixels are at halves, as TensorFlow 2 has it (tf.image.resize without
 * antialias); f32 out of any number type but f64, which stays; nearest keeps the dtype. */
LS_API ls_tensor *ls_resize_bilinear(ls_tensor *x, int64_t height, int64_t width);
LS_API ls_tensor *ls_resize_nearest(ls_tensor *x, int64_t height, int64_t width);

/* Also batches. LS_INVALID when it is not inside, or has no pixels. Where the middle is between two
 * pixels, a centre crop is nearer to the top and left. */
LS_API ls_tensor *ls_crop(ls_tensor *x, int64_t top, int64_t left, int64_t height, int64_t width);
LS_API ls_tensor *ls_center_crop(ls_tensor *x, int64_t height, int64_t width);
LS_API ls_tensor *ls_flip_left_right(ls_tensor *x);
LS_API ls_tensor *ls_flip_up_down(ls_tensor *x);

/* One picture: the place, or whether it is turned, is drawn. */
LS_API ls_tensor *ls_random_crop(ls_tensor *x, int64_t height, int64_t width);
LS_API ls_tensor *ls_random_flip_left_right(ls_tensor *x);

LS_END_DECLS

#endif
