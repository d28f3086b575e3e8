/*
 * Gradients of anything with respect to anything: <lockstep/tape.h> against
 * derivatives done by hand, in f64.
 */
#include <lockstep/device.h>
#include <lockstep/ops.h>
#include <lockstep/tape.h>
#include <lockstep/variable.h>

#include <math.h>
#include <pthread.h>

#include "tensor/test_support.h"

static ls_tensor *number(double x)
{
    return ls_scalar(LS_F64, x);
}

static void near(const ls_tensor *t, double want)
{
    double got = ls_to_double(t);
    if (ls_error_pending() || !(fabs(got - want) <= 1e-12 * (1 + fabs(want))))
        fail_msg("%.17g, not %.17g (%s)", got, want, ls_error_report());
}

static void all_near(const ls_tensor *t, int n, const double *want)
{
    assert_int_equal(ls_count(t), n);
    const double *got = ls_data(t);
    assert_non_null(got);
    for (int i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) <= 1e-12 * (1 + fabs(want[i]))))
            fail_msg("element %d: %.17g, not %.17g", i, got[i], want[i]);
}

static void example_of_the_header(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *x = number(3);
        ls_tape *tape = ls_tape_open();
        ls_tensor *y = ls_mul(x, x);
        ls_tensor *dy = ls_gradient(tape, y, x);
        near(dy, 6);
        ls_tensor *ddy = ls_gradient(tape, dy, x);
        near(ddy, 2);
        near(ls_gradient(tape, ddy, x), 0);
        near(x, 3);
        near(y, 9); /* asking changes nothing */
    }
}

static void any_value_to_any(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *x = number(0.5), *w = number(2);
        ls_tape *tape = ls_tape_open();
        ls_tensor *a = ls_mul(x, w); /* 1 */
        ls_tensor *b = ls_exp(a);    /* e */
        ls_tensor *c = ls_add(b, a); /* e + 1 */
        ls_tensor *d = ls_mul(c, b);
        double e = exp(1);
        near(ls_gradient(tape, c, x), w ? 2 * (e + 1) : 0);
        near(ls_gradient(tape, c, w), 0.5 * (e + 1));
        near(ls_gradient(tape, c, a), e + 1); /* intermediate values */
        near(ls_gradient(tape, c, b), 1);
        near(ls_gradient(tape, d, b), e + (e + 1));
        near(ls_gradient(tape, d, c), e);
        near(ls_gradient(tape, b, a), e);
        near(ls_gradient(tape, a, b), 0); /* a does not depend on b */
        near(ls_gradient(tape, w, x), 0); /* nor w on x */
        near(ls_gradient(tape, c, c), 1); /* y == x */
        near(ls_gradient(tape, x, x), 1);
        near(ls_gradient(tape, d, number(7)), 0); /* never seen */
        assert_int_equal(ls_error_pending(), LS_OK);
    }
}

static void shape_of_x(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *x = ls_from(LS_F64, LS_DIMS(2, 2), (double[]){ 1, 2, 3, 4 });
        ls_tensor *row = ls_from(LS_F64, LS_DIMS(2), (double[]){ 10, 20 });
        ls_tensor *unused = ls_zeros(LS_F64, LS_DIMS(3, 0, 2));
        ls_tape *tape = ls_tape_open();
        ls_tensor *y = ls_mul(x, row); /* summed first */
        ls_tensor *dx = ls_gradient(tape, y, x), *drow = ls_gradient(tape, y, row);
        assert_string_equal(ls_describe(dx), "f64[2,2]");
        all_near(dx, 4, (double[]){ 10, 20, 10, 20 });
        assert_string_equal(ls_describe(drow), "f64[2]");
        all_near(drow, 2, (double[]){ 4, 6 });
        assert_string_equal(ls_describe(ls_gradient(tape, y, unused)), "f64[3,0,2]");
        ls_tensor *f32 = ls_ones(LS_F32, LS_DIMS(5));
        ls_tensor *zero = ls_gradient(tape, y, f32);
        assert_string_equal(ls_describe(zero), "f32[5]");
        assert_true(((const float *)ls_data(zero))[4] == 0);
    }
}

