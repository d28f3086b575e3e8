/*
 * ls_zip, ls_concatenate and ls_enumerate.
 */
#include "data/stage_test.h"

/* Both numbers of lists of two, as one: 100 a + b. */
static int pairs_of(ls_dataset *d, int most, int64_t *out)
{
    int n = 0;
    ls_iterator *it = ls_iterate(d);
    assert_non_null(it);
    for (ls_status st = LS_OK; st != LS_END;)
        LS_FRAME {
            ls_value *v;
            st = ls_next(it, &v);
            if (!st) {
                assert_true(n < most);
                assert_int_equal(ls_length(v), 2);
                out[n++] = 100 * ls_to_int(ls_item(v, 0)) + ls_to_int(ls_item(v, 1));
            } else if (st != LS_END) {
                assert_int_equal(ls_error(), st);
            }
        }
    ls_iterator_free(it);
    return n;
}

static void expect_pairs(ls_dataset *d, int count, const int64_t *want)
{
    int64_t got[64];
    assert_int_equal(pairs_of(d, 64, got), count);
    if (count)
        assert_memory_equal(got, want, (size_t)count * 8);
}
#define EXPECT_PAIRS(d, ...)                                                                       \
    expect_pairs(d, (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / 8), (int64_t[]){ __VA_ARGS__ })

static ls_dataset *zip(ls_dataset *a, ls_dataset *b)
{
    return ls_zip(2, (ls_dataset *[]){ a, b });
}

/* ---- zip -------------------------------------------------------------------------------------------- */

static void side_by_side_until_the_first_ends(void **state)
{
    (void)state;
    LS_FRAME {
        EXPECT_PAIRS(zip(ls_range(1, 4, 1), ls_range(5, 50, 1)), 105, 206, 307);
        EXPECT_PAIRS(zip(WATCH(.count = 30), ls_range(5, 8, 1)), 5, 106, 207);
        EXPECT_PAIRS(zip(WATCH(.count = 3, .heavy = true), ls_repeat(WATCH(.count = 2), -1)), 0,
                     101, 200);
        expect_pairs(zip(ls_range(0, 0, 1), ls_range(0, 3, 1)), 0, NULL);
        ls_dataset *d = ls_range(3, 6, 1);
        EXPECT_PAIRS(zip(d, d), 303, 404, 505);
        EXPECT(ls_zip(1, &d), 3, 4, 5);
    }
}

/* Many inputs, each with chunks of its own lengths. */
static void many(void **state)
{
    (void)state;
    LS_FRAME {
        ls_dataset *all[64];
        int64_t n = 0;
        for (int i = 0; i < 64; i++)
            all[i] = WATCH(.count = 200, .heavy = i % 3 == 0);
        LS_FOR_EACH (v, ls_zip(64, all)) {
            for (int i = 0; i < 64; i++)
                assert_int_equal(ls_to_int(ls_item(v, i)), n);
            n++;
        }
        assert_int_equal(n, 200);
    }
}

/* What belongs to an element that failed goes with it. */
static void failures_leave_pairs_together(void **state)
{
    (void)state;
    LS_FRAME {
        EXPECT_PAIRS(zip(WATCH(.count = 8, .fail_every = 3), ls_range(0, 8, 1)), 0, 101, 303, 404,
                     606, 707);
        EXPECT_PAIRS(zip(ls_range(0, 8, 1), WATCH(.count = 8, .fail_every = 3)), 0, 101, 303, 404,
                     606, 707);
        EXPECT_PAIRS(zip(WATCH(.count = 13, .fail_every = 4), WATCH(.count = 13, .fail_every = 3)),
                     0, 101, 404, 606, 909, 1010, 1212);
    }
}

