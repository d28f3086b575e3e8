/*
 * ls_files: names in order, known before the first element, kept although files go; positions;
 * what is missing is named.
 */
#include "data/record_test_support.h"

static const char *name_at(ls_iterator *it)
{
    const void *data;
    size_t n;
    if (next_string(it, &data, &n))
        return "";
    assert_int_equal(strlen(data), n);
    return strrchr(data, '/') + 1;
}

static void names(void **state)
{
    (void)state;
    static const char *const files[] = { "b-2", "a-2", "a-10", "b-1", "x" };
    static const char *const want[] = { "x", "a-10", "a-2", "b-1", "b-2", "a-2" };
    for (int i = 0; i < 5; i++)
        put_file(files[i], "", 0);
    LS_FRAME {
        ls_dataset *d = LS_FILES(in_dir("x"), in_dir("*-*"), in_dir("a-2"));
        assert_string_equal(ls_dataset_text(d), "bytes[]");
        assert_int_equal(ls_cardinality(d), 6);
        empty_test_dir();
        ls_iterator *it = ls_iterate(d), *other = ls_iterate(d);
        for (int i = 0; i < 6; i++) {
            assert_int_equal(ls_seek(other, ls_position(it)), LS_OK);
            assert_string_equal(name_at(it), want[i]);
            assert_string_equal(name_at(other), want[i]);
        }
        ls_value *v;
        assert_int_equal(ls_next(it, &v), LS_END);
        assert_int_equal(ls_seek(other, ls_position(it)), LS_OK);
        assert_int_equal(ls_next(other, &v), LS_END);
        assert_int_equal(ls_rewind(it), LS_OK);
        assert_string_equal(name_at(it), "x");
        ls_iterator_free(it);
        ls_iterator_free(other);
        int64_t batches = 0;
        LS_FOR_EACH (batch, ls_batch(ls_skip(d, 1), 4)) {
            batches++;
            assert_int_equal(ls_dim(ls_leaf_tensor(batch), 0), batches == 1 ? 4 : 1);
        }
        assert_int_equal(batches, 2);
    }
    assert_int_equal(ls_error_pending(), LS_OK);
}

static void mistakes(void **state)
{
    (void)state;
    put_file("x", "", 0);
    LS_FRAME {
        assert_null(LS_FILES(in_dir("x"), in_dir("nothing-*")));
        failed_with(LS_NOT_FOUND, in_dir("nothing-*"));
        assert_null(LS_FILES(in_dir("y")));
        failed_with(LS_NOT_FOUND, in_dir("y"));
        assert_null(LS_FILES(""));
        failed_with(LS_NOT_FOUND, "''");
        assert_null(ls_files(0, NULL));
        failed_with(LS_INVALID, "count is 0");
        assert_null(ls_files(1, NULL));
        failed_with(LS_INVALID, "patterns are NULL");
        assert_null(LS_FILES(in_dir("x"), NULL));
        failed_with(LS_INVALID, "pattern 1");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(names, clean_dir),
        cmocka_unit_test_setup(mistakes, clean_dir),
    };
    return cmocka_run_group_tests(tests, make_test_dir, remove_test_dir);
}
