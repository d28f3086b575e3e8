/*
 * What an optimizer knows of variables: slots that can be looked at, weights that do not decay,
 * and the one strategy they belong to.
 */
#include "train/optimizer_test_support.h"

static ls_value *apply(ls_value *arguments, void *user)
{
    (void)arguments;
    pair *p = user;
    ls_tensor *g[2];
    slopes(my_id(), 0, g);
    ls_apply_gradients(p->o, 2, g, p->v);
    return none();
}

static ls_value *look(ls_value *arguments, void *user)
{
    (void)arguments;
    pair *p = user;
    ls_slot_read(p->o, p->v[0], 0);
    return none();
}

static void slots(void **state)
{
    (void)state;
    ls_optimizer *sgd = ls_sgd(NULL);
    assert_int_equal(ls_slot_count(sgd), 0);
    assert_int_equal(ls_slot_count(NULL), 0);
    assert_null(ls_slot_name(sgd, 0));
    said(LS_INVALID, "ls_slot_name: slot 0 of ls_sgd, which has 0", "plain SGD has none");
    ls_optimizer_free(sgd);
    ls_strategy *s = replicas(2);
    pair p = make_pair(s, ls_adam(NULL));
    assert_int_equal(ls_slot_count(p.o), 2);
    assert_string_equal(ls_slot_name(p.o, 0), "m");
    assert_string_equal(ls_slot_name(p.o, 1), "v");
    const int bad[] = { -1, 2 };
    LS_FRAME {
        for (int i = 0; i < 2; i++) {
            assert_null(ls_slot_read(p.o, p.v[0], bad[i]));
            said(LS_INVALID, "ls_adam, which has 2", "from 0");
        }
        assert_null(ls_slot_read(p.o, NULL, 0));
        failed(LS_INVALID);
        assert_null(ls_slot_read(NULL, p.v[0], 0));
        failed(LS_INVALID);
        ls_tensor *m = ls_slot_read(p.o, p.v[0], 0); /* a snapshot */
        assert_string_equal(ls_describe(m), "f32[37]");
        runs(s, apply, &p);
        ls_tensor *now = ls_slot_read(p.o, p.v[0], 0);
        float sum = slope(0, 0, 3) + slope(1, 0, 3);
        assert_true(((const float *)ls_data(m))[3] == 0);
        assert_true(((const float *)ls_data(now))[3] == fmaf(sum, (float)(1 - 0.9), 0));
        assert_null(run(s, look, &p));
        said(LS_STATE, "ls_slot_read: called by replica 0 of 2", "merge function");
    }
    free_pair(&p);
    ls_strategy_free(s);
}

/* ---- decay --------------------------------------------------------------------------------- */

static void decayed(pair *p, bool w, bool bias)
{
    float before[MOST_STATE], after[MOST_STATE];
    state_of(p, before);
    LS_FRAME {
        ls_tensor *g[] = { ls_zeros(LS_F32, LS_DIMS(W_COUNT)), ls_zeros(LS_F32, LS_DIMS(B_COUNT)) };
        assert_int_equal(ls_apply_gradients(p->o, 2, g, p->v), LS_OK);
    }
    state_of(p, after);
    assert_true(after[0] == (w ? before[0] * 0.75f : before[0]));
    assert_true(after[W_COUNT] == (bias ? before[W_COUNT] * 0.75f : before[W_COUNT]));
}

static ls_optimizer *decaying(void)
{
    return ls_sgd(LS_SGD(.rate = 0.5, .weight_decay = 0.5));
}

static void exclusions(void **state)
{
    (void)state;
    const char *names[] = { "scale", "ia" }, *empty = "", *none_of[] = { NULL };
    pair p = make_pair(NULL, decaying());
    decayed(&p, true, true);
    assert_int_equal(ls_exclude_from_weight_decay(p.o, 1, p.v, 0, NULL), LS_STATE);
    said(LS_STATE, "the optimizer has updated variables", "before the first update");
    decayed(&p, true, true);
    free_pair(&p);
    p = make_pair(NULL, decaying());
    assert_int_equal(ls_exclude_from_weight_decay(p.o, 1, p.v, 0, NULL), LS_OK);
    decayed(&p, false, true);
    free_pair(&p);
    p = make_pair(NULL, decaying());
    LS_FRAME
        assert_null(ls_slot_read(p.o, p.v[0], 0)); /* looking is no update */
    failed(LS_INVALID);
    assert_int_equal(ls_exclude_from_weight_decay(p.o, 0, NULL, 2, names), LS_OK);
    decayed(&p, true, false);
    free_pair(&p);
    p = make_pair(NULL, decaying());
    assert_int_equal(ls_exclude_from_weight_decay(p.o, 1, p.v, 0, NULL), LS_OK);
    assert_int_equal(ls_exclude_from_weight_decay(p.o, 0, NULL, 2, names), LS_OK); /* adds up */
    assert_int_equal(ls_exclude_from_weight_decay(p.o, 0, NULL, 1, &empty), LS_INVALID);
    said(LS_INVALID, "name 0 is empty", NULL);
    assert_int_equal(ls_exclude_from_weight_decay(p.o, 0, NULL, 1, none_of), LS_INVALID);
    said(LS_INVALID, "name 0 is NULL", NULL);
    assert_int_equal(ls_exclude_from_weight_decay(p.o, 0, NULL, 1, NULL), LS_INVALID);
    said(LS_INVALID, "1 names in NULL", NULL);
    assert_int_equal(ls_exclude_from_weight_decay(p.o, 1, NULL, 0, NULL), LS_INVALID);
    failed(LS_INVALID);
    assert_int_equal(ls_exclude_from_weight_decay(NULL, 0, NULL, 0, NULL), LS_INVALID);
    failed(LS_INVALID);
    decayed(&p, false, false);
    free_pair(&p);
}

