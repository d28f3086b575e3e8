/*
 * Counter-based random numbers: Philox4x32-10 (Salmon et al., 2011). A block of
 * four 32-bit words is a pure function of (key, counter), so any element of any
 * draw can be computed by anyone, in any order, on any thread.
 */
#ifndef LS__BASE_PHILOX_H
#define LS__BASE_PHILOX_H

#include <stdint.h>

/* What a draw depends on beside its own place (rule C): `ordinal` counts the
 * draws of a step. `domain` keeps kinds of use apart: the draws of operators,
 * initialisers, dataset shuffles. */
typedef enum ls__draw_domain {
    LS__DRAW_OPERATOR,
    LS__DRAW_INITIALISER,
    LS__DRAW_DATASET
} ls__draw_domain;

typedef struct ls__draw {
    uint64_t key; /* of (seed, domain, replica, step) */
    uint64_t ordinal;
} ls__draw;

uint64_t ls__draw_key(uint64_t seed, ls__draw_domain domain, int64_t replica, int64_t step);

/* Words 4*block .. 4*block+3 of the draw. */
void ls__philox_block(const ls__draw *draw, uint64_t block, uint32_t out[4]);

/* The raw function, for known-answer tests. */
void ls__philox4x32_10(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* Uniform in [0, 1): 24 and 53 bits. */
static inline float ls__unit_f32(uint32_t word)
{
    return (float)(word >> 8) * 0x1p-24f;
}

static inline double ls__unit_f64(uint32_t low, uint32_t high)
{
    return (double)(((uint64_t)high << 32 | low) >> 11) * 0x1p-53;
}

#endif
