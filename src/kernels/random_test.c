/*
 * Random fills: the same bits in every build and for every length, the words
 * Philox gives, and distributions that are what they say. Seeds are fixed, so
 * the wide margins are met or missed for good.
 */
#include "kernels/random.h"
#include "kernels/test_numbers.h"

static const ls__draw draw = { .key = 0x1234567890ABCDEFu, .ordinal = 3 };

#define N 100000
static float x32[N], y32[N];
static double x64[N], y64[N];
static int64_t x_int[N], y_int[N];
static uint8_t x_mask[N], y_mask[N];

/* ---- bits ---------------------------------------------------------------------- */

static void words_are_philox(void **state)
{
    (void)state;
    const ls__random *table[3];
    /* Starts where the low half of the block number carries. */
    const uint64_t first = 0xFFFFFFF9u;
    for (int t = TABLES(ls__random_table, table) - 1; t >= 0; t--)
        for (int64_t blocks = 0; blocks < 40; blocks += 13) {
            uint32_t got[160] = { 0 }, want[4];
            table[t]->words(&draw, first, blocks, got);
            for (int64_t b = 0; b < blocks; b++) {
                ls__philox_block(&draw, first + (uint64_t)b, want);
                assert_memory_equal(got + 4 * b, want, sizeof want);
            }
            assert_int_equal(got[4 * blocks], 0);
        }
}

/* Every fill, shorter and longer, in every build, begins with the same bits. */
static void same_bits_everywhere(void **state)
{
    (void)state;
    const ls__random *table[3];
    for (int t = TABLES(ls__random_table, table) - 1; t >= 0; t--)
        for (int64_t n = 0; n < 300; n += 37) {
            const ls__random *a = &ls__random_table_base, *b = table[t];
            const size_t n32 = (size_t)n * 4, n64 = (size_t)n * 8;
            a->uniform_f32(&draw, -1, 3, 2, x32, 300);
            b->uniform_f32(&draw, -1, 3, 2, y32, n);
            assert_memory_equal(x32, y32, n32);
            a->uniform_f64(&draw, -1, 3, 2, x64, 300);
            b->uniform_f64(&draw, -1, 3, 2, y64, n);
            assert_memory_equal(x64, y64, n64);
            a->uniform_int(&draw, -5, 11, 8, x_int, 300);
            b->uniform_int(&draw, -5, 11, 8, y_int, n);
            assert_memory_equal(x_int, y_int, n64);
            a->normal_f32(&draw, 1, 2, false, x32, 300);
            b->normal_f32(&draw, 1, 2, false, y32, n);
            assert_memory_equal(x32, y32, n32);
            a->normal_f64(&draw, 1, 2, false, x64, 300);
            b->normal_f64(&draw, 1, 2, false, y64, n);
            assert_memory_equal(x64, y64, n64);
            a->normal_f32(&draw, 1, 2, true, x32, 300);
            b->normal_f32(&draw, 1, 2, true, y32, n);
            assert_memory_equal(x32, y32, n32);
            a->normal_f64(&draw, 1, 2, true, x64, 300);
            b->normal_f64(&draw, 1, 2, true, y64, n);
            assert_memory_equal(x64, y64, n64);
            a->keep(&draw, 0.3, x_mask, 300);
            b->keep(&draw, 0.3, y_mask, n);
            assert_memory_equal(x_mask, y_mask, (size_t)n);
        }
}

static void uniform_is_its_words(void **state)
{
    (void)state;
    const ls__random *k = LS__PICK(ls__random_table);
    k->uniform_f32(&draw, 0, 1, 1, x32, 100);
    k->uniform_f64(&draw, 0, 1, 1, x64, 100);
    k->uniform_int(&draw, 0, 0, 8, x_int, 100);
    for (int i = 0; i < 100; i++) {
        uint32_t w[4], v[4];
        ls__philox_block(&draw, (uint64_t)i / 4, w);
        ls__philox_block(&draw, (uint64_t)i / 2, v);
        const uint32_t *pair = v + i % 2 * 2;
        assert_true(x32[i] == ls__unit_f32(w[i % 4]));
        assert_true(x64[i] == ls__unit_f64(pair[0], pair[1]));
        assert_true((uint64_t)x_int[i] == ((uint64_t)pair[1] << 32 | pair[0]));
    }
}

