/*
 * Datasets of --data: every epoch sees every sample once, another order each, the same for the same
 * seed; a position goes on exactly; numbers are what the model takes; what is wrong is one line.
 */
#include "test_data.h"

#include "sample.h"

/* ---- Fashion-MNIST: a small one in its place ---------------------------------------------------- */

enum { PICTURES = 100, TEST_PICTURES = 23, PIXELS = 28 * 28 };

/* Sample i has i in its first pixel, 255 - i in its last, and the label i % 10. */
static void write_pictures(const char *which, int n)
{
    static unsigned char bytes[16 + PICTURES * PIXELS];
    char name[64];
    const unsigned char images[16] = { 0, 0, 8, 3,  0, 0, 0, (unsigned char)n,
                                       0, 0, 0, 28, 0, 0, 0, 28 };
    const unsigned char labels[8] = { 0, 0, 8, 1, 0, 0, 0, (unsigned char)n };
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, images, sizeof images);
    for (int i = 0; i < n; i++) {
        bytes[16 + i * PIXELS] = (unsigned char)i;
        bytes[16 + i * PIXELS + PIXELS - 1] = (unsigned char)(255 - i);
    }
    snprintf(name, sizeof name, "%s-images-idx3-ubyte.gz", which);
    write_file(name, bytes, 16 + (size_t)n * PIXELS);
    memcpy(bytes, labels, sizeof labels);
    for (int i = 0; i < n; i++)
        bytes[8 + i] = (unsigned char)(i % 10);
    snprintf(name, sizeof name, "%s-labels-idx1-ubyte.gz", which);
    write_file(name, bytes, 8 + (size_t)n);
}

static int make_fashion(void **state)
{
    if (make_folder(state))
        return -1;
    write_pictures("train", PICTURES);
    write_pictures("t10k", TEST_PICTURES);
    return setenv("LOCKSTEP_FASHION_MNIST", folder, 1);
}

/* By its pixels, which are as they are in the file. */
static int64_t picture(const void *x, const void *y, int64_t row)
{
    const uint8_t *pixels = (const uint8_t *)x + row * PIXELS;
    const int32_t *labels = y;
    int i = pixels[0];
    assert_int_equal(pixels[PIXELS - 1], 255 - i);
    assert_int_equal(labels[row], i % 10);
    return i;
}

static const data_request fashion = {
    .input = "f32[28,28,1]", .label = "i32[]", .global_batch = 16, .seed = 1
};

static void every_epoch_has_every_picture_once(void **state)
{
    (void)state;
    assert_epochs(&fashion, PICTURES, picture);
}

static void training_on_pictures_goes_on_anywhere(void **state)
{
    (void)state;
    assert_goes_on(&fashion, picture);
}

static void orders_are_the_seeds(void **state)
{
    (void)state;
    static seen a, b, other;
    data_request r = fashion;
    r.spec = "fashion-mnist";
    first_epoch(&fashion, &a, picture);
    first_epoch(&r, &b, picture);
    assert_true(same_order(&a, &b));
    r.seed = 2;
    first_epoch(&r, &other, picture);
    assert_false(same_order(&a, &other));
}

static void batches_are_what_the_file_has(void **state)
{
    (void)state;
    static seen test;
    data_sets sets = open_data(&fashion);
    assert_string_equal(sets.name, "fashion-mnist");
    assert_string_equal(ls_dataset_text(sets.train), "u8[?,28,28,1], i32[?]");
    assert_int_equal(ls_cardinality(sets.train), 7);
    assert_int_equal(sets.test_samples, TEST_PICTURES);
    ls_iterator *it = ls_iterate(sets.test);
    go_through(it, MOST, &test, picture);
    for (int64_t i = 0; i < TEST_PICTURES; i++)
        assert_int_equal(test.ids[i], i); /* as it stands */
    ls_iterator_free(it);
    data_close(&sets);

    data_request flat = fashion;
    flat.input = "f32[784]";
    assert_epochs(&flat, PICTURES, picture);
}

/* What the replicas make of them: exactly what ls_scale(x, 1/255) does. */
static void pixels_become_numbers(void **state)
{
    (void)state;
    sample takes;
    assert_true(sample_read("f32[2]", &takes));
    LS_FRAME {
        ls_tensor *x = ls_from(LS_U8, LS_DIMS(3, 2), ((const uint8_t[]){ 0, 1, 100, 254, 255, 7 }));
        const float *got = ls_data(sample_numbers(&takes, x, true));
        const int want[] = { 0, 1, 100, 254, 255, 7 };
        for (int i = 0; i < 6; i++)
            assert_true(got[i] == (float)want[i] * (float)(1.0 / 255));
        ls_tensor *numbers = ls_from(LS_F32, LS_DIMS(1, 2), ((const float[]){ 3, 4 }));
        assert_ptr_equal(sample_numbers(&takes, numbers, true), numbers);
    }
}

static void wrong_pictures_are_named(void **state)
{
    (void)state;
    data_request r = fashion;
    r.input = "f32[32,32,3]";
    assert_refused(&r,
                   "lockstep train: 'fashion-mnist': the array of pictures is u8[100,28,28], but "
                   "the model takes samples f32[32,32,3]; --data names data of another kind");
    r = fashion;
    r.global_batch = 101;
    assert_refused(&r,
                   "lockstep train: 'fashion-mnist' has 100 training samples, fewer than a batch "
                   "of all replicas, 101; give more data, or a smaller --batch");
    r = fashion;
    r.text = true;
    r.spec = "fashion-mnist";
    assert_refused(&r, "lockstep train: --data fashion-mnist: this model reads text; give a text "
                       "file");
    remove(in_folder("t10k-labels-idx1-ubyte.gz"));
    assert_refused(&fashion, "lockstep train: '%s/t10k-labels-idx1-ubyte.gz' is not there; install "
                             "Debian's dataset-fashion-mnist, or set LOCKSTEP_FASHION_MNIST to the "
                             "directory of its files");
    write_file("t10k-labels-idx1-ubyte.gz", "junk", 4);
    data_sets sets;
    int status = -1;
    hear();
    assert_false(data_open(&train_cli, &fashion, &sets, &status));
    assert_non_null(strstr(heard(), "t10k-labels-idx1-ubyte.gz'"));
    assert_int_equal(status, EXIT_USAGE);
}

static void classes_have_names(void **state)
{
    (void)state;
    assert_string_equal(data_class("fashion-mnist", 0), "T-shirt/top");
    assert_string_equal(data_class("fashion-mnist", 9), "Ankle boot");
    assert_null(data_class("fashion-mnist", 10));
    assert_null(data_class("fashion-mnist", -1));
    assert_null(data_class("other.npz", 0));
    assert_null(data_class(NULL, 0));
}

int main(void)
{
#define PICTURE_TEST(fn) cmocka_unit_test_setup_teardown(fn, make_fashion, remove_folder)
    const struct CMUnitTest tests[] = {
        PICTURE_TEST(every_epoch_has_every_picture_once),
        PICTURE_TEST(training_on_pictures_goes_on_anywhere),
        PICTURE_TEST(orders_are_the_seeds),
        PICTURE_TEST(batches_are_what_the_file_has),
        PICTURE_TEST(wrong_pictures_are_named),
        cmocka_unit_test(pixels_become_numbers),
        cmocka_unit_test(classes_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
