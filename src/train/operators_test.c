/*
 * Times of operators: every instruction of a step and its meetings is there, called as often as it ran,
 * with the work that it has to do; and what is refused.
 */
#include "fit_test_support.h"

#include <lockstep/profile.h>
#include <string.h>

enum { STEPS = 3 };

typedef struct seen {
    int rows, products, updates;
    int64_t product_calls, update_calls;
    double flops, seconds;
    int stop_after; /* rows; 0: never */
} seen;

static ls_status look(const ls_operator_time *o, void *user)
{
    seen *s = user;
    assert_int_equal(o->size, sizeof *o);
    if (o->calls < 1 || o->seconds < 0 || o->bytes < 0 || !o->shapes[0])
        fail_msg("%s %s: %g bytes", o->name, o->shapes, o->bytes);
    s->seconds += o->seconds;
    if (strncmp(o->name, "matmul", 6) == 0) {
        s->products++;
        s->product_calls += o->calls;
        s->flops += o->flops;
        assert_true(o->phase == LS_PHASE_FORWARD || o->phase == LS_PHASE_BACKWARD);
        assert_non_null(strstr(o->shapes, " -> f32["));
    }
    if (strncmp(o->name, "adam", 4) == 0) {
        s->updates++;
        s->update_calls += o->calls;
        assert_int_equal(o->phase, LS_PHASE_APPLY);
        assert_true(o->flops == 0);
    }
    return ++s->rows == s->stop_after ? LS_END : LS_OK;
}

static void run_steps(ls_trainer *t, int64_t until)
{
    LS_FRAME
        ls_fit(t, LS_FIT(.data = batches(), .epochs = 9, .steps = until));
    assert_clean();
}

/* 2 -> 8 -> 4 or so: forward, weights' gradients, and one gradient of what is between. */
static void all_of_them(void **state)
{
    (void)state;
    for (int v = 1; v <= 3; v++) {
        ls_strategy *s = replicas(v, v > 1 ? 2 : 1);
        ls_trainer *t = small_trainer(s, 0);
        ls_function *step = ls_trainer_step(t);
        run_steps(t, 1);
        assert_int_equal(ls_operators_start(step), LS_OK);
        run_steps(t, 1 + STEPS);
        seen all = { 0 };
        assert_int_equal(ls_operators_read(step, look, &all), LS_OK);
        assert_true(all.products >= 4);
        assert_int_equal(all.product_calls, (int64_t)all.products * STEPS * v);
        assert_int_equal(all.updates, 1);
        assert_int_equal(all.update_calls, STEPS);
        assert_true(all.flops > 0);
        seen again = { .stop_after = 2 };
        assert_int_equal(ls_operators_read(step, look, &again), LS_END);
        assert_int_equal(again.rows, 2);
        assert_int_equal(ls_operators_start(step), LS_OK); /* anew */
        run_steps(t, 2 + STEPS);
        seen one = { 0 };
        assert_int_equal(ls_operators_read(step, look, &one), LS_OK);
        assert_int_equal(one.update_calls, 1);
        assert_clean();
        ls_trainer_free(t);
        ls_strategy_free(s);
    }
}

static ls_value *multiply(ls_value *arguments, void *user)
{
    (void)user;
    return ls_leaf(ls_matmul(ls_item(arguments, 0), ls_item(arguments, 1)));
}

static ls_status look_at_product(const ls_operator_time *o, void *user)
{
    if (strcmp(o->name, "matmul") == 0) {
        assert_true(o->flops == 2.0 * 5 * 7 * 3);
        assert_true(o->bytes == 4.0 * (5 * 7 + 7 * 3 + 5 * 3));
        assert_string_equal(o->shapes, "f32[5,7] f32[7,3] -> f32[5,3]");
        ++*(int *)user;
    }
    return LS_OK;
}

static void work_of_a_product(void **state)
{
    (void)state;
    int products = 0;
    ls_strategy *s = replicas(1, 1);
    ls_function *f = ls_trace(multiply, NULL);
    ls_operators_start(f);
    LS_FRAME {
        ls_tensor *two[] = { ls_ones(LS_F32, LS_DIMS(5, 7)), ls_ones(LS_F32, LS_DIMS(7, 3)) };
        assert_non_null(ls_run(s, f, ls_tensors(2, two)));
    }
    assert_int_equal(ls_operators_read(f, look_at_product, &products), LS_OK);
    assert_int_equal(products, 1);
    assert_clean();
    ls_function_free(f);
    ls_strategy_free(s);
}

static void what_is_refused(void **state)
{
    (void)state;
    ls_function *f = ls_trace(multiply, NULL);
    int products = 0;
    assert_int_equal(ls_operators_start(NULL), LS_INVALID);
    assert_error(LS_INVALID, "the function is NULL");
    assert_int_equal(ls_operators_read(NULL, look_at_product, &products), LS_INVALID);
    assert_error(LS_INVALID, "the function is NULL");
    assert_int_equal(ls_operators_read(f, NULL, NULL), LS_INVALID);
    assert_error(LS_INVALID, "the callback is NULL");
    assert_int_equal(ls_operators_read(f, look_at_product, &products), LS_STATE);
    assert_error(LS_STATE, "no step");
    ls_operators_start(f);
    assert_int_equal(ls_operators_read(f, look_at_product, &products), LS_STATE);
    assert_error(LS_STATE, "ls_operators_start");
    ls_function_free(f);
    assert_int_equal(products, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_them),
        cmocka_unit_test(work_of_a_product),
        cmocka_unit_test(what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
