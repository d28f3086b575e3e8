/*
 * The SIMD pools against the reference: the same bits on random shapes from a
 * fixed seed, at every instruction set this processor has; ties, NaN, padding
 * and empty sizes.
 */
#include "kernels/pool.h"
#include "kernels/ref/ref_pool.h"

#include <stdbool.h>
#include <string.h>

#include "kernels/test_numbers.h"

/* Few distinct values, so that ties are common, -0.0 among them; one in 50 is NaN
 * if asked. */
static float *values(int64_t n, bool nan_too)
{
    float *v = malloc((size_t)(n + 1) * sizeof *v);
    for (int64_t i = 0; i < n; i++) {
        v[i] = nan_too && pick(0, 49) == 0 ? NAN : (float)pick(-8, 8) / 3.0f;
        v[i] = v[i] == 0 && pick(0, 1) ? -0.0f : v[i];
    }
    return v;
}

static ls__pool_shape random_shape(void)
{
    for (;;) {
        ls__pool_shape s = { .n = pick(1, 3),
                             .h = pick(1, 12),
                             .w = pick(1, 12),
                             .c = pick(1, 40),
                             .kh = pick(1, 4),
                             .kw = pick(1, 4),
                             .stride_h = pick(1, 3),
                             .stride_w = pick(1, 3) };
        if (pick(0, 1)) {
            s.pad_top = pick(0, s.kh - 1), s.pad_bottom = pick(0, s.kh - 1);
            s.pad_left = pick(0, s.kw - 1), s.pad_right = pick(0, s.kw - 1);
        }
        if (ls__pool_shape_complete(&s) == LS_OK)
            return s;
        assert_int_equal(ls_error(), LS_INVALID); /* a window in the padding */
    }
}

static void same(const void *a, const void *b, int64_t n)
{
    if (n > 0)
        assert_memory_equal(a, b, (size_t)n * 4);
}

static void check_max(const ls__pool_kernels *k, const ls__pool_shape *s)
{
    int64_t nx = s->n * s->h * s->w * s->c, ny = s->n * s->oh * s->ow * s->c;
    float *x = values(nx, true), *dy = values(ny, false);
    float *got = values(nx + ny, false), *want = values(nx + ny, false);
    int32_t *at = calloc((size_t)ny + 1, 4), *want_at = calloc((size_t)ny + 1, 4);
    k->max_forward(s, x, got, at);
    ls__ref_max_pool_forward_f32(s, x, want, want_at);
    same(got, want, ny);
    same(at, want_at, ny);
    k->max_forward(s, x, got, NULL);
    same(got, want, ny);
    memset(at, -1, (size_t)ny * 4);
    k->max_forward_relu(s, x, got, at);
    for (int64_t i = 0; i < ny; i++)
        want[i] = want[i] <= 0 ? 0 : want[i];
    same(got, want, ny);
    same(at, want_at, ny);
    assert_true(k->max_backward(s, dy, at, got));
    ls__ref_max_pool_backward_f32(s, dy, at, want);
    same(got, want, nx);
    assert_true(k->max_gather(s, x, at, got));
    ls__ref_max_pool_gather_f32(s, x, at, want);
    same(got, want, ny);
    for (int i = 0; i < 2 && ny > 0; i++) {
        at[pick(0, ny - 1)] = i ? -1 : (int32_t)(s->h * s->w);
        assert_false(k->max_backward(s, dy, at, got));
        assert_false(k->max_gather(s, x, at, got));
        memcpy(at, want_at, (size_t)ny * 4);
    }
    free(x), free(dy), free(got), free(want), free(at), free(want_at);
}

/* The image in blocks of channels, [n, c / block, h, w, block]. */
static float *in_blocks(const ls__pool_shape *s, int64_t block, const float *x)
{
    const int64_t pixels = s->h * s->w;
    float *to = malloc((size_t)(s->n * pixels * s->c + 1) * sizeof *to);
    for (int64_t i = 0; i < s->n * pixels * s->c; i++) {
        const int64_t c = i % s->c, pixel = i / s->c % pixels, n = i / s->c / pixels;
        to[((n * (s->c / block) + c / block) * pixels + pixel) * block + c % block] = x[i];
    }
    return to;
}

