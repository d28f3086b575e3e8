/*
 * Norms: against the same sum written out as a tree, across block borders; each variable's own
 * and that of all; norms that are not finite.
 */
#include "ops/clip_scales.h"

#include <lockstep/ops.h>
#include <math.h>
#include <stdlib.h>

#include "kernels/update.h"
#include "tensor/test_support.h"

static double value(int64_t i)
{
    return sin((double)i) * pow(10, (double)(i % 7) - 3);
}

/* Gap doubling, in place. */
static double tree(double *x, int n)
{
    for (int gap = 1; gap < n; gap *= 2)
        for (int i = 0; i + gap < n; i += 2 * gap)
            x[i] += x[i + gap];
    return n ? x[0] : 0;
}

static double squares(const double *x, int64_t n)
{
    double blocks[64];
    int count = 0;
    for (int64_t at = 0; at < n; at += LS__NORM_BLOCK)
        blocks[count++] = ls__update_table_base.squares[1](
            x + at, n - at < LS__NORM_BLOCK ? n - at : LS__NORM_BLOCK);
    return tree(blocks, count);
}

static double scale_of(double clip, double sum)
{
    return clip / fmax(sqrt(sum), clip);
}

static void the_order_is_the_tree(void **state)
{
    (void)state;
    enum { BLOCKS = 7, MOST = BLOCKS * LS__NORM_BLOCK };
    const int64_t counts[] = { MOST, 1,    LS__NORM_BLOCK, LS__NORM_BLOCK + 1,
                               0,    1000, MOST - 5,       6 * LS__NORM_BLOCK - 1 };
    enum { N = sizeof counts / sizeof *counts };
    double *x = malloc(sizeof *x * MOST);
    assert_non_null(x);
    for (int64_t i = 0; i < MOST; i++)
        x[i] = value(i);
    LS_FRAME {
        double sums[N];
        ls_tensor *in[N], *scales[N], *together[N];
        for (int n = 1; n <= N; n++) {
            for (int i = 0; i < n; i++) {
                in[i] = ls_from(LS_F64, LS_DIMS(counts[i]), x);
                sums[i] = squares(x, counts[i]);
            }
            assert_int_equal(ls__clip_scales(1.5, false, n, in, scales), LS_OK);
            assert_int_equal(ls__clip_scales(1.5, true, n, in, together), LS_OK);
            for (int i = 0; i < n; i++)
                assert_true(ls_to_double(scales[i]) == scale_of(1.5, sums[i]));
            double all = scale_of(1.5, tree(sums, n));
            for (int i = 0; i < n; i++)
                assert_true(ls_to_double(together[i]) == all);
        }
    }
    free(x);
}

/* 1 and 63 numbers that vanish beside it one by one, but not together: as blocks of one
 * variable, and as variables. */
static void the_order_shows(void **state)
{
    (void)state;
    enum { N = 64 };
    const double small = 0x1p-27, e = small * small;
    double sums[N], *x = calloc(N * LS__NORM_BLOCK, sizeof *x);
    assert_non_null(x);
    for (int i = 0; i < N; i++) {
        x[i * LS__NORM_BLOCK] = i ? small : 1;
        sums[i] = i ? e : 1;
    }
    double want = scale_of(0.5, tree(sums, N));
    assert_true(want < 0.5 && scale_of(0.5, 1) == 0.5);
    LS_FRAME {
        ls_tensor *in[N], *out[N], *whole = ls_from(LS_F64, LS_DIMS(N * LS__NORM_BLOCK), x);
        for (int i = 0; i < N; i++)
            in[i] = ls_scalar(LS_F64, i ? small : 1);
        assert_int_equal(ls__clip_scales(0.5, false, 1, &whole, out), LS_OK);
        assert_true(ls_to_double(out[0]) == want);
        assert_int_equal(ls__clip_scales(0.5, true, N, in, out), LS_OK);
        assert_true(ls_to_double(out[0]) == want && ls_to_double(out[N - 1]) == want);
    }
    free(x);
}

static void short_ones_stay(void **state)
{
    (void)state;
    LS_FRAME {
        float three[] = { 3, 4 };
        ls_tensor *in[] = { ls_from(LS_F32, LS_DIMS(2), three), ls_zeros(LS_F64, LS_DIMS(3)) };
        ls_tensor *out[2];
        assert_int_equal(ls__clip_scales(5, false, 2, in, out), LS_OK);
        assert_true(ls_to_double(out[0]) == 1 && ls_to_double(out[1]) == 1);
        assert_int_equal(ls__clip_scales(2.5, false, 2, in, out), LS_OK);
        assert_true(ls_to_double(out[0]) == 0.5 && ls_to_double(out[1]) == 1);
        assert_int_equal(ls__clip_scales(2.5, true, 2, in, out), LS_OK);
        assert_true(ls_to_double(out[0]) == 0.5 && ls_to_double(out[1]) == 0.5);
    }
}

static void not_finite_is_nan(void **state)
{
    (void)state;
    const float bad[] = { NAN, INFINITY, -INFINITY };
    LS_FRAME
        for (int i = 0; i < 3; i++) {
            ls_tensor *in[] = { ls_from(LS_F32, LS_DIMS(1), &bad[i]), ls_ones(LS_F32, LS_DIMS(2)) };
            ls_tensor *out[2];
            assert_int_equal(ls__clip_scales(1, true, 2, in, out), LS_OK);
            assert_true(isnan(ls_to_double(out[0])) && isnan(ls_to_double(out[1])));
            assert_int_equal(ls__clip_scales(1, false, 2, in, out), LS_OK);
            assert_true(isnan(ls_to_double(out[0])) && ls_to_double(out[1]) < 1);
        }
    LS_FRAME {
        ls_tensor *in = ls_ones(LS_I32, LS_DIMS(2)), *out;
        assert_int_equal(ls__clip_scales(1, true, 1, &in, &out), LS_SHAPE);
        failed(LS_SHAPE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_order_is_the_tree, clean),
        cmocka_unit_test_setup(the_order_shows, clean),
        cmocka_unit_test_setup(short_ones_stay, clean),
        cmocka_unit_test_setup(not_finite_is_nan, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
