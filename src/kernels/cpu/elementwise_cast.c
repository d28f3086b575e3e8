/*
 * The conversions worth a fast loop: between the float types, from pixels,
 * masks and labels to f32, and from f32 to i32 and bool. Same values as
 * kernels/ref. Compiled once per instruction set.
 */
#include "base/bf16.h"
#include "kernels/cpu/elementwise_loop.h"

/* Clamped before it is converted, so that the conversion is always defined; the
 * largest float below 2^31 is 2147483520. */
static inline int32_t to_i32(float x)
{
    float t = x < -0x1p31f ? -0x1p31f : x;
    t = t > 2147483520.0f ? 2147483520.0f : t;
    int32_t whole = (int32_t)(x == x ? t : 0.0f);
    return x >= 0x1p31f ? INT32_MAX : whole;
}

LS__LOOP1(f32_to_f64, float, double, a)
LS__LOOP1(f64_to_f32, double, float, a)
LS__LOOP1(f32_to_bf16, float, uint16_t, ls__bf16_from_f32(a))
LS__LOOP1(bf16_to_f32, uint16_t, float, ls__bf16_to_f32(a))
LS__LOOP1(f32_to_i32, float, int32_t, to_i32(a))
LS__LOOP1(f32_to_bool, float, uint8_t, a != 0)
LS__LOOP1(i32_to_f32, int32_t, float, a)
LS__LOOP1(u8_to_f32, uint8_t, float, a)
LS__LOOP1(bool_to_f32, uint8_t, float, a != 0)
LS__LOOP1(bool_to_f64, uint8_t, double, a != 0)

const ls__casts LS__ISA(ls__casts_table) = {
    .loop = {
        [LS_F32] = { [LS_F64] = f32_to_f64, [LS_BF16] = f32_to_bf16, [LS_I32] = f32_to_i32,
                     [LS_BOOL] = f32_to_bool },
        [LS_F64] = { [LS_F32] = f64_to_f32 },
        [LS_BF16] = { [LS_F32] = bf16_to_f32 },
        [LS_I32] = { [LS_F32] = i32_to_f32 },
        [LS_U8] = { [LS_F32] = u8_to_f32 },
        [LS_BOOL] = { [LS_F32] = bool_to_f32, [LS_F64] = bool_to_f64 },
    },
};
