/*
 * ls_padded_batch against plain loops.
 */
#include "data/stage_test.h"

static ls_dataset *all_of(int count, ls_value *const *values)
{
    ls_dataset *d = ls_once(values[0]);
    for (int i = 1; i < count; i++)
        d = ls_concatenate(d, ls_once(values[i]));
    return d;
}

/* ---- numbers ---------------------------------------------------------------------------------- */

typedef struct table {
    int64_t rows, columns;
    float x[8][8];
} table;

static table draw_table(uint64_t *r)
{
    table t = { .rows = (int64_t)(draw_number(r) % 5), .columns = (int64_t)(draw_number(r) % 6) };
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 8; k++)
            t.x[i][k] = (float)(draw_number(r) % 1000);
    return t;
}

static ls_value *value_of(const table *t)
{
    float packed[64];
    for (int64_t i = 0; i < t->rows; i++)
        memcpy(packed + i * t->columns, t->x[i], (size_t)t->columns * sizeof(float));
    return ls_leaf(ls_from(LS_F32, LS_DIMS(t->rows, t->columns), packed));
}

/* Tables first .. first + n of a batch, in one of these sizes. */
static void compare(const ls_value *v, const table *tables, int64_t n, int64_t rows,
                    int64_t columns, float padding)
{
    ls_tensor *got = ls_leaf_tensor(v);
    assert_int_equal(ls_dim(got, 0), n);
    assert_int_equal(ls_dim(got, 1), rows);
    assert_int_equal(ls_dim(got, 2), columns);
    const float *x = ls_data(got);
    for (int64_t b = 0; b < n; b++)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t k = 0; k < columns; k++) {
                bool there = i < tables[b].rows && k < tables[b].columns;
                assert_true(*x++ == (there ? tables[b].x[i][k] : padding));
            }
}

static void filled_up_to_the_largest(void **state)
{
    (void)state;
    enum { TABLES = 11 };
    for (uint64_t seed = 0; seed < 40; seed++)
        LS_FRAME {
            uint64_t r = seed;
            table tables[TABLES];
            ls_value *values[TABLES];
            for (int i = 0; i < TABLES; i++) {
                tables[i] = draw_table(&r);
                values[i] = value_of(&tables[i]);
            }
            const int64_t n = 1 + (int64_t)(draw_number(&r) % 5);
            const double value = (double)(draw_number(&r) % 3) - 1;
            const bool given = seed % 2; /* rows are given, columns are not */
            ls_dataset *d =
                ls_padded_batch(all_of(TABLES, values), n,
                                LS_PADDED(.value = value, .shapes = given ? "f32[7,?]" : NULL,
                                          .full = seed % 3 == 0));
            int64_t at = 0;
            LS_FOR_EACH (v, d) {
                int64_t rows = 0, columns = 0, size = at + n < TABLES ? n : TABLES - at;
                for (int64_t i = at; i < at + size; i++) {
                    rows = tables[i].rows > rows ? tables[i].rows : rows;
                    columns = tables[i].columns > columns ? tables[i].columns : columns;
                }
                compare(v, tables + at, size, given ? 7 : rows, columns, (float)value);
                at += size;
            }
            assert_int_equal(ls_error(), LS_OK);
            assert_int_equal(at, seed % 3 ? TABLES : TABLES - TABLES % n);
        }
}

/* More than comes with one pull; what was lent is copied in time. */
static void large_batches(void **state)
{
    (void)state;
    LS_FRAME {
        int64_t n = 0;
        LS_FOR_EACH (v, ls_padded_batch(WATCH(.count = 1000), 600, NULL)) {
            const int64_t *x = ls_data(ls_leaf_tensor(v));
            for (int64_t i = 0; i < ls_dim(ls_leaf_tensor(v), 0); i++)
                assert_int_equal(x[i], n++);
        }
        assert_int_equal(n, 1000);
    }
}

static void padding_of_every_dtype(void **state)
{
    (void)state;
    static const ls_dtype dtypes[] = { LS_F32, LS_F64, LS_I32, LS_I64, LS_U8, LS_BOOL, LS_BF16 };
    LS_FRAME {
        for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
            ls_value *two[] = { ls_leaf(ls_full(dtypes[i], LS_DIMS(1), 0)),
                                ls_leaf(ls_full(dtypes[i], LS_DIMS(3), 0)) };
            LS_FOR_EACH (v, ls_padded_batch(all_of(2, two), 2, LS_PADDED(.value = 1))) {
                ls_tensor *x = ls_cast(ls_leaf_tensor(v), LS_F64);
                assert_true(ls_to_double(ls_sum(x, LS_ALL_AXES, false)) == 2);
            }
        }
    }
    assert_int_equal(ls_error(), LS_OK);
}

