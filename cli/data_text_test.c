/*
 * Text for models that guess the next byte: windows cover it once an epoch, at another phase each;
 * the last 5 % are for tests alone.
 */
#include "test_data.h"

enum { CONTEXT = 8, BYTES = 4000, SHOWN = BYTES - BYTES / 20, WINDOWS = SHOWN / CONTEXT - 1 };

static unsigned char text[BYTES];

static int make_text_file(void **state)
{
    if (make_folder(state))
        return -1;
    uint64_t draw = 1; /* windows of random bytes are told apart */
    for (int i = 0; i < BYTES; i++)
        text[i] =
            (unsigned char)((draw = draw * 6364136223846793005u + 1442695040888963407u) >> 56);
    write_file("text", text, BYTES);
    return 0;
}

/* Where in the text a window lies; y is the same, a byte later. */
static int64_t place(const void *x, const void *y, int64_t row)
{
    const int32_t *xs = (const int32_t *)x + row * CONTEXT,
                  *ys = (const int32_t *)y + row * CONTEXT;
    for (int at = 0; at + CONTEXT < BYTES; at++) {
        int k = 0;
        while (k < CONTEXT && xs[k] == text[at + k] && ys[k] == text[at + k + 1])
            k++;
        if (k == CONTEXT)
            return at;
    }
    fail_msg("a window that is not in the text");
    return -1;
}

static data_request request(void)
{
    return (data_request){ .spec = in_folder("text"),
                           .input = "i32[8]",
                           .label = "i32[8]",
                           .text = true,
                           .global_batch = 16,
                           .seed = 3 };
}

static void an_epoch_covers_the_text_once(void **state)
{
    (void)state;
    static seen epoch;
    int64_t phases[6];
    data_request r = request();
    data_sets sets = open_data(&r);
    assert_int_equal(sets.train_samples, WINDOWS);
    assert_int_equal(ls_cardinality(sets.train), (WINDOWS + 15) / 16);
    assert_string_equal(ls_dataset_text(sets.train), "i32[?,8], i32[?,8]");
    ls_iterator *it = ls_iterate(sets.train);
    for (int e = 0; e < 6; e++) {
        go_through(it, MOST, &epoch, place);
        phases[e] = epoch.ids[0] % CONTEXT;
        for (int64_t i = 0; i < epoch.n; i++) {
            assert_int_equal(epoch.ids[i] % CONTEXT, phases[e]);
            assert_true(epoch.ids[i] + CONTEXT < SHOWN);
            epoch.ids[i] /= CONTEXT;
        }
        assert_each_once(&epoch, WINDOWS);
        assert_int_equal(ls_rewind(it), LS_OK);
    }
    int others = 0;
    for (int e = 1; e < 6; e++)
        others += phases[e] != phases[0];
    assert_true(others > 0);
    ls_iterator_free(it);
    data_close(&sets);
}

static void training_on_text_goes_on_anywhere(void **state)
{
    (void)state;
    data_request r = request();
    r.global_batch = 64;
    assert_goes_on(&r, place);
}

static void orders_are_the_seeds(void **state)
{
    (void)state;
    static seen a, b, other;
    data_request r = request();
    first_epoch(&r, &a, place);
    first_epoch(&r, &b, place);
    assert_true(same_order(&a, &b));
    r.seed = 4;
    first_epoch(&r, &other, place);
    assert_false(same_order(&a, &other));
}

static void tests_see_the_rest_in_order(void **state)
{
    (void)state;
    static seen test;
    data_request r = request();
    data_sets sets = open_data(&r);
    ls_iterator *it = ls_iterate(sets.test);
    go_through(it, MOST, &test, place);
    assert_int_equal(sets.test_samples, (BYTES / 20 - 1) / CONTEXT);
    assert_int_equal(test.n, sets.test_samples);
    for (int64_t i = 0; i < test.n; i++)
        assert_int_equal(test.ids[i], SHOWN + i * CONTEXT);
    ls_iterator_free(it);
    data_close(&sets);
}

