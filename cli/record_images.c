/*
 * Images of records: which kind they are, and how a batch of them becomes what the model takes.
 */
#include "record_images.h"

#include <lockstep/ops.h>
#include <stdlib.h>
#include <string.h>

#include "data_source.h"

ls_feature record_image_feature(const sample *x, record_image kind)
{
    ls_feature f = { .key = "image", .dtype = LS_BYTES };
    if (kind == IMAGE_FLOATS || kind == IMAGE_INTEGERS) {
        f.dtype = kind == IMAGE_FLOATS ? LS_F32 : LS_I64;
        f.rank = x->rank;
        memcpy(f.dims, x->dims, sizeof f.dims);
    }
    return f;
}

static ls_tensor *decode_each(const sample *x, ls_tensor *files)
{
    const int n = (int)ls_count(files);
    ls_tensor **pictures = calloc((size_t)n + 1, sizeof *pictures);
    bool good = pictures != NULL;
    for (int i = 0; i < n && good; i++) {
        const void *data;
        size_t bytes;
        good = ls_string_at(files, i, &data, &bytes) == LS_OK;
        pictures[i] = good ? sample_picture(x, ls_from_strings(0, NULL, &data, &bytes)) : NULL;
        good = pictures[i] != NULL;
    }
    ls_tensor *all = good ? ls_stack(n, pictures, 0) : NULL;
    free(pictures);
    return all;
}

ls_tensor *record_images(const sample *x, record_image kind, ls_value *parsed)
{
    ls_tensor *t = ls_leaf_tensor(ls_get(parsed, "image"));
    switch (kind) {
    case IMAGE_ENCODED:
        return t ? decode_each(x, t) : NULL;
    case IMAGE_PIXELS:
        return sample_numbers(x, ls_decode_raw(t, LS_U8, x->rank, x->dims), true);
    case IMAGE_INTEGERS:
        return sample_numbers(x, ls_dtype_is_float(x->dtype) ? ls_cast(t, LS_U8) : t, true);
    case IMAGE_FLOATS:
        break;
    }
    return sample_numbers(x, t, false);
}

/* What one example's feature `image` is, and how many values or bytes it has. A failure is pending. */
static ls_status find_kind(ls_tensor *example, record_image *kind, int64_t *has)
{
    const ls_feature bytes = { .key = "image", .dtype = LS_BYTES };
    ls_value *parsed = ls_parse_examples(example, 1, &bytes);
    if (parsed) {
        const void *data;
        size_t n;
        ls_status st = ls_string_at(ls_leaf_tensor(ls_get(parsed, "image")), 0, &data, &n);
        *kind = !st && sample_is_encoded(data, n) ? IMAGE_ENCODED : IMAGE_PIXELS;
        *has = st ? 0 : (int64_t)n;
        return st;
    }
    for (int i = 0; i < 2 && !parsed && ls_error_pending() == LS_SHAPE; i++) {
        const ls_feature f = { "image", i ? LS_I64 : LS_F32, .variable = true };
        ls_error();
        parsed = ls_parse_examples(example, 1, &f);
        *kind = i ? IMAGE_INTEGERS : IMAGE_FLOATS;
    }
    if (parsed)
        *has = ls_count(ls_leaf_tensor(ls_get(ls_get(parsed, "image"), "values")));
    return ls_error_pending();
}

int record_image_kind(const cli *c, const sample *x, const ls_feature *label,
                      const record_files *files, record_image *kind)
{
    static const char *const called[] = { [IMAGE_ENCODED] = "picture",
                                          [IMAGE_PIXELS] = "bytes",
                                          [IMAGE_FLOATS] = "floats",
                                          [IMAGE_INTEGERS] = "integers" };
    int64_t has = 0, height, width;
    int channels, first = 0;
    *kind = IMAGE_PIXELS;
    while (first < files->count && files->at[first].records == 0)
        first++;
    if (first == files->count)
        return EXIT_DONE;
    const char *name = files->at[first].name;
    LS_FOR_EACH (record, ls_take(record_files_read(files, first, first + 1), 1))
        if (find_kind(ls_leaf_tensor(record), kind, &has) ||
            (label && !ls_parse_examples(ls_leaf_tensor(record), 1, label)))
            break;
    if (ls_error_pending()) {
        ls_status code = ls_error();
        return cli_error(c, EXIT_USAGE, code, ls_error_hint(), "'%s': %s", name, cli_error_text());
    }
    if (*kind == IMAGE_ENCODED && sample_is_picture(x, &height, &width, &channels))
        return EXIT_DONE;
    if (*kind != IMAGE_ENCODED && has == x->count)
        return EXIT_DONE;
    return cli_error(
        c, EXIT_USAGE, LS_SHAPE,
        *kind == IMAGE_PIXELS ? "an image is a JPEG, a PNG, a byte a pixel, or a list of floats"
                              : "",
        "'%s': the first image has %lld %s%s, but the model takes %s", name, (long long)has,
        *kind == IMAGE_ENCODED ? "bytes of a " : "", called[*kind], x->text);
}
