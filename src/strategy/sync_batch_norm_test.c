/*
 * ls_sync_batch_norm against plain batch norm of the whole batch: results, gradients, gradients
 * of gradients; same bits eager and traced on any number of devices; replicas without rows; TensorFlow's
 * numbers; and what is refused.
 */
#include <lockstep/ops.h>
#include <lockstep/strategy.h>
#include <lockstep/tape.h>
#include <lockstep/variable.h>

#include <math.h>
#include <stdio.h>

#include "tensor/test_support.h"

enum { COLS = 3, MOST_ROWS = 16, MOST = 8 };

/* Some numbers, in [-1, 1). */
static double some(int i)
{
    return (double)((uint32_t)(i + 1) * 2654435761u >> 8) / (1 << 23) - 1;
}

static ls_tensor *rows_of(ls_dtype dtype, int begin, int end, int salt)
{
    double x[MOST_ROWS * COLS];
    for (int i = 0; i < (end - begin) * COLS; i++)
        x[i] = some(begin * COLS + i + salt) + (salt == 0 ? 3 * (i % COLS) : 0);
    return ls_cast(ls_from(LS_F64, LS_DIMS(end - begin, COLS), x), dtype);
}

static ls_tensor *columns(ls_dtype dtype, int salt, double times)
{
    double x[COLS];
    for (int i = 0; i < COLS; i++)
        x[i] = times * some(salt + i);
    return ls_cast(ls_from(LS_F64, LS_DIMS(COLS), x), dtype);
}

/* (x, w) -> y, mean, variance, and of sum(y w + mean a + variance b): dx, dscale, doffset, and the
 * gradient of sum(dx^2). `user`: how often the statistics count. */
static ls_value *step(ls_value *arguments, void *user)
{
    double times = *(double *)user;
    ls_tensor *x = ls_item(arguments, 0), *w = ls_item(arguments, 1);
    ls_dtype d = ls_dtype_of(x);
    ls_tensor *scale = columns(d, 1000, 1), *offset = columns(d, 2000, 1);
    ls_tape *tape = ls_tape_open();
    ls_value *all = ls_sync_batch_norm(ls_get_replica_context(), x, scale, offset, 0.01);
    if (!all)
        return NULL;
    ls_tensor *y = ls_item(all, 0), *mean = ls_item(all, 1), *variance = ls_item(all, 2);
    ls_tensor *loss = ls_sum(ls_mul(y, w), LS_ALL_AXES, false);
    loss = ls_add(loss, ls_sum(ls_mul(mean, columns(d, 3000, times)), LS_ALL_AXES, false));
    loss = ls_add(loss, ls_sum(ls_mul(variance, columns(d, 4000, times)), LS_ALL_AXES, false));
    ls_value *gradients =
        ls_gradients(tape, ls_leaf(loss), ls_tensors(3, (ls_tensor *[]){ x, scale, offset }));
    if (!gradients)
        return NULL;
    ls_tensor *dx = ls_item(gradients, 0);
    ls_tensor *again = ls_gradient(tape, ls_square(dx), x);
    return ls_tensors(7, (ls_tensor *[]){ y, mean, variance, dx, ls_item(gradients, 1),
                                          ls_item(gradients, 2), again });
}

static ls_strategy *replicas_on(int v, int devices)
{
    char names[128] = "";
    for (int i = 0; i < devices; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%scpu:%d", i ? "," : "", i);
    ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = names, .replicas = v));
    assert_non_null(s);
    return s;
}

static ls_value *run(bool traced, ls_strategy *s, ls_step fn, void *user, ls_value *arguments)
{
    if (!traced)
        return ls_run_eager(s, fn, user, arguments);
    ls_function *f = ls_trace(fn, user);
    ls_value *got = ls_run(s, f, arguments);
    got = got ? ls_run(s, f, arguments) : NULL; /* replayed */
    ls_function_free(f);
    return got;
}

static ls_value *batch(ls_strategy *s, ls_dtype dtype, const int *rows)
{
    ls_value *each[MOST];
    for (int r = 0, at = 0; r < ls_num_replicas(s); at += rows[r++])
        each[r] = ls_tensors(2, (ls_tensor *[]){ rows_of(dtype, at, at + rows[r], 0),
                                                 rows_of(dtype, at, at + rows[r], 500) });
    return ls_per_replica(s, each);
}

