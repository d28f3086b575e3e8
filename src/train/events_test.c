/*
 * Event files: their names, what is in them when, and what happens when something is wrong: the file
 * stays one that is read, and the writer goes on.
 */
#include <lockstep/train.h>

#include <glob.h>
#include <signal.h>
#include <sys/resource.h>

#include "data/record_test_support.h"
#include "train/events.h"

/* The event files of the directory, in order of names. */
static glob_t event_files(void)
{
    glob_t found;
    assert_int_equal(glob(in_dir("events.out.tfevents.*"), 0, NULL, &found), 0);
    return found;
}

static const char *the_file(void)
{
    static char path[256];
    glob_t found = event_files();
    assert_int_equal(found.gl_pathc, 1);
    assert_true(strlen(found.gl_pathv[0]) < sizeof path);
    strcpy(path, found.gl_pathv[0]);
    globfree(&found);
    return path;
}

/* How many records there are, read as any TFRecord file; `word` is in so many of them. */
static int records(const char *path, const char *word, int *with)
{
    int n = 0, found = 0;
    LS_FRAME {
        ls_iterator *it = ls_iterate(ls_tfrecords(LS_FILES(path), LS_RECORDS(.compression = 0)));
        const void *data;
        size_t length;
        ls_status st;
        while ((st = next_string(it, &data, &length)) == LS_OK) {
            found += word && memmem(data, length, word, strlen(word)) != NULL;
            n++;
        }
        assert_int_equal(st, LS_END);
        ls_iterator_free(it);
    }
    if (with)
        *with = found;
    return n;
}

/* ---- files ------------------------------------------------------------------------------------------ */

static void a_run(void **state)
{
    (void)state;
    int with;
    ls_events *e = ls_events_open(test_dir);
    assert_non_null(e);
    /* who reads along sees a file of this version at once */
    assert_int_equal(records(the_file(), "brain.Event:2", &with), 1);
    assert_int_equal(with, 1);
    for (int i = 0; i < 100; i++)
        assert_int_equal(ls_events_scalar(e, i, "loss", 1.0 / i), LS_OK);
    assert_int_equal(ls_events_text(e, 0, "about", "a *text*"), LS_OK);
    LS_FRAME
        assert_int_equal(ls_events_histogram(e, 5, "w", ls_ones(LS_F32, LS_DIMS(2, 3))), LS_OK);
    assert_int_equal(records(the_file(), NULL, NULL), 1); /* they wait */
    assert_int_equal(ls_events_flush(e), LS_OK);
    assert_int_equal(records(the_file(), "loss", &with), 103);
    assert_int_equal(with, 100);
    assert_int_equal(ls_events_scalar(e, 100, "loss", 7), LS_OK);
    assert_int_equal(ls_events_close(e), LS_OK);
    assert_int_equal(records(the_file(), "loss", &with), 104);
    assert_int_equal(with, 101);
}

static void not_for_long(void **state)
{
    (void)state;
    ls_events *e = ls_events_open(test_dir);
    ls__events_wait(e, 0); /* as if the seconds had passed */
    assert_int_equal(ls_events_scalar(e, 1, "loss", 1), LS_OK);
    ls__events_wait(e, 1e9);
    assert_int_equal(records(the_file(), NULL, NULL), 2);
    /* and not many */
    char long_text[5000];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    for (int i = 0; i < 20; i++)
        assert_int_equal(ls_events_text(e, i, "long", long_text), LS_OK);
    assert_true(records(the_file(), NULL, NULL) > 12);
    assert_int_equal(ls_events_close(e), LS_OK);
    assert_int_equal(records(the_file(), NULL, NULL), 22);
}

/* events.out.tfevents.SECONDS.HOST.PID.N; a host's name may have dots in it. */
static void check_name(const char *path)
{
    char pid[32], *end;
    const char *name = strrchr(path, '/') + 1, *last = strrchr(name, '.');
    assert_true(strncmp(name, "events.out.tfevents.", 20) == 0);
    assert_true(strtoll(name + 20, &end, 10) > 1600000000 && *end == '.' && end < last);
    snprintf(pid, sizeof pid, ".%ld.", (long)getpid());
    assert_memory_equal(last + 1 - strlen(pid), pid, strlen(pid));
    strtol(last + 1, &end, 10);
    assert_true(end > last + 1 && *end == '\0');
}

