/*
 * ls_parse_examples: shapes, what is missing, lists of any length, many examples at once against one
 * by one, and every error by its text.
 */
#include <stdio.h>

#include "data/example_test_support.h"

static ls_tensor *tensor_at(const ls_value *v, const char *key)
{
    return ls_leaf_tensor(ls_get(v, key));
}

static void string_is(const ls_tensor *t, int64_t i, const char *want)
{
    const void *data;
    size_t length;
    assert_int_equal(ls_string_at(t, i, &data, &length), LS_OK);
    assert_int_equal(length, strlen(want));
    assert_string_equal(data, want); /* with its NUL */
}

/* image "pixels<i>", label <i>, box { i, i+1, i+2, i+3 }, tags: i of them. Keys in turns. */
static void put_sample(bytes *features, int i)
{
    char image[16], tags[8][16];
    const char *names[8];
    bytes parts[4];
    static const char *const keys[] = { "image", "label", "box", "tags" };
    snprintf(image, sizeof image, "pixels%d", i);
    for (int k = 0; k < 8; k++) {
        snprintf(tags[k], sizeof tags[k], "%d.%d", i, k);
        names[k] = tags[k];
    }
    parts[0] = bytes_feature(1, (const char *const[]){ image });
    parts[1] = int_feature(1, (int64_t[]){ i });
    parts[2] = float_feature(4, (float[]){ (float)i, (float)i + 1, (float)i + 2, (float)i + 3 });
    parts[3] = bytes_feature(i % 8, names);
    for (int k = 0; k < 4; k++)
        put_entry(features, keys[(k + i / 3) % 4], &parts[(k + i / 3) % 4]);
}

static ls_tensor *samples(int n)
{
    static bytes all[64];
    const uint8_t *data[64];
    size_t lengths[64];
    for (int i = 0; i < n; i++) {
        bytes features = { .n = 0 };
        all[i].n = 0;
        put_sample(&features, i);
        put_message(&all[i], 1, &features);
        data[i] = all[i].at;
        lengths[i] = all[i].n;
    }
    return exact_strings(n, data, lengths);
}

static const ls_feature sample_features[] = {
    { .key = "image", .dtype = LS_BYTES },
    { .key = "label", .dtype = LS_I64 },
    { .key = "box", .dtype = LS_F32, .rank = 2, .dims = { 2, 2 } },
    { .key = "tags", .dtype = LS_BYTES, .variable = true },
    { .key = "weight", .dtype = LS_F32, .has_missing = true, .missing = 0.5 },
    { .key = "ids", .dtype = LS_I64, .rank = 1, .dims = { 3 }, .has_missing = true, .missing = -1 },
    { .key = "note", .dtype = LS_BYTES, .rank = 1, .dims = { 2 }, .has_missing = true },
    { .key = "scores", .dtype = LS_F32, .variable = true },
};
enum { SAMPLE_FEATURES = sizeof sample_features / sizeof *sample_features };