static void many_at_once(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *a = number(2), *b = number(5);
        ls_tape *tape = ls_tape_open();
        ls_tensor *p = ls_mul(a, b), *q = ls_mul(ls_mul(a, a), a);
        ls_value *xs =
            ls_dict(2, (const char *[]){ "b", "a" },
                    (ls_value *[]){ ls_leaf(b), ls_tensors(2, (ls_tensor *[]){ a, a }) });
        ls_value *ys = ls_tensors(2, (ls_tensor *[]){ p, q });
        ls_value *g = ls_gradients(tape, ys, xs);
        assert_int_equal(ls_same_structure(g, xs), LS_OK);
        near(ls_leaf_tensor(ls_get(g, "b")), 2);
        near(ls_item(ls_get(g, "a"), 0), 5 + 12); /* x twice: each gets all of it */
        near(ls_item(ls_get(g, "a"), 1), 5 + 12);

        ls_value *seeds = ls_tensors(2, (ls_tensor *[]){ number(10), number(-1) });
        g = ls_gradients_from(tape, ys, seeds, xs);
        near(ls_leaf_tensor(ls_get(g, "b")), 20);
        near(ls_item(ls_get(g, "a"), 0), 50 - 12);

        /* One y twice counts twice; a y that is an x gets its seed. */
        ls_value *twice = ls_tensors(2, (ls_tensor *[]){ p, p });
        near(ls_item(ls_gradients(tape, twice, ls_tensors(1, &b)), 0), 4);
        ls_value *mixed = ls_tensors(2, (ls_tensor *[]){ p, b });
        near(ls_item(ls_gradients(tape, mixed, ls_tensors(1, &b)), 0), 3);

        /* Nothing asked, nothing of. */
        ls_value *none = ls_gradients(tape, ys, ls_list(0, NULL));
        assert_int_equal(ls_length(none), 0);
        near(ls_item(ls_gradients(tape, ls_list(0, NULL), ls_tensors(1, &a)), 0), 0);

        /* Seeds that do not fit. */
        assert_null(ls_gradients_from(tape, ys, ls_tensors(1, &a), xs));
        failed(LS_INVALID);
        ls_value *wide = ls_tensors(2, (ls_tensor *[]){ ls_ones(LS_F64, LS_DIMS(2)), b });
        assert_null(ls_gradients_from(tape, ys, wide, xs));
        failed(LS_SHAPE);
        ls_value *narrow = ls_tensors(2, (ls_tensor *[]){ ls_scalar(LS_F32, 1), b });
        assert_null(ls_gradients_from(tape, ys, narrow, xs));
        failed(LS_SHAPE);
    }
}

/* A seed is itself a value that gradients flow to. */
static void gradient_through_the_seed(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *x = number(3), *s = number(7);
        ls_tape *tape = ls_tape_open();
        ls_tensor *y = ls_mul(x, x);
        ls_value *g = ls_gradients_from(tape, ls_leaf(y), ls_leaf(s), ls_leaf(x));
        near(ls_leaf_tensor(g), 42);
        near(ls_gradient(tape, ls_leaf_tensor(g), s), 6);
        near(ls_gradient(tape, ls_leaf_tensor(g), x), 14);
    }
}

static void diamonds_add_up(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *x = number(1.5);
        ls_tape *tape = ls_tape_open();
        ls_tensor *y = x;
        for (int i = 0; i < 10; i++)
            y = ls_add(y, y); /* 1024 paths */
        near(ls_gradient(tape, y, x), 1024);
        ls_tensor *z = ls_sub(ls_mul(x, x), ls_mul(x, x));
        near(ls_gradient(tape, z, x), 0);
        ls_tensor *long_way = x;
        for (int i = 0; i < 2000; i++)
            long_way = ls_scale(long_way, 1.0);
        near(ls_gradient(tape, long_way, x), 1);
    }
}

static ls_tensor *cube(ls_tensor *x)
{
    return ls_mul(ls_mul(x, x), x);
}

static void gradient_of_gradient_on_two_tapes(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *x = number(2);
        ls_tape *outer = ls_tape_open();
        ls_tensor *dy = NULL;
        LS_FRAME {
            ls_tape *inner = ls_tape_open();
            dy = ls_hand_up(ls_gradient(inner, cube(x), x)); /* 3 x^2 */
        }
        near(dy, 12);
        ls_tensor *ddy = ls_gradient(outer, dy, x);
        near(ddy, 12);
        near(ls_gradient(outer, ddy, x), 6);

        /* The inner tape stopped: the outer one still sees its backward pass. */
        ls_tape *inner = ls_tape_open();
        ls_tensor *y = cube(x);
        assert_int_equal(ls_tape_stop(inner), LS_OK);
        dy = ls_gradient(inner, y, x);
        near(dy, 12);
        near(ls_gradient(outer, dy, x), 12);
        near(ls_gradient(inner, dy, x), 0); /* made after it stopped */
    }
}

