/*
 * Normalisation: the fast kernels against the reference, the same bits in every
 * instruction set, and statistics that a one-pass formula gets wrong.
 */
#include <string.h>

#include "kernels/norm.h"
#include "kernels/test_numbers.h"

static const ls__norm_fns reference = {
    ls__ref_norm_batch_stats_f32, ls__ref_norm_batch_apply_f32, ls__ref_norm_batch_grad_f32,
    ls__ref_norm_layer_f32,       ls__ref_norm_layer_grad_f32,
};

/* Everything one table computes, in one array. */
static int64_t run_all(const ls__norm_fns *f, const float *x, const float *dy, const float *scale,
                       const float *offset, float *out, int64_t rows, int64_t cols)
{
    int64_t all = rows * cols;
    float *mean = out, *variance = mean + cols, *rstd = variance + cols, *at = rstd + cols;
    f->batch_stats(x, mean, variance, rows, cols);
    for (int64_t c = 0; c < cols; c++)
        rstd[c] = 1 / sqrtf(variance[c] + 1e-3f);
    f->batch_apply(x, mean, rstd, scale, offset, at, rows, cols);
    at += all;
    f->batch_grad(x, dy, mean, rstd, scale, at, at + all, at + all + cols, rows, cols);
    at += all + 2 * cols;
    float *row_mean = at, *row_rstd = at + rows;
    at += 2 * rows;
    f->layer(x, scale, offset, 1e-3f, at, row_mean, row_rstd, rows, cols);
    at += all;
    float *scratch = numbers(ls__norm_layer_grad_scratch(rows, cols));
    f->layer_grad(x, dy, row_mean, row_rstd, scale, at, at + all, at + all + cols, rows, cols,
                  scratch);
    free(scratch);
    return at + all + 2 * cols - out;
}

static void compare(int64_t rows, int64_t cols)
{
    const ls__norm_fns *table[3];
    int n_tables = TABLES(ls__norm_table, table);
    int64_t all = rows * cols, room = 4 * all + 7 * cols + 2 * rows;
    float *x = numbers(all), *dy = numbers(all), *scale = numbers(cols), *offset = numbers(cols);
    float *want = numbers(room), *got = numbers(room), *first = numbers(room);
    int64_t count = run_all(&reference, x, dy, scale, offset, want, rows, cols);
    assert_int_equal(count, room);
    for (int i = 0; i < n_tables; i++) {
        run_all(table[i], x, dy, scale, offset, got, rows, cols);
        near(got, want, count, 2e-4);
        if (i == 0)
            memcpy(first, got, (size_t)count * sizeof *got);
        assert_memory_equal(got, first, (size_t)count * sizeof *got);
    }
    free(x);
    free(dy);
    free(scale);
    free(offset);
    free(want);
    free(got);
    free(first);
}

static void fast_is_near_reference(void **state)
{
    (void)state;
    compare(64, 10);
    compare(9000, 3);
    compare(4097, 32);
    compare(29000, 2); /* blocks in a tree */
    compare(20, 5000);
    compare(0, 6);
    compare(1, 7);
    compare(5, 0);
    compare(200, 129);
    for (int i = 0; i < 100; i++)
        compare(2 + below(60), 1 + below(150));
}

/* A mean of 1e4 with a deviation of 1e-2: squares minus square of mean is noise. */
static void tiny_variance(void **state)
{
    (void)state;
    const ls__norm_fns *table[3];
    int n_tables = TABLES(ls__norm_table, table);
    enum { N = 512 };
    static float x[N], y[N], ones[N], zeros[N];
    for (int i = 0; i < N; i++) {
        x[i] = 10000.0f + (i % 2 ? 0.0078125f : -0.0078125f);
        ones[i] = 1;
    }
    for (int i = 0; i <= n_tables; i++) {
        const ls__norm_fns *f = i < n_tables ? table[i] : &reference;
        float mean, variance, rstd;
        f->batch_stats(x, &mean, &variance, N, 1);
        assert_true(mean == 10000.0f && variance == 0x1p-14f);
        f->layer(x, ones, zeros, 0, y, &mean, &rstd, 1, N);
        assert_true(mean == 10000.0f && rstd == 128.0f && y[0] == -1 && y[1] == 1);
        /* No variance at all: epsilon keeps it finite. */
        f->layer(ones, ones, zeros, 1e-6f, y, &mean, &rstd, 1, N);
        assert_true(mean == 1 && y[0] == 0 && fabsf(rstd - 1000) < 0.01f);
    }
}

static void no_rows(void **state)
{
    (void)state;
    const ls__norm_fns *table[3];
    int n_tables = TABLES(ls__norm_table, table);
    for (int i = 0; i <= n_tables; i++) {
        const ls__norm_fns *f = i < n_tables ? table[i] : &reference;
        float mean[2] = { 5, 5 }, variance[2] = { 5, 5 }, ones[2] = { 1, 1 };
        float *scratch = numbers(ls__norm_layer_grad_scratch(0, 2));
        f->batch_stats(NULL, mean, variance, 0, 2);
        assert_true(mean[0] == 0 && mean[1] == 0 && variance[0] == 0 && variance[1] == 0);
        f->batch_grad(NULL, NULL, mean, ones, ones, NULL, mean, variance, 0, 2);
        assert_true(mean[1] == 0 && variance[1] == 0);
        mean[1] = variance[1] = 7;
        f->layer_grad(NULL, NULL, NULL, NULL, ones, NULL, mean, variance, 0, 2, scratch);
        assert_true(mean[1] == 0 && variance[1] == 0);
        free(scratch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_is_near_reference),
        cmocka_unit_test(tiny_variance),
        cmocka_unit_test(no_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
