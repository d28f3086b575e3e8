/*
 * Fast f32 attention for processors without AVX-512 (those have attention_blocks.c):
 * per head, a block of query rows at a time. A block's scores are a matrix product, then become
 * probabilities row by row, then are multiplied with the values.
 *
 *            keys seen by the block          scratch
 *          +-------------+- - - - +        queries [BLOCK, d], times scale
 *   block  | scores      | unseen          scores  [BLOCK, s]
 *          +-------------+- - - - +        dscores [BLOCK, s]      (backward)
 *                                          part    [s, max(d, dv)] (backward)
 *
 * A causal block computes the keys up to its last row's; within it, what a row
 * does not see is set to zero after the exponential. Factors go where the
 * matrices are narrow: scale into the queries, one over the sum into the result.
 *
 * Invariant: blocks depend on the shape alone and their parts of dk and dv are
 * added in order, so the bits do too (given those of matmul.h).
 */
#include <string.h>

#include "kernels/attention.h"

#if !defined(__AVX512F__)
#include "kernels/cpu/softmax_row.h"
#include "kernels/isa.h"
#include "kernels/matmul.h"

typedef struct head {
    const ls__attention_shape *a;
    float scale;
    float *queries, *scores, *dscores, *part;
} head;

/* c = op(x) op(y), all rows dense: those of the scores are as long as what is seen. */
static ls_status multiply(bool tx, bool ty, int64_t m, int64_t n, int64_t k, const float *x,
                          const float *y, float *c)
{
    ls__matmul_shape shape = { .batch = 1, .m = m, .n = n, .k = k, .ta = tx, .tb = ty };
    return ls__matmul_f32(&shape, x, y, c);
}

static head head_of(const ls__attention_shape *a, float *scratch)
{
    int64_t rows = a->t < LS__ATTENTION_BLOCK ? a->t : LS__ATTENTION_BLOCK;
    head h = { .a = a, .scale = (float)a->scale, .queries = scratch };
    h.scores = h.queries + rows * a->d;
    h.dscores = h.scores + rows * a->s;
    h.part = h.dscores + rows * a->s;
    return h;
}

/* Rows of the block that begins at `from`, and how many keys it sees. */
static int64_t block_rows(const ls__attention_shape *a, int64_t from, int64_t *seen)
{
    int64_t rows = a->t - from < LS__ATTENTION_BLOCK ? a->t - from : LS__ATTENTION_BLOCK;
    *seen = a->causal ? from + rows : a->s;
    return rows;
}

static void zero(float *x, int64_t n)
{
    memset(x, 0, (size_t)n * sizeof *x);
}

/* Scores of a block; its queries times scale stay in h->queries. */
static ls_status score_block(const head *h, const float *q, const float *k, int64_t rows,
                             int64_t seen)
{
    for (int64_t i = 0; i < rows * h->a->d; i++)
        h->queries[i] = q[i] * h->scale;
    return multiply(false, true, rows, seen, h->a->d, h->queries, k, h->scores);
}

/* n seen of `width`, rounded up to whole pieces where there is room: kernels run
 * over that many, and what is not seen is set to zero afterwards. */
static int64_t rounded(int64_t n, int64_t width)
{
    int64_t whole = (n + 2 * LS__ROW_PIECE - 1) / (2 * LS__ROW_PIECE) * (2 * LS__ROW_PIECE);
    return whole < width ? whole : width;
}

/* ---- forward ---------------------------------------------------------------------- */

/* Scores to exponentials; gives their sum. */
static float exp_row(float *p, int64_t n, int64_t width, float *max)
{
    int64_t whole = rounded(n, width);
    for (int64_t j = n; j < whole; j++)
        p[j] = -LS__INFF;
    *max = ls__row_max(p, whole);
    ls__row_exp_own(p, 1.0f, *max, whole);
    zero(p + n, width - n);
    return ls__lanes_sum(p, whole);
}

