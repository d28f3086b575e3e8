/*
 * Lines of text against a plain loop over the bytes: ends of both kinds, none at the end, lines around
 * and beyond the buffer's size; positions at every line; what is too long.
 */
#include "data/record_test_support.h"

#include "data/framing.h"

/* The lines of a text, each with its length in front: how they are compared. */
static bytes lines_of(const unsigned char *at, size_t n)
{
    bytes lines = { 0 };
    size_t start = 0;
    for (size_t i = 0; i <= n; i++) {
        if (i < n ? at[i] != '\n' : start == n)
            continue;
        size_t length = i - start;
        if (i < n && length > 0 && at[i - 1] == '\r')
            length--;
        add_number(&lines, length, 8);
        add_bytes(&lines, at + start, length);
        start = i + 1;
    }
    return lines;
}

static bytes take_lines(ls_iterator *it, int64_t most)
{
    bytes got = { 0 };
    ls_status st = LS_OK;
    while (most-- != 0 && !st)
        LS_FRAME {
            const void *data;
            size_t n;
            st = next_string(it, &data, &n);
            if (!st) {
                add_number(&got, n, 8);
                add_bytes(&got, data, n);
            }
        }
    assert_true(st == LS_OK || st == LS_END);
    return got;
}

static void check_text(const char *text, size_t n, const char *name)
{
    bytes want = lines_of((const unsigned char *)text, n),
          b = { (unsigned char *)(uintptr_t)text, n, n };
    for (ls_compression kind = LS_PLAIN; kind <= last_kind; kind++) {
        put_packed("x", kind, &b);
        LS_FRAME {
            ls_iterator *it =
                ls_iterate(ls_text_lines(LS_FILES(in_dir("x")), LS_RECORDS(.compression = kind)));
            bytes got = take_lines(it, -1);
            if (got.n != want.n || (got.n && memcmp(got.at, want.at, got.n) != 0))
                fail_msg("%s: %zu bytes of lines, wanted %zu", name, got.n, want.n);
            free_bytes(&got);
            ls_iterator_free(it);
            int errors;
            int64_t skipped;
            bytes many =
                pull_all(ls_text_lines(LS_FILES(in_dir("x")), LS_RECORDS(.compression = kind)), 64,
                         &errors, &skipped);
            size_t at = 0;
            for (size_t k = 0; k < want.n;) { /* as records */
                uint64_t length;
                memcpy(&length, want.at + k, 8);
                assert_true(many.n - at >= length + 16);
                assert_memory_equal(many.at + at, &length, 8);
                assert_memory_equal(many.at + at + 12, want.at + k + 8, length);
                at += length + 16;
                k += length + 8;
            }
            assert_int_equal(at, many.n);
            assert_int_equal(errors, 0);
            free_bytes(&many);
        }
    }
    free_bytes(&want);
}

