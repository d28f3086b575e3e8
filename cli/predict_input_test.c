/*
 * What `predict` reads: every kind of file gives the model the numbers that training would have.
 */
#include "predict_input.h"

#include <lockstep/image.h>
#include <lockstep/records.h>

#include "process.h"
#include "test_npz.h"

static const cli predict_cli = { .name = "lockstep predict" };

enum { PIXELS = 6 };

static const unsigned char two[2][PIXELS] = { { 0, 1, 2, 3, 4, 255 }, { 10, 11, 12, 13, 14, 15 } };

/* So many samples, each of them the bytes above scaled. */
static void assert_rows(const char *file, const char *input, int64_t rows)
{
    predict_input p;
    int status = -1;
    int64_t n = 0;
    assert_true(predict_open(&predict_cli, file, input, 1, &p, &status));
    assert_int_equal(p.samples, rows);
    LS_FOR_EACH (x, p.x) {
        const float *at = ls_data(ls_leaf_tensor(x));
        assert_int_equal(ls_count(ls_leaf_tensor(x)), PIXELS);
        for (int i = 0; i < PIXELS; i++)
            assert_true(at[i] == (float)two[n][i] * (float)(1.0 / 255));
        n++;
    }
    assert_int_equal(ls_error_pending(), LS_OK);
    assert_int_equal(n, rows);
    predict_close(&p);
}

static void assert_not_read(const char *file, const char *input, const char *line)
{
    predict_input p;
    int status = -1;
    hear();
    bool opened = predict_open(&predict_cli, file, input, 1, &p, &status);
    assert_heard(line);
    assert_false(opened);
    assert_int_equal(status, EXIT_USAGE);
    assert_int_equal(ls_error_pending(), LS_OK);
}

static void npy_files(void **state)
{
    (void)state;
    static blob b;
    b.n = 0;
    put_npy(&b, "|u1", "(2, 2, 3)", two, sizeof two);
    const char *path = write_file("x.npy", b.at, b.n);
    assert_rows(path, "f32[2,3,1]", 2);
    assert_rows(path, "f32[6]", 2);
    assert_not_read(
        path, "f32[3,2]",
        "lockstep predict: '%s/x.npy' is u8[2,2,3], but the model takes samples f32[3,2]; "
        "the first axis counts the samples");
    b.n = 0;
    put_npy(&b, "|u1", "(2, 3)", two, PIXELS);
    assert_rows(write_file("one.npy", b.at, b.n), "f32[2,3,1]", 1);
    b.n = 0;
    put_npy(&b, "|u1", "(0, 2, 3)", two, 0);
    assert_not_read(write_file("no.npy", b.at, b.n), "f32[2,3]",
                    "lockstep predict: '%s/no.npy' has no samples");
}

static void idx_files(void **state)
{
    (void)state;
    unsigned char bytes[16 + sizeof two] = { 0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3 };
    memcpy(bytes + 16, two, sizeof two);
    assert_rows(write_file("any-name", bytes, sizeof bytes), "f32[2,3,1]", 2);
}

static void npz_files(void **state)
{
    (void)state;
#ifdef LS_HAVE_LIBZIP
    static npz z;
    npz_add(&z, "whatever", "|u1", "(2, 6)", two, sizeof two);
    assert_rows(npz_write(&z, "one.npz"), "f32[6]", 2);
    npz_add(&z, "a", "|u1", "(1, 6)", two[1], PIXELS);
    npz_add(&z, "x_test", "|u1", "(2, 6)", two, sizeof two);
    assert_rows(npz_write(&z, "several.npz"), "f32[6]", 2);
    npz_add(&z, "a", "|u1", "(1, 6)", two, PIXELS);
    npz_add(&z, "b", "|u1", "(1, 6)", two, PIXELS);
    assert_not_read(npz_write(&z, "none.npz"), "f32[6]",
                    "lockstep predict: '%s/none.npz' has 2 arrays, none of which is x_test");
    npz_add(&z, "a", "|u1", "(1, 6)", two, PIXELS);
    assert_not_read(
        npz_write(&z, "other.npz"), "f32[7]",
        "lockstep predict: '%s/other.npz': a is u8[1,6], but the model takes samples f32[7]; "
        "the first axis counts the samples");
#else
    skip();
#endif
}

static void record_files(void **state)
{
    (void)state;
    ls_record_writer *w = ls_record_writer_open(in_folder("x.tfrecord"), LS_PLAIN);
    for (int i = 0; i < 2; i++)
        LS_FRAME {
            const char *key = "image"; /* and no label */
            const void *data = two[i];
            const size_t n = PIXELS;
            ls_value *image = ls_leaf(ls_from_strings(0, NULL, &data, &n));
            const void *bytes;
            size_t length;
            assert_int_equal(
                ls_string_at(ls_make_example(ls_dict(1, &key, &image)), 0, &bytes, &length), LS_OK);
            ls_record_write(w, bytes, length);
        }
    assert_int_equal(ls_record_writer_close(w), LS_OK);
    assert_rows(in_folder("x.tfrecord"), "f32[2,3,1]", 2);
    assert_rows(in_folder("*.tfrecord"), "f32[2,3,1]", 2);
}

