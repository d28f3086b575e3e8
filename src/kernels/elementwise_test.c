/*
 * The fast element-wise loops of every instruction set this processor has,
 * against the reference: values, bits, and that an element's bits do not depend
 * on where it lies. (Shapes are broadcast_test.c's matter.)
 */
#include "kernels/elementwise.h"

#include <lockstep/ops.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/bf16.h"

#define COUNT(array) (int)(sizeof(array) / sizeof *(array))

/* ---- the builds to try --------------------------------------------------------- */

typedef struct build {
    const char *name;
    const ls__elementwise *table;
    const ls__casts *casts;
} build;

static int list_builds(build *out)
{
    int n = 0;
    out[n++] = (build){ "base", &ls__elementwise_table_base, &ls__casts_table_base };
#if defined(__x86_64__)
    if (ls__isa() >= LS__ISA_AVX2)
        out[n++] = (build){ "avx2", &ls__elementwise_table_avx2, &ls__casts_table_avx2 };
    if (ls__isa() >= LS__ISA_AVX512)
        out[n++] = (build){ "avx512", &ls__elementwise_table_avx512, &ls__casts_table_avx512 };
#endif
    return n;
}

static const struct {
    const char *name;
    int operands;
} functions[] = {
#define ENTRY(name, operands) { #name, operands },
    LS__FN_LIST(ENTRY)
};

/* ---- inputs ------------------------------------------------------------------------ */

static uint64_t state = 11;

static uint32_t next(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 32);
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Special values first, then any bits, numbers of everyday size, and integers. */
static float some_float(int64_t i)
{
    static const float special[] = { 0.0f,      -0.0f,  1.0f,     -1.0f,   INFINITY, -INFINITY,
                                     NAN,       1e-45f, -1e-45f,  1e-38f,  3.4e38f,  -3.4e38f,
                                     16777215,  0.5f,   -0.5f,    2.5f,    3.5f,     -2.5f,
                                     88.72284f, -87.4f, -103.97f, 0.9375f, 0.625f,   -14.5f,
                                     32767.99f, 32768,  1e10f,    -9.01f,  89.0f,    -13.4f };
    if (i < COUNT(special))
        return special[i];
    if (i % 4 == 0)
        return float_of(next());
    if (i % 4 == 1)
        return (float)(int)(next() % 41) - 20;
    float u = (float)((double)next() / 4294967296.0 * 2 - 1);
    return i % 4 == 2 ? 4 * u : 30 * u;
}

static size_t size_of(ls_dtype d)
{
    return ls_dtype_size(d);
}

static void fill(ls_dtype dtype, void *data, int64_t n, int64_t salt)
{
    for (int64_t i = 0; i < n; i++) {
        float x = some_float((i + salt) % n);
        switch (dtype) {
        case LS_F32:
            ((float *)data)[i] = x;
            break;
        case LS_F64:
            ((double *)data)[i] = x;
            break;
        case LS_I32:
            ((int32_t *)data)[i] = (int32_t)(i % 3 ? next() % 21 - 10 : next());
            break;
        case LS_I64:
            ((int64_t *)data)[i] = (int64_t)next() << (next() % 32);
            break;
        case LS_BF16:
            ((uint16_t *)data)[i] = ls__bf16_from_f32(x);
            break;
        default:
            ((uint8_t *)data)[i] = (uint8_t)(dtype == LS_BOOL ? next() & 1 : next());
        }
    }
}

/* Equal bits, where one NaN is as good as another. */
static bool same(ls_dtype dtype, const void *a, const void *b)
{
    if (dtype == LS_F32 && isnan(*(const float *)a))
        return isnan(*(const float *)b);
    if (dtype == LS_F64 && isnan(*(const double *)a))
        return isnan(*(const double *)b);
    return memcmp(a, b, size_of(dtype)) == 0;
}

