/*
 * Softmax and losses: the fast kernels against the reference, the same bits in
 * every instruction set, and logits that overflow a naive exp.
 */
#include <string.h>

#include "kernels/softmax.h"
#include "kernels/test_numbers.h"

static float *logits(int64_t n, float size)
{
    float *x = numbers(n);
    for (int64_t i = 0; i < n; i++)
        x[i] *= size;
    return x;
}

/* Not below zero, as those of a distribution: or a loss is the small difference
 * of large sums, of which a tolerance can say nothing. */
static float *weights(int64_t n)
{
    float *t = numbers(n);
    for (int64_t i = 0; i < n; i++)
        t[i] = fabsf(t[i]);
    return t;
}

/* What one table computes, all results in one array so that bits compare at once. */
static int64_t run_all(const ls__softmax_fns *f, const float *x, const float *t, ls__labels labels,
                       float *out, int64_t outer, int64_t n, int64_t inner)
{
    int64_t all = outer * n * inner, rows = outer * inner;
    float *at = out, *y = out;
    f->softmax(false, x, at, outer, n, inner);
    f->softmax_grad(false, y, x, at += all, outer, n, inner);
    f->softmax(true, x, at += all, outer, n, inner);
    f->softmax_grad(true, at, x, at + all, outer, n, inner);
    at += 2 * all;
    f->sparse_xent(x, labels, at + all, at, rows, n);
    f->sparse_xent_grad(at, labels, t, at + all + rows, rows, n);
    at += 2 * all + rows;
    f->xent(x, t, at + all, at, rows, n);
    f->xent_grad(at, t, x, at + all + rows, rows, n);
    at += 2 * all + rows;
    f->sigmoid_xent(x, t, at, all);
    f->mse(x, t, at + all, rows, n);
    return at + all + rows - out;
}

static const ls__softmax_fns reference = {
    ls__ref_softmax_f32,          ls__ref_softmax_grad_f32, ls__ref_sparse_xent_f32,
    ls__ref_sparse_xent_grad_f32, ls__ref_xent_f32,         ls__ref_xent_grad_f32,
    ls__ref_sparse_xent_both_f32, ls__ref_xent_both_f32,    ls__ref_sigmoid_xent_f32,
    ls__ref_mse_f32,
};

/* Loss and gradient at once: the bits of the two kernels. */
static void both_is_the_two(const ls__softmax_fns *f, const float *x, const float *t,
                            ls__labels labels, int64_t rows, int64_t n)
{
    size_t all = (size_t)(rows * n) * sizeof(float), row = (size_t)rows * sizeof(float);
    float *p = numbers(rows * n), *want = numbers(rows * n), *got = numbers(rows * n);
    float *loss = numbers(rows), *got_loss = numbers(rows), *scratch = numbers(n);
    f->sparse_xent(x, labels, loss, p, rows, n);
    f->sparse_xent_grad(p, labels, t, want, rows, n);
    f->sparse_xent_both(x, labels, t, got_loss, got, rows, n);
    assert_memory_equal(got, want, all);
    assert_memory_equal(got_loss, loss, row);
    f->xent(x, t, loss, p, rows, n);
    f->xent_grad(p, t, x, want, rows, n);
    f->xent_both(x, t, x, got_loss, got, rows, n, scratch);
    assert_memory_equal(got, want, all);
    assert_memory_equal(got_loss, loss, row);
    free(p);
    free(want);
    free(got);
    free(loss);
    free(got_loss);
    free(scratch);
}

static void compare(int64_t outer, int64_t n, int64_t inner, float size)
{
    const ls__softmax_fns *table[3];
    int n_tables = TABLES(ls__softmax_table, table);
    int64_t all = outer * n * inner, rows = outer * inner, room = 10 * all + 3 * rows;
    float *x = logits(all, size), *t = weights(all);
    float *want = numbers(room), *got = numbers(room), *first = numbers(room);
    int64_t *label = malloc((size_t)(rows + 1) * sizeof *label);
    for (int64_t r = 0; r < rows; r++)
        label[r] = below(n);
    ls__labels labels = { label, true };
    int64_t count = run_all(&reference, x, t, labels, want, outer, n, inner);
    both_is_the_two(&reference, x, t, labels, rows, n);
    for (int i = 0; i < n_tables; i++) {
        assert_int_equal(run_all(table[i], x, t, labels, got, outer, n, inner), count);
        near(got, want, count, 3e-6 * (1 + size));
        both_is_the_two(table[i], x, t, labels, rows, n);
        if (i == 0)
            memcpy(first, got, (size_t)count * sizeof *got);
        assert_memory_equal(got, first, (size_t)count * sizeof *got);
    }
    free(x);
    free(t);
    free(want);
    free(got);
    free(first);
    free(label);
}

static void fast_is_near_reference(void **state)
{
    (void)state;
    compare(64, 10, 1, 5);
    compare(3, 1000, 1, 8);
    compare(2, 5000, 1, 1);
    compare(2, 7, 200, 3);
    compare(0, 7, 3, 1);
    compare(4, 1, 1, 1);
    for (int i = 0; i < 200; i++)
        compare(1 + below(5), 1 + below(70), below(2) ? 1 : 1 + below(90), 10);
}

static void huge_logits(void **state)
{
    (void)state;
    const ls__softmax_fns *table[3];
    int n_tables = TABLES(ls__softmax_table, table);
    for (int i = 0; i <= n_tables; i++) {
        const ls__softmax_fns *f = i < n_tables ? table[i] : &reference;
        const float x[6] = { 3e38f, -3e38f, 0, 1e4f, 1e4f, -1e4f };
        const int32_t label[2] = { 0, 1 };
        ls__labels labels = { label, false };
        float p[6], loss[2];
        f->sparse_xent(x, labels, loss, p, 2, 3);
        assert_true(loss[0] == 0 && p[0] == 1 && p[1] == 0 && p[2] == 0);
        assert_true(fabsf(loss[1] - 0.693147f) < 1e-6f && p[3] == 0.5f && p[5] == 0);
        /* A class of no weight does not count, be it impossible. */
        const float no[3] = { 0, -INFINITY, 0 }, t[3] = { 0.5f, 0, 0.5f };
        f->xent(no, t, loss, p, 1, 3);
        assert_true(fabsf(loss[0] - 0.693147f) < 1e-6f);
        const float big[4] = { 1e30f, -1e30f, 20, -200 }, one[4] = { 1, 0, 1, 0 };
        f->sigmoid_xent(big, one, p, 4);
        assert_true(p[0] == 0 && p[1] == 0 && p[2] > 2.0e-9f && p[2] < 2.1e-9f && p[3] < 1e-37f);
        const float nan[3] = { 0, NAN, 1 };
        f->softmax(false, nan, p, 1, 3, 1);
        assert_true(isnan(p[0]) && isnan(p[1]) && isnan(p[2]));
        f->softmax(true, x, p, 1, 3, 1);
        assert_true(p[0] == 0 && isinf(p[1]) && p[2] == -3e38f);
    }
}

static void labels_out_of_range(void **state)
{
    (void)state;
    const int32_t narrow[4] = { 0, 9, 10, -1 };
    const int64_t wide[4] = { 0, 9, 3, -1 };
    assert_int_equal(ls__labels_check((ls__labels){ narrow, false }, 4, 10), 2);
    assert_int_equal(ls__labels_check((ls__labels){ wide, true }, 4, 10), 3);
    assert_int_equal(ls__labels_check((ls__labels){ wide, true }, 3, 10), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_is_near_reference),
        cmocka_unit_test(huge_logits),
        cmocka_unit_test(labels_out_of_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
