/* Traced functions, as a user meets them. */
#include <lockstep.h>

#include "trace/function_test_support.h"

/* ---- the C function runs once, the step every time ----------------------------------- */

static void traced_once_per_signature(void **state)
{
    (void)state;
    int calls = 0;
    ls_function *f = ls_trace(double_it, &calls);
    for (int i = 0; i < 5; i++)
        LS_FRAME
            assert_float_equal(first_of(ls_function_call(f, one(numbers(3, (float)i)))),
                               2.f * (float)i, 0);
    assert_int_equal(calls, 1);
    LS_FRAME
        first_of(ls_function_call(f, one(numbers(4, 1))));
    assert_int_equal(calls, 2);
    LS_FRAME
        first_of(ls_function_call(f, one(numbers(3, 1))));
    assert_int_equal(calls, 2);
    assert_int_equal(ls_function_traces(f), 2);
    ls_function_free(f);
}

static void structure_is_part_of_the_signature(void **state)
{
    (void)state;
    int calls = 0;
    ls_function *f = ls_trace(double_it, &calls);
    LS_FRAME {
        ls_tensor *x = numbers(2, 1);
        ls_value *leaf = ls_leaf(x);
        first_of(ls_function_call(f, ls_list(1, &leaf)));
        first_of(ls_function_call(f, ls_dict(1, (const char *[]){ "x" }, &leaf)));
        first_of(ls_function_call(f, ls_dict(1, (const char *[]){ "y" }, &leaf)));
        first_of(ls_function_call(f, ls_list(1, &leaf)));
    }
    assert_int_equal(calls, 3);
    ls_function_free(f);
}

static void results_belong_to_the_caller(void **state)
{
    (void)state;
    ls_function *f = ls_trace(double_it, NULL);
    LS_FRAME {
        ls_value *a = ls_function_call(f, one(numbers(2, 1)));
        ls_value *b = ls_function_call(f, one(numbers(2, 10)));
        assert_float_equal(first_of(a), 2, 0); /* not overwritten by the second call */
        assert_float_equal(first_of(b), 20, 0);
    }
    ls_function_free(f);
}

/* ---- results of every kind --------------------------------------------------------------- */

static ls_value *pass_through(ls_value *v, void *user)
{
    ls_tensor *x = ls_item(v, 0), *y = ls_neg(x), *k = user;
    return ls_tensors(6,
                      (ls_tensor *[]){ x, y, y, k, ls_reshape(x, LS_DIMS(1, -1)), ls_scale(k, 2) });
}

static void arguments_constants_and_the_same_twice(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *k = ls_keep(numbers(1, 7));
        ls_function *f = ls_trace(pass_through, k);
        for (int i = 1; i < 3; i++) {
            ls_value *r = ls_function_call(f, one(numbers(3, (float)i)));
            assert_float_equal(first_of(r), i, 0);
            assert_float_equal(at(ls_item(r, 1), 0), -i, 0);
            assert_float_equal(at(ls_item(r, 2), 0), -i, 0);
            assert_float_equal(at(ls_item(r, 3), 0), 7, 0);
            assert_int_equal(ls_rank(ls_item(r, 4)), 2);
            assert_float_equal(at(ls_item(r, 4), 2), i + 2, 0);
            assert_float_equal(at(ls_item(r, 5), 0), 14, 0);
        }
        ls_function_free(f);
        ls_drop(k);
    }
}

static ls_value *nothing(ls_value *v, void *user)
{
    (void)v;
    (void)user;
    return ls_list(0, NULL);
}

static void nothing_in_nothing_out(void **state)
{
    (void)state;
    ls_function *f = ls_trace(nothing, NULL);
    LS_FRAME {
        ls_value *r = ls_function_call(f, ls_list(0, NULL));
        assert_non_null(r);
        assert_int_equal(ls_length(r), 0);
    }
    ls_function_free(f);
}

static ls_value *sparse_step(ls_value *v, void *user)
{
    (void)user;
    ls_tensor *t = ls_item(v, 0);
    return ls_tensors(2,
                      (ls_tensor *[]){ ls_sparse(ls_sparse_rows(t), ls_neg(ls_sparse_values(t)), 5),
                                       ls_scale(t, 2) });
}