static void stop_gradient(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *x = number(3);
        ls_tape *tape = ls_tape_open();
        ls_tensor *held = ls_stop_gradient(ls_mul(x, x));
        near(held, 9);
        near(ls_gradient(tape, ls_mul(held, x), x), 9);
        near(ls_gradient(tape, held, x), 0);
        near(ls_gradient(tape, ls_mul(held, x), held), 3); /* as a value of its own */
        assert_null(ls_stop_gradient(NULL));
        failed(LS_INVALID);
    }
}

static void only_what_the_tape_saw(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *x = number(2);
        ls_tensor *before = ls_mul(x, x); /* no tape yet */
        ls_tape *tape = ls_tape_open();
        ls_tensor *y = ls_mul(before, x);
        near(ls_gradient(tape, y, x), 4); /* `before` is a constant */
        near(ls_gradient(tape, y, before), 2);
        assert_int_equal(ls_tape_stop(tape), LS_OK);
        assert_int_equal(ls_tape_stop(tape), LS_OK);
        ls_tensor *after = ls_mul(y, y);
        near(ls_gradient(tape, after, x), 0);
        near(ls_gradient(tape, y, x), 4); /* can still be asked, again and again */
        near(ls_gradient(tape, y, x), 4);

        ls_tape *second = ls_tape_open(); /* sees its own part only */
        ls_tensor *z = ls_mul(after, after);
        near(ls_gradient(second, z, after), 2 * 64);
        near(ls_gradient(second, z, y), 0);
        near(ls_gradient(tape, z, y), 0);
    }
}

/* The outer tape runs on: what came before the inner one is a constant to it. */
static void an_inner_tape_sees_its_own_part(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *x = number(3);
        ls_tape *outer = ls_tape_open();
        ls_tensor *y = ls_mul(x, x);
        ls_tape *inner = ls_tape_open();
        near(ls_gradient(inner, y, x), 0);
        ls_tensor *z = ls_mul(y, x);
        near(ls_gradient(inner, z, x), 9); /* y is held */
        near(ls_gradient(inner, z, y), 3);
        near(ls_gradient(inner, ls_mul(y, y), x), 0);
        near(ls_gradient(outer, z, x), 27);
        near(ls_gradient(outer, y, x), 6);
    }
}

static void closed_tapes_say_so(void **state)
{
    (void)state;
    size_t before = memory();
    LS_FRAME {
        ls_tensor *x = number(2);
        ls_tape *tape = ls_tape_open();
        ls_tensor *y = ls_mul(x, x);
        assert_int_equal(ls_tape_close(tape), LS_OK);
        assert_null(ls_gradient(tape, y, x));
        assert_non_null(strstr(ls_error_text(), "close"));
        failed(LS_STATE);
        assert_int_equal(ls_tape_close(tape), LS_STATE);
        failed(LS_STATE);
        assert_int_equal(ls_tape_stop(tape), LS_STATE);
        failed(LS_STATE);

        assert_null(ls_gradient(NULL, y, x));
        failed(LS_INVALID);
        assert_int_equal(ls_tape_stop(NULL), LS_INVALID);
        failed(LS_INVALID);
        assert_int_equal(ls_tape_close(NULL), LS_INVALID);
        failed(LS_INVALID);
    }
    assert_int_equal(memory(), before);
}

/* Closing the outer tape first leaves the inner one whole. */
static void tapes_close_in_any_order(void **state)
{
    (void)state;
    size_t before = memory();
    LS_FRAME {
        ls_tensor *x = number(2);
        ls_tape *outer = ls_tape_open();
        ls_tensor *y = ls_mul(x, x);
        ls_tape *inner = ls_tape_open();
        ls_tensor *z = ls_mul(y, y);
        assert_int_equal(ls_tape_close(outer), LS_OK);
        near(ls_gradient(inner, z, y), 8);
        ls_tensor *more = ls_mul(z, z);
        near(ls_gradient(inner, more, z), 32);
        assert_int_equal(ls_tape_close(inner), LS_OK);
        ls_tape *again = ls_tape_open();
        near(ls_gradient(again, ls_mul(x, x), x), 4);
    }
    assert_int_equal(memory(), before);
}

