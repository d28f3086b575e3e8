/*
 * Fast f32 attention in AVX-512, for any shape: per head, 32 query rows at a time, with
 * the tiles of attention_tile.h. (Other instruction sets have attention.c.)
 *
 *               32 queries                      scratch
 *             +-----------+     queries  [d, 32], times scale, transposed
 *    8 keys   | scores    |     scores   [s, 32]     forward: of all keys
 *             |           |     p, ds    [64, 32]    backward: of 64 keys at a time
 *             | \  unseen |     grads    [dv, 32]    backward: dy, transposed
 *             |   \       |
 *             +-----------+
 *
 * Forward: scores and their maxima; exponentials and their sums; products with the
 * values. Backward, for 64 keys after another: probabilities and their gradients ds,
 * then each of dv, dk and dq is a product that adds to what is there.
 *
 * Causal: a tile of 8 keys by 16 queries of which none is seen is left out, and within
 * the others what is not seen becomes zero; products run from the first query that sees
 * one of their keys, or to the last key that one of their queries sees.
 *
 * Invariant: blocks and tiles begin at multiples of their sizes, counted from the first
 * row of the head, so the order of each sum depends on the shape alone. No two heads share
 * an output. Nothing can fail.
 */
#include <string.h>

#include "kernels/attention.h"
#include "kernels/isa.h"

#if defined(__AVX512F__)
#include "kernels/cpu/attention_tile.h"

enum { CHUNK = LS__ATTENTION_CHUNK };

_Static_assert(QUERIES == LS__ATTENTION_LANES, "attention.h reckons the scratch memory");

/* One head: where its rows begin and how far apart they are. dq, dk, dv, and dy, lie as
 * q, k, v and y do. */
typedef struct head {
    int64_t t, s, d, dv;
    bool causal;
    float scale;
    int64_t q_stride, k_stride, v_stride, y_stride;
    const float *q, *k, *v;
    float *y, *lse;
    const float *dy; /* from here on: backward */
    float *dq, *dk, *to_dv;
    float *scratch;
} head;

/* 32 queries, or what is left of them. */
typedef struct block {
    int64_t from, seen; /* the first query; the keys that some of them see */
    int rows;
} block;

static block block_at(const head *h, int64_t from)
{
    int rows = h->t - from < QUERIES ? (int)(h->t - from) : QUERIES;
    return (block){ .from = from, .seen = h->causal ? from + rows : h->s, .rows = rows };
}

/* Eight keys; behind the last, the last again. */
INLINE void rows_of(const float *x, int64_t stride, int64_t at, int64_t count,
                    const float *row[KEYS])
{
    for (int r = 0; r < KEYS; r++)
        row[r] = x + (at + r < count ? at + r : count - 1) * stride;
}

/* Whether a tile of keys has any that some query of the block does not see. */
INLINE bool at_edge(const head *h, const block *b, int64_t key)
{
    return key + KEYS > h->s || (h->causal && key + KEYS - 1 > b->from);
}

/* Which of the 16 queries from `query` on see a key. */
INLINE __mmask16 who_sees(const head *h, int64_t query, int64_t key)
{
    if (key >= h->s)
        return 0;
    int64_t before = h->causal && key > query ? key - query : 0;
    return before < LANES ? (__mmask16)(0xffffu << before) : 0;
}

/* The vectors of queries that see some of the keys: `first`, and how many. */
INLINE int vectors(const head *h, const block *b, int64_t key, int *first)
{
    *first = h->causal && key >= b->from + LANES;
    return (b->rows > LANES ? 2 : 1) - *first;
}

/* ---- forward --------------------------------------------------------------------------- */

INLINE void score_tile(const head *h, const block *b, int64_t key, int first, int wide,
                       const float *queries, float *scores, __m512 max[2])
{
    __m512 sum[KEYS][2];
    const float *row[KEYS];
    const bool edge = at_edge(h, b, key);
    rows_of(h->k, h->k_stride, key, h->s, row);
    tile_scores(row, queries + first * LANES, h->d, wide, sum);
    for (int r = 0; r < KEYS; r++)
        for (int v = 0; v < wide; v++) {
            if (edge)
                sum[r][v] = _mm512_mask_mov_ps(_mm512_set1_ps(-LS__INFF),
                                               who_sees(h, b->from + (first + v) * LANES, key + r),
                                               sum[r][v]);
            max[first + v] = _mm512_max_ps(sum[r][v], max[first + v]);
            _mm512_storeu_ps(scores + (key + r) * QUERIES + (first + v) * LANES, sum[r][v]);
        }
}

