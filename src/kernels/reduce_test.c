/*
 * Reductions: the fast kernels of every instruction set against the reference,
 * bit for bit; and the awkward inputs (NaN, nothing, wrapping, ties).
 */
#include <string.h>

#include "kernels/reduce.h"
#include "kernels/test_numbers.h"

static void same_bits(int64_t outer, int64_t count, int64_t inner)
{
    const ls__reduce_fns *table[3];
    int n_tables = TABLES(ls__reduce_table, table);
    ls__reduce_plan plan;
    ls__reduce_plan_make(&plan, 3, (const int64_t[]){ outer, count, inner },
                         (const bool[]){ false, true, false });
    assert_int_equal(plan.kept, outer * inner);
    assert_int_equal(plan.count, count);
    float *x = numbers(outer * count * inner);
    float *want = numbers(outer * inner), *got = numbers(outer * inner);
    for (int t = 0; t < n_tables; t++) {
        size_t bytes = (size_t)(outer * inner) * sizeof *got;
        ls__ref_reduce_f32(LS__REDUCE_SUM, &plan, x, want);
        table[t]->sum(x, got, outer, count, inner);
        assert_memory_equal(got, want, bytes);
        if (plan.simple) {
            memset(got, 0xff, bytes);
            table[t]->sum(x, got, plan.outer, plan.count, plan.inner);
            assert_memory_equal(got, want, bytes);
        }
        ls__ref_reduce_f32(LS__REDUCE_MAX, &plan, x, want);
        table[t]->max(x, got, outer, count, inner);
        assert_memory_equal(got, want, bytes);
        ls__ref_reduce_f32(LS__REDUCE_MIN, &plan, x, want);
        table[t]->min(x, got, outer, count, inner);
        assert_memory_equal(got, want, bytes);
    }
    free(x);
    free(want);
    free(got);
}

