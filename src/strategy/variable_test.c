/*
 * Variables through <lockstep/variable.h>: snapshots, writes that keep shape and
 * dtype, and what a variable leaves behind when it goes.
 */
#include <lockstep/ops.h>
#include <lockstep/random.h>
#include <lockstep/tape.h>
#include <lockstep/variable.h>

#include <math.h>
#include <pthread.h>

#include "tensor/test_support.h"

#include "strategy/variable.h"

static ls_tensor *three(float a, float b, float c)
{
    return ls_from(LS_F32, LS_DIMS(3), (float[]){ a, b, c });
}

static void holds(const ls_tensor *t, float a, float b, float c)
{
    float out[3] = { NAN, NAN, NAN };
    assert_int_equal(ls_copy_out(t, out, sizeof out), LS_OK);
    if (out[0] != a || out[1] != b || out[2] != c)
        fail_msg("(%g %g %g), not (%g %g %g)", (double)out[0], (double)out[1], (double)out[2],
                 (double)a, (double)b, (double)c);
}

static void starts_as_a_copy(void **state)
{
    (void)state;
    size_t before = memory();
    ls_variable *v = NULL;
    char name[] = "weights";
    LS_FRAME {
        v = ls_variable_new(name, three(1, 2, 3), true);
        assert_non_null(v);
        memset(name, 'X', 7);
    }
    LS_FRAME {
        assert_string_equal(ls_variable_name(v), "weights");
        assert_true(ls_variable_trainable(v));
        ls_variable_set_trainable(v, false);
        assert_false(ls_variable_trainable(v));
        holds(ls_read(v), 1, 2, 3);
        assert_string_equal(ls_describe(ls_read(v)), "f32[3]");
    }
    ls_variable_free(v);
    ls_variable_free(NULL);
    assert_int_equal(memory(), before);

    /* Wrapped memory is copied too: a write does not reach it. */
    float mine[3] = { 4, 5, 6 };
    LS_FRAME {
        v = ls_variable_new("w", ls_wrap(LS_F32, LS_DIMS(3), mine, NULL, NULL), false);
        assert_int_equal(ls_assign(v, three(0, 0, 0)), LS_OK);
        assert_true(mine[0] == 4 && mine[2] == 6);
        mine[0] = 9;
        holds(ls_read(v), 0, 0, 0);
        ls_variable_free(v);
    }
    assert_int_equal(memory(), before);
}

static void every_dtype(void **state)
{
    (void)state;
    LS_FRAME {
        for (int d = LS_F32; d <= LS_BF16; d++) {
            ls_variable *v = ls_variable_new("v", ls_full((ls_dtype)d, LS_DIMS(2, 1), 1), false);
            assert_non_null(v);
            assert_int_equal(ls_dtype_of(ls_read(v)), d);
            assert_int_equal(ls_assign(v, ls_zeros((ls_dtype)d, LS_DIMS(2, 1))), LS_OK);
            ls_variable_free(v);
        }
        ls_variable *empty = ls_variable_new("e", ls_zeros(LS_F32, LS_DIMS(0, 4)), true);
        assert_int_equal(ls_count(ls_read(empty)), 0);
        assert_int_equal(ls_assign_add(empty, ls_zeros(LS_F32, LS_DIMS(0, 4))), LS_OK);
        ls_variable_free(empty);
    }
    assert_int_equal(ls_error_pending(), LS_OK);
}

static void reads_are_snapshots(void **state)
{
    (void)state;
    LS_FRAME {
        ls_variable *v = ls_variable_new("v", three(1, 2, 3), true);
        ls_tensor *first = ls_read(v);
        assert_int_equal(ls_assign(v, three(10, 20, 30)), LS_OK);
        ls_tensor *second = ls_read(v);
        assert_int_equal(ls_assign_add(v, three(1, 1, 1)), LS_OK);
        ls_tensor *third = ls_read(v);
        assert_int_equal(ls_assign_sub(v, three(2, 4, 6)), LS_OK);
        holds(first, 1, 2, 3);
        holds(second, 10, 20, 30);
        holds(third, 11, 21, 31);
        holds(ls_read(v), 9, 17, 25);
        /* Of itself: the old value is what is added. */
        assert_int_equal(ls_assign_add(v, ls_read(v)), LS_OK);
        holds(ls_read(v), 18, 34, 50);
        assert_int_equal(ls_assign(v, ls_read(v)), LS_OK);
        holds(ls_read(v), 18, 34, 50);
        assert_int_equal(ls_assign_sub(v, ls_read(v)), LS_OK);
        holds(ls_read(v), 0, 0, 0);
        ls_variable_free(v);
        holds(third, 11, 21, 31); /* the variable is gone, the snapshot is not */
    }
}

