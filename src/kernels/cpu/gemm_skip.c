/*
 * gemm_skip.h in AVX-512. B is taken in blocks that the first cache holds, 64 rows of 96 columns, copied (A B) or
 * turned (A B^T) to where no two lines push each other out: from there a core reads what it multiplies as fast as it
 * multiplies, from the second cache half as fast. Every row of A adds up what its list has for the
 * block, and meanwhile the next block is fetched.
 */
#include "kernels/gemm_skip.h"

#include "kernels/isa.h"

#if defined(__AVX512F__)
#include "kernels/cpu/gemm_turn.h"

enum {
    DEEP = LS__SKIP_DEEP,
    COLUMNS = LS__SKIP_COLUMNS,
    VECTORS = COLUMNS / LANES,
    MOST_K = LS__GEMM_MOST /* of A^T B */
};

/* ---- lists -------------------------------------------------------------------------------------- */

INLINE __mmask16 not_zero(__m512 x)
{
    return _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NEQ_UQ); /* NaN is not */
}

/* Appends some lanes; how many. Writes whole vectors. */
INLINE int64_t append(__mmask16 some, __m512 x, __m512i at, float *values, int32_t *ats)
{
    _mm512_storeu_ps(values, _mm512_maskz_compress_ps(some, x));
    _mm512_storeu_si512(ats, _mm512_maskz_compress_epi32(some, at));
    return __builtin_popcount(some);
}

/* Where rows i to i + 15 of a panel begin. */
INLINE __m512i begins(int64_t i)
{
    const __m512i rows = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    return _mm512_mullo_epi32(_mm512_add_epi32(rows, _mm512_set1_epi32((int)i)),
                              _mm512_set1_epi32(COLUMNS));
}

/* Appends a row of n numbers to a list of `count`; how many there are then. Where it has numbers is added to `used`, unless
 * that is NULL. */
INLINE int64_t append_row(const float *a, int64_t n, const ls__skip_list *to, int64_t count,
                          __mmask16 *used)
{
    for (int64_t i = 0; i < n; i += LANES) {
        const __m512 x = _mm512_maskz_loadu_ps(lanes(n - i), a + i);
        const __mmask16 some = not_zero(x);
        if (used)
            used[i / LANES] |= some;
        count += append(some, x, begins(i), to->values + count, to->at + count);
    }
    return count;
}

/* The zeros that all rows have, as one more row. */
INLINE int64_t append_unused(const __mmask16 *used, int64_t n, const ls__skip_list *to,
                             int64_t count)
{
    for (int64_t i = 0; i < n; i += LANES)
        count += append(lanes(n - i) & (__mmask16)~used[i / LANES], _mm512_setzero_ps(), begins(i),
                        to->values + count, to->at + count);
    return count;
}

/* Row by row for each block of k, and behind each block what no row uses. */
static void list_blocks(const float *a, int64_t lda, int64_t rows, int64_t k,
                        const ls__skip_list *to)
{
    int64_t count = 0, next = 0;
    for (int64_t q = 0; q < k; q += DEEP) {
        const int64_t deep = least(DEEP, k - q);
        __mmask16 used[DEEP / LANES] = { 0 };
        for (int64_t i = 0; i < rows; i++) {
            to->first[next++] = (int32_t)count;
            count = append_row(a + i * lda + q, deep, to, count, used);
        }
        to->first[next++] = (int32_t)count;
        count = append_unused(used, deep, to, count);
    }
    to->first[next] = (int32_t)count;
}

static void list(const float *a, int64_t lda, int64_t k, int64_t columns, const ls__skip_list *to)
{
    _Alignas(64) float turned[LANES * MOST_K];
    int64_t count = 0;
    for (int64_t j = 0; j < columns; j += LANES) {
        const int64_t wide = least(LANES, columns - j);
        turn_matrix(a + j, lda, k, wide, turned, MOST_K, true);
        for (int64_t i = 0; i < wide; i++) {
            to->first[j + i] = (int32_t)count;
            count = append_row(turned + i * MOST_K, k, to, count, NULL);
        }
    }
    to->first[columns] = (int32_t)count;
}

static int64_t count(const float *a, int64_t lda, int64_t rows, int64_t columns)
{
    int64_t n = 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j += LANES)
            n += __builtin_popcount(
                not_zero(_mm512_maskz_loadu_ps(lanes(columns - j), a + i * lda + j)));
    return n;
}

/* 0 x is 0, or NaN where x is no finite number. */
INLINE __m512 note_finite(__m512 x, __m512 noted)
{
    return _mm512_fmadd_ps(x, _mm512_setzero_ps(), noted);
}

INLINE bool all_finite(__m512 noted)
{
    return _mm512_cmp_ps_mask(noted, noted, _CMP_UNORD_Q) == 0;
}

static bool is_finite(const float *b, int64_t n)
{
    __m512 noted = _mm512_setzero_ps();
    for (int64_t i = 0; i < n; i += LANES)
        noted = note_finite(_mm512_maskz_loadu_ps(lanes(n - i), b + i), noted);
    return all_finite(noted);
}