static void fast_is_reference(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {
        { 1, 1, 1 },    { 0, 5, 3 },      { 2, 0, 3 },     { 3, 5, 0 },    { 7, 10, 1 },
        { 9, 4096, 1 }, { 2, 4097, 1 },   { 1, 50001, 1 }, { 1, 9000, 3 }, { 1, 12300, 32 },
        { 1, 64, 64 },  { 1, 4100, 300 }, { 2, 16, 129 },  { 1, 1, 500 },  { 3, 2, 128 },
        { 1, 63, 65 },  { 5, 17, 2 },     { 1, 28672, 5 },
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        same_bits(sizes[i][0], sizes[i][1], sizes[i][2]);
    for (int i = 0; i < 200; i++)
        same_bits(1 + below(4), below(90), 1 + below(150));
}

static void sums_are_accurate(void **state)
{
    (void)state;
    int64_t n = 1000003;
    float *x = numbers(n), y;
    double want = 0;
    for (int64_t i = 0; i < n; i++)
        want += x[i] += 1.0f;
    LS__PICK(ls__reduce_table)->sum(x, &y, 1, n, 1);
    assert_true(fabs(y - want) < 1e-6 * want);
    free(x);
}

/* Merged axes and two odometers against a loop over every element. */
static void any_set_of_axes(void **state)
{
    (void)state;
    for (int trial = 0; trial < 300; trial++) {
        int rank = (int)below(6);
        int64_t dims[5], n = 1, kept = 1;
        bool reduced[5];
        for (int i = 0; i < rank; i++) {
            dims[i] = 1 + below(4);
            reduced[i] = below(2);
            n *= dims[i];
            kept *= reduced[i] ? 1 : dims[i];
        }
        int64_t *x = malloc((size_t)n * sizeof *x), *y = malloc((size_t)kept * sizeof *y);
        int64_t *want = calloc((size_t)kept, sizeof *want);
        for (int64_t i = 0; i < n; i++) {
            x[i] = below(1000);
            int64_t rest = i, at = 0, stride = 1;
            for (int a = rank - 1; a >= 0; a--) {
                if (!reduced[a]) {
                    at += rest % dims[a] * stride;
                    stride *= dims[a];
                }
                rest /= dims[a];
            }
            want[at] += x[i];
        }
        ls__reduce_plan plan;
        ls__reduce_plan_make(&plan, rank, dims, reduced);
        assert_int_equal(plan.kept, kept);
        assert_int_equal(plan.count * kept, n);
        ls__ref_reduce_i64(LS__REDUCE_SUM, &plan, x, y);
        assert_memory_equal(y, want, (size_t)kept * sizeof *y);
        free(x);
        free(y);
        free(want);
    }
}

static void awkward_values(void **state)
{
    (void)state;
    const ls__reduce_fns *table[3];
    int n_tables = TABLES(ls__reduce_table, table);
    for (int t = 0; t < n_tables; t++)
        for (int64_t at = 0; at < 70; at += 3) {
            float x[70], y;
            for (int i = 0; i < 70; i++)
                x[i] = i == at ? NAN : number();
            table[t]->max(x, &y, 1, 70, 1);
            assert_true(isnan(y));
            table[t]->min(x, &y, 1, 70, 1);
            assert_true(isnan(y));
            float pair[2];
            table[t]->max(x, pair, 1, 35, 2);
            assert_true(isnan(pair[at % 2]) && !isnan(pair[1 - at % 2]));
        }
    ls__reduce_plan plan;
    ls__reduce_plan_make(&plan, 1, (const int64_t[]){ 2 }, (const bool[]){ true });
    int32_t i32;
    ls__ref_reduce_i32(LS__REDUCE_SUM, &plan, (const int32_t[]){ INT32_MAX, 2 }, &i32);
    assert_int_equal(i32, INT32_MIN + 1);
    uint8_t u8;
    ls__ref_reduce_u8(LS__REDUCE_SUM, &plan, (const uint8_t[]){ 200, 100 }, &u8);
    assert_int_equal(u8, 44);
    ls__ref_reduce_u8(LS__REDUCE_ANY, &plan, (const uint8_t[]){ 0, 1 }, &u8);
    assert_int_equal(u8, 1);
    ls__ref_reduce_u8(LS__REDUCE_ALL, &plan, (const uint8_t[]){ 0, 1 }, &u8);
    assert_int_equal(u8, 0);
    ls__reduce_plan_make(&plan, 1, (const int64_t[]){ 0 }, (const bool[]){ true });
    ls__ref_reduce_i32(LS__REDUCE_MAX, &plan, NULL, &i32);
    assert_int_equal(i32, INT32_MIN);
    ls__ref_reduce_u8(LS__REDUCE_ALL, &plan, NULL, &u8);
    assert_int_equal(u8, 1);
    ls__ref_reduce_u8(LS__REDUCE_ANY, &plan, NULL, &u8);
    assert_int_equal(u8, 0);
}

static void along_an_axis(void **state)
{
    (void)state;
    int64_t at[2];
    ls__ref_arg_f32(false, (const float[]){ 1, 5, 5, 2, 3, 0 }, at, 2, 3, 1);
    assert_int_equal(at[0], 1);
    assert_int_equal(at[1], 1);
    ls__ref_arg_f32(true, (const float[]){ 1, 5, 1, NAN, 3, NAN }, at, 1, 3, 2);
    assert_int_equal(at[0], 0);
    assert_int_equal(at[1], 1);
    int32_t y[6];
    const int32_t x[6] = { 1, 2, 3, 4, 5, 6 };
    ls__ref_cumsum_i32(false, false, x, y, 1, 3, 2);
    assert_memory_equal(y, ((int32_t[]){ 1, 2, 4, 6, 9, 12 }), sizeof y);
    ls__ref_cumsum_i32(true, false, x, y, 2, 3, 1);
    assert_memory_equal(y, ((int32_t[]){ 0, 1, 3, 0, 4, 9 }), sizeof y);
    ls__ref_cumsum_i32(false, true, x, y, 2, 3, 1);
    assert_memory_equal(y, ((int32_t[]){ 6, 5, 3, 15, 11, 6 }), sizeof y);
    ls__ref_cumsum_i32(true, true, x, y, 2, 3, 1);
    assert_memory_equal(y, ((int32_t[]){ 5, 3, 0, 11, 6, 0 }), sizeof y);
}

static void top_k_is_a_stable_sort(void **state)
{
    (void)state;
    for (int trial = 0; trial < 300; trial++) {
        int64_t n = 1 + below(40), k = below(n + 1), places[41];
        float x[41], values[41];
        for (int64_t i = 0; i < n; i++)
            x[i] = below(20) ? (float)below(9) : NAN;
        ls__ref_top_k_f32(x, values, places, 1, n, k);
        for (int64_t i = 0; i < k; i++) {
            /* As many elements come before this one as its rank says. */
            int64_t before = 0, p = places[i];
            for (int64_t j = 0; j < n; j++) {
                bool tie = x[j] == x[p] || (isnan(x[j]) && isnan(x[p]));
                bool larger = x[j] > x[p] || (isnan(x[j]) && !isnan(x[p]));
                before += larger || (tie && j < p);
            }
            assert_int_equal(before, i);
            assert_memory_equal(&values[i], &x[p], sizeof(float));
        }
    }
}

/* The order reduce.h states, written out: part of every result, so its numbers are
 * not taken from the code under test. */
static float block_in_order(const float *x, int64_t n, int64_t stride)
{
    float lane[16] = { 0 };
    for (int64_t i = 0; i < n; i++)
        lane[i % 16] += x[i * stride];
    for (int half = 8; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            lane[i] += lane[i + half];
    return lane[0];
}

/* Neighbouring blocks in pairs, then pairs of those; what is left over waits. */
static float sum_in_order(const float *x, int64_t n, int64_t stride)
{
    float part[64];
    int parts = 0;
    for (int64_t at = 0; at < n; at += 4096)
        part[parts++] = block_in_order(x + at * stride, n - at < 4096 ? n - at : 4096, stride);
    while (parts > 1) {
        int pairs = parts / 2;
        for (int i = 0; i < pairs; i++)
            part[i] = part[2 * i] + part[2 * i + 1];
        if (parts % 2)
            part[pairs] = part[parts - 1];
        parts = pairs + parts % 2;
    }
    return part[0];
}

/* Of all sizes and both signs, so that another order gives other bits. */
static void order_of_sums_is_pinned(void **state)
{
    (void)state;
    static const int64_t counts[] = { 10000, 4096, 4097, 8192, 12288, 16384, 20581, 28000 };
    const ls__reduce_fns *table[3];
    int n_tables = TABLES(ls__reduce_table, table);
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (int64_t inner = 1; inner <= 3; inner += 2) {
            int64_t n = counts[c];
            float *x = numbers(n * inner), want[3], got[3];
            for (int64_t i = 0; i < n * inner; i++)
                x[i] *= (float)(1 << below(20));
            for (int64_t k = 0; k < inner; k++)
                want[k] = sum_in_order(x + k, n, inner);
            ls__reduce_plan plan;
            ls__reduce_plan_make(&plan, 2, (const int64_t[]){ n, inner },
                                 (const bool[]){ true, false });
            ls__ref_reduce_f32(LS__REDUCE_SUM, &plan, x, got);
            assert_memory_equal(got, want, (size_t)inner * sizeof *got);
            for (int t = 0; t < n_tables; t++) {
                table[t]->sum(x, got, 1, n, inner);
                assert_memory_equal(got, want, (size_t)inner * sizeof *got);
            }
            free(x);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_is_reference), cmocka_unit_test(sums_are_accurate),
        cmocka_unit_test(any_set_of_axes),   cmocka_unit_test(awkward_values),
        cmocka_unit_test(along_an_axis),     cmocka_unit_test(top_k_is_a_stable_sort),
        cmocka_unit_test(order_of_sums_is_pinned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