static void frames_close_under_the_tape(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *x = number(2), *y = NULL;
        ls_tape *tape = ls_tape_open();
        LS_FRAME { /* what the tape needs outlives this frame */
            ls_tensor *a = ls_mul(x, x);
            y = ls_hand_up(ls_mul(a, x));
        }
        near(ls_gradient(tape, y, x), 12);
        ls_tensor *kept = ls_keep(y); /* handles of one value are one value */
        near(ls_gradient(tape, kept, ls_import(x)), 12);
        ls_drop(kept);
    }
    assert_int_equal(ls_error_pending(), LS_OK);
}

typedef struct visitor {
    ls_tape *tape;
    ls_tensor *x;
    ls_status asked, stopped;
    double own;
} visitor;

static void *ask_from_elsewhere(void *arg)
{
    visitor *v = arg;
    LS_FRAME {
        ls_tensor *x = ls_import(v->x);
        ls_mul(x, x); /* not noted over there */
        v->asked = ls_gradient(v->tape, x, x) ? LS_OK : ls_error();
        v->stopped = ls_tape_stop(v->tape);
        ls_error();
        ls_tape *mine = ls_tape_open();
        v->own = ls_to_double(ls_gradient(mine, ls_mul(x, x), x));
    }
    return NULL;
}

static void a_tape_belongs_to_its_thread(void **state)
{
    (void)state;
    LS_FRAME {
        visitor v = { .tape = ls_tape_open(), .x = ls_keep(number(5)) };
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, ask_from_elsewhere, &v), 0);
        pthread_join(thread, NULL);
        assert_int_equal(v.asked, LS_STATE);
        assert_int_equal(v.stopped, LS_STATE);
        assert_true(v.own == 10);
        near(ls_gradient(v.tape, ls_mul(v.x, v.x), v.x), 10); /* still notes here */
        ls_drop(v.x);
    }
}

static void integers_are_refused(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *x = number(2), *i = ls_scalar_int(LS_I32, 2);
        ls_tensor *flag = ls_ones(LS_BOOL, LS_SCALAR);
        ls_tape *tape = ls_tape_open();
        ls_tensor *y = ls_mul(x, ls_cast(i, LS_F64));
        assert_null(ls_gradient(tape, y, i));
        assert_non_null(strstr(ls_error_text(), "i32"));
        failed(LS_SHAPE);
        assert_null(ls_gradient(tape, y, flag));
        failed(LS_SHAPE);
        assert_null(ls_gradient(tape, ls_add(i, i), x));
        failed(LS_SHAPE);
        near(ls_gradient(tape, y, x), 2); /* integers on the way do no harm */
        assert_null(ls_gradient(tape, NULL, x));
        failed(LS_INVALID);
        assert_null(ls_gradient(tape, y, NULL));
        failed(LS_INVALID);
    }
}

/* Through a cast to an integer nothing flows; through one between floats it does. */
static void casts(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *x = ls_scalar(LS_F32, 2.5);
        ls_tape *tape = ls_tape_open();
        ls_tensor *wide = ls_cast(x, LS_F64);
        ls_tensor *dx = ls_gradient(tape, ls_mul(wide, wide), x);
        assert_string_equal(ls_describe(dx), "f32[]");
        assert_true(ls_to_float(dx) == 5);
        ls_tensor *whole = ls_cast(ls_cast(x, LS_I32), LS_F32);
        assert_true(ls_to_float(ls_gradient(tape, ls_mul(whole, x), x)) == 2);
    }
}

static void reuse_frees_as_it_goes(void **state)
{
    (void)state;
    enum { N = 1000 };
    LS_FRAME {
        ls_tensor *x = ls_full(LS_F64, LS_DIMS(N), 1.0001);
        ls_tape *tape = ls_tape_open();
        ls_tensor *y = x;
        for (int i = 0; i < 50; i++)
            y = ls_mul(y, x);
        assert_int_equal(ls_tape_stop(tape), LS_OK);
        size_t before = memory();
        ls_gradient(tape, y, x);
        /* What remains is one gradient, not fifty. */
        assert_true(memory() <= before + 4 * N * sizeof(double));
    }
}