INLINE void exp_tile(float *scores, int first, int wide, const __m512 max[2], __m512 sum[2])
{
    for (int v = first; v < first + wide; v++) {
        __m512 p[KEYS];
        for (int r = 0; r < KEYS; r++) {
            float *at = scores + r * QUERIES + v * LANES;
            p[r] = tile_exp(_mm512_sub_ps(_mm512_loadu_ps(at), max[v]));
            _mm512_storeu_ps(at, p[r]);
        }
        for (int gap = KEYS / 2; gap; gap /= 2)
            for (int r = 0; r < gap; r++)
                p[r] = _mm512_add_ps(p[r], p[r + gap]);
        sum[v] = _mm512_add_ps(sum[v], p[0]);
    }
}

/* Scores of a block to exponentials; their largest and their sums. */
static void exponentials(const head *h, const block *b, const float *queries, float *scores,
                         float *max, float *sum)
{
    __m512 most[2], total[2];
    int first;
    for (int v = 0; v < 2; v++) {
        most[v] = _mm512_set1_ps(-LS__INFF);
        total[v] = _mm512_setzero_ps();
    }
    for (int64_t key = 0; key < b->seen; key += KEYS)
        if (vectors(h, b, key, &first) == 2)
            score_tile(h, b, key, 0, 2, queries, scores, most);
        else if (first)
            score_tile(h, b, key, 1, 1, queries, scores, most);
        else
            score_tile(h, b, key, 0, 1, queries, scores, most);
    for (int64_t key = 0; key < b->seen; key += KEYS)
        if (vectors(h, b, key, &first) == 2)
            exp_tile(scores + key * QUERIES, 0, 2, most, total);
        else if (first)
            exp_tile(scores + key * QUERIES, 1, 1, most, total);
        else
            exp_tile(scores + key * QUERIES, 0, 1, most, total);
    for (int v = 0; v < 2; v++) {
        _mm512_storeu_ps(max + v * LANES, most[v]);
        _mm512_storeu_ps(sum + v * LANES, total[v]);
    }
}

static void forward_block(const head *h, const block *b)
{
    float *queries = h->scratch, *scores = queries + h->d * QUERIES;
    float max[QUERIES], sum[QUERIES];
    transpose_rows(h->q + b->from * h->q_stride, h->q_stride, b->rows, h->d, h->scale, queries);
    exponentials(h, b, queries, scores, max, sum);
    for (int i = 0; i < QUERIES; i++) {
        max[i] += ls__logf(sum[i]);
        sum[i] = sum[i] == 0 ? 0.0f : 1.0f / sum[i]; /* 0: no keys */
    }
    memcpy(h->lse + b->from, max, (size_t)b->rows * sizeof *max);
    for (int i = 0; i < b->rows; i += KEYS) {
        int64_t last = b->from + i + KEYS;
        product p = { .x = scores + i,
                      .b = h->v,
                      .b_stride = h->v_stride,
                      .n = h->causal && last < b->seen ? last : b->seen,
                      .z = h->y + (b->from + i) * h->y_stride,
                      .z_stride = h->y_stride,
                      .cols = h->dv,
                      .rows = b->rows - i < KEYS ? b->rows - i : KEYS,
                      .factor = sum + i };
        product_by_query(&p);
    }
}

static void forward_head(const head *h)
{
    for (int64_t from = 0; from < h->t; from += QUERIES) {
        block b = block_at(h, from);
        forward_block(h, &b);
    }
}

/* ---- backward ---------------------------------------------------------------------------- */

/* What a block of queries is to all its keys. */
typedef struct known {
    const float *queries, *grads; /* transposed; the queries times scale */
    __m512 lse[2], delta[2];      /* delta: the sum of dy y */
} known;

/* delta of 16 queries, `rows` of which there are. */
static __m512 delta_of(const head *h, int64_t from, int rows)
{
    float lanes[LANES][LANES] = { { 0 } };
    for (int i = 0; i < rows; i++) {
        const float *x = h->dy + (from + i) * h->y_stride, *y = h->y + (from + i) * h->y_stride;
        __m512 sum = _mm512_setzero_ps();
        int64_t c = 0;
        for (; c + LANES <= h->dv; c += LANES)
            sum = _mm512_fmadd_ps(_mm512_loadu_ps(x + c), _mm512_loadu_ps(y + c), sum);
        __mmask16 rest = (__mmask16)((1u << (h->dv - c)) - 1);
        sum = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(rest, x + c),
                              _mm512_maskz_loadu_ps(rest, y + c), sum);
        _mm512_storeu_ps(lanes[i], sum);
    }
    return fold_rows(lanes);
}

