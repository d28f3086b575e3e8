/*
 * The TFRecord writer: its bytes are the format's, what it writes is read back, and a file that could
 * not be written is not there.
 */
#include "data/record_test_support.h"

#include <signal.h>
#include <sys/resource.h>

static bytes file_bytes(const char *name)
{
    bytes b = { 0 };
    unsigned char buffer[4096];
    FILE *f = fopen(in_dir(name), "rb");
    assert_non_null(f);
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, f)) > 0;)
        add_bytes(&b, buffer, n);
    fclose(f);
    return b;
}

static void the_bytes(void **state)
{
    (void)state;
    bytes want = { 0 };
    add_record(&want, "abc", 3);
    add_record(&want, "", 0);
    add_record(&want, "with a\0zero", 11);
    ls_record_writer *w = ls_record_writer_open(in_dir("x"), LS_PLAIN);
    assert_non_null(w);
    assert_int_equal(ls_record_write(w, "abc", 3), LS_OK);
    assert_int_equal(ls_record_write(w, NULL, 0), LS_OK);
    assert_int_equal(ls_record_write(w, "with a\0zero", 11), LS_OK);
    assert_int_not_equal(access(in_dir("x"), F_OK), 0);
    assert_int_equal(access(in_dir("x.part"), F_OK), 0);
    assert_int_equal(ls_record_writer_close(w), LS_OK);
    bytes got = file_bytes("x");
    assert_int_equal(got.n, want.n);
    assert_memory_equal(got.at, want.at, want.n);
    assert_int_equal(entries(), 1);
    free_bytes(&got);
    free_bytes(&want);
}

static void written_and_read(void **state)
{
    (void)state;
    bytes want = { 0 };
    for (int i = 0; i < 200; i++)
        add_sample_record(&want, i, i == 100 ? 500000 : (size_t)(i * i % 3001));
    for (ls_compression kind = LS_PLAIN; kind <= last_kind; kind++)
        LS_FRAME {
            int errors;
            ls_record_writer *w = ls_record_writer_open(in_dir("x"), kind);
            for (size_t at = 0; at < want.n;) {
                uint64_t n = 0;
                memcpy(&n, want.at + at, 8);
                assert_int_equal(ls_record_write(w, want.at + at + 12, n), LS_OK);
                at += 16 + n;
            }
            assert_int_equal(ls_record_writer_close(w), LS_OK);
            ls_iterator *it =
                ls_iterate(ls_tfrecords(LS_FILES(in_dir("x")), LS_RECORDS(.compression = kind)));
            bytes got = take_all(it, &errors);
            assert_int_equal(errors, 0);
            assert_int_equal(got.n, want.n);
            assert_memory_equal(got.at, want.at, want.n);
            ls_iterator_free(it);
            free_bytes(&got);
        }
    free_bytes(&want);
}

static void no_file(void **state)
{
    (void)state;
    ls_record_writer *w = ls_record_writer_open(in_dir("x"), LS_PLAIN);
    assert_int_equal(ls_record_write(w, "abc", 3), LS_OK);
    ls_record_writer_discard(w);
    assert_int_equal(entries(), 0);

    /* As when the disk is full. */
    struct rlimit all, few;
    static const char data[100000];
    ls_status st = LS_OK;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &all), 0);
    few = all;
    few.rlim_cur = 500000;
    signal(SIGXFSZ, SIG_IGN);
    w = ls_record_writer_open(in_dir("x"), LS_PLAIN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
    for (int i = 0; i < 20 && !st; i++)
        st = ls_record_write(w, data, sizeof data);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(st, LS_IO);
    failed_with(LS_IO, in_dir("x"));
    assert_int_equal(ls_record_writer_close(w), LS_IO);
    failed_with(LS_IO, in_dir("x"));
    assert_int_equal(entries(), 0);
}

static void mistakes(void **state)
{
    (void)state;
    assert_null(ls_record_writer_open(NULL, LS_PLAIN));
    failed_with(LS_INVALID, "ls_record_writer_open");
    assert_null(ls_record_writer_open(in_dir("x"), (ls_compression)9));
    failed_with(LS_INVALID, "compression 9");
    assert_null(ls_record_writer_open(in_dir("no/x"), LS_PLAIN));
    assert_int_equal(ls_record_write(NULL, "a", 1), LS_NOT_FOUND); /* passed on */
    assert_int_equal(ls_record_writer_close(NULL), LS_NOT_FOUND);
    failed_with(LS_NOT_FOUND, "no/x");
    assert_int_equal(ls_record_writer_close(NULL), LS_OK);
    ls_record_writer_discard(NULL);
    assert_int_equal(ls_record_write(NULL, "a", 1), LS_INVALID);
    failed_with(LS_INVALID, "writer is NULL");
    ls_record_writer *w = ls_record_writer_open(in_dir("x"), LS_PLAIN);
    assert_int_equal(ls_record_write(w, NULL, 1), LS_INVALID);
    failed_with(LS_INVALID, "data is NULL");
    ls_record_writer_discard(w);
    if (!HAVE_ZLIB) {
        assert_null(ls_record_writer_open(in_dir("x"), LS_GZIP));
        failed_with(LS_UNSUPPORTED, "zlib");
    }
    assert_int_equal(entries(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_bytes, clean_dir),
        cmocka_unit_test_setup(written_and_read, clean_dir),
        cmocka_unit_test_setup(no_file, clean_dir),
        cmocka_unit_test_setup(mistakes, clean_dir),
    };
    return cmocka_run_group_tests(tests, make_test_dir, remove_test_dir);
}