/* ---- sums --------------------------------------------------------------------------------------- */

typedef __m512 row_sums[VECTORS];

INLINE void add_listed(const ls__skip_list *list, int64_t row, const float *b, int vectors,
                       row_sums sum)
{
    for (int64_t e = list->first[row], end = list->first[row + 1]; e < end; e++) {
        const __m512 x = _mm512_set1_ps(list->values[e]);
        for (int v = 0; v < vectors; v++)
            sum[v] = _mm512_fmadd_ps(x, _mm512_load_ps(b + list->at[e] + v * LANES), sum[v]);
    }
}

/* A call with a number of vectors N that the compiler knows, enough for so many columns. */
#define CASE(n, call)                                                                              \
    case n: {                                                                                      \
        enum { N = n };                                                                            \
        call;                                                                                      \
    } break;
#define FOR_COLUMNS(columns, call)                                                                 \
    switch (((columns) + LANES - 1) / LANES) {                                                     \
        CASE(1, call)                                                                              \
        CASE(2, call)                                                                              \
        CASE(3, call)                                                                              \
        CASE(4, call)                                                                              \
        CASE(5, call)                                                                              \
        CASE(6, call)                                                                              \
    }

/* Some rows of B as rows of a panel, filled up with zeros to whole vectors. */
INLINE void copy_rows(const float *b, int64_t ldb, int64_t rows, int64_t columns, float *to)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j += LANES)
            _mm512_store_ps(to + i * COLUMNS + j,
                            _mm512_maskz_loadu_ps(lanes(columns - j), b + i * ldb + j));
}

/* ---- A B and A B^T ------------------------------------------------------------------------------ */

/* Lines of the block that comes next. */
typedef struct ahead {
    const float *from;
    int64_t ld;
    int per_row, lines;
} ahead;

INLINE void fetch(const ahead *next, int64_t part, int64_t parts)
{
    const int64_t past = next->lines * (part + 1) / parts;
    for (int64_t i = next->lines * part / parts; i < past; i++)
        _mm_prefetch(
            (const char *)(next->from + i / next->per_row * next->ld + i % next->per_row * LANES),
            _MM_HINT_T1);
}

typedef struct block {
    const ls__skip_list *list;
    int64_t row; /* of the list, its first */
    const float *b;
    int64_t rows;
    bool more; /* the sums so far are in... */
    float *result;
    ahead next;
} block;

/* False: a row of B that nobody uses is not finite. What is not in the others comes out. */
INLINE bool run_block(const block *k, int vectors)
{
    row_sums sum;
    for (int64_t i = 0; i < k->rows; i++) {
        float *to = k->result + i * COLUMNS;
        fetch(&k->next, i, k->rows);
        for (int v = 0; v < vectors; v++)
            sum[v] = k->more ? _mm512_load_ps(to + v * LANES) : _mm512_setzero_ps();
        add_listed(k->list, k->row + i, k->b, vectors, sum);
        for (int v = 0; v < vectors; v++)
            _mm512_store_ps(to + v * LANES, sum[v]);
    }
    for (int v = 0; v < vectors; v++)
        sum[v] = _mm512_setzero_ps();
    add_listed(k->list, k->row + k->rows, k->b, vectors, sum);
    for (int v = 1; v < vectors; v++)
        sum[0] = _mm512_add_ps(sum[0], sum[v]);
    return all_finite(sum[0]);
}

/* Sums to their places in C, +0 for zeros of either sign; whether all are finite. */
static bool put(const float *result, int64_t rows, int64_t columns, float *c, int64_t ldc)
{
    __m512 noted = _mm512_setzero_ps();
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j += LANES) {
            const __m512 sum =
                _mm512_add_ps(_mm512_load_ps(result + i * COLUMNS + j), _mm512_setzero_ps());
            noted = note_finite(sum, noted);
            _mm512_mask_storeu_ps(c + i * ldc + j, lanes(columns - j), sum);
        }
    return all_finite(noted);
}

/* The block of k from q on and columns from j on. */
static ahead block_at(const ls__matmul_shape *s, const float *b, int64_t q, int64_t j, bool along)
{
    if (j >= s->n)
        return (ahead){ .per_row = 1 };
    const int64_t deep = least(DEEP, s->k - q), columns = least(COLUMNS, s->n - j);
    const int64_t rows = along ? columns : deep, numbers = along ? deep : columns;
    const int per_row = (int)((numbers + LANES - 1) / LANES);
    return (ahead){ .from = b + (along ? j * s->ldb + q : q * s->ldb + j),
                    .ld = s->ldb,
                    .per_row = per_row,
                    .lines = (int)rows * per_row };
}