/* Access given by ls_data lasts until the tensor goes, whatever is written. */
static void a_mapped_snapshot_stays(void **state)
{
    (void)state;
    LS_FRAME {
        ls_variable *v = ls_variable_new("v", three(1, 2, 3), true);
        ls_tensor *t = ls_read(v);
        const float *data = ls_data(t), *other = ls_data(ls_reshape(t, LS_DIMS(3, 1)));
        assert_int_equal(ls_assign_add(v, three(10, 10, 10)), LS_OK);
        assert_true(data[0] == 1 && data[2] == 3);
        assert_true(other[0] == 1 && other[2] == 3);
        holds(ls_read(v), 11, 12, 13);
        ls_variable_free(v);
        assert_true(data[0] == 1 && data[2] == 3);
    }
}

static void freed_under_a_snapshot(void **state)
{
    (void)state;
    size_t before = memory();
    ls_tensor *kept = NULL;
    LS_FRAME {
        ls_variable *v = ls_variable_new("v", three(7, 8, 9), true);
        ls_tensor *t = ls_read(v);
        kept = ls_keep(t);
        ls_variable_free(v);
        holds(t, 7, 8, 9);
    }
    holds(kept, 7, 8, 9);
    ls_drop(kept);
    assert_int_equal(memory(), before);
}

static void writes_keep_shape_and_dtype(void **state)
{
    (void)state;
    LS_FRAME {
        ls_variable *v = ls_variable_new("odd", three(1, 2, 3), true);
        ls_status (*const writes[])(ls_variable *, ls_tensor *) = { ls_assign, ls_assign_add,
                                                                    ls_assign_sub };
        for (int i = 0; i < 3; i++) {
            uint64_t version = ls__cell_version(v->cells[0]);
            assert_int_equal(writes[i](v, ls_zeros(LS_F32, LS_DIMS(4))), LS_SHAPE);
            failed(LS_SHAPE);
            assert_int_equal(writes[i](v, ls_zeros(LS_F32, LS_DIMS(1))), LS_SHAPE); /* no stretch */
            failed(LS_SHAPE);
            assert_int_equal(writes[i](v, ls_zeros(LS_F32, LS_SCALAR)), LS_SHAPE);
            failed(LS_SHAPE);
            assert_int_equal(writes[i](v, ls_zeros(LS_F32, LS_DIMS(1, 3))), LS_SHAPE);
            failed(LS_SHAPE);
            assert_int_equal(writes[i](v, ls_zeros(LS_F64, LS_DIMS(3))), LS_SHAPE);
            failed(LS_SHAPE);
            assert_int_equal(writes[i](v, NULL), LS_INVALID);
            failed(LS_INVALID);
            assert_int_equal(writes[i](NULL, three(1, 1, 1)), LS_INVALID);
            failed(LS_INVALID);
            assert_true(ls__cell_version(v->cells[0]) == version); /* nothing was written */
        }
        holds(ls_read(v), 1, 2, 3);
        ls_variable_free(v);
    }
}

static void bad_arguments(void **state)
{
    (void)state;
    size_t before = memory();
    LS_FRAME {
        assert_null(ls_variable_new("v", NULL, true));
        failed(LS_INVALID);
        assert_null(ls_variable_new(NULL, three(1, 2, 3), true));
        failed(LS_INVALID);
        assert_null(ls_read(NULL));
        failed(LS_INVALID);
        ls_tensor *text = ls_from_strings(LS_DIMS(1), (const void *[]){ "x" }, NULL);
        assert_null(ls_variable_new("v", text, false)); /* no maths, no cell */
        assert_int_not_equal(ls_error(), LS_OK);
        ls_variable *none = ls_variable_new("v", ls_zeros((ls_dtype)0, LS_SCALAR), true);
        assert_null(none);
        char first[512];
        strncpy(first, ls_error_text(), sizeof first - 1)[sizeof first - 1] = 0;
        assert_null(ls_read(none)); /* a NULL variable passes the error on */
        assert_string_equal(ls_error_text(), first);
        failed(LS_INVALID);
    }
    assert_int_equal(memory(), before);
}

static void gradient_through_any_number_of_reads(void **state)
{
    (void)state;
    LS_FRAME {
        ls_variable *v = ls_variable_new("v", three(1, 2, 3), true);
        ls_tape *tape = ls_tape_open();
        ls_tensor *y = ls_add(ls_mul(ls_read(v), ls_read(v)), ls_read(v)); /* v^2 + v */
        holds(ls_gradient(tape, y, ls_read(v)), 3, 5, 7);

        /* After a write, a read is another value. */
        ls_tensor *old = ls_read(v);
        assert_int_equal(ls_assign(v, three(10, 10, 10)), LS_OK);
        holds(ls_gradient(tape, y, ls_read(v)), 0, 0, 0);
        holds(ls_gradient(tape, y, old), 3, 5, 7);
        ls_variable_free(v);
    }
    assert_int_equal(ls_error_pending(), LS_OK);
}

static void a_loop_stays_flat(void **state)
{
    (void)state;
    ls_variable *v = NULL;
    LS_FRAME {
        v = ls_variable_new("v", ls_zeros(LS_F32, LS_DIMS(1000)), true);
    }
    size_t before = memory();
    for (int i = 0; i < 2000; i++)
        LS_FRAME {
            ls_tensor *t = ls_read(v);
            assert_int_equal(ls_assign_add(v, ls_ones(LS_F32, LS_DIMS(1000))), LS_OK);
            assert_true(((const float *)ls_data(t))[999] == (float)i);
        }
    assert_int_equal(memory(), before);
    LS_FRAME {
        assert_true(((const float *)ls_data(ls_read(v)))[0] == 2000);
    }
    ls_variable_free(v);
}

