/* Traced functions that fail, and what is refused. */
#include <lockstep.h>

#include <math.h>
#include <pthread.h>

#include "tensor/value.h"
#include "trace/function_test_support.h"

/* ---- errors ---------------------------------------------------------------------------------------- */

static ls_value *reads_a_value(ls_value *v, void *user)
{
    (void)user;
    ls_tensor *x = ls_neg(ls_item(v, 0));
    if (ls_to_float(ls_sum(x, LS_ALL_AXES, false)) > 0)
        x = ls_neg(x);
    return one(x);
}

static void reading_a_value_while_tracing(void **state)
{
    (void)state;
    ls_function *f = ls_trace_with(LS_TRACE(.name = "my_step"), reads_a_value, NULL);
    LS_FRAME
        assert_null(ls_function_call(f, one(numbers(2, 1))));
    assert_non_null(strstr(ls_error_text(), "known only when the traced step is replayed"));
    assert_non_null(strstr(ls_error_text(), "my_step"));
    assert_non_null(strstr(ls_error_hint(), "ls_where"));
    failed(LS_STATE);
    LS_FRAME
        assert_non_null(ls_neg(numbers(1, 1))); /* tracing has ended */
    ls_function_free(f);
}

/* What comes after the error does not blur where it was. */
static ls_value *bad_shapes(ls_value *v, void *user)
{
    (void)user;
    ls_tensor *x = ls_exp(ls_item(v, 0));
    ls_tensor *bad = ls_matmul(x, x);
    for (int i = 0; i < 5; i++)
        x = ls_exp(x);
    return bad ? one(x) : one(bad);
}

static void shape_errors_come_at_the_call(void **state)
{
    (void)state;
    ls_function *f = ls_trace_with(LS_TRACE(.name = "my_step"), bad_shapes, NULL);
    LS_FRAME
        assert_null(ls_function_call(f, one(ls_zeros(LS_F32, LS_DIMS(2, 3)))));
    assert_non_null(strstr(ls_error_text(), "matmul"));
    assert_non_null(strstr(ls_error_text(), "operator 2"));
    assert_non_null(strstr(ls_error_text(), "my_step"));
    failed(LS_SHAPE);
    ls_function_free(f);
}

static ls_value *pick_then_write(ls_value *v, void *user)
{
    model *m = user;
    ls_assign_add(m->w, ls_item(v, 0));
    ls_tensor *read = ls_read(m->w);
    ls_tensor *picked = ls_gather(read, ls_item(v, 1), 0);
    ls_assign(m->w, ls_neg(read));
    return one(picked);
}

static void a_failed_replay_changes_nothing(void **state)
{
    (void)state;
    const char *off[] = { NULL, "all" };
    for (int k = 0; k < 2; k++)
        LS_FRAME {
            model m = { .w = ls_variable_new("w", numbers(3, 1), true) };
            ls_function *f =
                ls_trace_with(LS_TRACE(.name = "my_step", .off = off[k]), pick_then_write, &m);
            ls_tensor *good = ls_from(LS_I32, LS_DIMS(1), (int[]){ 2 });
            ls_tensor *bad = ls_from(LS_I32, LS_DIMS(1), (int[]){ 3 });
            ls_tensor *x = numbers(3, 10);
            assert_float_equal(
                first_of(ls_function_call(f, ls_tensors(2, (ls_tensor *[]){ x, good }))), 15, 0);
            assert_float_equal(at(ls_read(m.w), 0), -11, 0);
            assert_null(ls_function_call(f, ls_tensors(2, (ls_tensor *[]){ x, bad })));
            assert_non_null(strstr(ls_error_text(), "gather"));
            assert_non_null(strstr(ls_error_text(), "my_step"));
            assert_non_null(strstr(ls_error_text(), "operator 3 of 5"));
            failed(LS_INVALID);
            assert_float_equal(at(ls_read(m.w), 0), -11, 0);
            assert_float_equal(
                first_of(ls_function_call(f, ls_tensors(2, (ls_tensor *[]){ x, good }))), -3, 0);
            ls_function_free(f);
            ls_variable_free(m.w);
        }
}

static ls_tensor *escaped;

static ls_value *let_escape(ls_value *v, void *user)
{
    (void)user;
    escaped = ls_keep(ls_neg(ls_item(v, 0)));
    return v;
}