/* On an image in blocks: what the reference gives on the plain one. */
static void check_blocks(const ls__pool_kernels *k, const ls__pool_shape *s, int64_t block)
{
    int64_t nx = s->n * s->h * s->w * s->c, ny = s->n * s->oh * s->ow * s->c;
    float *x = values(nx, true), *dy = values(ny, false), *packed = in_blocks(s, block, x);
    float *got = values(nx + ny, false), *want = values(nx + ny, false);
    int32_t *at = calloc((size_t)ny + 1, 4), *want_at = calloc((size_t)ny + 1, 4);
    ls__pool_shape blocked = *s;
    blocked.block = block;
    k->max_forward(&blocked, packed, got, at);
    ls__ref_max_pool_forward_f32(s, x, want, want_at);
    same(got, want, ny);
    same(at, want_at, ny);
    k->max_forward_relu(&blocked, packed, got, at);
    for (int64_t i = 0; i < ny; i++)
        want[i] = want[i] <= 0 ? 0 : want[i];
    same(got, want, ny);
    same(at, want_at, ny);
    assert_true(k->max_backward(&blocked, dy, at, got));
    ls__ref_max_pool_backward_f32(s, dy, at, want);
    float *wanted = in_blocks(s, block, want);
    same(got, wanted, nx);
    if (ny > 0) {
        at[pick(0, ny - 1)] = (int32_t)(s->h * s->w);
        assert_false(k->max_backward(&blocked, dy, at, got));
    }
    free(x), free(dy), free(packed), free(got), free(want), free(wanted), free(at), free(want_at);
}

static void test_blocks(void **state)
{
    (void)state;
    const ls__pool_kernels *table[3];
    int n = TABLES(ls__pool_table, table);
    for (int i = 0; i < 100; i++) {
        static const int64_t blocks[] = { 16, 8, 4, 5 };
        const int64_t block = blocks[i % 4];
        ls__pool_shape s = random_shape();
        s.c = block * pick(0, 3);
        if (i % 3 == 0) /* tiles */
            s.stride_h = s.kh, s.stride_w = s.kw;
        if (ls__pool_shape_complete(&s) != LS_OK) {
            assert_int_equal(ls_error(), LS_INVALID);
            continue;
        }
        for (int k = 0; k < n; k++)
            check_blocks(table[k], &s, block);
    }
}

static void check_avg(const ls__pool_kernels *k, const ls__pool_shape *s)
{
    int64_t nx = s->n * s->h * s->w * s->c, ny = s->n * s->oh * s->ow * s->c;
    float *x = values(nx, false), *dy = values(ny, false);
    float *got = values(nx + ny, false), *want = values(nx + ny, false);
    k->avg_forward(s, x, got);
    ls__ref_avg_pool_forward_f32(s, x, want);
    same(got, want, ny);
    k->avg_backward(s, dy, got);
    ls__ref_avg_pool_backward_f32(s, dy, want);
    same(got, want, nx);
    free(x), free(dy), free(got), free(want);
}

static void check_shape(const ls__pool_shape *s)
{
    const ls__pool_kernels *table[3];
    int n = TABLES(ls__pool_table, table);
    for (int i = 0; i < n; i++) {
        check_max(table[i], s);
        check_avg(table[i], s);
    }
}

static void test_random_shapes(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        ls__pool_shape s = random_shape();
        check_shape(&s);
    }
}

/* Windows side by side, as the models have them: 2x2 and others, with rows and
 * columns left over, cut off by the edge, or none at all. */
static void test_tiles(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        ls__pool_shape s = { .n = pick(1, 2), .h = pick(1, 9), .w = pick(1, 9), .c = pick(1, 40) };
        s.kh = s.stride_h = pick(0, 1) ? 2 : pick(1, 4);
        s.kw = s.stride_w = pick(0, 1) ? 2 : pick(1, 4);
        if (pick(0, 1)) {
            s.pad_bottom = s.h % s.kh ? s.kh - s.h % s.kh : 0;
            s.pad_right = s.w % s.kw ? s.kw - s.w % s.kw : 0;
            s.pad_top = s.pad_bottom / 2, s.pad_bottom -= s.pad_top;
            s.pad_left = s.pad_right / 2, s.pad_right -= s.pad_left;
        }
        assert_int_equal(ls__pool_shape_complete(&s), LS_OK);
        check_shape(&s);
    }
}