static ls_status forward_block(const head *h, int64_t from, const float *q, const float *k,
                               const float *v, float *y, float *lse)
{
    const ls__attention_shape *a = h->a;
    float sum[LS__ATTENTION_BLOCK], max[LS__ATTENTION_BLOCK];
    int64_t seen, rows = block_rows(a, from, &seen);
    ls_status st = score_block(h, q + from * a->d, k, rows, seen);
    if (st)
        return st;
    for (int64_t i = 0; i < rows; i++)
        sum[i] = exp_row(h->scores + i * seen, a->causal ? from + i + 1 : seen, seen, &max[i]);
    for (int64_t i = 0; i < rows; i++)
        lse[from + i] = max[i] + ls__logf(sum[i]);
    st = multiply(false, false, rows, a->dv, seen, h->scores, v, y + from * a->dv);
    for (int64_t i = 0; i < rows && seen && !st; i++)
        ls__row_scale(y + (from + i) * a->dv, 1.0f / sum[i], a->dv);
    return st;
}

static ls_status attention(const ls__attention_shape *a, const float *q, const float *k,
                           const float *v, float *y, float *lse, float *scratch)
{
    head h = head_of(a, scratch);
    for (int64_t b = 0; b < a->batch; b++) {
        for (int64_t from = 0; from < a->t; from += LS__ATTENTION_BLOCK) {
            ls_status st = forward_block(&h, from, q, k, v, y, lse);
            if (st)
                return st;
        }
        q += a->t * a->d;
        k += a->s * a->d;
        v += a->s * a->dv;
        y += a->t * a->dv;
        lse += a->t;
    }
    return LS_OK;
}

/* ---- backward ----------------------------------------------------------------------- */

/* to (+)= x^T y over a block's rows: the first block writes, later ones add. */
static ls_status add_product(const head *h, bool first, int64_t m, int64_t n, int64_t rows,
                             const float *x, const float *y, float *to)
{
    ls_status st = multiply(true, false, m, n, rows, x, y, first ? to : h->part);
    if (st || first)
        return st;
    for (int64_t i = 0; i < m * n; i++)
        to[i] += h->part[i];
    return LS_OK;
}

/* ds = p (dp - delta), where ds holds dp. */
static void dscores_row(const float *p, float *ds, float delta, int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        ds[j] = p[j] * (ds[j] - delta);
}

static ls_status backward_block(const head *h, int64_t from, const float *q, const float *k,
                                const float *v, const float *dy, const float *y, const float *lse,
                                float *dq, float *dk, float *dv)
{
    const ls__attention_shape *a = h->a;
    int64_t seen, rows = block_rows(a, from, &seen);
    /* What the last block sees is all; it comes first, so it can write. */
    bool first = from + rows == a->t;
    ls_status st = score_block(h, q + from * a->d, k, rows, seen);
    if (!st)
        st = multiply(false, true, rows, seen, a->dv, dy + from * a->dv, v, h->dscores);
    if (st)
        return st;
    for (int64_t i = 0; i < rows; i++) {
        int64_t row = from + i, n = a->causal ? row + 1 : seen;
        float *p = h->scores + i * seen, *ds = h->dscores + i * seen;
        ls__row_exp_own(p, 1.0f, lse[row], rounded(n, seen));
        dscores_row(p, ds, ls__row_dot(dy + row * a->dv, y + row * a->dv, a->dv), rounded(n, seen));
        zero(p + n, seen - n);
        zero(ds + n, seen - n);
    }
    st = add_product(h, first, seen, a->dv, rows, h->scores, dy + from * a->dv, dv);
    if (!st)
        st = add_product(h, first, seen, a->d, rows, h->dscores, h->queries, dk);
    if (!st)
        st = multiply(false, false, rows, a->d, seen, h->dscores, k, dq + from * a->d);
    ls__row_scale(dq + from * a->d, h->scale, st ? 0 : rows * a->d);
    return st;
}

