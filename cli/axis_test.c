/* Axes have round ticks and a range, whatever they are given. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <string.h>

#include "axis.h"

/* The labels, with spaces between them. */
static void expect_ticks(double low, double high, int most, bool whole, const char *expected)
{
    axis a = axis_make(low, high, most, whole);
    char labels[256] = "";
    text_number n;
    for (int i = 0; i < a.ticks; i++) {
        strcat(labels, i ? " " : "");
        strcat(labels, axis_label(&a, i, n));
    }
    assert_string_equal(labels, expected);
}

static void ticks_are_round(void **state)
{
    (void)state;
    expect_ticks(0, 1, 6, false, "0.0 0.2 0.4 0.6 0.8 1.0");
    expect_ticks(0, 1, 5, false, "0.0 0.5 1.0");
    expect_ticks(0.776, 0.927, 7, false, "0.80 0.85 0.90");
    expect_ticks(-1.2, 1.1, 5, false, "-1.0 -0.5 0.0 0.5 1.0");
    expect_ticks(0, 4690, 8, true, "0 1000 2000 3000 4000");
    expect_ticks(0, 46900, 5, true, "0 10k 20k 30k 40k");
    expect_ticks(0, 1.2e6, 5, true, "0 0.5M 1.0M");
    expect_ticks(0, 3e9, 4, true, "0 1G 2G 3G");
    expect_ticks(1, 10, 5, true, "2 4 6 8 10");
    expect_ticks(1, 2, 10, true, "1 2");
    expect_ticks(0.0001, 0.0005, 5, false, "0.0001 0.0002 0.0003 0.0004 0.0005");
    expect_ticks(0, 5e-6, 3, false, "0 2.0e-06 4.0e-06");
}

static void any_range_becomes_one(void **state)
{
    (void)state;
    static const double values[] = { 0,        1,         -1,   5e-324,    -5e-324,  1e-300,
                                     1e-9,     0.1,       1e15, 1e300,     DBL_MAX,  -DBL_MAX,
                                     INFINITY, -INFINITY, NAN,  1 + 1e-12, 123456789 };
    enum { N = sizeof values / sizeof values[0] };
    for (int i = 0; i < N * N * 4; i++) {
        double low = values[i / 4 % N], high = values[i / 4 / N];
        bool whole = i % 2, around = i / 2 % 2;
        axis a = around ? axis_around(low, high, 5) : axis_make(low, high, 5, whole);
        text_number n;
        assert_true(isfinite(a.low) && isfinite(a.high) && a.low < a.high);
        assert_true(a.step > 0 && isfinite(a.step));
        assert_in_range(a.ticks, 0, 5);
        for (int t = 0; t < a.ticks; t++) {
            double place = axis_place(&a, axis_tick(&a, t));
            assert_true(place >= -0.01 && place <= 1.01);
            assert_in_range(strlen(axis_label(&a, t, n)), 1, 24);
        }
    }
}

static void room_around(void **state)
{
    (void)state;
    axis a = axis_around(1, 2, 5);
    assert_true(a.low < 1 && a.low > 0.9 && a.high > 2 && a.high < 2.1);
    a = axis_around(0, 2, 5); /* nothing is below 0 */
    assert_true(a.low == 0);
}

static void few_that_are_far_off_are_left_out(void **state)
{
    (void)state;
    double values[100], low = -1, high = -1;
    for (int i = 0; i < 100; i++)
        values[i] = 0.2 + 0.001 * i;
    values[0] = 23;
    values[50] = NAN;
    values[51] = INFINITY;
    assert_true(axis_range(100, values, &low, &high));
    assert_true(low == 0.201 && high > 0.29 && high < 0.4);
    values[0] = 0.35; /* not far */
    assert_true(axis_range(100, values, &low, &high));
    assert_true(high == 0.35);
    values[0] = 23; /* of few, all are shown */
    assert_true(axis_range(10, values, &low, &high));
    assert_true(high == 23);
    low = high = 7;
    assert_false(axis_range(2, &values[50], &low, &high));
    assert_false(axis_range(0, NULL, &low, &high));
    assert_true(low == 7 && high == 7);
    double same[30];
    for (int i = 0; i < 30; i++)
        same[i] = i ? 1 : 2;
    assert_true(axis_range(30, same, &low, &high));
    assert_true(low == 1 && high == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticks_are_round),
        cmocka_unit_test(any_range_becomes_one),
        cmocka_unit_test(room_around),
        cmocka_unit_test(few_that_are_far_off_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
