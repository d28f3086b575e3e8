/*
 * The few functions random numbers need, in plain operations that round the
 * same way everywhere (no libm, no fused multiply-add): accurate to a few units
 * in the last place, which is far below what a sample can show.
 */
#ifndef LS__KERNELS_CPU_RANDOM_MATH_H
#define LS__KERNELS_CPU_RANDOM_MATH_H

#include <stdint.h>
#include <string.h>

/* log of a normal number: x = 2^e m with m in [sqrt(1/2), sqrt(2)), and
 * log m = 2 atanh((m - 1) / (m + 1)) as its series. */
static inline float ls__log_f32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    int32_t e = (int32_t)(bits >> 23) - 127;
    bits = (bits & 0x7FFFFFu) | 0x3F800000u;
    float m;
    memcpy(&m, &bits, sizeof m);
    int32_t high = m > 1.41421356f;
    m = high ? m * 0.5f : m;
    e += high;
    float s = (m - 1.0f) / (m + 1.0f), z = s * s;
    float p = 1.0f / 9 + z * (1.0f / 11);
    p = 1.0f / 7 + z * p;
    p = 1.0f / 5 + z * p;
    p = 1.0f / 3 + z * p;
    p = s + s * (z * p);
    return (float)e * 0.69314718f + (p + p);
}

static inline double ls__log_f64(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int32_t e = (int32_t)(bits >> 52) - 1023;
    bits = (bits & 0xFFFFFFFFFFFFFu) | 0x3FF0000000000000u;
    double m;
    memcpy(&m, &bits, sizeof m);
    int32_t high = m > 1.4142135623730951;
    m = high ? m * 0.5 : m;
    e += high;
    double s = (m - 1.0) / (m + 1.0), z = s * s;
    double p = 1.0 / 21;
    for (int k = 19; k >= 3; k -= 2)
        p = 1.0 / k + z * p;
    p = s + s * (z * p);
    return (double)e * 0.6931471805599453 + (p + p);
}

/* cos and sin of a full turn times u, for u in [0, 1): the nearest quarter turn
 * is taken off exactly, what is left goes into the Taylor series. */
static inline void ls__turn_f32(float u, float *cosine, float *sine)
{
    int32_t q = (int32_t)(u * 4.0f + 0.5f);
    float a = (u - (float)q * 0.25f) * 6.28318531f, z = a * a;
    float s = 1.0f / 362880;
    s = -1.0f / 5040 + z * s;
    s = 1.0f / 120 + z * s;
    s = -1.0f / 6 + z * s;
    s = a + a * (z * s);
    float c = -1.0f / 3628800;
    c = 1.0f / 40320 + z * c;
    c = -1.0f / 720 + z * c;
    c = 1.0f / 24 + z * c;
    c = 1.0f + z * (-0.5f + z * c);
    float x = q & 1 ? s : c, y = q & 1 ? c : s;
    *cosine = (q + 1) & 2 ? -x : x;
    *sine = q & 2 ? -y : y;
}

static inline void ls__turn_f64(double u, double *cosine, double *sine)
{
    int32_t q = (int32_t)(u * 4.0 + 0.5);
    double a = (u - (double)q * 0.25) * 6.283185307179586, z = a * a;
    double s = 1.0, c = 1.0;
    for (int k = 8; k >= 1; k--) {
        s = 1.0 - z * s * (1.0 / (2 * k * (2 * k + 1)));
        c = 1.0 - z * c * (1.0 / (2 * k * (2 * k - 1)));
    }
    s *= a;
    double x = q & 1 ? s : c, y = q & 1 ? c : s;
    *cosine = (q + 1) & 2 ? -x : x;
    *sine = q & 2 ? -y : y;
}

/* exp of what is not above 0; 0 below -708, where results lose their digits. */
static inline double ls__exp_f64(double x)
{
    if (!(x >= -708.0))
        return 0.0;
    int32_t k = (int32_t)(x * 1.4426950408889634 - 0.5);
    double r = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10;
    double p = 1.0;
    for (int i = 13; i >= 1; i--)
        p = 1.0 + r * p * (1.0 / i);
    uint64_t bits = (uint64_t)(k + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return p * power;
}

#endif