static void small_texts(void **state)
{
    (void)state;
    static const char *const texts[] = { "",       "a",       "a\n",      "\n",          "\n\n",
                                         "a\r\n",  "\r\n",    "\r",       "a\rb\r\nc",   "a\n\nb",
                                         "\r\r\n", "a\n\r\n", "a\r\nb\r", "last\nno end" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check_text(texts[i], strlen(texts[i]), texts[i]);
    check_text("a\0b\nc\0", 6, "zeros");
    LS_FRAME { /* by hand, once: the loop above could be wrong, too */
        put_file("x", "one\r\n\ntwo", 9);
        ls_iterator *it = ls_iterate(ls_text_lines(LS_FILES(in_dir("x")), NULL));
        static const char *const want[] = { "one", "", "two" };
        for (int i = 0; i < 3; i++) {
            const void *data;
            size_t n;
            assert_int_equal(next_string(it, &data, &n), LS_OK);
            assert_int_equal(n, strlen(want[i]));
            assert_string_equal(data, want[i]);
        }
        ls_value *v;
        assert_int_equal(ls_next(it, &v), LS_END);
        ls_iterator_free(it);
    }
}

static void random_texts(void **state)
{
    (void)state;
    uint64_t random = 11;
    for (int turn = 0; turn < 60; turn++) {
        char text[300];
        size_t n = random_number(&random) % sizeof text;
        for (size_t i = 0; i < n; i++)
            text[i] = "\n\nabc\r"[random_number(&random) % 6];
        check_text(text, n, "random");
    }
}

static void long_lines(void **state)
{
    (void)state;
    static const int around[] = { -3, -2, -1, 0, 1, 2 };
    bytes b = { 0 };
    char *line = malloc(2 << 20);
    memset(line, 'x', 2 << 20);
    for (size_t i = 0; i < 6; i++) { /* ends fall on both sides of the buffer's */
        size_t n = (size_t)(LS__STREAM_BYTES + around[i]);
        add_bytes(&b, line, n);
        add_bytes(&b, "\r\nab\n", 5);
    }
    add_bytes(&b, line, 1500000);
    add_bytes(&b, "\nend", 4);
    check_text((const char *)b.at, b.n, "long");
    free(line);
    free_bytes(&b);
}

static void positions(void **state)
{
    (void)state;
    static const char text[] = "one\r\n\n\ntwo\nthree\r\r\nfour";
    bytes b = { (unsigned char *)(uintptr_t)text, sizeof text - 1, 0 };
    for (ls_compression kind = LS_PLAIN; kind <= last_kind; kind++) {
        put_packed("1", kind, &b);
        put_packed("2", kind, &b);
        for (int taken = 0; taken <= 12; taken++)
            LS_FRAME {
                ls_dataset *d =
                    ls_text_lines(LS_FILES(in_dir("?")), LS_RECORDS(.compression = kind));
                ls_iterator *it = ls_iterate(d), *other = ls_iterate(d);
                bytes first = take_lines(it, taken);
                assert_int_equal(ls_seek(other, ls_position(it)), LS_OK);
                bytes rest = take_lines(it, -1), same = take_lines(other, -1);
                assert_int_equal(rest.n == 0, taken == 12);
                assert_int_equal(rest.n, same.n);
                if (rest.n)
                    assert_memory_equal(rest.at, same.at, rest.n);
                free_bytes(&first);
                free_bytes(&rest);
                free_bytes(&same);
                ls_iterator_free(it);
                ls_iterator_free(other);
            }
    }
}

/* The limit of a line, which is 1 GiB, tried with a smaller one. */
static void too_long(void **state)
{
    (void)state;
    ls__stream s = { 0 };
    ls__frame_sizes sizes = { .longest = 300000 };
    ls__record r;
    ls__damage damage;
    int n;
    bytes b = { 0 };
    add_bytes(&b, "ab\n", 3);
    for (int i = 0; i < 900000; i++)
        add_bytes(&b, "x", 1);
    put_file("x", b.at, b.n);
    assert_int_equal(ls__stream_open(&s, in_dir("x"), LS__PLAIN), LS_OK);
    assert_int_equal(ls__line_framing.next(&s, &sizes, 1, &r, &n, &damage), LS_OK);
    assert_int_equal(r.bytes, 2);
    assert_int_equal(r.after, 3);
    assert_int_equal(ls__line_framing.next(&s, &sizes, 1, &r, &n, &damage), LS_CORRUPT);
    assert_true(damage.rest);
    assert_int_equal(damage.offset, 3);
    assert_non_null(strstr(damage.what, "300000"));
    assert_true(s.room < 900000);
    ls__stream_free(&s);
    free_bytes(&b);
}

/* A packed file that is cut off: its lines, then an error; half a line is none. */
static void cut_off(void **state)
{
    (void)state;
    if (!HAVE_ZLIB)
        skip();
    bytes packed = { 0 };
    add_gzip(&packed, "one\ntwo\nthree\n", 14);
    put_file("x", packed.at, packed.n - 11);
    LS_FRAME {
        ls_iterator *it =
            ls_iterate(ls_text_lines(LS_FILES(in_dir("x")), LS_RECORDS(.compression = LS_GZIP)));
        bytes got = { 0 };
        ls_value *v;
        assert_int_equal(ls_next(it, &v), LS_OK);
        assert_int_equal(ls_next(it, &v), LS_OK);
        assert_int_equal(ls_next(it, &v), LS_CORRUPT);
        failed_with(LS_CORRUPT, in_dir("x"));
        assert_int_equal(ls_next(it, &v), LS_END);
        ls_iterator_free(it);
        it = ls_iterate(ls_text_lines(LS_FILES(in_dir("x")),
                                      LS_RECORDS(.compression = LS_GZIP, .skip_corrupt = true)));
        got = take_lines(it, -1);
        assert_int_equal(got.n, 2 * (8 + 3));
        assert_int_equal(ls_iterator_skipped(it), 1);
        free_bytes(&got);
        ls_iterator_free(it);
    }
    free_bytes(&packed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(small_texts, clean_dir),
        cmocka_unit_test_setup(random_texts, clean_dir),
        cmocka_unit_test_setup(long_lines, clean_dir),
        cmocka_unit_test_setup(positions, clean_dir),
        cmocka_unit_test_setup(too_long, clean_dir),
        cmocka_unit_test_setup(cut_off, clean_dir),
    };
    return cmocka_run_group_tests(tests, make_test_dir, remove_test_dir);
}