/* All of k for some columns. */
INLINE bool run_columns(const ls__matmul_shape *s, const float *b, int64_t j, block *each,
                        float *panel, bool along)
{
    const int64_t columns = least(COLUMNS, s->n - j);
    bool finite = true;
    for (int64_t q = 0; q < s->k && finite; q += DEEP) {
        const ahead now = block_at(s, b, q, j, along);
        const int64_t deep = least(DEEP, s->k - q);
        if (along)
            turn_matrix(now.from, s->ldb, columns, deep, panel, COLUMNS, true);
        else
            copy_rows(now.from, s->ldb, deep, columns, panel);
        each->row = q / DEEP * (s->m + 1);
        each->more = q > 0;
        each->next = q + DEEP < s->k ? block_at(s, b, q + DEEP, j, along)
                                     : block_at(s, b, 0, j + COLUMNS, along);
        FOR_COLUMNS(columns, finite = run_block(each, N))
    }
    return finite;
}

INLINE bool skipping(const ls__matmul_shape *s, const float *a, const float *b, float *c,
                     float *scratch, bool along)
{
    float *panel = scratch, *result = panel + DEEP * COLUMNS;
    const int64_t blocks = (s->k + DEEP - 1) / DEEP;
    const ls__skip_list listed =
        ls__skip_list_in(result + s->m * COLUMNS, (s->m + 1) * blocks, DEEP);
    list_blocks(a, s->lda, s->m, s->k, &listed);
    block each = { .list = &listed, .b = panel, .rows = s->m, .result = result };
    bool finite = true;
    for (int64_t j = 0; j < s->n && finite; j += COLUMNS)
        finite = run_columns(s, b, j, &each, panel, along) &&
                 put(result, s->m, least(COLUMNS, s->n - j), c + j, s->ldc);
    return finite;
}

static bool plain(const ls__matmul_shape *s, const float *a, const float *b, float *c,
                  float *scratch)
{
    return skipping(s, a, b, c, scratch, false);
}

static bool b_turned(const ls__matmul_shape *s, const float *a, const float *b, float *c,
                     float *scratch)
{
    return skipping(s, a, b, c, scratch, true);
}

/* ---- A^T B -------------------------------------------------------------------------------------- */

static void panels(const float *b, int64_t ldb, int64_t k, int64_t n, float *to)
{
    for (int64_t j = 0; j < n; j += COLUMNS, to += k * COLUMNS)
        copy_rows(b + j, ldb, k, least(COLUMNS, n - j), to);
}

INLINE void make_row(const ls__skip_list *list, int64_t row, const float *b, bool add,
                     __mmask16 end, float *c, int vectors)
{
    row_sums sum;
    for (int v = 0; v < vectors; v++)
        sum[v] = _mm512_setzero_ps();
    add_listed(list, row, b, vectors, sum);
    for (int v = 0; v < vectors; v++) {
        const __mmask16 some = v + 1 < vectors ? (__mmask16)0xffff : end;
        sum[v] = _mm512_add_ps(
            add ? _mm512_maskz_loadu_ps(some, c + v * LANES) : _mm512_setzero_ps(), sum[v]);
        _mm512_mask_storeu_ps(c + v * LANES, some, sum[v]);
    }
}

static void make(const ls__skip_list *list, int64_t row, const float *panel, int64_t columns,
                 bool add, float *c, const ls__gemm_fetch *meanwhile)
{
    for (int64_t i = 0; i < meanwhile->count; i++)
        __builtin_prefetch(meanwhile->lines[i] + meanwhile->shift, 1, 2); /* to be written */
    const __mmask16 end = lanes(columns - (columns - 1) / LANES * LANES);
    FOR_COLUMNS(columns, make_row(list, row, panel, add, end, c, N))
}

static bool a_turned(const ls__matmul_shape *s, const float *a, const float *b, float *c,
                     float *scratch)
{
    float *packed = scratch;
    const ls__skip_list listed =
        ls__skip_list_in(packed + ls__skip_panel_floats(s->k, s->n), LS__SKIP_ROWS, s->k);
    for (int64_t i = 0; i < s->k; i++)
        if (!is_finite(b + i * s->ldb, s->n))
            return false;
    panels(b, s->ldb, s->k, s->n, packed);
    for (int64_t first = 0; first < s->m; first += LS__SKIP_ROWS) {
        const int64_t rows = least(LS__SKIP_ROWS, s->m - first);
        list(a + first, s->lda, s->k, rows, &listed);
        for (int64_t j = 0; j < s->n; j += COLUMNS)
            for (int64_t i = 0; i < rows; i++)
                make(&listed, i, packed + j * s->k, least(COLUMNS, s->n - j), false,
                     c + (first + i) * s->ldc + j, &(ls__gemm_fetch){ 0 });
    }
    return true;
}

const ls__skip_kernels LS__ISA(ls__skip_table) = { .plain = plain,
                                                   .b_turned = b_turned,
                                                   .a_turned = a_turned,
                                                   .count = count,
                                                   .is_finite = is_finite,
                                                   .panels = panels,
                                                   .list = list,
                                                   .make = make };

#else

const ls__skip_kernels LS__ISA(ls__skip_table) = { 0 };

#endif
