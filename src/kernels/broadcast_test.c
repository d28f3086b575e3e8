/*
 * Broadcasting against index arithmetic done the slow way: for each element of
 * the result, its coordinates, and from them the operand's element.
 */
#include "kernels/broadcast.h"
#include "kernels/test_numbers.h"

typedef struct shape {
    int rank;
    int64_t dims[LS__BROADCAST_RANK];
} shape;

static int64_t count_of(const shape *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->rank; i++)
        n *= s->dims[i];
    return n;
}

/* The result's shape with some sizes made 1 and some leading axes cut off. */
static shape stretched_from(const shape *out)
{
    shape s = { 0 };
    int cut = (int)below(out->rank + 1);
    if (below(2))
        cut = 0;
    for (int i = cut; i < out->rank; i++)
        s.dims[s.rank++] = below(3) ? out->dims[i] : 1;
    return s;
}

static int64_t place(const shape *s, const shape *out, int64_t at)
{
    int64_t index = 0, stride = 1;
    for (int i = out->rank - 1, j = s->rank - 1; i >= 0; i--, j--) {
        int64_t k = at % out->dims[i];
        at /= out->dims[i];
        if (j < 0)
            continue;
        index += s->dims[j] == 1 ? 0 : k * stride;
        stride *= s->dims[j];
    }
    return index;
}

/* y = a + 1000003 b + 7 c, so that an exchanged operand shows. */
#define LOOP(name, T)                                                                              \
    static void name(const void *const *in, const int64_t *step, void *out, int64_t n)             \
    {                                                                                              \
        const T *a = in[0], *b = in[1], *c = in[2];                                                \
        for (int64_t i = 0; i < n; i++)                                                            \
            ((T *)out)[i] =                                                                        \
                (T)(a[i * step[0]] + (T)1000003 * b[i * step[1]] + (T)7 * c[i * step[2]]);         \
    }
LOOP(loop_8, uint64_t)
LOOP(loop_4, uint32_t)
LOOP(loop_1, uint8_t)

static void plan_of(ls__broadcast *p, const shape *out, int n, const shape *in)
{
    int ranks[LS__BROADCAST_OPERANDS];
    const int64_t *dims[LS__BROADCAST_OPERANDS];
    for (int i = 0; i < n; i++) {
        ranks[i] = in[i].rank;
        dims[i] = in[i].dims;
    }
    ls__broadcast_plan(p, out->rank, out->dims, n, ranks, dims);
}

#define CHECK(T, loop)                                                                             \
    do {                                                                                           \
        T *data[3], *y = malloc((size_t)(n + 1) * sizeof(T));                                      \
        for (int i = 0; i < 3; i++) {                                                              \
            int64_t m = count_of(&in[i]);                                                          \
            data[i] = malloc((size_t)(m + 1) * sizeof(T));                                         \
            for (int64_t k = 0; k < m; k++)                                                        \
                data[i][k] = (T)(k + 1);                                                           \
        }                                                                                          \
        size_t sizes[] = { sizeof(T), sizeof(T), sizeof(T) };                                      \
        y[n] = 123;                                                                                \
        ls__broadcast_run(&p, loop, (const void *const[]){ data[0], data[1], data[2] }, sizes, y,  \
                          sizeof(T));                                                              \
        for (int64_t k = 0; k < n; k++) {                                                          \
            T want = (T)(data[0][place(&in[0], &out, k)] +                                         \
                         (T)1000003 * data[1][place(&in[1], &out, k)] +                            \
                         (T)7 * data[2][place(&in[2], &out, k)]);                                  \
            assert_true(y[k] == want);                                                             \
        }                                                                                          \
        assert_true(y[n] == 123);                                                                  \
        for (int i = 0; i < 3; i++)                                                                \
            free(data[i]);                                                                         \
        free(y);                                                                                   \
    } while (0)

static void check_one(const shape *result)
{
    shape out = *result, in[3];
    for (int i = 0; i < 3; i++)
        in[i] = stretched_from(&out);
    if (below(2))
        in[below(3)] = out;
    ls__broadcast p;
    plan_of(&p, &out, 3, in);
    int64_t n = count_of(&out);
    assert_true(p.count == n);
    CHECK(uint64_t, loop_8);
    CHECK(uint32_t, loop_4);
    CHECK(uint8_t, loop_1);
}

static void runs_like_index_arithmetic(void **unused)
{
    (void)unused;
    static const int64_t sizes[] = { 1, 2, 3, 5, 10, 17, 40, 130 };
    for (int turn = 0; turn < 150; turn++) {
        shape out = { .rank = (int)below(6) };
        for (int i = 0; i < out.rank; i++) {
            out.dims[i] = turn % 50 == 7 ? below(3) : sizes[below(8)];
            if (count_of(&out) > 6000)
                out.dims[i] = 1;
        }
        check_one(&out);
    }
    static const shape chosen[] = { { 2, { 3000, 10 } }, { 2, { 300, 64 } },  { 2, { 5, 600 } },
                                    { 3, { 7, 99, 3 } }, { 2, { 1, 4096 } },  { 2, { 513, 1 } },
                                    { 2, { 2, 511 } },   { 3, { 2, 512, 2 } } };
    for (size_t i = 0; i < sizeof chosen / sizeof *chosen; i++)
        for (int turn = 0; turn < 20; turn++)
            check_one(&chosen[i]);
}

static void merges_axes(void **unused)
{
    (void)unused;
    ls__broadcast p;
    shape same[2] = { { 3, { 2, 3, 4 } }, { 3, { 2, 3, 4 } } };
    plan_of(&p, &same[0], 2, same);
    assert_int_equal(p.rank, 1);
    assert_int_equal(p.dims[0], 24);
    assert_int_equal(p.stride[0][0], 1);

    shape bias[2] = { { 4, { 8, 5, 5, 10 } }, { 1, { 10 } } };
    plan_of(&p, &bias[0], 2, bias);
    assert_int_equal(p.rank, 2);
    assert_int_equal(p.dims[0], 200);
    assert_int_equal(p.dims[1], 10);
    assert_int_equal(p.stride[0][0], 10);
    assert_int_equal(p.stride[1][0], 0);
    assert_int_equal(p.stride[1][1], 1);

    shape scalar[2] = { { 2, { 3, 4 } }, { 0, { 0 } } };
    plan_of(&p, &scalar[0], 2, scalar);
    assert_int_equal(p.rank, 1);
    assert_int_equal(p.stride[1][0], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merges_axes),
        cmocka_unit_test(runs_like_index_arithmetic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
