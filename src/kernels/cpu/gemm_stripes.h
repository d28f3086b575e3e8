/*
 * A B and A B^T of gemm.c, which includes this where there is AVX-512: stripes of a few columns of the
 * result, for up to 64 rows of A at once.
 */
#ifndef LS__KERNELS_CPU_GEMM_STRIPES_H
#define LS__KERNELS_CPU_GEMM_STRIPES_H

#include "kernels/gemm.h"

#include "kernels/cpu/gemm_turn.h"

enum {
    DEEP = LS__GEMM_DEEP,
    DEEP_ALONG = LS__GEMM_DEEP_ALONG,
    ROWS = LS__GEMM_ROWS,
    VECTORS = ROWS / LANES, /* of those rows */
    MOST_COLUMNS = 16,      /* of a stripe */
    GROUP = 48,             /* columns that are fetched together: some stripes, some lines */
    MOST_LINES = DEEP_ALONG * ROWS / LANES
};

/* ---- A B and A B^T ------------------------------------------------------------------------------- */

/* Some columns of the result, for up to 64 rows of A: C^T, 64 numbers a row. */
typedef struct stripe {
    const float *turned; /* [deep][64] of A, or as far apart as... */
    int64_t apart;
    const float *b;
    int64_t ldb, deep;
    float *c;
    bool more; /* C^T has the sums so far */
    ls__gemm_fetch fetch;
} stripe;

typedef __m512 stripe_sums[MOST_COLUMNS][VECTORS];

/* `along`: k runs along the rows of B, which are columns of the result; otherwise down its columns. */
INLINE void add_products(const stripe *s, int64_t k, bool along, int columns, int vectors,
                         stripe_sums sum)
{
    const int64_t column = along ? s->ldb : 1, step = along ? 1 : s->ldb;
    __m512 x[VECTORS];
    for (int v = 0; v < vectors; v++)
        x[v] = _mm512_load_ps(s->turned + k * s->apart + v * LANES);
    for (int i = 0; i < columns; i++) {
        const __m512 w = _mm512_set1_ps(s->b[i * column + k * step]);
        for (int v = 0; v < vectors; v++)
            sum[i][v] = _mm512_fmadd_ps(w, x[v], sum[i][v]);
    }
}

INLINE void run_stripe(const stripe *s, bool along, int columns, int vectors)
{
    stripe_sums sum;
    for (int i = 0; i < columns; i++)
        for (int v = 0; v < vectors; v++)
            sum[i][v] = s->more ? _mm512_load_ps(s->c + i * ROWS + v * LANES) : _mm512_setzero_ps();
    int64_t k = 0;
    for (int64_t line = 0; k + 2 <= s->deep; k += 2, line++) {
        if (line < s->fetch.count)
            _mm_prefetch((const char *)(s->fetch.lines[line] + s->fetch.shift), _MM_HINT_T1);
        add_products(s, k, along, columns, vectors, sum);
        add_products(s, k + 1, along, columns, vectors, sum);
    }
    if (k < s->deep)
        add_products(s, k, along, columns, vectors, sum);
    for (int i = 0; i < columns; i++)
        for (int v = 0; v < vectors; v++)
            _mm512_store_ps(s->c + i * ROWS + v * LANES,
                            _mm512_add_ps(sum[i][v], _mm512_setzero_ps())); /* no -0 */
}

/* Columns of a stripe: 24 sums in registers, 16 where there is one vector a column. */
INLINE int columns_of(int vectors)
{
    return vectors == 1 ? MOST_COLUMNS : 24 / vectors;
}

/* Some of k, for all columns of the result. */
typedef struct block {
    const float *turned, *b; /* as of a stripe; B from its first column on */
    int64_t apart, ldb, deep, columns;
    bool more;
    int64_t group;                  /* columns, while which are made... */
    ls__gemm_fetch fetch;           /* ...this is fetched: what the next group needs... */
    ptrdiff_t next, below;          /* ...so far on for each group; behind the last */
    const float *lines[MOST_LINES]; /* what `fetch` has */
} block;

/* Lines of `rows` rows of some numbers. */
static void list_lines(block *all, const float *from, int64_t ld, int64_t rows, int64_t numbers)
{
    int64_t n = 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t q = 0; q < numbers; q += LANES)
            all->lines[n++] = from + i * ld + q;
    all->fetch = (ls__gemm_fetch){ .lines = all->lines, .count = n };
}

INLINE stripe stripe_of(const block *all, int64_t j, float *c, bool along)
{
    return (stripe){ .turned = all->turned,
                     .apart = all->apart,
                     .b = all->b + j * (along ? all->ldb : 1),
                     .ldb = all->ldb,
                     .deep = all->deep,
                     .c = c,
                     .more = all->more };
}

