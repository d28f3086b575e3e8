/*
 * Optimizers at work: losses that fall, variables that move and those that do not; that a sparse
 * gradient is the dense one it stands for; and that a failed update did not happen. The
 * formulas: optimizer_formulas_test.c, and against Keras.
 */
#include <lockstep.h>

#include <math.h>
#include <stdlib.h>

#include "tensor/test_support.h"
#include "train/optimizer_test_model.h"

/* ---- minimize -------------------------------------------------------------------- */

static ls_tensor *vec(double a, double b)
{
    return ls_from(LS_F64, LS_DIMS(2), (double[]){ a, b });
}

static void is(ls_variable *v, double a, double b)
{
    double out[2] = { NAN, NAN };
    LS_FRAME {
        assert_int_equal(ls_copy_out(ls_read(v), out, sizeof out), LS_OK);
    }
    if (fabs(out[0] - a) > 1e-12 || fabs(out[1] - b) > 1e-12)
        fail_msg("%s is (%.15g %.15g), not (%.15g %.15g)", ls_variable_name(v), out[0], out[1], a,
                 b);
}

/* The first program of lockstep.h. */
static void fits_a_line(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *x = ls_from(LS_F32, LS_DIMS(4, 1), (float[]){ 0, 1, 2, 3 });
        ls_tensor *y = ls_from(LS_F32, LS_DIMS(4, 1), (float[]){ 1, 3, 5, 7 });
        ls_variable *w = ls_variable_new("w", ls_zeros(LS_F32, LS_DIMS(1, 1)), true);
        ls_variable *b = ls_variable_new("b", ls_zeros(LS_F32, LS_DIMS(1)), true);
        ls_optimizer *sgd = ls_sgd(LS_SGD(.rate = 0.1));
        for (int step = 0; step < 200; step++)
            LS_FRAME {
                ls_tape *tape = ls_tape_open();
                ls_tensor *guess = ls_dense(x, ls_read(w), ls_read(b));
                ls_tensor *loss = ls_mean(ls_mse(guess, y), LS_ALL_AXES, false);
                ls_minimize(sgd, tape, loss, 2, (ls_variable *[]){ w, b });
            }
        assert_true(fabsf(ls_to_float(ls_read(w)) - 2) < 0.01f);
        assert_true(fabsf(ls_to_float(ls_read(b)) - 1) < 0.01f);
        assert_int_equal(ls_iterations(sgd), 200);
        ls_optimizer_free(sgd);
        ls_variable_free(w);
        ls_variable_free(b);
        assert_int_equal(ls_error_pending(), LS_OK);
    }
}

static void only_the_trainable_move(void **state)
{
    (void)state;
    LS_FRAME {
        ls_variable *a = ls_variable_new("a", vec(1, 2), true);
        ls_variable *b = ls_variable_new("b", vec(3, 4), false);
        ls_variable *far = ls_variable_new("far", vec(5, 6), true); /* not in the loss */
        ls_variable *all[3] = { a, b, far };
        ls_optimizer *o = ls_sgd(LS_SGD(.rate = 0.5));
        LS_FRAME {
            ls_tape *tape = ls_tape_open();
            ls_tensor *x = ls_read(a), *y = ls_read(b);
            ls_tensor *loss = ls_sum(ls_mul(x, y), LS_ALL_AXES, false);
            assert_int_equal(ls_minimize(o, tape, loss, 3, all), LS_OK);
            /* The tape has stopped; it can still be asked. */
            ls_tensor *z = ls_mul(x, x);
            assert_true(ls_to_double(ls_sum(ls_gradient(tape, z, x), LS_ALL_AXES, false)) == 0);
            assert_true(ls_to_double(ls_sum(ls_gradient(tape, loss, x), LS_ALL_AXES, false)) == 7);
        }
        is(a, 1 - 1.5, 2 - 2);
        is(b, 3, 4);
        is(far, 5, 6);
        assert_int_equal(ls_iterations(o), 1);
        ls_variable_set_trainable(b, true);
        LS_FRAME {
            ls_tape *tape = ls_tape_open();
            ls_tensor *loss = ls_sum(ls_read(b), LS_ALL_AXES, false);
            assert_int_equal(ls_minimize(o, tape, loss, 3, all), LS_OK);
        }
        is(b, 2.5, 3.5);
        ls_optimizer_free(o);
        for (int i = 0; i < 3; i++)
            ls_variable_free(all[i]);
    }
}