static void normal_is_box_muller(void **state)
{
    (void)state;
    const double turn = 6.283185307179586476925;
    const ls__random *k = LS__PICK(ls__random_table);
    k->normal_f32(&draw, 0, 1, false, x32, N);
    k->normal_f64(&draw, 0, 1, false, x64, N);
    for (int i = 0; i < N; i += 2) {
        uint32_t w[4];
        ls__philox_block(&draw, (uint64_t)i / 4, w);
        const uint32_t *v = w + i % 4;
        float radius_word = ((float)(v[0] >> 1) + 0.5f) * 0x1p-31f;
        double r = sqrt(-2 * log(radius_word)), u = ls__unit_f32(v[1]);
        assert_float_equal(x32[i], r * cos(turn * u), 2e-6);
        assert_float_equal(x32[i + 1], r * sin(turn * u), 2e-6);
        ls__philox_block(&draw, (uint64_t)i / 2, w);
        uint64_t a = (uint64_t)w[1] << 32 | w[0];
        r = sqrt(-2 * log(((double)(a >> 12) + 0.5) * 0x1p-52));
        u = ls__unit_f64(w[2], w[3]);
        assert_true(fabs(x64[i] - r * cos(turn * u)) < 5e-15);
        assert_true(fabs(x64[i + 1] - r * sin(turn * u)) < 5e-15);
    }
}

/* ---- distributions ----------------------------------------------------------------- */

typedef struct moments {
    double mean, variance, least, most;
} moments;

static moments measure(const double *x, int64_t n)
{
    moments m = { 0, 0, INFINITY, -INFINITY };
    for (int64_t i = 0; i < n; i++) {
        m.mean += x[i] / (double)n;
        m.least = fmin(m.least, x[i]);
        m.most = fmax(m.most, x[i]);
    }
    for (int64_t i = 0; i < n; i++)
        m.variance += (x[i] - m.mean) * (x[i] - m.mean) / (double)n;
    return m;
}

static void widen(void)
{
    for (int i = 0; i < N; i++)
        x64[i] = x32[i];
}

static void check_moments(double mean, double variance)
{
    moments m = measure(x64, N);
    assert_true(fabs(m.mean - mean) < 5 * sqrt(variance / N));
    assert_true(fabs(m.variance - variance) < 0.03 * variance);
}

static void uniform_moments(void **state)
{
    (void)state;
    const ls__random *k = LS__PICK(ls__random_table);
    const float last = nextafterf(5, 0);
    k->uniform_f32(&draw, 2, 3, last, x32, N);
    widen();
    check_moments(3.5, 9.0 / 12);
    moments m = measure(x64, N);
    assert_true(m.least >= 2 && m.most < 5 && m.least < 2.001 && m.most > 4.999);
    k->uniform_f64(&draw, 2, 3, nextafter(5, 0), x64, N);
    check_moments(3.5, 9.0 / 12);
    /* One unit in the last place wide: rounding would reach the upper end. */
    k->uniform_f32(&draw, 1, 0x1p-23f, 1, x32, 1000);
    for (int i = 0; i < 1000; i++)
        assert_true(x32[i] == 1);
}

static void normal_moments(void **state)
{
    (void)state;
    const ls__random *k = LS__PICK(ls__random_table);
    k->normal_f32(&draw, -1, 0.5f, false, x32, N);
    widen();
    check_moments(-1, 0.25);
    k->normal_f64(&draw, -1, 0.5, false, x64, N);
    check_moments(-1, 0.25);
    int beyond = 0; /* of two standard deviations: 4.55 % */
    for (int i = 0; i < N; i++)
        beyond += fabs(x64[i] + 1) > 1;
    assert_true(beyond > 0.042 * N && beyond < 0.049 * N);
    k->normal_f64(&draw, 7, 0, false, x64, 10);
    assert_true(x64[3] == 7);
}

