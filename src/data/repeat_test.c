/*
 * ls_repeat: epochs, their numbers, and when it ends.
 */
#include "data/stage_test.h"

static void epochs_one_after_another(void **state)
{
    (void)state;
    LS_FRAME {
        EXPECT(ls_repeat(ls_range(0, 3, 1), 3), 0, 1, 2, 0, 1, 2, 0, 1, 2);
        EXPECT(ls_repeat(ls_range(0, 3, 1), 1), 0, 1, 2);
        expect(ls_repeat(ls_range(0, 3, 1), 0), 0, NULL);
        EXPECT(ls_take(ls_repeat(ls_range(0, 3, 1), -1), 7), 0, 1, 2, 0, 1, 2, 0);
        EXPECT(ls_repeat(ls_repeat(ls_range(0, 2, 1), 2), 2), 0, 1, 0, 1, 0, 1, 0, 1);
    }
}

/* Every epoch of every iteration opens its input with a number of its own. */
static void epochs_have_numbers(void **state)
{
    (void)state;
    LS_FRAME {
        ls_dataset *d = ls_repeat(WATCH(.count = 1, .by_iteration = true), 3);
        EXPECT(d, 0, 1001, 2002);
        const int64_t second = (int64_t)1001 << 32;
        EXPECT(d, second, second + 1001, second + 2002); /* the next iteration */
    }
}

static void nested_epochs_never_meet(void **state)
{
    (void)state;
    enum { N = 3 * 3 * 3 };
    int64_t got[3 * N];
    LS_FRAME {
        ls_dataset *d = WATCH(.count = 1, .by_iteration = true);
        for (int i = 0; i < 3; i++)
            d = ls_repeat(d, 3);
        ls_iterator *it = ls_iterate(d);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(numbers_of(it, N + 1, got + i * N), N);
            assert_int_equal(ls_rewind(it), LS_OK);
        }
        ls_iterator_free(it);
    }
    for (int i = 0; i < 3 * N; i++)
        for (int k = 0; k < i; k++)
            assert_true(got[i] != got[k]);
}

/* Not spinning for ever. */
static void nothing_for_ever_is_nothing(void **state)
{
    (void)state;
    LS_FRAME {
        expect(ls_repeat(ls_range(0, 0, 1), -1), 0, NULL);
        expect(ls_repeat(ls_repeat(ls_range(0, 0, 1), -1), -1), 0, NULL);
        expect(ls_repeat(WATCH(.count = 2, .fail_every = 1), -1), 0, NULL);
        /* also from a position before its first element */
        ls_iterator *it = ls_iterate(ls_repeat(WATCH(.count = 0, .heavy = true), -1));
        ls_value *v;
        assert_int_equal(ls_seek(it, ls_position(it)), LS_OK);
        assert_int_equal(ls_next(it, &v), LS_END);
        assert_int_equal(ls_next(it, &v), LS_END);
        ls_iterator_free(it);
    }
}

/* Nothing in even iterations, the iteration's number in odd ones. */
static ls_status next_of_odd(void *state, ls_value **out)
{
    int64_t *left = state;
    if (*left < 0)
        return LS_END;
    *out = ls_leaf(ls_scalar_int(LS_I64, *left));
    *left = -1;
    return LS_OK;
}

static void *open_odd(void *user, int64_t iteration)
{
    (void)user;
    int64_t *left = malloc(sizeof *left);
    *left = iteration % 2 ? iteration : -1;
    return left;
}

static void so_many_times_are_so_many(void **state)
{
    (void)state;
    LS_FRAME {
        ls_dataset *d = ls_generate(
            LS_GENERATOR(.open = open_odd, .close = free, .next = next_of_odd, .spec = "i64[]"));
        EXPECT(ls_repeat(d, 6), 1, 3, 5);
        ls_iterator *it = ls_iterate(ls_repeat(WATCH(.count = 2, .fail_every = 1), 3));
        ls_value *v;
        for (int i = 0; i < 6; i++) {
            assert_int_equal(ls_next(it, &v), LS_IO);
            failed(LS_IO);
        }
        assert_int_equal(ls_next(it, &v), LS_END);
        ls_iterator_free(it);
        expect(ls_repeat(ls_range(0, 0, 1), INT64_MAX), 0, NULL); /* not one by one */
    }
}

