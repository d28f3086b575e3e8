/*
 * What plans say of their layouts: equal or not, with padding or without. Judged by
 * what packing does, so that it holds whatever layouts oneDNN has here.
 */
#include "kernels/conv_layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static ls__conv_plan plan_of(int64_t size, int64_t c, int64_t oc, ls__conv_pass pass,
                             ls__conv_layout layout)
{
    ls__conv_shape s = { .n = 2, .h = size, .w = size, .c = c, .kh = 3, .kw = 3, .oc = oc };
    s.stride_h = s.stride_w = s.dilation_h = s.dilation_w = 1;
    s.pad_top = s.pad_left = s.pad_bottom = s.pad_right = 1;
    ls__conv_plan plan;
    assert_int_equal(ls__conv_shape_complete(&s), LS_OK);
    assert_int_equal(ls__conv_plan_open(&plan, &s, pass, layout), LS_OK);
    return plan;
}

/* The numbers 1, 2, 3... as an argument of a plan wants them; its bytes are `bytes`. */
static float *packed(const ls__conv_plan *p, int arg)
{
    int64_t n = ls__conv_count(&p->shape, arg);
    float *plain = malloc((size_t)(n + 1) * sizeof *plain);
    float *out = aligned_alloc(64, (p->arg[arg].bytes + 127) / 64 * 64);
    for (int64_t i = 0; i < n; i++)
        plain[i] = (float)(i + 1);
    assert_int_equal(ls__conv_plan_pack(p, arg, plain, out), LS_OK);
    free(plain);
    return out;
}

static void check_same(const ls__conv_plan *a, int arg_a, const ls__conv_plan *b, int arg_b)
{
    float *x = packed(a, arg_a), *y = packed(b, arg_b);
    bool want =
        a->arg[arg_a].bytes == b->arg[arg_b].bytes && memcmp(x, y, a->arg[arg_a].bytes) == 0;
    assert_int_equal(ls__conv_plan_same_layout(a, arg_a, b, arg_b), want);
    assert_int_equal(ls__conv_plan_same_layout(b, arg_b, a, arg_a), want);
    free(x);
    free(y);
}

/* Activations of 64 channels on 7x7: x and y, forward and back, in every layout. */
static void test_same(void **state)
{
    (void)state;
    ls__conv_plan plans[9];
    for (int i = 0; i < 9; i++)
        plans[i] = plan_of(7, 64, 64, (ls__conv_pass)(i / 3), (ls__conv_layout)(i % 3));
    for (int i = 0; i < 9; i++)
        for (int k = 0; k < 9; k++) {
            check_same(&plans[i], LS__CONV_X, &plans[k], LS__CONV_Y);
            check_same(&plans[i], LS__CONV_X, &plans[k], LS__CONV_X);
        }
    /* As many bytes, blocked too, but of another shape. */
    ls__conv_plan other = plan_of(14, 16, 16, LS__CONV_FORWARD, LS__CONV_ANY);
    for (int i = 0; i < 9; i++) {
        assert_int_equal(other.arg[LS__CONV_X].bytes, plans[i].arg[LS__CONV_X].bytes);
        if (!plans[i].arg[LS__CONV_X].plain)
            assert_false(ls__conv_plan_same_layout(&other, LS__CONV_X, &plans[i], LS__CONV_X));
        ls__conv_plan_close(&plans[i]);
    }
    ls__conv_plan_close(&other);
}

/* Safe: as many elements as plain ones, and none of them is padding. */
static void test_elementwise_safe(void **state)
{
    (void)state;
    static const int64_t channels[] = { 1, 3, 16, 19, 64 };
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < 9; k++) {
            ls__conv_plan p =
                plan_of(7, channels[i], 32, (ls__conv_pass)(k / 3), (ls__conv_layout)(k % 3));
            float *x = packed(&p, LS__CONV_X);
            size_t n = p.arg[LS__CONV_X].bytes / sizeof *x, padding = 0;
            for (size_t e = 0; e < n; e++)
                padding += x[e] == 0;
            assert_int_equal(ls__conv_layout_is_elementwise_safe(&p, LS__CONV_X), padding == 0);
            free(x);
            ls__conv_plan_close(&p);
        }
}

/* Blocks are told of exactly where packing makes them. */
static void test_blocks(void **state)
{
    (void)state;
    static const int64_t channels[] = { 3, 16, 19, 64 };
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 18; k++) {
            const int arg = k / 9 ? LS__CONV_X : LS__CONV_Y;
            ls__conv_plan p =
                plan_of(7, channels[i], 32, (ls__conv_pass)(k % 9 / 3), (ls__conv_layout)(k % 3));
            const int64_t c = arg == LS__CONV_X ? channels[i] : 32, pixels = 7 * 7;
            const int64_t n = ls__conv_count(&p.shape, arg);
            float *x = packed(&p, arg);
            int64_t found = 0;
            for (int64_t b = 4; b <= 16 && !p.arg[arg].plain; b *= 2) {
                bool blocks = c % b == 0 && p.arg[arg].bytes == (size_t)n * sizeof *x;
                for (int64_t e = 0; e < n && blocks; e++) {
                    const int64_t channel = e % c, pixel = e / c % pixels, image = e / c / pixels;
                    blocks =
                        x[((image * (c / b) + channel / b) * pixels + pixel) * b + channel % b] ==
                        (float)(e + 1);
                }
                found = blocks ? b : found;
            }
            assert_int_equal(ls__conv_layout_block(&p, arg), found);
            free(x);
            ls__conv_plan_close(&p);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same),
        cmocka_unit_test(test_elementwise_safe),
        cmocka_unit_test(test_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
