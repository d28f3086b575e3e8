/*
 * Sums over replicas against the tree written out, bit for bit, in every build of the kernels;
 * results that lie over an input; integers that wrap.
 */
#include <string.h>

#include "kernels/replicas.h"
#include "kernels/test_numbers.h"

enum { MOST = 70 };

/* Node [begin, begin + 2^k) of the tree, one element. */
#define REFERENCE(s, T)                                                                            \
    static T tree_##s(int n, const void *const *in, int begin, int width, int64_t i)               \
    {                                                                                              \
        if (width == 1)                                                                            \
            return ((const T *)in[begin])[i];                                                      \
        T left = tree_##s(n, in, begin, width / 2, i);                                             \
        if (begin + width / 2 >= n)                                                                \
            return left;                                                                           \
        return (T)(left + tree_##s(n, in, begin + width / 2, width / 2, i));                       \
    }

REFERENCE(f32, float)
REFERENCE(f64, double)
REFERENCE(i32, uint32_t)
REFERENCE(i64, uint64_t)
REFERENCE(u8, uint8_t)

static void reference(ls_dtype dtype, bool mean, int n, const void *const *in, void *out,
                      int64_t count)
{
    int width = 128;
    for (int64_t i = 0; i < count; i++)
        if (dtype == LS_F32) {
            float v = tree_f32(n, in, 0, width, i);
            ((float *)out)[i] = mean ? v / (float)n : v;
        } else if (dtype == LS_F64) {
            double v = tree_f64(n, in, 0, width, i);
            ((double *)out)[i] = mean ? v / n : v;
        } else if (mean) {
            ((double *)out)[i] = (dtype == LS_I32   ? (double)(int32_t)tree_i32(n, in, 0, width, i)
                                  : dtype == LS_I64 ? (double)(int64_t)tree_i64(n, in, 0, width, i)
                                                    : (double)tree_u8(n, in, 0, width, i)) /
                                 n;
        } else if (dtype == LS_I32) {
            ((uint32_t *)out)[i] = tree_i32(n, in, 0, width, i);
        } else if (dtype == LS_I64) {
            ((uint64_t *)out)[i] = tree_i64(n, in, 0, width, i);
        } else {
            ((uint8_t *)out)[i] = tree_u8(n, in, 0, width, i);
        }
}

/* Of many sizes, so that the order of a sum of floats shows; integers of all bits. */
static void *random_data(ls_dtype dtype, int64_t count)
{
    char *data = malloc((size_t)count * 8 + 8);
    assert_non_null(data);
    for (int64_t i = 0; i < count; i++)
        if (dtype == LS_F32)
            ((float *)data)[i] = ldexpf(number(), (int)below(30));
        else if (dtype == LS_F64)
            ((double *)data)[i] = ldexp((double)number() / 3, (int)below(60));
        else
            ((uint64_t *)data)[i] =
                (uint64_t)below(INT64_C(1) << 31) << 33 | (uint64_t)below(INT64_C(1) << 31) << 2;
    return data;
}

static void compare(ls_dtype dtype, bool mean, int n, int64_t count)
{
    const ls__replicas_kernels *table[3];
    int n_tables = TABLES(ls__replicas_table, table);
    bool whole = mean && dtype != LS_F32;
    size_t element = whole ? 8 : ls_dtype_size(dtype), bytes = (size_t)count * element;
    void *in[MOST], *want = malloc(bytes + 8), *got = malloc(bytes + 8);
    for (int r = 0; r < n; r++)
        in[r] = random_data(dtype, count);
    reference(dtype, mean, n, (const void *const *)in, want, count);
    for (int t = 0; t < n_tables; t++) {
        ls__replicas_fn *fn = (mean ? table[t]->mean : table[t]->sum)[dtype];
        memset((char *)got + bytes, 0x5A, 8);
        fn(n, (const void *const *)in, got, count);
        assert_memory_equal(got, want, bytes);
        assert_memory_equal((char *)got + bytes, "ZZZZZZZZ", 8);
        if (element != ls_dtype_size(dtype))
            continue;
        int over = (int)below(n); /* in place */
        memcpy(got, in[over], bytes);
        void *own = in[over];
        in[over] = got;
        fn(n, (const void *const *)in, got, count);
        assert_memory_equal(got, want, bytes);
        in[over] = own;
    }
    for (int r = 0; r < n; r++)
        free(in[r]);
    free(want);
    free(got);
}

static const ls_dtype dtypes[] = { LS_F32, LS_F64, LS_I32, LS_I64, LS_U8 };

static void sums_in_the_order_of_the_tree(void **state)
{
    (void)state;
    for (int d = 0; d < 5; d++)
        for (int mean = 0; mean < 2; mean++) {
            for (int n = 1; n <= 17; n++)
                compare(dtypes[d], mean, n, pick(1, 40));
            compare(dtypes[d], mean, 33, 7);
            compare(dtypes[d], mean, MOST, 3);
            compare(dtypes[d], mean, 3, 0);
        }
}

static void blocks_and_their_tails(void **state)
{
    (void)state;
    static const int64_t counts[] = { 511, 512, 513, 1024, 1025, 4095, 4096, 4097, 9000 };
    for (int d = 0; d < 5; d++)
        for (int c = 0; c < 9; c++)
            compare(dtypes[d], c & 1, (int)pick(1, 9), counts[c]);
}

/* 2^24 swallows a single 1 of f32, but not two of them added first. */
static void the_order_is_seen_in_the_result(void **state)
{
    (void)state;
    const float big = 16777216, one = 1;
    const void *const five[] = { &big, &one, &one, &one, &one };
    float sum = 0;
    LS__PICK(ls__replicas_table)->sum[LS_F32](5, five, &sum, 1);
    assert_true(sum == 16777220); /* in a row: 16777216 */
    const void *const seven[] = { &one, &one, &one, &one, &big, &one, &one };
    LS__PICK(ls__replicas_table)->sum[LS_F32](7, seven, &sum, 1);
    assert_true(sum == 16777220); /* the first four, and big, which swallowed the last two */
}

/* ---- a sum of two with two copies, and quotients ------------------------------------------ */

static double whole_at(ls_dtype dtype, const void *x, int64_t i)
{
    return dtype == LS_I32   ? (double)((const int32_t *)x)[i]
           : dtype == LS_I64 ? (double)((const int64_t *)x)[i]
                             : (double)((const uint8_t *)x)[i];
}

/* Floats as the mean's kernel has them; integers towards zero. */
static void compare_quotient(ls_dtype dtype, const void *sum, const void *got, int64_t i, int by)
{
    if (dtype == LS_F32)
        assert_true(((const float *)got)[i] == ((const float *)sum)[i] / (float)by);
    else if (dtype == LS_F64)
        assert_true(((const double *)got)[i] == ((const double *)sum)[i] / by);
    else if (dtype == LS_I64)
        assert_true(((const int64_t *)got)[i] == ((const int64_t *)sum)[i] / by);
    else
        assert_true(whole_at(dtype, got, i) == trunc(whole_at(dtype, sum, i) / by));
}

static void compare_pair(ls_dtype dtype, int by, int64_t count, bool turned)
{
    const ls__replicas_kernels *table[3];
    int n_tables = TABLES(ls__replicas_table, table);
    size_t bytes = (size_t)count * ls_dtype_size(dtype);
    void *a = random_data(dtype, count), *b = random_data(dtype, count);
    void *sum = malloc(bytes + 8), *y = malloc(bytes + 8), *z = malloc(bytes + 8);
    const void *const in[] = { a, b };
    table[0]->sum[dtype](2, in, sum, count);
    for (int t = 0; t < n_tables; t++) {
        memcpy(y, a, bytes);
        memcpy(z, b, bytes);
        table[t]->pair[dtype](y, z, turned ? z : y, turned ? y : z, by, count);
        assert_memory_equal(y, z, bytes);
        for (int64_t i = 0; i < count; i++)
            compare_quotient(dtype, sum, y, i, by ? by : 1);
        memcpy(z, sum, bytes);
        table[t]->divide[dtype](z, by, count);
        assert_memory_equal(y, z, bytes);
    }
    free(a);
    free(b);
    free(sum);
    free(y);
    free(z);
}

static void pairs_and_quotients(void **state)
{
    (void)state;
    for (int d = 0; d < 5; d++)
        for (int by = 0; by <= 9; by++)
            compare_pair(dtypes[d], by, pick(0, 300), by % 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_in_the_order_of_the_tree),
        cmocka_unit_test(blocks_and_their_tails),
        cmocka_unit_test(the_order_is_seen_in_the_result),
        cmocka_unit_test(pairs_and_quotients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
