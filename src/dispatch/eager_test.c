/*
 * The executor around a kernel: whatever floating-point state the caller has set,
 * a kernel sees nearest rounding and no denormals, and the caller gets his back.
 */
#include <lockstep/operator.h>

#include <fenv.h>
#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

static int clean(void **state)
{
    (void)state;
    fesetenv(FE_DFL_ENV);
    ls_error();
    return 0;
}

/* ---- an operator that shows the state it runs in ------------------------------------ */

static ls_status probe_shape(ls_call *c)
{
    return ls_call_output(c, 0, LS_F32, 1, (const int64_t[]){ 4 });
}

/* x: the smallest normal number, a denormal, 1, 3. */
static ls_status probe_kernel(ls_call *c)
{
    const float *x = ls_call_in(c, 0);
    float *y = ls_call_out(c, 0);
    y[0] = x[0] / 2;     /* a denormal result */
    y[1] = x[1] * 1e30f; /* a denormal operand */
    y[2] = x[2] / x[3];
    y[3] = -x[2] / x[3];
    return LS_OK;
}

static ls_status failing_kernel(ls_call *c)
{
    probe_kernel(c);
    return ls_call_fail(c, LS_INVALID, "does not like it");
}

static const ls_op probe = { .size = sizeof(ls_op),
                             .name = "probe",
                             .inputs = 1,
                             .outputs = 1,
                             .shape = probe_shape,
                             .kernel = probe_kernel };
static const ls_op failing = { .size = sizeof(ls_op),
                               .name = "failing",
                               .inputs = 1,
                               .outputs = 1,
                               .shape = probe_shape,
                               .kernel = failing_kernel };

/* ---- the caller's state, and what shows it ------------------------------------------- */

static volatile float tiny = FLT_MIN, half = 0.5f, one = 1, three = 3;

typedef struct look {
    int rounding;
    float third, halved;
    unsigned control; /* all of it but the sticky flags */
} look;

static look look_now(void)
{
    look l;
    memset(&l, 0, sizeof l);
    l.rounding = fegetround();
    l.third = one / three;
    l.halved = tiny * half;
#if defined(__x86_64__)
    l.control = _mm_getcsr() & ~0x3Fu;
#endif
    return l;
}

static ls_tensor *four(void)
{
    return ls_from(LS_F32, LS_DIMS(4), (float[]){ FLT_MIN, FLT_MIN / 4, 1, 3 });
}

/* Calls both operators in the state that is set now; back to the default. */
static void call_both(void)
{
    LS_FRAME {
        ls_tensor *x = four();
        look before = look_now();
        ls_tensor *y = ls_apply(&probe, 1, &x, NULL);
        look after = look_now();
        ls_tensor *none = ls_apply(&failing, 1, &x, NULL);
        look after_failure = look_now();
        fesetenv(FE_DFL_ENV);

        const float *got = ls_data(y);
        assert_non_null(got);
        assert_true(got[0] == 0);
        assert_true(got[1] == 0);
        assert_true(got[2] == one / three);
        assert_true(got[3] == -one / three);
        assert_null(none);
        assert_int_equal(ls_error(), LS_INVALID);
        assert_memory_equal(&before, &after, sizeof before);
        assert_memory_equal(&before, &after_failure, sizeof before);
    }
}

static void kernels_run_in_one_state(void **state)
{
    (void)state;
#if !defined(__x86_64__) && !defined(__aarch64__)
    skip(); /* no state to set: base/fpu.h */
#endif
    static const int modes[] = { FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };
    for (int i = 0; i < 4; i++) {
        assert_int_equal(fesetround(modes[i]), 0);
        assert_true(look_now().halved > 0); /* the caller does not flush */
        call_both();
    }
}

#if defined(__x86_64__)
/* Callers that flush, all or half of it, and round elsewhere. */
static void callers_that_flush(void **state)
{
    (void)state;
    static const unsigned controls[] = { 0x9FC0, 0x9F80, 0x1FC0, 0xFFC0, 0xBF80, 0x5FC0 };
    for (size_t i = 0; i < sizeof controls / sizeof *controls; i++) {
        _mm_setcsr(controls[i]);
        call_both();
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(kernels_run_in_one_state, clean, clean),
#if defined(__x86_64__)
        cmocka_unit_test_setup_teardown(callers_that_flush, clean, clean),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
