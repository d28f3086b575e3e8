/*
 * Names by pattern: in the order of their bytes, files only, and an error that names what is missing.
 */
#include "os/glob.h"

#include <locale.h>
#include <sys/stat.h>

#include "os/file_test_support.h"

static int clean(void **state)
{
    (void)state;
    ls_error();
    empty_test_dir();
    return 0;
}

/* The names found, without the directory, with a blank behind each; "!" for none. */
static const char *found(ls_status want, const char *pattern)
{
    static char text[512];
    ls__names names = { 0 };
    ls_status st = ls__names_add(&names, "test", in_dir(pattern));
    if (st != want)
        fail_msg("'%s': %s, %s", pattern, ls_status_name(st), ls_error_report());
    strcpy(text, st ? "!" : "");
    for (size_t i = 0; i < names.count; i++) {
        assert_memory_equal(names.at[i], test_dir, strlen(test_dir));
        strcat(text, names.at[i] + strlen(test_dir) + 1);
        strcat(text, " ");
    }
    ls__names_free(&names);
    return text;
}

static void patterns(void **state)
{
    (void)state;
    static const char *const files[] = { "b-2", "a-10", "a-2", "B-1", "a-1", "_x", "b-1" };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        put_file(files[i], "", 0);
    assert_int_equal(mkdir(in_dir("a-dir"), 0777), 0);
    setlocale(LC_ALL, ""); /* whose order is another one, maybe */
    assert_string_equal(found(LS_OK, "*"), "B-1 _x a-1 a-10 a-2 b-1 b-2 ");
    assert_string_equal(found(LS_OK, "a-*"), "a-1 a-10 a-2 ");
    assert_string_equal(found(LS_OK, "?-1"), "B-1 a-1 b-1 ");
    assert_string_equal(found(LS_OK, "[ab]-[12]"), "a-1 a-2 b-1 b-2 ");
    assert_string_equal(found(LS_OK, "a-1"), "a-1 ");
    setlocale(LC_ALL, "C");
}

static void names_first(void **state)
{
    (void)state;
    put_file("x[1]", "", 0);
    put_file("x1", "", 0);
    assert_string_equal(found(LS_OK, "x[1]"), "x[1] ");
    assert_string_equal(found(LS_OK, "x[1-2]"), "x1 ");
}

static void nothing(void **state)
{
    (void)state;
    static const char *const missing[] = { "*", "nothing", "nothing/*", "dir", "di?", "link" };
    assert_int_equal(mkdir(in_dir("dir"), 0777), 0);
    for (size_t i = 0; i < 4; i++) {
        if (i == 0)
            rmdir(in_dir("dir"));
        assert_string_equal(found(LS_NOT_FOUND, missing[i]), "!");
        assert_non_null(strstr(ls_error_text(), in_dir(missing[i])));
        ls_error();
        mkdir(in_dir("dir"), 0777);
    }
    assert_string_equal(found(LS_NOT_FOUND, "di?"), "!");
    ls_error();
    /* A link to nothing is no file of this name, but no pattern leaves it out silently. */
    assert_int_equal(symlink(in_dir("nowhere"), in_dir("link")), 0);
    assert_string_equal(found(LS_NOT_FOUND, "link"), "!");
    ls_error();
    assert_string_equal(found(LS_OK, "lin?"), "link ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(patterns, clean),
        cmocka_unit_test_setup(names_first, clean),
        cmocka_unit_test_setup(nothing, clean),
    };
    return cmocka_run_group_tests(tests, make_test_dir, remove_test_dir);
}
