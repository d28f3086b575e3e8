/*
 * The feature `image` of tf.train.Example, as a model takes it. What it is, is what the first one is: an
 * encoded picture (JPEG or PNG, resized to the model's size), bytes that are pixels, a list of
 * floats, or a list of integers, which are pixels to a model that takes floats.
 */
#ifndef LOCKSTEP_CLI_RECORD_IMAGES_H
#define LOCKSTEP_CLI_RECORD_IMAGES_H

#include <lockstep/records.h>

#include "record_files.h"
#include "sample.h"

typedef enum record_image {
    IMAGE_ENCODED,
    IMAGE_PIXELS,
    IMAGE_FLOATS,
    IMAGE_INTEGERS
} record_image;

/* By the first record, if there is one, which the model must be able to take, and which must have a
 * label (NULL: it need not). EXIT_DONE, or the exit status of what was told. */
int record_image_kind(const cli *c, const sample *x, const ls_feature *label,
                      const record_files *files, record_image *out);

/* What to parse, and what the model makes of what was parsed: a batch. */
ls_feature record_image_feature(const sample *x, record_image kind);
ls_tensor *record_images(const sample *x, record_image kind, ls_value *parsed);

#endif
