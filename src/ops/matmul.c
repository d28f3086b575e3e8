/*
 * matmul, and dense on top of it.
 *
 * The axes before the last two are a batch and broadcast. The kernel takes one
 * batch axis with a step per side, so the axes are joined where memory allows;
 * what remains is looped over. A batch of rows times one matrix is one product
 * of all the rows.
 */
#include "ops/matmul.h"

#include <lockstep/ops.h>

#include "kernels/matmul.h"

static const ls_attr matmul_attr_list[] = { LS_ATTR_INT(ls__matmul_attrs, transpose_a),
                                            LS_ATTR_INT(ls__matmul_attrs, transpose_b),
                                            LS_ATTR_END };

/* The last two axes, as multiplied. */
static void matrix(const ls__spec *s, int64_t transposed, int64_t *rows, int64_t *cols)
{
    int64_t r = s->dims[s->rank - 2], c = s->dims[s->rank - 1];
    *rows = transposed ? c : r;
    *cols = transposed ? r : c;
}

static ls__spec batch_of(const ls__spec *s)
{
    ls__spec batch = *s;
    batch.rank -= 2;
    return batch;
}

ls_status ls__matmul_rule(ls_call *c, const ls__matmul_attrs *t)
{
    ls_status st = ls__want_dtype(c, 0, LS__FLOATS);
    if (!st)
        st = ls__want_same_dtype(c, 0, 1);
    for (int i = 0; i < 2 && !st; i++)
        st = ls__want_rank_at_least(c, i, 2);
    if (st)
        return st;
    int64_t m, k, k2, n;
    matrix(c->in[0], t->transpose_a, &m, &k);
    matrix(c->in[1], t->transpose_b, &k2, &n);
    if (k != k2)
        return ls__hint(ls_call_fail(c, LS_SHAPE,
                                     "%lld columns times %lld rows (%lld x %lld by %lld x %lld)",
                                     (long long)k, (long long)k2, (long long)m, (long long)k,
                                     (long long)k2, (long long)n),
                        "the inner sizes must be equal; ls_matmul_t takes a matrix transposed");
    ls__spec a = batch_of(c->in[0]), b = batch_of(c->in[1]), out;
    st = ls__want_broadcast(c, &a, &b, &out);
    if (st)
        return st;
    out.dims[out.rank++] = m;
    out.dims[out.rank++] = n;
    return ls_call_output(c, 0, c->in[0]->dtype, out.rank, out.dims);
}

static ls_status matmul_shape(ls_call *c)
{
    return ls__matmul_rule(c, c->attrs);
}

/* ---- the batch as few axes as possible ---------------------------------------- */

typedef struct batch_plan {
    int rank;
    int64_t dims[LS_MAX_RANK];
    int64_t a[LS_MAX_RANK], b[LS_MAX_RANK]; /* steps, in matrices; 0 repeats */
} batch_plan;

static void side_steps(const ls__spec *s, int rank, int64_t *steps)
{
    int64_t step = 1;
    int own = s->rank - 2;
    for (int i = rank - 1; i >= 0; i--) {
        int j = i - (rank - own);
        int64_t size = j < 0 ? 1 : s->dims[j];
        steps[i] = size == 1 ? 0 : step;
        step *= size;
    }
}

static batch_plan plan_batch(const ls__spec *a, const ls__spec *b, const ls__spec *y)
{
    batch_plan p = { .rank = 0 };
    int64_t sa[LS_MAX_RANK], sb[LS_MAX_RANK];
    int rank = y->rank - 2;
    side_steps(a, rank, sa);
    side_steps(b, rank, sb);
    for (int i = 0; i < rank; i++) {
        int n = p.rank;
        int64_t size = y->dims[i];
        if (size == 1)
            continue;
        if (n && p.a[n - 1] == sa[i] * size && p.b[n - 1] == sb[i] * size) {
            n--;
            size *= p.dims[n];
        }
        p.dims[n] = size;
        p.a[n] = sa[i];
        p.b[n] = sb[i];
        p.rank = n + 1;
    }
    return p;
}

static ls_status multiply(const ls_call *c, const ls__matmul_shape *s, int64_t a, int64_t b,
                          int64_t y)
{
    if (c->out[0].dtype == LS_F64)
        return ls__matmul_f64(s, (const double *)c->in_data[0] + a,
                              (const double *)c->in_data[1] + b, (double *)c->out_data[0] + y);
    return ls__matmul_f32(s, (const float *)c->in_data[0] + a, (const float *)c->in_data[1] + b,
                          (float *)c->out_data[0] + y);
}