static void expect_same(ls_dtype dtype, const void *a, const void *b, int64_t n, const char *what,
                        const char *where)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t at = i * (int64_t)size_of(dtype);
        if (!same(dtype, (const char *)a + at, (const char *)b + at))
            fail_msg("%s, %s: element %lld differs", what, where, (long long)i);
    }
}

/* Units in the last place of f32 between got and the exact value. */
static double ulps(float got, double exact)
{
    if (isnan(exact) || isnan(got))
        return isnan(exact) && isnan(got) ? 0 : INFINITY;
    if ((float)exact == got) /* also both infinite */
        return 0;
    if (isinf(got) || isinf(exact)) /* the edge of overflow is one unit from infinity */
        return fabs(exact) > 3.4028e38 && fabsf(got) > 3.4028e38f ? 1 : INFINITY;
    int e;
    frexp(exact, &e);
    double unit = ldexp(1, e - 24 < -149 || exact == 0 ? -149 : e - 24);
    return fabs(got - exact) / unit;
}

/* ---- tests ------------------------------------------------------------------------------ */

enum { N = 1500 };
static _Alignas(64) char operand[4][(N + 64) * 8], result[4][(N + 64) * 8];
static const void *const operands[] = { operand[0], operand[1], operand[2], operand[3] };

static bool is_test(ls__fn fn)
{
    return (fn >= LS__FN_equal && fn <= LS__FN_logical_not) || fn == LS__FN_isfinite ||
           fn == LS__FN_isnan;
}

static ls_dtype result_of(ls__fn fn, ls_dtype dtype)
{
    return is_test(fn) ? LS_BOOL : dtype;
}

/* Computed by a formula of our own, so not the reference's bits. */
static bool is_approximate(ls__fn fn, ls_dtype dtype)
{
    static const ls__fn own[] = { LS__FN_pow,       LS__FN_exp,       LS__FN_log,
                                  LS__FN_log1p,     LS__FN_rsqrt,     LS__FN_sin,
                                  LS__FN_cos,       LS__FN_tanh,      LS__FN_erf,
                                  LS__FN_sigmoid,   LS__FN_softplus,  LS__FN_gelu,
                                  LS__FN_gelu_tanh, LS__FN_gelu_grad, LS__FN_gelu_tanh_grad };
    for (int i = 0; i < COUNT(own); i++)
        if (own[i] == fn)
            return dtype == LS_F32;
    return false;
}

typedef void (*visit_fn)(const build *b, ls__fn fn, ls_dtype dtype, ls__loop *fast);

static void each_fast_loop(visit_fn visit)
{
    build builds[3];
    int n = list_builds(builds);
    for (int b = 0; b < n; b++)
        for (int fn = 0; fn < LS__FN_COUNT; fn++)
            for (int d = LS_F32; d < LS_BYTES; d++)
                if (builds[b].table->fn[fn][d]) {
                    for (int k = 0; k < functions[fn].operands; k++)
                        fill((ls_dtype)d, operand[k], N, 37 * k);
                    visit(&builds[b], (ls__fn)fn, (ls_dtype)d, builds[b].table->fn[fn][d]);
                }
}

/* All ways the operands can stand still. */
static void check_against_reference(const build *b, ls__fn fn, ls_dtype dtype, ls__loop *fast)
{
    ls__loop *ref = ls__ref_elementwise.fn[fn][dtype];
    assert_non_null(ref);
    if (is_approximate(fn, dtype))
        return;
    for (int still = 0; still < 1 << functions[fn].operands; still++) {
        int64_t step[4];
        for (int k = 0; k < 4; k++)
            step[k] = !(still >> k & 1);
        fast(operands, step, result[0], N);
        ref(operands, step, result[1], N);
        expect_same(result_of(fn, dtype), result[0], result[1], N, functions[fn].name, b->name);
    }
}

static void fast_is_reference(void **unused)
{
    (void)unused;
    each_fast_loop(check_against_reference);
}