static void what_is_known_of_zips(void **state)
{
    (void)state;
    LS_FRAME {
        ls_dataset *d =
            zip(ls_batch_full(ls_range(0, 10, 1), 2), zip(ls_range(0, 3, 1), ls_range(0, 9, 1)));
        assert_string_equal(ls_dataset_text(d), "i64[2], (i64[], i64[])");
        assert_int_equal(ls_cardinality(d), 3);
        ls_dataset *endless = ls_repeat(ls_range(0, 2, 1), -1);
        ls_dataset *unknown = ls_unbatch(ls_batch(ls_range(0, 3, 1), 2));
        assert_int_equal(ls_cardinality(unknown), LS_UNKNOWN);
        assert_int_equal(ls_cardinality(zip(endless, endless)), LS_INFINITE);
        assert_int_equal(ls_cardinality(zip(endless, ls_range(0, 4, 1))), 4);
        assert_int_equal(ls_cardinality(zip(unknown, ls_range(0, 4, 1))), LS_UNKNOWN);
        assert_int_equal(ls_cardinality(zip(unknown, ls_range(0, 0, 1))), 0);
        d = zip(WATCH(.count = 2, .unknown = true), ls_range(7, 9, 1));
        assert_string_equal(ls_dataset_text(d), "?");
        EXPECT_PAIRS(d, 7, 108);
    }
}

/* ---- concatenate -------------------------------------------------------------------------------------- */

static void one_then_the_other(void **state)
{
    (void)state;
    LS_FRAME {
        EXPECT(ls_concatenate(ls_range(0, 3, 1), ls_range(7, 9, 1)), 0, 1, 2, 7, 8);
        EXPECT(ls_concatenate(ls_range(0, 0, 1), ls_range(7, 9, 1)), 7, 8);
        EXPECT(ls_concatenate(ls_range(7, 9, 1), ls_range(0, 0, 1)), 7, 8);
        EXPECT(ls_concatenate(WATCH(.count = 4, .fail_every = 4), WATCH(.count = 3, .heavy = true)),
               0, 1, 2, 0, 1, 2);
        ls_dataset *d =
            ls_concatenate(ls_batch(ls_range(0, 4, 1), 2), ls_batch(ls_range(0, 3, 1), 3));
        assert_string_equal(ls_dataset_text(d), "i64[?]");
        assert_int_equal(ls_cardinality(d), 3);
        ls_dataset *endless = ls_repeat(ls_range(0, 2, 1), -1);
        ls_dataset *unknown = ls_unbatch(ls_batch(ls_range(0, 3, 1), 2));
        assert_int_equal(ls_cardinality(ls_concatenate(endless, unknown)), LS_INFINITE);
        assert_int_equal(ls_cardinality(ls_concatenate(unknown, ls_range(0, 2, 1))), LS_UNKNOWN);
    }
}

/* Inputs of which nothing was known turn out to differ: an error, and no element of the wrong kind. */
static void structures_that_turn_out_to_differ(void **state)
{
    (void)state;
    LS_FRAME {
        ls_dataset *a = WATCH(.count = 2, .unknown = true);
        ls_iterator *it = ls_iterate(ls_concatenate(a, ls_enumerate(a, 0)));
        ls_value *v;
        assert_int_equal(ls_next(it, &v), LS_OK);
        assert_int_equal(ls_next(it, &v), LS_OK);
        for (ls_status st; (st = ls_next(it, &v)) != LS_END;) {
            assert_int_equal(st, LS_INVALID);
            assert_non_null(strstr(ls_error_text(), "ls_concatenate: an element differs"));
            failed(LS_INVALID);
        }
        ls_iterator_free(it);
    }
}

static ls_dataset *of_both_kinds(uint64_t seed)
{
    ls_dataset *heavy = ls_shuffle(WATCH(.count = 5, .heavy = seed & 1), 3, 1);
    ls_dataset *light = WATCH(.count = 4, .heavy = seed & 2);
    ls_dataset *d = seed & 4 ? ls_concatenate(heavy, light) : ls_concatenate(light, heavy);
    return seed & 8 ? ls_shuffle(d, 4, 2) : d;
}

static void positions_in_either_order_of_lightness(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 16; seed++)
        assert_int_equal(check_positions(of_both_kinds, seed, 0), 9);
}

/* ---- enumerate ---------------------------------------------------------------------------------------- */

