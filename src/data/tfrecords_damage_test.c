/*
 * Damaged TFRecord files: every truncation and every flipped bit of a small one. What is given is
 * right, what is damaged is told with file and byte, and what lies behind it is read all the same.
 */
#include "data/record_test_support.h"

/* Records of the small file, and where each begins; the last is its end. */
static const size_t lengths[] = { 7, 0, 12, 3 };
enum { RECORDS = 4 };
static size_t starts[RECORDS + 1];

static bytes small_file(void)
{
    bytes b = { 0 };
    for (int i = 0; i < RECORDS; i++) {
        add_sample_record(&b, i, lengths[i]);
        starts[i + 1] = b.n;
    }
    return b;
}

/* What is left of the damaged file `1` and of `2`, which is as it was, as a TFRecord file. `lost`:
 * the record that is missing, or all from it on (`rest`). */
static bytes what_is_left(const bytes *whole, int lost, bool rest)
{
    bytes left = { 0 };
    add_bytes(&left, whole->at, starts[lost]);
    if (!rest && lost < RECORDS)
        add_bytes(&left, whole->at + starts[lost + 1], whole->n - starts[lost + 1]);
    add_bytes(&left, whole->at, whole->n);
    return left;
}

static bool same(const bytes *a, const bytes *b)
{
    return a->n == b->n && memcmp(a->at, b->at, a->n) == 0;
}

static ls_dataset *both(bool skip)
{
    return ls_tfrecords(LS_FILES(in_dir("1"), in_dir("2")), LS_RECORDS(.skip_corrupt = skip));
}

/* The text of the first error names file and byte. */
static void check_text(size_t byte)
{
    LS_FRAME {
        char want[64];
        ls_value *v;
        ls_iterator *it = ls_iterate(both(false));
        ls_status st;
        while ((st = ls_next(it, &v)) == LS_OK)
            ;
        snprintf(want, sizeof want, "/1', byte %zu:", byte);
        failed_with(LS_CORRUPT, want);
        ls_iterator_free(it);
    }
}

static void check_damage(const bytes *whole, int lost, bool rest, const char *what, size_t where)
{
    LS_FRAME {
        int errors, want_errors = lost < RECORDS || rest ? 1 : 0;
        bytes want = what_is_left(whole, lost, rest);
        for (int skips = 0; skips < 2; skips++) {
            ls_iterator *it = ls_iterate(both(skips));
            bytes got = take_all(it, &errors);
            if (!same(&got, &want) || errors != (skips ? 0 : want_errors) ||
                ls_iterator_skipped(it) != (skips ? want_errors : 0))
                fail_msg("%s %zu: %zu bytes of %zu, %d errors, %lld left out", what, where, got.n,
                         want.n, errors, (long long)ls_iterator_skipped(it));
            ls_iterator_free(it);
            free_bytes(&got);
            int64_t skipped;
            got = pull_all(both(skips), 64, &errors, &skipped);
            if (!same(&got, &want) || errors != (skips ? 0 : want_errors) ||
                skipped != (skips ? want_errors : 0))
                fail_msg("%s %zu, many at a time: %zu bytes of %zu, %d errors, %lld left out", what,
                         where, got.n, want.n, errors, (long long)skipped);
            free_bytes(&got);
        }
        free_bytes(&want);
    }
}

static void every_truncation(void **state)
{
    (void)state;
    bytes b = small_file();
    put_file("2", b.at, b.n);
    for (size_t cut = 0; cut <= b.n; cut++) {
        int whole = 0;
        while (whole < RECORDS && starts[whole + 1] <= cut)
            whole++;
        put_file("1", b.at, cut);
        if (starts[whole] == cut) { /* nobody could know */
            LS_FRAME {
                int errors;
                ls_iterator *it = ls_iterate(both(false));
                bytes want = what_is_left(&b, whole, true), got = take_all(it, &errors);
                assert_int_equal(errors, 0);
                assert_true(same(&got, &want));
                ls_iterator_free(it);
                free_bytes(&want);
                free_bytes(&got);
            }
        } else {
            check_damage(&b, whole, true, "cut after", cut);
            check_text(starts[whole]);
        }
    }
    free_bytes(&b);
}

