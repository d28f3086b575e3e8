/*
 * The reference conversions between all dtypes but bytes. A value is read as a
 * double or an int64, whichever holds it exactly, and stored from there. What
 * does not fit in an integer saturates, NaN gives 0; integers to floats, and
 * doubles to f32, round once; to bf16 by way of f32.
 */
#include "base/bf16.h"
#include "kernels/ref/ref_elementwise.h"

/* ---- storing ------------------------------------------------------------------------ */

/* Both limits of int32 and uint8 are exact as doubles; int64's upper one is not,
 * but 2^63 is, and all doubles below it fit. */
#define INTEGER(s, T, low, high)                                                                   \
    static T double_to_##s(double v)                                                               \
    {                                                                                              \
        if (v != v)                                                                                \
            return 0;                                                                              \
        return v <= (double)(low) ? (low) : v >= (double)(high) ? (high) : (T)v;                   \
    }                                                                                              \
    static T int_to_##s(int64_t v)                                                                 \
    {                                                                                              \
        return v < (low) ? (low) : v > (high) ? (high) : (T)v;                                     \
    }

INTEGER(i32, int32_t, INT32_MIN, INT32_MAX)
INTEGER(i64, int64_t, INT64_MIN, INT64_MAX)
INTEGER(u8, uint8_t, 0, UINT8_MAX)

#define OTHER(s, T, of_double, of_int)                                                             \
    static T double_to_##s(double v)                                                               \
    {                                                                                              \
        return of_double;                                                                          \
    }                                                                                              \
    static T int_to_##s(int64_t v)                                                                 \
    {                                                                                              \
        return of_int;                                                                             \
    }

OTHER(f32, float, (float)v, (float)v)
OTHER(f64, double, v, (double)v)
OTHER(bf16, uint16_t, ls__bf16_from_f32((float)v), ls__bf16_from_f32((float)v))
OTHER(bool, uint8_t, v != 0, v != 0)

/* ---- the loops: every type to every type ---------------------------------------------- */

#define TO_ALL(s, T, wide, read)                                                                   \
    LS__REF_LOOP1(s##_to_f32, T, float, wide##_to_f32(read))                                       \
    LS__REF_LOOP1(s##_to_f64, T, double, wide##_to_f64(read))                                      \
    LS__REF_LOOP1(s##_to_i32, T, int32_t, wide##_to_i32(read))                                     \
    LS__REF_LOOP1(s##_to_i64, T, int64_t, wide##_to_i64(read))                                     \
    LS__REF_LOOP1(s##_to_u8, T, uint8_t, wide##_to_u8(read))                                       \
    LS__REF_LOOP1(s##_to_bool, T, uint8_t, wide##_to_bool(read))                                   \
    LS__REF_LOOP1(s##_to_bf16, T, uint16_t, wide##_to_bf16(read))

TO_ALL(f32, float, double, (double)a)
TO_ALL(f64, double, double, a)
TO_ALL(i32, int32_t, int, a)
TO_ALL(i64, int64_t, int, a)
TO_ALL(u8, uint8_t, int, a)
TO_ALL(bool, uint8_t, int, a != 0)
TO_ALL(bf16, uint16_t, double, (double)ls__bf16_to_f32(a))

#define ROW(s)                                                                                     \
    {                                                                                              \
        [LS_F32] = s##_to_f32, [LS_F64] = s##_to_f64, [LS_I32] = s##_to_i32,                       \
        [LS_I64] = s##_to_i64, [LS_U8] = s##_to_u8, [LS_BOOL] = s##_to_bool,                       \
        [LS_BF16] = s##_to_bf16                                                                    \
    }

const ls__casts ls__ref_casts = {
    .loop = {
        [LS_F32] = ROW(f32), [LS_F64] = ROW(f64), [LS_I32] = ROW(i32), [LS_I64] = ROW(i64),
        [LS_U8] = ROW(u8), [LS_BOOL] = ROW(bool), [LS_BF16] = ROW(bf16),
    },
};