/* 4 units in the last place, but for the slopes of gelu, which cross zero: there
 * 4e-7 of 1 counts too. */
static void check_accuracy(ls__fn fn, const float *x, const float *y, int64_t n, const char *where)
{
    static double wide[2][N], exact[N];
    bool slope = fn == LS__FN_gelu_grad || fn == LS__FN_gelu_tanh_grad;
    for (int64_t i = 0; i < n; i++) {
        wide[0][i] = x[i];
        wide[1][i] = slope ? 1 : fn == LS__FN_pow ? ((const float *)operand[1])[i] : 0;
    }
    int64_t step[] = { 1, 1 };
    ls__ref_elementwise.fn[fn][LS_F64]((const void *const[]){ wide[0], wide[1] }, step, exact, n);
    for (int64_t i = 0; i < n; i++)
        if (ulps(y[i], exact[i]) > 4 && !(slope && fabs(y[i] - exact[i]) < 4e-7))
            fail_msg("%s, %s: of %.9g is %.9g, should be %.9g", functions[fn].name, where,
                     (double)x[i], (double)y[i], exact[i]);
}

static void check_math(const build *b, ls__fn fn, ls_dtype dtype, ls__loop *fast)
{
    if (!is_approximate(fn, dtype))
        return;
    int64_t step[] = { 1, fn == LS__FN_pow }, turns = strcmp(b->name, "base") ? 60 : 6;
    for (int64_t turn = 0; turn < turns; turn++) {
        if (fn != LS__FN_pow)
            *(float *)operand[1] = 1;
        fast(operands, step, result[0], N);
        check_accuracy(fn, (float *)operand[0], (float *)result[0], N, b->name);
        fill(LS_F32, operand[0], N, turn);
        fill(LS_F32, operand[1], N, 7 * turn);
    }
}

static void math_is_accurate(void **unused)
{
    (void)unused;
    each_fast_loop(check_math);
}

/* Every special number raised to every other. */
static void powers_of_special_numbers(void **unused)
{
    (void)unused;
    build builds[3];
    int n = list_builds(builds);
    float *a = (float *)operand[0], *b = (float *)operand[1], *y = (float *)result[0];
    int64_t count = 0, step[] = { 1, 1 };
    for (int i = 0; i < 30; i++)
        for (int j = 0; j < 30; j++, count++)
            a[count] = some_float(i), b[count] = some_float(j);
    for (int k = 0; k < n; k++) {
        builds[k].table->fn[LS__FN_pow][LS_F32](operands, step, y, count);
        for (int64_t i = 0; i < count; i++) {
            double want = pow(a[i], b[i]);
            if (ulps(y[i], want) > 4 || (want == 0 && !signbit(y[i]) != !signbit(want)))
                fail_msg("pow(%.9g, %.9g) is %.9g, should be %.9g (%s)", (double)a[i], (double)b[i],
                         (double)y[i], want, builds[k].name);
        }
    }
}

static void check_same_bits(const build *b, ls__fn fn, ls_dtype dtype, ls__loop *fast)
{
    int64_t step[] = { 1, 1, 0, 0 };
    ls_dtype out = result_of(fn, dtype);
    ls__elementwise_table_base.fn[fn][dtype](operands, step, result[0], N);
    fast(operands, step, result[1], N);
    expect_same(out, result[0], result[1], N, functions[fn].name, b->name);

    /* The same elements in short pieces, at other addresses. */
    size_t size = size_of(dtype), out_size = size_of(out);
    for (int64_t from = 0; from < N;) {
        int64_t run = 1 + next() % 70, shift = next() % 9;
        run = run < N - from ? run : N - from;
        static _Alignas(64) char moved[4][80 * 8 + 16 * 8], piece[80 * 8 + 16 * 8];
        const void *in[4];
        for (int k = 0; k < 4; k++) {
            in[k] = moved[k] + shift * (int64_t)size;
            memcpy(moved[k] + shift * (int64_t)size,
                   operand[k] + (step[k] ? from : 0) * (int64_t)size, size * (size_t)run);
        }
        fast(in, step, piece + shift * (int64_t)out_size, run);
        expect_same(out, result[0] + from * (int64_t)out_size, piece + shift * (int64_t)out_size,
                    run, functions[fn].name, "in pieces");
        from += run;
    }
    if (out != dtype)
        return;
    /* Over its first operand. */
    memcpy(result[2], operand[0], N * size);
    fast((const void *const[]){ result[2], operand[1], operand[2], operand[3] }, step, result[2],
         N);
    expect_same(out, result[0], result[2], N, functions[fn].name, "in place");
}