static void sparse_tensors_cross(void **state)
{
    (void)state;
    ls_function *f = ls_trace(sparse_step, NULL);
    LS_FRAME {
        ls_tensor *rows = ls_from(LS_I64, LS_DIMS(2), (int64_t[]){ 3, 1 });
        ls_tensor *values = ls_from(LS_F32, LS_DIMS(2, 2), (float[]){ 1, 2, 3, 4 });
        ls_value *r = ls_function_call(f, one(ls_sparse(rows, values, 5)));
        assert_non_null(r);
        assert_true(ls_is_sparse(ls_item(r, 0)));
        assert_float_equal(at(ls_densify(ls_item(r, 0)), 7), -2, 0);
        assert_float_equal(at(ls_item(r, 1), 2), 6, 0);
    }
    ls_function_free(f);
}

/* ---- variables ------------------------------------------------------------------------------ */

static ls_value *count_up(ls_value *v, void *user)
{
    model *m = user;
    ls_tensor *before = ls_read(m->w);
    ls_assign_add(m->w, ls_item(v, 0));
    ls_tensor *middle = ls_read(m->w);
    ls_assign_add(m->w, ls_item(v, 0));
    return ls_tensors(3, (ls_tensor *[]){ before, middle, ls_read(m->w) });
}

static void reads_are_snapshots_and_writes_are_ordered(void **state)
{
    (void)state;
    const char *off[] = { NULL, "all", "writes-last" };
    for (int k = 0; k < 3; k++)
        LS_FRAME {
            model m = { .w = ls_variable_new("w", numbers(2, 0), true) };
            ls_function *f = ls_trace_with(LS_TRACE(.off = off[k]), count_up, &m);
            for (int i = 0; i < 3; i++) {
                ls_tensor *outside = ls_read(m.w);
                ls_value *r = ls_function_call(f, one(numbers(2, 10)));
                assert_float_equal(first_of(r), 20.f * (float)i, 0);
                assert_float_equal(at(ls_item(r, 1), 0), 20 * i + 10, 0);
                assert_float_equal(at(ls_item(r, 2), 0), 20 * i + 20, 0);
                assert_float_equal(at(outside, 0), 20 * i, 0); /* a snapshot, too */
                assert_float_equal(at(ls_read(m.w), 0), 20 * i + 20, 0);
            }
            ls_function_free(f);
            ls_variable_free(m.w);
        }
}

static void a_function_may_outlive_its_variables(void **state)
{
    (void)state;
    LS_FRAME {
        model m = { .w = ls_variable_new("w", numbers(2, 0), true) };
        ls_function *f = ls_trace(count_up, &m);
        first_of(ls_function_call(f, one(numbers(2, 1))));
        ls_variable_free(m.w);
        assert_float_equal(first_of(ls_function_call(f, one(numbers(2, 1)))), 2, 0);
        ls_function_free(f);
    }
}

static ls_value *fit(ls_value *v, void *user)
{
    model *m = user;
    ls_tape *tape = ls_tape_open();
    ls_tensor *loss = ls_sum(ls_mul(ls_read(m->w), ls_item(v, 0)), LS_ALL_AXES, false);
    ls_minimize(m->sgd, tape, loss, 1, &m->w);
    return one(loss);
}

static void the_rate_is_looked_at_by_every_replay(void **state)
{
    (void)state;
    LS_FRAME {
        model m = { ls_variable_new("w", numbers(2, 0), true), ls_sgd(LS_SGD(.rate = 0.5)) };
        ls_function *f = ls_trace(fit, &m);
        ls_value *ones = one(ls_ones(LS_F32, LS_DIMS(2)));
        first_of(ls_function_call(f, ones));
        assert_float_equal(at(ls_read(m.w), 0), -0.5f, 0);
        ls_set_rate(m.sgd, 2);
        first_of(ls_function_call(f, ones));
        assert_float_equal(at(ls_read(m.w), 0), -2.5f, 0);
        assert_int_equal(ls_iterations(m.sgd), 2);
        assert_int_equal(ls_function_traces(f), 1);
        ls_function_free(f);
        ls_optimizer_free(m.sgd);
        ls_variable_free(m.w);
    }
}

static ls_value *make_inside(ls_value *v, void *user)
{
    model *m = user;
    if (!m->w)
        m->w = ls_variable_new("w", ls_glorot_uniform(LS_F32, LS_DIMS(2, 2)), true);
    ls_assign_add(m->w, ls_item(v, 0));
    return one(ls_read(m->w));
}

static void variables_may_be_made_while_tracing(void **state)
{
    (void)state;
    LS_FRAME {
        ls_random_seed(3);
        ls_tensor *initial = ls_glorot_uniform(LS_F32, LS_DIMS(2, 2));
        ls_random_seed(3);
        model m = { 0 };
        ls_function *f = ls_trace(make_inside, &m);
        ls_value *ones = one(ls_ones(LS_F32, LS_DIMS(2, 2)));
        ls_function_call(f, ones);
        assert_float_equal(first_of(ls_function_call(f, ones)), at(initial, 0) + 1 + 1, 0);
        ls_function_free(f);
        ls_variable_free(m.w);
    }
}