/* Columns [first, past), from the first of a group on, to c. */
INLINE void run_stripes(const block *all, int64_t first, int64_t past, float *c, bool along,
                        int vectors)
{
    const int columns = columns_of(vectors);
    const int64_t stripes = (all->group + columns - 1) / columns;
    int64_t j = first;
    for (; j + columns <= past; j += columns, c += columns * ROWS) {
        const int64_t group = j / all->group + 1, next = group * all->group;
        ls__gemm_fetch ahead = all->fetch;
        ahead.shift = next < all->columns ? group * all->next : all->below;
        stripe each = stripe_of(all, j, c, along);
        each.fetch = ls__gemm_fetch_part(&ahead, j % all->group / columns, stripes);
        run_stripe(&each, along, columns, vectors);
    }
    for (; j + 4 <= past; j += 4, c += 4 * ROWS) {
        const stripe four = stripe_of(all, j, c, along);
        run_stripe(&four, along, 4, vectors);
    }
    for (; j < past; j++, c += ROWS) {
        const stripe one = stripe_of(all, j, c, along);
        run_stripe(&one, along, 1, vectors);
    }
}

/* For so many numbers of a column. */
INLINE void run_block(const block *all, int64_t first, int64_t past, float *c, bool along,
                      int64_t numbers)
{
    switch ((numbers + LANES - 1) / LANES) {
    case 1:
        run_stripes(all, first, past, c, along, 1);
        break;
    case 2:
        run_stripes(all, first, past, c, along, 2);
        break;
    case 3:
        run_stripes(all, first, past, c, along, 3);
        break;
    default:
        run_stripes(all, first, past, c, along, 4);
    }
}

INLINE void striped(const ls__matmul_shape *s, const float *a, const float *b, float *c,
                    float *scratch, bool along)
{
    const int64_t most = along ? DEEP_ALONG : DEEP, step = along ? 1 : s->ldb;
    float *turned = scratch, *result = scratch + most * ROWS;
    block all = { .turned = turned,
                  .apart = ROWS,
                  .ldb = s->ldb,
                  .columns = s->n,
                  .group = GROUP,
                  .next = GROUP * (along ? s->ldb : 1),
                  .below = most * step };
    for (int64_t i = 0; i < s->m; i += ROWS) {
        const int64_t rows = least(ROWS, s->m - i);
        for (int64_t k = 0; k < s->k; k += most) {
            all.b = b + k * step;
            all.deep = least(most, s->k - k);
            all.more = k > 0;
            list_lines(&all, all.b, s->ldb, along ? GROUP : all.deep, along ? all.deep : GROUP);
            turn_matrix(a + i * s->lda + k, s->lda, rows, all.deep, turned, ROWS, true);
            /* Of one block, the result is turned while it is in the first cache. */
            const int64_t group = s->k > most ? s->n : GROUP;
            for (int64_t j = 0; j < s->n; j += group) {
                const int64_t past = least(j + group, s->n);
                run_block(&all, j, past, result, along, rows);
                if (k + most >= s->k)
                    turn_matrix(result, ROWS, past - j, rows, c + i * s->ldc + j, s->ldc, false);
            }
        }
    }
}

/* `high` rows of `wide` numbers, filled up with zeros to rows of 64. */
static void pad_rows(const float *from, int64_t ld, int64_t high, int64_t wide, float *to)
{
    for (int64_t p = 0; p < high; p++)
        for (int64_t q = 0; q < ROWS; q += LANES)
            _mm512_store_ps(to + p * ROWS + q,
                            _mm512_maskz_loadu_ps(lanes(wide - q), from + p * ld + q));
}

/* Whether rows of B are whole vectors that lie close together, so that they can be read where they are: of the
 * 64 columns of `cnn`'s dense layer that takes 410 us where a copy of each block takes 430 (Zen 4). */
static bool is_padded(const ls__matmul_shape *s, const float *b)
{
    return s->n == s->ldb && s->n <= ROWS && s->n % LANES == 0 && (uintptr_t)b % 64 == 0;
}

/* Few columns: vectors along them, numbers of A repeated; so A is not turned, nor is C. */
static void narrow(const ls__matmul_shape *s, const float *a, const float *b, float *c,
                   float *scratch)
{
    float *padded = scratch, *result = scratch + DEEP_ALONG * ROWS;
    const bool as_is = is_padded(s, b);
    block all = { .apart = as_is ? s->ldb : ROWS,
                  .ldb = s->lda,
                  .columns = s->m,
                  .group = s->m,
                  .below = DEEP_ALONG * s->ldb };
    for (int64_t j = 0; j < s->n; j += ROWS) {
        const int64_t columns = least(ROWS, s->n - j);
        for (int64_t k = 0; k < s->k; k += DEEP_ALONG) {
            all.b = a + k;
            all.deep = least(DEEP_ALONG, s->k - k);
            all.more = k > 0;
            list_lines(&all, b + k * s->ldb + j, s->ldb, all.deep, columns);
            if (!as_is)
                pad_rows(b + k * s->ldb + j, s->ldb, all.deep, columns, padded);
            all.turned = as_is ? b + k * s->ldb : padded;
            run_block(&all, 0, s->m, result, true, columns);
        }
        for (int64_t i = 0; i < s->m; i++)
            for (int64_t q = 0; q < columns; q += LANES)
                _mm512_mask_storeu_ps(c + i * s->ldc + j + q, lanes(columns - q),
                                      _mm512_load_ps(result + i * ROWS + q));
    }
}

#endif
