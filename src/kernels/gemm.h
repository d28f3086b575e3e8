/*
 * Products with a matrix of weights that no cache holds, by few rows: what dense layers do in
 * training. The weights are read once, straight from where they are, and what is needed next is
 * fetched while the present part is multiplied, so that memory and arithmetic go on side by side.
 *
 * Every element of C is one chain of fma over k, in order, from +0 (and a zero in the end is +0): the same bits whatever
 * the blocks, the rows before it, or the row distances. Where A has many zeros they are left out, which changes no
 * bit (gemm_skip.h). f32, one thread.
 */
#ifndef LS__KERNELS_GEMM_H
#define LS__KERNELS_GEMM_H

#include <stddef.h>

#include "kernels/isa_select.h"
#include "kernels/matmul.h"

/* Whether this processor has kernels for the shape and they are faster than what there is else: a
 * rule on the sizes. `shape` is complete (row distances are filled in). */
bool ls__gemm_pays(const ls__matmul_shape *shape);

/* Floats of scratch memory, aligned to 64 bytes. */
size_t ls__gemm_scratch(const ls__matmul_shape *shape);

void ls__gemm_run(const ls__matmul_shape *shape, const float *a, const float *b, float *c,
                  float *scratch);

/* ---- A^T B, piece by piece --------------------------------------------------------------------- */

/* Lines of memory that are brought to a cache while something is multiplied, one in a round
 * (all at once, they would be waited for; those for which there is no round are left out): those at
 * `lines`, `shift` floats on. A line that is not memory does no harm. */
typedef struct ls__gemm_fetch {
    const float *const *lines;
    int64_t count;
    ptrdiff_t shift;
} ls__gemm_fetch;

/* Part `i` of `parts`. */
static inline ls__gemm_fetch ls__gemm_fetch_part(const ls__gemm_fetch *all, int64_t i,
                                                 int64_t parts)
{
    const int64_t first = all->count * i / parts, past = all->count * (i + 1) / parts;
    return (ls__gemm_fetch){ all->lines + first, past - first, all->shift };
}

/* More of them, to be read: eight of each row of a matrix, of which `count` from the `first` on. */
typedef struct ls__gemm_ahead {
    const float *from;
    int64_t ld, first, count;
} ls__gemm_ahead;

static inline ls__gemm_ahead ls__gemm_ahead_part(const ls__gemm_ahead *all, int64_t i,
                                                 int64_t parts)
{
    const int64_t first = all->count * i / parts, past = all->count * (i + 1) / parts;
    return (ls__gemm_ahead){ all->from, all->ld, all->first + first, past - first };
}

/* Adam's update (update.h) of some rows of weights, sixteen numbers at a time between the products: where what
 * divides is not what multiplies, it costs next to nothing there. The bits are those of the update by itself. */
typedef struct ls__gemm_adam {
    float *w, *m, *v; /* the first row */
    int64_t ld;       /* floats from a row to the next */
    const float *g;   /* the gradient */
    int64_t ldg;
    int64_t columns; /* of a row, a multiple of 16 */
    int64_t rows;    /* that are left; 0: all is done */
    int64_t at;      /* the next column of the first of them */
    float minus_rate, epsilon, one_minus_beta1, one_minus_beta2;
} ls__gemm_adam;

/* What is done while something is multiplied. */
typedef struct ls__gemm_meanwhile {
    ls__gemm_fetch fetch; /* to be written; two in a round where there are many */
    ls__gemm_ahead ahead;
    float *after;        /* NULL, or where C goes on: what is made next is fetched, to be written */
    ls__gemm_adam *adam; /* NULL: none. As much of it as there are rounds for */
} ls__gemm_meanwhile;

/* Whether it pays: on AMD's processors, whose divider leaves multiplication alone. (Zen 4: 88 becomes 93 GF/s. On
 * a Sapphire Rapids 16 numbers cost 31 cycles between products and 20 behind them: both want port 0.) */
bool ls__gemm_adam_pays(void);

/* For who takes C a few rows and columns at a time and never has all of it: the same bits. `k` rows of
 * B become panels once; for up to LS__GEMM_TALL columns of A, which are rows of C, these are packed;
 * and then any columns of these rows are made, from a multiple of LS__GEMM_WIDE on. With `add` they are
 * added to what is in c: c + product. */
typedef struct ls__gemm_pieces {
    void (*panels)(const float *b, int64_t ldb, int64_t k, int64_t n, float *to);
    void (*rows)(const float *a, int64_t lda, int64_t k, int64_t tall, float *to); /* k x 16 */
    void (*make)(const float *rows, const float *panels, int64_t k, int64_t n, int64_t tall,
                 int64_t column, int64_t columns, bool add, float *c, int64_t ldc,
                 const ls__gemm_meanwhile *meanwhile);
    void (*finish_adam)(ls__gemm_adam *adam); /* all that is left */
} ls__gemm_pieces;

/* The kernels of one instruction set (cpu/gemm.c); NULLs: none. */
typedef void ls__gemm_kernel(const ls__matmul_shape *s, const float *a, const float *b, float *c,
                             float *scratch);
typedef struct ls__gemm_kernels {
    ls__gemm_kernel *plain;    /* A B */
    ls__gemm_kernel *b_turned; /* A B^T */
    ls__gemm_kernel *a_turned; /* A^T B */
    ls__gemm_pieces pieces;
} ls__gemm_kernels;
LS__ISA_TABLE(ls__gemm_kernels, ls__gemm_table);

enum {
    LS__GEMM_DEEP = 64,        /* of k that are multiplied at once, down the columns of B... */
    LS__GEMM_DEEP_ALONG = 128, /* ...and along its rows: what is turned of A stays in a cache */
    LS__GEMM_WIDE = 32,        /* columns of a panel of B */
    LS__GEMM_TALL = 14,        /* most rows of a tile... */
    LS__GEMM_TILES = 8,        /* ...and tiles for which A is packed at once: up to eight lines */
    LS__GEMM_CHUNK = LS__GEMM_TILES * LS__GEMM_TALL,
    LS__GEMM_ROWS = 64,   /* rows of A that B meets at once */
    LS__GEMM_MOST = 256,  /* rows of A (A^T B: of both) that kernels are for */
    LS__GEMM_NARROW = 128 /* columns of B up to which A B is made the other way round */
};

/* Floats of B's panels. */
static inline int64_t ls__gemm_panel_floats(int64_t k, int64_t n)
{
    return k * ((n + LS__GEMM_WIDE - 1) / LS__GEMM_WIDE * LS__GEMM_WIDE);
}

#endif