static void numbers_in_front(void **state)
{
    (void)state;
    LS_FRAME {
        EXPECT_PAIRS(ls_enumerate(ls_range(7, 10, 1), 3), 307, 408, 509);
        EXPECT_PAIRS(ls_enumerate(WATCH(.count = 5, .fail_every = 2), 0), 0, 202, 404);
        ls_dataset *d = ls_enumerate(ls_batch(ls_range(0, 4, 1), 2), INT64_MAX);
        assert_string_equal(ls_dataset_text(d), "i64[], i64[2]");
        assert_int_equal(ls_cardinality(d), 2);
        EXPECT(d, INT64_MAX, INT64_MIN);
        d = ls_enumerate(WATCH(.count = 3, .unknown = true), 1);
        assert_string_equal(ls_dataset_text(d), "?");
        EXPECT_PAIRS(d, 100, 201, 302);
        d = ls_enumerate(ls_enumerate(ls_range(0, 1, 1), 0), 0);
        assert_string_equal(ls_dataset_text(d), "i64[], (i64[], i64[])");
    }
}

/* Many at once, as a batch asks for them. */
static void many_numbers(void **state)
{
    (void)state;
    LS_FRAME {
        ls_dataset *d = ls_batch(ls_enumerate(ls_range(0, 700, 1), 5), 350);
        int64_t at = 0;
        LS_FOR_EACH (v, d) {
            const int64_t *number = ls_data(ls_item(v, 0)), *x = ls_data(ls_item(v, 1));
            for (int64_t i = 0; i < 350; i++, at++)
                assert_true(x[i] == at && number[i] == at + 5);
        }
        assert_int_equal(at, 700);
        assert_int_equal(ls_error(), LS_OK);
    }
}

/* ---- bad arguments ------------------------------------------------------------------------------------ */

static void bad_arguments(void **state)
{
    (void)state;
    LS_FRAME {
        ls_dataset *d = ls_range(0, 3, 1), *all[65];
        for (int i = 0; i < 65; i++)
            all[i] = d;
        assert_null(ls_zip(0, all));
        failed(LS_INVALID);
        assert_null(ls_zip(65, all));
        assert_string_equal(ls_error_text(), "ls_zip: 65 datasets, wants 1 to 64");
        failed(LS_INVALID);
        assert_null(ls_zip(2, NULL));
        failed(LS_INVALID);
        assert_null(zip(d, NULL));
        failed(LS_INVALID);
        assert_null(ls_concatenate(d, NULL));
        failed(LS_INVALID);
        assert_null(ls_concatenate(NULL, d));
        failed(LS_INVALID);
        assert_null(ls_concatenate(d, ls_enumerate(d, 0)));
        assert_non_null(strstr(ls_error_text(), "ls_concatenate"));
        failed(LS_INVALID);
        ls_dataset *floats = ls_slices(ls_leaf(ls_zeros(LS_F32, LS_DIMS(3))));
        assert_null(ls_concatenate(d, floats));
        failed(LS_SHAPE);
        assert_null(ls_enumerate(NULL, 0));
        failed(LS_INVALID);
        ls__going going = { 0 };
        trail t;
        ls__it *it = open_one(ls_concatenate(d, d), &going, 0, &t);
        assert_int_equal(ls__it_go(it, (int64_t[]){ 2, 0 }), LS_CORRUPT);
        failed(LS_CORRUPT);
        ls__it_close(it);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(side_by_side_until_the_first_ends, clean),
        cmocka_unit_test_setup(many, clean),
        cmocka_unit_test_setup(failures_leave_pairs_together, clean),
        cmocka_unit_test_setup(what_is_known_of_zips, clean),
        cmocka_unit_test_setup(one_then_the_other, clean),
        cmocka_unit_test_setup(structures_that_turn_out_to_differ, clean),
        cmocka_unit_test_setup(positions_in_either_order_of_lightness, clean),
        cmocka_unit_test_setup(numbers_in_front, clean),
        cmocka_unit_test_setup(many_numbers, clean),
        cmocka_unit_test_setup(bad_arguments, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
