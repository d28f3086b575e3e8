/*
 * Datasets from beginning to end: numbers, taken and batched; a position; a loop that is left.
 */
#include <lockstep.h>

#include "tensor/test_support.h"

static void ranges_and_batches(void **state)
{
    (void)state;
    LS_FRAME {
        ls_dataset *d = ls_batch(ls_take(ls_skip(ls_range(0, 100, 1), 3), 10), 4);
        assert_string_equal(ls_dataset_text(d), "i64[?]");
        assert_int_equal(ls_cardinality(d), 3);
        int64_t sum = 0, batches = 0;
        LS_FOR_EACH (x, d) {
            sum += ls_to_int(ls_sum(ls_leaf_tensor(x), LS_ALL_AXES, false));
            batches++;
        }
        assert_int_equal(sum, 3 + 4 + 5 + 6 + 7 + 8 + 9 + 10 + 11 + 12);
        assert_int_equal(batches, 3);
        ls_iterator *it = ls_iterate(d), *other = ls_iterate(d);
        ls_value *x = NULL;
        assert_int_equal(ls_next(it, &x), LS_OK);
        assert_int_equal(ls_seek(other, ls_position(it)), LS_OK);
        assert_int_equal(ls_next(other, &x), LS_OK);
        assert_int_equal(ls_dim(ls_leaf_tensor(x), 0), 4);
        assert_int_equal(((const int64_t *)ls_data(ls_leaf_tensor(x)))[0], 7);
        ls_iterator_free(it);
        ls_iterator_free(other);
    }
    assert_int_equal(ls_error(), LS_OK);
}

#ifdef LS_HAVE_ZLIB
static void pictures(void **state)
{
    (void)state;
    LS_FRAME {
        ls_dataset *d = ls_fashion_mnist("test");
        assert_string_equal(ls_dataset_text(d), "u8[28,28,1], u8[]");
        d = ls_batch_full(d, 64);
        assert_string_equal(ls_dataset_text(d), "u8[64,28,28,1], u8[64]");
        int batches = 0;
        LS_FOR_EACH (batch, d) {
            assert_int_equal(ls_dim(ls_item(batch, 0), 0), 64);
            if (++batches == 100)
                break;
        }
        assert_int_equal(batches, 100);
    }
    assert_int_equal(ls_error(), LS_OK);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(ranges_and_batches, clean),
#ifdef LS_HAVE_ZLIB
        cmocka_unit_test_setup(pictures, clean),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