static double sixty_four(ls_tensor *t, int64_t i)
{
    const double *x = ls_data(ls_cast(t, LS_F64));
    return x[i];
}

static void near(const char *what, double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance * (1 + fabs(want))))
        fail_msg("%s: %.17g, not %.17g", what, got, want);
}

/* ---- against plain batch norm of all rows -------------------------------------------------- */

static void compare(ls_strategy *s, bool traced, ls_dtype dtype, const int *rows, double tolerance)
{
    int v = ls_num_replicas(s), total = 0;
    for (int r = 0; r < v; r++)
        total += rows[r];
    double times = v, once = 1;
    ls_value *whole = step(ls_tensors(2, (ls_tensor *[]){ rows_of(dtype, 0, total, 0),
                                                          rows_of(dtype, 0, total, 500) }),
                           &times);
    ls_value *got = run(traced, s, step, &once, batch(s, dtype, rows));
    if (!whole || !got)
        fail_msg("%s", ls_error_report());
    ls_value *each = ls_local_results(s, got);
    double dscale[COLS] = { 0 }, doffset[COLS] = { 0 };
    for (int r = 0, at = 0; r < v; at += rows[r++] * COLS) {
        ls_value *own = ls_child(each, r);
        assert_int_equal(ls_dtype_of(ls_item(own, 1)), dtype);
        for (int i = 0; i < COLS; i++) {
            near("mean", sixty_four(ls_item(own, 1), i), sixty_four(ls_item(whole, 1), i),
                 tolerance);
            near("variance", sixty_four(ls_item(own, 2), i), sixty_four(ls_item(whole, 2), i),
                 tolerance);
            dscale[i] += sixty_four(ls_item(own, 4), i);
            doffset[i] += sixty_four(ls_item(own, 5), i);
        }
        for (int i = 0; i < rows[r] * COLS; i++) {
            near("y", sixty_four(ls_item(own, 0), i), sixty_four(ls_item(whole, 0), at + i),
                 tolerance);
            near("dx", sixty_four(ls_item(own, 3), i), sixty_four(ls_item(whole, 3), at + i),
                 4 * tolerance);
            near("again", sixty_four(ls_item(own, 6), i), sixty_four(ls_item(whole, 6), at + i),
                 100 * tolerance);
        }
    }
    for (int i = 0; i < COLS; i++) {
        near("dscale", dscale[i], sixty_four(ls_item(whole, 4), i), 10 * tolerance);
        near("doffset", doffset[i], sixty_four(ls_item(whole, 5), i), 10 * tolerance);
    }
}

static const int cases[][MOST] = { { 2, 4, 4 },          { 2, 5, 3 },
                                   { 2, 0, 6 },          { 3, 4, 0, 3 },
                                   { 3, 1, 1, 1 },       { 3, 0, 0, 5 },
                                   { 5, 2, 3, 0, 1, 4 }, { 7, 2, 2, 2, 2, 2, 2, 2 } };

static void as_plain_batch_norm_of_all_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int traced = 0; traced < 2; traced++)
            LS_FRAME {
                ls_strategy *s = replicas_on(cases[i][0], 1 + (int)i % 2);
                compare(s, traced, LS_F64, cases[i] + 1, 1e-12);
                compare(s, traced, LS_F32, cases[i] + 1, 2e-5);
                ls_strategy_free(s);
            }
}

/* ---- finite differences ------------------------------------------------------------------------ */

