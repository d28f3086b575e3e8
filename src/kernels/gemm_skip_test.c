/*
 * Products without the zeros of A: bit for bit what gemm.h makes of all of A, however many zeros there are, and where
 * zeros may not be left out.
 */
#include "kernels/gemm_skip.h"

#include <math.h>
#include <string.h>

#include "kernels/test_numbers.h"

typedef struct product {
    ls__matmul_shape s;
    float *a, *b, *c, *want, *scratch;
} product;

static const struct {
    bool ta, tb;
} turns[] = { { false, false }, { false, true }, { true, false } };

static int64_t rows_of_a(const ls__matmul_shape *s)
{
    return s->ta ? s->k : s->m;
}

static int64_t rows_of_b(const ls__matmul_shape *s)
{
    return s->tb ? s->n : s->k;
}

/* A has so many percent that are not 0, of either sign. */
static product make(int turn, int64_t m, int64_t n, int64_t k, int percent)
{
    product p = {
        .s = { .batch = 1, .m = m, .n = n, .k = k, .ta = turns[turn].ta, .tb = turns[turn].tb }
    };
    ls__matmul_shape *s = &p.s;
    s->lda = (s->ta ? m : k) + pick(0, 3);
    s->ldb = (s->tb ? k : n) + pick(0, 3);
    s->ldc = n + pick(0, 3);
    p.a = numbers(rows_of_a(s) * s->lda);
    p.b = numbers(rows_of_b(s) * s->ldb);
    p.c = numbers(m * s->ldc);
    p.want = numbers(m * s->ldc);
    for (int64_t i = 0; i < rows_of_a(s) * s->lda; i++)
        if (below(100) >= percent)
            p.a[i] = below(2) ? 0.0f : -0.0f;
    memcpy(p.want, p.c, (size_t)(m * s->ldc) * sizeof *p.c);
    const size_t dense = ls__gemm_scratch(s), skipping = ls__skip_scratch(s);
    p.scratch = aligned_alloc(64, ((dense > skipping ? dense : skipping) * 4 + 63) / 64 * 64);
    return p;
}

static void drop(product *p)
{
    free(p->a);
    free(p->b);
    free(p->c);
    free(p->want);
    free(p->scratch);
}

static void multiply_all(product *p)
{
    const ls__gemm_kernels *all = LS__PICK(ls__gemm_table);
    (p->s.ta   ? all->a_turned
     : p->s.tb ? all->b_turned
               : all->plain)(&p->s, p->a, p->b, p->want, p->scratch);
}

static bool multiply_some(product *p)
{
    const ls__skip_kernels *some = LS__PICK(ls__skip_table);
    return (p->s.ta   ? some->a_turned
            : p->s.tb ? some->b_turned
                      : some->plain)(&p->s, p->a, p->b, p->c, p->scratch);
}

/* What lies between the rows of C is compared, too. NaN is like any other. */
static void same(const product *p)
{
    for (int64_t i = 0; i < p->s.m * p->s.ldc; i++)
        if (memcmp(&p->c[i], &p->want[i], sizeof *p->c) != 0 &&
            !(isnan(p->c[i]) && isnan(p->want[i])))
            fail_msg("[%lld] is %g, not %g; %lldx%lldx%lld ta %d tb %d", (long long)i,
                     (double)p->c[i], (double)p->want[i], (long long)p->s.m, (long long)p->s.k,
                     (long long)p->s.n, p->s.ta, p->s.tb);
}

static bool there(void)
{
    return LS__PICK(ls__skip_table)->plain != NULL;
}

static void any_size_and_share(void **state)
{
    (void)state;
    if (!there())
        skip();
    static const int percents[] = { 0, 1, 10, 30, 60, 100 };
    for (int turn = 0; turn < 3; turn++)
        for (int i = 0; i < 60; i++) {
            const int64_t k = turns[turn].ta ? pick(1, 256) : pick(1, 290);
            product p = make(turn, pick(1, 70), pick(1, 300), k, percents[i % 6]);
            multiply_all(&p);
            assert_true(multiply_some(&p));
            same(&p);
            drop(&p);
        }
}

/* Several blocks of everything; as a layer has it, by the front door. */
static void sizes_of_layers(void **state)
{
    (void)state;
    if (!there())
        skip();
    for (int turn = 0; turn < 3; turn++) {
        product p = turns[turn].ta ? make(turn, 600, 512, 130, 20) : make(turn, 130, 512, 600, 20);
        assert_true(ls__gemm_pays(&p.s) && ls__skip_fits(&p.s) && ls__skip_pays(&p.s, p.a));
        multiply_all(&p);
        ls__gemm_run(&p.s, p.a, p.b, p.c, p.scratch);
        same(&p);
        drop(&p);
    }
}

