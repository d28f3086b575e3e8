/*
 * The reference loops of all element-wise functions. Invariant: no input is
 * undefined behaviour. Integers wrap (the sums are of the unsigned type), the
 * smallest integer divided by -1 wraps too, and a zero divisor gives 0.
 *
 * f32 functions that libm has are computed in double and rounded once.
 */
#include <math.h>

#include "kernels/ref/ref_elementwise.h"

/* ---- scalar functions ----------------------------------------------------------- */

static double sigmoid(double x)
{
    double e = exp(-fabs(x));
    return (x < 0 ? e : 1) / (1 + e);
}

static double softplus(double x)
{
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

/* Phi: the normal distribution; phi: its density. */
static double normal(double x)
{
    return 0.5 * erfc(-x * M_SQRT1_2);
}

static double density(double x)
{
    return exp(-0.5 * x * x) * (0.5 * M_2_SQRTPI * M_SQRT1_2);
}

/* At -infinity the products below would be infinity times 0; their limit is 0. */
static double gelu(double x)
{
    return x < -100 ? -0.0 : x * normal(x);
}

static double gelu_slope(double x)
{
    return fabs(x) > 100 ? x > 0 : normal(x) + x * density(x);
}

/* 0.5 (1 + tanh(u)) is sigmoid(2 u), without the cancellation. */
static double gelu_tanh(double x)
{
    double v = 2 * M_2_SQRTPI * M_SQRT1_2 * (x + 0.044715 * x * x * x);
    return x < -100 ? -0.0 : x * sigmoid(v);
}

static double gelu_tanh_slope(double x)
{
    const double c = 2 * M_2_SQRTPI * M_SQRT1_2;
    double s = sigmoid(c * (x + 0.044715 * x * x * x));
    double slope = c * (1 + 3 * 0.044715 * x * x);
    return fabs(x) > 100 ? x > 0 : s + x * slope * s * sigmoid(-c * (x + 0.044715 * x * x * x));
}

/* The remainder with the sign of the divisor; fmod is exact. */
static double floor_mod(double a, double b)
{
    double r = fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static float floor_modf(float a, float b)
{
    float r = fmodf(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/* ---- floats ------------------------------------------------------------------------ */

#define COMPARISONS(s, T)                                                                          \
    LS__REF_LOOP2(equal_##s, T, uint8_t, a == b)                                                   \
    LS__REF_LOOP2(not_equal_##s, T, uint8_t, a != b)                                               \
    LS__REF_LOOP2(less_##s, T, uint8_t, a < b)                                                     \
    LS__REF_LOOP2(less_equal_##s, T, uint8_t, a <= b)                                              \
    LS__REF_LOOP2(greater_##s, T, uint8_t, a > b)                                                  \
    LS__REF_LOOP2(greater_equal_##s, T, uint8_t, a >= b)

#define FLOATS(s, T, mod_of)                                                                       \
    LS__REF_LOOP2(add_##s, T, T, a + b)                                                            \
    LS__REF_LOOP2(sub_##s, T, T, a - b)                                                            \
    LS__REF_LOOP2(mul_##s, T, T, (a * b))                                                          \
    LS__REF_LOOP2(div_##s, T, T, a / b)                                                            \
    LS__REF_LOOP2(mod_##s, T, T, mod_of(a, b))                                                     \
    LS__REF_LOOP2(maximum_##s, T, T, a > b || a != a ? a : b)                                      \
    LS__REF_LOOP2(minimum_##s, T, T, a < b || a != a ? a : b)                                      \
    LS__REF_LOOP1(neg_##s, T, T, -a)                                                               \
    LS__REF_LOOP1(abs_##s, T, T, a < 0 ? -a : a == 0 ? 0 : a)                                      \
    LS__REF_LOOP1(sign_##s, T, T, a > 0 ? 1 : a < 0 ? -1 : a)                                      \
    LS__REF_LOOP1(square_##s, T, T, (a * a))                                                       \
    LS__REF_LOOP1(relu_##s, T, T, a <= 0 ? 0 : a)                                                  \
    LS__REF_LOOP3(clip_##s, T, T, T, (a < b) ? b : (a > c) ? c : a)                                \
    COMPARISONS(s, T)                                                                              \
    LS__REF_LOOP2(pow_##s, T, T, pow(a, b))                                                        \
    LS__REF_LOOP1(exp_##s, T, T, exp(a))                                                           \
    LS__REF_LOOP1(log_##s, T, T, log(a))                                                           \
    LS__REF_LOOP1(log1p_##s, T, T, log1p(a))                                                       \
    LS__REF_LOOP1(sqrt_##s, T, T, sqrt(a))                                                         \
    LS__REF_LOOP1(rsqrt_##s, T, T, 1 / sqrt(a))                                                    \
    LS__REF_LOOP1(sin_##s, T, T, sin(a))                                                           \
    LS__REF_LOOP1(cos_##s, T, T, cos(a))                                                           \
    LS__REF_LOOP1(tanh_##s, T, T, tanh(a))                                                         \
    LS__REF_LOOP1(erf_##s, T, T, erf(a))                                                           \
    LS__REF_LOOP1(sigmoid_##s, T, T, sigmoid(a))                                                   \
    LS__REF_LOOP1(softplus_##s, T, T, softplus(a))                                                 \
    LS__REF_LOOP1(gelu_##s, T, T, gelu(a))                                                         \
    LS__REF_LOOP1(gelu_tanh_##s, T, T, gelu_tanh(a))                                               \
    LS__REF_LOOP1(floor_##s, T, T, floor(a))                                                       \
    LS__REF_LOOP1(ceil_##s, T, T, ceil(a))                                                         \
    LS__REF_LOOP1(round_##s, T, T, rint(a))                                                        \
    LS__REF_LOOP1(isfinite_##s, T, uint8_t, fabs(a) < INFINITY)                                    \
    LS__REF_LOOP1(isnan_##s, T, uint8_t, a != a)                                                   \
    LS__REF_LOOP2(relu_grad_##s, T, T, a > 0 ? b : 0)                                              \
    LS__REF_LOOP2(tanh_grad_##s, T, T, (b * (1 - a * a)))                                          \
    LS__REF_LOOP2(sigmoid_grad_##s, T, T, (b * (a * (1 - a))))                                     \
    LS__REF_LOOP2(gelu_grad_##s, T, T, (b * gelu_slope(a)))                                        \
    LS__REF_LOOP2(gelu_tanh_grad_##s, T, T, (b * gelu_tanh_slope(a)))                              \
    LS__REF_LOOP4(clip_grad_##s, T, T, a >= c && a <= d ? b : 0)

FLOATS(f32, float, floor_modf)
FLOATS(f64, double, floor_mod)

/* ---- integers: T, with U the unsigned type that wraps ------------------------------- */

#define INTEGERS(s, T, U)                                                                          \
    static T div_of_##s(T a, T b)                                                                  \
    {                                                                                              \
        return (T)(b == 0 ? 0 : (T)-1 < (T)1 && b == (T)-1 ? (T)((U)0 - (U)a) : a / b);            \
    }                                                                                              \
    static T mod_of_##s(T a, T b)                                                                  \
    {                                                                                              \
        T r = (T)(b == 0 || ((T)-1 < (T)1 && b == (T)-1) ? 0 : a % b);                             \
        return (T)(r != 0 && (r < 1) != (b < 1) ? r + b : r);                                      \
    }                                                                                              \
    LS__REF_LOOP2(add_##s, T, T, (U)a + (U)b)                                                      \
    LS__REF_LOOP2(sub_##s, T, T, (U)a - (U)b)                                                      \
    LS__REF_LOOP2(mul_##s, T, T, ((U)a * (U)b))                                                    \
    LS__REF_LOOP2(div_##s, T, T, div_of_##s(a, b))                                                 \
    LS__REF_LOOP2(mod_##s, T, T, mod_of_##s(a, b))                                                 \
    LS__REF_LOOP2(maximum_##s, T, T, a > b ? a : b)                                                \
    LS__REF_LOOP2(minimum_##s, T, T, a < b ? a : b)                                                \
    LS__REF_LOOP1(neg_##s, T, T, (U)0 - (U)a)                                                      \
    LS__REF_LOOP1(abs_##s, T, T, a < 1 ? (U)0 - (U)a : (U)a)                                       \
    LS__REF_LOOP1(sign_##s, T, T, a == 0 ? 0 : a < 1 ? -1 : 1)                                     \
    LS__REF_LOOP1(square_##s, T, T, ((U)a * (U)a))                                                 \
    LS__REF_LOOP1(relu_##s, T, T, a < 1 ? 0 : a)                                                   \
    LS__REF_LOOP3(clip_##s, T, T, T, (a < b) ? b : (a > c) ? c : a)                                \
    COMPARISONS(s, T)

INTEGERS(i32, int32_t, uint32_t)
INTEGERS(i64, int64_t, uint64_t)
INTEGERS(u8, uint8_t, uint8_t)

/* ---- bools: 0 is false, all else true ------------------------------------------------ */

LS__REF_LOOP2(equal_bool, uint8_t, uint8_t, !a == !b)
LS__REF_LOOP2(not_equal_bool, uint8_t, uint8_t, !a != !b)
LS__REF_LOOP2(less_bool, uint8_t, uint8_t, !a && b)
LS__REF_LOOP2(less_equal_bool, uint8_t, uint8_t, !a || b)
LS__REF_LOOP2(greater_bool, uint8_t, uint8_t, a && !b)
LS__REF_LOOP2(greater_equal_bool, uint8_t, uint8_t, a || !b)
LS__REF_LOOP2(logical_and_bool, uint8_t, uint8_t, (a && b))
LS__REF_LOOP2(logical_or_bool, uint8_t, uint8_t, a || b)
LS__REF_LOOP1(logical_not_bool, uint8_t, uint8_t, !a)

LS__REF_LOOP3(where_1, uint8_t, uint8_t, uint8_t, a ? b : c)
LS__REF_LOOP3(where_2, uint8_t, ls__any16, ls__any16, a ? b : c)
LS__REF_LOOP3(where_4, uint8_t, ls__any32, ls__any32, a ? b : c)
LS__REF_LOOP3(where_8, uint8_t, ls__any64, ls__any64, a ? b : c)

/* ---- the table ------------------------------------------------------------------------- */

#define ON_FLOATS(f) [LS_F32] = f##_f32, [LS_F64] = f##_f64
#define ON_NUMBERS(f) ON_FLOATS(f), [LS_I32] = f##_i32, [LS_I64] = f##_i64, [LS_U8] = f##_u8
#define NUMBERS(f) [LS__FN_##f] = { ON_NUMBERS(f) }
#define ANY(f) [LS__FN_##f] = { ON_NUMBERS(f), [LS_BOOL] = f##_bool }
#define FLOATING(f) [LS__FN_##f] = { ON_FLOATS(f) }
#define BOOLS(f) [LS__FN_##f] = { [LS_BOOL] = f##_bool }

const ls__elementwise ls__ref_elementwise = {
    .fn = {
        NUMBERS(add), NUMBERS(sub), NUMBERS(mul), NUMBERS(div), NUMBERS(mod),
        NUMBERS(maximum), NUMBERS(minimum), NUMBERS(neg), NUMBERS(abs), NUMBERS(sign),
        NUMBERS(square), NUMBERS(relu), NUMBERS(clip),
        ANY(equal), ANY(not_equal), ANY(less), ANY(less_equal), ANY(greater), ANY(greater_equal),
        BOOLS(logical_and), BOOLS(logical_or), BOOLS(logical_not),
        FLOATING(pow), FLOATING(exp), FLOATING(log), FLOATING(log1p), FLOATING(sqrt),
        FLOATING(rsqrt), FLOATING(sin), FLOATING(cos), FLOATING(tanh), FLOATING(erf),
        FLOATING(sigmoid), FLOATING(softplus), FLOATING(gelu), FLOATING(gelu_tanh),
        FLOATING(floor), FLOATING(ceil), FLOATING(round), FLOATING(isfinite), FLOATING(isnan),
        FLOATING(relu_grad), FLOATING(tanh_grad), FLOATING(sigmoid_grad), FLOATING(gelu_grad),
        FLOATING(gelu_tanh_grad), FLOATING(clip_grad),
    },
    .where = { [1] = where_1, [2] = where_2, [4] = where_4, [8] = where_8 },
};
