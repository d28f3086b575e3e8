/*
 * Writers: a file is there as a whole or not at all, whatever fails on the way.
 */
#include "os/writer.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "os/file_test_support.h"
#include "os/stream.h"

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

static bool there(const char *name)
{
    return access(in_dir(name), F_OK) == 0;
}

static bytes noise(size_t n)
{
    uint64_t random = n;
    bytes b = { 0 };
    for (size_t i = 0; i < n; i += 8)
        add_number(&b, random_number(&random), n - i < 8 ? (int)(n - i) : 8);
    return b;
}

static void check_file(const char *name, ls__compression kind, const bytes *want)
{
    ls__stream s = { 0 };
    assert_int_equal(ls__stream_open(&s, in_dir(name), kind), LS_OK);
    assert_int_equal(ls__stream_fill(&s, want->n + 1), LS_END);
    assert_int_equal(ls__stream_left(&s), want->n);
    if (want->n)
        assert_memory_equal(s.at, want->at, want->n);
    ls__stream_free(&s);
}

static void what_is_put_is_there(void **state)
{
    (void)state;
    static const size_t sizes[] = { 0, 1, 1000, 256 << 10, (256 << 10) + 1, 700001 };
    static const size_t pieces[] = { 700001, 999, 256 << 10 };
    int files = open_files();
    for (ls__compression kind = LS__PLAIN; kind <= (HAVE_ZLIB ? LS__ZLIB : LS__PLAIN); kind++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            bytes b = noise(sizes[i]);
            size_t piece = pieces[i % 3];
            ls__writer *w = NULL;
            assert_int_equal(ls__writer_open(in_dir("x"), kind, &w), LS_OK);
            for (size_t at = 0; at < b.n; at += piece)
                assert_int_equal(ls__writer_put(w, b.at + at, b.n - at < piece ? b.n - at : piece),
                                 LS_OK);
            assert_int_equal(ls__writer_put(w, NULL, 0), LS_OK);
            assert_int_equal(ls__writer_close(w), LS_OK);
            assert_int_equal(entries(), 1);
            check_file("x", kind, &b);
            free_bytes(&b);
        }
    assert_int_equal(open_files(), files);
}

static void nothing_until_it_is_closed(void **state)
{
    (void)state;
    ls__writer *w = NULL;
    bytes old = { 0 }, b = noise(600000);
    add_bytes(&old, "old", 3);
    put_file("x", old.at, old.n);
    assert_int_equal(ls__writer_open(in_dir("x"), LS__PLAIN, &w), LS_OK);
    assert_int_equal(ls__writer_put(w, b.at, 300000), LS_OK);
    check_file("x", LS__PLAIN, &old);
    assert_true(there("x.part"));
    ls__writer_discard(w);
    assert_false(there("x.part"));
    check_file("x", LS__PLAIN, &old);

    put_file("x.part", b.at, b.n); /* of somebody who died */
    assert_int_equal(ls__writer_open(in_dir("x"), LS__PLAIN, &w), LS_OK);
    assert_int_equal(ls__writer_put(w, b.at, 300000), LS_OK);
    assert_int_equal(ls__writer_close(w), LS_OK);
    b.n = 300000;
    check_file("x", LS__PLAIN, &b);
    assert_int_equal(entries(), 1);
    ls__writer_discard(NULL);
    free_bytes(&b);
    free_bytes(&old);
}

static void one_writer_at_a_time(void **state)
{
    (void)state;
    ls__writer *first = NULL, *second = NULL;
    bytes b = { 0 };
    add_bytes(&b, "first", 5);
    assert_int_equal(ls__writer_open(in_dir("x"), LS__PLAIN, &first), LS_OK);
    assert_int_equal(ls__writer_put(first, "first", 5), LS_OK);
    assert_int_equal(ls__writer_open(in_dir("x"), LS__PLAIN, &second), LS_IO);
    assert_null(second);
    failed(LS_IO, "somebody else");
    assert_int_equal(ls__writer_close(first), LS_OK);
    check_file("x", LS__PLAIN, &b);
    assert_int_equal(ls__writer_open(in_dir("x"), LS__PLAIN, &second), LS_OK);
    assert_int_equal(ls__writer_close(second), LS_OK);
    b.n = 0;
    check_file("x", LS__PLAIN, &b);
    free_bytes(&b);
}

/* As when the disk is full: the system takes so many bytes of a file and no more. */
static void take_no_more_than(rlim_t limit)
{
    struct rlimit now;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &now), 0);
    now.rlim_cur = limit == RLIM_INFINITY ? now.rlim_max : limit;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &now), 0);
}

static void full_disks(void **state)
{
    (void)state;
    bytes b = noise(1 << 20);
    int files = open_files();
    signal(SIGXFSZ, SIG_IGN);
    for (ls__compression kind = LS__PLAIN; kind <= (HAVE_ZLIB ? LS__ZLIB : LS__PLAIN); kind++) {
        ls__writer *w = NULL;
        ls_status st = LS_OK;
        assert_int_equal(ls__writer_open(in_dir("x"), kind, &w), LS_OK);
        take_no_more_than(300000);
        for (int i = 0; i < 3 && !st; i++)
            st = ls__writer_put(w, b.at, b.n);
        take_no_more_than(RLIM_INFINITY);
        assert_int_equal(st, LS_IO);
        assert_non_null(strstr(ls_error_text(), "byte 300000"));
        assert_non_null(strstr(ls_error_hint(), "ulimit"));
        failed(LS_IO, in_dir("x"));
        assert_int_equal(ls__writer_put(w, "x", 1), LS_IO); /* for good: a gap is no file */
        failed(LS_IO, in_dir("x"));
        assert_int_equal(ls__writer_close(w), LS_IO);
        failed(LS_IO, in_dir("x"));
        assert_int_equal(entries(), 0);

        /* Found out at the very end. */
        assert_int_equal(ls__writer_open(in_dir("x"), kind, &w), LS_OK);
        assert_int_equal(ls__writer_put(w, b.at, 2000), LS_OK);
        take_no_more_than(1000);
        st = ls__writer_close(w);
        take_no_more_than(RLIM_INFINITY);
        assert_int_equal(st, LS_IO);
        failed(LS_IO, in_dir("x"));
        assert_int_equal(entries(), 0);
    }
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(open_files(), files);
    free_bytes(&b);
}

