/*
 * ls_check_numerics: the operator that made the NaN is named, not a later one;
 * NaN that came in is data.
 */
#include <lockstep/ops.h>
#include <lockstep/tape.h>

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static int clean(void **state)
{
    (void)state;
    ls_check_numerics(LS_NUMERICS_OFF);
    ls_error();
    return 0;
}

static ls_tensor *three(double a, double b, double c)
{
    return ls_from(LS_F32, LS_DIMS(3), (float[]){ (float)a, (float)b, (float)c });
}

/* The last call made the first bad number: takes the error. */
static void blamed(const ls_tensor *result, const char *op, const char *kind)
{
    assert_null(result);
    assert_int_equal(ls_error_pending(), LS_INVALID);
    const char *text = ls_error_text();
    if (strncmp(text, op, strlen(op)) != 0 || text[strlen(op)] != ':' || !strstr(text, kind))
        fail_msg("'%s' does not blame %s for %s", text, op, kind);
    ls_error();
}

static void off_by_default(void **state)
{
    (void)state;
    LS_FRAME {
        assert_int_equal(ls_check_numerics(LS_NUMERICS_OFF), LS_NUMERICS_OFF);
        ls_tensor *y = ls_log(three(1, -1, 0));
        assert_non_null(y);
        const float *data = ls_data(y);
        assert_true(data[0] == 0 && isnan(data[1]) && isinf(data[2]));
        assert_int_equal(ls_error_pending(), LS_OK);
    }
}

static void returns_what_was_set(void **state)
{
    (void)state;
    assert_int_equal(ls_check_numerics(LS_NUMERICS_NAN), LS_NUMERICS_OFF);
    assert_int_equal(ls_check_numerics(LS_NUMERICS_NAN_AND_INF), LS_NUMERICS_NAN);
    assert_int_equal(ls_check_numerics(LS_NUMERICS_OFF), LS_NUMERICS_NAN_AND_INF);
}

static void names_the_maker(void **state)
{
    (void)state;
    LS_FRAME {
        ls_check_numerics(LS_NUMERICS_NAN);
        /* log makes it; add and mul only pass the error on. */
        ls_tensor *y = ls_mul(ls_add(ls_log(three(1, 2, -3)), three(1, 1, 1)), three(2, 2, 2));
        assert_null(y);
        assert_non_null(strstr(ls_error_text(), "element 2"));
        blamed(y, "log", "NaN");
        blamed(ls_sqrt(three(-1, 1, 1)), "sqrt", "NaN");
        blamed(ls_div(three(0, 1, 1), three(0, 1, 1)), "div", "NaN");
        ls_tensor *inf = three(INFINITY, 1, 1);
        blamed(ls_sub(inf, inf), "sub", "NaN"); /* of infinities, which are no NaN */
        blamed(ls_log(ls_scalar(LS_F64, -1)), "log", "NaN");
        blamed(ls_log(ls_scalar(LS_BF16, -1)), "log", "NaN");
        assert_non_null(ls_log(three(1, 2, 0))); /* -inf may pass */
        assert_int_equal(ls_error_pending(), LS_OK);
    }
}

static void what_came_in_is_data(void **state)
{
    (void)state;
    LS_FRAME {
        ls_check_numerics(LS_NUMERICS_NAN_AND_INF);
        ls_tensor *bad = three(NAN, 1, 2), *inf = three(1, INFINITY, 2);
        assert_non_null(bad);
        assert_non_null(ls_add(bad, bad));
        assert_non_null(ls_log(bad));
        assert_non_null(ls_exp(inf));
        assert_non_null(ls_sub(inf, inf));
        assert_non_null(ls_isnan(bad));
        assert_non_null(ls_reshape(bad, LS_DIMS(3, 1)));
        assert_non_null(ls_identity(bad));
        assert_non_null(ls_cast(bad, LS_I32));
        assert_int_equal(ls_error_pending(), LS_OK);
    }
}

static void infinities_when_asked(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *big = three(1, 2, 1000);
        ls_check_numerics(LS_NUMERICS_NAN);
        assert_non_null(ls_exp(big));
        ls_check_numerics(LS_NUMERICS_NAN_AND_INF);
        blamed(ls_exp(big), "exp", "inf");
        blamed(ls_div(big, three(1, 0, 1)), "div", "inf");
        blamed(ls_log(three(0, 1, 1)), "log", "inf");
        blamed(ls_log(three(-1, 1, 1)), "log", "NaN");
        blamed(ls_cast(ls_scalar(LS_F64, 1e300), LS_F32), "cast", "inf");
        assert_non_null(ls_exp(three(1, 2, 3)));
        assert_non_null(ls_add(ls_ones(LS_I32, LS_DIMS(2)), ls_ones(LS_I32, LS_DIMS(2))));
        assert_non_null(ls_add(ls_zeros(LS_F32, LS_DIMS(0)), ls_zeros(LS_F32, LS_DIMS(0))));
        assert_int_equal(ls_error_pending(), LS_OK);
    }
}

static void in_the_backward_pass_too(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *x = three(0, 1, 4);
        ls_tape *tape = ls_tape_open();
        ls_tensor *y = ls_sqrt(x); /* its slope at 0 is infinite */
        ls_check_numerics(LS_NUMERICS_NAN_AND_INF);
        assert_null(ls_gradient(tape, y, x));
        assert_int_equal(ls_error_pending(), LS_INVALID);
        assert_non_null(strstr(ls_error_text(), "inf"));
        ls_error();
        ls_check_numerics(LS_NUMERICS_OFF);
        assert_non_null(ls_gradient(tape, y, x));
        assert_int_equal(ls_error_pending(), LS_OK);
    }
}

static void *try_there(void *arg)
{
    LS_FRAME {
        *(bool *)arg = ls_log(three(-1, 0, 1)) != NULL;
    }
    return NULL;
}

static void belongs_to_the_thread(void **state)
{
    (void)state;
    ls_check_numerics(LS_NUMERICS_NAN_AND_INF);
    bool passed = false;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, try_there, &passed), 0);
    pthread_join(thread, NULL);
    assert_true(passed);
    assert_int_equal(ls_check_numerics(LS_NUMERICS_OFF), LS_NUMERICS_NAN_AND_INF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(off_by_default, clean),
        cmocka_unit_test_setup(returns_what_was_set, clean),
        cmocka_unit_test_setup(names_the_maker, clean),
        cmocka_unit_test_setup(what_came_in_is_data, clean),
        cmocka_unit_test_setup(infinities_when_asked, clean),
        cmocka_unit_test_setup(in_the_backward_pass_too, clean),
        cmocka_unit_test_setup(belongs_to_the_thread, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