static void failures_are_of_every_epoch(void **state)
{
    (void)state;
    LS_FRAME {
        ls_iterator *it = ls_iterate(ls_repeat(WATCH(.count = 3, .fail_every = 2), 2));
        static const ls_status want[] = { LS_OK, LS_IO, LS_OK, LS_OK, LS_IO, LS_OK, LS_END };
        for (size_t i = 0; i < sizeof want / sizeof *want; i++)
            LS_FRAME {
                ls_value *v;
                assert_int_equal(ls_next(it, &v), want[i]);
                assert_int_equal(ls_error(), want[i] == LS_END ? LS_OK : want[i]);
            }
        ls_iterator_free(it);
    }
}

static void what_is_known(void **state)
{
    (void)state;
    LS_FRAME {
        ls_dataset *d = ls_range(0, 5, 1), *none = ls_range(0, 0, 1);
        assert_int_equal(ls_cardinality(ls_repeat(d, 3)), 15);
        assert_int_equal(ls_cardinality(ls_repeat(d, 0)), 0);
        assert_int_equal(ls_cardinality(ls_repeat(d, -1)), LS_INFINITE);
        assert_int_equal(ls_cardinality(ls_repeat(none, -1)), 0);
        assert_int_equal(ls_cardinality(ls_repeat(ls_repeat(d, -1), 2)), LS_INFINITE);
        assert_string_equal(ls_dataset_text(ls_repeat(ls_batch_full(d, 2), 2)), "i64[2]");
    }
}

/* Elements of which nothing was known before have one structure in all epochs, which outlives them. */
static void structure_outlives_epochs(void **state)
{
    (void)state;
    LS_FRAME {
        ls_dataset *d = ls_repeat(ls_enumerate(WATCH(.count = 2, .unknown = true), 5), 2);
        assert_string_equal(ls_dataset_text(d), "?");
        ls__going going = { 0 };
        trail t;
        ls__it *it = open_one(d, &going, 0, &t);
        ls__chunk first = { 0 }, second = { 0 };
        assert_int_equal(ls__it_pull(it, 1, &first), LS_OK);
        for (int i = 0; i < 3; i++) {
            ls__chunk_clear(&second);
            assert_int_equal(ls__it_pull(it, 1, &second), LS_OK);
        }
        assert_int_equal(ls_length(first.structure), 2);
        assert_ptr_equal(first.structure, second.structure);
        ls__chunk_free(&first);
        ls__chunk_free(&second);
        ls__it_close(it);
    }
}

static ls_dataset *epochs_of_shuffles(uint64_t seed)
{
    return ls_shuffle(ls_repeat(ls_shuffle(WATCH(.count = 7, .heavy = seed % 2), 3, 1), 3), 5,
                      seed);
}

/* The iterators of old epochs are asked for positions of elements that are on their way. */
static void positions_reach_back_to_old_epochs(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 4; seed++)
        assert_int_equal(check_positions(epochs_of_shuffles, seed, seed), 21);
}

static void bad_arguments(void **state)
{
    (void)state;
    LS_FRAME {
        assert_null(ls_repeat(NULL, 1));
        failed(LS_INVALID);
        assert_null(ls_repeat(ls_range(0, 1, 1), -2));
        failed(LS_INVALID);
        /* an epoch there is not */
        ls_dataset *d = ls_repeat(ls_range(0, 5, 1), 2);
        ls__going going = { 0 };
        trail t;
        ls__it *it = open_one(d, &going, 0, &t);
        const int64_t words[][2] = {
            { 2, 0 }, { -3, 0 }, { INT64_MAX, 0 }, { INT64_MIN, 0 }, { 0, 6 }
        };
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
            assert_int_equal(ls__it_go(it, words[i]), LS_CORRUPT);
            failed(LS_CORRUPT);
        }
        ls__it_close(it);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(epochs_one_after_another, clean),
        cmocka_unit_test_setup(epochs_have_numbers, clean),
        cmocka_unit_test_setup(nested_epochs_never_meet, clean),
        cmocka_unit_test_setup(nothing_for_ever_is_nothing, clean),
        cmocka_unit_test_setup(so_many_times_are_so_many, clean),
        cmocka_unit_test_setup(failures_are_of_every_epoch, clean),
        cmocka_unit_test_setup(what_is_known, clean),
        cmocka_unit_test_setup(structure_outlives_epochs, clean),
        cmocka_unit_test_setup(positions_reach_back_to_old_epochs, clean),
        cmocka_unit_test_setup(bad_arguments, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
