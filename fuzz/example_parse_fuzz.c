/*
 * Fuzz target: bytes that say they are a serialised tf.train.Example. Either they are refused with
 * an error, or what is read holds together: the same in a batch as alone, the same with a fixed shape
 * as with any number of values, and the same again when an Example is made of it. A
 * broken promise aborts. The bytes lie in memory of just their size, so that a sanitizer sees its
 * end.
 */
#include <lockstep/records.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/tensor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is in the corpus. */
static const ls_feature features[] = {
    { .key = "a", .dtype = LS_I64, .variable = true },
    { .key = "b", .dtype = LS_F32, .variable = true },
    { .key = "c", .dtype = LS_BYTES, .variable = true },
    { .key = "image", .dtype = LS_BYTES, .variable = true },
    { .key = "ints", .dtype = LS_I64, .variable = true },
    { .key = "label", .dtype = LS_I64, .variable = true },
    { .key = "reals", .dtype = LS_F32, .variable = true },
    { .key = "texts", .dtype = LS_BYTES, .variable = true },
};
enum { FEATURES = sizeof features / sizeof *features };

static void require(bool holds, const char *promise, const char *key)
{
    if (holds)
        return;
    fprintf(stderr, "example_parse_fuzz: '%s': %s: %s\n", key, promise, ls_error_report());
    abort();
}

/* bytes[n], or bytes[] for -1, of these strings, which outlive it. */
static ls_tensor *strings_of(ls__string *strings, int64_t n)
{
    ls__spec spec = { .dtype = LS_BYTES, .rank = n < 0 ? 0 : 1, .dims = { n < 0 ? 1 : n } };
    ls__storage *storage = ls__storage_wrap("a fuzz target", strings, NULL, NULL);
    return storage ? ls__handle(&spec, storage, ls__new_id(), ls__device_current()) : NULL;
}

static bool same_string(const ls__string *a, const ls__string *b)
{
    return a->length == b->length && memcmp(a->data, b->data, a->length) == 0;
}

/* `count` values of a from element `i` on, and of b from its first. */
static bool same_values(const ls_tensor *a, int64_t i, const ls_tensor *b, int64_t count)
{
    size_t size = ls_dtype_size(ls_dtype_of(a));
    if (ls_dtype_of(a) != ls_dtype_of(b) || i + count > ls_count(a) || count > ls_count(b))
        return false;
    if (size > 0)
        return memcmp((const char *)ls__data(a) + (size_t)i * size, ls__data(b),
                      (size_t)count * size) == 0;
    const ls__string *x = (const ls__string *)ls__data(a) + i, *y = ls__data(b);
    for (int64_t k = 0; k < count; k++)
        if (!same_string(&x[k], &y[k]) || ((const char *)x[k].data)[x[k].length] != '\0')
            return false;
    return true;
}

static ls_tensor *part(const ls_value *v, const char *key, const char *name)
{
    return ls_leaf_tensor(ls_get(ls_get(v, key), name));
}

/* ---- the promises ----------------------------------------------------------------------------------- */

/* The example, one that says nothing, and the example again. */
static void check_batch(const ls__string *example, const ls_value *one)
{
    ls__string strings[3] = { *example, { "", 0 }, *example };
    ls_value *v = ls_parse_examples(strings_of(strings, 3), FEATURES, features);
    require(v != NULL, "what is read alone is read in a batch", "");
    for (int f = 0; f < FEATURES; f++) {
        const char *key = features[f].key;
        const int64_t *counts = ls_data(part(v, key, "counts"));
        int64_t count = ls_to_int(part(one, key, "counts"));
        const ls_tensor *values = part(v, key, "values"), *want = part(one, key, "values");
        require(counts[0] == count && counts[1] == 0 && counts[2] == count, "as many in a batch",
                key);
        require(same_values(values, 0, want, count) && same_values(values, count, want, count),
                "the same values in a batch", key);
    }
}

/* With the number of values that there are; with one more only what is not there. */
static void check_shape(ls_tensor *example, const ls_value *one, const ls_feature *f)
{
    int64_t count = ls_to_int(part(one, f->key, "counts"));
    ls_feature fixed = { .key = f->key, .dtype = f->dtype, .rank = 1, .dims = { count } };
    ls_value *v = ls_parse_examples(example, 1, &fixed);
    if (v)
        require(
            same_values(ls_leaf_tensor(ls_get(v, f->key)), 0, part(one, f->key, "values"), count),
            "the same values in a shape", f->key);
    else
        require(count == 0 && ls_error() == LS_NOT_FOUND, "what has values has that shape", f->key);
    bool there = v != NULL;
    fixed.dims[0] = count + 1;
    fixed.has_missing = true;
    v = ls_parse_examples(example, 1, &fixed);
    require(there ? !v && ls_error() == LS_SHAPE : v != NULL, "another number of values", f->key);
}

static void check_made_again(const ls_value *one)
{
    const char *keys[FEATURES];
    ls_value *leaves[FEATURES];
    for (int f = 0; f < FEATURES; f++) {
        keys[f] = features[f].key;
        leaves[f] = ls_leaf(part(one, keys[f], "values"));
    }
    ls_tensor *made = ls_make_example(ls_dict(FEATURES, keys, leaves));
    ls_value *v = ls_parse_examples(made, FEATURES, features);
    require(v != NULL, "what was made is read", "");
    for (int f = 0; f < FEATURES; f++) {
        int64_t count = ls_count(part(one, keys[f], "values"));
        require(ls_to_int(part(v, keys[f], "counts")) == count &&
                    same_values(part(v, keys[f], "values"), 0, part(one, keys[f], "values"), count),
                "the same values when made again", keys[f]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = malloc(size ? size : 1);
    if (!bytes)
        return 0;
    if (size > 0)
        memcpy(bytes, data, size);
    ls__string example = { bytes, size };
    LS_FRAME {
        ls_tensor *t = strings_of(&example, -1);
        ls_value *one = ls_parse_examples(t, FEATURES, features);
        if (one) {
            check_batch(&example, one);
            check_made_again(one);
            for (int f = 0; f < FEATURES; f++)
                check_shape(t, one, &features[f]);
            require(ls_error_pending() == LS_OK, "what succeeds leaves no error", "");
        } else {
            ls_status st = ls_error();
            require(st == LS_CORRUPT || st == LS_SHAPE,
                    "what is refused is damaged or of another kind", "");
        }
    }
    free(bytes);
    return 0;
}
