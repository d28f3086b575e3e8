/*
 * The floating-point state: what kernels see, and that callers get theirs back.
 */
#include "base/fpu.h"

#include <fenv.h>
#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static volatile double tiny = DBL_MIN, half = 0.5, one = 1, third_of = 3;

static void flushes_denormals(void **state)
{
    (void)state;
    uint64_t before = ls__fpu_enter();
    volatile double flushed = tiny * half;
    ls__fpu_leave(before);
    volatile double kept = tiny * half;
    assert_true(flushed == 0);
    assert_true(kept > 0);
}

static void rounds_to_nearest_and_restores(void **state)
{
    (void)state;
    volatile double nearest = one / third_of;
    fesetround(FE_UPWARD);
    volatile double upward = one / third_of;
    uint64_t before = ls__fpu_enter();
    volatile double inside = one / third_of;
    ls__fpu_leave(before);
    int mode = fegetround();
    fesetround(FE_TONEAREST);
    assert_true(upward > nearest);
    assert_true(inside == nearest);
    assert_int_equal(mode, FE_UPWARD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flushes_denormals),
        cmocka_unit_test(rounds_to_nearest_and_restores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
