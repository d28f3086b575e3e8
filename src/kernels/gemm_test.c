/*
 * The products of dense layers: bit for bit a chain of fma over k, for sizes that fill no tile, row
 * distances that are larger than the rows, and what lies between the rows of C stays as it is.
 */
#include "kernels/gemm.h"

#include <math.h>
#include <string.h>

#include "kernels/test_numbers.h"
#include "kernels/threads.h"
#include "kernels/update.h"

typedef struct operands {
    float *a, *b, *c;
} operands;

static ls__matmul_shape shape_of(int64_t m, int64_t n, int64_t k, bool ta, bool tb)
{
    ls__matmul_shape s = { .batch = 1, .m = m, .n = n, .k = k, .ta = ta, .tb = tb };
    s.lda = (ta ? m : k) + pick(0, 3);
    s.ldb = (tb ? k : n) + pick(0, 3);
    s.ldc = n + pick(0, 3);
    return s;
}

static operands make(const ls__matmul_shape *s)
{
    return (operands){ .a = numbers((s->ta ? s->k : s->m) * s->lda),
                       .b = numbers((s->tb ? s->n : s->k) * s->ldb),
                       .c = numbers(s->m * s->ldc) };
}

static void drop(operands *o)
{
    free(o->a);
    free(o->b);
    free(o->c);
}

static float want_at(const ls__matmul_shape *s, const operands *o, int64_t i, int64_t j)
{
    float sum = 0;
    for (int64_t k = 0; k < s->k; k++)
        sum = fmaf(o->a[s->ta ? k * s->lda + i : i * s->lda + k],
                   o->b[s->tb ? j * s->ldb + k : k * s->ldb + j], sum);
    return sum + 0.0f; /* no -0 */
}

static void check_product(const ls__matmul_shape *s, const operands *o)
{
    float *before = malloc((size_t)(s->m * s->ldc) * sizeof *before);
    float *scratch = aligned_alloc(64, (ls__gemm_scratch(s) * sizeof *scratch + 63) / 64 * 64);
    memcpy(before, o->c, (size_t)(s->m * s->ldc) * sizeof *before);
    ls__gemm_run(s, o->a, o->b, o->c, scratch);
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j < s->ldc; j++) {
            const float got = o->c[i * s->ldc + j];
            const float want = j < s->n ? want_at(s, o, i, j) : before[i * s->ldc + j];
            if (memcmp(&got, &want, sizeof got) != 0)
                fail_msg("[%lld,%lld] is %g, not %g; %lldx%lldx%lld ta %d tb %d", (long long)i,
                         (long long)j, (double)got, (double)want, (long long)s->m, (long long)s->k,
                         (long long)s->n, s->ta, s->tb);
        }
    free(scratch);
    free(before);
}

static void check(const ls__matmul_shape *s)
{
    operands o = make(s);
    check_product(s, &o);
    drop(&o);
}

static const struct {
    bool ta, tb;
} turns[] = { { false, false }, { false, true }, { true, false } };

static bool there(void)
{
    return LS__PICK(ls__gemm_table)->plain != NULL;
}

static void sizes_that_fill_no_tile(void **state)
{
    (void)state;
    if (!there())
        skip();
    for (int turn = 0; turn < 3; turn++)
        for (int i = 0; i < 60; i++) {
            ls__matmul_shape s =
                shape_of(pick(1, 70), pick(1, 70), pick(1, 290), turns[turn].ta, turns[turn].tb);
            check(&s);
        }
}

/* Rows of a power of two apart, several blocks of k, more rows than are taken at once. */
static void sizes_of_layers(void **state)
{
    (void)state;
    if (!there())
        skip();
    for (int turn = 0; turn < 3; turn++) {
        const bool ta = turns[turn].ta, tb = turns[turn].tb;
        ls__matmul_shape s = shape_of(ta ? 512 : 50, 520, ta ? 50 : 512, ta, tb);
        check(&s);
        s = shape_of(ta ? 515 : 150, 512, ta ? 130 : 513, ta, tb);
        check(&s);
    }
}