/* What nobody writes any more is removed, and nothing else. */
static void rests(void **state)
{
    (void)state;
    ls__writer *w = NULL;
    assert_false(ls__writer_clean(in_dir("x")));
    put_file("x", "abc", 3);
    put_file("x.part", "abc", 3);
    assert_true(ls__writer_clean(in_dir("x")));
    assert_true(there("x"));
    assert_false(there("x.part"));
    assert_int_equal(ls__writer_open(in_dir("x"), LS__PLAIN, &w), LS_OK);
    assert_int_equal(ls__writer_put(w, "def", 3), LS_OK);
    assert_false(ls__writer_clean(in_dir("x")));
    assert_true(there("x.part"));
    assert_int_equal(ls__writer_close(w), LS_OK);
    assert_int_equal(mkdir(in_dir("x.part"), 0777), 0); /* what is no file is not ours */
    assert_false(ls__writer_clean(in_dir("x")));
    assert_int_equal(rmdir(in_dir("x.part")), 0);
    assert_int_equal(mkfifo(in_dir("x.part"), 0666), 0);
    assert_false(ls__writer_clean(in_dir("x")));
    assert_int_equal(unlink(in_dir("x.part")), 0);
    assert_int_equal(symlink("x", in_dir("x.part")), 0);
    assert_false(ls__writer_clean(in_dir("x")));
    assert_true(there("x.part"));
    assert_int_equal(ls_error_pending(), LS_OK);
}

static void names_that_are_none(void **state)
{
    (void)state;
    ls__writer *w = NULL;
    assert_int_equal(ls__writer_open(in_dir("no/such"), LS__PLAIN, &w), LS_NOT_FOUND);
    failed(LS_NOT_FOUND, "no/such");
    assert_int_equal(ls__writer_open(test_dir, LS__PLAIN, &w), LS_IO);
    failed(LS_IO, test_dir);
    assert_int_equal(ls__writer_open("", LS__PLAIN, &w), LS_INVALID);
    failed(LS_INVALID, "no name");
    assert_int_equal(ls__writer_open(in_dir("x/"), LS__PLAIN, &w), LS_INVALID);
    failed(LS_INVALID, "no name");
    assert_int_equal(ls__writer_open(NULL, LS__PLAIN, &w), LS_INVALID);
    failed(LS_INVALID, "NULL");
    if (!HAVE_ZLIB) {
        assert_int_equal(ls__writer_open(in_dir("x"), LS__GZIP, &w), LS_UNSUPPORTED);
        failed(LS_UNSUPPORTED, "gzip");
    }
    assert_null(w);
    assert_int_equal(entries(), 0);

    /* What is no file stays what it is, also behind a link: /dev/null, /dev/stdout. */
    struct stat about;
    assert_int_equal(mkfifo(in_dir("pipe"), 0666), 0);
    assert_int_equal(symlink("pipe", in_dir("link")), 0);
    assert_int_equal(ls__writer_open(in_dir("pipe"), LS__PLAIN, &w), LS_IO);
    failed(LS_IO, "no file");
    assert_int_equal(ls__writer_open(in_dir("link"), LS__PLAIN, &w), LS_IO);
    failed(LS_IO, "no file");
    assert_int_equal(stat(in_dir("link"), &about), 0);
    assert_true(S_ISFIFO(about.st_mode));
    assert_int_equal(entries(), 2);
    assert_int_equal(unlink(in_dir("pipe")), 0);
    assert_int_equal(unlink(in_dir("link")), 0);

    /* The part is a file of ours: not one that a link of its name leads to. */
    put_file("other", "abc", 3);
    assert_int_equal(symlink("other", in_dir("x.part")), 0);
    assert_int_equal(ls__writer_open(in_dir("x"), LS__PLAIN, &w), LS_IO);
    failed(LS_IO, "x.part");
    assert_int_equal(stat(in_dir("other"), &about), 0);
    assert_int_equal(about.st_size, 3);
    assert_int_equal(unlink(in_dir("other")), 0);
    assert_int_equal(unlink(in_dir("x.part")), 0);

    /* The name becomes a directory's while it is written: nothing is left of ours. */
    assert_int_equal(ls__writer_open(in_dir("x"), LS__PLAIN, &w), LS_OK);
    assert_int_equal(mkdir(in_dir("x"), 0777), 0);
    assert_int_equal(ls__writer_close(w), LS_IO);
    failed(LS_IO, "x.part");
    assert_int_equal(entries(), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_is_put_is_there, clean),
        cmocka_unit_test_setup(nothing_until_it_is_closed, clean),
        cmocka_unit_test_setup(one_writer_at_a_time, clean),
        cmocka_unit_test_setup(full_disks, clean),
        cmocka_unit_test_setup(rests, clean),
        cmocka_unit_test_setup(names_that_are_none, clean),
    };
    return cmocka_run_group_tests(tests, make_test_dir, remove_test_dir);
}