static void a_loop_stays_flat(void **state)
{
    (void)state;
    ls_variable *v = NULL;
    LS_FRAME {
        v = ls_variable_new("v", ls_full(LS_F64, LS_DIMS(10), 1), true);
    }
    size_t before = memory();
    for (int i = 0; i < 1000; i++)
        LS_FRAME {
            ls_tape *tape = ls_tape_open();
            ls_tensor *y = ls_mul(ls_read(v), ls_read(v));
            ls_tensor *g = ls_gradient(tape, y, ls_read(v));
            assert_int_equal(ls_assign_sub(v, ls_scale(g, 0.01)), LS_OK);
            if (i % 2)
                break;
        }
    assert_int_equal(memory(), before);
    ls_variable_free(v);
}

static void *leave_a_tape_open(void *arg)
{
    ls_tensor *x = number(1);
    ls_tape_open();
    ls_mul(x, x);
    ls_frame_open();
    ls_tape_open();
    ls_mul(x, x);
    return arg;
}

static void thread_end_closes_tapes(void **state)
{
    (void)state;
    size_t before = memory();
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, leave_a_tape_open, NULL), 0);
    pthread_join(thread, NULL);
    assert_int_equal(memory(), before);
}

/* Same bits, however the gradient is asked for. */
static void same_bits_every_time(void **state)
{
    (void)state;
    LS_FRAME {
        float data[64];
        for (int i = 0; i < 64; i++)
            data[i] = sinf((float)i);
        ls_tensor *x = ls_from(LS_F32, LS_DIMS(8, 8), data);
        float first[64], again[64];
        for (int turn = 0; turn < 4; turn++)
            LS_FRAME {
                ls_tape *tape = ls_tape_open();
                ls_tensor *h = ls_tanh(ls_matmul(x, x));
                ls_tensor *y = ls_sum(ls_mul(h, ls_add(h, x)), LS_ALL_AXES, false);
                if (turn % 2)
                    ls_tape_stop(tape);
                ls_tensor *g = ls_gradient(tape, y, x);
                assert_int_equal(ls_copy_out(g, turn ? again : first, sizeof first), LS_OK);
                if (turn)
                    assert_memory_equal(again, first, sizeof first);
            }
    }
}

/* Operators run where their inputs are; so do their gradients, whatever device
 * the thread has for new tensors. */
static ls_tensor *composite(int which, ls_tensor *x)
{
    ls_tensor *labels = NULL;
    LS_DEVICE ("/cpu:1")
        labels = ls_zeros(LS_I32, LS_DIMS(2));
    switch (which) {
    case 0:
        return ls_mul(x, x);
    case 1:
        return ls_scale(ls_shift(x, 1), 3);
    case 2:
        return ls_mean(ls_square(x), LS_ALL_AXES, false);
    case 3:
        return ls_max(x, LS_AXES(1), false);
    case 4:
        return ls_sparse_softmax_xent(x, labels);
    case 5:
        return ls_gelu(ls_sigmoid(ls_tanh(x)), true);
    case 6:
        return ls_dropout(x, 0.5);
    case 7:
        return ls_concat(2, (ls_tensor *[]){ x, ls_relu(x) }, 0);
    case 8:
        return ls_embedding(x, labels);
    case 9:
        return ls_matmul_t(x, true, x, false);
    case 10:
        return ls_mse(x, ls_clip(x, -1, 1));
    case 11:
        return ls_softplus(ls_log_softmax(ls_abs(x), -1));
    case 12:
        return ls_pow(ls_exp(x), ls_cos(x));
    case 13:
        return ls_where(ls_greater(x, ls_neg(x)), ls_maximum(x, ls_neg(x)), x);
    case 14:
        return ls_slice(ls_pad(x, 2, (int64_t[]){ 1, 1 }, (int64_t[]){ 1, 1 }, 2), 2,
                        (int64_t[]){ 0, 0 }, (int64_t[]){ -1, 3 });
    default:
        return NULL;
    }
}