/* What the message says is enough is enough, and a byte less can be too few. */
static void short_texts_are_refused(void **state)
{
    (void)state;
    data_request r = request();
    r.global_batch = 475;
    assert_refused(&r,
                   "lockstep train: '%s/text' has 4000 bytes; a batch of 475 windows of 9 bytes, "
                   "and 5 % to test with, take 4009; give a longer text, or a smaller --batch");
    r.global_batch = 16;
    for (int n = 0; n <= 180; n++) {
        data_sets sets;
        int status = -1;
        r.spec = write_file("short", text, (size_t)n);
        hear();
        bool opened = data_open(&train_cli, &r, &sets, &status);
        heard();
        assert_true(opened == (n >= 180));
        if (opened)
            data_close(&sets);
    }
    r.spec = write_file("short", text, 0);
    assert_refused(&r,
                   "lockstep train: '%s/short' has 0 bytes; a batch of 16 windows of 9 bytes, and "
                   "5 % to test with, take 180; give a longer text, or a smaller --batch");
}

static void files_that_cannot_be_read_are_named(void **state)
{
    (void)state;
    data_request r = request();
    r.spec = in_folder("none");
    assert_refused(&r,
                   "lockstep train: cannot read '%s/none': No such file or directory; --data wants "
                   "a text file");
    r.spec = folder;
    assert_refused(&r,
                   "lockstep train: cannot read '%s': Is a directory; --data wants a text file");
}

static void without_bible_its_package_is_named(void **state)
{
    (void)state;
    data_request r = request();
    char *path = strdup(getenv("PATH"));
    r.spec = NULL;
    setenv("PATH", folder, 1);
    assert_refused(&r, "lockstep train: the text to train on is what 'bible' prints, which is not "
                       "installed; install Debian's bible-kjv, or give a text with --data FILE");
    FILE *f = fopen(in_folder("bible"), "w");
    fputs("#!/bin/sh\nexit 3\n", f);
    fclose(f);
    assert_int_equal(chmod(in_folder("bible"), 0700), 0);
    assert_refused(&r,
                   "lockstep train: 'bible gen1:1-rev22:21' failed; install Debian's bible-kjv, "
                   "or give a text with --data FILE");
    setenv("PATH", path, 1);
    free(path);
}

/* Its lines must not be those of this terminal. */
static void a_bible_is_asked_without_an_environment(void **state)
{
    (void)state;
    char *path = strdup(getenv("PATH"));
    data_request r = request();
    r.spec = NULL;
    FILE *f = fopen(in_folder("bible"), "w");
    fprintf(f,
            "#!/bin/sh\n[ \"$1\" = gen1:1-rev22:21 ] && [ -z \"$COLUMNS\" ] && [ -z \"$HOME\" ] || "
            "exit 1\n"
            "echo complaint >&2\nwhile read -r line; do printf '%%s\\n' \"$line\"; done <'%s'\n",
            in_folder("lines"));
    fclose(f);
    f = fopen(in_folder("lines"), "w");
    for (int i = 0; i < 300; i++)
        fprintf(f, "line %d of many\n", i);
    fclose(f);
    assert_int_equal(chmod(in_folder("bible"), 0700), 0);
    setenv("PATH", folder, 1);
    setenv("COLUMNS", "40", 1);
    data_sets sets = open_data(&r);
    assert_string_equal(sets.name, "bible");
    assert_true(sets.train_samples > 400);
    data_close(&sets);
    setenv("PATH", path, 1);
    free(path);
}

static void text_models_are_told_by_their_shapes(void **state)
{
    (void)state;
    assert_true(data_is_text("i32[128]", "i32[128]"));
    assert_false(data_is_text("f32[28,28,1]", "i32[]"));
    assert_false(data_is_text("i32[128]", "i32[]"));
    assert_false(data_is_text("f32[8]", "i32[8]"));
    assert_false(data_is_text("i32[8,2]", "i32[8,2]"));
}

int main(void)
{
#define TEXT_TEST(fn) cmocka_unit_test_setup_teardown(fn, make_text_file, remove_folder)
    const struct CMUnitTest tests[] = {
        TEXT_TEST(an_epoch_covers_the_text_once),
        TEXT_TEST(training_on_text_goes_on_anywhere),
        TEXT_TEST(orders_are_the_seeds),
        TEXT_TEST(tests_see_the_rest_in_order),
        TEXT_TEST(short_texts_are_refused),
        TEXT_TEST(files_that_cannot_be_read_are_named),
        TEXT_TEST(without_bible_its_package_is_named),
        TEXT_TEST(a_bible_is_asked_without_an_environment),
        cmocka_unit_test(text_models_are_told_by_their_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
