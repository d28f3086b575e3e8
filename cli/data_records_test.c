/*
 * TFRecord files as data: images of every kind, files for tests or the last 5 %, epochs and positions; what
 * is wrong is one line.
 */
#include <lockstep/records.h>

#include "test_data.h"

enum { PIXELS = 12, RECORDS = 60 };

typedef enum kind { PIXEL_BYTES, FLOATS, INTEGERS } kind;

/* Sample i begins with i, and has the label i % 7. */
static ls_tensor *image_of(kind k, int i)
{
    unsigned char pixels[PIXELS] = { (unsigned char)i };
    float floats[PIXELS] = { (float)i / 255 };
    const void *bytes = pixels;
    const size_t length = PIXELS;
    switch (k) {
    case PIXEL_BYTES:
        return ls_from_strings(0, NULL, &bytes, &length);
    case FLOATS:
        return ls_from(LS_F32, LS_DIMS(PIXELS), floats);
    case INTEGERS:
        return ls_from(LS_U8, LS_DIMS(PIXELS), pixels);
    }
    return NULL;
}

static void write_example(ls_record_writer *w, ls_tensor *image, const char *key,
                          const char *label_key, int label)
{
    const char *keys[] = { key, label_key };
    ls_value *values[] = { ls_leaf(image), ls_leaf(ls_scalar_int(LS_I64, label)) };
    const void *bytes;
    size_t n;
    assert_int_equal(ls_string_at(ls_make_example(ls_dict(2, keys, values)), 0, &bytes, &n), LS_OK);
    assert_int_equal(ls_record_write(w, bytes, n), LS_OK);
}

/* Samples [begin, end). */
static const char *write_records(const char *name, kind k, int begin, int end,
                                 ls_compression compression)
{
    const char *path = in_folder(name);
    ls_record_writer *w = ls_record_writer_open(path, compression);
    for (int i = begin; i < end; i++)
        LS_FRAME
            write_example(w, image_of(k, i), "image", "label", i % 7);
    assert_int_equal(ls_record_writer_close(w), LS_OK);
    return path;
}

static int64_t record(const void *x, const void *y, int64_t row)
{
    const float first = ((const float *)x)[row * PIXELS];
    const int i = (int)(first * 255 + 0.5f);
    assert_int_equal(((const int32_t *)y)[row], i % 7);
    return i;
}

static data_request request(const char *spec)
{
    return (data_request){
        .spec = spec, .input = "f32[3,4,1]", .label = "i32[]", .global_batch = 16, .seed = 5
    };
}

static void every_kind_of_image_is_taken(void **state)
{
    (void)state;
    for (kind k = PIXEL_BYTES; k <= INTEGERS; k++) {
        char spec[512];
        const char *a = write_records("a-train.tfrecord", k, 0, 40, LS_PLAIN);
        const char *b = write_records("b-train.tfrecord", k, 40, RECORDS, LS_PLAIN);
        write_records("c-test.tfrecord", k, 100, 110, LS_PLAIN);
        snprintf(spec, sizeof spec, "%s,%s,%s/c-*", a, b, folder);
        data_request r = request(spec);
        data_sets sets = open_data(&r);
        assert_int_equal(sets.train_samples, RECORDS);
        assert_int_equal(sets.test_samples, 10);
        static seen train, test;
        ls_iterator *it = ls_iterate(sets.train), *other = ls_iterate(sets.test);
        go_through(it, MOST, &train, record);
        assert_each_once(&train, RECORDS);
        go_through(other, MOST, &test, record);
        for (int i = 0; i < 10; i++)
            assert_int_equal(test.ids[i], 100 + i);
        assert_int_equal(test.n, 10);
        ls_iterator_free(it);
        ls_iterator_free(other);
        data_close(&sets);
    }
}