/* ---- one strategy ---------------------------------------------------------------------------- */

static void one_strategy(void **state)
{
    (void)state;
    ls_strategy *a = replicas(2), *b = replicas(3);
    pair p = make_pair(a, ls_adam(NULL)), q = make_pair(b, ls_sgd(NULL));
    pair plain = make_pair(NULL, ls_sgd(NULL));
    ls_optimizer *own = q.o;
    LS_FRAME {
        runs(a, apply, &p);
        q.o = p.o;
        float before[MOST_STATE], after[MOST_STATE];
        int n = state_of(&p, before);
        assert_null(run(b, apply, &q));
        said(LS_STATE, "variable 'w' belongs to strategy", "2 replicas");
        ls_tensor *g[2];
        slopes(0, 0, g);
        assert_int_equal(ls_apply_gradients(p.o, 2, g, plain.v), LS_STATE);
        said(LS_STATE, "the optimizer has trained variables of strategy", "an optimizer for each");
        assert_int_equal(ls_iterations(p.o), 1);
        state_of(&p, after);
        same_state(after, before, n);
        runs(a, apply, &p);
        assert_int_equal(ls_iterations(p.o), 2);
    }
    q.o = own;
    free_pair(&p);
    free_pair(&q);
    free_pair(&plain);
    ls_strategy_free(a);
    ls_strategy_free(b);
}

static ls_value *apply_and_fail(ls_value *arguments, void *user)
{
    apply(arguments, user);
    ls_add(ls_zeros(LS_F32, LS_DIMS(2)), ls_zeros(LS_F32, LS_DIMS(3)));
    return none();
}

/* A step that failed did not happen: the optimizer is still nobody's, and has updated nothing. */
static void a_failed_first_step_binds_nothing(void **state)
{
    (void)state;
    ls_strategy *a = replicas(2), *b = replicas(3);
    pair p = make_pair(a, ls_sgd(LS_SGD(.weight_decay = 0.5))), q = make_pair(b, ls_sgd(NULL));
    ls_optimizer *own = q.o;
    q.o = p.o;
    LS_FRAME {
        assert_null(ls_run_eager(a, apply_and_fail, &p, none()));
        failed(LS_SHAPE);
        assert_int_equal(ls_iterations(p.o), 0);
        assert_int_equal(ls_exclude_from_weight_decay(p.o, 1, q.v, 0, NULL), LS_OK);
        runs(b, apply, &q);
        assert_int_equal(ls_iterations(p.o), 1);
    }
    q.o = own;
    free_pair(&p);
    free_pair(&q);
    ls_strategy_free(a);
    ls_strategy_free(b);
}

/* Norms and factors that a float could not hold are none of the update's problem. */
static void clipping_of_huge_gradients(void **state)
{
    (void)state;
    for (int global = 0; global < 2; global++)
        LS_FRAME {
            ls_optimizer *o = global ? ls_sgd(LS_SGD(.rate = 1, .clip_global_norm = 1))
                                     : ls_sgd(LS_SGD(.rate = 1, .clip_norm = 1));
            ls_variable *v = ls_variable_new("v", ls_zeros(LS_F32, LS_DIMS(2)), true);
            ls_tensor *g = ls_full(LS_F32, LS_DIMS(2), 1e38);
            assert_int_equal(ls_apply_gradients(o, 1, &g, &v), LS_OK);
            float got[2];
            ls_copy_out(ls_read(v), got, sizeof got);
            assert_true(fabsf(got[0] + 0.70710678f) < 1e-6f && got[1] == got[0]);
            ls_variable_free(v);
            ls_optimizer_free(o);
        }
}

static void no_update_of_nothing(void **state)
{
    (void)state;
    pair p = make_pair(NULL, ls_sgd(NULL));
    ls_variable_set_trainable(p.v[0], false);
    ls_variable_set_trainable(p.v[1], false);
    LS_FRAME {
        assert_int_equal(ls_apply_gradients(p.o, 0, NULL, NULL), LS_INVALID);
        said(LS_INVALID, "0 variables", NULL);
        ls_tape *tape = ls_tape_open();
        ls_tensor *loss = ls_sum(ls_read(p.v[0]), LS_ALL_AXES, false);
        assert_int_equal(ls_minimize(p.o, tape, loss, 2, p.v), LS_INVALID);
        said(LS_INVALID, "of 2 variables none is trainable", NULL);
        assert_int_equal(ls_iterations(p.o), 0);
    }
    free_pair(&p);
}

static void missing_gradients(void **state)
{
    (void)state;
    pair p = make_pair(NULL, ls_adam(NULL));
    LS_FRAME {
        ls_tensor *g[2];
        slopes(0, 0, g);
        g[1] = NULL;
        assert_int_equal(ls_apply_gradients(p.o, 2, g, p.v), LS_INVALID);
        said(LS_INVALID, "the gradient of variable 'bias'", NULL);
        assert_int_equal(ls_iterations(p.o), 0);
    }
    free_pair(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(slots),
        cmocka_unit_test_setup(exclusions, clean),
        BOTH(one_strategy),
        cmocka_unit_test_setup(missing_gradients, clean),
        cmocka_unit_test_setup(a_failed_first_step_binds_nothing, clean),
        cmocka_unit_test_setup(clipping_of_huge_gradients, clean),
        cmocka_unit_test_setup(no_update_of_nothing, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
