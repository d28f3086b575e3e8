/*
 * Learning rates: half a wave against libm's, schedules at and beside their borders, and bits that
 * every build must give.
 */
#include "ops/rate.h"

#include <lockstep/ops.h>
#include <math.h>

#include "ops/update.h"
#include "tensor/test_support.h"

static void cosine_is_close_and_fixed(void **state)
{
    (void)state;
    for (int i = 0; i <= 10000; i++) {
        double x = i / 10000.0;
        long double want = cosl(3.14159265358979323846264338327950288L * (long double)x);
        assert_true(fabsl(ls__cos_pi(x) - want) <= 2e-16L);
    }
    assert_true(ls__cos_pi(0) == 1 && ls__cos_pi(0.5) == 0 && ls__cos_pi(1) == -1);
    /* Not what libm says here: what is written must give everywhere. */
    assert_true(ls__cos_pi(0.1) == 0x1.e6f0e134454ffp-1);
    assert_true(ls__cos_pi(1.0 / 3) == 0x1p-1);
    assert_true(ls__cos_pi(0.7) == -0x1.2cf2304755a5dp-1);
}

static void powers(void **state)
{
    (void)state;
    assert_true(ls__power(0.5, 0) == 1 && ls__power(0, 0) == 1 && ls__power(0, 3) == 0);
    assert_true(ls__power(0.5, 10) == 1.0 / 1024 && ls__power(3, 5) == 243);
    assert_true(ls__power(0.9, INT64_MAX) == 0);
    double p = 1;
    for (int i = 1; i <= 200; i++) {
        p *= 0.999;
        assert_true(fabs(ls__power(0.999, i) - p) < 1e-14);
    }
}

static void steps(void **state)
{
    (void)state;
    double p[LS__RATE_NUMBERS] = { 0 };
    p[LS__RATE_KIND] = LS__RATE_STEP;
    p[LS__RATE_COUNT] = 2;
    p[LS__RATE_BOUNDARIES] = 3;
    p[LS__RATE_BOUNDARIES + 1] = 5;
    p[LS__RATE_VALUES] = 1;
    p[LS__RATE_VALUES + 1] = 0.5;
    p[LS__RATE_VALUES + 2] = 0;
    const double want[] = { 1, 1, 1, 1, 0.5, 0.5, 0, 0 };
    for (int i = 0; i < 8; i++)
        assert_true(ls__rate_at(p, i) == want[i]);
    p[LS__RATE_WARMUP_STEPS] = 4; /* 0.2, 0.4, 0.6, 0.8, then the schedule from its step 0 on */
    p[LS__RATE_WARMUP_FROM] = 0.2;
    for (int i = 0; i < 4; i++)
        assert_true(fabs(ls__rate_at(p, i) - (0.2 + 0.2 * i)) < 1e-15);
    for (int i = 0; i < 8; i++)
        assert_true(ls__rate_at(p, 4 + i) == want[i]);
}

static void waves(void **state)
{
    (void)state;
    double p[LS__RATE_NUMBERS] = { 0 };
    p[LS__RATE_KIND] = LS__RATE_COSINE;
    p[LS__RATE_VALUE] = 2;
    p[LS__RATE_STEPS] = 4;
    p[LS__RATE_ALPHA] = 0.5;
    const double want[] = { 2,   1 + 0.5 * (1 + 0.70710678118654752),
                            1.5, 1.5 - 0.35355339059327373,
                            1,   1 };
    for (int i = 0; i < 6; i++)
        assert_true(fabs(ls__rate_at(p, i) - want[i]) < 4e-16);
    assert_true(ls__rate_at(p, INT64_MAX) == 1);
    p[LS__RATE_WARMUP_STEPS] = 2;
    assert_true(ls__rate_at(p, 0) == 0 && ls__rate_at(p, 1) == 1 && ls__rate_at(p, 2) == 2);
    assert_true(ls__rate_at(p, 6) == 1);
}

static void the_row(void **state)
{
    (void)state;
    LS_FRAME {
        double p[LS__RATE_NUMBERS] = { 0 };
        p[LS__RATE_VALUE] = 0.25;
        ls_tensor *numbers = ls_from(LS_F64, LS_DIMS(LS__RATE_NUMBERS), p);
        ls_tensor *step = ls_scalar_int(LS_I64, 7);
        assert_true(ls_to_double(ls__rate(numbers, step)) == 0.25);
        assert_null(ls__rate(step, step));
        failed(LS_SHAPE);
        assert_null(ls__rate(numbers, numbers));
        failed(LS_SHAPE);
        /* Numbers from elsewhere lead nowhere outside. */
        const double bad[] = { -1, 65, 1e300, NAN, INFINITY };
        for (int i = 0; i < 5; i++) {
            p[LS__RATE_KIND] = LS__RATE_STEP;
            p[LS__RATE_COUNT] = bad[i];
            assert_true(
                isnan(ls_to_double(ls__rate(ls_from(LS_F64, LS_DIMS(LS__RATE_NUMBERS), p), step))));
            p[LS__RATE_COUNT] = 0;
            p[LS__RATE_KIND] = bad[i];
            assert_true(
                isnan(ls_to_double(ls__rate(ls_from(LS_F64, LS_DIMS(LS__RATE_NUMBERS), p), step))));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(cosine_is_close_and_fixed, clean),
        cmocka_unit_test_setup(powers, clean),
        cmocka_unit_test_setup(steps, clean),
        cmocka_unit_test_setup(waves, clean),
        cmocka_unit_test_setup(the_row, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