/* A failed update did not happen: no variable, no slot, no count has changed. */
static void a_failure_changes_nothing(void **state)
{
    (void)state;
    for (int adam = 0; adam < 2; adam++)
        LS_FRAME {
            ls_variable *v[3] = { ls_variable_new("a", vec(1, 2), true),
                                  ls_variable_new("b", vec(3, 4), true),
                                  ls_variable_new("c", vec(5, 6), true) };
            ls_optimizer *o = adam ? ls_adam(LS_ADAM(.rate = 0.1)) : ls_sgd(LS_SGD(.rate = 0.1));
            ls_tensor *good = vec(1, -1);
            model x = { .w = 5 };
            assert_int_equal(ls_apply_gradients(o, 3, (ls_tensor *[]){ good, good, good }, v),
                             LS_OK);
            adam ? model_adam(&x, 1, 0.1, 0.9, 0.999, 1e-7) : model_sgd(&x, 1, 0.1);
            double before[3][2], after[2];
            for (int i = 0; i < 3; i++)
                ls_copy_out(ls_read(v[i]), before[i], sizeof before[i]);

            ls_tensor *bad[] = { ls_zeros(LS_F64, LS_DIMS(3)), ls_zeros(LS_F32, LS_DIMS(2)),
                                 ls_zeros(LS_I64, LS_DIMS(2)), ls_zeros(LS_F64, LS_DIMS(2, 1)),
                                 ls_scalar(LS_F64, 1),         NULL };
            for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
                for (int place = 0; place < 3; place++) {
                    ls_tensor *g[3] = { good, good, good };
                    g[place] = bad[k];
                    assert_int_not_equal(ls_apply_gradients(o, 3, g, v), LS_OK);
                    assert_int_not_equal(ls_error(), LS_OK);
                }
            }
            ls_tensor *goods[3] = { good, good, good };
            assert_int_equal(ls_apply_gradients(o, 3, goods, (ls_variable *[]){ v[0], NULL, v[2] }),
                             LS_INVALID);
            failed(LS_INVALID);
            assert_int_equal(ls_apply_gradients(o, -1, goods, v), LS_INVALID);
            failed(LS_INVALID);
            assert_int_equal(ls_apply_gradients(o, 3, NULL, v), LS_INVALID);
            failed(LS_INVALID);
            assert_int_equal(ls_apply_gradients(o, 3, goods, NULL), LS_INVALID);
            failed(LS_INVALID);
            assert_int_equal(ls_apply_gradients(NULL, 3, goods, v), LS_INVALID);
            failed(LS_INVALID);
            LS_FRAME { /* rows outside the table, found while applying */
                ls_tensor *rows = ls_from(LS_I32, LS_DIMS(1), (int32_t[]){ 2 });
                ls_tensor *outside = ls_sparse(rows, ls_ones(LS_F64, LS_DIMS(1)), 2);
                ls_tensor *g[3] = { good, good, outside };
                assert_int_not_equal(ls_apply_gradients(o, 3, g, v), LS_OK);
                assert_int_not_equal(ls_error(), LS_OK);
            }
            assert_int_equal(ls_iterations(o), 1);
            for (int i = 0; i < 3; i++) {
                ls_copy_out(ls_read(v[i]), after, sizeof after);
                assert_memory_equal(after, before[i], sizeof after);
            }
            /* The next update goes on as if nothing had been tried. */
            assert_int_equal(ls_apply_gradients(o, 3, goods, v), LS_OK);
            adam ? model_adam(&x, 1, 0.1, 0.9, 0.999, 1e-7) : model_sgd(&x, 1, 0.1);
            ls_copy_out(ls_read(v[2]), after, sizeof after);
            assert_true(fabs(after[0] - x.w) < 1e-12);
            assert_int_equal(ls_iterations(o), 2);
            ls_optimizer_free(o);
            for (int i = 0; i < 3; i++)
                ls_variable_free(v[i]);
        }
}