static void every_flipped_bit(void **state)
{
    (void)state;
    bytes b = small_file();
    put_file("2", b.at, b.n);
    for (size_t bit = 0; bit < 8 * b.n; bit++) {
        int hit = 0;
        while (starts[hit + 1] <= bit / 8)
            hit++;
        const bool head = bit / 8 - starts[hit] < 12;
        b.at[bit / 8] ^= (unsigned char)(1 << bit % 8);
        put_file("1", b.at, b.n);
        b.at[bit / 8] ^= (unsigned char)(1 << bit % 8);
        check_damage(&b, hit, head, "flipped bit", bit);
        if (bit % 8 == 0)
            check_text(starts[hit]);
    }
    free_bytes(&b);
}

/* Records of the small file, in their order; some may be missing. */
static bool some_of(const bytes *got, const bytes *whole)
{
    size_t at = 0;
    for (int i = 0; i < RECORDS && at < got->n; i++) {
        size_t n = starts[i + 1] - starts[i];
        if (n <= got->n - at && memcmp(got->at + at, whole->at + starts[i], n) == 0)
            at += n;
    }
    return at == got->n;
}

static void check_packed(ls_compression kind, const bytes *whole, bool cut, size_t where)
{
    LS_FRAME {
        int errors;
        ls_iterator *it =
            ls_iterate(ls_tfrecords(LS_FILES(in_dir("1")), LS_RECORDS(.compression = kind)));
        bytes got = take_all(it, &errors);
        if (!some_of(&got, whole) || (got.n < whole->n && errors == 0) || (cut && errors != 1))
            fail_msg("kind %d, %s %zu: %zu bytes, %d errors", kind, cut ? "cut after" : "bit",
                     where, got.n, errors);
        ls_iterator_free(it);
        free_bytes(&got);
    }
}

