/*
 * Iterators used wrongly, and positions that are none: a clear error, nothing crashes, and the iterator
 * can be used all the same.
 */
#include "data/data_refused.h"

#include <stdio.h>
#include <stdlib.h>

static ls_dataset *numbers(void)
{
    return ls_range(0, 6, 1);
}

static int64_t number_of(ls_value *element)
{
    return ls_to_int(ls_leaf_tensor(element));
}

static ls_value *same(ls_value *element, void *user)
{
    (void)user;
    return element;
}

/* ---- iterators ------------------------------------------------------------------------------ */

static void iterators_of_null(void **state)
{
    (void)state;
    ls_value *v = NULL;
    ls_tensor *bytes = ls_zeros(LS_U8, LS_DIMS(40));
    SAYS("ls_next", LS_INVALID, ls_next(NULL, &v));
    SAYS("ls_next", LS_INVALID, ls_next_of(NULL, &v));
    SAYS("ls_rewind", LS_INVALID, ls_rewind(NULL));
    SAYS("ls_seek", LS_INVALID, ls_seek(NULL, bytes));
    SAYS("ls_initialize", LS_INVALID, ls_initialize(NULL));
    NAMES("ls_position", LS_INVALID, ls_position(NULL));
    ls_iterator *it = ls_iterate(numbers());
    SAYS("ls_next", LS_INVALID, ls_next(it, NULL));
    SAYS("ls_seek", LS_INVALID, ls_seek(it, NULL));
    assert_int_equal(ls_next(it, &v), LS_OK); /* none of it moved it */
    assert_int_equal(number_of(v), 0);
    ls_iterator_free(it);
    ls_iterator_free(NULL);
    ls_dataset_drop(NULL);
    assert_int_equal(ls_iterator_skipped(NULL), 0);
    assert_int_equal(ls_iterator_bytes(NULL), 0);
    assert_int_equal(ls_cardinality(NULL), LS_UNKNOWN);
    assert_string_equal(ls_dataset_text(NULL), "?");
    assert_int_equal(ls_error_pending(), LS_OK);
    LS_FOR_EACH (e, NULL)
        fail_msg("gave %s", written(e, 0));
    REFUSED(LS_INVALID, "ls_iterate");
    none_was_wrong();
}

/* ---- positions ------------------------------------------------------------------------------ */

static ls_dataset *pipeline(int64_t batch)
{
    ls_dataset *d = ls_shuffle(ls_range(0, 100, 1), 10, 1);
    return ls_prefetch(ls_batch(ls_map(d, LS_MAP(.fn = same, .parallel = 2)), batch), 2);
}

static void positions_that_are_none(void **state)
{
    (void)state;
    LS_FRAME {
        ls_iterator *it = ls_iterate(pipeline(3));
        ls_value *v;
        for (int i = 0; i < 4; i++)
            assert_int_equal(ls_next(it, &v), LS_OK);
        ls_tensor *good = ls_position(it);
        assert_non_null(good);
        size_t n = (size_t)ls_count(good);
        unsigned char *bytes = malloc(n);
        assert_int_equal(ls_copy_out(good, bytes, n), LS_OK);
        SAYS("ls_seek", SHAPE_OR_INVALID, ls_seek(it, ls_zeros(LS_F32, LS_DIMS(40))));
        SAYS("ls_seek", SHAPE_OR_INVALID, ls_seek(it, ls_zeros(LS_U8, LS_DIMS(4, 10))));
        for (size_t length = 0; length < n; length++)
            LS_FRAME {
                SAYS("ls_seek", LS_CORRUPT,
                     ls_seek(it, ls_from(LS_U8, LS_DIMS((int64_t)length), bytes)));
            }
        for (size_t bit = 0; bit < 8 * n; bit++)
            LS_FRAME {
                bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
                SAYS("ls_seek", LS_CORRUPT,
                     ls_seek(it, ls_from(LS_U8, LS_DIMS((int64_t)n), bytes)));
                bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
            }
        /* After all that it can still go there. */
        assert_int_equal(ls_seek(it, good), LS_OK);
        ls_iterator *other = ls_iterate(pipeline(3));
        ls_value *w;
        assert_int_equal(ls_seek(other, good), LS_OK);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(ls_next(it, &v), LS_OK);
            assert_int_equal(ls_next(other, &w), LS_OK);
            assert_string_equal(written(v, 0), written(w, 0));
        }
        ls_iterator_free(other);
        ls_iterator_free(it);
        free(bytes);
    }
    none_was_wrong();
}