static void a_batch(void **state)
{
    (void)state;
    enum { N = 40 };
    LS_FRAME {
        ls_value *v = ls_parse_examples(samples(N), SAMPLE_FEATURES, sample_features);
        assert_int_equal(ls_length(v), SAMPLE_FEATURES);
        assert_string_equal(ls_describe(tensor_at(v, "image")), "bytes[40]");
        assert_string_equal(ls_describe(tensor_at(v, "label")), "i64[40]");
        assert_string_equal(ls_describe(tensor_at(v, "box")), "f32[40,2,2]");
        assert_string_equal(ls_describe(tensor_at(v, "weight")), "f32[40]");
        assert_string_equal(ls_describe(tensor_at(v, "ids")), "i64[40,3]");
        assert_string_equal(ls_describe(tensor_at(v, "note")), "bytes[40,2]");
        const ls_value *tags = ls_get(v, "tags"), *scores = ls_get(v, "scores");
        assert_string_equal(ls_describe(tensor_at(tags, "values")), "bytes[140]");
        assert_string_equal(ls_describe(tensor_at(tags, "counts")), "i64[40]");
        assert_string_equal(ls_describe(tensor_at(scores, "values")), "f32[0]");
        const int64_t *labels = ls_data(tensor_at(v, "label")), *ids = ls_data(tensor_at(v, "ids")),
                      *counts = ls_data(tensor_at(tags, "counts")),
                      *none = ls_data(tensor_at(scores, "counts"));
        const float *boxes = ls_data(tensor_at(v, "box")),
                    *weights = ls_data(tensor_at(v, "weight"));
        for (int i = 0, tag = 0; i < N; i++) {
            char text[16];
            snprintf(text, sizeof text, "pixels%d", i);
            string_is(tensor_at(v, "image"), i, text);
            string_is(tensor_at(v, "note"), 2 * i, "");
            string_is(tensor_at(v, "note"), 2 * i + 1, "");
            assert_int_equal(labels[i], i);
            assert_true(weights[i] == 0.5f);
            assert_int_equal(none[i], 0);
            assert_int_equal(counts[i], i % 8);
            for (int k = 0; k < 4; k++)
                assert_true(boxes[4 * i + k] == (float)(i + k));
            for (int k = 0; k < 3; k++)
                assert_int_equal(ids[3 * i + k], -1);
            for (int k = 0; k < i % 8; k++, tag++) {
                snprintf(text, sizeof text, "%d.%d", i, k);
                string_is(tensor_at(tags, "values"), tag, text);
            }
        }
        assert_int_equal(ls_error_pending(), LS_OK);
    }
}

/* bytes[] gives what row i of bytes[n] does, without the axis. */
static void one_by_one(void **state)
{
    (void)state;
    enum { N = 20 };
    LS_FRAME {
        ls_tensor *all = samples(N);
        ls_value *v = ls_parse_examples(all, SAMPLE_FEATURES, sample_features);
        int64_t tags_before = 0;
        for (int i = 0; i < N; i++) {
            const void *data;
            size_t length;
            assert_int_equal(ls_string_at(all, i, &data, &length), LS_OK);
            ls_value *one =
                ls_parse_examples(exact_string(data, length), SAMPLE_FEATURES, sample_features);
            assert_string_equal(ls_describe(tensor_at(one, "image")), "bytes[]");
            assert_string_equal(ls_describe(tensor_at(one, "label")), "i64[]");
            assert_string_equal(ls_describe(tensor_at(one, "box")), "f32[2,2]");
            assert_string_equal(ls_describe(tensor_at(one, "note")), "bytes[2]");
            assert_int_equal(ls_to_int(tensor_at(one, "label")), i);
            assert_memory_equal(ls_data(tensor_at(one, "box")),
                                (const float *)ls_data(tensor_at(v, "box")) + 4 * i, 16);
            const ls_value *tags = ls_get(one, "tags");
            assert_string_equal(ls_describe(tensor_at(tags, "counts")), "i64[]");
            int64_t count = ls_to_int(tensor_at(tags, "counts"));
            assert_int_equal(count, i % 8);
            assert_int_equal(ls_count(tensor_at(tags, "values")), count);
            for (int64_t k = 0; k < count; k++) {
                const void *want;
                ls_string_at(tensor_at(ls_get(v, "tags"), "values"), tags_before + k, &want,
                             &length);
                string_is(tensor_at(tags, "values"), k, want);
            }
            tags_before += count;
        }
        assert_int_equal(ls_error_pending(), LS_OK);
    }
}