/* f64, whose reference goes where an index says. */
static void test_f64(void **state)
{
    (void)state;
    ls__pool_shape s = {
        .n = 1, .h = 2, .w = 4, .c = 1, .kh = 2, .kw = 2, .stride_h = 2, .stride_w = 2
    };
    const double x[8] = { -1, 3, -2, -0.0, 2, -5, -7, -4 };
    double y[2], dx[8];
    int32_t at[2];
    assert_int_equal(ls__pool_shape_complete(&s), LS_OK);
    ls__max_pool_forward_relu_f64(&s, x, y, at);
    assert_true(y[0] == 3 && y[1] == 0 && !signbit(y[1]));
    assert_true(at[0] == 1 && at[1] == 3);
    assert_true(ls__max_pool_backward_f64(&s, y, at, dx));
    assert_true(dx[1] == 3 && dx[0] == 0);
    assert_true(ls__max_pool_gather_f64(&s, x, at, y));
    assert_true(y[0] == 3 && y[1] == 0);
    at[1] = 8;
    assert_false(ls__max_pool_backward_f64(&s, y, at, dx));
    assert_false(ls__max_pool_gather_f64(&s, x, at, y));
}

static void test_empty(void **state)
{
    (void)state;
    for (int which = 0; which < 4; which++) {
        ls__pool_shape s = {
            .n = 2, .h = 4, .w = 4, .c = 3, .kh = 2, .kw = 2, .stride_h = 2, .stride_w = 2
        };
        int64_t *size[] = { &s.n, &s.h, &s.w, &s.c };
        *size[which] = 0;
        assert_int_equal(ls__pool_shape_complete(&s), LS_OK);
        check_shape(&s);
    }
}

/* SAME 2x2 stride 2 on 3x3: the corner averages one cell, not four. */
static void test_padding_does_not_count(void **state)
{
    (void)state;
    ls__pool_shape s = { .n = 1,
                         .h = 3,
                         .w = 3,
                         .c = 1,
                         .kh = 2,
                         .kw = 2,
                         .stride_h = 2,
                         .stride_w = 2,
                         .pad_bottom = 1,
                         .pad_right = 1 };
    const float x[9] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
    float y[4];
    assert_int_equal(ls__pool_shape_complete(&s), LS_OK);
    ls__avg_pool_forward_f32(&s, x, y);
    assert_true(y[0] == 3.0f && y[1] == 4.5f && y[2] == 7.5f && y[3] == 9.0f);
}

static void test_ties_and_nan(void **state)
{
    (void)state;
    ls__pool_shape s = {
        .n = 1, .h = 1, .w = 4, .c = 1, .kh = 1, .kw = 2, .stride_h = 1, .stride_w = 2
    };
    const float x[4] = { 5, 5, NAN, 7 };
    float y[2];
    int32_t at[2];
    assert_int_equal(ls__pool_shape_complete(&s), LS_OK);
    ls__max_pool_forward_f32(&s, x, y, at);
    assert_true(y[0] == 5.0f && at[0] == 0);
    assert_true(isnan(y[1]) && at[1] == 2);
}

static void test_refuses(void **state)
{
    (void)state;
    ls__pool_shape s = {
        .n = 1, .h = 4, .w = 4, .c = 1, .kh = 2, .kw = 2, .stride_h = 0, .stride_w = 1
    };
    assert_int_equal(ls__pool_shape_complete(&s), LS_INVALID);
    assert_int_equal(ls_error(), LS_INVALID);
    s.stride_h = 1, s.pad_top = 2;
    assert_int_equal(ls__pool_shape_complete(&s), LS_INVALID);
    assert_int_equal(ls_error(), LS_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_shapes), cmocka_unit_test(test_tiles),
        cmocka_unit_test(test_blocks),        cmocka_unit_test(test_f64),
        cmocka_unit_test(test_empty),         cmocka_unit_test(test_padding_does_not_count),
        cmocka_unit_test(test_ties_and_nan),  cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
