/*
 * .npz files as data: dtypes, shapes that fit, epochs and positions; what does not fit is named, with what
 * the file has and what the model takes.
 */
#include "test_npz.h"

#ifdef LS_HAVE_LIBZIP

enum { ROWS = 40, TEST_ROWS = 6, PIXELS = 12 };

static npz z;
static unsigned char pixels[ROWS][PIXELS];
static float floats[ROWS][PIXELS];
static int64_t labels[ROWS];
static unsigned char small_labels[ROWS];

/* Sample i begins with i, and has the label i % 7. */
static int make_rows(void **state)
{
    for (int i = 0; i < ROWS; i++) {
        pixels[i][0] = (unsigned char)i;
        floats[i][0] = (float)i / 4 - 2;
        labels[i] = small_labels[i] = (unsigned char)(i % 7);
    }
    return make_folder(state);
}

static const char *write_pixels(void)
{
    npz_add(&z, "x_train", "|u1", "(40, 3, 4)", pixels, sizeof pixels);
    npz_add(&z, "y_train", "<i8", "(40,)", labels, sizeof labels);
    npz_add(&z, "x_test", "|u1", "(6, 3, 4)", pixels, (size_t)TEST_ROWS * PIXELS);
    npz_add(&z, "y_test", "<i8", "(6,)", labels, TEST_ROWS * sizeof *labels);
    return npz_write(&z, "data.npz");
}

static const char *write_floats(void)
{
    npz_add(&z, "x_train", "<f4", "(40, 3, 4, 1)", floats, sizeof floats);
    npz_add(&z, "y_train", "|u1", "(40, 1)", small_labels, sizeof small_labels);
    npz_add(&z, "x_test", "<f4", "(6, 3, 4, 1)", floats, TEST_ROWS * sizeof *floats);
    npz_add(&z, "y_test", "|u1", "(6, 1)", small_labels, TEST_ROWS);
    return npz_write(&z, "data.npz");
}

static int64_t pixel_row(const void *x, const void *y, int64_t row)
{
    const int i = ((const uint8_t *)x)[row * PIXELS];
    assert_int_equal(((const int32_t *)y)[row], i % 7);
    return i;
}

static int64_t float_row(const void *x, const void *y, int64_t row)
{
    const int i = (int)((((const float *)x)[row * PIXELS] + 2) * 4);
    assert_int_equal(((const int32_t *)y)[row], i % 7);
    return i;
}

static data_request request(const char *spec)
{
    return (data_request){
        .spec = spec, .input = "f32[3,4,1]", .label = "i32[]", .global_batch = 16, .seed = 5
    };
}

static void bytes_stay_bytes(void **state)
{
    (void)state;
    data_request r = request(write_pixels());
    assert_epochs(&r, ROWS, pixel_row);
    assert_goes_on(&r, pixel_row);
}

static void floats_stay_as_they_are(void **state)
{
    (void)state;
    data_request r = request(write_floats());
    assert_epochs(&r, ROWS, float_row);
    data_sets sets = open_data(&r);
    assert_string_equal(sets.name, r.spec);
    assert_int_equal(sets.test_samples, TEST_ROWS);
    assert_string_equal(ls_dataset_text(sets.test), "f32[?,3,4,1], i32[?]");
    data_close(&sets);
}

