/*
 * The text of a graph, word for word: docs show it and tests of passes compare it.
 */
#include "trace/graph_test_support.h"

#include <math.h>

static void shows(const char *name, const char *want)
{
    ls__graph *g = made(name);
    char *text = ls__graph_text(g);
    assert_non_null(text);
    assert_string_equal(text, want);
    free(text);
    ls__graph_free(g);
}

static void test_empty(void **state)
{
    (void)state;
    shows("empty", "step empty () -> nothing\n");
}

static void test_constants(void **state)
{
    (void)state;
    /* clang-format off */
    shows("constants",
          "step constants (%0 f32[4,3], %1 i32[]) -> %14 bf16[3], %15 f64[2], %16 i64[3], k6 u8[3], k7 i32[3], k8 f32[0,5], %1 i32[], %13 f32[4,3], %13 f32[4,3]\n"
          "  constant k0 1, -2.5, 0.1                                      f32[3]\n"
          "  constant k1 all 0.5                                           f32[3]\n"
          "  constant k2 true, false, true                                 bool[3]\n"
          "  constant k3 1, 2, 3                                           bf16[3]\n"
          "  constant k4 0.1, -1e+300                                      f64[2]\n"
          "  constant k5 -9223372036854775808, 9223372036854775807, 0      i64[3]\n"
          "  constant k6 0, 1, 255                                         u8[3]\n"
          "  constant k7 1, 0, -7                                          i32[3]\n"
          "  constant k8 empty                                             f32[0,5]\n"
          "  %11 = add %0 k0                                               f32[4,3]                #1\n"
          "  %12 = where k2 %11 k1                                         f32[4,3]                #2\n"
          "  %13 = relu %12                                                f32[4,3]                #3\n"
          "  %14 = neg k3                                                  bf16[3]                 #4\n"
          "  %15 = neg k4                                                  f64[2]                  #5\n"
          "  %16 = neg k5                                                  i64[3]                  #6\n");
    /* clang-format on */
}

static void test_step(void **state)
{
    (void)state;
    /* clang-format off */
    shows("step",
          "step step (%0 f32[2,6,6,1], %1 i64[]) -> %8 f32[]\n"
          "  cell c0 \"conv/w\"                                              f32[3,3,1,2]\n"
          "  cell c1 \"conv/w/m\"                                            f32[3,3,1,2]\n"
          "  cell c2 \"conv/w/v\"                                            f32[3,3,1,2]\n"
          "  cell c3 \"odd \\\"name\\\"\\\\x0a\\\\\"                                 f32[3,3,1,2]\n"
          "  constant k0 0.001                                             f64[]\n"
          "  constant k1 1                                                 i64[]\n"
          "  %4 = read c0                                                  f32[3,3,1,2]            #1\n"
          "  %5 = conv2d %0 %4 {stride 1,1 dilation 1,1 padding 0}         f32[2,4,4,2]            #2\n"
          "  %6 %7 = max_pool2d %5 {window 2 stride 2 padding 0}           f32[2,2,2,2] i32[2,2,2,2]  #3\n"
          "  %8 = sum %6 {axes all keep 0}                                 f32[]                   #4\n"
          "  %9 = add %1 k1                                                i64[]                   #5\n"
          "  %10 = mul %4 %4                                               f32[3,3,1,2]            #6\n"
          "       adam_update %10 k0 %9 c0 c1 c2 {beta1 0.9 beta2 0.999 epsilon 1e-07 weight_decay 0 clip_value 0}  #7\n"
          "       assign_add %10 c3                                                                #8\n");
    /* clang-format on */
}

static void test_draws(void **state)
{
    (void)state;
    /* clang-format off */
    shows("draws",
          "step draws (%0 f32[6,4]) -> %11 f32[1], %4 bool[6,4]\n"
          "  %1 = random_uniform {shape 6,4 dtype 1 low -0.25 high 0.25} draw 0  f32[6,4]          #1\n"
          "  %2 = random_normal {shape none dtype 1 mean 0 stddev 1} draw 1  f32[]                 #2\n"
          "  %3 = add %0 %1                                                f32[6,4]                #3\n"
          "  %4 = dropout_mask %3 {rate 0.1} draw 2                        bool[6,4]               #4\n"
          "  %5 = mul %3 %2                                                f32[6,4]                #5\n"
          "  %6 %7 %8 = split %5 {parts 3 axis 0}                          f32[2,4] f32[2,4] f32[2,4]  #6\n"
          "  %9 = concat %8 %6 %6 {axis 1}                                 f32[2,12]               #7\n"
          "  %10 = reshape %9 {shape 24}                                   f32[24]                 #8\n"
          "  %11 = mean %10 {axes 0 keep 1}                                f32[1]                  #9\n");
    /* clang-format on */
}

static void test_fused(void **state)
{
    (void)state;
    /* clang-format off */
    shows("fused",
          "step fused (%0 f32[4,8], %1 f32[8,3], %2 f32[3]) -> %4 f32[4,3]\n"
          "  %3 = matmul_bias_act %0 %1 %2 {transpose_a 0 transpose_b 0 act 1}  f32[4,3]           #2\n"
          "  %4 = softmax %3 {axis -1}                                     f32[4,3]                #3\n");
    /* clang-format on */
}

/* Numbers are as short as they can be and still read back as themselves. */
static void test_numbers(void **state)
{
    (void)state;
    static const float numbers[] = { 0.1f, 0x1.f40002p9f, -1e-45f, 1.0f / 3, INFINITY, NAN, 7 };
    ls__graph *g = ls__graph_new("numbers");
    ls__graph_output(g, sample_constant(g, LS_F32, 1, 7, 0, numbers));
    char *text = ls__graph_text(g);
    assert_non_null(
        strstr(text, "constant k0 0.1, 1000.00006, -1e-45, 0.33333334, inf, nan, ...  "));
    free(text);
    ls__graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_empty, clean), cmocka_unit_test_setup(test_constants, clean),
        cmocka_unit_test_setup(test_step, clean),  cmocka_unit_test_setup(test_draws, clean),
        cmocka_unit_test_setup(test_fused, clean), cmocka_unit_test_setup(test_numbers, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