static void bits_depend_on_values_alone(void **unused)
{
    (void)unused;
    each_fast_loop(check_same_bits);
}

static void selects(void **unused)
{
    (void)unused;
    build builds[3];
    int n = list_builds(builds);
    for (int b = 0; b < n; b++)
        for (int size = 1; size <= 8; size *= 2)
            for (int still = 0; still < 8; still++) {
                int64_t step[] = { !(still & 1), !(still & 2), !(still & 4) };
                fill(LS_BOOL, operand[0], N, 0);
                fill(LS_I64, operand[1], N, 0);
                fill(LS_I64, operand[2], N, 0);
                builds[b].table->where[size](operands, step, result[0], N);
                ls__ref_elementwise.where[size](operands, step, result[1], N);
                assert_memory_equal(result[0], result[1], N * size);
            }
}

static void casts_are_the_references(void **unused)
{
    (void)unused;
    build builds[3];
    int n = list_builds(builds);
    for (int b = 0; b < n; b++)
        for (int from = LS_F32; from < LS_BYTES; from++)
            for (int to = LS_F32; to < LS_BYTES; to++) {
                assert_non_null(ls__ref_casts.loop[from][to]);
                ls__loop *fast = builds[b].casts->loop[from][to];
                for (int64_t step = 0; step < 2 && fast; step++) {
                    fill((ls_dtype)from, operand[0], N, 0);
                    fast(operands, &step, result[0], N);
                    ls__ref_casts.loop[from][to](operands, &step, result[1], N);
                    expect_same((ls_dtype)to, result[0], result[1], N, "cast", builds[b].name);
                }
            }
}

static void casts_saturate(void **unused)
{
    (void)unused;
    static const float x[] = { 3e9f, -3e9f, NAN, 1e20f, -1e20f, INFINITY, 255.9f, -0.9f, 2.7f };
    static const int32_t i32[] = { INT32_MAX, INT32_MIN, 0, INT32_MAX, INT32_MIN,
                                   INT32_MAX, 255,       0, 2 };
    static const int64_t i64[] = { 3000000000, -3000000000, 0, INT64_MAX, INT64_MIN,
                                   INT64_MAX,  255,         0, 2 };
    static const uint8_t u8[] = { 255, 0, 0, 255, 0, 255, 255, 0, 2 };
    const void *in[] = { x };
    int64_t step = 1;
    ls__cast_loop(LS_F32, LS_I32)(in, &step, result[0], 9);
    assert_memory_equal(result[0], i32, sizeof i32);
    ls__cast_loop(LS_F32, LS_I64)(in, &step, result[0], 9);
    assert_memory_equal(result[0], i64, sizeof i64);
    ls__cast_loop(LS_F32, LS_U8)(in, &step, result[0], 9);
    assert_memory_equal(result[0], u8, sizeof u8);

    static const float halves[] = { 1.00390625f, 1.01171875f, NAN, 3.4e38f };
    static const uint16_t bf16[] = { 0x3f80, 0x3f82, 0x7fc0, 0x7f80 };
    in[0] = halves;
    ls__cast_loop(LS_F32, LS_BF16)(in, &step, result[0], 4);
    assert_memory_equal(result[0], bf16, sizeof bf16);
}