/* Probabilities of a tile, then ds = p (dp - delta) scale. */
INLINE void grad_tile(const head *h, const block *b, const known *k, int64_t key, int first,
                      int wide, float *p, float *ds)
{
    __m512 sum[KEYS][2];
    const float *row[KEYS];
    const bool edge = at_edge(h, b, key);
    p += first * LANES;
    ds += first * LANES;
    rows_of(h->k, h->k_stride, key, h->s, row);
    tile_scores(row, k->queries + first * LANES, h->d, wide, sum);
    for (int r = 0; r < KEYS; r++)
        for (int v = 0; v < wide; v++) {
            __m512 x = tile_exp(_mm512_sub_ps(sum[r][v], k->lse[first + v]));
            if (edge)
                x = _mm512_maskz_mov_ps(who_sees(h, b->from + (first + v) * LANES, key + r), x);
            _mm512_storeu_ps(p + r * QUERIES + v * LANES, x);
        }
    rows_of(h->v, h->v_stride, key, h->s, row);
    tile_scores(row, k->grads + first * LANES, h->dv, wide, sum);
    for (int r = 0; r < KEYS; r++)
        for (int v = 0; v < wide; v++) {
            __m512 x = _mm512_sub_ps(sum[r][v], k->delta[first + v]);
            x = _mm512_mul_ps(x, _mm512_loadu_ps(p + r * QUERIES + v * LANES));
            if (edge) /* where p is 0 but dp is not finite */
                x = _mm512_maskz_mov_ps(who_sees(h, b->from + (first + v) * LANES, key + r), x);
            _mm512_storeu_ps(ds + r * QUERIES + v * LANES,
                             _mm512_mul_ps(x, _mm512_set1_ps(h->scale)));
        }
}

/* What eight keys get of a block's queries: adds to dv and dk, or begins them. */
static void grad_keys(const head *h, const block *b, int64_t key, const float *p, const float *ds)
{
    int from = h->causal && key > b->from ? (int)(key - b->from) : 0;
    product to_v = { .x = p + from,
                     .b = h->dy + (b->from + from) * h->y_stride,
                     .b_stride = h->y_stride,
                     .n = b->rows - from,
                     .z = h->to_dv + key * h->v_stride,
                     .z_stride = h->v_stride,
                     .cols = h->dv,
                     .rows = h->s - key < KEYS ? (int)(h->s - key) : KEYS,
                     .add = h->causal ? key < b->from : b->from > 0 };
    product to_k = to_v;
    to_k.x = ds + from;
    to_k.b = h->q + (b->from + from) * h->q_stride;
    to_k.b_stride = h->q_stride;
    to_k.z = h->dk + key * h->k_stride;
    to_k.z_stride = h->k_stride;
    to_k.cols = h->d;
    product_by_key(&to_v);
    product_by_key(&to_k);
}

/* What a block's queries get of `n` keys. */
static void grad_queries(const head *h, const block *b, int64_t key, int64_t n, const float *ds)
{
    for (int i = 0; i < b->rows; i += KEYS) {
        int64_t sees = b->from + i + KEYS - key;
        product p = { .x = ds + i,
                      .b = h->k + key * h->k_stride,
                      .b_stride = h->k_stride,
                      .n = h->causal && sees < n ? sees : n,
                      .z = h->dq + (b->from + i) * h->q_stride,
                      .z_stride = h->q_stride,
                      .cols = h->d,
                      .rows = b->rows - i < KEYS ? b->rows - i : KEYS,
                      .add = key > 0 };
        if (p.n > 0 || key == 0)
            product_by_query(&p);
    }
}

static void backward_block(const head *h, const block *b)
{
    float *queries = h->scratch, *grads = queries + h->d * QUERIES;
    float *p = grads + h->dv * QUERIES, *ds = p + CHUNK * QUERIES;
    known k = { .queries = queries, .grads = grads };
    transpose_rows(h->q + b->from * h->q_stride, h->q_stride, b->rows, h->d, h->scale, queries);
    transpose_rows(h->dy + b->from * h->y_stride, h->y_stride, b->rows, h->dv, 1.0f, grads);
    for (int v = 0; v < 2; v++) {
        int rows = b->rows - v * LANES, some = rows < 0 ? 0 : rows < LANES ? rows : LANES;
        k.delta[v] = delta_of(h, b->from + v * LANES, some);
        k.lse[v] =
            _mm512_maskz_loadu_ps((__mmask16)((1u << some) - 1), h->lse + b->from + v * LANES);
    }
    int64_t key = 0;
    do {
        int64_t n = b->seen - key < CHUNK ? b->seen - key : CHUNK;
        for (int64_t j = 0; j < n; j += KEYS) {
            int first, wide = vectors(h, b, key + j, &first);
            float *p_at = p + j * QUERIES, *ds_at = ds + j * QUERIES;
            if (wide == 2)
                grad_tile(h, b, &k, key + j, 0, 2, p_at, ds_at);
            else if (first)
                grad_tile(h, b, &k, key + j, 1, 1, p_at, ds_at);
            else
                grad_tile(h, b, &k, key + j, 0, 1, p_at, ds_at);
            grad_keys(h, b, key + j, p_at, ds_at);
        }
        grad_queries(h, b, key, n, ds);
        key += CHUNK;
    } while (key < b->seen);
}

