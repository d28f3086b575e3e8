/*
 * One sample as a model takes it, "f32[28,28,1]", and how what files have becomes that. Training
 * and `predict` use the same functions, so a picture means the same number to both.
 */
#ifndef LOCKSTEP_CLI_SAMPLE_H
#define LOCKSTEP_CLI_SAMPLE_H

#include <lockstep/tensor.h>

typedef struct sample {
    const char *text; /* as it was given: it outlives this */
    ls_dtype dtype;
    int rank;
    int64_t dims[LS_MAX_RANK];
    int64_t count; /* numbers in it */
} sample;

/* False: no such text; the canonical one of a model always is. */
bool sample_read(const char *text, sample *out);

/* A sample of this shape holds the same numbers in the same order: axes of size 1 aside it is the same
 * shape, or the model takes one axis. */
bool sample_fits(const sample *s, int rank, const int64_t *dims);

/* [n, something that fits] as [n, what the model takes]; not copied. */
ls_tensor *sample_rows(const sample *s, ls_tensor *rows);

/* The numbers of a batch as the model takes them: with `pixels`, a u8 that becomes a float goes from
 * 0..255 to 0..1; all else is cast. */
ls_tensor *sample_numbers(const sample *s, ls_tensor *batch, bool pixels);

/* Whether the model takes pictures; then how large and of how many channels (1, 3 or 4). */
bool sample_is_picture(const sample *s, int64_t *height, int64_t *width, int *channels);

/* An encoded picture, bytes[], as the model, which takes pictures, takes it; resized if it has another
 * size, much larger ones averaged over squares first. */
ls_tensor *sample_picture(const sample *s, ls_tensor *file);

/* JPEG or PNG, by the first bytes. */
bool sample_is_encoded(const void *bytes, size_t count);

#endif