static void positions_of_other_datasets(void **state)
{
    (void)state;
    LS_FRAME {
        ls_iterator *it = ls_iterate(pipeline(3));
        ls_value *v;
        assert_int_equal(ls_next(it, &v), LS_OK);
        ls_tensor *position = ls_position(it);
        ls_dataset *others[] = { pipeline(4), numbers(), ls_shuffle(ls_range(0, 100, 1), 10, 1),
                                 ls_take(pipeline(3), 50),
                                 ls_batch(ls_shuffle(ls_range(0, 100, 1), 10, 2), 3) };
        for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
            ls_iterator *other = ls_iterate(others[i]);
            SAYS("ls_seek", LS_INVALID, ls_seek(other, position));
            ls_iterator_free(other);
        }
        ls_iterator_free(it);
    }
    none_was_wrong();
}

/* Where a refused position leaves an iterator is not said: but it can begin again. */
static void after_a_refused_position(void **state)
{
    (void)state;
    LS_FRAME {
        ls_iterator *it = ls_iterate(numbers());
        ls_value *v;
        assert_int_equal(ls_next(it, &v), LS_OK);
        assert_int_equal(ls_seek(it, ls_zeros(LS_U8, LS_DIMS(50))), LS_CORRUPT);
        ls_error();
        ls_next(it, &v);
        ls_error();
        ls_position(it);
        ls_error();
        assert_int_equal(ls_rewind(it), LS_OK);
        assert_int_equal(ls_next(it, &v), LS_OK);
        assert_int_equal(number_of(v), 0);
        ls_iterator_free(it);
    }
}

/* ---- epochs after a position ---------------------------------------------------------------- */

static ls_dataset *another_order_each_time(void)
{
    return ls_batch(ls_shuffle(ls_range(0, 12, 1), 12, 1), 12);
}

/* A run that was resumed in epoch 3 goes on with the orders of epochs 4 and 5, as if nothing had been;
 * not with those of 1 and 2 again. */
static void epochs_go_on_after_a_position(void **state)
{
    (void)state;
    LS_FRAME {
        char want[6][64];
        ls_iterator *it = ls_iterate(another_order_each_time());
        ls_tensor *position = NULL;
        ls_value *v;
        for (int epoch = 0; epoch < 6; epoch++) {
            if (epoch)
                assert_int_equal(ls_rewind(it), LS_OK);
            if (epoch == 3)
                position = ls_position(it);
            assert_int_equal(ls_next(it, &v), LS_OK);
            snprintf(want[epoch], sizeof *want, "%s", written(v, 0));
        }
        ls_iterator_free(it);
        it = ls_iterate(another_order_each_time());
        assert_int_equal(ls_seek(it, position), LS_OK);
        for (int epoch = 3; epoch < 6; epoch++) {
            if (epoch > 3)
                assert_int_equal(ls_rewind(it), LS_OK);
            assert_int_equal(ls_next(it, &v), LS_OK);
            assert_string_equal(written(v, 0), want[epoch]);
        }
        ls_iterator_free(it);
    }
}

#define TEST(f) cmocka_unit_test_setup(f, clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(iterators_of_null),
        TEST(positions_that_are_none),
        TEST(positions_of_other_datasets),
        TEST(after_a_refused_position),
        TEST(epochs_go_on_after_a_position),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
