/*
 * Transcendental functions of f32 that the compiler's vectoriser can take: no
 * branches, no tables, no calls. In the AVX builds a loop over one of these
 * becomes vector code; a scalar tail or the base build (where fma is a call of
 * libm) does the same operations and gives the same bits.
 *
 * What holds for each: at most 4 ulp from the true value over all of f32
 * (elementwise_test.c measures it; most stay below 2), zeros, infinities and
 * NaN as in C's <math.h>, results that underflow go through the denormals.
 *
 * How they keep it: every product that must not be rounded is inside an
 * explicit fma; integers are taken out of floats by adding 1.5 * 2^23 and
 * looking at the bits, never by a conversion, so no input is undefined; special
 * inputs are selected at the end. The coefficients are minimax fits (Remez, in
 * relative error), rounded to f32.
 */
#ifndef LS__KERNELS_CPU_VECMATH_H
#define LS__KERNELS_CPU_VECMATH_H

#include <stdint.h>
#include <string.h>

#define LS__INFF __builtin_inff()
#define LS__NANF __builtin_nanf("")

/* x = hi + lo with hi the nearest float. */
#define LS__LN2_HI 0.693147182f
#define LS__LN2_LO -1.90465421e-09f

/* Adding it to |x| < 2^22 rounds to an integer, which is then in the low bits. */
#define LS__ROUND 12582912.0f

