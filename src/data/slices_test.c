/*
 * ls_slices: rows stay what they were when the dataset was made, and a stage that has an element again has the
 * same one.
 */
#include "data/stage_test.h"

static ls_value *as_it_is(ls_value *element, void *user)
{
    (void)user;
    return element;
}

/* What a variable was: its memory is another's when it is written. */
static void rows_of_what_a_variable_was(void **state)
{
    (void)state;
    for (int shuffled = 0; shuffled < 2; shuffled++)
        LS_FRAME {
            ls_variable *v =
                ls_variable_new("v", ls_from(LS_I64, LS_DIMS(3, 1), (int64_t[]){ 4, 4, 4 }), true);
            ls_dataset *d = ls_slices(ls_leaf(ls_read(v)));
            ls_iterator *it = ls_iterate(shuffled ? ls_shuffle(d, 3, 1) : d);
            int64_t got[4];
            assert_int_equal(numbers_of(it, 1, got), 1);
            assert_int_equal(ls_assign(v, ls_zeros(LS_I64, LS_DIMS(3, 1))), LS_OK);
            assert_int_equal(numbers_of(it, 4, got + 1), 2);
            for (int i = 0; i < 3; i++)
                assert_int_equal(got[i], 4);
            ls_iterator_free(it);
            ls_variable_free(v);
        }
}

/* A shuffle keeps no rows of arrays, but has them again: as if it had kept them, of whatever kind they are. */
static void shuffled_as_if_they_were_kept(void **state)
{
    (void)state;
    const char *words[] = { "zero", "", "two", "three", "four", "five", "six" };
    LS_FRAME {
        ls_tensor *strings = ls_from_strings(LS_DIMS(7), (const void *const *)words, NULL);
        ls_tensor *singles = ls_from(LS_F32, LS_DIMS(7), (float[]){ 0, 1, 2, 3, 4, 5, 6 });
        ls_tensor *pairs = ls_from(LS_I64, LS_DIMS(7, 2),
                                   (int64_t[]){ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13 });
        ls_value *rows = ls_tensors(3, (ls_tensor *[]){ strings, singles, pairs });
        for (int64_t buffer = 1; buffer < 9; buffer++) {
            ls_dataset *d = ls_slices(rows), *kept = ls_map(d, LS_MAP(.fn = as_it_is));
            ls_iterator *a = ls_iterate(ls_shuffle(d, buffer, 5));
            ls_iterator *b = ls_iterate(ls_shuffle(kept, buffer, 5));
            for (int i = 0; i < 7; i++) {
                ls_value *x, *y;
                assert_int_equal(ls_next(a, &x), LS_OK);
                assert_int_equal(ls_next(b, &y), LS_OK);
                assert_true(hash_value(x) == hash_value(y));
            }
            ls_iterator_free(a);
            ls_iterator_free(b);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(rows_of_what_a_variable_was, clean),
        cmocka_unit_test_setup(shuffled_as_if_they_were_kept, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