static void bad_losses(void **state)
{
    (void)state;
    LS_FRAME {
        ls_variable *v = ls_variable_new("v", vec(1, 2), true);
        ls_optimizer *o = ls_sgd(LS_SGD(.rate = 1));
        ls_tape *tape = ls_tape_open();
        ls_tensor *loss = ls_sum(ls_read(v), LS_ALL_AXES, false);
        assert_int_equal(ls_minimize(o, tape, NULL, 1, &v), LS_INVALID);
        assert_non_null(strstr(ls_error_text(), "ls_minimize: loss"));
        failed(LS_INVALID);
        assert_int_equal(ls_minimize(o, NULL, loss, 1, &v), LS_INVALID);
        assert_non_null(strstr(ls_error_text(), "ls_minimize: the tape"));
        failed(LS_INVALID);
        assert_int_equal(ls_minimize(NULL, tape, loss, 1, &v), LS_INVALID);
        failed(LS_INVALID);
        assert_int_equal(ls_minimize(o, tape, loss, 1, NULL), LS_INVALID);
        failed(LS_INVALID);
        assert_int_equal(ls_minimize(o, tape, loss, 1, (ls_variable *[]){ NULL }), LS_INVALID);
        failed(LS_INVALID);
        assert_int_not_equal(ls_minimize(o, tape, ls_scalar_int(LS_I32, 1), 1, &v), LS_OK);
        assert_int_not_equal(ls_error(), LS_OK);
        /* An earlier failure comes through as what it was. */
        ls_tensor *broken = ls_matmul(loss, loss);
        assert_null(broken);
        ls_status cause = ls_error_pending();
        assert_int_equal(ls_minimize(o, tape, broken, 1, &v), cause);
        assert_int_equal(ls_error(), cause);
        ls_tape_close(tape);
        assert_int_equal(ls_minimize(o, tape, loss, 1, &v), LS_STATE);
        failed(LS_STATE);
        assert_int_equal(ls_iterations(o), 0);
        is(v, 1, 2);
        ls_optimizer_free(o);
        ls_variable_free(v);
    }
}

static void snapshots_survive_an_update(void **state)
{
    (void)state;
    LS_FRAME {
        ls_variable *v = ls_variable_new("v", vec(1, 2), true);
        ls_optimizer *o = ls_adam(LS_ADAM(.rate = 0.1));
        ls_tensor *before = ls_read(v);
        ls_tensor *g = ls_read(v); /* a gradient that is the variable itself */
        assert_int_equal(ls_apply_gradients(o, 1, &g, &v), LS_OK);
        double out[2];
        ls_copy_out(before, out, sizeof out);
        assert_true(out[0] == 1 && out[1] == 2);
        model x = { .w = 1 };
        model_adam(&x, 1, 0.1, 0.9, 0.999, 1e-7);
        ls_copy_out(ls_read(v), out, sizeof out);
        assert_true(fabs(out[0] - x.w) < 1e-12);
        ls_optimizer_free(o);
        ls_variable_free(v);
    }
}

/* ---- sparse ----------------------------------------------------------------------- */

static void sparse_is_the_dense_it_stands_for(void **state)
{
    (void)state;
    enum { ROWS = 9, WIDTH = 5 };
    for (int adam = 0; adam < 2; adam++)
        LS_FRAME {
            ls_random_seed(11);
            ls_tensor *start = ls_random_normal(LS_F32, LS_DIMS(ROWS, WIDTH), 0, 1);
            ls_variable *s = ls_variable_new("s", start, true);
            ls_variable *d = ls_variable_new("d", start, true);
            ls_optimizer *os = adam ? ls_adam(LS_ADAM(.rate = 0.1)) : ls_sgd(LS_SGD(.rate = 0.1));
            ls_optimizer *od = adam ? ls_adam(LS_ADAM(.rate = 0.1)) : ls_sgd(LS_SGD(.rate = 0.1));
            for (int t = 0; t < 20; t++)
                LS_FRAME {
                    /* Row 8 is never touched, row 3 often and twice at once. */
                    int32_t ids[4] = { 3, t % 8, (t * 5) % 8, 3 };
                    ls_tensor *rows = ls_from(LS_I32, LS_DIMS(4), ids);
                    ls_tensor *values = ls_random_normal(LS_F32, LS_DIMS(4, WIDTH), 0, 1);
                    ls_tensor *g = ls_sparse(rows, values, ROWS), *dense = ls_densify(g);
                    assert_true(ls_is_sparse(g) && !ls_is_sparse(dense));
                    assert_int_equal(ls_apply_gradients(os, 1, &g, &s), LS_OK);
                    assert_int_equal(ls_apply_gradients(od, 1, &dense, &d), LS_OK);
                }
            float a[ROWS * WIDTH], b[ROWS * WIDTH], first[ROWS * WIDTH];
            ls_copy_out(ls_read(s), a, sizeof a);
            ls_copy_out(ls_read(d), b, sizeof b);
            ls_copy_out(start, first, sizeof first);
            assert_memory_equal(a, b, sizeof a); /* the same bits */
            assert_memory_equal(a + 8 * WIDTH, first + 8 * WIDTH, WIDTH * sizeof *a);
            assert_memory_not_equal(a, first, sizeof a);
            ls_optimizer_free(os);
            ls_optimizer_free(od);
            ls_variable_free(s);
            ls_variable_free(d);
        }
}