/* Few columns that are whole vectors: rows of B are read where they are, if they begin with a line. */
static void narrow_rows_of_whole_vectors(void **state)
{
    (void)state;
    if (!there())
        skip();
    for (int64_t n = 16; n <= 80; n += 16)
        for (int off = 0; off < 2; off++) {
            ls__matmul_shape s = shape_of(pick(1, 70), n, pick(120, 290), false, false);
            s.ldb = n;
            operands o = make(&s);
            float *room = aligned_alloc(64, (size_t)(s.k * n + 16) * sizeof *room);
            memcpy(room + off, o.b, (size_t)(s.k * n) * sizeof *room);
            check_product(&s, &(operands){ .a = o.a, .b = room + off, .c = o.c });
            free(room);
            drop(&o);
        }
}

/* Adam between products: the bits of the update by itself, and of the product; what there were no rounds for is
 * left, and done in the end. */
static void adam_beside_products(void **state)
{
    (void)state;
    if (!there())
        skip();
    enum { N = 64, LD = 80, TALL = LS__GEMM_TALL };
    const ls__gemm_pieces *g = &LS__PICK(ls__gemm_table)->pieces;
    const ls__update step = { .rate = 0.01,
                              .scale = 1,
                              .clip = INFINITY,
                              .one_minus_beta1 = 0.1,
                              .one_minus_beta2 = 0.001,
                              .epsilon = 1e-7 };
    for (int64_t k = 1; k < 100; k += 7)
        for (int64_t tall = 9; tall <= TALL; tall += TALL - 9) {
            float *a = numbers(k * tall), *b = numbers(k * N), *grad = numbers(TALL * N);
            float *rows = aligned_alloc(64, (size_t)k * 64), *c = numbers(TALL * N);
            float *panels = aligned_alloc(64, (size_t)ls__gemm_panel_floats(k, N) * 4);
            float *want_c = numbers(TALL * N), *at[3], *want[3];
            for (int i = 0; i < 3; i++) {
                at[i] = numbers(TALL * LD);
                want[i] = malloc(TALL * LD * sizeof(float));
                for (int n = 0; n < TALL * LD; n++)
                    at[i][n] = fabsf(at[i][n]); /* of squares there is a root */
                memcpy(want[i], at[i], TALL * LD * sizeof(float));
            }
            ls__gemm_adam adam = { at[0], at[1], at[2],  LD,    grad, N,     N,
                                   TALL,  0,     -0.01f, 1e-7f, 0.1f, 0.001f };
            g->panels(b, N, k, N, panels);
            g->rows(a, tall, k, tall, rows);
            g->make(rows, panels, k, N, tall, 0, N, false, want_c, N, &(ls__gemm_meanwhile){ 0 });
            g->make(rows, panels, k, N, tall, 0, N, false, c, N,
                    &(ls__gemm_meanwhile){ .adam = &adam });
            assert_memory_equal(c, want_c, (size_t)(tall * N) * sizeof *c);
            assert_true(tall < TALL ? adam.rows == TALL : adam.rows < TALL || adam.at > 0);
            g->finish_adam(&adam);
            assert_int_equal(adam.rows, 0);
            for (int i = 0; i < TALL; i++) {
                void *row[3] = { want[0] + i * LD, want[1] + i * LD, want[2] + i * LD };
                LS__PICK(ls__update_table)->update[LS__UPDATE_ADAM][0](row, grad + i * N, &step, N);
            }
            for (int i = 0; i < 3; i++) {
                assert_memory_equal(at[i], want[i], TALL * LD * sizeof(float));
                free(at[i]);
                free(want[i]);
            }
            free(a);
            free(b);
            free(grad);
            free(rows);
            free(c);
            free(panels);
            free(want_c);
        }
}

static void whose_products_they_are(void **state)
{
    (void)state;
    ls__matmul_shape s = { .batch = 1, .m = 64, .n = 2048, .k = 784 };
    const int threads = ls__kernel_threads_get();
    assert_int_equal(ls__gemm_pays(&s), there());
#ifdef LS_HAVE_DNNL
    assert_int_equal(ls__matmul_route_f32(&s) == LS__MATMUL_OWN, there());
    ls__kernel_threads(2);
    assert_int_not_equal(ls__matmul_route_f32(&s), LS__MATMUL_OWN);
    ls__kernel_threads(threads);
#endif
    (void)threads;
    s.m = 1024; /* many rows: others do well */
    assert_false(ls__gemm_pays(&s));
    s.m = 64, s.batch = 2;
    assert_false(ls__gemm_pays(&s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_that_fill_no_tile),      cmocka_unit_test(sizes_of_layers),
        cmocka_unit_test(narrow_rows_of_whole_vectors), cmocka_unit_test(adam_beside_products),
        cmocka_unit_test(whose_products_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
