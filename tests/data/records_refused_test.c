/*
 * What records.h and image.h refuse: NULL, negative, huge, of another dtype or shape, bytes that are no
 * example, no picture. The text names the function, or what the header says it names.
 */
#include "data/data_refused.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include <lockstep/image.h>
#include <lockstep/records.h>

static ls_tensor *strings(int64_t n, const char *text)
{
    const void *all[16];
    for (int64_t i = 0; i < n; i++)
        all[i] = text;
    return ls_from_strings(LS_DIMS(n), all, NULL);
}

static ls_tensor *one_string(const void *data, size_t length)
{
    return ls_from_strings(LS_SCALAR, &data, &length);
}

/* ---- writing -------------------------------------------------------------------------------- */

static void writers(void **state)
{
    (void)state;
    NAMES("ls_record_writer_open", LS_INVALID, ls_record_writer_open(NULL, LS_PLAIN));
    NAMES("ls_record_writer_open", LS_INVALID,
          ls_record_writer_open(in_directory("x"), (ls_compression)7));
    NAMES("ls_record_writer_open", LS_INVALID,
          ls_record_writer_open(in_directory("x"), (ls_compression)-1));
    NAMES("ls_record_writer_open", LS_INVALID, ls_record_writer_open("", LS_PLAIN));
    NAMES("/nowhere/x", ANY_ERROR, ls_record_writer_open("/nowhere/x", LS_PLAIN));
    SAYS("ls_record_write", LS_INVALID, ls_record_write(NULL, "x", 1));
    assert_int_equal(ls_record_writer_close(NULL), LS_OK);
    ls_record_writer_discard(NULL);
    assert_int_equal(ls_error_pending(), LS_OK);
    ls_record_writer *w = ls_record_writer_open(in_directory("refused"), LS_PLAIN);
    assert_non_null(w);
    SAYS("ls_record_write", LS_INVALID, ls_record_write(w, NULL, 4));
    assert_int_equal(ls_record_write(w, NULL, 0), LS_OK); /* a record of nothing is one */
    assert_int_equal(ls_record_write(w, "abc", 3), LS_OK);
    assert_int_equal(ls_record_writer_close(w), LS_OK);
    GIVES(ls_tfrecords(LS_FILES(in_directory("refused")), NULL), 0, "[]", "[abc]");
    none_was_wrong();
}

static bool is_there(const char *name)
{
    FILE *f = fopen(in_directory(name), "rb");
    if (f)
        fclose(f);
    return f != NULL;
}

/* The file has its name when it is whole, and not before. */
static void writers_leave_whole_files(void **state)
{
    (void)state;
    for (int c = LS_PLAIN; c <= LS_ZLIB; c++) {
        ls_record_writer *w = ls_record_writer_open(in_directory("whole"), (ls_compression)c);
        if (!w && ls_error() == LS_UNSUPPORTED)
            continue;
        assert_int_equal(ls_record_write(w, "one", 3), LS_OK);
        assert_false(is_there("whole"));
        assert_true(is_there("whole.part"));
        assert_int_equal(ls_record_writer_close(w), LS_OK);
        assert_true(is_there("whole"));
        assert_false(is_there("whole.part"));
        LS_FRAME {
            GIVES(ls_tfrecords(LS_FILES(in_directory("whole")),
                               LS_RECORDS(.compression = (ls_compression)c)),
                  0, "[one]");
        }
        w = ls_record_writer_open(in_directory("gone"), (ls_compression)c);
        assert_int_equal(ls_record_write(w, "one", 3), LS_OK);
        ls_record_writer_discard(w);
        assert_false(is_there("gone"));
        assert_false(is_there("gone.part"));
        remove(in_directory("whole"));
    }
    none_was_wrong();
}

static void examples_that_cannot_be_made(void **state)
{
    (void)state;
    ls_value *leaf = ls_leaf(ls_zeros(LS_F32, LS_DIMS(2)));
    ls_value *inner = ls_dict(1, (const char *[]){ "a" }, &leaf);
    NAMES("ls_make_example", LS_INVALID, ls_make_example(NULL));
    NAMES("ls_make_example", SHAPE_OR_INVALID, ls_make_example(leaf));
    NAMES("ls_make_example", SHAPE_OR_INVALID, ls_make_example(ls_list(1, &leaf)));
    NAMES("ls_make_example", SHAPE_OR_INVALID,
          ls_make_example(ls_dict(1, (const char *[]){ "a" }, &inner)));
    none_was_wrong();
}

