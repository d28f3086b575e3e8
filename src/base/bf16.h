/* bfloat16: the upper half of an f32. Rounds to nearest, ties to even; a NaN
 * stays a (quiet) NaN. */
#ifndef LS__BASE_BF16_H
#define LS__BASE_BF16_H

#include <stdint.h>
#include <string.h>

static inline float ls__bf16_to_f32(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint16_t ls__bf16_from_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1)) >> 16;
    uint32_t nan = (bits >> 16) | 0x40u;
    return (uint16_t)((bits & 0x7FFFFFFFu) > 0x7F800000u ? nan : rounded);
}

#endif