static ls_status attention_grad(const ls__attention_shape *a, const float *q, const float *k,
                                const float *v, const float *dy, const float *y, const float *lse,
                                float *dq, float *dk, float *dv, float *scratch)
{
    if (a->t == 0) {
        zero(dk, a->batch * a->s * a->d);
        zero(dv, a->batch * a->s * a->dv);
        return LS_OK;
    }
    head h = head_of(a, scratch);
    int64_t last = (a->t - 1) / LS__ATTENTION_BLOCK * LS__ATTENTION_BLOCK;
    for (int64_t b = 0; b < a->batch; b++) {
        int64_t at_q = b * a->t * a->d, at_k = b * a->s * a->d, at_v = b * a->s * a->dv;
        int64_t at_y = b * a->t * a->dv;
        for (int64_t from = last; from >= 0; from -= LS__ATTENTION_BLOCK) {
            ls_status st =
                backward_block(&h, from, q + at_q, k + at_k, v + at_v, dy + at_y, y + at_y,
                               lse + b * a->t, dq + at_q, dk + at_k, dv + at_v);
            if (st)
                return st;
        }
    }
    return LS_OK;
}

/* ---- heads side by side --------------------------------------------------------------- */

/* `rows` runs of `n` numbers, that far apart on each side. */
static void copy_rows(const float *from, int64_t from_step, float *to, int64_t to_step,
                      int64_t rows, int64_t n)
{
    for (int64_t i = 0; i < rows; i++)
        memcpy(to + i * to_step, from + i * from_step, (size_t)n * sizeof *to);
}

/* A head taken apart: pieces of scratch memory behind the rest, each [t, d]. */
typedef struct apart {
    ls__attention_shape one;
    int64_t x_step, y_step, part;      /* between rows; from q to k and from k to v */
    float *q, *k, *v, *dy, *y, *dx[3]; /* y serves both ways */
} apart;

static apart apart_of(const ls__attention_shape *a, int64_t heads, float *scratch)
{
    int64_t n = a->t * a->d;
    apart p = { .one = *a, .x_step = 3 * heads * a->d, .y_step = heads * a->d };
    p.one.batch = 1;
    p.part = p.y_step;
    p.q = scratch + ls__attention_scratch(a);
    p.k = p.q + n;
    p.v = p.k + n;
    p.dy = p.v + n;
    p.y = p.dy + n;
    for (int i = 0; i < 3; i++)
        p.dx[i] = p.y + (i + 1) * n;
    return p;
}

static void take_x(const apart *p, const float *x)
{
    float *const to[3] = { p->q, p->k, p->v };
    for (int i = 0; i < 3; i++)
        copy_rows(x + i * p->part, p->x_step, to[i], p->one.d, p->one.t, p->one.d);
}

static ls_status attention_qkv(const ls__attention_shape *a, int64_t heads, const float *x,
                               float *y, float *lse, float *scratch)
{
    apart p = apart_of(a, heads, scratch);
    ls_status st = LS_OK;
    for (int64_t i = 0; i < a->batch * heads && !st; i++) {
        int64_t row = i / heads * a->t, column = i % heads * a->d;
        take_x(&p, x + row * p.x_step + column);
        st = attention(&p.one, p.q, p.k, p.v, p.y, lse + i * a->t, scratch);
        copy_rows(p.y, a->d, y + row * p.y_step + column, p.y_step, a->t, a->d);
    }
    return st;
}

static ls_status attention_qkv_grad(const ls__attention_shape *a, int64_t heads, const float *x,
                                    const float *dy, const float *y, const float *lse, float *dx,
                                    float *scratch)
{
    apart p = apart_of(a, heads, scratch);
    ls_status st = LS_OK;
    for (int64_t i = 0; i < a->batch * heads && !st; i++) {
        int64_t row = i / heads * a->t, column = i % heads * a->d;
        int64_t at_x = row * p.x_step + column, at_y = row * p.y_step + column;
        take_x(&p, x + at_x);
        copy_rows(dy + at_y, p.y_step, p.dy, a->d, a->t, a->d);
        copy_rows(y + at_y, p.y_step, p.y, a->d, a->t, a->d);
        st = attention_grad(&p.one, p.q, p.k, p.v, p.dy, p.y, lse + i * a->t, p.dx[0], p.dx[1],
                            p.dx[2], scratch);
        for (int j = 0; j < 3; j++)
            copy_rows(p.dx[j], a->d, dx + at_x + j * p.part, p.x_step, a->t, a->d);
    }
    return st;
}

const ls__attention_fns LS__ISA(ls__attention_table) = { attention, attention_grad, attention_qkv,
                                                         attention_qkv_grad };

#endif
