/*
 * TFRecord files as datasets: every record, in order, of all files, whatever their sizes; files that
 * are missing or of another kind; options.
 */
#include "data/record_test_support.h"

/* Sizes around what the buffer holds (256 KiB), and nothing at all. */
static const size_t sizes[] = { 5, 0, 830, 100000, 3, 200000, 262128, 262129, 1, 700000, 0, 16 };
enum { SIZES = sizeof sizes / sizeof *sizes };

static bytes sample_file(int first, int records)
{
    bytes b = { 0 };
    for (int i = first; i < first + records; i++)
        add_sample_record(&b, i, sizes[i % SIZES]);
    return b;
}

static bytes small_file(int first, int records)
{
    bytes b = { 0 };
    for (int i = first; i < first + records; i++)
        add_sample_record(&b, i, (size_t)(i * 37 % 101));
    return b;
}

static ls_dataset *all_of(const char *pattern, ls_compression kind)
{
    return ls_tfrecords(LS_FILES(in_dir(pattern)), LS_RECORDS(.compression = kind));
}

static void check_all(ls_dataset *d, const bytes *want)
{
    int errors;
    ls_iterator *it = ls_iterate(d);
    bytes got = take_all(it, &errors);
    assert_int_equal(errors, 0);
    assert_int_equal(got.n, want->n);
    assert_memory_equal(got.at, want->at, want->n);
    ls_iterator_free(it);
    free_bytes(&got);
}

static void every_record(void **state)
{
    (void)state;
    int files = open_files();
    for (ls_compression kind = LS_PLAIN; kind <= last_kind; kind++) {
        bytes a = sample_file(0, SIZES), none = { 0 }, b = sample_file(SIZES, 3), all = { 0 };
        put_packed("1", kind, &a);
        put_packed("2", kind, &none);
        put_packed("3", kind, &b);
        add_bytes(&all, a.at, a.n);
        add_bytes(&all, b.at, b.n);
        LS_FRAME {
            ls_dataset *d = all_of("?", kind);
            assert_string_equal(ls_dataset_text(d), "bytes[]");
            assert_int_equal(ls_cardinality(d), LS_UNKNOWN);
            check_all(d, &all);
            check_all(d, &all);
        }
        free_bytes(&a);
        free_bytes(&b);
        free_bytes(&all);
    }
    assert_int_equal(open_files(), files);
    size_t now, peak;
    ls_memory(&now, &peak);
    assert_int_equal(now, 0);
}

/* Elements are the caller's: what he took stays when the reader has gone on. */
static void elements_and_batches(void **state)
{
    (void)state;
    bytes b = small_file(0, 1000);
    put_file("x", b.at, b.n);
    LS_FRAME {
        ls_iterator *it = ls_iterate(all_of("x", LS_PLAIN));
        ls_value *kept[100], *v = NULL;
        for (int i = 0; i < 100; i++)
            assert_int_equal(ls_next(it, &kept[i]), LS_OK);
        assert_true(ls_iterator_bytes(it) >= 256 << 10); /* the buffer */
        while (ls_next(it, &v) == LS_OK)
            ;
        bytes got = { 0 };
        for (int i = 0; i < 100; i++) {
            const void *data;
            size_t n;
            assert_int_equal(ls_string_at(ls_leaf_tensor(kept[i]), 0, &data, &n), LS_OK);
            assert_int_equal(((const char *)data)[n], 0);
            add_record(&got, data, n);
        }
        assert_memory_equal(got.at, b.at, got.n);
        ls_iterator_free(it);

        got.n = 0;
        LS_FOR_EACH (batch, ls_batch(all_of("x", LS_PLAIN), 64)) {
            ls_tensor *t = ls_leaf_tensor(batch);
            for (int64_t i = 0; i < ls_dim(t, 0); i++) {
                const void *data;
                size_t n;
                assert_int_equal(ls_string_at(t, i, &data, &n), LS_OK);
                add_record(&got, data, n);
            }
        }
        assert_int_equal(got.n, b.n);
        assert_memory_equal(got.at, b.at, b.n);
        free_bytes(&got);
    }
    free_bytes(&b);
}

/* ---- mistakes ------------------------------------------------------------------------------- */