/* ---- strings ------------------------------------------------------------------------------------ */

static ls_value *texts(int64_t n, const char *const *words)
{
    return ls_tensors(
        2, (ls_tensor *[]){ ls_from_strings(LS_DIMS(n), (const void *const *)words, NULL),
                            ls_from_strings(LS_SCALAR, (const void *const *)words, NULL) });
}

static void strings_are_filled_up_with_empty_ones(void **state)
{
    (void)state;
    static const char *const a[] = { "a", "bcd" }, *const b[] = { "efgh", "i", "jk" };
    static const char *const want[] = { "a", "bcd", "", "", "efgh", "i", "jk", "" };
    LS_FRAME {
        ls_dataset *d = all_of(2, (ls_value *[]){ texts(2, a), texts(3, b) });
        /* also when they were only lent */
        ls_dataset *kinds[] = { d, ls_unbatch(ls_padded_batch(d, 1, NULL)) };
        for (int i = 0; i < 2; i++) {
            d = ls_padded_batch(kinds[i], 2, LS_PADDED(.shapes = "bytes[4], bytes[]", .value = 7));
            assert_string_equal(ls_dataset_text(d), "bytes[2,4], bytes[2]");
            int batches = 0;
            LS_FOR_EACH (v, d) {
                const void *text;
                size_t length;
                assert_int_equal(ls_dim(ls_item(v, 0), 1), 4);
                for (int k = 0; k < 8; k++) {
                    assert_int_equal(ls_string_at(ls_item(v, 0), k, &text, &length), LS_OK);
                    assert_string_equal(text, want[k]);
                    assert_int_equal(length, strlen(want[k]));
                }
                assert_int_equal(ls_string_at(ls_item(v, 1), 1, &text, &length), LS_OK);
                assert_string_equal(text, "efgh");
                batches++;
            }
            assert_int_equal(ls_error(), LS_OK);
            assert_int_equal(batches, 1);
        }
    }
}

/* ---- errors --------------------------------------------------------------------------------------- */

static ls_value *numbers(int64_t n)
{
    return ls_leaf(ls_full(LS_I64, LS_DIMS(n), (double)n));
}

/* It alone is missing. */
static void too_large_for_the_shape(void **state)
{
    (void)state;
    LS_FRAME {
        ls_value *values[] = { numbers(1), numbers(5), numbers(2), numbers(3), numbers(4) };
        ls_dataset *d = ls_padded_batch(all_of(5, values), 4, LS_PADDED(.shapes = "i64[4]"));
        ls_iterator *it = ls_iterate(d);
        ls_value *v;
        assert_int_equal(ls_next(it, &v), LS_SHAPE);
        assert_string_equal(ls_error_text(),
                            "ls_padded_batch: leaf 0 of an element is i64[5], .shapes has i64[4]");
        failed(LS_SHAPE);
        assert_int_equal(ls_next(it, &v), LS_OK);
        assert_int_equal(ls_dim(ls_leaf_tensor(v), 0), 4);
        assert_int_equal(number_of(v), 1);
        assert_int_equal(ls_next(it, &v), LS_END);
        ls_iterator_free(it);
    }
}

static ls_dataset *with_failures(uint64_t seed)
{
    ls_value *values[12];
    for (int i = 0; i < 12; i++)
        values[i] = numbers(i % 5);
    ls_dataset *d = all_of(12, values);
    d = seed & 1 ? ls_shuffle(d, 4, seed) : d;
    d = ls_padded_batch(d, 3, LS_PADDED(.shapes = "i64[3]"));
    return seed & 2 ? ls_shuffle(d, 2, seed) : d;
}

static void positions_among_failures(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 8; seed++)
        assert_true(check_positions(with_failures, seed, 0) >= 2);
}