/* sum over replicas of sum(y w) + ..., with element `at` of all rows moved by `by`. */
static double total_loss(ls_strategy *s, const int *rows, int at, double by)
{
    ls_value *each[MOST];
    double x[MOST_ROWS * COLS], sum = 0, once = 1;
    for (int r = 0, row = 0; r < ls_num_replicas(s); row += rows[r++]) {
        ls_tensor *t = rows_of(LS_F64, row, row + rows[r], 0);
        assert_int_equal(ls_copy_out(t, x, sizeof(double) * (size_t)(rows[r] * COLS)), LS_OK);
        if (at >= row * COLS && at < (row + rows[r]) * COLS)
            x[at - row * COLS] += by;
        each[r] = ls_tensors(2, (ls_tensor *[]){ ls_from(LS_F64, LS_DIMS(rows[r], COLS), x),
                                                 rows_of(LS_F64, row, row + rows[r], 500) });
    }
    ls_value *got = ls_run_eager(s, step, &once, ls_per_replica(s, each));
    assert_non_null(got);
    ls_value *results = ls_local_results(s, got);
    for (int r = 0, row = 0; r < ls_num_replicas(s); row += rows[r++]) {
        ls_value *own = ls_child(results, r);
        ls_tensor *w = rows_of(LS_F64, row, row + rows[r], 500);
        sum += ls_to_double(ls_sum(ls_mul(ls_item(own, 0), w), LS_ALL_AXES, false));
        for (int i = 0; i < COLS; i++)
            sum += sixty_four(ls_item(own, 1), i) * some(3000 + i) +
                   sixty_four(ls_item(own, 2), i) * some(4000 + i);
    }
    return sum;
}

static void finite_differences(void **state)
{
    (void)state;
    static const int rows[] = { 3, 0, 2 };
    ls_strategy *s = replicas_on(3, 1);
    double once = 1, h = 1e-5;
    for (int r = 0, at = 0; r < 3; r++)
        for (int i = 0; i < rows[r] * COLS; i++, at++)
            LS_FRAME {
                ls_value *got = ls_run_eager(s, step, &once, batch(s, LS_F64, rows));
                assert_non_null(got);
                double dx = sixty_four(ls_item(ls_child(ls_local_results(s, got), r), 3), i);
                double want = (total_loss(s, rows, at, h) - total_loss(s, rows, at, -h)) / (2 * h);
                near("dx", dx, want, 1e-8);
            }
    ls_strategy_free(s);
}

/* ---- same bits ------------------------------------------------------------------------------------ */

/* All that the step gives, replica after replica. */
static size_t all_bytes(ls_strategy *s, ls_value *got, char *out, size_t room)
{
    size_t used = 0;
    ls_value *each = ls_local_results(s, got);
    for (int r = 0; r < ls_num_replicas(s); r++)
        for (int i = 0; i < 7; i++) {
            ls_tensor *t = ls_item(ls_child(each, r), i);
            size_t bytes = (size_t)ls_count(t) * ls_dtype_size(ls_dtype_of(t));
            assert_true(used + bytes <= room);
            memcpy(out + used, ls_data(t), bytes);
            used += bytes;
        }
    return used;
}

static void same_bits_on_any_number_of_devices(void **state)
{
    (void)state;
    static const int rows[][3] = { { 4, 0, 3 }, { 2, 5, 1 }, { 0, 0, 3 } };
    double once = 1;
    for (int k = 0; k < 3; k++)
        for (int wide = 0; wide < 2; wide++) {
            char first[4096], now[4096];
            size_t length = 0;
            for (int devices = 1; devices <= 3; devices++)
                for (int traced = 0; traced < 2; traced++)
                    LS_FRAME {
                        ls_strategy *s = replicas_on(3, devices);
                        ls_value *got =
                            run(traced, s, step, &once, batch(s, wide ? LS_F64 : LS_F32, rows[k]));
                        if (!got)
                            fail_msg("%s", ls_error_report());
                        size_t n = all_bytes(s, got, length ? now : first, sizeof first);
                        if (length) {
                            assert_int_equal(n, length);
                            assert_memory_equal(now, first, n);
                        }
                        length = n;
                        ls_strategy_free(s);
                    }
        }
}

/* Replicas without rows change nothing: the bits are those of the one that has some, alone. */
static void empty_replicas_change_no_bit(void **state)
{
    (void)state;
    double once = 1;
    static const int rows[][3] = { { 6, 0, 0 }, { 0, 6, 0 }, { 0, 0, 6 } };
    for (int k = 0; k < 3; k++)
        LS_FRAME {
            ls_strategy *s = replicas_on(3, 2);
            ls_tensor *x = rows_of(LS_F32, 0, 6, 0), *scale = columns(LS_F32, 1000, 1);
            ls_value *plain = ls_batch_norm(x, scale, columns(LS_F32, 2000, 1), 0.01);
            ls_value *got = ls_run_eager(s, step, &once, batch(s, LS_F32, rows[k]));
            assert_non_null(got);
            ls_value *own = ls_child(ls_local_results(s, got), k);
            for (int i = 0; i < 3; i++)
                assert_memory_equal(ls_data(ls_item(own, i)), ls_data(ls_item(plain, i)),
                                    4 * (size_t)ls_count(ls_item(plain, i)));
            ls_strategy_free(s);
        }
}

