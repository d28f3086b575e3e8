/*
 * The products of winograd.c, position by position. Vectors lie along the columns of the result, numbers of
 * the other matrix are repeated; sums stay in registers while k runs, each a chain of fma over k in order.
 *
 * A stripe is 1 to 4 vectors of columns, and as many rows as fill 24 registers: 24, 12, 8 or 6. A block has
 * room for a multiple of all of them, so that the last one needs no others: it multiplies what is in memory
 * behind its last tile, too, and nobody looks at that.
 */
#ifndef LS__KERNELS_CPU_WINOGRAD_PRODUCT_H
#define LS__KERNELS_CPU_WINOGRAD_PRODUCT_H

#include "kernels/cpu/vec16.h"
#include "kernels/winograd.h"

enum { STRIPE = 4, STRIPE_ROWS = 24 };

_Static_assert(LS__WINOGRAD_TILES % STRIPE_ROWS == 0, "whole stripes");

typedef struct stripe {
    const float *a, *b;
    float *c;
    int64_t deep, lda, ldb, ldc;
} stripe;

/* `tall` rows of `wide` vectors: with `turned` the numbers of a lie the other way; with `add` c is added to. */
VEC_INLINE void run_stripe(const stripe *s, int tall, int wide, int turned, bool add)
{
    vec sum[STRIPE_ROWS];
    for (int i = 0; i < tall; i++)
        for (int v = 0; v < wide; v++)
            sum[i * wide + v] = add ? vec_load(s->c + i * s->ldc + v * VEC) : vec_all(0);
    for (int64_t k = 0; k < s->deep; k++) {
        vec b[STRIPE];
        for (int v = 0; v < wide; v++)
            b[v] = vec_load(s->b + k * s->ldb + v * VEC);
        for (int i = 0; i < tall; i++) {
            const vec a = vec_all(turned ? s->a[k * s->lda + i] : s->a[i * s->lda + k]);
            for (int v = 0; v < wide; v++)
                sum[i * wide + v] = vec_fma(a, b[v], sum[i * wide + v]);
        }
    }
    for (int i = 0; i < tall; i++)
        for (int v = 0; v < wide; v++)
            vec_store(s->c + i * s->ldc + v * VEC, sum[i * wide + v]);
}

/* The next stripe's vectors: four at a time, but rather 3 and 2 than 4 and 1. */
static int next_wide(int64_t columns)
{
    const int64_t vectors = columns / VEC;
    return vectors == 5 ? 3 : vectors < STRIPE ? (int)vectors : STRIPE;
}

static void product_rows(const stripe *s, int64_t rows, int wide)
{
    const int tall = STRIPE_ROWS / wide;
    stripe each = *s;
    for (int64_t i = 0; i < rows; i += tall, each.a += tall * s->lda, each.c += tall * s->ldc)
        switch (wide) {
        case 1:
            run_stripe(&each, 24, 1, 0, false);
            break;
        case 2:
            run_stripe(&each, 12, 2, 0, false);
            break;
        case 3:
            run_stripe(&each, 8, 3, 0, false);
            break;
        default:
            run_stripe(&each, 6, 4, 0, false);
        }
}

/* `high`, the channels, are a multiple of 16. */
static void product_columns(const stripe *s, int64_t high, int wide, bool add)
{
    const int tall = wide < 4 ? 8 : 4;
    stripe each = *s;
    for (int64_t i = 0; i < high; i += tall, each.a += tall, each.c += tall * s->ldc)
        switch (wide) {
        case 1:
            run_stripe(&each, 8, 1, 1, add);
            break;
        case 2:
            run_stripe(&each, 8, 2, 1, add);
            break;
        case 3:
            run_stripe(&each, 8, 3, 1, add);
            break;
        default:
            run_stripe(&each, 4, 4, 1, add);
        }
}

static void product(int64_t rows, int64_t deep, int64_t columns, const float *a, const float *b,
                    float *c)
{
    for (int p = 0; p < LS__WINOGRAD_POSITIONS; p++) {
        int wide;
        for (int64_t j = 0; j < columns; j += wide * VEC) {
            wide = next_wide(columns - j);
            const stripe s = { a, b + j, c + j, deep, deep, columns, columns };
            product_rows(&s, rows, wide);
        }
        a += ls__winograd_plane(LS__WINOGRAD_TILES, deep);
        b += ls__winograd_plane(deep, columns);
        c += ls__winograd_plane(LS__WINOGRAD_TILES, columns);
    }
}

static void product_turned(int64_t rows, int64_t high, int64_t columns, const float *a,
                           const float *b, float *c, bool add)
{
    for (int p = 0; p < LS__WINOGRAD_POSITIONS; p++) {
        int wide;
        for (int64_t j = 0; j < columns; j += wide * VEC) {
            wide = next_wide(columns - j);
            const stripe s = { a, b + j, c + j, rows, high, columns, columns };
            product_columns(&s, high, wide, add);
        }
        a += ls__winograd_plane(LS__WINOGRAD_TILES, high);
        b += ls__winograd_plane(LS__WINOGRAD_TILES, columns);
        c += ls__winograd_plane(high, columns);
    }
}

#endif