static void elements_that_cannot_be_one(void **state)
{
    (void)state;
    LS_FRAME {
        ls_value *ranks[] = { numbers(2), ls_leaf(ls_zeros(LS_I64, LS_DIMS(2, 2))) };
        ls_iterator *it = ls_iterate(ls_padded_batch(all_of(2, ranks), 2, NULL));
        ls_value *v;
        assert_int_equal(ls_next(it, &v), LS_SHAPE);
        assert_string_equal(ls_error_text(), "ls_padded_batch: leaf 0 of element 1 of a batch is "
                                             "i64[2,2], those before are i64[2]");
        failed(LS_SHAPE);
        ls_iterator_free(it);
        /* what is known from the start is said at the start */
        ls_dataset *d = ls_slices(ls_leaf(ls_zeros(LS_F32, LS_DIMS(3, 4))));
        assert_null(ls_padded_batch(d, 2, LS_PADDED(.shapes = "f32[3]")));
        failed(LS_SHAPE);
        assert_null(ls_padded_batch(d, 2, LS_PADDED(.shapes = "i64[4]")));
        failed(LS_SHAPE);
        assert_null(ls_padded_batch(d, 2, LS_PADDED(.shapes = "f32[4,1]")));
        failed(LS_SHAPE);
        assert_null(ls_padded_batch(d, 2, LS_PADDED(.shapes = "f32[4], f32[4]")));
        assert_non_null(strstr(ls_error_text(), "ls_padded_batch: .shapes"));
        failed(LS_INVALID);
        assert_null(ls_padded_batch(d, 2, LS_PADDED(.shapes = "f32[4")));
        failed(LS_INVALID);
        d = ls_slices(ls_leaf(ls_zeros(LS_F32, LS_DIMS(3, 1, 1, 1, 1, 1, 1, 1))));
        assert_null(ls_padded_batch(ls_batch(d, 1), 1, NULL));
        failed(LS_SHAPE);
        /* where nothing is known, when the first element comes */
        it = ls_iterate(ls_padded_batch(WATCH(.count = 1, .unknown = true), 2,
                                        LS_PADDED(.shapes = "i64[], i64[]")));
        assert_int_equal(ls_next(it, &v), LS_INVALID);
        failed(LS_INVALID);
        ls_iterator_free(it);
    }
}

static void bad_arguments(void **state)
{
    (void)state;
    LS_FRAME {
        ls_dataset *d = ls_range(0, 3, 1);
        assert_null(ls_padded_batch(NULL, 1, NULL));
        failed(LS_INVALID);
        assert_null(ls_padded_batch(d, 0, NULL));
        failed(LS_INVALID);
        assert_null(ls_padded_batch(d, 1, &(ls_padded_options){ .size = 1 }));
        failed(LS_INVALID);
        ls_padded_options o;
        ls_padded_init(&o);
        ls_padded_init(NULL);
        assert_non_null(ls_padded_batch(d, 1, &o));
    }
}

static void what_is_known(void **state)
{
    (void)state;
    LS_FRAME {
        ls_dataset *d = ls_slices(ls_leaf(ls_zeros(LS_F32, LS_DIMS(7, 4))));
        ls_dataset *ragged = all_of(2, (ls_value *[]){ numbers(1), numbers(2) });
        assert_string_equal(ls_dataset_text(ls_padded_batch(d, 2, NULL)), "f32[?,4]");
        assert_int_equal(ls_cardinality(ls_padded_batch(d, 2, NULL)), 4);
        ls_dataset *full = ls_padded_batch(d, 2, LS_PADDED(.full = true, .shapes = "f32[6]"));
        assert_string_equal(ls_dataset_text(full), "f32[2,6]");
        assert_int_equal(ls_cardinality(full), 3);
        assert_string_equal(ls_dataset_text(ls_padded_batch(ragged, 2, NULL)), "i64[2,?]");
        assert_string_equal(ls_dataset_text(ls_padded_batch(ragged, 2, LS_PADDED(.shapes = "?"))),
                            "i64[2,?]");
        assert_string_equal(ls_dataset_text(ls_padded_batch(ragged, 2, LS_PADDED(.shapes = "i64"))),
                            "i64[2,?]");
        ls_dataset *unknown = WATCH(.count = 2, .unknown = true);
        assert_string_equal(ls_dataset_text(ls_padded_batch(unknown, 2, NULL)), "?");
        d = ls_padded_batch(unknown, 2, LS_PADDED(.shapes = "i64[]"));
        assert_string_equal(ls_dataset_text(d), "i64[2]");
        EXPECT(d, 0);
        assert_int_equal(ls_cardinality(ls_padded_batch(ls_repeat(ragged, -1), 2, NULL)),
                         LS_INFINITE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(filled_up_to_the_largest, clean),
        cmocka_unit_test_setup(large_batches, clean),
        cmocka_unit_test_setup(padding_of_every_dtype, clean),
        cmocka_unit_test_setup(strings_are_filled_up_with_empty_ones, clean),
        cmocka_unit_test_setup(too_large_for_the_shape, clean),
        cmocka_unit_test_setup(positions_among_failures, clean),
        cmocka_unit_test_setup(elements_that_cannot_be_one, clean),
        cmocka_unit_test_setup(bad_arguments, clean),
        cmocka_unit_test_setup(what_is_known, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