/* A file that is gone fails once; the others are read. */
static void missing_files(void **state)
{
    (void)state;
    bytes a = small_file(0, 2), all = { 0 };
    for (int i = 0; i < 4; i++) {
        put_file((const char[]){ (char)('1' + i), 0 }, a.at, a.n);
        if (i != 1)
            add_bytes(&all, a.at, a.n);
    }
    LS_FRAME {
        int errors;
        ls_dataset *d = all_of("?", LS_PLAIN);
        unlink(in_dir("2"));
        ls_iterator *it = ls_iterate(d);
        ls_value *v;
        assert_int_equal(ls_next(it, &v), LS_OK);
        assert_int_equal(ls_next(it, &v), LS_OK);
        assert_int_equal(ls_next(it, &v), LS_NOT_FOUND);
        failed_with(LS_NOT_FOUND, in_dir("2"));
        ls_iterator_free(it);
        it = ls_iterate(d);
        bytes got = take_all(it, &errors);
        assert_int_equal(errors, 1);
        assert_int_equal(got.n, all.n);
        assert_memory_equal(got.at, all.at, all.n);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(ls_next(it, &v), LS_END);
            assert_int_equal(ls_error_pending(), LS_OK);
        }
        ls_iterator_free(it);
        free_bytes(&got);
    }
    free_bytes(&a);
    free_bytes(&all);
}

static void options(void **state)
{
    (void)state;
    put_file("x", "", 0);
    LS_FRAME {
        ls_dataset *f = LS_FILES(in_dir("x"));
        ls_records_options o;
        ls_records_init(&o);
        assert_int_equal(o.size, sizeof o);
        assert_non_null(ls_tfrecords(f, &o));
        o.size = 3;
        assert_null(ls_tfrecords(f, &o));
        failed_with(LS_INVALID, "size 3");
        assert_null(ls_tfrecords(f, LS_RECORDS(.compression = (ls_compression)7)));
        failed_with(LS_INVALID, "compression 7");
        assert_null(ls_tfrecords(f, LS_RECORDS(.record_bytes = 7)));
        failed_with(LS_INVALID, "record_bytes");
        assert_null(ls_text_lines(f, LS_RECORDS(.header_bytes = 7)));
        failed_with(LS_INVALID, "ls_text_lines");
        assert_null(ls_tfrecords(NULL, NULL));
        failed_with(LS_INVALID, "NULL");
        assert_null(ls_tfrecords(ls_range(0, 3, 1), NULL));
        failed_with(LS_SHAPE, "i64[]");
        assert_null(ls_tfrecords(ls_batch(f, 2), NULL));
        failed_with(LS_SHAPE, "bytes[?]");
        if (!HAVE_ZLIB) {
            assert_null(ls_tfrecords(f, LS_RECORDS(.compression = LS_GZIP)));
            failed_with(LS_UNSUPPORTED, "zlib");
        }
    }
}

static void names_that_are_none(void **state)
{
    (void)state;
    put_file("x", "", 0);
    LS_FRAME {
        const void *names[] = { "a\0b", in_dir("x"), "" };
        size_t lengths[] = { 3, strlen(in_dir("x")), 0 };
        ls_tensor *t = ls_from_strings(1, (int64_t[]){ 3 }, names, lengths);
        ls_dataset *d = ls_tfrecords(ls_slices(ls_leaf(t)), NULL);
        ls_iterator *it = ls_iterate(d);
        ls_value *v;
        assert_int_equal(ls_next(it, &v), LS_INVALID);
        failed_with(LS_INVALID, "zero byte");
        assert_int_equal(ls_next(it, &v), LS_NOT_FOUND);
        failed_with(LS_NOT_FOUND, "''");
        assert_int_equal(ls_next(it, &v), LS_END);
        ls_iterator_free(it);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_record, clean_dir),
        cmocka_unit_test_setup(elements_and_batches, clean_dir),
        cmocka_unit_test_setup(missing_files, clean_dir),
        cmocka_unit_test_setup(options, clean_dir),
        cmocka_unit_test_setup(names_that_are_none, clean_dir),
    };
    return cmocka_run_group_tests(tests, make_test_dir, remove_test_dir);
}