static void no_rows_at_all(void **state)
{
    (void)state;
    static const int rows[] = { 0, 0, 0 };
    double once = 1;
    for (int traced = 0; traced < 2; traced++)
        LS_FRAME {
            ls_strategy *s = replicas_on(3, 2);
            ls_check_numerics(LS_NUMERICS_NAN_AND_INF); /* nothing is divided by 0 */
            ls_value *got = run(traced, s, step, &once, batch(s, LS_F32, rows));
            ls_check_numerics(LS_NUMERICS_OFF);
            assert_non_null(got);
            ls_value *own = ls_child(ls_local_results(s, got), 1);
            assert_int_equal(ls_count(ls_item(own, 0)), 0);
            assert_int_equal(ls_count(ls_item(own, 3)), 0);
            for (int i = 0; i < COLS; i++) {
                assert_true(sixty_four(ls_item(own, 1), i) == 0);
                assert_true(sixty_four(ls_item(own, 2), i) == 0);
            }
            ls_strategy_free(s);
        }
}

static void alone_it_is_plain_batch_norm(void **state)
{
    (void)state;
    double once = 1;
    LS_FRAME {
        ls_strategy *s = replicas_on(1, 1);
        ls_value *arguments =
            ls_tensors(2, (ls_tensor *[]){ rows_of(LS_F32, 0, 6, 0), rows_of(LS_F32, 0, 6, 500) });
        ls_value *outside = step(arguments, &once);
        ls_value *inside = run(true, s, step, &once, arguments);
        ls_value *plain = ls_batch_norm(rows_of(LS_F32, 0, 6, 0), columns(LS_F32, 1000, 1),
                                        columns(LS_F32, 2000, 1), 0.01);
        for (int i = 0; i < 7; i++) {
            size_t bytes = 4 * (size_t)ls_count(ls_item(outside, i));
            assert_memory_equal(ls_data(ls_item(inside, i)), ls_data(ls_item(outside, i)), bytes);
            if (i < 3)
                assert_memory_equal(ls_data(ls_item(plain, i)), ls_data(ls_item(outside, i)),
                                    bytes);
        }
        ls_strategy_free(s);
    }
}

/* ---- statistics that follow ---------------------------------------------------------------------- */

static ls_value *follow(ls_value *arguments, void *user)
{
    ls_variable *moving = user;
    ls_value *all = ls_sync_batch_norm(ls_get_replica_context(), ls_item(arguments, 0),
                                       columns(LS_F32, 1000, 1), columns(LS_F32, 2000, 1), 0.01);
    if (!all)
        return NULL;
    ls_assign(moving, ls_add(ls_scale(ls_read(moving), 0.5), ls_scale(ls_item(all, 1), 0.5)));
    return ls_leaf(ls_read(moving));
}

static void moving_statistics_are_those_of_all_rows(void **state)
{
    (void)state;
    static const int rows[] = { 4, 0, 3 };
    for (int traced = 0; traced < 2; traced++)
        LS_FRAME {
            ls_strategy *s = replicas_on(3, 2);
            ls_variable *moving = NULL;
            LS_SCOPE (s)
                moving = ls_variable_with(LS_VARIABLE(.aggregation = LS_AGGREGATE_ONLY_FIRST),
                                          "moving", ls_zeros(LS_F32, LS_DIMS(COLS)));
            assert_non_null(moving);
            ls_value *got = ls_run_eager(s, follow, moving, batch(s, LS_F32, rows));
            if (traced) {
                assert_int_equal(ls_assign(moving, ls_zeros(LS_F32, LS_DIMS(COLS))), LS_OK);
                ls_function *f = ls_trace(follow, moving);
                got = ls_run(s, f, batch(s, LS_F32, rows));
                ls_function_free(f);
            }
            if (!got)
                fail_msg("%s", ls_error_report());
            ls_tensor *mean = ls_mean(rows_of(LS_F32, 0, 7, 0), LS_AXES(0), false);
            for (int i = 0; i < COLS; i++)
                near("moving", sixty_four(ls_read(moving), i), sixty_four(mean, i) / 2, 1e-6);
            ls_variable_free(moving);
            ls_strategy_free(s);
        }
}

