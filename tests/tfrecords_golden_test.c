/*
 * TFRecord files that TensorFlow wrote (tools/golden_records.py) are read here, record by record, and
 * a plain file written here is the same bytes as TensorFlow's.
 */
#include <lockstep.h>
#include <lockstep/records.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { RECORDS = 40, LONG = 300000 };

/* Record i, as the script makes it. */
static size_t record(int i, unsigned char *to)
{
    size_t n = i == RECORDS ? LONG : (size_t)(i * i * 3 % 257);
    for (size_t j = 0; j < n; j++)
        to[j] = (unsigned char)(i == RECORDS ? j >> 12 : (size_t)i * 31 + j * 7 + (j >> 3));
    return n;
}

static const char *golden(const char *name)
{
    static char path[4096];
    const char *dir = getenv("LOCKSTEP_TEST_DIR");
    snprintf(path, sizeof path, "%s/golden_records/%s", dir ? dir : "tests", name);
    return path;
}

static void check_file(const char *name, ls_compression kind, int records)
{
    unsigned char *want = malloc(LONG);
    LS_FRAME {
        ls_iterator *it =
            ls_iterate(ls_tfrecords(LS_FILES(golden(name)), LS_RECORDS(.compression = kind)));
        ls_value *v = NULL;
        if (!it)
            fail_msg("%s", ls_error_report());
        for (int i = 0; i < records; i++)
            LS_FRAME {
                const void *data;
                size_t n, length = record(i, want);
                if (ls_next(it, &v))
                    fail_msg("record %d: %s", i, ls_error_report());
                assert_int_equal(ls_string_at(ls_leaf_tensor(v), 0, &data, &n), LS_OK);
                assert_int_equal(n, length);
                assert_memory_equal(data, want, n);
            }
        assert_int_equal(ls_next(it, &v), LS_END);
        ls_iterator_free(it);
    }
    free(want);
}

static void plain(void **state)
{
    (void)state;
    check_file("plain.tfrecord", LS_PLAIN, RECORDS);
}

static void packed(void **state)
{
    (void)state;
#ifndef LS_HAVE_ZLIB
    skip();
#endif
    check_file("gzip.tfrecord", LS_GZIP, RECORDS + 1);
    check_file("zlib.tfrecord", LS_ZLIB, RECORDS + 1);
}

static size_t read_file(const char *path, unsigned char *to, size_t room)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(to, 1, room, f);
    fclose(f);
    return n;
}

static void the_same_bytes(void **state)
{
    (void)state;
    static unsigned char ours[65536], theirs[65536], data[512];
    char dir[] = "/tmp/lockstep-golden-XXXXXX", path[64];
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/x", dir);
    ls_record_writer *w = ls_record_writer_open(path, LS_PLAIN);
    for (int i = 0; i < RECORDS; i++)
        assert_int_equal(ls_record_write(w, data, record(i, data)), LS_OK);
    assert_int_equal(ls_record_writer_close(w), LS_OK);
    size_t n = read_file(path, ours, sizeof ours);
    unlink(path);
    rmdir(dir);
    assert_int_equal(read_file(golden("plain.tfrecord"), theirs, sizeof theirs), n);
    assert_memory_equal(ours, theirs, n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain),
        cmocka_unit_test(packed),
        cmocka_unit_test(the_same_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