/* Of three files the last 3 of 60 records: only the last file is read for tests. */
static void the_last_ones_are_held_out(void **state)
{
    (void)state;
    write_records("a", PIXEL_BYTES, 0, 20, LS_PLAIN);
    write_records("b", PIXEL_BYTES, 20, 40, LS_PLAIN);
    write_records("c", PIXEL_BYTES, 40, 60, LS_PLAIN);
    char spec[128];
    snprintf(spec, sizeof spec, "%s/[abc]", folder);
    data_request r = request(spec);
    hear();
    data_sets sets = open_data(&r);
    assert_heard("lockstep train: no file of '%s/[abc]' is for tests: the last 3 of 60 records are "
                 "held out");
    static seen train, test;
    ls_iterator *it = ls_iterate(sets.train), *other = ls_iterate(sets.test);
    go_through(it, MOST, &train, record);
    assert_each_once(&train, 57);
    go_through(other, MOST, &test, record);
    assert_int_equal(test.n, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(test.ids[i], 57 + i);
    ls_iterator_free(it);
    ls_iterator_free(other);
    data_close(&sets);
}

static void files_for_tests_are_told(void **state)
{
    (void)state;
    write_records("train-1", PIXEL_BYTES, 0, 20, LS_PLAIN);
    write_records("train-2", PIXEL_BYTES, 20, 40, LS_PLAIN);
    write_records("Validation", PIXEL_BYTES, 40, 60, LS_PLAIN);
    char spec[256];
    snprintf(spec, sizeof spec, "%s/*-?,%s/V*", folder, folder);
    data_request r = request(spec);
    hear();
    data_sets sets = open_data(&r);
    assert_heard("lockstep train: 40 records of 2 files to train with, 20 of 1 to test with "
                 "('%s/Validation')");
    data_close(&sets);
}

static void epochs_are_whole_and_go_on(void **state)
{
    (void)state;
    write_records("train", PIXEL_BYTES, 0, 30, LS_PLAIN);
    write_records("test", PIXEL_BYTES, 30, 40, LS_PLAIN);
    char spec[128];
    snprintf(spec, sizeof spec, "%s/t*", folder);
    data_request r = request(spec);
    static seen a, b;
    first_epoch(&r, &a, record);
    first_epoch(&r, &b, record);
    assert_true(same_order(&a, &b));
    assert_each_once(&a, 30);
    assert_goes_on(&r, record);
}

static void compressed_files_are_read(void **state)
{
    (void)state;
#ifdef LS_HAVE_ZLIB
    data_request r = request(write_records("train.gz", FLOATS, 0, RECORDS, LS_GZIP));
    data_sets sets = open_data(&r);
    assert_int_equal(sets.train_samples, 57);
    assert_int_equal(sets.test_samples, 3);
    data_close(&sets);
    char spec[256];
    write_records("plain", FLOATS, 0, 3, LS_PLAIN);
    snprintf(spec, sizeof spec, "%s/plain,%s/train.gz", folder, folder);
    r.spec = spec;
    assert_refused(&r,
                   "lockstep train: '%s/train.gz' is compressed, '%s/plain' is not; compress all "
                   "of them, or none");
#else
    skip();
#endif
}

/* A picture of any size becomes the model's. */
static void pictures_are_decoded(void **state)
{
    (void)state;
#ifdef LS_HAVE_SPNG
    char path[4096];
    snprintf(path, sizeof path, "%s/images/grey4.png", getenv("LOCKSTEP_TEST_DIR"));
    static char bytes[65536];
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    ls_record_writer *w = ls_record_writer_open(in_folder("png"), LS_PLAIN);
    const void *data = bytes;
    for (int i = 0; i < RECORDS; i++)
        LS_FRAME
            write_example(w, ls_from_strings(0, NULL, &data, &n), "image", "label", i % 7);
    assert_int_equal(ls_record_writer_close(w), LS_OK);
    data_request r = request(in_folder("png"));
    data_sets sets = open_data(&r);
    ls_iterator *it = ls_iterate(sets.train);
    LS_FRAME {
        ls_value *batch;
        assert_int_equal(ls_next(it, &batch), LS_OK);
        assert_string_equal(ls_describe(ls_item(batch, 0)), "f32[16,3,4,1]");
        float most = ls_to_float(ls_max(ls_item(batch, 0), LS_ALL_AXES, false));
        float least = ls_to_float(ls_min(ls_item(batch, 0), LS_ALL_AXES, false));
        assert_true(least >= 0 && most <= 1 && most > 0.01f);
    }
    ls_iterator_free(it);
    data_close(&sets);
    r.input = "f32[12]";
    data_sets none;
    int status = -1;
    hear();
    assert_false(data_open(&train_cli, &r, &none, &status));
    assert_non_null(strstr(heard(), " bytes of a picture, but the model takes f32[12]\n"));
    assert_int_equal(status, EXIT_USAGE);
#else
    skip();
#endif
}

static void what_is_wrong_is_told(void **state)
{
    (void)state;
    data_request r = request(in_folder("none"));
    data_sets sets;
    int status = -1;
    hear();
    assert_false(data_open(&train_cli, &r, &sets, &status));
    const char *told = heard();
    assert_non_null(strstr(told, "lockstep train: "));
    assert_non_null(strstr(told, r.spec));
    assert_non_null(strstr(told, "; --data takes fashion-mnist, FILE.npz or TFRecord files\n"));
    assert_int_equal(status, EXIT_USAGE);

    r = request(write_file("text.txt", "In the beginning God created", 28));
    assert_refused(&r,
                   "lockstep train: '%s/text.txt' is no TFRecord file; --data takes fashion-mnist, "
                   "FILE.npz or TFRecord files");
    r = request(write_records("good", PIXEL_BYTES, 0, 4, LS_PLAIN));
    assert_refused(&r, "lockstep train: '%s/good' has 3 training samples, fewer than a "
                       "batch of all replicas, 16; give more data, or a smaller --batch");
    r.input = "f32[13]";
    assert_refused(&r,
                   "lockstep train: '%s/good': the first image has 12 bytes, but the model takes "
                   "f32[13]; an image is a JPEG, a PNG, a byte a pixel, or a list of floats");
    r = request(write_records("good", FLOATS, 0, 4, LS_PLAIN));
    r.input = "f32[13]";
    assert_refused(&r,
                   "lockstep train: '%s/good': the first image has 12 floats, but the model takes "
                   "f32[13]");
    r = request(write_file("empty", "", 0));
    assert_refused(&r, "lockstep train: '%s/empty' has 0 training samples, fewer than a "
                       "batch of all replicas, 16; give more data, or a smaller --batch");
    r = request(",,");
    assert_refused(&r, "lockstep train: ',,' is not a list of 1 to 256 names of files; a "
                       "pattern, 'train-*', names many");
}

static void cut_files_are_told(void **state)
{
    (void)state;
    const char *path = write_records("cut", PIXEL_BYTES, 0, 4, LS_PLAIN);
    assert_int_equal(truncate(path, 150), 0);
    data_request r = request(path);
    data_sets sets;
    int status = -1;
    hear();
    assert_false(data_open(&train_cli, &r, &sets, &status));
    assert_non_null(strstr(heard(),
                           "/cut' is damaged or cut off: 150 bytes, and behind 2 records, at "
                           "byte "));
    assert_int_equal(status, EXIT_USAGE);
}

/* What the line says of a file whose examples have other keys. */
static void assert_names(const char *image, const char *label, const char *missing)
{
    ls_record_writer *w = ls_record_writer_open(in_folder("other"), LS_PLAIN);
    for (int i = 0; i < 20; i++)
        LS_FRAME
            write_example(w, image_of(FLOATS, i), image, label, i);
    assert_int_equal(ls_record_writer_close(w), LS_OK);
    data_request r = request(in_folder("other"));
    data_sets sets;
    int status = -1;
    char expected[64];
    hear();
    assert_false(data_open(&train_cli, &r, &sets, &status));
    const char *told = heard();
    snprintf(expected, sizeof expected, "/other': example 0 has no feature '%s'; ", missing);
    assert_non_null(strstr(told, expected));
    assert_non_null(strstr(told, image));
    assert_non_null(strstr(told, label));
    assert_ptr_equal(strchr(told, '\n'), told + strlen(told) - 1);
    assert_int_equal(status, EXIT_USAGE);
}

static void features_are_named(void **state)
{
    (void)state;
    assert_names("picture", "label", "image");
    assert_names("image", "class", "label");
}

int main(void)
{
#define RECORD_TEST(fn) cmocka_unit_test_setup_teardown(fn, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        RECORD_TEST(every_kind_of_image_is_taken), RECORD_TEST(the_last_ones_are_held_out),
        RECORD_TEST(files_for_tests_are_told),     RECORD_TEST(epochs_are_whole_and_go_on),
        RECORD_TEST(compressed_files_are_read),    RECORD_TEST(pictures_are_decoded),
        RECORD_TEST(what_is_wrong_is_told),        RECORD_TEST(cut_files_are_told),
        RECORD_TEST(features_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