static void embeddings_learn(void **state)
{
    (void)state;
    LS_FRAME {
        ls_variable *table = ls_variable_new("table", ls_zeros(LS_F64, LS_DIMS(4, 2)), true);
        ls_optimizer *o = ls_sgd(LS_SGD(.rate = 1));
        ls_tensor *ids = ls_from(LS_I64, LS_DIMS(3), (int64_t[]){ 1, 3, 1 });
        LS_FRAME {
            ls_tape *tape = ls_tape_open();
            ls_tensor *loss = ls_sum(ls_embedding(ls_read(table), ids), LS_ALL_AXES, false);
            assert_int_equal(ls_minimize(o, tape, loss, 1, &table), LS_OK);
        }
        double got[8], want[8] = { 0, 0, -2, -2, 0, 0, -1, -1 };
        ls_copy_out(ls_read(table), got, sizeof got);
        assert_memory_equal(got, want, sizeof got);
        ls_optimizer_free(o);
        ls_variable_free(table);
    }
}

/* ---- slots -------------------------------------------------------------------------- */

/* A variable that took the place of a freed one starts with slots of its own. */
static void slots_belong_to_one_variable(void **state)
{
    (void)state;
    ls_optimizer *o = ls_adam(LS_ADAM(.rate = 0.1));
    for (int turn = 0; turn < 8; turn++)
        LS_FRAME {
            int64_t n = turn % 2 ? 2 : 300;
            ls_variable *v = ls_variable_new("v", ls_zeros(LS_F64, LS_DIMS(n)), true);
            ls_tensor *g = ls_full(LS_F64, LS_DIMS(n), 3);
            assert_int_equal(ls_apply_gradients(o, 1, &g, &v), LS_OK);
            /* Fresh moments; the count of updates is the optimizer's. */
            model x = { .t = turn };
            model_adam(&x, 3, 0.1, 0.9, 0.999, 1e-7);
            const double *w = ls_data(ls_read(v));
            if (fabs(w[0] - x.w) > 1e-12 || fabs(w[n - 1] - x.w) > 1e-12)
                fail_msg("turn %d: %.15g, not %.15g", turn, w[0], x.w);
            ls_variable_free(v);
        }
    ls_optimizer_free(o);
}

static void many_variables_in_any_order(void **state)
{
    (void)state;
    enum { V = 20 };
    ls_variable *v[V];
    model x[V];
    ls_optimizer *o = ls_adam(LS_ADAM(.rate = 0.05));
    LS_FRAME {
        for (int i = 0; i < V; i++) {
            x[i] = (model){ .w = i };
            v[i] = ls_variable_new("v", ls_full(LS_F64, LS_DIMS(i + 1), i), true);
        }
    }
    for (int t = 0; t < 10; t++)
        LS_FRAME { /* a different order, and a different part, each step */
            ls_variable *some[V];
            ls_tensor *g[V];
            int n = 0;
            for (int k = 0; k < V; k++) {
                int i = (k * 7 + t) % V;
                x[i].t = t; /* the optimizer's count */
                if ((i + t) % 3 == 0)
                    continue;
                some[n] = v[i];
                g[n++] = ls_full(LS_F64, LS_DIMS(i + 1), slope(t, i));
                model_adam(&x[i], slope(t, i), 0.05, 0.9, 0.999, 1e-7);
            }
            assert_int_equal(ls_apply_gradients(o, n, g, some), LS_OK);
        }
    LS_FRAME {
        for (int i = 0; i < V; i++) {
            const double *w = ls_data(ls_read(v[i]));
            assert_true(fabs(w[0] - x[i].w) < 1e-10 && fabs(w[i] - x[i].w) < 1e-10);
        }
    }
    ls_optimizer_free(o);
    for (int i = 0; i < V; i++)
        ls_variable_free(v[i]);
}

/* A variable is updated where it is, whatever device the thread has. */
static void variables_on_another_device(void **state)
{
    (void)state;
    for (int adam = 0; adam < 2; adam++)
        LS_FRAME {
            ls_optimizer *o = adam ? ls_adam(LS_ADAM(.rate = 0.1)) : ls_sgd(LS_SGD(.rate = 0.1));
            ls_variable *v = NULL;
            LS_DEVICE ("/cpu:1")
                v = ls_variable_new("v", vec(3, 4), true);
            assert_string_equal(ls_device_of(ls_read(v)),
                                "/job:localhost/replica:0/task:0/device:CPU:1");
            model x = { .w = 3 };
            for (int t = 0; t < 3; t++)
                LS_FRAME {
                    ls_tape *tape = ls_tape_open();
                    ls_tensor *loss = ls_sum(ls_read(v), LS_ALL_AXES, false);
                    if (ls_minimize(o, tape, loss, 1, &v))
                        fail_msg("%s", ls_error_report());
                    adam ? model_adam(&x, 1, 0.1, 0.9, 0.999, 1e-7) : model_sgd(&x, 1, 0.1);
                }
            is(v, x.w, x.w + 1);
            ls_optimizer_free(o);
            ls_variable_free(v);
        }
}