static inline uint32_t ls__bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float ls__float(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* ---- exponential ------------------------------------------------------------ */

/* exp(x) = p 2^n: gives p, about 1, and n; |x| below 2^21. */
static inline float ls__exp_split(float x, int32_t *n)
{
    float t = __builtin_fmaf(x, 1.44269502f, LS__ROUND);
    *n = (int32_t)(ls__bits(t) - ls__bits(LS__ROUND));
    float k = t - LS__ROUND;
    float r = __builtin_fmaf(k, -LS__LN2_HI, x);
    r = __builtin_fmaf(k, -LS__LN2_LO, r);
    float p = 0.00138368947f;
    p = __builtin_fmaf(p, r, 0.00836925302f);
    p = __builtin_fmaf(p, r, 0.0416680872f);
    p = __builtin_fmaf(p, r, 0.166665152f);
    p = __builtin_fmaf(p, r, 0.49999994f);
    return __builtin_fmaf(p * r, r, r) + 1.0f;
}

/* f * exp(x), with f multiplied in before the scaling by a power of two, so that
 * a result among the denormals is rounded once. The power is applied in two
 * halves: 2^128 and 2^-217 are no floats. */
static inline float ls__exp_times(float x, float f)
{
    x = x > 89.0f ? 89.0f : x; /* exp(89) is infinite, 1e6 exp(-150) zero; NaN stays */
    x = x < -150.0f ? -150.0f : x;
    int32_t n;
    float p = ls__exp_split(x, &n);
    int32_t half = n >> 1;
    float s1 = ls__float((uint32_t)(half + 127) << 23);
    float s2 = ls__float((uint32_t)(n - half + 127) << 23);
    return f * p * s1 * s2;
}

/* 2^64 exp(x) for -120 <= x <= 0, for less work than that: the caller multiplies by what
 * it wants to, and by LS__DOWN at the end. */
#define LS__DOWN 0x1p-64f
static inline float ls__exp_up(float x)
{
    int32_t n;
    float p = ls__exp_split(x, &n);
    return p * ls__float((uint32_t)(n + 64 + 127) << 23);
}

static inline float ls__expf(float x)
{
    return ls__exp_times(x, 1.0f);
}

/* ---- logarithm ---------------------------------------------------------------- */

/* x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), for a positive normal x. */
static inline float ls__log_split(float x, int32_t *k)
{
    uint32_t u = ls__bits(x) - 0x3f3504f3u;
    *k = (int32_t)u >> 23;
    return ls__float((u & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
}

/* k ln 2 + log(1 + f) + c, c being a small correction. */
static inline float ls__log_join(float k, float f, float c)
{
    float z = f * f;
    float p = 0.067466259f;
    p = __builtin_fmaf(p, f, -0.116756313f);
    p = __builtin_fmaf(p, f, 0.118881531f);
    p = __builtin_fmaf(p, f, -0.1240559f);
    p = __builtin_fmaf(p, f, 0.142195538f);
    p = __builtin_fmaf(p, f, -0.166679963f);
    p = __builtin_fmaf(p, f, 0.200021192f);
    p = __builtin_fmaf(p, f, -0.250000089f);
    p = __builtin_fmaf(p, f, 0.333333135f);
    float y = __builtin_fmaf(f * z, p, __builtin_fmaf(k, LS__LN2_LO, c));
    y = __builtin_fmaf(-0.5f, z, y);
    return __builtin_fmaf(k, LS__LN2_HI, f + y);
}

static inline float ls__logf(float x)
{
    uint32_t tiny = x < 0x1p-126f; /* denormals are lifted into the normal range */
    int32_t k;
    float f = ls__log_split(tiny ? x * 0x1p23f : x, &k);
    k -= tiny ? 23 : 0;
    float y = ls__log_join((float)k, f, 0.0f);
    y = x < LS__INFF ? y : x;
    y = x == 0.0f ? -LS__INFF : y;
    return x < 0.0f ? LS__NANF : y;
}

/* log(u) with u = 1 + x rounded, corrected by what the rounding lost; where u is
 * near 1, f is x itself. */
static inline float ls__log1pf(float x)
{
    float u = 1.0f + x;
    int32_t k;
    float f = ls__log_split(u, &k);
    float lost = x > 1.0f ? 1.0f - (u - x) : x - (u - 1.0f);
    float y = ls__log_join((float)k, k == 0 ? x : f, k == 0 ? 0.0f : lost / u);
    y = x < LS__INFF ? y : x;
    y = x == -1.0f ? -LS__INFF : y;
    y = x < -1.0f ? LS__NANF : y;
    return x == 0.0f ? x : y; /* keeps the sign of zero */
}

/* ---- hyperbolic tangent, logistic, softplus --------------------------------------- */

static inline float ls__tanhf(float x)
{
    float a = __builtin_fabsf(x), z = a * a;
    float e = ls__expf(2.0f * (a > 10.0f ? 10.0f : a)); /* tanh(10) is 1 */
    float large = 1.0f - 2.0f / (e + 1.0f);
    float p = -0.00569234043f;
    p = __builtin_fmaf(p, z, 0.0206281822f);
    p = __builtin_fmaf(p, z, -0.0537365153f);
    p = __builtin_fmaf(p, z, 0.133314058f);
    p = __builtin_fmaf(p, z, -0.333332807f);
    float small = __builtin_fmaf(a * z, p, a);
    return __builtin_copysignf(a < 0.625f ? small : large, x);
}

static inline float ls__sigmoidf(float x)
{
    float e = ls__expf(-__builtin_fabsf(x));
    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

static inline float ls__softplusf(float x)
{
    return (x > 0.0f ? x : 0.0f) + ls__log1pf(ls__expf(-__builtin_fabsf(x)));
}

/* ---- error function, GELU ------------------------------------------------------------ */

static inline float ls__erff(float x)
{
    float a = __builtin_fabsf(x), z = a * a;
    float t = a > 4.0f ? 4.0f : a; /* erf(4) is 1 */
    float q = -1.15165667e-05f;    /* erfc(t) = exp(t q - t) */
    q = __builtin_fmaf(q, t, 0.000325665402f);
    q = __builtin_fmaf(q, t, -0.0036541177f);
    q = __builtin_fmaf(q, t, 0.0237867627f);
    q = __builtin_fmaf(q, t, -0.106265597f);
    q = __builtin_fmaf(q, t, -0.635133922f);
    q = __builtin_fmaf(q, t, -0.128652781f);
    float large = 1.0f - ls__expf(__builtin_fmaf(q, t, -t));
    float p = -0.000592515629f;
    p = __builtin_fmaf(p, z, 0.00498068938f);
    p = __builtin_fmaf(p, z, -0.0267585646f);
    p = __builtin_fmaf(p, z, 0.112816177f);
    p = __builtin_fmaf(p, z, -0.376124799f);
    p = __builtin_fmaf(p, z, 0.128379151f);
    float small = __builtin_fmaf(p, a, a);
    return __builtin_copysignf(a < 0.9375f ? small : large, x);
}

/* The lower tail of the normal distribution at a >= 1 is W / a exp(-a^2 / 2); W is
 * smooth: a polynomial in (a - 4) / (a + 4), good to a = 14.6. */
static inline float ls__tail(float a)
{
    float q = (a - 4.0f) / (a + 4.0f);
    float p = 0.000791151193f;
    p = __builtin_fmaf(p, q, -0.000954133575f);
    p = __builtin_fmaf(p, q, -0.00548347831f);
    p = __builtin_fmaf(p, q, 0.0264348537f);
    p = __builtin_fmaf(p, q, -0.0630658641f);
    p = __builtin_fmaf(p, q, 0.100307204f);
    p = __builtin_fmaf(p, q, -0.11037948f);
    p = __builtin_fmaf(p, q, 0.0736942589f);
    return __builtin_fmaf(p, q, 0.377642572f);
}

/* f exp(-a^2 / 2): the square is carried in two floats, because exp turns an
 * absolute error of its argument into a relative one. */
static inline float ls__gauss_times(float a, float f)
{
    float s = a * a, lost = __builtin_fmaf(a, a, -s);
    return ls__exp_times(-0.5f * s, __builtin_fmaf(f, -0.5f * lost, f));
}

/* (Phi(x) - 1/2) / x for |x| <= 1, from z = x^2. */
static inline float ls__phi_small(float z)
{
    float p = -7.65262394e-06f;
    p = __builtin_fmaf(p, z, 0.000113482783f);
    p = __builtin_fmaf(p, z, -0.00118632708f);
    p = __builtin_fmaf(p, z, 0.00997332297f);
    p = __builtin_fmaf(p, z, -0.0664903596f);
    return __builtin_fmaf(p, z, 0.398942292f);
}

/* x Phi(x) = max(x, 0) - a Phi(-a), a = |x|: no cancellation in either tail. */
static inline float ls__geluf(float x)
{
    float a = __builtin_fabsf(x);
    a = a > 14.6f ? 14.6f : a; /* the tail is zero from here on */
    float far = (x > 0.0f ? x : 0.0f) - ls__gauss_times(a, ls__tail(a));
    float near = __builtin_fmaf(a * a, ls__phi_small(a * a), 0.5f * x);
    return a < 1.0f ? near : far;
}

/* Phi(x) + x phi(x). */
static inline float ls__gelu_slopef(float x)
{
    float a = __builtin_fabsf(x);
    a = a > 14.6f ? 14.6f : a;
    float e = ls__gauss_times(a, 1.0f);
    float t = e * __builtin_fmaf(-0.398942292f, a, ls__tail(a) / a);
    float far = x < 0.0f ? t : 1.0f - t;
    float near = __builtin_fmaf(x, __builtin_fmaf(0.398942292f, e, ls__phi_small(a * a)), 0.5f);
    return a < 1.0f ? near : far;
}

/* The tanh form is x sigmoid(v) with v = 2 sqrt(2/pi) (x + 0.044715 x^3) = x p. For
 * 0 <= a <= LS__GELU_MOST gives v and what its rounding lost, for the reason given above.
 * The first constant has 21 bits, so that p minus it has no rounding. */
#define LS__GELU_MOST 10.9f /* a exp(-v) is zero from here on */
static inline float ls__gelu_inner(float a, float *lost)
{
    float s = a * a, s_lo = __builtin_fmaf(a, a, -s);
    float p = __builtin_fmaf(0.0713548139f, s, 1.59576893f);
    float p_lo = __builtin_fmaf(0.0713548139f, s, -(p - 1.59576893f));
    p_lo = __builtin_fmaf(0.0713548139f, s_lo, p_lo) +
           __builtin_fmaf(2.39883247e-09f, s, 1.93077895e-07f);
    float v = a * p;
    *lost = __builtin_fmaf(a, p_lo, __builtin_fmaf(a, p, -v));
    return v;
}

static inline float ls__gelu_tanhf(float x)
{
    float a = __builtin_fabsf(x), lost;
    a = a > LS__GELU_MOST ? LS__GELU_MOST : a;
    float e = ls__exp_up(-ls__gelu_inner(a, &lost));
    float tail = e * __builtin_fmaf(a, -lost, a) * LS__DOWN; /* a exp(-v) */
    return (x < 0.0f ? -tail : x) / __builtin_fmaf(e, LS__DOWN, 1.0f);
}

/* sigmoid(v) + x v' sigmoid(v) (1 - sigmoid(v)). */
static inline float ls__gelu_tanh_slopef(float x)
{
    float a = __builtin_fabsf(x), lost;
    a = a > LS__GELU_MOST ? LS__GELU_MOST : a;
    float e = ls__exp_up(-ls__gelu_inner(a, &lost));
    e = __builtin_fmaf(e, -lost, e) * LS__DOWN;
    float d = 1.0f / (1.0f + e);
    float w = a * __builtin_fmaf(0.214064444f * a, a, 1.59576917f) * d;
    return (x < 0.0f ? e * (1.0f - w) : __builtin_fmaf(w, e, 1.0f)) * d;
}

/* ---- sine and cosine --------------------------------------------------------------------- */

/* Reduction by three floats of pi/2 is right below this; a loop calls the _big
 * form afterwards for the elements at or above it. */
#define LS__TRIG_LIMIT 32768.0f

/* sin(r + quadrant pi/2) for |r| <= pi/4. */
static inline float ls__sin_poly(float r, uint32_t quadrant)
{
    float z = r * r;
    float s = -0.000195178931f;
    s = __builtin_fmaf(s, z, 0.00833218731f);
    s = __builtin_fmaf(s, z, -0.166666552f);
    s = __builtin_fmaf(s * z, r, r);
    float c = 2.44323255e-05f;
    c = __builtin_fmaf(c, z, -0.00138873095f);
    c = __builtin_fmaf(c, z, 0.0416666456f);
    c = __builtin_fmaf(c * z, z, __builtin_fmaf(-0.5f, z, 1.0f));
    float y = quadrant & 1 ? c : s;
    return ls__float(ls__bits(y) ^ (quadrant & 2) << 30);
}

static inline float ls__sin_near(float x, uint32_t shift)
{
    float t = __builtin_fmaf(x, 0.636619747f, LS__ROUND);
    float k = t - LS__ROUND;
    float r = __builtin_fmaf(k, -1.57079637f, x);
    r = __builtin_fmaf(k, 4.37113883e-08f, r);
    r = __builtin_fmaf(k, 1.71512451e-15f, r);
    return ls__sin_poly(r, ls__bits(t) + shift); /* LS__ROUND ends in two zero bits */
}

static inline float ls__sinf(float x)
{
    float y = ls__sin_near(x, 0);
    return x == 0.0f ? x : y;
}

static inline float ls__cosf(float x)
{
    return ls__sin_near(x, 1);
}

/* For finite |x| >= LS__TRIG_LIMIT: x = m 2^e times 2/pi modulo 4, in fixed point
 * with the 96 bits of 2/pi that matter. Scalar: such arguments are rare. */
static inline float ls__sin_big(float x, uint32_t shift)
{
    static const uint32_t two_over_pi[8] = { 0,           0xa2f9836eu, 0x4e441529u, 0xfc2757d1u,
                                             0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu };
    uint32_t u = ls__bits(x);
    uint64_t m = (u & 0x7fffffu) | 0x800000u;
    uint32_t start = ((u >> 23) & 0xffu) - 150u + 30u, s = start & 31u;
    const uint32_t *at = two_over_pi + (start >> 5);
    uint32_t w[3];
    for (int i = 0; i < 3; i++)
        w[i] = (uint32_t)((((uint64_t)at[i] << 32 | at[i + 1]) << s) >> 32);
    uint64_t turn = (m * w[0] << 32) + m * w[1] + (m * w[2] >> 32);
    uint64_t quadrant = (turn + (1ull << 61)) >> 62;
    double rest = (double)(int64_t)(turn - (quadrant << 62));
    float r = (float)(rest * 0x1.921fb54442d18p-62); /* pi/2 2^-62 */
    uint32_t q = (uint32_t)quadrant;
    /* sin is odd and cos is even: for a negative x both r and q change sign. */
    return u >> 31 ? ls__sin_poly(-r, 0u - q + shift) : ls__sin_poly(r, q + shift);
}

/* ---- power ----------------------------------------------------------------------------------- */

/* log2 of a positive normal x, in double, to about 2^-44. */
static inline double ls__log2d(float x)
{
    uint32_t tiny = x < 0x1p-126f;
    int32_t k;
    double f = ls__log_split(tiny ? x * 0x1p23f : x, &k);
    k -= tiny ? 23 : 0;
    double s = f / (f + 2.0), z = s * s;
    double p = 0.28292424255138005;
    p = __builtin_fma(p, z, 0.3199041339113354);
    p = __builtin_fma(p, z, 0.41220928727048994);
    p = __builtin_fma(p, z, 0.5770779420507209);
    p = __builtin_fma(p, z, 0.9617966941143437);
    p = __builtin_fma(p, z, 2.8853900817778495);
    return __builtin_fma(p, s, (double)k);
}

/* 2^t for |t| <= 200, to about 2^-34. */
static inline double ls__exp2d(double t)
{
    const double round = 0x1.8p52;
    double shifted = t + round, r = t - (shifted - round);
    uint64_t u, u0;
    memcpy(&u, &shifted, sizeof u);
    memcpy(&u0, &round, sizeof u0);
    double p = 1.5195923015404632e-05;
    p = __builtin_fma(p, r, 0.0001546700848896602);
    p = __builtin_fma(p, r, 0.0013333938109178613);
    p = __builtin_fma(p, r, 0.00961803740613472);
    p = __builtin_fma(p, r, 0.05550410359920631);
    p = __builtin_fma(p, r, 0.2402265107100235);
    p = __builtin_fma(p, r, 0.6931471807068821);
    u = (u - u0 + 1023u) << 52;
    double scale;
    memcpy(&scale, &u, sizeof scale);
    return __builtin_fma(p, r, 1.0) * scale;
}

/* 2^(b log2 |a|), then the cases of C's pow. */
static inline float ls__powf(float a, float b)
{
    float m = __builtin_fabsf(a);
    double l = ls__log2d(m);
    l = m == 0.0f ? -LS__INFF : l;
    l = m < LS__INFF ? l : LS__INFF;
    double t = (double)b * l;
    t = m == 1.0f ? 0.0 : t;
    t = t > 200.0 ? 200.0 : t;
    t = t < -200.0 ? -200.0 : t;
    float y = (float)ls__exp2d(t);
    float half = 0.5f * b;
    uint32_t whole = __builtin_truncf(b) == b, even = __builtin_truncf(half) == half;
    uint32_t negative = ls__bits(a) >> 31;
    y = ls__float(ls__bits(y) ^ (negative & whole & (even ^ 1u)) << 31);
    y = ((a < 0.0f) & (a > -LS__INFF) & (whole ^ 1u)) ? LS__NANF : y;
    y = ((a != a) | (b != b)) ? LS__NANF : y;
    return ((a == 1.0f) | (b == 0.0f)) ? 1.0f : y;
}

#endif
