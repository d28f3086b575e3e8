/*
 * gemm.h in AVX-512. Sums stay in registers while k runs; which way a vector lies is chosen so that
 * the weights are never copied or turned around:
 *
 *   A B, A B^T   vectors along the rows of A (turned, 64 at once), numbers of B repeated. What comes out
 *                is C^T, which is turned in the end: it is small beside B. Rows of B may all fall into one
 *                set of the first cache, which costs little: a line of it is then read from the second
 *                cache for each stripe.
 *   A B, narrow  vectors along the few columns of B, numbers of A repeated.
 *   A^T B        k is short, C is large: panels of B are packed once, and C is written row by row of tiles.
 */
#include "kernels/gemm.h"

#include "kernels/isa.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#include <stdbool.h>

enum {
    LANES = 16,
    DEEP = LS__GEMM_DEEP,
    DEEP_ALONG = LS__GEMM_DEEP_ALONG,
    WIDE = LS__GEMM_WIDE,
    TALL = LS__GEMM_TALL,
    ROWS = LS__GEMM_ROWS,
    VECTORS = ROWS / LANES, /* of those rows */
    MOST_COLUMNS = 16,      /* of a stripe */
    GROUP = 48,             /* columns that are fetched together: some stripes, some lines */
    MOST_LINES = DEEP_ALONG * ROWS / LANES
};

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

/* ---- turning -------------------------------------------------------------------------------- */

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

/* Part `i` of `parts`. */
INLINE ls__gemm_fetch share_of(const ls__gemm_fetch *all, int64_t i, int64_t parts)
{
    const int64_t first = all->count * i / parts, past = all->count * (i + 1) / parts;
    return (ls__gemm_fetch){ all->lines + first, past - first, all->shift };
}

/* ---- A B and A B^T ------------------------------------------------------------------------------- */

/* Some columns of the result, for up to 64 rows of A: C^T, 64 numbers a row. */
typedef struct stripe {
    const float *turned; /* [deep][64] of A */
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
        x[v] = _mm512_load_ps(s->turned + k * ROWS + v * LANES);
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
            _mm512_store_ps(s->c + i * ROWS + v * LANES, sum[i][v]);
}

/* Columns of a stripe: 24 sums in registers, 16 where there is one vector a column. */
INLINE int columns_of(int vectors)
{
    return vectors == 1 ? MOST_COLUMNS : 24 / vectors;
}

/* Some of k, for all columns of the result. */
typedef struct block {
    const float *turned, *b; /* as of a stripe; B from its first column on */
    int64_t ldb, deep, columns;
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
        each.fetch = share_of(&ahead, j % all->group / columns, stripes);
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

/* Few columns: vectors along them, numbers of A repeated; so A is not turned, nor is C. */
static void narrow(const ls__matmul_shape *s, const float *a, const float *b, float *c,
                   float *scratch)
{
    float *padded = scratch, *result = scratch + DEEP_ALONG * ROWS;
    block all = { .turned = padded,
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
            for (int64_t p = 0; p < all.deep; p++)
                for (int64_t q = 0; q < ROWS; q += LANES)
                    _mm512_store_ps(
                        padded + p * ROWS + q,
                        _mm512_maskz_loadu_ps(lanes(columns - q), b + (k + p) * s->ldb + j + q));
            run_block(&all, 0, s->m, result, true, columns);
        }
        for (int64_t i = 0; i < s->m; i++)
            for (int64_t q = 0; q < columns; q += LANES)
                _mm512_mask_storeu_ps(c + i * s->ldc + j + q, lanes(columns - q),
                                      _mm512_load_ps(result + i * ROWS + q));
    }
}

static void plain(const ls__matmul_shape *s, const float *a, const float *b, float *c,
                  float *scratch)
{
    if (s->n <= LS__GEMM_NARROW)
        narrow(s, a, b, c, scratch);
    else
        striped(s, a, b, c, scratch, false);
}

static void b_turned(const ls__matmul_shape *s, const float *a, const float *b, float *c,
                     float *scratch)
{
    striped(s, a, b, c, scratch, true);
}

/* ---- A^T B: a tile of rows of C and two vectors of columns -------------------------------------- */

typedef struct tile {
    const float *a; /* packed: [deep][tall] */
    const float *b; /* packed: [deep][32] */
    int64_t deep;
    float *c;
    int64_t ldc;
    __mmask16 columns[2];
    ls__gemm_fetch fetch;
} tile;