static void symbols_stay_in_their_step(void **state)
{
    (void)state;
    ls_function *f = ls_trace(let_escape, NULL);
    LS_FRAME {
        assert_non_null(ls_function_call(f, one(numbers(2, 1))));
        assert_null(ls_exp(escaped));
        assert_non_null(strstr(ls_error_text(), "traced step"));
        failed(LS_STATE);
        assert_null(ls_data(escaped));
        failed(LS_STATE);
    }
    ls_drop(escaped);
    ls_function_free(f);
}

static ls_value *returns_null(ls_value *v, void *user)
{
    (void)v;
    (void)user;
    return NULL;
}

static void bad_calls(void **state)
{
    (void)state;
    assert_null(ls_trace(NULL, NULL));
    failed(LS_INVALID);
    assert_null(ls_trace_with(LS_TRACE(.off = "nonsense"), double_it, NULL));
    failed(LS_INVALID);
    assert_null(ls_trace_with(LS_TRACE(.cache = -1), double_it, NULL));
    failed(LS_INVALID);
    assert_null(ls_trace_with(&(ls_trace_options){ .size = 3 }, double_it, NULL));
    failed(LS_INVALID);
    ls_function *f = ls_trace(returns_null, NULL);
    LS_FRAME {
        assert_null(ls_function_call(NULL, ls_list(0, NULL)));
        failed(LS_INVALID);
        assert_null(ls_function_call(f, NULL));
        failed(LS_INVALID);
        assert_null(ls_function_call(f, ls_list(0, NULL)));
        assert_non_null(strstr(ls_error_text(), "returned NULL"));
        failed(LS_INVALID);
        assert_null(ls_function_dump(f, LS_DUMP_TEXT, false));
        failed(LS_STATE);
        ls_tensor *text = ls_from_strings(LS_DIMS(1), (const void *[]){ "a" }, NULL);
        assert_null(ls_function_call(f, one(text)));
        failed(LS_SHAPE);
    }
    ls_function_free(f);
    ls_function_free(NULL);
}

/* ---- the cache --------------------------------------------------------------------------------------- */

static int warnings;
static char warning[512];

static void hear(ls_log_level level, const char *text, void *user)
{
    (void)user;
    if (level != LS_LOG_WARNING)
        return;
    warnings++;
    strncpy(warning, text, sizeof warning - 1);
}

static void a_cache_that_churns_says_so(void **state)
{
    (void)state;
    ls_function *f = ls_trace_with(LS_TRACE(.name = "my_step", .cache = 2), double_it, NULL);
    warnings = 0;
    ls_log_set(hear, NULL, LS_LOG_WARNING);
    for (int64_t i = 0; i < 12; i++)
        LS_FRAME
            first_of(ls_function_call(f, one(numbers(1 + i % 3, 1))));
    ls_log_set(NULL, NULL, LS_LOG_WARNING);
    assert_int_equal(ls_function_traces(f), 12);
    assert_int_equal(warnings, 3); /* at 2, 4 and 8 of the ten thrown away */
    assert_non_null(strstr(warning, "my_step"));
    assert_non_null(strstr(warning, "f32["));
    ls_function_free(f);
}

/* ---- one at a time ------------------------------------------------------------------------------------- */

static ls_function *shared;
static ls_status inside;

static ls_status calls_back(ls_call *c)
{
    ls_function_call(shared, ls_list(0, NULL));
    inside = ls_error();
    *(float *)ls_call_out(c, 0) = 1;
    return LS_OK;
}

static ls_status scalar_shape(ls_call *c)
{
    return ls_call_output(c, 0, LS_F32, 0, NULL);
}

static ls_value *call_inside(ls_value *v, void *user)
{
    static const ls_op row = { .size = sizeof row,
                               .name = "calls_back",
                               .inputs = 1,
                               .outputs = 1,
                               .shape = scalar_shape,
                               .kernel = calls_back };
    (void)user;
    ls_tensor *x = ls_item(v, 0);
    return one(ls_apply(&row, 1, &x, NULL));
}

static void a_second_call_is_refused(void **state)
{
    (void)state;
    shared = ls_trace(call_inside, NULL);
    LS_FRAME
        first_of(ls_function_call(shared, one(numbers(1, 1))));
    assert_int_equal(inside, LS_STATE);
    ls_function_free(shared);
}

static void *in_thread(void *user)
{
    ls_status *st = user;
    LS_FRAME {
        ls_value *r = ls_function_call(shared, one(numbers(2, 4)));
        *st =
            r && ls_to_float(ls_sum(ls_item(r, 0), LS_ALL_AXES, false)) == 18 ? LS_OK : LS_INVALID;
    }
    return NULL;
}