static void nothing(void **state)
{
    (void)state;
    LS_FRAME {
        ls_value *v = ls_parse_examples(samples(0), SAMPLE_FEATURES, sample_features);
        assert_string_equal(ls_describe(tensor_at(v, "box")), "f32[0,2,2]");
        assert_string_equal(ls_describe(tensor_at(v, "note")), "bytes[0,2]");
        assert_string_equal(ls_describe(tensor_at(ls_get(v, "tags"), "values")), "bytes[0]");
        assert_int_equal(ls_length(ls_parse_examples(samples(3), 0, NULL)), 0);
        ls_feature none[] = {
            { .key = "weight", .dtype = LS_F32, .rank = 1, .dims = { 0 }, .has_missing = true },
            { .key = "note", .dtype = LS_BYTES, .rank = 2, .dims = { 3, 0 }, .has_missing = true }
        };
        v = ls_parse_examples(samples(3), 2, none);
        assert_string_equal(ls_describe(tensor_at(v, "weight")), "f32[3,0]");
        assert_string_equal(ls_describe(tensor_at(v, "note")), "bytes[3,3,0]");
        bytes features = { .n = 0 }, empty = { .n = 0 };
        v = ls_parse_examples(exact_string("", 0), 2, none); /* an Example that says nothing */
        assert_string_equal(ls_describe(tensor_at(v, "weight")), "f32[0]");
        put_entry(&features, "weight", &empty); /* a feature that says nothing is not there */
        none[0].rank = 0;
        none[0].missing = 3;
        v = ls_parse_examples(example_of(&features), 2, none);
        assert_true(ls_to_float(tensor_at(v, "weight")) == 3);
        assert_int_equal(ls_error_pending(), LS_OK);
    }
}

/* The last entry of a key counts, also where the one before would not do. */
static void the_last_entry_counts(void **state)
{
    (void)state;
    LS_FRAME {
        bytes features = { .n = 0 }, two = int_feature(2, (int64_t[]){ 1, 2 }),
              name = bytes_feature(1, (const char *const[]){ "x" }),
              one = int_feature(1, (int64_t[]){ INT64_MIN });
        put_entry(&features, "label", &two);
        put_entry(&features, "label", &name);
        put_entry(&features, "labels", &two);
        put_entry(&features, "label", &one);
        put_entry(&features, "labe", &two);
        ls_feature label = { .key = "label", .dtype = LS_I64 };
        ls_value *v = ls_parse_examples(example_of(&features), 1, &label);
        assert_int_equal(ls_to_int(tensor_at(v, "label")), INT64_MIN);

        bytes split = { .n = 0 }, more = { .n = 0 }; /* Features in two pieces */
        put_message(&split, 1, &features);
        put_entry(&more, "label", &two);
        put_message(&split, 1, &more);
        label.variable = true;
        v = ls_get(ls_parse_examples(exact_string(split.at, split.n), 1, &label), "label");
        assert_int_equal(ls_to_int(tensor_at(v, "counts")), 2);
        assert_int_equal(ls_error_pending(), LS_OK);
    }
}

/* ---- errors --------------------------------------------------------------------------------------- */

static void missing_features(void **state)
{
    (void)state;
    LS_FRAME {
        ls_feature f = { .key = "lable", .dtype = LS_I64 };
        assert_null(ls_parse_examples(samples(3), 1, &f));
        assert_string_equal(ls_error_text(), "ls_parse_examples: example 0 has no feature 'lable'");
        says(LS_NOT_FOUND, "it has: image, label, box, tags; .has_missing");
        bytes features = { .n = 0 }, one = int_feature(1, (int64_t[]){ 1 });
        assert_null(ls_parse_examples(example_of(&features), 1, &f));
        says(LS_NOT_FOUND, "it has: nothing;");
        put_entry(&features, "a\n\x1b\xc3\xa9z", &one); /* not for terminals */
        assert_null(ls_parse_examples(example_of(&features), 1, &f));
        says(LS_NOT_FOUND, "it has: a????z;");
        for (int i = 0; i < 30; i++)
            put_entry(&features, "a long key", &one);
        assert_null(ls_parse_examples(example_of(&features), 1, &f));
        says(LS_NOT_FOUND, "a long key, ...;");
        char key[301];
        memset(key, 'k', sizeof key - 1);
        key[300] = '\0';
        features.n = 0;
        put_entry(&features, key, &one);
        assert_null(ls_parse_examples(example_of(&features), 1, &f));
        says(LS_NOT_FOUND, "it has: ...;");
    }
}