/* Replicas read one variable at the same time (DESIGN rule G). */
static ls_variable *shared;
static pthread_barrier_t barrier;

enum { READERS = 4, ROUNDS = 200 };

static void *read_there(void *user)
{
    bool fine = true;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&barrier); /* all read the first time at once */
        LS_FRAME {
            float out[3] = { 0 };
            fine = fine && ls_copy_out(ls_read(shared), out, sizeof out) == LS_OK &&
                   out[0] == (float)i && out[2] == (float)i;
        }
        pthread_barrier_wait(&barrier); /* the main thread writes in between */
    }
    return fine ? user : NULL;
}

static void threads_may_read(void **state)
{
    (void)state;
    size_t before = memory();
    LS_FRAME {
        shared = ls_variable_new("v", three(0, 0, 0), true);
    }
    size_t with_variable = memory();
    pthread_t threads[READERS];
    assert_int_equal(pthread_barrier_init(&barrier, NULL, READERS + 1), 0);
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_there, &barrier), 0);
    for (int i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        LS_FRAME {
            assert_int_equal(ls_assign_add(shared, three(1, 1, 1)), LS_OK);
        }
    }
    for (int i = 0; i < READERS; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        assert_ptr_equal(result, &barrier);
    }
    pthread_barrier_destroy(&barrier);
    assert_int_equal(memory(), with_variable); /* no view got lost on the way */
    ls_variable_free(shared);
    assert_int_equal(memory(), before);
}

static void initialisers(void **state)
{
    (void)state;
    LS_FRAME {
        ls_random_seed(3);
        enum { IN = 64, OUT = 36 };
        ls_tensor *g = ls_glorot_uniform(LS_F32, LS_DIMS(IN, OUT));
        assert_string_equal(ls_describe(g), "f32[64,36]");
        const float *data = ls_data(g);
        double limit = sqrt(6.0 / (IN + OUT)), sum = 0, most = 0;
        for (int i = 0; i < IN * OUT; i++) {
            assert_true(fabs((double)data[i]) <= limit * (1 + 1e-6));
            sum += (double)data[i];
            most = fmax(most, fabs((double)data[i]));
        }
        assert_true(most > 0.98 * limit);
        assert_true(fabs(sum / (IN * OUT)) < limit / 10);

        /* [kh, kw, in, out]: the fan-in is kh kw in. */
        ls_tensor *h = ls_he_normal(LS_F64, LS_DIMS(3, 3, 16, 32));
        const double *he = ls_data(h);
        int64_t n = ls_count(h);
        double squares = 0;
        for (int64_t i = 0; i < n; i++)
            squares += he[i] * he[i];
        double deviation = sqrt(squares / (double)n), want = sqrt(2.0 / (3 * 3 * 16));
        assert_true(fabs(deviation / want - 1) < 0.05);

        ls_tensor *k = ls_glorot_uniform(LS_F32, LS_DIMS(5, 5, 4, 8));
        const float *kernel = ls_data(k);
        limit = sqrt(6.0 / (5 * 5 * (4 + 8)));
        most = 0;
        for (int64_t i = 0; i < ls_count(k); i++)
            most = fmax(most, fabs((double)kernel[i]));
        assert_true(most <= limit * (1 + 1e-6) && most > 0.95 * limit);

        assert_null(ls_glorot_uniform(LS_I32, LS_DIMS(2, 2)));
        assert_int_not_equal(ls_error(), LS_OK);
        assert_null(ls_he_normal(LS_F32, LS_DIMS(-2, 2)));
        assert_int_not_equal(ls_error(), LS_OK);
        assert_null(ls_he_normal(LS_F32, 2, NULL));
        assert_int_not_equal(ls_error(), LS_OK);
        assert_null(ls_glorot_uniform(LS_F32, 9, (int64_t[9]){ 1, 1, 1, 1, 1, 1, 1, 1, 1 }));
        assert_int_not_equal(ls_error(), LS_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(starts_as_a_copy, clean),
        cmocka_unit_test_setup(every_dtype, clean),
        cmocka_unit_test_setup(reads_are_snapshots, clean),
        cmocka_unit_test_setup(a_mapped_snapshot_stays, clean),
        cmocka_unit_test_setup(freed_under_a_snapshot, clean),
        cmocka_unit_test_setup(writes_keep_shape_and_dtype, clean),
        cmocka_unit_test_setup(bad_arguments, clean),
        cmocka_unit_test_setup(gradient_through_any_number_of_reads, clean),
        cmocka_unit_test_setup(a_loop_stays_flat, clean),
        cmocka_unit_test_setup(threads_may_read, clean),
        cmocka_unit_test_setup(initialisers, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