#ifdef LS_HAVE_SPNG
static const char *grey_png(void)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/images/grey4.png", getenv("LOCKSTEP_TEST_DIR"));
    return path;
}

/* Its pixels, six rows of seven. */
static void read_grey(unsigned char *to)
{
    cli_bytes file;
    assert_int_equal(cli_read_file(grey_png(), &file), 0);
    const void *data = file.at;
    LS_FRAME {
        ls_tensor *t = ls_decode_image(ls_from_strings(0, NULL, &data, &file.count), 1);
        assert_string_equal(ls_describe(t), "u8[6,7,1]");
        assert_int_equal(ls_copy_out(t, to, 42), LS_OK);
    }
    free(file.at);
}

static void predict_one(const char *file, const char *input, float *to, size_t bytes)
{
    predict_input p;
    int status = -1;
    assert_true(predict_open(&predict_cli, file, input, 1, &p, &status));
    assert_int_equal(p.samples, 1);
    LS_FOR_EACH (x, p.x)
        assert_int_equal(ls_copy_out(ls_leaf_tensor(x), to, bytes), LS_OK);
    assert_int_equal(ls_error_pending(), LS_OK);
    predict_close(&p);
}

/* As it is; in three channels; and smaller: squares of two averaged, then between rows at quarters. */
static void pictures_are_taken(void)
{
    unsigned char pixels[6][7];
    float same[42], three[42][3], small[2][3], square[3][3];
    read_grey(pixels[0]);
    predict_one(grey_png(), "f32[6,7,1]", same, sizeof same);
    predict_one(grey_png(), "f32[6,7,3]", three[0], sizeof three);
    predict_one(grey_png(), "f32[2,3]", small[0], sizeof small);
    for (int i = 0; i < 42; i++) {
        const float expected = (float)pixels[i / 7][i % 7] * (float)(1.0 / 255);
        assert_true(same[i] == expected);
        for (int k = 0; k < 3; k++)
            assert_true(three[i][k] == expected);
    }
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 3; c++)
            square[r][c] = (float)(pixels[2 * r][2 * c] + pixels[2 * r][2 * c + 1] +
                                   pixels[2 * r + 1][2 * c] + pixels[2 * r + 1][2 * c + 1]) /
                           4 / 255;
    for (int c = 0; c < 3; c++) {
        assert_float_equal(small[0][c], 0.75f * square[0][c] + 0.25f * square[1][c], 1e-6);
        assert_float_equal(small[1][c], 0.25f * square[1][c] + 0.75f * square[2][c], 1e-6);
    }
}
#endif

static void pictures(void **state)
{
    (void)state;
#ifdef LS_HAVE_SPNG
    predict_input p;
    int status = -1;
    pictures_are_taken();
    hear();
    assert_false(predict_open(&predict_cli, grey_png(), "f32[784]", 1, &p, &status));
    assert_non_null(strstr(heard(), "grey4.png' is a picture, but the model takes f32[784]\n"));
    hear();
    assert_false(predict_open(&predict_cli, write_file("bad.png", "\x89PNG\r\n\x1a\nrest", 12),
                              "f32[5,4,3]", 1, &p, &status));
    assert_non_null(strstr(heard(), "/bad.png': "));
    assert_int_equal(status, EXIT_USAGE);
#else
    skip();
#endif
}

static void files_that_are_none(void **state)
{
    (void)state;
    assert_not_read(in_folder("none"), "f32[6]",
                    "lockstep predict: cannot read '%s/none': No such file or directory");
    assert_not_read(folder, "f32[6]", "lockstep predict: cannot read '%s': Is a directory");
    assert_not_read(
        write_file("text", "hello there, text", 17), "f32[6]",
        "lockstep predict: '%s/text' is no TFRecord file; a file to predict is .npz, .npy, "
        "idx, JPEG, PNG or TFRecord");
    assert_not_read(write_file("empty", "", 0), "f32[6]",
                    "lockstep predict: '%s/empty' has no samples");
}

int main(void)
{
#define INPUT_TEST(fn) cmocka_unit_test_setup_teardown(fn, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        INPUT_TEST(npy_files),    INPUT_TEST(idx_files), INPUT_TEST(npz_files),
        INPUT_TEST(record_files), INPUT_TEST(pictures),  INPUT_TEST(files_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
