/*
 * What a map's function gives: values of one structure, as .spec says, plain and alive; and what ls_map
 * itself refuses.
 */
#include "data/test_chain.h"

#include <sched.h>

static const int crowds[] = { 0, 1, 2, 5 };
enum { CROWDS = sizeof crowds / sizeof *crowds };

static ls_value *number(int64_t x)
{
    return ls_leaf(ls_scalar_int(LS_I64, x));
}

static ls_value *odd_one(ls_value *v, void *user)
{
    const int how = *(const int *)user;
    if (number_of(v) != 6)
        return v;
    switch (how) {
    case 0: /* another nest */
        return ls_list(1, (ls_value *[]){ v });
    case 1: /* another dtype */
        return ls_leaf(ls_cast(ls_leaf_tensor(v), LS_F32));
    case 2: /* another shape: fine unless the spec says no */
        return ls_leaf(ls_reshape(ls_leaf_tensor(v), LS_DIMS(1, 1)));
    default: /* of a frame that has gone */
        break;
    }
    ls_value *gone = NULL;
    LS_FRAME {
        gone = number(1);
    }
    return gone;
}

static void check_odd(int how, const char *spec, int parallel, ls_status want, const char *text)
{
    LS_FRAME {
        ls_iterator *it =
            ls_iterate(ls_map(ls_range(0, 9, 1), LS_MAP(.fn = odd_one, .user = &how,
                                                        .parallel = parallel, .spec = spec)));
        for (int k = 0; k < 9; k++) {
            ls_value *v = NULL;
            ls_status st = ls_next(it, &v);
            assert_int_equal(st, k == 6 ? want : LS_OK);
            if (st) {
                if (!strstr(ls_error_text(), text))
                    fail_msg("\"%s\" is not in \"%s\"", text, ls_error_text());
                failed(want);
            }
        }
        ls_iterator_free(it);
    }
}

static void one_structure(void **state)
{
    (void)state;
    for (int c = 0; c < CROWDS; c++) {
        check_odd(0, NULL, crowds[c], LS_INVALID,
                  "ls_map: element 6: not like the first element: structures differ at 'value': a "
                  "leaf and a list");
        check_odd(1, NULL, crowds[c], LS_SHAPE,
                  "ls_map: element 6: not like the first element: leaf 0 is f32, was i64");
        check_odd(2, NULL, crowds[c], LS_OK, "");
        check_odd(3, NULL, crowds[c], LS_INVALID, "ls_map: element 6: ");
        check_odd(1, "i64[]", crowds[c], LS_SHAPE,
                  "ls_map: element 6: not as .spec says: leaf 0 of an element is f32[], of i64[]");
        check_odd(2, "i64[]", crowds[c], LS_SHAPE, "leaf 0 of an element is i64[1,1], of i64[]");
        check_odd(2, "i64", crowds[c], LS_OK, "");
        check_odd(0, "?", crowds[c], LS_INVALID, "not as .spec says: structures differ");
    }
}

/* The first that works is the first, however slow it is. */
static ls_value *slow_first(ls_value *v, void *user)
{
    (void)user;
    if (number_of(v) == 0)
        return NULL;
    if (number_of(v) > 1)
        return ls_leaf(ls_cast(ls_leaf_tensor(v), LS_F32));
    for (int i = 0; i < 100; i++)
        sched_yield();
    return v;
}

static void first_is_not_the_fastest(void **state)
{
    (void)state;
    for (int c = 0; c < CROWDS; c++)
        LS_FRAME {
            ls_iterator *it = ls_iterate(
                ls_map(ls_range(0, 5, 1), LS_MAP(.fn = slow_first, .parallel = crowds[c])));
            ls_value *v = NULL;
            assert_int_equal(ls_next(it, &v), LS_INVALID);
            failed(LS_INVALID);
            assert_int_equal(ls_next(it, &v), LS_OK);
            for (int k = 2; k < 5; k++) {
                assert_int_equal(ls_next(it, &v), LS_SHAPE);
                failed(LS_SHAPE);
            }
            ls_iterator_free(it);
        }
}

static ls_value *with_variable(ls_value *v, void *user)
{
    (void)v;
    return ls_variable_leaf(user);
}

static void results_are_plain(void **state)
{
    (void)state;
    LS_FRAME {
        ls_variable *x = ls_variable_new("x", ls_scalar(LS_F32, 1), false);
        ls_iterator *it =
            ls_iterate(ls_map(ls_range(0, 2, 1), LS_MAP(.fn = with_variable, .user = x)));
        ls_value *v = NULL;
        assert_int_equal(ls_next(it, &v), LS_SHAPE);
        assert_non_null(strstr(ls_error_text(), "ls_map: element 0: leaf 0"));
        failed(LS_SHAPE);
        ls_iterator_free(it);
        ls_variable_free(x);
    }
}

static ls_value *square(ls_value *v, void *user)
{
    (void)user;
    return number(number_of(v) * number_of(v));
}

static void bad_arguments(void **state)
{
    (void)state;
    LS_FRAME {
        ls_dataset *d = ls_range(0, 3, 1);
        ls_map_options o;
        assert_null(ls_map(d, NULL));
        failed(LS_INVALID);
        assert_null(ls_map(d, LS_MAP(.fn = NULL)));
        failed(LS_INVALID);
        assert_null(ls_map(d, LS_MAP(.fn = square, .parallel = -2)));
        failed(LS_INVALID);
        assert_null(ls_map(d, LS_MAP(.fn = square, .parallel = 5000)));
        failed(LS_INVALID);
        assert_null(ls_map(d, LS_MAP(.fn = square, .spec = "i65[]")));
        failed(LS_INVALID);
        assert_null(ls_map(d, &(ls_map_options){ .size = 3, .fn = square }));
        failed(LS_INVALID);
        assert_null(ls_map(NULL, LS_MAP(.fn = square)));
        failed(LS_INVALID);
        ls_map_init(&o);
        o.fn = square;
        o.parallel = -1; /* one a core */
        gives(ls_map(d, &o), 3, (int64_t[]){ 0, 1, 4 });
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(one_structure, clean_chain),
        cmocka_unit_test_setup(first_is_not_the_fastest, clean_chain),
        cmocka_unit_test_setup(results_are_plain, clean_chain),
        cmocka_unit_test_setup(bad_arguments, clean_chain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