static void bf16_keeps_its_statistics_wide(void **state)
{
    (void)state;
    static const int rows[] = { 8, 8 };
    LS_FRAME {
        ls_strategy *s = replicas_on(2, 2);
        compare(s, false, LS_BF16, rows, 0.02);
        ls_strategy_free(s);
    }
}

/* ---- TensorFlow --------------------------------------------------------------------------------- */

static ls_value *as_keras(ls_value *arguments, void *user)
{
    (void)user;
    ls_tensor *x = ls_item(arguments, 0), *w = ls_item(arguments, 1);
    ls_tape *tape = ls_tape_open();
    ls_value *all = ls_sync_batch_norm(ls_get_replica_context(), x,
                                       ls_from(LS_F32, LS_DIMS(2), (float[]){ 1.5f, -0.5f }),
                                       ls_from(LS_F32, LS_DIMS(2), (float[]){ 0.25f, 1 }), 0.01);
    if (!all)
        return NULL;
    ls_tensor *dx = ls_gradient(tape, ls_mul(ls_item(all, 0), w), x);
    return ls_tensors(4, (ls_tensor *[]){ ls_item(all, 0), dx, ls_item(all, 1), ls_item(all, 2) });
}

/* tf.keras.layers.BatchNormalization(synchronized=True, epsilon=0.01) in a MirroredStrategy of two CPU
 * devices, TensorFlow 2.21; the statistics are worked back from the moving ones (momentum 0.9). */
static void as_tensorflow(void **state)
{
    (void)state;
    static const float x[2][6] = { { 1, 10, 2, -4, 4, 0.5f }, { -3, 2, 0.5f, 6, 7, 1 } };
    static const float w[2][6] = { { 1, -1, 0.5f, 2, -2, 0.25f },
                                   { 3, 1, -1, 0.5f, 0.125f, -0.75f } };
    static const double y[2][6] = {
        { -0.1950625777, 0.1611891985, 0.2904602289, 1.7445623875, 1.2615058422, 1.2356209755 },
        { -2.1371538639, 1.0659738779, -0.4378239810, 0.6135815382, 2.7180743217, 1.1790719032 }
    };
    static const double dx[2][6] = {
        { 0.2161633372, 0.0163821951, 0.1237986684, -0.0691844001, -0.7892147899, 0.0471819341 },
        { 0.5856220126, -0.0648267344, -0.8300806284, -0.0807713196, 0.6937114596, 0.1512183249 }
    };
    static const double mean[] = { 1.9166666, 2.5833333 }, variance[] = { 9.534722, 19.534722 };
    for (int traced = 0; traced < 2; traced++)
        LS_FRAME {
            ls_strategy *s = replicas_on(2, 2);
            ls_value *each[2];
            for (int r = 0; r < 2; r++)
                each[r] = ls_tensors(2, (ls_tensor *[]){ ls_from(LS_F32, LS_DIMS(3, 2), x[r]),
                                                         ls_from(LS_F32, LS_DIMS(3, 2), w[r]) });
            ls_value *got = run(traced, s, as_keras, NULL, ls_per_replica(s, each));
            if (!got)
                fail_msg("%s", ls_error_report());
            for (int r = 0; r < 2; r++) {
                ls_value *own = ls_child(ls_local_results(s, got), r);
                for (int i = 0; i < 6; i++) {
                    near("y", sixty_four(ls_item(own, 0), i), y[r][i], 2e-6);
                    near("dx", sixty_four(ls_item(own, 1), i), dx[r][i], 2e-6);
                }
                for (int i = 0; i < 2; i++) {
                    near("mean", sixty_four(ls_item(own, 2), i), mean[i], 2e-6);
                    near("variance", sixty_four(ls_item(own, 3), i), variance[i], 2e-6);
                }
            }
            ls_strategy_free(s);
        }
}

/* ---- refused -------------------------------------------------------------------------------------- */

typedef enum wrong { SCALE, EPSILON, CHANNELS, WHOLE, NOTHING, NO_SCALE, LATE, UNLIKE } wrong;