/* Two of one process in one second. */
static void two_writers(void **state)
{
    (void)state;
    ls_events *first = ls_events_open(test_dir), *second = ls_events_open(test_dir);
    assert_non_null(first);
    assert_non_null(second);
    assert_int_equal(ls_events_scalar(first, 1, "first", 1), LS_OK);
    assert_int_equal(ls_events_scalar(second, 1, "second", 1), LS_OK);
    assert_int_equal(ls_events_close(first), LS_OK);
    assert_int_equal(ls_events_close(second), LS_OK);
    glob_t found = event_files();
    int one[2], other[2];
    assert_int_equal(found.gl_pathc, 2);
    for (int i = 0; i < 2; i++) {
        check_name(found.gl_pathv[i]);
        assert_int_equal(records(found.gl_pathv[i], "first", &one[i]), 2);
        assert_int_equal(records(found.gl_pathv[i], "second", &other[i]), 2);
    }
    assert_true(one[0] + one[1] == 1 && other[0] + other[1] == 1 && one[0] == other[1]);
    globfree(&found);
}

static void new_directories(void **state)
{
    (void)state;
    ls_events *e = ls_events_open(in_dir("a//b/c/"));
    assert_non_null(e);
    assert_int_equal(ls_events_close(e), LS_OK);
    DIR *d = opendir(in_dir("a/b/c"));
    assert_non_null(d);
    for (struct dirent *f; (f = readdir(d));)
        unlinkat(dirfd(d), f->d_name, 0);
    closedir(d);
    assert_int_equal(rmdir(in_dir("a/b/c")), 0);
    assert_int_equal(rmdir(in_dir("a/b")), 0);
}

/* ---- what is wrong ---------------------------------------------------------------------------------- */

static void no_writer(void **state)
{
    (void)state;
    put_file("file", "x", 1);
    assert_null(ls_events_open(in_dir("file/run")));
    failed_with(LS_IO, "file");
    assert_null(ls_events_open(in_dir("file")));
    failed_with(LS_IO, "ls_events_open: cannot make the directory");
    assert_null(ls_events_open(NULL));
    failed_with(LS_INVALID, "NULL");
    assert_null(ls_events_open(""));
    failed_with(LS_INVALID, "empty");
    assert_null(ls_events_open("/proc/lockstep-test/run"));
    /* passed on by all, and training goes on */
    LS_FRAME {
        assert_int_equal(ls_events_scalar(NULL, 1, "loss", 1), LS_IO);
        assert_int_equal(ls_events_text(NULL, 1, "t", "t"), LS_IO);
        assert_int_equal(ls_events_histogram(NULL, 1, "w", ls_ones(LS_F32, 0, NULL)), LS_IO);
        assert_int_equal(ls_events_graph(NULL, NULL), LS_IO);
    }
    assert_int_equal(ls_events_flush(NULL), LS_IO);
    assert_int_equal(ls_events_close(NULL), LS_IO);
    failed_with(LS_IO, "/proc/lockstep-test");
    assert_int_equal(ls_events_close(NULL), LS_OK);
    assert_int_equal(ls_events_scalar(NULL, 1, "loss", 1), LS_INVALID);
    failed_with(LS_INVALID, "ls_events_scalar: the writer is NULL");
    assert_int_equal(entries(), 1);
}

static ls_value *on_symbols(ls_value *arguments, void *user)
{
    ls_events_histogram(user, 1, "x", ls_item(arguments, 0));
    return arguments;
}

