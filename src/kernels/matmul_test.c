/*
 * The fast products against the reference in double, on random shapes from a
 * fixed seed: transposes, batches, shared operands, row distances, empty sizes,
 * packed weights, and the same bits twice.
 */
#include "base/fpu.h"
#include "kernels/matmul.h"
#include "kernels/threads.h"

#include <string.h>

#include "kernels/test_numbers.h"

/* What the shape asks for, element by element. */
static double element(const ls__matmul_shape *s, const float *a, const float *b, int64_t batch,
                      int64_t i, int64_t j)
{
    int64_t lda = s->lda ? s->lda : s->ta ? s->m : s->k;
    int64_t ldb = s->ldb ? s->ldb : s->tb ? s->k : s->n;
    double sum = 0;
    for (int64_t p = 0; p < s->k; p++)
        sum += (double)a[batch * s->stride_a + (s->ta ? p * lda + i : i * lda + p)] *
               (double)b[batch * s->stride_b + (s->tb ? j * ldb + p : p * ldb + j)];
    return sum;
}

static void check(const ls__matmul_shape *s, const float *a, const float *b, const float *c,
                  const char *how)
{
    int64_t ldc = s->ldc ? s->ldc : s->n;
    for (int64_t batch = 0; batch < s->batch; batch++)
        for (int64_t i = 0; i < s->m; i++)
            for (int64_t j = 0; j < s->n; j++) {
                double want = element(s, a, b, batch, i, j);
                double got = c[batch * s->stride_c + i * ldc + j];
                if (!(fabs(got - want) <= 1e-4 * (1 + fabs(want))))
                    fail_msg("%s: [%lld][%lld,%lld] is %g, not %g; %lld x %lldx%lldx%lld ta %d "
                             "tb %d",
                             how, (long long)batch, (long long)i, (long long)j, got, want,
                             (long long)s->batch, (long long)s->m, (long long)s->k, (long long)s->n,
                             s->ta, s->tb);
            }
}

/* B packed, when the plan wants that; else as it is. */
static void run_packed(const ls__matmul_shape *s, const float *a, const float *b, float *c)
{
    ls__matmul_plan plan;
    assert_int_equal(ls__matmul_plan_open(&plan, s, true), LS_OK);
    void *packed = aligned_alloc(64, plan.b_bytes / 64 * 64 + 64);
    assert_int_equal(ls__matmul_plan_pack_b(&plan, b, packed), LS_OK);
    assert_int_equal(ls__matmul_plan_run(&plan, a, packed, c), LS_OK);
    ls__matmul_plan_close(&plan);
    free(packed);
}

static void check_shape(const ls__matmul_shape *s, int64_t na, int64_t nb, int64_t nc)
{
    float *a = numbers(na), *b = numbers(nb), *c = numbers(nc), *again = malloc((size_t)nc * 4 + 4);
    memcpy(again, c, (size_t)nc * sizeof *c);
    if (ls__matmul_f32(s, a, b, c))
        fail_msg("%s", ls_error_report());
    check(s, a, b, c, "eager");
    assert_int_equal(ls__matmul_f32(s, a, b, again), LS_OK);
    assert_memory_equal(c, again, (size_t)nc * sizeof *c);
    run_packed(s, a, b, again);
    check(s, a, b, again, "packed");
    free(a);
    free(b);
    free(c);
    free(again);
}

static void test_random_shapes(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        ls__matmul_shape s = { .batch = pick(0, 2) ? 1 : pick(2, 5),
                               .m = pick(1, 70),
                               .n = pick(1, 150),
                               .k = pick(1, 90),
                               .ta = pick(0, 1),
                               .tb = pick(0, 1) };
        int64_t rows_a = s.ta ? s.k : s.m, cols_a = s.ta ? s.m : s.k;
        int64_t rows_b = s.tb ? s.n : s.k, cols_b = s.tb ? s.k : s.n;
        if (pick(0, 2) == 0) {
            s.lda = cols_a + pick(0, 5);
            s.ldb = cols_b + pick(0, 5);
            s.ldc = s.n + pick(0, 5);
        }
        int64_t na = rows_a * (s.lda ? s.lda : cols_a), nb = rows_b * (s.ldb ? s.ldb : cols_b);
        int64_t nc = s.m * (s.ldc ? s.ldc : s.n);
        s.stride_a = s.batch > 1 && pick(0, 2) ? na : 0;
        s.stride_b = s.batch > 1 && pick(0, 1) ? nb : 0;
        s.stride_c = s.batch > 1 ? nc + pick(0, 3) : 0;
        check_shape(&s, na * s.batch, nb * s.batch, (nc + 3) * s.batch);
    }
}