/* ---- parsing -------------------------------------------------------------------------------- */

static ls_value *parse(ls_tensor *t, ls_feature f)
{
    return ls_parse_examples(t, 1, &f);
}

static void features(void **state)
{
    (void)state;
    ls_value *three = ls_leaf(ls_from(LS_I64, LS_DIMS(3), (int64_t[]){ 1, 2, 3 }));
    ls_tensor *good = ls_make_example(ls_dict(1, (const char *[]){ "n" }, &three));
    assert_non_null(good);
    const ls_feature n = { .key = "n", .dtype = LS_I64, .rank = 1, .dims = { 3 } };
    assert_non_null(parse(good, n));
    NAMES("ls_parse_examples", LS_INVALID, ls_parse_examples(NULL, 1, &n));
    NAMES("ls_parse_examples", LS_INVALID, ls_parse_examples(good, -1, &n));
    NAMES("ls_parse_examples", LS_INVALID, ls_parse_examples(good, 1, NULL));
    NAMES("ls_parse_examples", SHAPE_OR_INVALID, parse(ls_zeros(LS_U8, LS_DIMS(3)), n));
    NAMES("ls_parse_examples", SHAPE_OR_INVALID,
          parse(ls_from_strings(LS_DIMS(1, 1), (const void *const[]){ "" }, NULL), n));
    NAMES("ls_parse_examples", LS_INVALID, parse(good, (ls_feature){ .dtype = LS_I64 }));
    NAMES("ls_parse_examples", SHAPE_OR_INVALID,
          parse(good, (ls_feature){ .key = "n", .dtype = LS_U8 }));
    NAMES("ls_parse_examples", SHAPE_OR_INVALID,
          parse(good, (ls_feature){ .key = "n", .dtype = LS_I32 }));
    NAMES("ls_parse_examples", SHAPE_OR_INVALID,
          parse(good, (ls_feature){ .key = "n", .dtype = (ls_dtype)0 }));
    NAMES("ls_parse_examples", SHAPE_OR_INVALID,
          parse(good, (ls_feature){ .key = "n", .dtype = (ls_dtype)99 }));
    NAMES("ls_parse_examples", SHAPE_OR_INVALID,
          parse(good, (ls_feature){ .key = "n", .dtype = LS_I64, .rank = -1 }));
    NAMES("ls_parse_examples", SHAPE_OR_INVALID,
          parse(good, (ls_feature){ .key = "n", .dtype = LS_I64, .rank = LS_MAX_RANK + 1 }));
    NAMES("ls_parse_examples", SHAPE_OR_INVALID,
          parse(good, (ls_feature){ .key = "n", .dtype = LS_I64, .rank = 1, .dims = { -3 } }));
    NAMES("ls_parse_examples", ANY_ERROR,
          parse(good,
                (ls_feature){
                    .key = "n", .dtype = LS_I64, .rank = 2, .dims = { INT64_MAX, INT64_MAX } }));
    NAMES(
        "ls_parse_examples", ANY_ERROR,
        parse(good, (ls_feature){ .key = "n", .dtype = LS_I64, .rank = 1, .dims = { 1LL << 60 } }));
    const ls_feature twice[2] = { n, n };
    NAMES("ls_parse_examples", LS_INVALID, ls_parse_examples(good, 2, twice));
    none_was_wrong();
}