ls_status ls__matmul_run(ls_call *c, const ls__matmul_attrs *t)
{
    ls__matmul_shape s = { .batch = 1, .ta = t->transpose_a != 0, .tb = t->transpose_b != 0 };
    matrix(c->in[0], t->transpose_a, &s.m, &s.k);
    matrix(c->in[1], t->transpose_b, &s.k, &s.n);
    if (ls__spec_count(&c->out[0]) == 0)
        return LS_OK;
    const int64_t size_a = s.m * s.k, size_b = s.k * s.n, size_y = s.m * s.n;
    batch_plan p = plan_batch(c->in[0], c->in[1], &c->out[0]);
    int64_t last = p.rank ? p.dims[p.rank - 1] : 1, outer = 1;
    if (p.rank && p.a[p.rank - 1] == 1 && p.b[p.rank - 1] == 0 && !s.ta) {
        s.m *= last;
    } else if (p.rank) {
        s.batch = last;
        s.stride_a = p.a[p.rank - 1] * size_a;
        s.stride_b = p.b[p.rank - 1] * size_b;
        s.stride_c = size_y;
    }
    for (int i = 0; i < p.rank - 1; i++)
        outer *= p.dims[i];
    for (int64_t o = 0; o < outer; o++) {
        int64_t a = 0, b = 0, rest = o;
        for (int i = p.rank - 2; i >= 0; i--) {
            a += rest % p.dims[i] * p.a[i];
            b += rest % p.dims[i] * p.b[i];
            rest /= p.dims[i];
        }
        ls_status st = multiply(c, &s, a * size_a, b * size_b, o * last * size_y);
        if (st)
            return st;
    }
    return LS_OK;
}

static ls_status matmul_kernel(ls_call *c)
{
    return ls__matmul_run(c, c->attrs);
}

/* ---- gradient -------------------------------------------------------------------- */

static ls_tensor *as_rows(ls_tensor *t)
{
    int64_t cols = ls_dim(t, -1), rows = 1;
    for (int i = 0; i < ls_rank(t) - 1; i++)
        rows *= ls_shape(t)[i];
    return ls_reshape(t, LS_DIMS(rows, cols));
}

/* With A = op(a), B = op(b): dA = dy B^T and dB = A^T dy; a transposed argument
 * gets the transpose, as (B dy^T) and (dy^T A). */
static ls_status matmul_gradient(ls_grad *g)
{
    const ls__matmul_attrs *t = ls_grad_attrs(g);
    bool ta = t->transpose_a != 0, tb = t->transpose_b != 0;
    ls_tensor *a = ls_grad_input(g, 0), *b = ls_grad_input(g, 1), *dy = ls_grad_output(g, 0);
    if (ls_grad_wanted(g, 0)) {
        ls_tensor *da = ta ? ls_matmul_t(b, tb, dy, true) : ls_matmul_t(dy, false, b, !tb);
        ls_status st = ls_grad_give(g, 0, ls__sum_to(da, a));
        if (st)
            return st;
    }
    if (!ls_grad_wanted(g, 1))
        return LS_OK;
    ls_tensor *from = a;
    if (!ta && ls_rank(b) == 2 && ls_rank(a) > 2) {
        /* One product over all rows instead of one per matrix and a sum. */
        from = as_rows(a);
        dy = as_rows(dy);
    }
    ls_tensor *db = tb ? ls_matmul_t(dy, true, from, ta) : ls_matmul_t(from, !ta, dy, false);
    return ls_grad_give(g, 1, ls__sum_to(db, b));
}

static const ls_op matmul = {
    .size = sizeof(ls_op),
    .name = "matmul",
    .inputs = 2,
    .outputs = 1,
    .flags = LS_OP_BF16_AS_F32,
    .attr_size = sizeof(ls__matmul_attrs),
    .attrs = matmul_attr_list,
    .shape = matmul_shape,
    .kernel = matmul_kernel,
    .gradient = matmul_gradient,
};

ls_tensor *ls_matmul_t(ls_tensor *a, bool transpose_a, ls_tensor *b, bool transpose_b)
{
    const ls__matmul_attrs attrs = { .transpose_a = transpose_a, .transpose_b = transpose_b };
    return ls__call2(&matmul, &attrs, a, b);
}

ls_tensor *ls_matmul(ls_tensor *a, ls_tensor *b)
{
    return ls_matmul_t(a, false, b, false);
}

/* ---- dense -------------------------------------------------------------------------- */

ls_tensor *ls_dense(ls_tensor *x, ls_tensor *w, ls_tensor *b)
{
    if (ls__check_tensor("dense", "x", x) || ls__check_tensor("dense", "w", w) ||
        ls__check_tensor("dense", "b", b))
        return NULL;
    /* What matmul and add would broadcast is refused. */
    if (ls_rank(x) < 1 || ls_rank(w) != 2 || ls_rank(b) != 1 || ls_dim(x, -1) != ls_shape(w)[0] ||
        ls_shape(b)[0] != ls_shape(w)[1]) {
        ls__hint(ls__fail(LS_SHAPE, "dense: x %s, w %s, b %s", ls_describe(x), ls_describe(w),
                          ls_describe(b)),
                 "wants x [.., k], w [k, n], b [n]");
        return NULL;
    }
    if (ls_rank(x) > 1)
        return ls_add(ls_matmul(x, w), b);
    ls_tensor *row = ls_matmul(ls_reshape(x, LS_DIMS(1, ls_shape(x)[0])), w);
    return ls_add(ls_reshape(row, LS_DIMS(ls_shape(w)[1])), b);
}

const ls_op *const ls__rows_matmul[] = { &matmul, NULL };