/* Replica 1 does something wrong. */
static ls_value *go_wrong(ls_value *arguments, void *user)
{
    wrong how = *(wrong *)user;
    ls_replica *me = ls_get_replica_context();
    bool here = ls_replica_id(me) == 1;
    ls_tensor *x = ls_item(arguments, 0), *one = columns(LS_F32, 1000, 1), *scale = one;
    if (here && how == SCALE)
        scale = ls_ones(LS_F32, LS_DIMS(COLS + 1));
    if (here && how == CHANNELS)
        x = ls_transpose(x, 2, (int64_t[]){ 1, 0 });
    if (here && how == WHOLE)
        x = ls_cast(x, LS_I32);
    if (here && how == NOTHING)
        x = NULL;
    if (here && how == NO_SCALE)
        scale = NULL;
    if (here && how == UNLIKE)
        return ls_all_reduce(me, LS_SUM, ls_leaf(one));
    return ls_sync_batch_norm(me, x, scale, one, here && how == EPSILON ? -1 : 0.01);
}

static void what_is_refused(void **state)
{
    (void)state;
    static const int rows[] = { 4, 2 };
    static const struct {
        wrong how;
        ls_status status;
        const char *text;
    } all[] = {
        { SCALE, LS_SHAPE, "scale wants one number per column, [3]" },
        { EPSILON, LS_INVALID, "epsilon is -1" },
        { CHANNELS, LS_SHAPE, "replica 1 f32[2]" },
        { WHOLE, LS_SHAPE, "i32[2,3]" },
        { NOTHING, LS_INVALID, "ls_sync_batch_norm: x is NULL" },
        { NO_SCALE, LS_INVALID, "ls_sync_batch_norm: scale is NULL" },
        { UNLIKE, LS_STATE, "ls_sync_batch_norm" },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int traced = 0; traced < 2; traced++)
            LS_FRAME {
                ls_strategy *s = replicas_on(2, 2);
                wrong how = all[i].how;
                assert_null(run(traced, s, go_wrong, &how, batch(s, LS_F32, rows)));
                if (!strstr(ls_error_text(), all[i].text) ||
                    !strstr(ls_error_text(), "ls_sync_batch_norm"))
                    fail_msg("%s lacks %s", ls_error_report(), all[i].text);
                failed(all[i].status);
                how = LATE; /* the strategy goes on */
                ls_value *got = run(traced, s, go_wrong, &how, batch(s, LS_F32, rows));
                if (!got)
                    fail_msg("%s", ls_error_report());
                ls_strategy_free(s);
            }
}

static void wants_a_replica(void **state)
{
    (void)state;
    ls_strategy *s = replicas_on(2, 1);
    LS_SCOPE (s) {
        ls_tensor *x = rows_of(LS_F32, 0, 2, 0), *one = columns(LS_F32, 0, 1);
        assert_null(ls_sync_batch_norm(ls_get_replica_context(), x, one, one, 0.01));
        assert_non_null(
            strstr(ls_error_text(), "ls_sync_batch_norm: this is cross-replica context"));
        failed(LS_STATE);
    }
    LS_FRAME {
        ls_tensor *x = rows_of(LS_F32, 0, 2, 0), *one = columns(LS_F32, 0, 1);
        assert_null(ls_sync_batch_norm(NULL, x, one, one, 0.01));
        failed(LS_INVALID);
    }
    ls_strategy_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(as_plain_batch_norm_of_all_rows, clean),
        cmocka_unit_test_setup(finite_differences, clean),
        cmocka_unit_test_setup(same_bits_on_any_number_of_devices, clean),
        cmocka_unit_test_setup(empty_replicas_change_no_bit, clean),
        cmocka_unit_test_setup(no_rows_at_all, clean),
        cmocka_unit_test_setup(alone_it_is_plain_batch_norm, clean),
        cmocka_unit_test_setup(moving_statistics_are_those_of_all_rows, clean),
        cmocka_unit_test_setup(bf16_keeps_its_statistics_wide, clean),
        cmocka_unit_test_setup(as_tensorflow, clean),
        cmocka_unit_test_setup(what_is_refused, clean),
        cmocka_unit_test_setup(wants_a_replica, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