static void on_another_device(void **state)
{
    (void)state;
    static const char there[] = "/job:localhost/replica:0/task:0/device:CPU:1";
    for (int which = 0; which < 15; which++)
        LS_FRAME {
            ls_tensor *x = NULL, *unused = NULL;
            LS_DEVICE ("/cpu:1") {
                x = ls_from(LS_F64, LS_DIMS(2, 3), (double[]){ 1, -2, 3, -0.5, 0.25, 2 });
                unused = ls_ones(LS_F64, LS_DIMS(2));
            }
            ls_tape *tape = ls_tape_open();
            ls_tensor *y = composite(which, x);
            if (!y)
                fail_msg("composite %d: %s", which, ls_error_report());
            assert_string_equal(ls_device_of(y), there);
            ls_tensor *g = ls_gradient(tape, y, x);
            if (!g)
                fail_msg("gradient of composite %d: %s", which, ls_error_report());
            assert_string_equal(ls_device_of(g), there);
            ls_tensor *zero = ls_gradient(tape, y, unused);
            assert_non_null(zero);
            assert_string_equal(ls_device_of(zero), there);
        }
    assert_int_equal(ls_error_pending(), LS_OK);
}

/* A value and its copy elsewhere, used in both places in either order: one gradient,
 * where x is. */
static void a_copy_elsewhere_is_the_same_value(void **state)
{
    (void)state;
    for (int order = 0; order < 2; order++)
        LS_FRAME {
            ls_tensor *x = ls_from(LS_F64, LS_DIMS(2), (double[]){ 2, -5 }), *three = NULL;
            LS_DEVICE ("/cpu:1")
                three = ls_full(LS_F64, LS_DIMS(2), 3);
            ls_tape *tape = ls_tape_open();
            ls_tensor *there = ls_copy_to(x, "/cpu:1"), *a = NULL, *b = NULL;
            if (order == 0)
                a = ls_mul(x, x);
            b = ls_mul(there, three);
            if (order == 1)
                a = ls_mul(x, x);
            assert_string_not_equal(ls_device_of(a), ls_device_of(b));
            const double want[] = { 2 * 2 + 3, 2 * -5 + 3 };
            ls_tensor *g = ls_gradient(tape, ls_add(a, ls_copy_to(b, "/cpu:0")), x);
            assert_non_null(g);
            assert_string_equal(ls_device_of(g), ls_device_of(x));
            all_near(g, 2, want);
            g = ls_gradient(tape, ls_add(ls_copy_to(a, "/cpu:1"), b), x);
            assert_non_null(g);
            assert_string_equal(ls_device_of(g), ls_device_of(x));
            all_near(g, 2, want);

            /* Both sums at once, and a use elsewhere only. */
            ls_value *both = ls_tensors(2, (ls_tensor *[]){ a, b });
            g = ls_leaf_tensor(ls_gradients(tape, both, ls_leaf(x)));
            assert_non_null(g);
            assert_string_equal(ls_device_of(g), ls_device_of(x));
            all_near(g, 2, want);
            g = ls_gradient(tape, b, x);
            assert_non_null(g);
            assert_string_equal(ls_device_of(g), ls_device_of(x));
            all_near(g, 2, (double[]){ 3, 3 });
            assert_string_equal(ls_device_of(ls_gradient(tape, a, there)), ls_device_of(there));
        }
    assert_int_equal(ls_error_pending(), LS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(example_of_the_header, clean),
        cmocka_unit_test_setup(any_value_to_any, clean),
        cmocka_unit_test_setup(shape_of_x, clean),
        cmocka_unit_test_setup(many_at_once, clean),
        cmocka_unit_test_setup(gradient_through_the_seed, clean),
        cmocka_unit_test_setup(diamonds_add_up, clean),
        cmocka_unit_test_setup(gradient_of_gradient_on_two_tapes, clean),
        cmocka_unit_test_setup(stop_gradient, clean),
        cmocka_unit_test_setup(only_what_the_tape_saw, clean),
        cmocka_unit_test_setup(an_inner_tape_sees_its_own_part, clean),
        cmocka_unit_test_setup(closed_tapes_say_so, clean),
        cmocka_unit_test_setup(tapes_close_in_any_order, clean),
        cmocka_unit_test_setup(frames_close_under_the_tape, clean),
        cmocka_unit_test_setup(a_tape_belongs_to_its_thread, clean),
        cmocka_unit_test_setup(integers_are_refused, clean),
        cmocka_unit_test_setup(casts, clean),
        cmocka_unit_test_setup(reuse_frees_as_it_goes, clean),
        cmocka_unit_test_setup(a_loop_stays_flat, clean),
        cmocka_unit_test_setup(thread_end_closes_tapes, clean),
        cmocka_unit_test_setup(same_bits_every_time, clean),
        cmocka_unit_test_setup(on_another_device, clean),
        cmocka_unit_test_setup(a_copy_elsewhere_is_the_same_value, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
