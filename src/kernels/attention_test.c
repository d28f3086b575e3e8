/*
 * Attention: the fast kernels against the reference, forward and backward, on
 * shapes around the blocks' edges; equal bits in other memory, at another place in a
 * batch, and of heads side by side; huge scores.
 */
#include <string.h>

#include "kernels/attention.h"
#include "kernels/test_numbers.h"

/* Inputs, and room for the results of one run, which lie one after another. */
typedef struct problem {
    ls__attention_shape shape;
    int64_t n_q, n_k, n_v, n_y, n_lse, n_out;
    float *q, *k, *v, *dy, *scratch;
} problem;

static problem make(int64_t batch, int64_t t, int64_t s, int64_t d, int64_t dv, bool causal)
{
    problem p = { .shape = { batch, t, s, d, dv, causal, 0.7 } };
    p.n_q = batch * t * d;
    p.n_k = batch * s * d;
    p.n_v = batch * s * dv;
    p.n_y = batch * t * dv;
    p.n_lse = batch * t;
    p.n_out = p.n_y + p.n_lse + p.n_q + p.n_k + p.n_v;
    p.q = numbers(p.n_q);
    p.k = numbers(p.n_k);
    p.v = numbers(p.n_v);
    p.dy = numbers(p.n_y);
    p.scratch = numbers(ls__attention_scratch(&p.shape) + ls__ref_attention_scratch(&p.shape));
    return p;
}

static void unmake(problem *p)
{
    free(p->q);
    free(p->k);
    free(p->v);
    free(p->dy);
    free(p->scratch);
}

static void run(const problem *p, const ls__attention_fns *f, float *out)
{
    const ls__attention_shape *s = &p->shape;
    float *y = out, *lse = y + p->n_y, *dq = lse + p->n_lse, *dk = dq + p->n_q, *dv = dk + p->n_k;
    if (!f) {
        ls__ref_attention_f32(s, p->q, p->k, p->v, y, lse, p->scratch);
        ls__ref_attention_grad_f32(s, p->q, p->k, p->v, p->dy, y, lse, dq, dk, dv, p->scratch);
        return;
    }
    assert_int_equal(f->attention(s, p->q, p->k, p->v, y, lse, p->scratch), LS_OK);
    assert_int_equal(f->attention_grad(s, p->q, p->k, p->v, p->dy, y, lse, dq, dk, dv, p->scratch),
                     LS_OK);
}

static void compare(int64_t batch, int64_t t, int64_t s, int64_t d, int64_t dv, bool causal)
{
    const ls__attention_fns *table[3];
    int n_tables = TABLES(ls__attention_table, table);
    problem p = make(batch, t, s, d, dv, causal);
    float *want = numbers(p.n_out), *got = numbers(p.n_out), *again = numbers(p.n_out + 1);
    run(&p, NULL, want);
    for (int i = 0; i < n_tables; i++) {
        run(&p, table[i], got);
        if (s)
            near(got, want, p.n_out, 2e-5);
        run(&p, table[i], again + 1); /* somewhere else */
        assert_memory_equal(got, again + 1, (size_t)p.n_out * sizeof *got);
    }
    free(want);
    free(got);
    free(again);
    unmake(&p);
}

static void fast_is_near_reference(void **state)
{
    (void)state;
    for (int causal = 0; causal < 2; causal++) {
        compare(3, 128, 128, 32, 32, causal);
        compare(1, LS__ATTENTION_BLOCK, LS__ATTENTION_BLOCK, 8, 8, causal);
        compare(1, LS__ATTENTION_BLOCK + 1, LS__ATTENTION_BLOCK + 1, 8, 5, causal);
        compare(2, 1, 1, 4, 4, causal);
        compare(2, 0, 0, 4, 4, causal);
        compare(0, 3, 3, 4, 4, causal);
        compare(2, 150, 150, 3, 70, causal);
        compare(1, 5, 5, 0, 2, causal);
        compare(1, 5, 5, 2, 0, causal);
        compare(2, LS__ATTENTION_CHUNK + 9, LS__ATTENTION_CHUNK + 9, 80, 79, causal);
    }
    compare(2, 70, 33, 16, 8, false);
    compare(2, 0, 7, 4, 4, false);
    for (int i = 0; i < 60; i++) {
        int64_t t = 1 + below(140);
        bool causal = below(2);
        compare(1 + below(3), t, causal ? t : 1 + below(140), 1 + below(40), 1 + below(40), causal);
    }
}