static void integers_wrap(void **unused)
{
    (void)unused;
    static const int32_t a[] = { INT32_MIN, INT32_MIN, INT32_MAX, -7, 7, -7, 5, INT32_MIN };
    static const int32_t b[] = { -1, 1, 1, 2, -2, -2, 0, INT32_MIN };
    static const int32_t sum[] = { INT32_MAX, INT32_MIN + 1, INT32_MIN, -5, 5, -9, 5, 0 };
    static const int32_t product[] = { INT32_MIN, INT32_MIN, INT32_MAX, -14, -14, 14, 0, 0 };
    static const int32_t quotient[] = { INT32_MIN, INT32_MIN, INT32_MAX, -3, -3, 3, 0, 1 };
    static const int32_t rest[] = { 0, 0, 0, 1, -1, -1, 0, 0 };
    static const struct {
        ls__fn fn;
        const int32_t *want;
    } cases[] = {
        { LS__FN_add, sum }, { LS__FN_mul, product }, { LS__FN_div, quotient }, { LS__FN_mod, rest }
    };
    const void *in[] = { a, b };
    int64_t step[] = { 1, 1 };
    for (int i = 0; i < COUNT(cases); i++) {
        ls__elementwise_loop(cases[i].fn, LS_I32)(in, step, result[0], 8);
        assert_memory_equal(result[0], cases[i].want, sizeof a);
    }
    assert_int_equal(ls__first_zero(LS_I32, b, 8), 6);
    assert_int_equal(ls__first_zero(LS_I32, b, 6), -1);

    static const uint8_t small[] = { 0, 1, 200 }, minus[] = { 0, 255, 56 };
    in[0] = small;
    ls__elementwise_loop(LS__FN_neg, LS_U8)(in, step, result[0], 3);
    assert_memory_equal(result[0], minus, 3);
}

/* Between integers too: through the operator, with every limit and its neighbours. */
static void integer_casts_saturate(void **unused)
{
    (void)unused;
    LS_FRAME {
        static const int32_t a[] = { 300, -5, 255, 256, 0, -1, INT32_MAX, INT32_MIN };
        static const uint8_t a_u8[] = { 255, 0, 255, 255, 0, 0, 255, 0 };
        ls_tensor *t = ls_from(LS_I32, LS_DIMS(8), a);
        assert_memory_equal(ls_data(ls_cast(t, LS_U8)), a_u8, sizeof a_u8);
        static const int64_t a_i64[] = { 300, -5, 255, 256, 0, -1, INT32_MAX, INT32_MIN };
        assert_memory_equal(ls_data(ls_cast(t, LS_I64)), a_i64, sizeof a_i64);

        static const int64_t b[] = {
            (int64_t)1 << 40, -((int64_t)1 << 40),    INT32_MAX, (int64_t)INT32_MAX + 1,
            INT32_MIN,        (int64_t)INT32_MIN - 1, 256,       -1
        };
        static const int32_t b_i32[] = { INT32_MAX, INT32_MIN, INT32_MAX, INT32_MAX,
                                         INT32_MIN, INT32_MIN, 256,       -1 };
        static const uint8_t b_u8[] = { 255, 0, 255, 255, 0, 0, 255, 0 };
        t = ls_from(LS_I64, LS_DIMS(8), b);
        assert_memory_equal(ls_data(ls_cast(t, LS_I32)), b_i32, sizeof b_i32);
        assert_memory_equal(ls_data(ls_cast(t, LS_U8)), b_u8, sizeof b_u8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_is_reference),
        cmocka_unit_test(math_is_accurate),
        cmocka_unit_test(powers_of_special_numbers),
        cmocka_unit_test(bits_depend_on_values_alone),
        cmocka_unit_test(selects),
        cmocka_unit_test(casts_are_the_references),
        cmocka_unit_test(casts_saturate),
        cmocka_unit_test(integers_wrap),
        cmocka_unit_test(integer_casts_saturate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