/* One number of B is not finite: met by many numbers of A, by one, or by zeros alone. */
static void zeros_times_infinity(void **state)
{
    (void)state;
    if (!there())
        skip();
    static const float odd[] = { INFINITY, -INFINITY, NAN };
    for (int turn = 0; turn < 3; turn++)
        for (int uses = 0; uses < 3; uses++)
            for (int i = 0; i < 3; i++) {
                const bool ta = turns[turn].ta, tb = turns[turn].tb;
                product p = make(turn, 40, 150, 100, 30);
                const ls__matmul_shape *s = &p.s;
                const int64_t k = pick(0, 99), column = pick(0, 149);
                for (int64_t row = 0; row < 40 && uses < 2; row++)
                    p.a[ta ? k * s->lda + row : row * s->lda + k] = row == uses - 1 ? 1.0f : 0.0f;
                p.b[tb ? column * s->ldb + k : k * s->ldb + column] = odd[i];
                multiply_all(&p);
                assert_true(isnan(p.want[39 * s->ldc + column]) || uses == 2);
                assert_false(multiply_some(&p));
                ls__gemm_run(s, p.a, p.b, p.c, p.scratch);
                same(&p);
                drop(&p);
            }
}

/* What is not finite in A is no zero. */
static void infinities_in_a(void **state)
{
    (void)state;
    if (!there())
        skip();
    for (int turn = 0; turn < 3; turn++) {
        product p = make(turn, 40, 150, 100, 30);
        p.a[7] = NAN;
        p.a[p.s.lda + 3] = -INFINITY;
        multiply_all(&p);
        ls__gemm_run(&p.s, p.a, p.b, p.c, p.scratch);
        same(&p);
        drop(&p);
    }
}

/* Products that are too small for a float are -0, to which a zero of A would add +0: both end with +0. */
static void zeros_have_no_sign(void **state)
{
    (void)state;
    if (!there())
        skip();
    for (int turn = 0; turn < 3; turn++) {
        product p = make(turn, 20, 140, 70, 30);
        for (int64_t i = 0; i < rows_of_a(&p.s) * p.s.lda; i++)
            p.a[i] *= 1e-30f;
        for (int64_t i = 0; i < rows_of_b(&p.s) * p.s.ldb; i++)
            p.b[i] = -1e-30f * fabsf(p.b[i]);
        multiply_all(&p);
        assert_true(multiply_some(&p));
        same(&p);
        for (int64_t i = 0; i < p.s.m; i++)
            for (int64_t j = 0; j < p.s.n; j++)
                assert_false(signbit(p.c[i * p.s.ldc + j]));
        drop(&p);
    }
}

/* A^T B row by row, in any order, and added to what is there. */
static void pieces_of_rows(void **state)
{
    (void)state;
    if (!there())
        skip();
    const ls__skip_kernels *some = LS__PICK(ls__skip_table);
    product p = make(2, 100, 230, 64, 30);
    const ls__matmul_shape *s = &p.s;
    float *panels = aligned_alloc(64, (size_t)ls__skip_panel_floats(s->k, s->n) * 4);
    float *room = aligned_alloc(64, (size_t)ls__skip_list_floats(s->m, s->k) * 4);
    const ls__skip_list list = ls__skip_list_in(room, s->m, s->k);
    float *before = numbers(s->m * s->ldc);
    const float *lines[2] = { p.c, p.c };
    memcpy(before, p.c, (size_t)(s->m * s->ldc) * sizeof *before);
    multiply_all(&p);
    some->panels(p.b, s->ldb, s->k, s->n, panels);
    some->list(p.a, s->lda, s->k, s->m, &list);
    for (int64_t i = s->m - 1; i >= 0; i--)
        for (int64_t j = 0; j < s->n; j += LS__SKIP_COLUMNS)
            some->make(&list, i, panels + j * s->k,
                       s->n - j < LS__SKIP_COLUMNS ? s->n - j : LS__SKIP_COLUMNS, i % 2,
                       p.c + i * s->ldc + j, &(ls__gemm_fetch){ lines, 2, 5 });
    for (int64_t i = 1; i < s->m; i += 2)
        for (int64_t j = 0; j < s->n; j++)
            p.want[i * s->ldc + j] += before[i * s->ldc + j];
    same(&p);
    free(panels);
    free(room);
    free(before);
    drop(&p);
}

static void when_it_pays(void **state)
{
    (void)state;
    if (!there())
        skip();
    for (int percent = 0; percent <= 100; percent += 20) {
        product p = make(0, 64, 512, 512, percent);
        assert_int_equal(ls__skip_pays(&p.s, p.a), percent < 50);
        drop(&p);
    }
    ls__matmul_shape s = { .batch = 1, .m = 64, .n = 64, .k = 5408 };
    assert_false(ls__skip_fits(&s)); /* few columns: the kernel for all of A is as fast */
    s.n = 512;
    assert_true(ls__skip_fits(&s));
    s.k = 1 << 20; /* a list of 512 MiB */
    assert_false(ls__skip_fits(&s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_size_and_share),   cmocka_unit_test(sizes_of_layers),
        cmocka_unit_test(zeros_times_infinity), cmocka_unit_test(infinities_in_a),
        cmocka_unit_test(zeros_have_no_sign),   cmocka_unit_test(pieces_of_rows),
        cmocka_unit_test(when_it_pays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