/* Copies head i of [batch, t, parts, heads, d] to or from rows that lie together. */
static void move_head(const ls__attention_shape *a, int64_t heads, int parts, int part, int64_t i,
                      float *beside, float *apart, bool take)
{
    for (int64_t row = 0; row < a->t; row++) {
        float *at = beside + (((i / heads * a->t + row) * parts + part) * heads + i % heads) * a->d;
        float *other = apart + (i * a->t + row) * a->d;
        memcpy(take ? other : at, take ? at : other, (size_t)a->d * sizeof *at);
    }
}

/* Heads side by side give the bits of the heads taken apart, wherever they are in a batch. */
static void compare_qkv(int64_t batch, int64_t t, int64_t heads, int64_t d, bool causal)
{
    const ls__attention_fns *table[3];
    int n_tables = TABLES(ls__attention_table, table);
    problem p = make(batch * heads, t, t, d, d, causal);
    ls__attention_shape shape = p.shape;
    shape.batch = batch;
    float *x = numbers(3 * p.n_q), *dy = numbers(p.n_y), *out = numbers(p.n_out);
    float *y = numbers(p.n_y), *lse = numbers(p.n_lse), *dx = numbers(3 * p.n_q);
    float *want = numbers(3 * p.n_q), *scratch = numbers(ls__attention_qkv_scratch(&shape));
    for (int64_t i = 0; i < batch * heads; i++) {
        move_head(&shape, heads, 3, 0, i, x, p.q, true);
        move_head(&shape, heads, 3, 1, i, x, p.k, true);
        move_head(&shape, heads, 3, 2, i, x, p.v, true);
        move_head(&shape, heads, 1, 0, i, dy, p.dy, true);
    }
    for (int k = 0; k < n_tables; k++) {
        run(&p, table[k], out);
        assert_int_equal(table[k]->attention_qkv(&shape, heads, x, y, lse, scratch), LS_OK);
        assert_int_equal(table[k]->attention_qkv_grad(&shape, heads, x, dy, y, lse, dx, scratch),
                         LS_OK);
        assert_memory_equal(lse, out + p.n_y, (size_t)p.n_lse * sizeof *lse);
        for (int64_t i = 0; i < batch * heads; i++)
            move_head(&shape, heads, 1, 0, i, want, out, false);
        assert_memory_equal(y, want, (size_t)p.n_y * sizeof *y);
        for (int64_t i = 0; i < batch * heads; i++)
            for (int part = 0; part < 3; part++)
                move_head(&shape, heads, 3, part, i, want, out + p.n_y + p.n_lse + part * p.n_q,
                          false);
        assert_memory_equal(dx, want, (size_t)(3 * p.n_q) * sizeof *dx);
    }
    float *all[] = { x, dy, out, y, lse, dx, want, scratch };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    unmake(&p);
}

static void heads_side_by_side(void **state)
{
    (void)state;
    compare_qkv(2, 128, 8, 32, true);
    compare_qkv(2, 0, 3, 4, true);
    compare_qkv(0, 5, 3, 4, false);
    for (int i = 0; i < 40; i++)
        compare_qkv(1 + below(3), 1 + below(140), 1 + below(4), 1 + below(40), below(2));
}

/* No keys: nothing to see, zeros come out and no gradient goes in. */
static void no_keys(void **state)
{
    (void)state;
    problem p = make(2, 3, 0, 4, 5, false);
    float *out = numbers(p.n_out);
    run(&p, LS__PICK(ls__attention_table), out);
    for (int64_t i = 0; i < p.n_out; i++)
        assert_true(i >= p.n_y && i < p.n_y + p.n_lse ? out[i] == -INFINITY : out[i] == 0);
    free(out);
    unmake(&p);
}

static void huge_scores(void **state)
{
    (void)state;
    problem p = make(1, 3, 3, 2, 2, true);
    for (int64_t i = 0; i < p.n_q; i++) {
        p.q[i] *= 1e10f;
        p.k[i] *= 1e10f;
    }
    float *want = numbers(p.n_out), *got = numbers(p.n_out);
    run(&p, NULL, want);
    run(&p, LS__PICK(ls__attention_table), got);
    near(got, want, p.n_y, 1e-5);
    for (int64_t i = 0; i < p.n_out; i++)
        assert_true(isfinite(got[i]));
    free(want);
    free(got);
    unmake(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_is_near_reference),
        cmocka_unit_test(heads_side_by_side),
        cmocka_unit_test(no_keys),
        cmocka_unit_test(huge_scores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
