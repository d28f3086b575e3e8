/*
 * Update kernels in every build: the same bits, whatever the ISA and wherever in a run an
 * element stands; scale, clip and decay that are none leave the plain bits; sums of squares in the
 * order that is promised.
 */
#include "kernels/update.h"

#include <math.h>
#include <string.h>

#include "kernels/test_numbers.h"

enum { N = 77 };

static const ls__update_kernels *builds[3];
static int n_builds;

/* w, two slots and a gradient; as f32 and as f64. Slots are not negative. */
typedef struct data {
    float f[4][N];
    double d[4][N];
} data;

static void fill(data *x)
{
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < N; i++) {
            double v = sin(k + 1.3 * i) * pow(10, (i + k) % 5 - 2);
            x->f[k][i] = (float)(k == 1 || k == 2 ? fabs(v) : v);
            x->d[k][i] = k == 1 || k == 2 ? fabs(v) : v;
        }
}

/* Elements [begin, end) of all. */
static void run(const ls__update_kernels *kernels, int kind, bool wide, data *x,
                const ls__update *p, int begin, int end)
{
    void *at[3];
    for (int k = 0; k < 3; k++)
        at[k] = wide ? (void *)(x->d[k] + begin) : (void *)(x->f[k] + begin);
    kernels->update[kind][wide](at, wide ? (void *)(x->d[3] + begin) : (void *)(x->f[3] + begin), p,
                                end - begin);
}

static const ls__update plain = { .rate = 0.1,
                                  .scale = 1,
                                  .clip = INFINITY,
                                  .momentum = 0.9,
                                  .one_minus_beta1 = 0.1,
                                  .one_minus_beta2 = 0.001,
                                  .epsilon = 1e-7 };

static void bits_depend_on_nothing_else(void **state)
{
    (void)state;
    for (int way = 0; way < LS__UPDATES * 2 * 4; way++) {
        int kind = way % LS__UPDATES, wide = way / LS__UPDATES % 2;
        ls__update p = plain;
        p.nesterov = way / (LS__UPDATES * 2) % 2;
        if (way / (LS__UPDATES * 4)) {
            p.scale = 0.3;
            p.clip = 0.7;
            p.decay = 0.01;
        }
        data want, got;
        memset(&want, 0, sizeof want);
        fill(&want);
        run(builds[0], kind, wide, &want, &p, 0, N);
        for (int b = 0; b < n_builds; b++)
            for (int cut = 0; cut <= N; cut += 11) {
                memset(&got, 0, sizeof got);
                fill(&got);
                run(builds[b], kind, wide, &got, &p, 0, cut);
                run(builds[b], kind, wide, &got, &p, cut, N);
                assert_memory_equal(&got, &want, sizeof got);
            }
    }
}

/* A clip that nothing reaches goes through the other loop. */
static void nothing_asked_changes_nothing(void **state)
{
    (void)state;
    for (int way = 0; way < LS__UPDATES * 2; way++) {
        data want, got;
        memset(&want, 0, sizeof want);
        memset(&got, 0, sizeof got);
        fill(&want);
        fill(&got);
        want.f[0][3] = got.f[0][3] = INFINITY;
        want.d[0][3] = got.d[0][3] = INFINITY;
        ls__update p = plain;
        run(builds[n_builds - 1], way % LS__UPDATES, way / LS__UPDATES, &want, &p, 0, N);
        p.clip = 1e30;
        run(builds[n_builds - 1], way % LS__UPDATES, way / LS__UPDATES, &got, &p, 0, N);
        assert_memory_equal(&got, &want, sizeof got);
    }
}

static void gradients_are_shaped(void **state)
{
    (void)state;
    const double g[] = { 5, -5, 0.25, NAN, INFINITY, -INFINITY };
    for (int b = 0; b < n_builds; b++)
        for (int i = 0; i < 6; i++) {
            double w = 8, want = 8 - 0.5 * 8;
            void *at[] = { &w };
            ls__update p = { .rate = 1, .scale = 2, .clip = 3, .decay = 0.5 };
            builds[b]->update[LS__UPDATE_SGD][1](at, &g[i], &p, 1);
            want -= isnan(g[i]) ? g[i] : fmax(-3, fmin(3, 2 * g[i]));
            assert_true(w == want || (isnan(w) && isnan(want)));
        }
}

static double squares_of(const double *x, int n)
{
    double lane[8] = { 0 };
    for (int i = 0; i < n; i++)
        lane[i % 8] = fma(x[i], x[i], lane[i % 8]);
    return ((lane[0] + lane[1]) + (lane[2] + lane[3])) +
           ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

static void squares(void **state)
{
    (void)state;
    static double x[LS__NORM_BLOCK], widened[LS__NORM_BLOCK];
    static float f[LS__NORM_BLOCK];
    for (int i = 0; i < LS__NORM_BLOCK; i++) {
        x[i] = sin(i) * pow(10, i % 7 - 3);
        f[i] = (float)x[i];
        widened[i] = f[i];
    }
    const int counts[] = { 0, 1, 7, 8, 9, 63, 100, LS__NORM_BLOCK - 1, LS__NORM_BLOCK };
    for (int b = 0; b < n_builds; b++)
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            assert_true(builds[b]->squares[1](x, counts[i]) == squares_of(x, counts[i]));
            assert_true(builds[b]->squares[0](f, counts[i]) == squares_of(widened, counts[i]));
        }
}

int main(void)
{
    n_builds = TABLES(ls__update_table, builds);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_depend_on_nothing_else),
        cmocka_unit_test(nothing_asked_changes_nothing),
        cmocka_unit_test(gradients_are_shaped),
        cmocka_unit_test(squares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