/* Two keys that fill what there is room for, to the last character, and a third. */
static void keys_of_any_length_are_named(void **state)
{
    (void)state;
    for (int first = 1; first < 140; first++)
        for (int second = 1; second < 140; second += first < 100 ? 7 : 1)
            LS_FRAME {
                char key[2][140] = { "" };
                ls_feature f = { .key = "lable", .dtype = LS_I64 };
                bytes features = { .n = 0 }, one = int_feature(1, (int64_t[]){ 1 });
                memset(key[0], 'a', (size_t)first);
                memset(key[1], 'b', (size_t)second);
                put_entry(&features, key[0], &one);
                put_entry(&features, key[1], &one);
                put_entry(&features, "c", &one);
                assert_null(ls_parse_examples(example_of(&features), 1, &f));
                assert_true(strlen(ls_error_hint()) < 250);
                says(LS_NOT_FOUND, "; .has_missing");
            }
}

static void wrong_kinds_and_numbers(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *t = samples(5);
        ls_feature f = { .key = "label", .dtype = LS_F32 };
        assert_null(ls_parse_examples(t, 1, &f));
        says(LS_SHAPE,
             "ls_parse_examples: example 0: feature 'label' is a list of int64; f32 takes "
             "a list of floats");
        f.variable = true;
        f.dtype = LS_BYTES;
        assert_null(ls_parse_examples(t, 1, &f));
        says(LS_SHAPE, "bytes takes a list of bytes");
        f = (ls_feature){ .key = "box", .dtype = LS_I64, .has_missing = true };
        assert_null(ls_parse_examples(t, 1, &f));
        says(LS_SHAPE, "'box' is a list of floats; i64 takes a list of int64");
        f = (ls_feature){ .key = "image", .dtype = LS_I64 };
        assert_null(ls_parse_examples(t, 1, &f));
        says(LS_SHAPE, "'image' is a list of bytes");

        f = (ls_feature){ .key = "box", .dtype = LS_F32, .rank = 1, .dims = { 3 } };
        assert_null(ls_parse_examples(t, 1, &f)); /* more than there is room for */
        says(LS_SHAPE, "example 0: feature 'box' has 4 values; f32[3] takes 3");
        f.dims[0] = 5;
        assert_null(ls_parse_examples(t, 1, &f));
        says(LS_SHAPE, "example 0: feature 'box' has 4 values; f32[5] takes 5");
        f = (ls_feature){ .key = "label", .dtype = LS_I64, .rank = 1, .dims = { 0 } };
        assert_null(ls_parse_examples(t, 1, &f));
        says(LS_SHAPE, "example 0: feature 'label' has 1 value; i64[0] takes 0");
        f = (ls_feature){ .key = "tags", .dtype = LS_BYTES, .has_missing = true };
        assert_null(ls_parse_examples(t, 1, &f)); /* there, and empty */
        says(LS_SHAPE, "example 0: feature 'tags' has 0 values; bytes[] takes 1");
        f = (ls_feature){ .key = "label", .dtype = LS_I64 };
        ls_feature tags = { .key = "tags", .dtype = LS_BYTES, .rank = 1, .dims = { 0 } };
        assert_null(ls_parse_examples(t, 2, (ls_feature[]){ f, tags }));
        says(LS_SHAPE, "example 1: feature 'tags' has 1 value; bytes[0] takes 0");
        assert_int_equal(ls_error_pending(), LS_OK);
    }
}

/* Far more values than there is room for: counted, and not written (a sanitizer sees it). */
static void long_lists(void **state)
{
    (void)state;
    enum { N = 1000 };
    static int64_t ints[N];
    static float floats[N];
    static const char *texts[N];
    for (int i = 0; i < N; i++)
        texts[i] = "";
    bytes parts[] = { int_feature(N, ints), float_feature(N, floats), bytes_feature(N, texts) };
    static const ls_dtype dtypes[] = { LS_I64, LS_F32, LS_BYTES };
    for (int k = 0; k < 3; k++)
        LS_FRAME {
            bytes features = { .n = 0 };
            put_entry(&features, "x", &parts[k]);
            ls_feature f = { .key = "x", .dtype = dtypes[k] };
            assert_null(ls_parse_examples(example_of(&features), 1, &f));
            says(LS_SHAPE, "example 0: feature 'x' has 1000 values; ");
            f.variable = true;
            ls_value *v = ls_get(ls_parse_examples(example_of(&features), 1, &f), "x");
            assert_int_equal(ls_count(tensor_at(v, "values")), N);
        }
}

