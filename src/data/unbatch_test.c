/*
 * ls_unbatch: rows as elements.
 */
#include "data/stage_test.h"

static void rows_of_batches(void **state)
{
    (void)state;
    for (int64_t n = 0; n < 30; n += 1 + n / 2)
        for (int64_t batch = 1; batch < 12; batch++)
            LS_FRAME {
                int64_t want[30];
                for (int64_t i = 0; i < n; i++)
                    want[i] = i;
                expect(ls_unbatch(ls_batch(WATCH(.count = n), batch)), (int)n, want);
                expect(ls_unbatch(ls_batch_full(WATCH(.count = n), batch)), (int)(n - n % batch),
                       want);
            }
}

/* Leaves of every kind, and two batches deep. */
static void rows_of_all_leaves(void **state)
{
    (void)state;
    static const char *const words[] = { "one", "", "three", "4", "five", "six" };
    LS_FRAME {
        ls_tensor *numbers =
            ls_from(LS_F32, LS_DIMS(6, 2), (float[]){ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 });
        ls_tensor *texts = ls_from_strings(LS_DIMS(6), (const void *const *)words, NULL);
        ls_value *all = ls_dict(2, (const char *const[]){ "n", "t" },
                                (ls_value *[]){ ls_leaf(numbers), ls_leaf(texts) });
        ls_dataset *kinds[] = { ls_unbatch(ls_once(all)), ls_unbatch(ls_batch(ls_slices(all), 4)),
                                ls_unbatch(ls_shuffle(ls_batch(ls_slices(all), 6), 3, 0)) };
        for (int kind = 0; kind < 3; kind++) {
            assert_string_equal(ls_dataset_text(kinds[kind]), "{n: f32[2], t: bytes[]}");
            int row = 0;
            LS_FOR_EACH (v, kinds[kind]) {
                const float *x = ls_data(ls_leaf_tensor(ls_get(v, "n")));
                const void *text;
                size_t length;
                assert_true(x[0] == 2 * row + 1 && x[1] == 2 * row + 2);
                assert_int_equal(ls_string_at(ls_leaf_tensor(ls_get(v, "t")), 0, &text, &length),
                                 LS_OK);
                assert_int_equal(length, strlen(words[row]));
                assert_memory_equal(text, words[row], length + 1);
                row++;
            }
            assert_int_equal(ls_error(), LS_OK);
            assert_int_equal(row, 6);
        }
    }
}

/* Rows that are arrays of strings. */
static void rows_of_string_tables(void **state)
{
    (void)state;
    static const char *const words[] = { "a", "bb", "ccc", "d", "", "ff" };
    LS_FRAME {
        ls_tensor *table = ls_from_strings(LS_DIMS(3, 2), (const void *const *)words, NULL);
        ls_dataset *d = ls_unbatch(ls_once(ls_leaf(table)));
        assert_string_equal(ls_dataset_text(d), "bytes[2]");
        int at = 0;
        LS_FOR_EACH (v, ls_unbatch(ls_shuffle(d, 1, 0))) {
            const void *text;
            size_t length;
            assert_int_equal(ls_string_at(ls_leaf_tensor(v), 0, &text, &length), LS_OK);
            assert_string_equal(text, words[at++]);
        }
        assert_int_equal(at, 6);
    }
    assert_int_equal(ls_error(), LS_OK);
}

static ls_value *rows(int64_t a, int64_t b)
{
    return ls_tensors(2, (ls_tensor *[]){ ls_full(LS_I64, LS_DIMS(a), (double)a),
                                          ls_zeros(LS_F32, LS_DIMS(b, 3)) });
}

static ls_dataset *all_of(int count, ls_value *const *values)
{
    ls_dataset *d = ls_once(values[0]);
    for (int i = 1; i < count; i++)
        d = ls_concatenate(d, ls_once(values[i]));
    return d;
}

/* Elements without rows are passed over; leaves of other lengths are an error of that element. */
static void uneven_elements(void **state)
{
    (void)state;
    LS_FRAME {
        ls_dataset *d =
            all_of(5, (ls_value *[]){ rows(2, 2), rows(0, 0), rows(3, 1), rows(0, 0), rows(1, 1) });
        EXPECT(ls_unbatch(d), 2, 2, 1);
        ls_iterator *it = ls_iterate(ls_unbatch(ls_shuffle(d, 1, 0)));
        static const ls_status want[] = { LS_OK, LS_OK, LS_SHAPE, LS_OK, LS_END };
        for (int i = 0; i < 5; i++) {
            ls_value *v;
            assert_int_equal(ls_next(it, &v), want[i]);
            if (want[i] == LS_SHAPE)
                assert_string_equal(ls_error_text(),
                                    "ls_unbatch: leaf 1 of an element has 1 rows, leaf 0 has 3");
            assert_int_equal(ls_error(), want[i] == LS_END ? LS_OK : want[i]);
        }
        ls_iterator_free(it);
        it = ls_iterate(ls_unbatch(WATCH(.count = 1, .unknown = true)));
        ls_value *v;
        assert_int_equal(ls_next(it, &v), LS_SHAPE);
        assert_string_equal(ls_error_text(),
                            "ls_unbatch: leaf 0 of an element is i64[], which has no rows");
        failed(LS_SHAPE);
        assert_int_equal(ls_next(it, &v), LS_END);
        ls_iterator_free(it);
        it = ls_iterate(ls_unbatch(ls_once(ls_list(0, NULL))));
        assert_int_equal(ls_next(it, &v), LS_SHAPE);
        failed(LS_SHAPE);
        ls_iterator_free(it);
    }
}