/* A^T B with rows of A 4 KiB apart takes another route; so do wide products. */
static void test_routes(void **state)
{
    (void)state;
    check_shape(&(ls__matmul_shape){ .batch = 1, .m = 1024, .n = 8, .k = 256, .ta = true },
                1024 * 256, 256 * 8, 1024 * 8);
    check_shape(&(ls__matmul_shape){ .batch = 1, .m = 16, .n = 512, .k = 64 }, 16 * 64, 64 * 512,
                16 * 512);
    check_shape(
        &(ls__matmul_shape){
            .batch = 4, .m = 16, .n = 80, .k = 24, .stride_a = 16 * 24, .stride_c = 16 * 80 },
        4 * 16 * 24, 24 * 80, 4 * 16 * 80);
}

/* The rule's edges: rows, transposes, small weights, batches. */
static void test_packing_pays(void **state)
{
    (void)state;
    static const struct {
        int64_t batch, m, n, k;
        bool ta, tb, pays;
    } cases[] = {
        { 1, 32, 2048, 784, false, false, true },   { 1, 64, 768, 768, false, false, true },
        { 1, 65, 2048, 2048, false, false, false }, { 1, 3, 2048, 2048, false, false, false },
        { 1, 32, 10, 2048, false, false, false },   { 1, 32, 2048, 512, false, false, false },
        { 1, 1, 64, 64, false, true, true },        { 1, 64, 512, 512, false, true, true },
        { 1, 65, 512, 512, false, true, false },    { 1, 16, 10, 2048, false, true, false },
        { 1, 16, 2048, 10, false, true, false },    { 1, 0, 512, 512, false, true, false },
        { 1, 32, 2048, 784, true, false, false },   { 2, 32, 2048, 784, false, false, false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const ls__matmul_shape s = { .batch = cases[i].batch,
                                     .m = cases[i].m,
                                     .n = cases[i].n,
                                     .k = cases[i].k,
                                     .ta = cases[i].ta,
                                     .tb = cases[i].tb };
        if (ls__matmul_packing_pays(&s) != cases[i].pays)
            fail_msg("case %zu", i);
    }
}

static void test_empty(void **state)
{
    (void)state;
    float c[12], a[12] = { 0 }, b[12] = { 0 };
    for (int which = 0; which < 4; which++) {
        ls__matmul_shape s = { .batch = 1, .m = 3, .n = 4, .k = 2 };
        int64_t *size[] = { &s.batch, &s.m, &s.n, &s.k };
        *size[which] = 0;
        memset(c, 0x40, sizeof c);
        assert_int_equal(ls__matmul_route_f32(&s), LS__MATMUL_ZERO);
        assert_int_equal(ls__matmul_f32(&s, a, b, c), LS_OK);
        for (int i = 0; i < 12; i++)
            assert_true(which == 3 ? c[i] == 0.0f : c[i] != 0.0f);
    }
}

static void test_double(void **state)
{
    (void)state;
    for (int i = 0; i < 40; i++) {
        ls__matmul_shape s = { .batch = 1,
                               .m = pick(0, 20),
                               .n = pick(0, 300),
                               .k = pick(0, 150),
                               .ta = pick(0, 1),
                               .tb = pick(0, 1) };
        int64_t na = s.m * s.k, nb = s.k * s.n, nc = s.m * s.n;
        float *a = numbers(na), *b = numbers(nb), *c = numbers(nc);
        double *wa = malloc((size_t)na * 8 + 8), *wb = malloc((size_t)nb * 8 + 8),
               *wc = malloc((size_t)nc * 8 + 8);
        for (int64_t j = 0; j < na; j++)
            wa[j] = a[j];
        for (int64_t j = 0; j < nb; j++)
            wb[j] = b[j];
        assert_int_equal(ls__matmul_f64(&s, wa, wb, wc), LS_OK);
        for (int64_t r = 0; r < s.m; r++)
            for (int64_t j = 0; j < s.n; j++) /* the same order of sums: the same bits */
                assert_true(wc[r * s.n + j] == element(&s, a, b, 0, r, j));
        free(a), free(b), free(c), free(wa), free(wb), free(wc);
    }
}

static void test_refuses(void **state)
{
    (void)state;
    float v[8] = { 0 };
    ls__matmul_shape s = { .batch = 2, .m = 2, .n = 2, .k = 2, .stride_a = 4, .stride_b = 4 };
    assert_int_equal(ls__matmul_f32(&s, v, v, v), LS_INVALID);
    assert_int_equal(ls_error(), LS_INVALID);
    s = (ls__matmul_shape){ .batch = 1, .m = 2, .n = 2, .k = 2, .lda = 1 };
    assert_int_equal(ls__matmul_f32(&s, v, v, v), LS_INVALID);
    assert_int_equal(ls_error(), LS_INVALID);
}

extern void GOMP_parallel(void (*)(void *), void *, unsigned, unsigned) __attribute__((weak));

static void idle(void *unused)
{
    (void)unused;
}

/* OpenMP's threads flush denormals too, though they were made before anybody asked
 * for that: else half of a product would depend on who made the pool. */
static void test_all_threads_flush(void **state)
{
    (void)state;
    enum { M = 256, N = 256, K = 64 };
    if (!GOMP_parallel)
        skip(); /* no oneDNN, or not on libgomp */
    GOMP_parallel(idle, NULL, 2, 0);
    float *a = malloc(M * K * sizeof *a), *b = malloc(K * N * sizeof *b);
    float *c = malloc(M * N * sizeof *c);
    for (int i = 0; i < M * K; i++)
        a[i] = 1e-20f;
    for (int i = 0; i < K * N; i++)
        b[i] = 1e-20f; /* 64 products of 1e-40: all of it denormal */
    const ls__matmul_shape s = { .batch = 1, .m = M, .n = N, .k = K };
    ls__kernel_threads(2);
    uint64_t before = ls__fpu_enter();
    ls_status st = ls__matmul_f32(&s, a, b, c);
    ls__fpu_leave(before);
    ls__kernel_threads(1);
    assert_int_equal(st, LS_OK);
    int kept = 0;
    for (int i = 0; i < M * N; i++)
        kept += c[i] != 0;
    assert_int_equal(kept, 0);
    free(a);
    free(b);
    free(c);
}

#ifdef LS_HAVE_DNNL
/* More plans than a thread keeps: those used lately are found again, one that had to
 * go while somebody held it still works, and so does its successor. */
static void test_plans_used_lately_are_kept(void **state)
{
    (void)state;
    enum { SHAPES = 1100, LAST = 900 };
    static const float a[SHAPES], b[4] = { 1, 1, 1, 1 };
    static float c[2 * SHAPES];
    ls__matmul_plan first, other;
    struct ls__dnnl_plan *made[SHAPES];
    for (int i = 0; i < SHAPES; i++) {
        const ls__matmul_shape s = { .batch = 1, .m = i + 1, .n = 2, .k = 1 };
        assert_int_equal(ls__matmul_plan_open(i ? &other : &first, &s, false), LS_OK);
        made[i] = i ? other.dnnl : first.dnnl;
        assert_non_null(made[i]);
        if (i)
            ls__matmul_plan_close(&other);
    }
    for (int i = SHAPES - LAST; i < SHAPES; i++) {
        const ls__matmul_shape s = { .batch = 1, .m = i + 1, .n = 2, .k = 1 };
        assert_int_equal(ls__matmul_plan_open(&other, &s, false), LS_OK);
        assert_ptr_equal(other.dnnl, made[i]);
        ls__matmul_plan_close(&other);
    }
    assert_int_equal(ls__matmul_plan_open(&other, &first.shape, false), LS_OK);
    assert_ptr_not_equal(other.dnnl, first.dnnl);
    ls__matmul_plan plans[] = { first, other };
    for (int i = 0; i < 2; i++) {
        c[0] = 1;
        assert_int_equal(ls__matmul_plan_run(&plans[i], a, b, c), LS_OK);
        assert_true(c[0] == 0);
        ls__matmul_plan_close(&plans[i]);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_threads_flush),
        cmocka_unit_test(test_random_shapes),
        cmocka_unit_test(test_routes),
        cmocka_unit_test(test_packing_pays),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_double),
        cmocka_unit_test(test_refuses),
#ifdef LS_HAVE_DNNL
        cmocka_unit_test(test_plans_used_lately_are_kept),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
