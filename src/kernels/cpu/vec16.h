/*
 * Sixteen floats at once: registers of AVX-512, and where there are none what the compiler makes of them.
 * Lane by lane it is the same arithmetic, so files that are written with it have the same bits in every
 * build.
 */
#ifndef LS__KERNELS_CPU_VEC16_H
#define LS__KERNELS_CPU_VEC16_H

#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

/* In registers all of it is inlined and unrolled: vectors in an array are registers only where every index is a
 * constant. Elsewhere it is memory, and small: compilers take minutes over such loops unrolled. */
#pragma GCC diagnostic ignored "-Wpsabi"
#if defined(__AVX512F__)
#define VEC_INLINE static inline __attribute__((always_inline))
#define VEC_UNROLL _Pragma("GCC unroll 36")
#else
#define VEC_INLINE static __attribute__((noinline, unused))
#define VEC_UNROLL _Pragma("GCC unroll 1")
#endif

enum { VEC = 16 };
typedef float vec __attribute__((vector_size(VEC * 4)));

/* Which of n channels lie in the vector from i on: a bit a lane. */
VEC_INLINE uint16_t vec_lanes(int64_t n, int64_t i)
{
    return n - i >= VEC ? 0xffff : n > i ? (uint16_t)((1u << (n - i)) - 1) : 0;
}

#if defined(__AVX512F__)

VEC_INLINE vec vec_all(float x)
{
    return (vec)_mm512_set1_ps(x);
}

VEC_INLINE vec vec_fma(vec a, vec b, vec c)
{
    return (vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}

VEC_INLINE vec vec_load(const float *p)
{
    return (vec)_mm512_loadu_ps(p);
}

VEC_INLINE void vec_store(float *p, vec v)
{
    _mm512_storeu_ps(p, (__m512)v);
}

/* Only these lanes; the others are 0, or stay as they are. Where the compiler knows that they are all there is no
 * mask, which would cost. */
VEC_INLINE vec vec_load_some(const float *p, uint16_t lanes)
{
    if (__builtin_constant_p(lanes) && lanes == 0xffff)
        return vec_load(p);
    return (vec)_mm512_maskz_loadu_ps(lanes, p);
}

VEC_INLINE void vec_store_some(float *p, vec v, uint16_t lanes)
{
    if (__builtin_constant_p(lanes) && lanes == 0xffff)
        vec_store(p, v);
    else
        _mm512_mask_storeu_ps(p, lanes, (__m512)v);
}

/* The greater; b where neither is, or one of them is no number. */
VEC_INLINE vec vec_max(vec a, vec b)
{
    return (vec)_mm512_max_ps((__m512)a, (__m512)b);
}

/* A bit a lane: a > b; that, or one of them is no number; one of them is no number. */
VEC_INLINE uint16_t vec_greater(vec a, vec b)
{
    return (uint16_t)_mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_GT_OQ);
}

VEC_INLINE uint16_t vec_not_at_most(vec a, vec b)
{
    return (uint16_t)_mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_NLE_UQ);
}

VEC_INLINE uint16_t vec_unordered(vec a, vec b)
{
    return (uint16_t)_mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_UNORD_Q);
}

/* a where a bit is set, b elsewhere. */
VEC_INLINE vec vec_select(uint16_t bits, vec a, vec b)
{
    return (vec)_mm512_mask_mov_ps((__m512)b, (__mmask16)bits, (__m512)a);
}

#else

VEC_INLINE vec vec_all(float x)
{
    vec v;
    for (int i = 0; i < VEC; i++)
        v[i] = x;
    return v;
}

VEC_INLINE vec vec_fma(vec a, vec b, vec c)
{
    vec v;
    for (int i = 0; i < VEC; i++)
        v[i] = __builtin_fmaf(a[i], b[i], c[i]);
    return v;
}

VEC_INLINE vec vec_load(const float *p)
{
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

VEC_INLINE void vec_store(float *p, vec v)
{
    memcpy(p, &v, sizeof v);
}

VEC_INLINE vec vec_load_some(const float *p, uint16_t lanes)
{
    vec v = { 0 };
    for (int i = 0; i < VEC; i++)
        if (lanes >> i & 1)
            v[i] = p[i];
    return v;
}

VEC_INLINE void vec_store_some(float *p, vec v, uint16_t lanes)
{
    for (int i = 0; i < VEC; i++)
        if (lanes >> i & 1)
            p[i] = v[i];
}

VEC_INLINE vec vec_max(vec a, vec b)
{
    vec v;
    for (int i = 0; i < VEC; i++)
        v[i] = a[i] > b[i] ? a[i] : b[i];
    return v;
}

VEC_INLINE uint16_t vec_not_at_most(vec a, vec b)
{
    unsigned bits = 0;
    for (int i = 0; i < VEC; i++)
        bits |= (unsigned)!(a[i] <= b[i]) << i;
    return (uint16_t)bits;
}

VEC_INLINE uint16_t vec_greater(vec a, vec b)
{
    unsigned bits = 0;
    for (int i = 0; i < VEC; i++)
        bits |= (unsigned)(a[i] > b[i]) << i;
    return (uint16_t)bits;
}

VEC_INLINE uint16_t vec_unordered(vec a, vec b)
{
    unsigned bits = 0;
    for (int i = 0; i < VEC; i++)
        bits |= (unsigned)__builtin_isunordered(a[i], b[i]) << i;
    return (uint16_t)bits;
}

VEC_INLINE vec vec_select(uint16_t bits, vec a, vec b)
{
    vec v;
    for (int i = 0; i < VEC; i++)
        v[i] = bits >> i & 1 ? a[i] : b[i];
    return v;
}

#endif

#endif