static ls_dataset *uneven_chain(uint64_t seed)
{
    ls_dataset *d =
        all_of(5, (ls_value *[]){ rows(2, 2), rows(0, 0), rows(3, 1), rows(4, 4), rows(1, 1) });
    d = seed & 1 ? ls_shuffle(d, 3, seed) : ls_repeat(d, 2);
    d = ls_unbatch(d);
    return seed & 2 ? ls_shuffle(d, 3, seed) : d;
}

static void positions_among_uneven_elements(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 8; seed++)
        assert_int_equal(check_positions(uneven_chain, seed, 0), seed & 1 ? 7 : 14);
}

/* A row that the element does not have any more. */
static void rows_beyond_the_last(void **state)
{
    (void)state;
    LS_FRAME {
        ls__going going = { 0 };
        trail t;
        ls__it *it = open_one(ls_unbatch(ls_batch(ls_range(0, 4, 1), 2)), &going, 0, &t);
        ls__chunk chunk = { 0 };
        assert_int_equal(ls__it_go(it, (int64_t[]){ -1, 0, 0 }), LS_CORRUPT);
        failed(LS_CORRUPT);
        assert_int_equal(ls__it_go(it, (int64_t[]){ 3, 0, 0 }), LS_OK);
        assert_int_equal(ls__it_pull(it, 1, &chunk), LS_CORRUPT);
        failed(LS_CORRUPT);
        assert_int_equal(ls__it_pull(it, 1, &chunk), LS_OK);
        assert_int_equal(*(const int64_t *)chunk.data[0].data, 2);
        /* of an element that there is not */
        assert_int_equal(ls__it_go(it, (int64_t[]){ 1, 0, 4 }), LS_OK);
        ls__chunk_clear(&chunk);
        assert_int_equal(ls__it_pull(it, 1, &chunk), LS_CORRUPT);
        failed(LS_CORRUPT);
        assert_int_equal(ls__it_pull(it, 1, &chunk), LS_END);
        /* of one that is behind a failure now, which is news */
        ls__it_close(it);
        it = open_one(ls_unbatch(ls_batch(WATCH(.count = 4, .fail_every = 2), 1)), &going, 0, &t);
        assert_int_equal(ls__it_go(it, (int64_t[]){ 1, 0, 1, -7 }), LS_OK);
        assert_int_equal(ls__it_pull(it, 1, &chunk), LS_IO);
        failed(LS_IO);
        assert_int_equal(ls__it_pull(it, 1, &chunk), LS_IO); /* the next one: element 2 is over */
        failed(LS_IO);
        assert_int_equal(ls__it_pull(it, 1, &chunk), LS_END);
        ls__chunk_free(&chunk);
        ls__it_close(it);
    }
}

static void what_is_known(void **state)
{
    (void)state;
    LS_FRAME {
        ls_dataset *d = ls_range(0, 10, 1);
        assert_int_equal(ls_cardinality(ls_unbatch(ls_batch(d, 5))), 10);
        assert_int_equal(ls_cardinality(ls_unbatch(ls_batch_full(d, 4))), 8);
        assert_int_equal(ls_cardinality(ls_unbatch(ls_batch(d, 4))), LS_UNKNOWN);
        assert_int_equal(ls_cardinality(ls_unbatch(ls_batch(ls_repeat(d, -1), 4))), LS_INFINITE);
        assert_string_equal(ls_dataset_text(ls_unbatch(ls_batch(ls_enumerate(d, 0), 4))),
                            "i64[], i64[]");
        assert_null(ls_unbatch(d));
        failed(LS_SHAPE);
        assert_null(ls_unbatch(ls_once(rows(2, 3))));
        failed(LS_SHAPE);
        assert_null(ls_unbatch(NULL));
        failed(LS_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(rows_of_batches, clean),
        cmocka_unit_test_setup(rows_of_all_leaves, clean),
        cmocka_unit_test_setup(rows_of_string_tables, clean),
        cmocka_unit_test_setup(uneven_elements, clean),
        cmocka_unit_test_setup(positions_among_uneven_elements, clean),
        cmocka_unit_test_setup(rows_beyond_the_last, clean),
        cmocka_unit_test_setup(what_is_known, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