/* What does not fit is told by the example's number and the feature's name. */
static void examples_that_do_not_fit(void **state)
{
    (void)state;
    ls_value *three = ls_leaf(ls_from(LS_I64, LS_DIMS(3), (int64_t[]){ 1, 2, 3 }));
    ls_tensor *good = ls_make_example(ls_dict(1, (const char *[]){ "n" }, &three));
    const void *bytes;
    size_t length;
    assert_int_equal(ls_string_at(good, 0, &bytes, &length), LS_OK);
    NAMES("missing", LS_NOT_FOUND, parse(good, (ls_feature){ .key = "missing", .dtype = LS_I64 }));
    NAMES("n", LS_SHAPE,
          parse(good, (ls_feature){ .key = "n", .dtype = LS_F32, .rank = 1, .dims = { 3 } }));
    NAMES("n", LS_SHAPE,
          parse(good, (ls_feature){ .key = "n", .dtype = LS_BYTES, .rank = 1, .dims = { 3 } }));
    NAMES("n", LS_SHAPE,
          parse(good, (ls_feature){ .key = "n", .dtype = LS_I64, .rank = 1, .dims = { 4 } }));
    NAMES("n", LS_SHAPE, parse(good, (ls_feature){ .key = "n", .dtype = LS_I64 }));
    const ls_feature n = { .key = "n", .dtype = LS_I64, .rank = 1, .dims = { 3 } };
    for (size_t cut = 1; cut < length; cut++)
        LS_FRAME {
            ls_value *v = parse(one_string(bytes, cut), n);
            ls_status st = ls_error();
            if (v || (st != LS_CORRUPT && st != LS_NOT_FOUND && st != LS_SHAPE))
                fail_msg("%zu of %zu bytes: %s", cut, length, ls_status_name(st));
        }
    const void *two[2] = { bytes, "\xff\xff\xff\xff" };
    NAMES("1", LS_CORRUPT, parse(ls_from_strings(LS_DIMS(2), two, (size_t[]){ length, 4 }), n));
    none_was_wrong();
}

/* ---- raw numbers ---------------------------------------------------------------------------- */

static void raw_numbers(void **state)
{
    (void)state;
    ls_tensor *eight = strings(2, "12345678");
    NAMES("ls_decode_raw", LS_INVALID, ls_decode_raw(NULL, LS_U8, LS_DIMS(8)));
    NAMES("ls_decode_raw_big_endian", LS_INVALID,
          ls_decode_raw_big_endian(NULL, LS_U8, LS_DIMS(8)));
    NAMES("ls_decode_raw", SHAPE_OR_INVALID,
          ls_decode_raw(ls_zeros(LS_U8, LS_DIMS(8)), LS_U8, LS_DIMS(8)));
    NAMES("ls_decode_raw", SHAPE_OR_INVALID, ls_decode_raw(eight, LS_BYTES, LS_DIMS(8)));
    NAMES("ls_decode_raw", SHAPE_OR_INVALID, ls_decode_raw(eight, (ls_dtype)0, LS_DIMS(8)));
    NAMES("ls_decode_raw", SHAPE_OR_INVALID, ls_decode_raw(eight, (ls_dtype)42, LS_DIMS(8)));
    NAMES("ls_decode_raw", SHAPE_OR_INVALID, ls_decode_raw(eight, LS_U8, -1, NULL));
    NAMES("ls_decode_raw", SHAPE_OR_INVALID, ls_decode_raw(eight, LS_U8, 1, NULL));
    NAMES("ls_decode_raw", SHAPE_OR_INVALID,
          ls_decode_raw(eight, LS_U8, LS_MAX_RANK + 1, (int64_t[9]){ 8, 1, 1, 1, 1, 1, 1, 1, 1 }));
    NAMES("ls_decode_raw", SHAPE_OR_INVALID,
          ls_decode_raw(eight, LS_U8, LS_DIMS(8, 1, 1, 1, 1, 1, 1, 1)));
    NAMES("ls_decode_raw", SHAPE_OR_INVALID, ls_decode_raw(eight, LS_U8, LS_DIMS(-1, -1)));
    NAMES("ls_decode_raw", SHAPE_OR_INVALID, ls_decode_raw(eight, LS_U8, LS_DIMS(-2)));
    NAMES("ls_decode_raw", SHAPE_OR_INVALID, ls_decode_raw(eight, LS_U8, LS_DIMS(7)));
    NAMES("ls_decode_raw", SHAPE_OR_INVALID, ls_decode_raw(eight, LS_F32, LS_DIMS(3)));
    NAMES("ls_decode_raw", SHAPE_OR_INVALID, ls_decode_raw(eight, LS_F32, LS_DIMS(-1, 3)));
    NAMES("ls_decode_raw", SHAPE_OR_INVALID, ls_decode_raw(eight, LS_U8, LS_DIMS(-1, 0)));
    NAMES("ls_decode_raw", SHAPE_OR_INVALID, ls_decode_raw(eight, LS_U8, LS_SCALAR));
    NAMES("ls_decode_raw", ANY_ERROR,
          ls_decode_raw(eight, LS_U8, LS_DIMS(INT64_MAX, INT64_MAX, 2)));
    NAMES("ls_decode_raw", SHAPE_OR_INVALID, ls_decode_raw(strings(1, "123"), LS_F32, LS_DIMS(-1)));
    NAMES("1", LS_SHAPE,
          ls_decode_raw(
              ls_from_strings(LS_DIMS(2), (const void *const[]){ "12345678", "1234" }, NULL),
              LS_F32, LS_DIMS(-1)));
    none_was_wrong();
}

