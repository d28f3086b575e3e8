/*
 * Products of gemm.h that leave out the zeros of A. What a ReLU gave is mostly zeros: in `mlp` half of the numbers
 * before the first step, seven of eight after some hundred; so are the gradients that come back through it, and half
 * of the pixels of an image. What is left of a row of A is a list of numbers, each with the row of B that it
 * is multiplied by, and sums of 96 columns stay in registers while the list runs.
 *
 * The bits are those of gemm.h: an fma with a zero changes no sum (but for the sign of a zero: all kernels of gemm.h
 * end with +0 where they have one), unless it meets an infinity or NaN. Then the kernels say so,
 * and the product is to be made with all of A.
 */
#ifndef LS__KERNELS_GEMM_SKIP_H
#define LS__KERNELS_GEMM_SKIP_H

#include "kernels/gemm.h"

enum {
    LS__SKIP_DEEP = 64,    /* of k whose rows of B are in the first cache at once... */
    LS__SKIP_COLUMNS = 96, /* ...with so many columns */
    LS__SKIP_ROWS = 256    /* columns of A, as rows of A^T, that are listed at once */
};

/* Whether there are kernels for such a shape, which gemm.h takes... */
bool ls__skip_fits(const ls__matmul_shape *shape);

/* ...and whether they pay: A has few enough numbers that are not 0. Looks at up to eight of its rows. */
bool ls__skip_pays(const ls__matmul_shape *shape, const float *a);

/* The numbers of some rows that are not 0, row after row. */
typedef struct ls__skip_list {
    float *values;
    int32_t *at;    /* where in a panel of B the row begins that it is multiplied by */
    int32_t *first; /* of each row, and behind the last */
} ls__skip_list;

/* Whether a list of `rows` rows of `k` numbers is not too long: up to 32 MiB. */
bool ls__skip_list_fits(int64_t rows, int64_t k);

/* Floats of room for a list of `rows` rows of `k` numbers, and the list in it (aligned to 64 bytes). */
int64_t ls__skip_list_floats(int64_t rows, int64_t k);
ls__skip_list ls__skip_list_in(float *room, int64_t rows, int64_t k);

/* Floats of scratch memory of the kernels, aligned to 64 bytes. */
size_t ls__skip_scratch(const ls__matmul_shape *shape);

/* False: a zero of A may have met what is not finite, and C is not the product. */
typedef bool ls__skip_kernel(const ls__matmul_shape *s, const float *a, const float *b, float *c,
                             float *scratch);

/* The kernels of one instruction set (cpu/gemm_skip.c); NULLs: none. */
typedef struct ls__skip_kernels {
    ls__skip_kernel *plain;                                                       /* A B */
    ls__skip_kernel *b_turned;                                                    /* A B^T */
    ls__skip_kernel *a_turned;                                                    /* A^T B */
    int64_t (*count)(const float *a, int64_t lda, int64_t rows, int64_t columns); /* not 0 */

    /* A^T B for who takes C a piece of a row at a time. B, which is to be finite, becomes panels of LS__SKIP_COLUMNS columns,
     * [k][96] each; columns of A, which are rows of C, become a list; and any row of C is made for the columns of a
     * panel, with `add` added to what is in c: c + product; lines that change next are fetched, to be written. */
    bool (*is_finite)(const float *b, int64_t n);
    void (*panels)(const float *b, int64_t ldb, int64_t k, int64_t n, float *to);
    void (*list)(const float *a, int64_t lda, int64_t k, int64_t columns, const ls__skip_list *to);
    void (*make)(const ls__skip_list *list, int64_t row, const float *panel, int64_t columns,
                 bool add, float *c, const ls__gemm_fetch *meanwhile);
} ls__skip_kernels;
LS__ISA_TABLE(ls__skip_kernels, ls__skip_table);

/* Floats of B's panels. */
static inline int64_t ls__skip_panel_floats(int64_t k, int64_t n)
{
    return k * ((n + LS__SKIP_COLUMNS - 1) / LS__SKIP_COLUMNS * LS__SKIP_COLUMNS);
}

#endif