/* What is wrong is said once, with the place. Other features and examples do not matter. */
static void damage(void **state)
{
    (void)state;
    static const struct {
        const char *list; /* the body of an int64 list */
        size_t bytes;
        const char *says;
    } lists[] = {
        { "\x0a\x02\x01", 3, "a length goes past the end" },
        { "\x0a\x02\x01\x80", 4, "a number is cut off" },
        { "\x08\x80", 2, "a number is cut off" },
        { "\x0a\x0b\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 13,
          "a number has more than 10 bytes" },
        { "\x0a", 1, "a number is cut off" },
        { "\x0e\x01", 2, "no field has such a type" },
        { "\x00\x01", 2, "no field has such a number" },
        { "\x80\x80\x80\x80\x80\x01\x01", 7, "no field has such a number" },
        { "\x0c", 1, "a group ends that did not begin" },
        { "\x23\x2c", 2, "a group ends that did not begin" },
        { "\x23\x0a\x01\x00", 4, "a group is cut off" },
        { "\x25\x01\x02\x03", 4, "a number is cut off" },
        { "\x21\x01\x02\x03\x04\x05\x06\x07", 8, "a number is cut off" },
    };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        for (int variable = 0; variable < 2; variable++) {
            LS_FRAME {
                bytes feature = { .n = 0 }, features = { .n = 0 },
                      good = int_feature(1, (int64_t[]){ 5 });
                put_bytes(&feature, 3, lists[i].list, lists[i].bytes);
                put_entry(&features, "good", &good);
                put_entry(&features, "bad", &feature);
                ls_tensor *t = example_of(&features);
                ls_feature f = { .key = "bad", .dtype = LS_I64, .variable = variable };
                assert_null(ls_parse_examples(t, 1, &f));
                assert_non_null(strstr(ls_error_text(),
                                       "ls_parse_examples: example 0, feature 'bad', is damaged "
                                       "at byte "));
                says(LS_CORRUPT, lists[i].says);
                f.key = "good"; /* nobody looks into the other */
                f.variable = false;
                assert_int_equal(ls_to_int(tensor_at(ls_parse_examples(t, 1, &f), "good")), 5);
            }
        }
    }
    LS_FRAME {
        bytes features = { .n = 0 }, feature = { .n = 0 };
        put_bytes(&feature, 2, "\x0a\x03xyz", 5);
        put_entry(&features, "x", &feature);
        ls_feature f = { .key = "x", .dtype = LS_F32 };
        assert_null(ls_parse_examples(example_of(&features), 1, &f));
        says(LS_CORRUPT, "packed floats do not fill their length");
        assert_null(ls_parse_examples(exact_string("\x0a\x05", 2), 1, &f));
        says(LS_CORRUPT, "ls_parse_examples: example 0 is damaged at byte 2 of 2: a length goes "
                         "past the end");
        assert_null(ls_parse_examples(
            exact_string("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11), 0, NULL));
        says(LS_CORRUPT, "past the end"); /* a length of 2^64 - 1 */
    }
}

static void bad_calls(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *t = samples(2);
        ls_feature f = { .key = "label", .dtype = LS_I64 };
        assert_null(ls_parse_examples(NULL, 1, &f));
        says(LS_INVALID, "ls_parse_examples: examples is NULL");
        assert_null(ls_parse_examples(ls_ones(LS_F32, LS_DIMS(2)), 1, &f));
        says(LS_SHAPE, "wants bytes[] or bytes[n], got f32[2]");
        const void *texts[] = { "", "" };
        assert_null(ls_parse_examples(ls_from_strings(LS_DIMS(2, 1), texts, NULL), 1, &f));
        says(LS_SHAPE, "got bytes[2,1]");
        assert_null(ls_parse_examples(t, -1, &f));
        says(LS_INVALID, "-1 features");
        assert_null(ls_parse_examples(t, 2, NULL));
        says(LS_INVALID, "2 features in NULL");
        assert_null(ls_parse_examples(t, 2, (ls_feature[]){ f, { .dtype = LS_I64 } }));
        says(LS_INVALID, "feature 1 has no key");
        assert_null(ls_parse_examples(t, 2, (ls_feature[]){ f, f }));
        says(LS_INVALID, "feature 'label' twice");
        f.dtype = LS_I32;
        assert_null(ls_parse_examples(t, 1, &f));
        says(LS_INVALID, "ls_parse_examples: feature 'label': dtype i32");
        f.dtype = (ls_dtype)77;
        assert_null(ls_parse_examples(t, 1, &f));
        says(LS_INVALID, "dtype ?");
        f = (ls_feature){ .key = "label", .dtype = LS_I64, .variable = true, .rank = 1 };
        assert_null(ls_parse_examples(t, 1, &f));
        says(LS_INVALID, "variable, and of rank 1");
        f = (ls_feature){ .key = "label", .dtype = LS_I64, .rank = -1 };
        assert_null(ls_parse_examples(t, 1, &f));
        says(LS_INVALID, "ls_parse_examples: feature 'label': rank -1");
        f.rank = LS_MAX_RANK; /* and the axis of examples */
        assert_null(ls_parse_examples(t, 1, &f));
        says(LS_INVALID, "rank 9");
        f.rank = 1000;
        assert_null(ls_parse_examples(t, 1, &f));
        says(LS_INVALID, "rank 1000");
        f = (ls_feature){ .key = "label", .dtype = LS_I64, .rank = 2, .dims = { 2, -3 } };
        assert_null(ls_parse_examples(t, 1, &f));
        says(LS_INVALID, "size -3");
        f.dims[0] = f.dims[1] = INT64_MAX / 2;
        assert_null(ls_parse_examples(t, 1, &f));
        says(LS_INVALID, "overflows");
        f.dims[0] = INT64_MAX / 64, f.dims[1] = 1;
        assert_null(ls_parse_examples(t, 1, &f));
        says(LS_NO_MEMORY, "ls_parse_examples");
        t->storage->symbol = 1; /* as what a step computes has while it is traced */
        assert_null(ls_parse_examples(t, 0, NULL));
        says(LS_STATE, "ls_parse_examples: in a traced step");
        t->storage->symbol = 0;
        assert_int_equal(ls_error_pending(), LS_OK);
    }
}

/* A call that fails leaves nothing behind when its frame closes. */
static void memory_comes_back(void **state)
{
    (void)state;
    size_t before = memory();
    LS_FRAME {
        ls_feature bad = { .key = "box", .dtype = LS_F32 };
        ls_feature all[SAMPLE_FEATURES + 1];
        memcpy(all, sample_features, sizeof sample_features);
        all[2] = bad;
        assert_null(ls_parse_examples(samples(10), SAMPLE_FEATURES, all));
        failed(LS_SHAPE);
        assert_non_null(ls_parse_examples(samples(10), SAMPLE_FEATURES, sample_features));
    }
    assert_int_equal(memory(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_batch, clean),
        cmocka_unit_test_setup(one_by_one, clean),
        cmocka_unit_test_setup(nothing, clean),
        cmocka_unit_test_setup(the_last_entry_counts, clean),
        cmocka_unit_test_setup(missing_features, clean),
        cmocka_unit_test_setup(keys_of_any_length_are_named, clean),
        cmocka_unit_test_setup(wrong_kinds_and_numbers, clean),
        cmocka_unit_test_setup(long_lists, clean),
        cmocka_unit_test_setup(damage, clean),
        cmocka_unit_test_setup(bad_calls, clean),
        cmocka_unit_test_setup(memory_comes_back, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
