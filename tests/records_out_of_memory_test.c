/*
 * Memory runs out while records are written and read: the n-th allocation fails, for every n. Each time
 * it is told, nothing leaks, no file is left that was not closed, and what is read is right.
 */
#include <lockstep.h>
#include <lockstep/records.h>

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/failing_memory.h"

enum { RECORDS = 5, LONG = 600000 }; /* the last is longer than the reader's buffer */

static char dir[] = "/tmp/lockstep-memory-XXXXXX", path[64], written[64];
static char *record;
#ifdef LS_HAVE_ZLIB
static const ls_compression last_kind = LS_ZLIB;
#else
static const ls_compression last_kind = LS_PLAIN;
#endif

static size_t length_of(int i)
{
    return i == RECORDS - 1 ? LONG : (size_t)i * 100;
}

static ls_status write_records(const char *to, ls_compression kind)
{
    ls_record_writer *w = ls_record_writer_open(to, kind);
    ls_status st = w ? LS_OK : ls_error_pending();
    for (int i = 0; i < RECORDS && !st; i++)
        st = ls_record_write(w, record, length_of(i));
    if (!st)
        return ls_record_writer_close(w);
    ls_record_writer_discard(w);
    return st;
}

/* Reads the file. What is given is right; *missing records were not. */
static ls_status read_records(ls_compression kind, int *missing)
{
    ls_status first = LS_OK, st = LS_OK;
    int given = 0;
    LS_FRAME {
        ls_iterator *it = ls_iterate(ls_tfrecords(LS_FILES(path), LS_RECORDS(.compression = kind)));
        if (!it)
            return ls_error_pending();
        for (int turn = 0; turn < 20 && st != LS_END; turn++)
            LS_FRAME {
                ls_value *v;
                const void *data;
                size_t n;
                st = ls_next(it, &v);
                if (!st) {
                    given++;
                    assert_int_equal(ls_string_at(ls_leaf_tensor(v), 0, &data, &n), LS_OK);
                    assert_memory_equal(data, record, n);
                } else if (st != LS_END) {
                    first = first ? first : st;
                }
            }
        assert_int_equal(st, LS_END);
        ls_iterator_free(it);
    }
    *missing = RECORDS - given;
    return first;
}

static int entries(const char *of)
{
    int n = 0;
    DIR *d = opendir(of);
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

/* Lets allocation n fail; false when there are not so many. */
static bool one_failure(long n, ls_compression kind, bool write)
{
    size_t before, after;
    int missing = 0, files = entries("/proc/self/fd");
    ls_memory(&before, NULL);
    memory_keep_none();
    memory_fails_after(n);
    ls_status st = write ? write_records(written, kind) : read_records(kind, &missing);
    memory_is_back();
    if (st && (st != LS_NO_MEMORY || ls_error() != LS_NO_MEMORY))
        fail_msg("allocation %ld: %s, '%s'", n, ls_status_name(st), ls_error_text());
    assert_true(memory_failed || !st);
    assert_true(st || missing == 0); /* what is missing is told */
    if (write) {
        assert_int_equal(access(written, F_OK) == 0, st == LS_OK);
        unlink(written);
    }
    assert_int_equal(entries(dir), 3);
    assert_int_equal(entries("/proc/self/fd"), files);
    ls_memory(&after, NULL);
    assert_int_equal(after, before);
    return memory_failed;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    for (int write = 0; write < 2; write++)
        for (ls_compression kind = LS_PLAIN; kind <= last_kind; kind++) {
            long n = 0;
            unlink(path);
            assert_int_equal(write_records(path, kind), LS_OK);
            assert_false(one_failure(-1, kind, write)); /* what is made once is made now */
            while (one_failure(n, kind, write))
                n++;
            assert_true(n > (write ? 3 : 15));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_allocation_may_fail) };
    record = calloc(LONG, 1);
    if (!record || !mkdtemp(dir))
        return 1;
    for (int i = 0; i < LONG; i++)
        record[i] = (char)(i * 7);
    snprintf(path, sizeof path, "%s/x", dir);
    snprintf(written, sizeof written, "%s/y", dir);
    int result = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    rmdir(dir);
    free(record);
    return result;
}