static ls_value *make_of_symbol(ls_value *v, void *user)
{
    (void)user;
    ls_variable_new("w", ls_item(v, 0), true);
    return v;
}

static void a_variable_of_an_unknown_value_is_refused(void **state)
{
    (void)state;
    ls_function *f = ls_trace(make_of_symbol, NULL);
    LS_FRAME
        assert_null(ls_function_call(f, one(numbers(2, 0))));
    assert_non_null(strstr(ls_error_text(), "'w'"));
    failed(LS_STATE);
    ls_function_free(f);
}

/* ---- draws ------------------------------------------------------------------------------------ */

static ls_value *draw_two(ls_value *v, void *user)
{
    (void)v;
    (void)user;
    ls_tensor *a = ls_random_uniform(LS_F32, LS_DIMS(3), 0, 1);
    return ls_tensors(2, (ls_tensor *[]){ a, ls_dropout(ls_ones(LS_F32, LS_DIMS(40)), 0.5) });
}

static void draws_are_those_of_the_eager_step(void **state)
{
    (void)state;
    ls_function *f = ls_trace(draw_two, NULL);
    for (int64_t step = 0; step < 3; step++)
        LS_FRAME {
            float a[2][3], b[2][40], next[2];
            for (int traced = 0; traced < 2; traced++) {
                ls_random_seed(5);
                ls_random_step(step);
                ls_random_uniform(LS_F32, LS_SCALAR, 0, 1); /* the step's draws come after this */
                ls_value *none = ls_list(0, NULL);
                ls_value *r = traced ? ls_function_call(f, none) : draw_two(none, NULL);
                ls_copy_out(ls_item(r, 0), a[traced], sizeof a[0]);
                ls_copy_out(ls_item(r, 1), b[traced], sizeof b[0]);
                next[traced] = ls_to_float(ls_random_uniform(LS_F32, LS_SCALAR, 0, 1));
            }
            assert_memory_equal(a[0], a[1], sizeof a[0]);
            assert_memory_equal(b[0], b[1], sizeof b[0]);
            assert_float_equal(next[0], next[1], 0);
        }
    ls_function_free(f);
}

/* ---- gradients ----------------------------------------------------------------------------------- */

static ls_value *third_power(ls_value *v, void *user)
{
    (void)user;
    ls_tensor *x = ls_item(v, 0);
    ls_tape *tape = ls_tape_open();
    ls_tensor *y = ls_mul(ls_mul(x, x), x), *dy = ls_gradient(tape, y, x);
    ls_tensor *ddy = ls_gradient(tape, dy, x);
    return ls_tensors(3, (ls_tensor *[]){ dy, ddy, ls_gradient(tape, ddy, x) });
}

static void gradients_of_gradients(void **state)
{
    (void)state;
    ls_function *f = ls_trace(third_power, NULL);
    for (int i = 1; i < 4; i++)
        LS_FRAME {
            ls_value *r = ls_function_call(f, one(numbers(2, (float)i)));
            assert_float_equal(first_of(r), 3 * i * i, 0);
            assert_float_equal(at(ls_item(r, 1), 0), 6 * i, 0);
            assert_float_equal(at(ls_item(r, 2), 0), 6, 0);
        }
    ls_function_free(f);
}

static void a_tape_outside_sees_through(void **state)
{
    (void)state;
    int calls = 0;
    ls_function *f = ls_trace(double_it, &calls);
    LS_FRAME {
        ls_tensor *x = numbers(2, 1);
        ls_tape *tape = ls_tape_open();
        ls_tensor *y = ls_item(ls_function_call(f, one(x)), 0);
        assert_float_equal(at(ls_gradient(tape, y, x), 0), 2, 0);
    }
    assert_int_equal(ls_function_traces(f), 0);
    ls_function_free(f);
}

static ls_value *twice_double(ls_value *v, void *user)
{
    return ls_function_call(user, ls_function_call(user, v));
}

static void functions_nest(void **state)
{
    (void)state;
    int calls = 0;
    ls_function *inner = ls_trace(double_it, &calls), *outer = ls_trace(twice_double, inner);
    for (int i = 0; i < 3; i++)
        LS_FRAME
            assert_float_equal(first_of(ls_function_call(outer, one(numbers(2, 3)))), 12, 0);
    assert_int_equal(calls, 2); /* both while the outer one was traced */
    ls_function_free(outer);
    ls_function_free(inner);
}

