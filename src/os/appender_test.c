/*
 * Files that grow: whole or as before, whatever the system refuses; and directories.
 */
#include "os/appender.h"

#include <lockstep/status.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "os/directory.h"
#include "os/file_test_support.h"
#include "os/process.h"

static void has(const char *name, const char *text)
{
    char got[256] = "";
    FILE *f = fopen(in_dir(name), "rb");
    assert_non_null(f);
    got[fread(got, 1, sizeof got - 1, f)] = '\0';
    fclose(f);
    assert_string_equal(got, text);
}

static int clean(void **state)
{
    (void)state;
    ls_error();
    empty_test_dir();
    return 0;
}

static void grows(void **state)
{
    (void)state;
    ls__appender *a = NULL, *other = (ls__appender *)1;
    assert_int_equal(ls__appender_open(in_dir("x"), &a), LS_OK);
    has("x", "");
    assert_int_equal(ls__appender_put(a, "one ", 4), LS_OK);
    has("x", "one ");
    assert_int_equal(ls__appender_put(a, NULL, 0), LS_OK);
    assert_int_equal(ls__appender_put(a, "two", 3), LS_OK);
    assert_int_equal(ls__appender_sync(a), LS_OK);
    has("x", "one two");
    /* nobody else gets it */
    assert_int_equal(ls__appender_open(in_dir("x"), &other), LS_OK);
    assert_null(other);
    ls__appender_close(a);
    has("x", "one two");
    assert_int_equal(ls__appender_open(in_dir("y"), &a), LS_OK);
    ls__appender_discard(a);
    assert_int_equal(entries(), 1);
    ls__appender_close(NULL);
    ls__appender_discard(NULL);
    assert_int_equal(ls__appender_open(in_dir("no/x"), &a), LS_IO);
    assert_non_null(strstr(ls_error_text(), "no/x"));
    ls_error();
}

static void as_before(void **state)
{
    (void)state;
    struct rlimit all, few;
    ls__appender *a = NULL;
    assert_int_equal(ls__appender_open(in_dir("x"), &a), LS_OK);
    assert_int_equal(ls__appender_put(a, "12345", 5), LS_OK);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &all), 0);
    few = all;
    few.rlim_cur = 8;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
    ls_status st = ls__appender_put(a, "abcdef", 6), small = ls__appender_put(a, "67", 2);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(st, LS_IO);
    assert_non_null(strstr(ls_error_text(), "at byte 5"));
    ls_error();
    assert_int_equal(small, LS_OK); /* there was room for that */
    has("x", "1234567");
    assert_int_equal(ls__appender_put(a, "89", 2), LS_OK);
    has("x", "123456789");
    ls__appender_close(a);
}

static void directories(void **state)
{
    (void)state;
    struct stat about;
    assert_int_equal(ls__make_directory("who", in_dir("a/b")), LS_OK);
    assert_int_equal(stat(in_dir("a/b"), &about), 0);
    assert_true(S_ISDIR(about.st_mode));
    assert_int_equal(ls__make_directory("who", in_dir("a/b")), LS_OK);
    assert_int_equal(ls__make_directory("who", in_dir("a/b//")), LS_OK);
    assert_int_equal(ls__make_directory("who", "/"), LS_OK);
    assert_int_equal(rmdir(in_dir("a/b")), 0);
    put_file("f", "x", 1);
    const char *bad[] = { in_dir("f"), in_dir("f/a"), in_dir("f/a/b"), "", NULL };
    for (int i = 0; i < 5; i++) {
        assert_int_equal(ls__make_directory("who", bad[i]), i < 3 ? LS_IO : LS_INVALID);
        assert_non_null(strstr(ls_error_text(), "who: "));
        ls_error();
    }
    has("f", "x");
}

static void who_and_when(void **state)
{
    (void)state;
    char host[64], tiny[2];
    ls__host_name(host, sizeof host);
    assert_true(host[0] != '\0');
    ls__host_name(tiny, sizeof tiny);
    assert_int_equal(strlen(tiny), 1);
    assert_int_equal(ls__process_number(), getpid());
    assert_true(ls__wall_seconds() > 1.6e9); /* after 2020 */
    double before = ls__steady_seconds();
    assert_true(ls__steady_seconds() >= before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(grows, clean),
        cmocka_unit_test_setup(as_before, clean),
        cmocka_unit_test_setup(directories, clean),
        cmocka_unit_test_setup(who_and_when, clean),
    };
    return cmocka_run_group_tests(tests, make_test_dir, remove_test_dir);
}
