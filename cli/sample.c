/*
 * What a model takes, read from its text, and the way there: shape, dtype, scale. Nothing here knows
 * a file format but pictures, which are decoded to the size the model has.
 */
#include "sample.h"

#include <lockstep/image.h>
#include <lockstep/ops.h>
#include <stdlib.h>
#include <string.h>

/* ---- the text ----------------------------------------------------------------------------------- */

static bool read_dtype(const char *text, size_t length, ls_dtype *out)
{
#define TRY(name, value, its_text, bytes)                                                          \
    if (strlen(its_text) == length && strncmp(text, its_text, length) == 0) {                      \
        *out = name;                                                                               \
        return true;                                                                               \
    }
    LS_DTYPE_LIST(TRY)
#undef TRY
    return false;
}

bool sample_read(const char *text, sample *out)
{
    sample s = { .text = text, .count = 1 };
    const char *at = strchr(text, '[');
    if (!at || !read_dtype(text, (size_t)(at - text), &s.dtype))
        return false;
    for (at++; *at != ']'; at += *at == ',') {
        char *end;
        long long size = strtoll(at, &end, 10);
        if (s.rank == LS_MAX_RANK || end == at || size < 1 || size > INT64_MAX / s.count ||
            (*end != ',' && *end != ']'))
            return false;
        s.dims[s.rank++] = size;
        s.count *= size;
        at = end;
    }
    if (at[1])
        return false;
    *out = s;
    return true;
}

/* ---- shapes ------------------------------------------------------------------------------------- */

static int without_ones(int rank, const int64_t *dims, int64_t *out)
{
    int n = 0;
    for (int i = 0; i < rank; i++)
        if (dims[i] != 1)
            out[n++] = dims[i];
    return n;
}

bool sample_fits(const sample *s, int rank, const int64_t *dims)
{
    int64_t a[LS_MAX_RANK], b[LS_MAX_RANK], count = 1;
    if (rank < 0 || rank > LS_MAX_RANK)
        return false;
    int n = without_ones(s->rank, s->dims, a), m = without_ones(rank, dims, b);
    if (n == m && memcmp(a, b, (size_t)n * sizeof *a) == 0)
        return true;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 1 || dims[i] > s->count / count)
            return false;
        count *= dims[i];
    }
    return s->rank == 1 && count == s->count;
}

ls_tensor *sample_rows(const sample *s, ls_tensor *rows)
{
    int64_t dims[LS_MAX_RANK + 1] = { ls_dim(rows, 0) };
    memcpy(dims + 1, s->dims, (size_t)s->rank * sizeof *dims);
    return ls_reshape(rows, s->rank + 1, dims);
}

ls_tensor *sample_numbers(const sample *s, ls_tensor *batch, bool pixels)
{
    const bool scaled = pixels && ls_dtype_of(batch) == LS_U8 && ls_dtype_is_float(s->dtype);
    ls_tensor *x = ls_dtype_of(batch) == s->dtype ? batch : ls_cast(batch, s->dtype);
    return scaled ? ls_scale(x, 1.0 / 255) : x;
}

/* ---- pictures ----------------------------------------------------------------------------------- */

bool sample_is_picture(const sample *s, int64_t *height, int64_t *width, int *channels)
{
    if (s->rank != 2 && s->rank != 3)
        return false;
    const int64_t c = s->rank == 3 ? s->dims[2] : 1;
    *height = s->dims[0];
    *width = s->dims[1];
    *channels = (int)c;
    return c == 1 || c == 3 || c == 4;
}

/* f32, from 0 to 255. */
static ls_tensor *resized(ls_tensor *x, int64_t height, int64_t width)
{
    const int64_t down = ls_dim(x, 0) / height, across = ls_dim(x, 1) / width;
    const int64_t square = down < across ? down : across;
    if (square > 1) {
        x = ls_expand_dims(ls_cast(x, LS_F32), 0);
        x = ls_squeeze(ls_avg_pool2d(x, square, square, LS_VALID), 1, (const int64_t[]){ 0 });
    }
    return ls_resize_bilinear(x, height, width);
}

ls_tensor *sample_picture(const sample *s, ls_tensor *file)
{
    int64_t height, width;
    int channels;
    if (!sample_is_picture(s, &height, &width, &channels))
        return NULL;
    ls_tensor *x = ls_decode_image(file, channels);
    if (!x)
        return NULL;
    if (ls_dim(x, 0) == height && ls_dim(x, 1) == width)
        x = sample_numbers(s, x, true);
    else if (ls_dtype_is_float(s->dtype))
        x = ls_cast(ls_scale(resized(x, height, width), 1.0 / 255), s->dtype);
    else
        x = ls_cast(ls_round(resized(x, height, width)), s->dtype);
    return ls_reshape(x, s->rank, s->dims);
}

bool sample_is_encoded(const void *bytes, size_t count)
{
    return (count >= 4 && memcmp(bytes, "\x89PNG", 4) == 0) ||
           (count >= 3 && memcmp(bytes, "\xff\xd8\xff", 3) == 0);
}