static void a_function_may_be_called_from_another_thread(void **state)
{
    (void)state;
    shared = ls_trace(double_it, NULL);
    LS_FRAME
        first_of(ls_function_call(shared, one(numbers(2, 1))));
    pthread_t thread;
    ls_status st = LS_INVALID;
    assert_int_equal(pthread_create(&thread, NULL, in_thread, &st), 0);
    pthread_join(thread, NULL);
    assert_int_equal(st, LS_OK);
    ls_function_free(shared);
}

/* ---- errors that are not this call's ----------------------------------------------------- */

static void an_older_error_does_not_fail_the_call(void **state)
{
    (void)state;
    ls_function *f = ls_trace(double_it, NULL);
    for (int i = 0; i < 2; i++)
        LS_FRAME {
            ls_value *x = one(numbers(2, 1));
            assert_null(ls_matmul(ls_item(x, 0), ls_item(x, 0)));
            assert_float_equal(first_of(ls_function_call(f, x)), 2, 0); /* traced, then replayed */
            failed(LS_SHAPE);
        }
    ls_function_free(f);
}

static ls_value *leaves_an_error(ls_value *v, void *user)
{
    (void)user;
    ls_matmul(ls_item(v, 0), ls_item(v, 0));
    return v;
}

static void an_error_left_unread_fails_it(void **state)
{
    (void)state;
    ls_function *f = ls_trace(leaves_an_error, NULL);
    LS_FRAME
        assert_null(ls_function_call(f, one(numbers(2, 1))));
    assert_non_null(strstr(ls_error_text(), "operator 1: matmul"));
    failed(LS_SHAPE);
    ls_function_free(f);
}

/* ---- what a step must not do ---------------------------------------------------------------- */

static ls_value *asks_for_iterations(ls_value *v, void *user)
{
    model *m = user;
    ls_set_rate(m->sgd, 1.0 / (double)(1 + ls_iterations(m->sgd)));
    return v;
}

static ls_value *asks_for_the_rate(ls_value *v, void *user)
{
    model *m = user;
    return isnan(ls_rate(m->sgd)) ? NULL : v;
}

static ls_value *sets_the_seed(ls_value *v, void *user)
{
    (void)user;
    ls_random_seed(3);
    return v;
}

static ls_value *sets_the_step(ls_value *v, void *user)
{
    (void)user;
    ls_random_step(3);
    return v;
}

static void numbers_of_a_replay_are_not_known(void **state)
{
    (void)state;
    const struct {
        ls_step step;
        const char *name;
    } cases[] = { { asks_for_iterations, "ls_iterations" },
                  { asks_for_the_rate, "ls_rate" },
                  { sets_the_seed, "ls_random_seed" },
                  { sets_the_step, "ls_random_step" } };
    model m = { .sgd = ls_sgd(NULL) };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ls_function *f = ls_trace(cases[i].step, &m);
        LS_FRAME
            assert_null(ls_function_call(f, one(numbers(2, 1))));
        assert_non_null(strstr(ls_error_text(), cases[i].name));
        failed(LS_STATE);
        ls_function_free(f);
    }
    ls_optimizer_free(m.sgd);
}

static ls_function *itself;

static ls_value *frees_itself(ls_value *v, void *user)
{
    (void)user;
    ls_function_free(itself);
    return one(ls_neg(ls_item(v, 0)));
}

static void a_step_may_free_its_function(void **state)
{
    (void)state;
    itself = ls_trace(frees_itself, NULL);
    LS_FRAME
        assert_float_equal(first_of(ls_function_call(itself, one(numbers(2, 1)))), -1, 0);
    itself = ls_trace(frees_itself, NULL);
    LS_FRAME {
        ls_tape_open(); /* runs eagerly */
        assert_float_equal(first_of(ls_function_call(itself, one(numbers(2, 1)))), -1, 0);
    }
}

static void arguments_whose_frame_has_closed(void **state)
{
    (void)state;
    ls_function *f = ls_trace_with(LS_TRACE(.name = "my_step"), double_it, NULL);
    ls_value *gone;
    LS_FRAME
        gone = one(numbers(2, 1));
    LS_FRAME
        assert_null(ls_function_call(f, gone));
    assert_non_null(strstr(ls_error_text(), "the arguments of 'my_step'"));
    failed(LS_INVALID);
    ls_function_free(f);
}

static void a_symbol_is_no_argument(void **state)
{
    (void)state;
    ls_function *f = ls_trace(let_escape, NULL), *g = ls_trace(double_it, NULL);
    LS_FRAME {
        assert_non_null(ls_function_call(f, one(numbers(2, 1))));
        assert_null(ls_function_call(g, one(escaped)));
        assert_non_null(strstr(ls_error_text(), "argument 0"));
        failed(LS_STATE);
    }
    ls_drop(escaped);
    ls_function_free(f);
    ls_function_free(g);
}

