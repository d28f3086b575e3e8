/*
 * Records of a fixed length: every combination of small sizes against a plain loop, files that do not
 * fit, records beyond the buffer, positions.
 */
#include "data/record_test_support.h"

static ls_dataset *fixed(ls_compression kind, int64_t record, int64_t header, int64_t footer)
{
    return ls_fixed_records(LS_FILES(in_dir("?")),
                            LS_RECORDS(.compression = kind, .record_bytes = record,
                                       .header_bytes = header, .footer_bytes = footer));
}

static bytes counted(size_t n)
{
    bytes b = { 0 };
    for (size_t i = 0; i < n; i++)
        add_number(&b, i * 7 + (i >> 8), 1);
    return b;
}

/* Takes all, which must be `records` of this length from `at` on; returns how it ended. */
static ls_status check_records(ls_iterator *it, const unsigned char *at, size_t record,
                               size_t records)
{
    ls_status st = LS_OK;
    for (size_t i = 0; i <= records; i++)
        LS_FRAME {
            const void *data;
            size_t n;
            st = next_string(it, &data, &n);
            if (i < records) {
                assert_int_equal(st, LS_OK);
                assert_int_equal(n, record);
                assert_memory_equal(data, at + i * record, record);
            }
        }
    return st;
}

static void all_small_sizes(void **state)
{
    (void)state;
    for (size_t total = 0; total <= 12; total++)
        for (size_t header = 0; header <= 3; header++)
            for (size_t footer = 0; footer <= 3; footer++)
                for (size_t record = 1; record <= 4; record++)
                    LS_FRAME {
                        ls_compression kind = (ls_compression)((total + record) % (last_kind + 1u));
                        bytes b = counted(total);
                        put_packed("x", kind, &b);
                        bool fits = total >= header + footer;
                        size_t body = fits ? total - header - footer : 0;
                        ls_value *v;
                        ls_iterator *it = ls_iterate(
                            fixed(kind, (int64_t)record, (int64_t)header, (int64_t)footer));
                        ls_status st = check_records(it, b.at + header, record, body / record);
                        if (fits && body % record == 0) {
                            assert_int_equal(st, LS_END);
                        } else {
                            assert_int_equal(st, LS_CORRUPT);
                            failed_with(LS_CORRUPT, in_dir("x"));
                        }
                        assert_int_equal(ls_next(it, &v), LS_END);
                        ls_iterator_free(it);
                        free_bytes(&b);
                    }
}

static void large_records(void **state)
{
    (void)state;
    static const int64_t records[] = { 1000, 262144, 300000 };
    bytes b = counted(1000000);
    for (ls_compression kind = LS_PLAIN; kind <= last_kind; kind++)
        for (int k = 0; k < 3; k++)
            LS_FRAME {
                size_t record = (size_t)records[k], n = (1000000 - 300010) / record;
                b.n = 300010 + n * record;
                put_packed("x", kind, &b);
                ls_iterator *it = ls_iterate(fixed(kind, records[k], 10, 300000));
                assert_int_equal(check_records(it, b.at + 10, record, n), LS_END);
                ls_iterator_free(it);
            }
    free_bytes(&b);
}

/* A length that no file has costs no memory. */
static void huge_records(void **state)
{
    (void)state;
    bytes b = counted(100);
    put_file("x", b.at, b.n);
    assert_int_equal(truncate(in_dir("x"), 8 << 20), 0);
    LS_FRAME {
        ls_value *v;
        ls_iterator *it = ls_iterate(fixed(LS_PLAIN, (int64_t)1 << 40, 0, 100));
        assert_int_equal(ls_next(it, &v), LS_CORRUPT);
        failed_with(LS_CORRUPT, "byte 0");
        assert_true(ls_iterator_bytes(it) <= 512 << 10);
        ls_iterator_free(it);
        it = ls_iterate(fixed(LS_PLAIN, (int64_t)1 << 40, 0, 8 << 20));
        assert_int_equal(ls_next(it, &v), LS_END);
        ls_iterator_free(it);
    }
    free_bytes(&b);
}

static void positions(void **state)
{
    (void)state;
    bytes b = counted(5 + 4 * 3 + 2);
    for (ls_compression kind = LS_PLAIN; kind <= last_kind; kind++) {
        put_packed("1", kind, &b);
        put_packed("2", kind, &b);
        for (int taken = 0; taken <= 8; taken++)
            LS_FRAME {
                ls_dataset *d = fixed(kind, 3, 5, 2);
                ls_iterator *it = ls_iterate(d), *other = ls_iterate(d);
                ls_value *v;
                for (int i = 0; i < taken; i++)
                    assert_int_equal(ls_next(it, &v), LS_OK);
                assert_int_equal(ls_seek(other, ls_position(it)), LS_OK);
                for (int i = taken; i < 8; i++)
                    LS_FRAME {
                        const void *data;
                        size_t n;
                        assert_int_equal(next_string(other, &data, &n), LS_OK);
                        assert_memory_equal(data, b.at + 5 + i % 4 * 3, 3);
                    }
                assert_int_equal(ls_next(other, &v), LS_END);
                ls_iterator_free(it);
                ls_iterator_free(other);
            }
    }
    free_bytes(&b);
}

/* To the first record of the file that is open, which is not its first byte. */
static void back_to_the_beginning(void **state)
{
    (void)state;
    bytes b = counted(5 + 4 * 3);
    put_file("x", b.at, b.n);
    LS_FRAME {
        ls__going going = { 0 };
        ls__it *it = NULL;
        ls__chunk c = { 0 };
        int64_t words[2];
        assert_int_equal(
            ls__it_open(fixed(LS_PLAIN, 3, 5, 0), &(ls__opening){ .going = &going }, &it), LS_OK);
        ls__it_words(it, words);
        for (int turn = 0; turn < 3; turn++) {
            assert_int_equal(ls__it_go(it, words), LS_OK);
            assert_int_equal(ls__it_pull(it, 64, &c), LS_OK);
            assert_int_equal(c.n, 4);
            assert_memory_equal(ls__chunk_datum(&c, 0, 0)->data, b.at + 5, 3);
        }
        ls__chunk_free(&c);
        ls__it_close(it);
    }
    free_bytes(&b);
}

static void options(void **state)
{
    (void)state;
    put_file("x", "", 0);
    LS_FRAME {
        assert_null(ls_fixed_records(LS_FILES(in_dir("x")), NULL));
        failed_with(LS_INVALID, "record_bytes is 0");
        assert_null(fixed(LS_PLAIN, -1, 0, 0));
        failed_with(LS_INVALID, "record_bytes is -1");
        assert_null(fixed(LS_PLAIN, 1, -1, 0));
        failed_with(LS_INVALID, "header_bytes");
        assert_null(fixed(LS_PLAIN, 1, 0, -1));
        failed_with(LS_INVALID, "footer_bytes");
        assert_null(fixed(LS_PLAIN, INT64_MAX, 0, 0));
        failed_with(LS_INVALID, "at most");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(all_small_sizes, clean_dir),
        cmocka_unit_test_setup(large_records, clean_dir),
        cmocka_unit_test_setup(huge_records, clean_dir),
        cmocka_unit_test_setup(positions, clean_dir),
        cmocka_unit_test_setup(back_to_the_beginning, clean_dir),
        cmocka_unit_test_setup(options, clean_dir),
    };
    return cmocka_run_group_tests(tests, make_test_dir, remove_test_dir);
}