/* Variables and gradients of several devices: all are updated, or none. */
static void devices_mixed(void **state)
{
    (void)state;
    LS_FRAME {
        ls_optimizer *o = ls_sgd(LS_SGD(.rate = 1));
        ls_variable *v[2] = { ls_variable_new("here", vec(1, 2), true), NULL };
        ls_tensor *g[2] = { vec(1, 1), NULL };
        LS_DEVICE ("/cpu:1") {
            v[1] = ls_variable_new("there", vec(3, 4), true);
            g[1] = vec(1, 1);
        }
        if (ls_apply_gradients(o, 2, g, v) == LS_OK) { /* each beside its own */
            is(v[0], 0, 1);
            is(v[1], 2, 3);
        } else {
            assert_int_not_equal(ls_error(), LS_OK);
            is(v[0], 1, 2);
            is(v[1], 3, 4);
        }
        assert_int_equal(ls_assign(v[0], vec(1, 2)), LS_OK);
        ls_variable_free(v[1]);
        v[1] = ls_variable_new("also here", vec(3, 4), true);
        int64_t before = ls_iterations(o);
        if (ls_apply_gradients(o, 2, g, v) != LS_OK) { /* a gradient from elsewhere */
            assert_int_not_equal(ls_error(), LS_OK);
            is(v[0], 1, 2);
            is(v[1], 3, 4);
            assert_int_equal(ls_iterations(o), before);
        }
        ls_optimizer_free(o);
        ls_variable_free(v[0]);
        ls_variable_free(v[1]);
    }
}

/* A loss of nothing it could train is a mistake, not a step without effect. */
static void a_loss_of_no_variable(void **state)
{
    (void)state;
    for (int adam = 0; adam < 2; adam++)
        LS_FRAME {
            ls_variable *v = ls_variable_new("v", vec(1, 2), true);
            ls_variable *w = ls_variable_new("w", vec(3, 4), true);
            ls_variable *both[] = { v, w };
            ls_optimizer *o = adam ? ls_adam(NULL) : ls_sgd(LS_SGD(.rate = 1));
            ls_tensor *early = ls_sum(ls_read(v), LS_ALL_AXES, false); /* before the tape */
            ls_tape *tape = ls_tape_open();
            assert_int_equal(ls_minimize(o, tape, early, 2, both), LS_INVALID);
            assert_non_null(strstr(ls_error_text(), "ls_minimize"));
            assert_non_null(strstr(ls_error_text(), "depends on none"));
            failed(LS_INVALID);
            tape = ls_tape_open();
            ls_tensor *constant = ls_sum(ls_mul(vec(1, 2), vec(3, 4)), LS_ALL_AXES, false);
            assert_int_equal(ls_minimize(o, tape, constant, 2, both), LS_INVALID);
            failed(LS_INVALID);
            assert_int_equal(ls_iterations(o), 0);
            is(v, 1, 2);
            is(w, 3, 4);

            tape = ls_tape_open(); /* one of two is enough */
            ls_tensor *loss = ls_sum(ls_read(w), LS_ALL_AXES, false);
            assert_int_equal(ls_minimize(o, tape, loss, 2, both), LS_OK);
            assert_int_equal(ls_iterations(o), 1);
            is(v, 1, 2);
            ls_optimizer_free(o);
            ls_variable_free(v);
            ls_variable_free(w);
        }
    assert_int_equal(ls_error_pending(), LS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(fits_a_line, clean),
        cmocka_unit_test_setup(only_the_trainable_move, clean),
        cmocka_unit_test_setup(a_failure_changes_nothing, clean),
        cmocka_unit_test_setup(bad_losses, clean),
        cmocka_unit_test_setup(snapshots_survive_an_update, clean),
        cmocka_unit_test_setup(sparse_is_the_dense_it_stands_for, clean),
        cmocka_unit_test_setup(embeddings_learn, clean),
        cmocka_unit_test_setup(slots_belong_to_one_variable, clean),
        cmocka_unit_test_setup(many_variables_in_any_order, clean),
        cmocka_unit_test_setup(variables_on_another_device, clean),
        cmocka_unit_test_setup(devices_mixed, clean),
        cmocka_unit_test_setup(a_loss_of_no_variable, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
