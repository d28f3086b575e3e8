/* For the files of gemm.h: lanes of a vector, and matrices turned. */
#ifndef LS__KERNELS_CPU_GEMM_TURN_H
#define LS__KERNELS_CPU_GEMM_TURN_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

enum { LANES = 16 };

#define INLINE static inline __attribute__((always_inline))

INLINE int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The first n lanes; all of them from 16 on, none below 1. */
INLINE __mmask16 lanes(int64_t n)
{
    return n >= LANES ? (__mmask16)0xffff : n <= 0 ? (__mmask16)0 : (__mmask16)((1u << n) - 1);
}

/* 16 rows of 16 become columns. */
INLINE void turn(__m512 r[LANES])
{
    __m512 t[LANES];
    for (int i = 0; i < LANES; i += 2) {
        t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < LANES; i += 4) {
        r[i] = _mm512_shuffle_ps(t[i], t[i + 2], 0x44);
        r[i + 1] = _mm512_shuffle_ps(t[i], t[i + 2], 0xee);
        r[i + 2] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        r[i + 3] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    for (int i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
        t[i + 4] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd);
        t[i + 8] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xdd);
    }
    for (int i = 0; i < 4; i++) {
        r[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
        r[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd);
        r[i + 4] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0x88);
        r[i + 12] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0xdd);
    }
}

/* `rows` x `cols` numbers become cols x rows; with `pad`, rows of the result are filled up with zeros to
 * whole vectors. */
static void turn_matrix(const float *from, int64_t ld, int64_t rows, int64_t cols, float *to,
                        int64_t ldto, bool pad)
{
    for (int64_t i = 0; i < rows; i += LANES)
        for (int64_t j = 0; j < cols; j += LANES) {
            const int64_t high = least(LANES, rows - i), wide = least(LANES, cols - j);
            const __mmask16 in = lanes(wide), out = pad ? (__mmask16)0xffff : lanes(high);
            __m512 r[LANES];
            for (int k = 0; k < LANES; k++)
                r[k] = k < high ? _mm512_maskz_loadu_ps(in, from + (i + k) * ld + j)
                                : _mm512_setzero_ps();
            turn(r);
            for (int k = 0; k < wide; k++)
                _mm512_mask_storeu_ps(to + (j + k) * ldto + i, out, r[k]);
        }
}

#endif