static void mistakes(void **state)
{
    (void)state;
    ls_events *e = ls_events_open(test_dir);
    const struct {
        const char *tag, *word;
    } bad[] = { { NULL, "the tag is NULL" },
                { "", "the tag is empty" },
                { "a\xff", "no UTF-8 at byte 1" },
                { "cut\xe2\x82", "no UTF-8 at byte 3" },
                { "\xed\xa0\x80", "no UTF-8 at byte 0" } };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(ls_events_scalar(e, 1, bad[i].tag, 1), LS_INVALID);
        failed_with(LS_INVALID, bad[i].word);
        assert_int_equal(ls_events_text(e, 1, bad[i].tag, "text"), LS_INVALID);
        failed_with(LS_INVALID, bad[i].word);
    }
    assert_int_equal(ls_events_text(e, 1, "t", NULL), LS_INVALID);
    failed_with(LS_INVALID, "the text is NULL");
    assert_int_equal(ls_events_text(e, 1, "t", "\x80"), LS_INVALID);
    failed_with(LS_INVALID, "the text is no UTF-8");
    LS_FRAME {
        assert_int_equal(ls_events_histogram(e, 1, "w", NULL), LS_INVALID);
        failed_with(LS_INVALID, "the tensor is NULL");
        ls_tensor *rows = ls_zeros(LS_I64, LS_DIMS(2)), *values = ls_ones(LS_F32, LS_DIMS(2, 3));
        assert_int_equal(ls_events_histogram(e, 1, "w", ls_sparse(rows, values, 5)), LS_SHAPE);
        failed_with(LS_SHAPE, "sparse");
        const void *strings[] = { "x" };
        ls_tensor *string = ls_from_strings(LS_DIMS(1), strings, (const size_t[]){ 1 });
        assert_int_equal(ls_events_histogram(e, 1, "w", string), LS_SHAPE);
        failed_with(LS_SHAPE, "wants numbers");
        ls_function *f = ls_trace(on_symbols, e);
        assert_null(ls_function_call(f, ls_tensors(1, &values)));
        failed_with(LS_STATE, "in a traced step");
        ls_function_free(f);
    }
    assert_int_equal(ls_events_close(e), LS_OK);
    assert_int_equal(records(the_file(), NULL, NULL), 1); /* nothing but the version */
}

/* As when the disk is full, and has room again later. */
static void full_disk(void **state)
{
    (void)state;
    struct rlimit all, few;
    int with;
    ls_events *e = ls_events_open(test_dir);
    assert_int_equal(ls_events_scalar(e, 1, "early", 1), LS_OK);
    assert_int_equal(ls_events_flush(e), LS_OK);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &all), 0);
    few = all;
    few.rlim_cur = 150; /* into the middle of a record */
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
    for (int i = 0; i < 10; i++)
        assert_int_equal(ls_events_scalar(e, i, "lost", 1), LS_OK);
    ls_status flushed = ls_events_flush(e);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(flushed, LS_IO);
    assert_string_equal(ls_error_hint(),
                        "make room on the disk, or write elsewhere; what is in the file is whole");
    failed_with(LS_IO, "cannot write");
    assert_int_equal(records(the_file(), "lost", &with), 2); /* whole, for who reads along */
    assert_int_equal(with, 0);
    assert_int_equal(ls_events_scalar(e, 2, "late", 1), LS_OK);
    assert_int_equal(ls_events_close(e), LS_OK);
    assert_int_equal(records(the_file(), "late", &with), 3);
    assert_int_equal(with, 1);
}

static void full_from_the_first(void **state)
{
    (void)state;
    struct rlimit all, few;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &all), 0);
    few = all;
    few.rlim_cur = 10;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
    ls_events *e = ls_events_open(test_dir);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_null(e);
    failed_with(LS_IO, "cannot write");
    assert_int_equal(entries(), 0);
}

static void closing_tells(void **state)
{
    (void)state;
    struct rlimit all, few;
    int open_before = open_files();
    ls_events *e = ls_events_open(test_dir);
    assert_int_equal(ls_events_scalar(e, 1, "lost", 1), LS_OK);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &all), 0);
    few = all;
    few.rlim_cur = 50;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
    ls_status closed = ls_events_close(e);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(closed, LS_IO);
    failed_with(LS_IO, "cannot write");
    assert_int_equal(open_files(), open_before);
    assert_int_equal(records(the_file(), NULL, NULL), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_run, clean_dir),
        cmocka_unit_test_setup(not_for_long, clean_dir),
        cmocka_unit_test_setup(two_writers, clean_dir),
        cmocka_unit_test_setup(new_directories, clean_dir),
        cmocka_unit_test_setup(no_writer, clean_dir),
        cmocka_unit_test_setup(mistakes, clean_dir),
        cmocka_unit_test_setup(full_disk, clean_dir),
        cmocka_unit_test_setup(full_from_the_first, clean_dir),
        cmocka_unit_test_setup(closing_tells, clean_dir),
    };
    return cmocka_run_group_tests(tests, make_test_dir, remove_test_dir);
}