INLINE void run_tile(const tile *t, int tall)
{
    __m512 sum[TALL][2];
    for (int i = 0; i < tall; i++)
        for (int v = 0; v < 2; v++)
            sum[i][v] = _mm512_setzero_ps();
    const float *a = t->a, *b = t->b;
    for (int64_t k = 0; k < t->deep; k++, a += tall, b += WIDE) {
        const __m512 b0 = _mm512_load_ps(b), b1 = _mm512_load_ps(b + LANES);
        if (k < t->fetch.count)
            _mm_prefetch((const char *)(t->fetch.lines[k] + t->fetch.shift), _MM_HINT_T1);
        for (int i = 0; i < tall; i++) {
            const __m512 x = _mm512_set1_ps(a[i]);
            sum[i][0] = _mm512_fmadd_ps(x, b0, sum[i][0]);
            sum[i][1] = _mm512_fmadd_ps(x, b1, sum[i][1]);
        }
    }
    for (int i = 0; i < tall; i++)
        for (int v = 0; v < 2; v++)
            _mm512_mask_storeu_ps(t->c + i * t->ldc + v * LANES, t->columns[v], sum[i][v]);
}

static void run_tall(const tile *t, int64_t tall)
{
    switch (tall) {
#define CASE(n)                                                                                    \
    case n:                                                                                        \
        run_tile(t, n);                                                                            \
        break;
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12) CASE(13) CASE(14)
#undef CASE
    }
}

/* A panel of B: `deep` rows of up to 32 columns, filled up with zeros. */
INLINE void pack_panel(const float *b, int64_t ldb, int64_t deep, const __mmask16 *columns,
                       float *to)
{
    for (int64_t k = 0; k < deep; k++)
        for (int v = 0; v < 2; v++)
            _mm512_store_ps(to + k * WIDE + v * LANES,
                            _mm512_maskz_loadu_ps(columns[v], b + k * ldb + v * LANES));
}

static void pack_panels(const float *b, int64_t ldb, int64_t k, int64_t n, float *to)
{
    for (int64_t j = 0; j < n; j += WIDE) {
        const __mmask16 columns[2] = { lanes(n - j), lanes(n - j - LANES) };
        pack_panel(b + j, ldb, k, columns, to + j * k);
    }
}

static void dense_panels(const float *b, int64_t k, int64_t n, float *to)
{
    pack_panels(b, n, k, n, to);
}

static void pack_rows(const float *a, int64_t lda, int64_t k, int64_t tall, float *to)
{
    for (int64_t p = 0; p < k; p++)
        _mm512_mask_storeu_ps(to + p * tall, lanes(tall),
                              _mm512_maskz_loadu_ps(lanes(tall), a + p * lda));
}

static void make(const float *rows, const float *panels, int64_t k, int64_t n, int64_t tall,
                 int64_t column, int64_t columns, float *c, int64_t ldc,
                 const ls__gemm_fetch *meanwhile)
{
    const int64_t end = least(column + columns, n), tiles = (end - column + WIDE - 1) / WIDE;
    for (int64_t t = 0; t < tiles; t++) {
        const int64_t j = column + t * WIDE;
        const tile each = { .a = rows,
                            .b = panels + j * k,
                            .deep = k,
                            .c = c + j - column,
                            .ldc = ldc,
                            .columns = { lanes(end - j), lanes(end - j - LANES) },
                            .fetch = share_of(meanwhile, t, tiles) };
        run_tall(&each, tall);
    }
}

static void a_turned(const ls__matmul_shape *s, const float *a, const float *b, float *c,
                     float *scratch)
{
    float *rows = scratch, *panels = scratch + s->k * LANES;
    pack_panels(b, s->ldb, s->k, s->n, panels);
    for (int64_t i = 0; i < s->m; i += TALL) {
        const int64_t tall = least(TALL, s->m - i);
        pack_rows(a + i, s->lda, s->k, tall, rows);
        make(rows, panels, s->k, s->n, tall, 0, s->n, c + i * s->ldc, s->ldc,
             &(ls__gemm_fetch){ 0 });
    }
}

const ls__gemm_kernels
    LS__ISA(ls__gemm_table) = { plain, b_turned, a_turned, { dense_panels, pack_rows, make } };

#else

const ls__gemm_kernels LS__ISA(ls__gemm_table) = { 0 };

#endif