/* ---- rows of users ---------------------------------------------------------------------------- */

static ls_status like_input(ls_call *c)
{
    return ls_call_output(c, 0, ls_call_dtype(c, 0), ls_call_rank(c, 0), ls_call_shape(c, 0));
}

static ls_status leaky(ls_call *c)
{
    const float *x = ls_call_in(c, 0);
    float *y = ls_call_out(c, 0);
    for (int64_t i = 0; i < ls_call_count(c, 0); i++)
        y[i] = x[i] > 0 ? x[i] : x[i] / 10;
    return LS_OK;
}

static ls_value *names_of_ours(ls_value *v, void *user)
{
    ls_tensor *x = ls_item(v, 0);
    ls_tensor *h = ls_dense(ls_expand_dims(x, 0), ls_ones(LS_F32, LS_DIMS(3, 3)), x);
    h = ls_apply(user, 1, &h, NULL);
    return one(ls_gather(h, ls_item(v, 1), 0));
}

static void a_row_is_not_known_by_its_name(void **state)
{
    (void)state;
    const char *taken[] = { "relu", "save", "copy", "assign", "matmul" };
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        LS_FRAME {
            const ls_op row = { .size = sizeof row,
                                .name = taken[i],
                                .inputs = 1,
                                .outputs = 1,
                                .shape = like_input,
                                .kernel = leaky };
            ls_tensor *x = numbers(3, -1), *zero = ls_zeros(LS_I32, LS_DIMS(1));
            ls_value *arguments = ls_tensors(2, (ls_tensor *[]){ x, zero });
            ls_function *f = ls_trace(names_of_ours, (void *)&row);
            float eager = first_of(names_of_ours(arguments, (void *)&row));
            assert_true(eager < 0);
            assert_float_equal(first_of(ls_function_call(f, arguments)), eager, 0);
            ls_tensor *far = ls_from(LS_I32, LS_DIMS(1), (int[]){ 9 });
            assert_null(ls_function_call(f, ls_tensors(2, (ls_tensor *[]){ x, far })));
            failed(LS_INVALID);
            ls_function_free(f);
        }
}

static ls_status images_only(ls_call *c)
{
    if (ls_call_rank(c, 0) != 4)
        return ls_call_fail(c, LS_SHAPE, "wants images");
    return like_input(c);
}

static ls_value *two_convolutions(ls_value *v, void *user)
{
    static const ls_op row = { .size = sizeof row,
                               .name = "my_leaky_relu",
                               .inputs = 1,
                               .outputs = 1,
                               .flags = LS_OP_ELEMENTWISE,
                               .shape = images_only,
                               .kernel = leaky };
    ls_tensor *w = user, *h = ls_conv2d(ls_item(v, 0), w, NULL);
    h = ls_apply(&row, 1, &h, NULL);
    return one(ls_reshape(ls_conv2d(h, w, NULL), LS_DIMS(-1)));
}

static void a_users_rule_sees_the_shape_it_was_called_with(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *w = ls_full(LS_F32, LS_DIMS(3, 3, 64, 64), 0.01);
        ls_function *f = ls_trace(two_convolutions, w);
        ls_value *r = ls_function_call(f, one(ls_ones(LS_F32, LS_DIMS(16, 16, 16, 64))));
        if (!r)
            fail_msg("%s", ls_error_report());
        ls_function_free(f);
    }
}

/* ---- what a failed replay leaves -------------------------------------------------------------- */

static ls_value *draw_and_pick(ls_value *v, void *user)
{
    (void)user;
    ls_tensor *x = ls_random_uniform(LS_F32, LS_DIMS(3), 0, 1);
    return one(ls_gather(x, ls_item(v, 0), 0));
}

static void a_failed_replay_gives_its_draws_back(void **state)
{
    (void)state;
    ls_function *f = ls_trace(draw_and_pick, NULL);
    LS_FRAME {
        ls_value *good = one(ls_zeros(LS_I32, LS_DIMS(1)));
        ls_value *bad = one(ls_full(LS_I32, LS_DIMS(1), 7));
        ls_random_seed(4);
        ls_random_step(0);
        float want = first_of(ls_function_call(f, good));
        ls_random_step(0);
        assert_null(ls_function_call(f, bad));
        failed(LS_INVALID);
        assert_float_equal(first_of(ls_function_call(f, good)), want, 0);
    }
    ls_function_free(f);
}