/* ---- looking inside ----------------------------------------------------------------------------------------- */

static void figures_and_dumps(void **state)
{
    (void)state;
    ls_function *f = ls_trace_with(LS_TRACE(.name = "my_step"), third_power, NULL);
    LS_FRAME {
        first_of(ls_function_call(f, one(numbers(2, 1))));
        ls_function_figures figures = { .size = sizeof figures };
        assert_int_equal(ls_function_look(f, &figures), LS_OK);
        assert_true(figures.operators > figures.instructions && figures.instructions > 0);
        assert_true(figures.arena_bytes >= figures.arena_least && figures.arena_least > 0);
        const char *recorded = ls_function_dump(f, LS_DUMP_TEXT, false);
        assert_non_null(strstr(recorded, "my_step"));
        assert_non_null(strstr(recorded, "mul"));
        assert_non_null(strstr(ls_function_dump(f, LS_DUMP_DOT, true), "digraph"));
        figures.size = 1;
        assert_int_equal(ls_function_look(f, &figures), LS_INVALID);
        failed(LS_INVALID);
    }
    ls_function_free(f);
}

static ls_value *scale_shift_relu(ls_value *v, void *user)
{
    (void)user;
    ls_tensor *t = ls_mul(ls_item(v, 0), ls_item(v, 1));
    return ls_tensors(2, (ls_tensor *[]){ ls_relu(ls_add(t, ls_item(v, 1))), t });
}

static void a_chain_can_be_read(void **state)
{
    (void)state;
    ls_function *f = ls_trace(scale_shift_relu, NULL);
    LS_FRAME {
        ls_value *v = ls_tensors(2, (ls_tensor *[]){ numbers(3, 1), numbers(3, 1) });
        first_of(ls_function_call(f, v));
        const char *text = ls_function_dump(f, LS_DUMP_TEXT, true);
        if (!strstr(text, "{2 = mul 1 0; 3 = add 2 0; 4 = relu 3 -> 2,4}"))
            fail_msg("%s", text);
    }
    ls_function_free(f);
}

static ls_value *takes_log(ls_value *v, void *user)
{
    (void)user;
    return one(ls_neg(ls_log(ls_exp(ls_item(v, 0)))));
}

static void numbers_are_checked_in_replays_too(void **state)
{
    (void)state;
    ls_function *f = ls_trace(takes_log, NULL);
    LS_FRAME {
        ls_value *bad = one(numbers(2, -200)); /* exp gives 0, its log -inf */
        assert_non_null(ls_function_call(f, bad));
        ls_check_numerics(LS_NUMERICS_NAN_AND_INF);
        assert_non_null(ls_function_call(f, one(numbers(2, 1))));
        assert_null(ls_function_call(f, bad));
        ls_check_numerics(LS_NUMERICS_OFF);
        assert_non_null(strstr(ls_error_text(), "log"));
        assert_non_null(strstr(ls_error_text(), "operator 2 of 3"));
        failed(LS_INVALID);
    }
    ls_function_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(traced_once_per_signature, clean),
        cmocka_unit_test_setup(structure_is_part_of_the_signature, clean),
        cmocka_unit_test_setup(results_belong_to_the_caller, clean),
        cmocka_unit_test_setup(arguments_constants_and_the_same_twice, clean),
        cmocka_unit_test_setup(nothing_in_nothing_out, clean),
        cmocka_unit_test_setup(sparse_tensors_cross, clean),
        cmocka_unit_test_setup(reads_are_snapshots_and_writes_are_ordered, clean),
        cmocka_unit_test_setup(a_function_may_outlive_its_variables, clean),
        cmocka_unit_test_setup(the_rate_is_looked_at_by_every_replay, clean),
        cmocka_unit_test_setup(variables_may_be_made_while_tracing, clean),
        cmocka_unit_test_setup(a_variable_of_an_unknown_value_is_refused, clean),
        cmocka_unit_test_setup(draws_are_those_of_the_eager_step, clean),
        cmocka_unit_test_setup(gradients_of_gradients, clean),
        cmocka_unit_test_setup(a_tape_outside_sees_through, clean),
        cmocka_unit_test_setup(functions_nest, clean),
        cmocka_unit_test_setup(figures_and_dumps, clean),
        cmocka_unit_test_setup(a_chain_can_be_read, clean),
        cmocka_unit_test_setup(numbers_are_checked_in_replays_too, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
