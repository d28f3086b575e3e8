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
#include "kernels/cpu/gemm_adam.h"
#include "kernels/cpu/gemm_stripes.h"

enum { WIDE = LS__GEMM_WIDE, TALL = LS__GEMM_TALL };

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
    const float *a; /* packed: [deep][16] */
    const float *b; /* packed: [deep][32] */
    int64_t deep;
    float *c;
    int64_t ldc;
    __mmask16 columns[2];
    bool add;
    ls__gemm_fetch fetch;
    ls__gemm_ahead ahead;
    float *after; /* the tile of C that comes next; NULL: none */
    ls__gemm_adam *adam;
} tile;

/* Lines of round k. */
INLINE void fetch(const tile *t, int64_t k)
{
    if (k < t->fetch.count)
        __builtin_prefetch(t->fetch.lines[k] + t->fetch.shift, 1, 2);
    if (k + t->deep < t->fetch.count)
        __builtin_prefetch(t->fetch.lines[k + t->deep] + t->fetch.shift, 1, 2);
    if (t->after && k < 2 * TALL)
        __builtin_prefetch(t->after + k / 2 * t->ldc + k % 2 * LANES, 1, 2);
    if (k < t->ahead.count) {
        const int64_t line = t->ahead.first + k;
        _mm_prefetch((const char *)(t->ahead.from + line / 8 * t->ahead.ld + line % 8 * LANES),
                     _MM_HINT_T1);
    }
}

/* Of `vectors` columns, 1 or 2. `beside`: with Adam's update of some vectors between the products. */
INLINE void run_tile(const tile *t, int tall, int vectors, bool beside)
{
    enum { ROUNDS = 4 }; /* from one vector to the next */
    __m512 sum[TALL][2];
    for (int i = 0; i < tall; i++)
        for (int v = 0; v < vectors; v++)
            sum[i][v] = _mm512_setzero_ps();
    const float *a = t->a, *b = t->b;
    for (int64_t k = 0; k < t->deep; k++, a += LANES, b += WIDE) {
        const __m512 y[2] = { _mm512_load_ps(b), _mm512_load_ps(b + LANES) };
        fetch(t, k);
        for (int i = 0; i < tall; i++) {
            const __m512 x = _mm512_set1_ps(a[i]);
            for (int v = 0; v < vectors; v++)
                sum[i][v] = _mm512_fmadd_ps(x, y[v], sum[i][v]);
        }
        if (beside && k % ROUNDS == 0 && t->adam->rows > 0)
            adam_vector(t->adam);
    }
    for (int i = 0; i < tall; i++)
        for (int v = 0; v < vectors; v++) {
            float *c = t->c + i * t->ldc + v * LANES;
            const __mmask16 some = t->columns[v];
            const __m512 before = t->add ? _mm512_maskz_loadu_ps(some, c) : _mm512_setzero_ps();
            const __m512 after = _mm512_add_ps(before, sum[i][v]);
            if (some == 0xffff) /* a mask would cost */
                _mm512_storeu_ps(c, after);
            else
                _mm512_mask_storeu_ps(c, some, after);
        }
}

static void run_tall(const tile *t, int64_t tall)
{
    const bool one = !t->columns[1];
    if (t->adam && tall == TALL && !one) {
        run_tile(t, TALL, 2, true);
        return;
    }
    switch (tall) {
#define CASE(n)                                                                                    \
    case n:                                                                                        \
        if (one)                                                                                   \
            run_tile(t, n, 1, false);                                                              \
        else                                                                                       \
            run_tile(t, n, 2, false);                                                              \
        break;
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12) CASE(13) CASE(14)
#undef CASE
    }
}

/* Panels of 32 columns, [k][32], the last filled up with zeros. */
static void pack_panels(const float *b, int64_t ldb, int64_t k, int64_t n, float *to)
{
    for (int64_t j = 0; j < n; j += WIDE)
        for (int64_t p = 0; p < k; p++, to += WIDE)
            for (int v = 0; v < WIDE; v += LANES)
                _mm512_store_ps(to + v,
                                _mm512_maskz_loadu_ps(lanes(n - j - v), b + p * ldb + j + v));
}

static void pack_rows(const float *a, int64_t lda, int64_t k, int64_t tall, float *to)
{
    for (int64_t p = 0; p < k; p++)
        _mm512_store_ps(to + p * LANES, _mm512_maskz_loadu_ps(lanes(tall), a + p * lda));
}

static void make(const float *rows, const float *panels, int64_t k, int64_t n, int64_t tall,
                 int64_t column, int64_t columns, bool add, float *c, int64_t ldc,
                 const ls__gemm_meanwhile *meanwhile)
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
                            .add = add,
                            .fetch = ls__gemm_fetch_part(&meanwhile->fetch, t, tiles),
                            .ahead = ls__gemm_ahead_part(&meanwhile->ahead, t, tiles),
                            .after = meanwhile->after && t + 1 < tiles ? c + j - column + WIDE
                                                                       : meanwhile->after,
                            .adam = meanwhile->adam };
        run_tall(&each, tall);
    }
}

static void a_turned(const ls__matmul_shape *s, const float *a, const float *b, float *c,
                     float *scratch)
{
    float *rows = scratch, *panels = scratch + s->k * LANES * LS__GEMM_TILES;
    pack_panels(b, s->ldb, s->k, s->n, panels);
    for (int64_t first = 0; first < s->m; first += LS__GEMM_CHUNK) {
        const int64_t end = least(first + LS__GEMM_CHUNK, s->m);
        const ls__gemm_ahead next = { a + end, s->lda, 0, end < s->m ? 8 * s->k : 0 };
        for (int64_t i = first; i < end; i += TALL)
            pack_rows(a + i, s->lda, s->k, least(TALL, end - i),
                      rows + (i - first) / TALL * s->k * LANES);
        for (int64_t i = first; i < end; i += TALL) {
            const int64_t t = (i - first) / TALL;
            make(
                rows + t * s->k * LANES, panels, s->k, s->n, least(TALL, end - i), 0, s->n, false,
                c + i * s->ldc, s->ldc,
                &(ls__gemm_meanwhile){ .ahead = ls__gemm_ahead_part(&next, t, LS__GEMM_TILES),
                                       .after = i + TALL < s->m ? c + (i + TALL) * s->ldc : NULL });
        }
    }
}

const ls__gemm_kernels LS__ISA(ls__gemm_table) = {
    plain, b_turned, a_turned, { pack_panels, pack_rows, make, finish_adam }
};

#else

const ls__gemm_kernels LS__ISA(ls__gemm_table) = { 0 };

#endif