static void every_damage_of_packed_files(void **state)
{
    (void)state;
    bytes b = small_file();
    for (ls_compression kind = LS_GZIP; kind <= last_kind; kind++) {
        bytes packed = { 0 };
        if (kind == LS_GZIP)
            add_gzip(&packed, b.at, b.n);
        else
            add_zlib(&packed, b.at, b.n);
        for (size_t cut = 0; cut < packed.n; cut++) {
            put_file("1", packed.at, cut);
            check_packed(kind, &b, true, cut);
        }
        for (size_t bit = 0; bit < 8 * packed.n; bit++) {
            packed.at[bit / 8] ^= (unsigned char)(1 << bit % 8);
            put_file("1", packed.at, packed.n);
            check_packed(kind, &b, false, bit);
            packed.at[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
        free_bytes(&packed);
    }
    free_bytes(&b);
}

/* ---- lengths that lie ---------------------------------------------------------------------- */

static void put_lie(uint64_t length)
{
    bytes b = { 0 };
    add_sample_record(&b, 1, 10);
    size_t at = b.n;
    add_number(&b, length, 8);
    add_number(&b, masked_sum(b.at + at, 8), 4);
    add_bytes(&b, "some bytes", 10);
    put_file("1", b.at, b.n);
    assert_int_equal(truncate(in_dir("1"), 8 << 20), 0); /* much to read, if it were believed */
    bytes packed = { 0 };
    add_gzip(&packed, b.at, b.n);
    put_file("1.gz", packed.at, packed.n);
    free_bytes(&packed);
    free_bytes(&b);
}

/* They are refused by the file's size: nobody asks for memory for them. */
static void lengths_that_lie(void **state)
{
    (void)state;
    static const uint64_t lies[] = { 8 << 20,   1 << 30,    (uint64_t)1 << 40,
                                     INT64_MAX, UINT64_MAX, UINT64_MAX - 15 };
    bytes good = small_file();
    put_file("2", good.at, good.n);
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        put_lie(lies[i]);
        LS_FRAME {
            ls_iterator *it = ls_iterate(both(false));
            ls_value *v;
            assert_int_equal(ls_next(it, &v), LS_OK);
            assert_int_equal(ls_next(it, &v), LS_CORRUPT);
            failed_with(LS_CORRUPT, "/1', byte 26:");
            assert_true(ls_iterator_bytes(it) <= 512 << 10);
            for (int k = 0; k < RECORDS; k++)
                assert_int_equal(ls_next(it, &v), LS_OK);
            assert_int_equal(ls_next(it, &v), LS_END);
            ls_iterator_free(it);
            if (!HAVE_ZLIB)
                continue;
            it = ls_iterate(
                ls_tfrecords(LS_FILES(in_dir("1.gz")), LS_RECORDS(.compression = LS_GZIP)));
            assert_int_equal(ls_next(it, &v), LS_OK);
            assert_int_equal(ls_next(it, &v), LS_CORRUPT);
            failed_with(LS_CORRUPT, "/1.gz', byte 26:");
            assert_int_equal(ls_next(it, &v), LS_END);
            ls_iterator_free(it);
        }
    }
    free_bytes(&good);
}

/* Damage within what the buffer holds several times over. */
static void large_files(void **state)
{
    (void)state;
    enum { N = 60, BYTES = 20000 };
    bytes b = { 0 }, want = { 0 };
    for (int i = 0; i < N; i++) {
        size_t at = b.n;
        add_sample_record(&b, i, i == 30 ? 600000 : BYTES);
        if (i % 7 == 3 || i == 30)
            b.at[at + 12 + BYTES / 2] ^= 1;
        else
            add_bytes(&want, b.at + at, b.n - at);
    }
    put_file("1", b.at, b.n);
    put_file("2", "", 0);
    LS_FRAME {
        int errors;
        ls_iterator *it = ls_iterate(both(true));
        bytes got = take_all(it, &errors);
        assert_int_equal(errors, 0);
        assert_int_equal(ls_iterator_skipped(it), 10);
        assert_true(same(&got, &want));
        free_bytes(&got);
        ls_iterator_free(it);
        it = ls_iterate(both(false));
        got = take_all(it, &errors);
        assert_int_equal(errors, 10);
        assert_true(same(&got, &want));
        free_bytes(&got);
        ls_iterator_free(it);
    }
    free_bytes(&b);
    free_bytes(&want);
}

/* The other kind of file: the hint says so. */
static void hints(void **state)
{
    (void)state;
    bytes b = small_file();
    put_packed("1", LS_GZIP, &b);
    LS_FRAME {
        ls_value *v;
        ls_iterator *it = ls_iterate(ls_tfrecords(LS_FILES(in_dir("1")), NULL));
        assert_int_equal(ls_next(it, &v), LS_CORRUPT);
        assert_non_null(strstr(ls_error_hint(), "LS_GZIP"));
        failed_with(LS_CORRUPT, "checksum");
        ls_iterator_free(it);
        put_file("1", "These are some lines\nof text\n", 29);
        it = ls_iterate(ls_tfrecords(LS_FILES(in_dir("1")), NULL));
        assert_int_equal(ls_next(it, &v), LS_CORRUPT);
        assert_non_null(strstr(ls_error_hint(), "TFRecord"));
        failed_with(LS_CORRUPT, "checksum");
        ls_iterator_free(it);
    }
    free_bytes(&b);
}

/* An error that was pending before stays what it was. */
static void left_out_leaves_errors_alone(void **state)
{
    (void)state;
    bytes b = small_file();
    b.at[13] ^= 1;
    put_file("1", b.at, b.n);
    put_file("2", b.at, b.n);
    LS_FRAME {
        ls_value *v;
        ls_iterator *it = ls_iterate(both(true));
        assert_null(ls_range(0, 1, 0));
        assert_int_equal(ls_error_pending(), LS_INVALID);
        while (ls_next(it, &v) == LS_OK)
            ;
        assert_int_equal(ls_iterator_skipped(it), 2);
        failed_with(LS_INVALID, "step is 0");
        ls_iterator_free(it);
    }
    free_bytes(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_truncation, clean_dir),
        cmocka_unit_test_setup(every_flipped_bit, clean_dir),
        cmocka_unit_test_setup(every_damage_of_packed_files, clean_dir),
        cmocka_unit_test_setup(lengths_that_lie, clean_dir),
        cmocka_unit_test_setup(large_files, clean_dir),
        cmocka_unit_test_setup(hints, clean_dir),
        cmocka_unit_test_setup(left_out_leaves_errors_alone, clean_dir),
    };
    return cmocka_run_group_tests(tests, make_test_dir, remove_test_dir);
}