static void what_does_not_fit_is_named(void **state)
{
    (void)state;
    data_request r = request(write_pixels());
    r.input = "f32[4,3,1]";
    assert_refused(&r, "lockstep train: '%s/data.npz': x_train is u8[40,3,4], but the model takes "
                       "samples f32[4,3,1]; the first axis counts the samples");
    r.input = "f32[12]";
    r.label = "i32[2]";
    assert_refused(&r,
                   "lockstep train: '%s/data.npz': y_train is i64[40], but the model takes labels "
                   "i32[2]; the first axis counts the samples");
    npz_add(&z, "x_train", "|u1", "(40, 3, 4)", pixels, sizeof pixels);
    npz_add(&z, "y_train", "<i8", "(39,)", labels, 39 * sizeof *labels);
    npz_add(&z, "x_test", "|u1", "(6, 3, 4)", pixels, (size_t)TEST_ROWS * PIXELS);
    npz_add(&z, "y_test", "<i8", "(6,)", labels, TEST_ROWS * sizeof *labels);
    r = request(npz_write(&z, "data.npz"));
    assert_refused(&r,
                   "lockstep train: '%s/data.npz': x_train has 40 samples, y_train 39 labels; a "
                   "label belongs to each sample");
    npz_add(&z, "x_train", "<f4", "(40, 12)", floats, sizeof floats);
    npz_add(&z, "y_train", "<f4", "(40,)", floats, ROWS * sizeof(float));
    npz_add(&z, "x_test", "<f4", "(6, 12)", floats, TEST_ROWS * sizeof *floats);
    npz_add(&z, "y_test", "<f4", "(6,)", floats, TEST_ROWS * sizeof(float));
    r = request(npz_write(&z, "data.npz"));
    r.input = "f32[12]";
    assert_refused(&r,
                   "lockstep train: '%s/data.npz': y_train is f32[40], but the model takes labels "
                   "i32[]; save them as integers");
    r.label = "f32[]"; /* which are numbers, too */
    data_sets sets = open_data(&r);
    data_close(&sets);
}

static void what_is_missing_is_named(void **state)
{
    (void)state;
    npz_add(&z, "x_train", "|u1", "(40, 3, 4)", pixels, sizeof pixels);
    npz_add(&z, "y_train", "<i8", "(40,)", labels, sizeof labels);
    data_request r = request(npz_write(&z, "data.npz"));
    assert_refused(&r,
                   "lockstep train: '%s/data.npz' has no x_test, only x_train, y_train; "
                   "numpy.savez(FILE, x_train=.., y_train=.., x_test=.., y_test=..) writes what is "
                   "wanted");
    r = request(write_pixels());
    r.global_batch = 41;
    assert_refused(&r,
                   "lockstep train: '%s/data.npz' has 40 training samples, fewer than a batch of "
                   "all replicas, 41; give more data, or a smaller --batch");
    r.text = true;
    data_sets sets;
    int status = -1;
    hear();
    assert_false(data_open(&train_cli, &r, &sets, &status));
    assert_non_null(strstr(heard(), "this model reads text; give a text file\n"));
    assert_int_equal(status, EXIT_USAGE);
}

static void files_that_are_none_are_named(void **state)
{
    (void)state;
    const char *paths[] = { in_folder("none.npz"), write_file("text.npz", "hello", 5) };
    for (int i = 0; i < 2; i++) {
        data_request r = request(paths[i]);
        data_sets sets;
        int status = -1;
        hear();
        assert_false(data_open(&train_cli, &r, &sets, &status));
        const char *told = heard();
        assert_non_null(strstr(told, "lockstep train: "));
        assert_non_null(strstr(told, paths[i]));
        assert_ptr_equal(strchr(told, '\n'), told + strlen(told) - 1);
        assert_int_equal(status, EXIT_USAGE);
    }
}

int main(void)
{
#define ROW_TEST(fn) cmocka_unit_test_setup_teardown(fn, make_rows, remove_folder)
    const struct CMUnitTest tests[] = {
        ROW_TEST(bytes_stay_bytes),
        ROW_TEST(floats_stay_as_they_are),
        ROW_TEST(what_does_not_fit_is_named),
        ROW_TEST(what_is_missing_is_named),
        ROW_TEST(files_that_are_none_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void its_package_is_named(void **state)
{
    (void)state;
    data_request r = { .spec = write_file("any.npz", "PK", 2),
                       .input = "f32[2]",
                       .label = "i32[]",
                       .global_batch = 1 };
    data_sets sets;
    int status = -1;
    hear();
    assert_false(data_open(&train_cli, &r, &sets, &status));
    assert_non_null(strstr(heard(), "libzip"));
    assert_int_equal(status, EXIT_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(its_package_is_named, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