static void backward_head(const head *h)
{
    for (int64_t from = 0; from < h->t; from += QUERIES) {
        block b = block_at(h, from);
        backward_block(h, &b);
    }
}

/* ---- heads one after another --------------------------------------------------------------- */

static head dense(const ls__attention_shape *a, float *scratch)
{
    return (head){ .t = a->t,
                   .s = a->s,
                   .d = a->d,
                   .dv = a->dv,
                   .causal = a->causal,
                   .scale = (float)a->scale,
                   .q_stride = a->d,
                   .k_stride = a->d,
                   .v_stride = a->dv,
                   .y_stride = a->dv,
                   .scratch = scratch };
}

static ls_status attention(const ls__attention_shape *a, const float *q, const float *k,
                           const float *v, float *y, float *lse, float *scratch)
{
    head h = dense(a, scratch);
    for (int64_t i = 0; i < a->batch; i++) {
        h.q = q + i * a->t * a->d;
        h.k = k + i * a->s * a->d;
        h.v = v + i * a->s * a->dv;
        h.y = y + i * a->t * a->dv;
        h.lse = lse + i * a->t;
        forward_head(&h);
    }
    return LS_OK;
}

static ls_status attention_grad(const ls__attention_shape *a, const float *q, const float *k,
                                const float *v, const float *dy, const float *y, const float *lse,
                                float *dq, float *dk, float *dv, float *scratch)
{
    head h = dense(a, scratch);
    if (a->t == 0) {
        memset(dk, 0, (size_t)(a->batch * a->s * a->d) * sizeof *dk);
        memset(dv, 0, (size_t)(a->batch * a->s * a->dv) * sizeof *dv);
        return LS_OK;
    }
    for (int64_t i = 0; i < a->batch; i++) {
        int64_t at_q = i * a->t * a->d, at_k = i * a->s * a->d;
        int64_t at_v = i * a->s * a->dv, at_y = i * a->t * a->dv;
        h.q = q + at_q;
        h.k = k + at_k;
        h.v = v + at_v;
        h.dy = dy + at_y;
        h.y = (float *)y + at_y;
        h.lse = (float *)lse + i * a->t;
        h.dq = dq + at_q;
        h.dk = dk + at_k;
        h.to_dv = dv + at_v;
        backward_head(&h);
    }
    return LS_OK;
}

/* Head i of x [batch, t, 3, heads, d] and y [batch, t, heads, d]. */
static head beside(const ls__attention_shape *a, int64_t heads, int64_t i, const float *x,
                   const float *y, const float *lse, float *scratch)
{
    int64_t width = heads * a->d, row = i / heads * a->t;
    head h = dense(a, scratch);
    h.q_stride = h.k_stride = h.v_stride = 3 * width;
    h.y_stride = width;
    h.q = x + row * h.q_stride + i % heads * a->d;
    h.k = h.q + width;
    h.v = h.k + width;
    h.y = (float *)y + row * width + i % heads * a->d;
    h.lse = (float *)lse + i * a->t;
    return h;
}

static ls_status attention_qkv(const ls__attention_shape *a, int64_t heads, const float *x,
                               float *y, float *lse, float *scratch)
{
    for (int64_t i = 0; i < a->batch * heads; i++) {
        head h = beside(a, heads, i, x, y, lse, scratch);
        forward_head(&h);
    }
    return LS_OK;
}

static ls_status attention_qkv_grad(const ls__attention_shape *a, int64_t heads, const float *x,
                                    const float *dy, const float *y, const float *lse, float *dx,
                                    float *scratch)
{
    for (int64_t i = 0; i < a->batch * heads; i++) {
        head h = beside(a, heads, i, x, y, lse, scratch);
        h.dy = dy + (h.y - y);
        h.dq = dx + (h.q - x);
        h.dk = dx + (h.k - x);
        h.to_dv = dx + (h.v - x);
        backward_head(&h);
    }
    return LS_OK;
}

const ls__attention_fns LS__ISA(ls__attention_table) = { attention, attention_grad, attention_qkv,
                                                         attention_qkv_grad };

#endif
