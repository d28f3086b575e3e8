/*
 * Directories: made with those they are in, looked into, and files removed from them.
 */
#include "os/directory.h"

#include <sys/stat.h>

#include "os/file_test_support.h"

static int clean(void **state)
{
    (void)state;
    ls_error();
    empty_test_dir();
    return 0;
}

static void failed(ls_status want, const char *word)
{
    if (ls_error_pending() != want || !strstr(ls_error_text(), word))
        fail_msg("wanted %s with '%s', got %s", ls_status_name(want), word, ls_error_report());
    ls_error();
}

static void kinds(void **state)
{
    (void)state;
    put_file("file", "", 0);
    assert_int_equal(mkfifo(in_dir("pipe"), 0666), 0);
    assert_int_equal(symlink("file", in_dir("link")), 0);
    assert_int_equal(symlink("none", in_dir("nowhere")), 0);
    assert_int_equal(ls__path_kind_of(in_dir("file")), LS__A_FILE);
    assert_int_equal(ls__path_kind_of(in_dir("link")), LS__A_FILE);
    assert_int_equal(ls__path_kind_of(test_dir), LS__A_DIRECTORY);
    assert_int_equal(ls__path_kind_of(in_dir("pipe")), LS__SOMETHING_ELSE);
    assert_int_equal(ls__path_kind_of("/dev/null"), LS__SOMETHING_ELSE);
    assert_int_equal(ls__path_kind_of(in_dir("none")), LS__NOTHING_THERE);
    assert_int_equal(ls__path_kind_of(in_dir("nowhere")), LS__NOTHING_THERE);
    assert_int_equal(ls__path_kind_of(in_dir("file/below")), LS__NOTHING_THERE);
    assert_int_equal(ls__path_kind_of(NULL), LS__NOTHING_THERE);
}

static void remove_nest(void)
{
    assert_int_equal(rmdir(in_dir("a/b/c")), 0);
    assert_int_equal(rmdir(in_dir("a/b")), 0);
    assert_int_equal(rmdir(in_dir("a")), 0);
}

static void nests_are_made(void **state)
{
    (void)state;
    static const char *const paths[] = { "a/b/c",   "a//b///c",  "a/b/c/",
                                         "a/b/c//", "./a/./b/c", "a/b/../b/c" };
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        assert_int_equal(ls__make_directory("who", in_dir(paths[i])), LS_OK);
        assert_int_equal(ls__path_kind_of(in_dir("a/b/c")), LS__A_DIRECTORY);
        assert_int_equal(ls__make_directory("who", in_dir(paths[i])), LS_OK); /* it is there */
        remove_nest();
    }
    assert_int_equal(ls__make_directory_of("who", in_dir("a/b/c/file")), LS_OK);
    assert_int_equal(ls__path_kind_of(in_dir("a/b/c")), LS__A_DIRECTORY);
    assert_int_equal(ls__path_kind_of(in_dir("a/b/c/file")), LS__NOTHING_THERE);
    remove_nest();
    char *here = getcwd(NULL, 0);
    assert_non_null(here);
    assert_int_equal(chdir(test_dir), 0);
    assert_int_equal(ls__make_directory("who", "a/b/c"), LS_OK);
    remove_nest();
    assert_int_equal(ls__make_directory_of("who", "file"), LS_OK);
    assert_int_equal(ls__make_directory_of("who", "/file"), LS_OK);
    assert_int_equal(ls__make_directory("who", "/"), LS_OK);
    assert_int_equal(ls__make_directory("who", "."), LS_OK);
    assert_int_equal(chdir(here), 0);
    free(here);
    assert_int_equal(entries(), 0);
    assert_int_equal(ls_error_pending(), LS_OK);
}

static void nests_that_cannot_be(void **state)
{
    (void)state;
    put_file("file", "abc", 3);
    assert_int_equal(ls__make_directory("who", in_dir("file")), LS_IO);
    failed(LS_IO, "who: cannot make the directory");
    assert_int_equal(ls__make_directory("who", in_dir("file/a/b")), LS_IO);
    assert_non_null(strstr(ls_error_hint(), "there is a file"));
    failed(LS_IO, in_dir("file"));
    assert_int_equal(ls__make_directory("who", ""), LS_INVALID);
    failed(LS_INVALID, "empty");
    assert_int_equal(ls__make_directory("who", NULL), LS_INVALID);
    failed(LS_INVALID, "NULL");
    assert_int_equal(ls__make_directory_of("who", NULL), LS_INVALID);
    failed(LS_INVALID, "NULL");
    assert_int_equal(entries(), 1);
}

static void lists(void **state)
{
    (void)state;
    ls__names names = { 0 };
    assert_int_equal(ls__list_directory("who", test_dir, &names), LS_OK);
    assert_int_equal(names.count, 0);
    static const char *const sorted[] = { "B", "a", "b", "b1", "\xc3\xa4" };
    static const int order[] = { 3, 1, 4, 0, 2 };
    for (int i = 0; i < 5; i++)
        put_file(sorted[order[i]], "", 0);
    put_file(".hidden", "", 0);
    assert_int_equal(ls__list_directory("who", test_dir, &names), LS_OK);
    assert_int_equal(names.count, 5);
    for (int i = 0; i < 5; i++)
        assert_string_equal(names.at[i], sorted[i]);
    ls__names_free(&names);
    assert_int_equal(ls__list_directory("who", in_dir("none"), &names), LS_NOT_FOUND);
    failed(LS_NOT_FOUND, in_dir("none"));
    assert_int_equal(ls__list_directory("who", in_dir("a"), &names), LS_NOT_FOUND);
    failed(LS_NOT_FOUND, in_dir("a"));
    assert_int_equal(names.count, 0);

    assert_int_equal(ls__remove_file("who", in_dir("a")), LS_OK);
    assert_int_equal(ls__remove_file("who", in_dir("a")), LS_OK);
    assert_int_equal(entries(), 4);
    assert_int_equal(ls__remove_file("who", test_dir), LS_IO);
    failed(LS_IO, test_dir);
    assert_int_equal(unlink(in_dir(".hidden")), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(kinds, clean),
        cmocka_unit_test_setup(nests_are_made, clean),
        cmocka_unit_test_setup(nests_that_cannot_be, clean),
        cmocka_unit_test_setup(lists, clean),
    };
    return cmocka_run_group_tests(tests, make_test_dir, remove_test_dir);
}