/* ---- pictures ------------------------------------------------------------------------------- */

static void pictures_to_decode(void **state)
{
    (void)state;
    ls_tensor *empty = one_string("", 0),
              *junk = one_string("this is no picture at all.......", 32);
    ls_tensor *png = one_string("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16);
    ls_tensor *jpeg = one_string("\xff\xd8\xff\xe0\0\x10JFIF", 10);
    NAMES("ls_decode_image", LS_INVALID, ls_decode_image(NULL, 3));
    NAMES("ls_decode_jpeg", LS_INVALID, ls_decode_jpeg(NULL, 3));
    NAMES("ls_decode_png", LS_INVALID, ls_decode_png(NULL, 3));
    NAMES("ls_decode_image", SHAPE_OR_INVALID, ls_decode_image(ls_zeros(LS_U8, LS_DIMS(9)), 3));
    NAMES("ls_decode_jpeg", ANY_ERROR, ls_decode_jpeg(ls_zeros(LS_U8, LS_DIMS(9)), 3));
    NAMES("ls_decode_png", ANY_ERROR, ls_decode_png(ls_zeros(LS_U8, LS_DIMS(9)), 3));
    NAMES("ls_decode_image", SHAPE_OR_INVALID, ls_decode_image(strings(2, "x"), 3));
    static const int channels[] = { -1, 2, 5, INT_MAX, INT_MIN };
    for (int i = 0; i < 5; i++) {
        NAMES("ls_decode_", ANY_ERROR, ls_decode_image(png, channels[i]));
        NAMES("ls_decode_png", ANY_ERROR, ls_decode_png(png, channels[i]));
        NAMES("ls_decode_jpeg", ANY_ERROR, ls_decode_jpeg(jpeg, channels[i]));
    }
    NAMES("ls_decode_jpeg", ANY_ERROR, ls_decode_jpeg(jpeg, 4)); /* no alpha */
    ls_tensor *files[] = { empty, junk, png, jpeg };
    for (int i = 0; i < 4; i++) {
        NAMES("ls_decode_jpeg", CORRUPT_OR_UNSUPPORTED, ls_decode_jpeg(files[i], 3));
        NAMES("ls_decode_png", CORRUPT_OR_UNSUPPORTED, ls_decode_png(files[i], 3));
        NAMES("ls_decode_", i > 1 ? (int)CORRUPT_OR_UNSUPPORTED : (int)ANY_ERROR,
              ls_decode_image(files[i], 3));
    }
    none_was_wrong();
}

static void pictures_to_change(void **state)
{
    (void)state;
    ls_tensor *x = ls_zeros(LS_F32, LS_DIMS(4, 6, 3)), *flat = ls_zeros(LS_F32, LS_DIMS(4, 6));
    ls_tensor *five = ls_zeros(LS_F32, LS_DIMS(1, 1, 4, 6, 3)), *text = strings(2, "x");
#define ON(call_of_t, name)                                                                        \
    do {                                                                                           \
        ls_tensor *t = NULL;                                                                       \
        NAMES(name, LS_INVALID, call_of_t);                                                        \
        t = flat;                                                                                  \
        NAMES(name, SHAPE_OR_INVALID, call_of_t);                                                  \
        t = five;                                                                                  \
        NAMES(name, SHAPE_OR_INVALID, call_of_t);                                                  \
        t = text;                                                                                  \
        NAMES(name, SHAPE_OR_INVALID, call_of_t);                                                  \
    } while (0)
    ON(ls_resize_bilinear(t, 2, 2), "resize_bilinear");
    ON(ls_resize_nearest(t, 2, 2), "resize_nearest");
    ON(ls_crop(t, 0, 0, 2, 2), "crop");
    ON(ls_center_crop(t, 2, 2), "center_crop");
    ON(ls_flip_left_right(t), "flip_left_right");
    ON(ls_flip_up_down(t), "flip_up_down");
    ON(ls_random_crop(t, 2, 2), "random_crop");
    ON(ls_random_flip_left_right(t), "random_flip_left_right");
    static const int64_t bad[] = { 0, -1, INT64_MIN };
    for (int i = 0; i < 3; i++) {
        NAMES("resize_bilinear", LS_INVALID, ls_resize_bilinear(x, bad[i], 2));
        NAMES("resize_bilinear", LS_INVALID, ls_resize_bilinear(x, 2, bad[i]));
        NAMES("resize_nearest", LS_INVALID, ls_resize_nearest(x, bad[i], 2));
        NAMES("resize_nearest", LS_INVALID, ls_resize_nearest(x, 2, bad[i]));
    }
    NAMES("resize_bilinear", ANY_ERROR, ls_resize_bilinear(x, INT64_MAX, INT64_MAX));
    NAMES("resize_nearest", ANY_ERROR, ls_resize_nearest(x, INT64_MAX, INT64_MAX));
    NAMES("resize_nearest", ANY_ERROR, ls_resize_nearest(x, 1LL << 31, 1LL << 31));
    NAMES("crop", LS_INVALID, ls_crop(x, -1, 0, 2, 2));
    NAMES("crop", LS_INVALID, ls_crop(x, 0, -1, 2, 2));
    NAMES("crop", LS_INVALID, ls_crop(x, 3, 0, 2, 2));
    NAMES("crop", LS_INVALID, ls_crop(x, 0, 5, 2, 2));
    NAMES("crop", LS_INVALID, ls_crop(x, 0, 0, -1, 2));
    NAMES("crop", LS_INVALID, ls_crop(x, 0, 0, 5, 2));
    NAMES("crop", LS_INVALID, ls_crop(x, 1, 1, INT64_MAX, 2));
    NAMES("crop", LS_INVALID, ls_crop(x, INT64_MAX, 0, 1, 1));
    NAMES("crop", LS_INVALID, ls_crop(x, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN));
    NAMES("center_crop", LS_INVALID, ls_center_crop(x, 5, 2));
    NAMES("center_crop", LS_INVALID, ls_center_crop(x, 2, 7));
    NAMES("center_crop", LS_INVALID, ls_center_crop(x, -1, 2));
    NAMES("center_crop", LS_INVALID, ls_center_crop(x, INT64_MIN, INT64_MAX));
    NAMES("random_crop", LS_INVALID, ls_random_crop(x, 5, 2));
    NAMES("random_crop", LS_INVALID, ls_random_crop(x, 2, 7));
    NAMES("random_crop", LS_INVALID, ls_random_crop(x, -2, 2));
    ls_tensor *batch = ls_zeros(LS_F32, LS_DIMS(2, 4, 6, 3)); /* random ones: one picture */
    NAMES("random_crop", SHAPE_OR_INVALID, ls_random_crop(batch, 2, 2));
    NAMES("random_flip_left_right", SHAPE_OR_INVALID, ls_random_flip_left_right(batch));
    none_was_wrong();
}

#define TEST(f) cmocka_unit_test_setup(f, clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(writers),
        TEST(writers_leave_whole_files),
        TEST(examples_that_cannot_be_made),
        TEST(features),
        TEST(examples_that_do_not_fit),
        TEST(raw_numbers),
        TEST(pictures_to_decode),
        TEST(pictures_to_change),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