static ls_value *overwrite(ls_value *v, void *user)
{
    model *m = user;
    ls_assign(m->w, ls_item(v, 0));
    return one(ls_sum(ls_read(m->w), LS_ALL_AXES, true));
}

static void a_nan_that_is_overwritten_is_nobodys(void **state)
{
    (void)state;
    LS_FRAME {
        model m = { .w = ls_variable_new("w", ls_full(LS_F32, LS_DIMS(2), NAN), true) };
        ls_function *f = ls_trace(overwrite, &m);
        ls_check_numerics(LS_NUMERICS_NAN);
        ls_value *r = ls_function_call(f, one(numbers(2, 1)));
        ls_check_numerics(LS_NUMERICS_OFF);
        assert_float_equal(first_of(r), 3, 0);
        ls_function_free(f);
        ls_variable_free(m.w);
    }
}

/* A traced function is one replica's: it takes what that replica sees. */
static void arguments_with_a_tensor_for_each_replica(void **state)
{
    (void)state;
    ls_function *f = ls_trace_with(LS_TRACE(.name = "my_step"), double_it, NULL);
    LS_FRAME {
        ls_tensor *t[2] = { numbers(2, 1), numbers(2, 5) };
        ls_value *spread = ls__leaf_spread(LS_SPREAD_PER_REPLICA, 2, t);
        ls_value *v = ls_list(1, &spread);
        assert_null(ls_function_call(f, v));
        assert_non_null(strstr(ls_error_text(), "the arguments of 'my_step'"));
        assert_non_null(strstr(ls_error_text(), "leaf 0 is per-replica, with 2 components"));
        assert_non_null(strstr(ls_error_hint(), "ls_select"));
        failed(LS_INVALID);
        assert_float_equal(first_of(ls_function_call(f, ls_select(v, 1))), 10, 0);
        ls_value *object = ls__object_leaf(f, "variable", 1);
        assert_null(ls_function_call(f, object));
        assert_non_null(strstr(ls_error_text(), "the arguments of 'my_step'"));
        assert_non_null(strstr(ls_error_text(), "leaf 0 is a variable, not a tensor"));
        failed(LS_INVALID);
    }
    ls_function_free(f);
}

static ls_value *spread_result(ls_value *v, void *user)
{
    (void)user;
    return ls__leaf_spread(LS_SPREAD_MIRRORED, 1, (ls_tensor *[]){ ls_neg(ls_item(v, 0)) });
}

static void results_with_a_tensor_for_each_replica(void **state)
{
    (void)state;
    ls_function *f = ls_trace_with(LS_TRACE(.name = "my_step"), spread_result, NULL);
    LS_FRAME
        assert_null(ls_function_call(f, one(numbers(2, 1))));
    assert_non_null(strstr(ls_error_text(), "my_step"));
    assert_non_null(strstr(ls_error_text(), "leaf 0 is mirrored, with 1 component"));
    failed(LS_INVALID);
    ls_function_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(arguments_with_a_tensor_for_each_replica, clean),
        cmocka_unit_test_setup(results_with_a_tensor_for_each_replica, clean),
        cmocka_unit_test_setup(reading_a_value_while_tracing, clean),
        cmocka_unit_test_setup(shape_errors_come_at_the_call, clean),
        cmocka_unit_test_setup(a_failed_replay_changes_nothing, clean),
        cmocka_unit_test_setup(symbols_stay_in_their_step, clean),
        cmocka_unit_test_setup(bad_calls, clean),
        cmocka_unit_test_setup(a_cache_that_churns_says_so, clean),
        cmocka_unit_test_setup(a_second_call_is_refused, clean),
        cmocka_unit_test_setup(a_function_may_be_called_from_another_thread, clean),
        cmocka_unit_test_setup(an_older_error_does_not_fail_the_call, clean),
        cmocka_unit_test_setup(an_error_left_unread_fails_it, clean),
        cmocka_unit_test_setup(numbers_of_a_replay_are_not_known, clean),
        cmocka_unit_test_setup(a_step_may_free_its_function, clean),
        cmocka_unit_test_setup(arguments_whose_frame_has_closed, clean),
        cmocka_unit_test_setup(a_symbol_is_no_argument, clean),
        cmocka_unit_test_setup(a_row_is_not_known_by_its_name, clean),
        cmocka_unit_test_setup(a_users_rule_sees_the_shape_it_was_called_with, clean),
        cmocka_unit_test_setup(a_failed_replay_gives_its_draws_back, clean),
        cmocka_unit_test_setup(a_nan_that_is_overwritten_is_nobodys, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
