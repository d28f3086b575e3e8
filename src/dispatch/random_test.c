/*
 * Draws are functions of (seed, replica, step, ordinal) and nothing else
 * (DESIGN rule C).
 */
#include <lockstep/ops.h>
#include <lockstep/random.h>
#include <lockstep/tape.h>
#include <lockstep/variable.h>

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/philox.h"
#include "dispatch/context.h"

enum { N = 100 };

static int clean(void **state)
{
    (void)state;
    ls_error();
    ls_random_seed(0);
    ls_random_step(0);
    return 0;
}

/* Bits of the next draw. */
static void draw(float out[N])
{
    LS_FRAME {
        ls_tensor *t = ls_random_uniform(LS_F32, LS_DIMS(N), 0, 1);
        assert_int_equal(ls_copy_out(t, out, N * sizeof *out), LS_OK);
    }
}

static bool same(const float a[N], const float b[N])
{
    return memcmp(a, b, N * sizeof *a) == 0;
}

/* The published answers (Random123's kat_vectors). */
static void philox_known_answers(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], want[4];
    } table[] = {
        { { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
        { { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
          { 0xffffffff, 0xffffffff },
          { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
        { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
          { 0xa4093822, 0x299f31d0 },
          { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
    };
    for (int i = 0; i < 3; i++) {
        uint32_t out[4];
        ls__philox4x32_10(table[i].counter, table[i].key, out);
        assert_memory_equal(out, table[i].want, sizeof out);
    }
}

static void keys_differ(void **state)
{
    (void)state;
    /* Over seeds, domains, replicas and steps: no two alike. */
    enum { EACH = 6 };
    uint64_t keys[EACH * EACH * EACH * 3];
    int n = 0;
    for (int domain = LS__DRAW_OPERATOR; domain <= LS__DRAW_DATASET; domain++)
        for (int seed = 0; seed < EACH; seed++)
            for (int replica = 0; replica < EACH; replica++)
                for (int step = 0; step < EACH; step++)
                    keys[n++] =
                        ls__draw_key((uint64_t)seed, (ls__draw_domain)domain, replica, step);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++)
            assert_true(keys[i] != keys[k]);
    assert_true(ls__draw_key(1, LS__DRAW_OPERATOR, 2, 3) ==
                ls__draw_key(1, LS__DRAW_OPERATOR, 2, 3));
    assert_true(ls__draw_key(UINT64_MAX, LS__DRAW_OPERATOR, 0, INT64_MAX) !=
                ls__draw_key(UINT64_MAX, LS__DRAW_OPERATOR, 0, INT64_MAX - 1));

    /* And blocks of a draw, and draws of a step. */
    ls__draw a = { .key = keys[0], .ordinal = 0 }, b = { .key = keys[0], .ordinal = 1 };
    uint32_t x[4], y[4];
    ls__philox_block(&a, 0, x);
    ls__philox_block(&a, 1, y);
    assert_memory_not_equal(x, y, sizeof x);
    ls__philox_block(&b, 0, y);
    assert_memory_not_equal(x, y, sizeof x);
    ls__philox_block(&a, (uint64_t)1 << 40, y);
    assert_memory_not_equal(x, y, sizeof x);
    ls__philox_block(&a, 0, y);
    assert_memory_equal(x, y, sizeof x);
}

static void same_place_same_bits(void **state)
{
    (void)state;
    float first[3][N], again[N];
    ls_random_seed(42);
    ls_random_step(7);
    for (int i = 0; i < 3; i++)
        draw(first[i]);
    assert_false(same(first[0], first[1])); /* ordinals differ */
    assert_false(same(first[1], first[2]));

    ls_random_step(8);
    draw(again);
    assert_false(same(again, first[0])); /* steps differ */
    ls_random_step(7);                   /* a step done again draws them again */
    for (int i = 0; i < 3; i++) {
        draw(again);
        assert_true(same(again, first[i]));
    }
    ls_random_seed(43);
    ls_random_step(7);
    draw(again);
    assert_false(same(again, first[0])); /* seeds differ */
    ls_random_seed(42);
    ls_random_step(7);
    draw(again);
    assert_true(same(again, first[0]));
}

static void other_calls_do_not_matter(void **state)
{
    (void)state;
    float want[N], got[N];
    ls_random_seed(5);
    ls_random_step(1);
    draw(got);
    draw(want);
    ls_random_step(1);
    LS_FRAME {
        /* Maths, initialisers and refused draws take no number. */
        ls_add(ls_ones(LS_F32, LS_DIMS(4)), ls_ones(LS_F32, LS_DIMS(4)));
        draw(got);
        ls_glorot_uniform(LS_F32, LS_DIMS(3, 3));
        ls_he_normal(LS_F32, LS_DIMS(3, 3));
        assert_null(ls_random_uniform(LS_F32, LS_DIMS(-3), 0, 1));
        assert_int_not_equal(ls_error(), LS_OK);
        assert_null(ls_random_normal(LS_I32, LS_DIMS(3), 0, 1));
        assert_int_not_equal(ls_error(), LS_OK);
    }
    draw(got);
    assert_true(same(got, want));
}

static void initialisers_ignore_the_step(void **state)
{
    (void)state;
    LS_FRAME {
        float a[9], b[9], c[9];
        ls_random_seed(9);
        ls_random_step(0);
        ls_copy_out(ls_glorot_uniform(LS_F32, LS_DIMS(3, 3)), a, sizeof a);
        ls_copy_out(ls_glorot_uniform(LS_F32, LS_DIMS(3, 3)), b, sizeof b);
        assert_memory_not_equal(a, b, sizeof a); /* how many were drawn before counts */
        ls_random_seed(9);
        ls_random_step(1234);
        float ignored[N];
        draw(ignored);
        ls_copy_out(ls_glorot_uniform(LS_F32, LS_DIMS(3, 3)), c, sizeof c);
        assert_memory_equal(a, c, sizeof a);
        ls_random_step(55);
        ls_copy_out(ls_glorot_uniform(LS_F32, LS_DIMS(3, 3)), c, sizeof c);
        assert_memory_equal(b, c, sizeof b);
        ls_random_seed(10);
        ls_copy_out(ls_glorot_uniform(LS_F32, LS_DIMS(3, 3)), c, sizeof c);
        assert_memory_not_equal(a, c, sizeof a);
    }
    /* The switch behind them gives back what was set. */
    assert_false(ls__draw_initialisers(true));
    assert_true(ls__draw_initialisers(true));
    assert_true(ls__draw_initialisers(false));
    assert_false(ls__draw_initialisers(false));
}

typedef struct other {
    float bits[N];
    uint64_t seed;
} other;

static void *draw_there(void *arg)
{
    other *o = arg;
    ls_random_seed(o->seed);
    ls_random_step(3);
    LS_FRAME {
        ls_tensor *t = ls_random_uniform(LS_F32, LS_DIMS(N), 0, 1);
        ls_copy_out(t, o->bits, sizeof o->bits);
    }
    return NULL;
}

static void threads_do_not_share_a_stream(void **state)
{
    (void)state;
    float here[N], next[N], again[N];
    ls_random_seed(77);
    ls_random_step(3);
    draw(here);
    draw(next);
    other o[3] = { { .seed = 77 }, { .seed = 77 }, { .seed = 78 } };
    ls_random_step(3);
    draw(again);
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, draw_there, &o[i]), 0);
        pthread_join(thread, NULL);
    }
    assert_true(same(o[0].bits, here)); /* same place, same bits, any thread */
    assert_true(same(o[1].bits, here));
    assert_false(same(o[2].bits, here));
    draw(again); /* and this thread's count went on undisturbed */
    assert_true(same(again, next));
}

static void numbers_lie_where_they_should(void **state)
{
    (void)state;
    enum { MANY = 20000 };
    LS_FRAME {
        ls_random_seed(1);
        const float *u = ls_data(ls_random_uniform(LS_F32, LS_DIMS(MANY), -2, 3));
        double sum = 0;
        for (int i = 0; i < MANY; i++) {
            assert_true(u[i] >= -2 && u[i] < 3);
            sum += (double)u[i];
        }
        assert_true(fabs(sum / MANY - 0.5) < 0.05);

        const double *n = ls_data(ls_random_normal(LS_F64, LS_DIMS(MANY), 5, 2));
        double mean = 0, var = 0;
        for (int i = 0; i < MANY; i++)
            mean += n[i] / MANY;
        for (int i = 0; i < MANY; i++)
            var += (n[i] - mean) * (n[i] - mean) / MANY;
        assert_true(fabs(mean - 5) < 0.1 && fabs(var - 4) < 0.2);

        const float *t = ls_data(ls_truncated_normal(LS_F32, LS_DIMS(MANY), 1, 0.5));
        for (int i = 0; i < MANY; i++)
            assert_true(t[i] >= 0 && t[i] <= 2);

        const int32_t *k = ls_data(ls_random_uniform(LS_I32, LS_DIMS(MANY), -1, 3));
        int seen[4] = { 0 };
        for (int i = 0; i < MANY; i++) {
            assert_true(k[i] >= -1 && k[i] < 3);
            seen[k[i] + 1]++;
        }
        for (int i = 0; i < 4; i++)
            assert_true(abs(seen[i] - MANY / 4) < MANY / 40);
    }
}

static void dropout_and_its_gradient_agree(void **state)
{
    (void)state;
    LS_FRAME {
        ls_random_seed(4);
        ls_tensor *x = ls_ones(LS_F32, LS_DIMS(1000));
        ls_tape *tape = ls_tape_open();
        ls_tensor *y = ls_dropout(x, 0.25);
        ls_tensor *g = ls_gradient(tape, y, x);
        const float *a = ls_data(y), *b = ls_data(g);
        int dropped = 0;
        for (int i = 0; i < 1000; i++) {
            assert_true(a[i] == 0 || fabsf(a[i] - 4.0f / 3) < 1e-6f);
            assert_true(a[i] == b[i]); /* the same mask */
            dropped += a[i] == 0;
        }
        assert_true(dropped > 180 && dropped < 320);
        float next[N], want[N];
        draw(next); /* the backward pass drew nothing: this is draw 1 */
        ls_random_step(0);
        ls_dropout(x, 0.25);
        draw(want);
        assert_true(same(next, want));
    }
}

/* He's spread after the cut at two deviations of what is cut, which is wider. */
static void he_normal_has_its_spread(void **state)
{
    (void)state;
    static const int64_t fan_in[] = { 250, 8 };
    for (int k = 0; k < 2; k++)
        LS_FRAME {
            ls_random_seed(5);
            int64_t n = 100000;
            const float *x = ls_data(ls_he_normal(LS_F32, LS_DIMS(fan_in[k], n / fan_in[k])));
            assert_non_null(x);
            double mean = 0, squares = 0, most = 0, want = sqrt(2 / (double)fan_in[k]);
            for (int64_t i = 0; i < n; i++) {
                mean += (double)x[i] / (double)n;
                squares += (double)x[i] * (double)x[i] / (double)n;
                most = fmax(most, fabs((double)x[i]));
            }
            double limit = 2 * want / 0.87962566103423978;
            assert_true(fabs(sqrt(squares) / want - 1) < 0.03);
            assert_true(fabs(mean) < 0.02 * want);
            assert_true(most <= limit * (1 + 1e-6) && most > 0.99 * limit);
        }
}

static void the_count_of_draws_is_taken_and_set(void **state)
{
    (void)state;
    float first[N], second[N], again[N];
    ls_random_seed(3);
    ls_random_step(8);
    draw(first);
    ls__draw_state then, now;
    ls__draws_get(&then);
    assert_true(then.seed == 3 && then.step == 8 && then.draws == 1 && then.replica == 0);
    assert_false(then.initialising);
    draw(second);
    ls_random_seed(4);
    draw(again);
    assert_false(same(second, again));
    ls__draws_set(&then);
    draw(again); /* as if nothing had been drawn since */
    assert_true(same(second, again));

    now = then;
    now.replica = 5;
    ls__draws_set(&now);
    assert_int_equal(ls__replica(), 5);
    draw(again);
    assert_false(same(second, again));
    now.initialising = true;
    now.initialisers = 7;
    ls__draws_set(&now);
    ls__draw key;
    ls__next_draw(&key);
    assert_int_equal(key.ordinal, 7);
    ls__draws_get(&now);
    assert_int_equal(now.initialisers, 8);
    then.replica = 0;
    ls__draws_set(&then);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_count_of_draws_is_taken_and_set, clean),
        cmocka_unit_test_setup(philox_known_answers, clean),
        cmocka_unit_test_setup(keys_differ, clean),
        cmocka_unit_test_setup(same_place_same_bits, clean),
        cmocka_unit_test_setup(other_calls_do_not_matter, clean),
        cmocka_unit_test_setup(initialisers_ignore_the_step, clean),
        cmocka_unit_test_setup(threads_do_not_share_a_stream, clean),
        cmocka_unit_test_setup(numbers_lie_where_they_should, clean),
        cmocka_unit_test_setup(dropout_and_its_gradient_agree, clean),
        cmocka_unit_test_setup(he_normal_has_its_spread, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