static void truncated_moments(void **state)
{
    (void)state;
    const ls__random *k = LS__PICK(ls__random_table);
    const double variance = 0.7737413; /* of a standard normal cut at two */
    k->normal_f32(&draw, 0, 1, true, x32, N);
    k->normal_f32(&draw, 0, 1, false, y32, N);
    widen();
    check_moments(0, variance);
    moments m = measure(x64, N);
    assert_true(m.least >= -2 && m.most <= 2 && m.least < -1.99 && m.most > 1.99);
    for (int i = 0; i < N; i++)
        assert_true(x32[i] == y32[i] || fabsf(y32[i]) > 2);
    k->normal_f64(&draw, 0, 1, true, x64, N);
    check_moments(0, variance);
}

static void integers_are_even(void **state)
{
    (void)state;
    const ls__random *k = LS__PICK(ls__random_table);
    int32_t *narrow = (int32_t *)y_int;
    k->uniform_int(&draw, -3, 10, 8, x_int, N);
    k->uniform_int(&draw, -3, 10, 4, narrow, N);
    k->uniform_int(&draw, 0, 10, 1, x_mask, N);
    double chi = 0;
    int64_t counts[10] = { 0 };
    for (int i = 0; i < N; i++) {
        assert_true(x_int[i] >= -3 && x_int[i] < 7);
        assert_true(x_int[i] == narrow[i] && x_int[i] == x_mask[i] - 3);
        counts[x_int[i] + 3]++;
    }
    for (int i = 0; i < 10; i++)
        chi += pow((double)counts[i] - N / 10.0, 2) / (N / 10.0);
    assert_true(chi < 35); /* 9 degrees of freedom: 1 in 20,000 */
}

static void keeps_the_rest(void **state)
{
    (void)state;
    const ls__random *k = LS__PICK(ls__random_table);
    int64_t kept = 0;
    k->keep(&draw, 0.1, x_mask, N);
    for (int i = 0; i < N; i++)
        kept += x_mask[i];
    assert_true(fabs((double)kept - 0.9 * N) < 500);
    k->keep(&draw, 0, x_mask, N);
    for (int i = 0; i < N; i++)
        assert_int_equal(x_mask[i], 1);
    const float x[3] = { 2, NAN, 3 };
    const uint8_t mask[3] = { 1, 0, 1 };
    float y[3];
    k->dropout_f32(x, mask, 2, y, 3);
    assert_true(y[0] == 4 && y[1] == 0 && y[2] == 6);
}

static void categorical_frequencies(void **state)
{
    (void)state;
    const ls__random *k = LS__PICK(ls__random_table);
    const double p[5] = { 0.1, 0, 0.4, 0.3, 0.2 };
    float logits[5];
    double logits64[5], sums[5], chi = 0;
    for (int i = 0; i < 5; i++)
        logits[i] = (float)(logits64[i] = log(p[i]) + 100);
    assert_true(k->categorical_f32(&draw, logits, 5, sums, 0, x_int, N));
    int64_t counts[5] = { 0 };
    for (int i = 0; i < N; i++)
        counts[x_int[i]]++;
    assert_int_equal(counts[1], 0);
    for (int i = 0; i < 5; i++)
        chi += p[i] > 0 ? pow((double)counts[i] - p[i] * N, 2) / (p[i] * N) : 0;
    assert_true(chi < 21); /* 3 degrees of freedom: 1 in 10,000 */
    /* A sample depends on its number, not on where the row begins. */
    assert_true(k->categorical_f32(&draw, logits, 5, sums, 77, y_int, 100));
    assert_memory_equal(x_int + 77, y_int, 100 * sizeof *y_int);
    assert_true(k->categorical_f64(&draw, logits64, 5, sums, 0, y_int, N));
    const float bad[3][2] = { { 0, NAN }, { INFINITY, 0 }, { -INFINITY, -INFINITY } };
    for (int i = 0; i < 3; i++)
        assert_false(k->categorical_f32(&draw, bad[i], 2, sums, 0, x_int, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_philox),     cmocka_unit_test(same_bits_everywhere),
        cmocka_unit_test(uniform_is_its_words), cmocka_unit_test(normal_is_box_muller),
        cmocka_unit_test(uniform_moments),      cmocka_unit_test(normal_moments),
        cmocka_unit_test(truncated_moments),    cmocka_unit_test(integers_are_even),
        cmocka_unit_test(keeps_the_rest),       cmocka_unit_test(categorical_frequencies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
