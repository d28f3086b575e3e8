/*
 * The fast convolutions against the reference in double, on random shapes from
 * a fixed seed; both levels, both layouts, empty sizes, same bits twice.
 */
#include "kernels/conv.h"
#include "kernels/matmul.h"
#include "kernels/ref/ref_conv.h"

#include <pthread.h>

#include "kernels/test_numbers.h"

static double *widened(const float *v, int64_t n)
{
    double *w = malloc((size_t)(n + 1) * sizeof *w);
    for (int64_t i = 0; i < n; i++)
        w[i] = v[i];
    return w;
}

static ls__conv_shape random_shape(void)
{
    static const int64_t channels[] = { 1, 2, 3, 8, 16, 20, 32, 64 };
    ls__conv_shape s = { .n = pick(1, 3), .h = pick(3, 14), .w = pick(3, 14) };
    s.c = channels[pick(0, 7)];
    s.oc = channels[pick(0, 7)];
    s.kh = pick(1, 3), s.kw = pick(0, 2) ? s.kh : pick(1, 3);
    s.stride_h = pick(1, 2), s.stride_w = pick(1, 2);
    s.dilation_h = s.dilation_w = pick(0, 3) ? 1 : 2;
    if (pick(0, 1)) { /* SAME or lopsided pads, else VALID */
        s.pad_top = pick(0, s.kh - 1), s.pad_bottom = pick(0, s.kh - 1);
        s.pad_left = pick(0, s.kw - 1), s.pad_right = pick(0, s.kw - 1);
    }
    if (pick(0, 3) == 0) {
        s.depthwise = true;
        s.multiplier = pick(1, 2);
        s.oc = s.c * s.multiplier;
    }
    assert_int_equal(ls__conv_shape_complete(&s), LS_OK);
    return s;
}

/* X, W and Y of a shape in float, and what each pass should write, in double. */
typedef struct setting {
    ls__conv_shape s;
    int64_t n[3];
    float *in[3];
    double *want[3];
} setting;

static const ls__conv_pass pass_of[3] = { LS__CONV_BACKWARD_DATA, LS__CONV_BACKWARD_WEIGHTS,
                                          LS__CONV_FORWARD };

static setting make_setting(const ls__conv_shape *s)
{
    setting t = { .s = *s };
    double *wide[3];
    for (int i = 0; i < 3; i++) {
        t.n[i] = ls__conv_count(s, i);
        t.in[i] = numbers(t.n[i]);
        wide[i] = widened(t.in[i], t.n[i]);
        t.want[i] = malloc((size_t)(t.n[i] + 1) * sizeof(double));
    }
    ls__ref_conv_backward_data_f64(s, wide[2], wide[1], t.want[0]);
    ls__ref_conv_backward_weights_f64(s, wide[0], wide[2], t.want[1]);
    ls__ref_conv_forward_f64(s, wide[0], wide[1], t.want[2]);
    for (int i = 0; i < 3; i++)
        free(wide[i]);
    return t;
}

static void free_setting(setting *t)
{
    for (int i = 0; i < 3; i++) {
        free(t->in[i]);
        free(t->want[i]);
    }
}

static void check(const setting *t, int out, const float *got, const char *how)
{
    const ls__conv_shape *s = &t->s;
    for (int64_t i = 0; i < t->n[out]; i++)
        if (!(fabs(got[i] - t->want[out][i]) <= 1e-4 * (1 + fabs(t->want[out][i]))))
            fail_msg("%s writes %d: [%lld] is %g, not %g; n%lld h%lld w%lld c%lld k%lldx%lld "
                     "oc%lld s%lld,%lld d%lld depthwise %d",
                     how, out, (long long)i, (double)got[i], t->want[out][i], (long long)s->n,
                     (long long)s->h, (long long)s->w, (long long)s->c, (long long)s->kh,
                     (long long)s->kw, (long long)s->oc, (long long)s->stride_h,
                     (long long)s->stride_w, (long long)s->dilation_h, s->depthwise);
}

static void run_eager(const setting *t, int out, float *result)
{
    ls_status st = LS_OK;
    if (out == LS__CONV_Y)
        st = ls__conv_forward_f32(&t->s, t->in[0], t->in[1], result);
    else if (out == LS__CONV_X)
        st = ls__conv_backward_data_f32(&t->s, t->in[2], t->in[1], result);
    else
        st = ls__conv_backward_weights_f32(&t->s, t->in[0], t->in[2], result);
    if (st)
        fail_msg("%s", ls_error_report());
}

static void run_fused(const setting *t, int out, ls__conv_layout layout, const float *bias,
                      float *result)
{
    ls__conv_plan plan;
    void *arg[3];
    assert_int_equal(ls__conv_plan_open(&plan, &t->s, pass_of[out], layout), LS_OK);
    for (int i = 0; i < 3; i++) {
        if (layout == LS__CONV_NHWC && i != LS__CONV_W)
            assert_true(plan.arg[i].plain);
        arg[i] = aligned_alloc(64, plan.arg[i].bytes / 64 * 64 + 64);
        if (i != out)
            assert_int_equal(ls__conv_plan_pack(&plan, i, t->in[i], arg[i]), LS_OK);
    }
    assert_int_equal(ls__conv_plan_run(&plan, arg[0], arg[1], arg[2], bias), LS_OK);
    assert_int_equal(ls__conv_plan_unpack(&plan, out, arg[out], result), LS_OK);
    ls__conv_plan_close(&plan);
    for (int i = 0; i < 3; i++)
        free(arg[i]);
}

static void run_planned(const setting *t, int out, ls__conv_layout layout, float *result)
{
    run_fused(t, out, layout, NULL, result);
}

/* `value` of channel `c`, then the bias, then relu, as the operators have it. */
static double finished(const ls__conv_shape *s, double value, const float *bias, int64_t c)
{
    if (s->bias)
        value += bias[c];
    return s->relu && value <= 0 ? 0 : value;
}

/* Forward with bias and relu in every combination, twice (the second time on a
 * plan that knows another bias), in every layout; with the bits of the separate
 * operators where oneDNN has no hand in it. */
static void check_fused(const ls__conv_shape *shape)
{
    setting t = make_setting(shape);
    ls__conv_plan plan;
    assert_int_equal(ls__conv_plan_open(&plan, shape, LS__CONV_FORWARD, LS__CONV_NHWC), LS_OK);
    const bool exact = plan.route != LS__CONV_DNNL;
    ls__conv_plan_close(&plan);
    float *y = numbers(t.n[2]), *got = numbers(t.n[2]);
    double *plain = t.want[2], *want = malloc((size_t)(t.n[2] + 1) * sizeof *want);
    t.want[2] = want;
    run_eager(&t, LS__CONV_Y, y);
    for (int mode = 0; mode < 8; mode++) {
        float *bias = numbers(shape->oc);
        t.s.bias = mode & 1, t.s.relu = mode & 2;
        for (int64_t i = 0; i < t.n[2]; i++)
            want[i] = finished(&t.s, plain[i], bias, i % shape->oc);
        assert_int_equal(ls__conv_forward_fused_f32(&t.s, t.in[0], t.in[1], bias, got), LS_OK);
        check(&t, LS__CONV_Y, got, "fused");
        for (int64_t i = 0; i < t.n[2] && exact; i++) {
            float sum = t.s.bias ? y[i] + bias[i % shape->oc] : y[i];
            sum = t.s.relu && sum <= 0 ? 0 : sum;
            assert_memory_equal(&sum, &got[i], sizeof sum);
        }
        for (ls__conv_layout layout = LS__CONV_NHWC; layout <= LS__CONV_WINOGRAD; layout++) {
            run_fused(&t, LS__CONV_Y, layout, bias, got);
            check(&t, LS__CONV_Y, got, "fused, planned");
        }
        free(bias);
    }
    free(y), free(got), free(want);
    t.want[2] = plain;
    free_setting(&t);
}

static void check_shape(const ls__conv_shape *s)
{
    setting t = make_setting(s);
    for (int out = 0; out < 3; out++) {
        float *a = numbers(t.n[out]), *b = numbers(t.n[out]);
        run_eager(&t, out, a);
        check(&t, out, a, "eager");
        run_eager(&t, out, b);
        assert_memory_equal(a, b, (size_t)t.n[out] * sizeof *a);
        run_planned(&t, out, LS__CONV_NHWC, b);
        assert_memory_equal(a, b, (size_t)t.n[out] * sizeof *a);
        run_planned(&t, out, LS__CONV_ANY, b);
        check(&t, out, b, "any layout");
        free(a);
        free(b);
    }
    free_setting(&t);
}

/* Winograd's algorithm, and what stands in for it where there is none, on shapes
 * that prefer it and on one that cannot use it. */
static void test_winograd(void **state)
{
    (void)state;
    const int64_t shapes[][5] = { /* size, c, oc, stride, pad */
                                  { 13, 32, 64, 1, 0 },
                                  { 7, 64, 64, 1, 1 },
                                  { 28, 16, 16, 1, 1 },
                                  { 9, 5, 7, 2, 1 }
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const int64_t *v = shapes[i];
        ls__conv_shape s = { .n = 2,
                             .h = v[0],
                             .w = v[0],
                             .c = v[1],
                             .kh = 3,
                             .kw = 3,
                             .oc = v[2],
                             .stride_h = v[3],
                             .stride_w = v[3],
                             .dilation_h = 1,
                             .dilation_w = 1,
                             .pad_top = v[4],
                             .pad_left = v[4],
                             .pad_bottom = v[4],
                             .pad_right = v[4] };
        assert_int_equal(ls__conv_shape_complete(&s), LS_OK);
        setting t = make_setting(&s);
        for (int out = 0; out < 3; out++) {
            float *a = numbers(t.n[out]);
            run_planned(&t, out, LS__CONV_WINOGRAD, a);
            check(&t, out, a, "winograd");
            run_planned(&t, out, ls__conv_preferred(&s, pass_of[out]), a);
            check(&t, out, a, "preferred layout");
            free(a);
        }
        free_setting(&t);
    }
}

static void test_random_shapes(void **state)
{
    (void)state;
    for (int i = 0; i < 60; i++) {
        ls__conv_shape s = random_shape();
        check_shape(&s);
    }
}

/* The first layers our own kernel takes: one channel, 3x3, 16, 32 and 48 out. */
static void test_one_channel(void **state)
{
    (void)state;
    for (int64_t oc = 16; oc <= 48; oc += 16)
        for (int64_t stride = 1; stride <= 2; stride++)
            for (int64_t pad = 0; pad <= 1; pad++) {
                ls__conv_shape s = { .n = 3,
                                     .h = 13,
                                     .w = 11,
                                     .c = 1,
                                     .kh = 3,
                                     .kw = 3,
                                     .oc = oc,
                                     .stride_h = stride,
                                     .stride_w = stride,
                                     .dilation_h = 1,
                                     .dilation_w = 1,
                                     .pad_top = pad,
                                     .pad_left = pad,
                                     .pad_bottom = 1,
                                     .pad_right = pad };
                assert_int_equal(ls__conv_shape_complete(&s), LS_OK);
                check_shape(&s);
                check_fused(&s);
            }
}

static void test_fused(void **state)
{
    (void)state;
    for (int i = 0; i < 30; i++) {
        ls__conv_shape s = random_shape();
        check_fused(&s);
    }
}

/* relu keeps NaN, drops -infinity and makes -0.0 zero, whoever computes: oneDNN
 * (8 channels), our kernel (1), and nobody (0: the bias alone). */
static void test_fused_specials(void **state)
{
    (void)state;
    const float bias[16] = { NAN, INFINITY, -INFINITY, -0.0f, 0.0f, 1, -1, 2 };
    const float want[16] = { NAN, INFINITY, 0, 0, 0, 1, 0, 2 };
    for (int64_t c = 0; c <= 8; c = c ? c * 8 : 1) {
        ls__conv_shape s = { .n = 1,
                             .h = 4,
                             .w = 5,
                             .c = c,
                             .kh = 3,
                             .kw = 3,
                             .oc = 16,
                             .stride_h = 1,
                             .stride_w = 1,
                             .dilation_h = 1,
                             .dilation_w = 1,
                             .bias = true,
                             .relu = true };
        assert_int_equal(ls__conv_shape_complete(&s), LS_OK);
        int64_t n = ls__conv_count(&s, LS__CONV_Y);
        float *x = calloc(20 * 8, sizeof *x), *w = numbers(9 * 8 * 16), *y = numbers(n);
        double wide_bias[16], *wide = calloc(9 * 8 * 16, sizeof *wide);
        double *wide_y = malloc((size_t)n * sizeof *wide_y);
        for (int i = 0; i < 16; i++)
            wide_bias[i] = bias[i];
        for (int i = 0; i < 9 * 8 * 16; i++)
            w[i] = -fabsf(w[i]); /* zero times these is -0.0 */
        assert_int_equal(ls__conv_forward_fused_f32(&s, x, w, bias, y), LS_OK);
        assert_int_equal(ls__conv_forward_fused_f64(&s, wide, wide, wide_bias, wide_y), LS_OK);
        for (int64_t i = 0; i < n; i++) {
            if (isnan(want[i % 16]))
                assert_true(isnan(y[i]) && isnan(wide_y[i]));
            else
                assert_true(y[i] == want[i % 16] && wide_y[i] == want[i % 16]);
            assert_false(want[i % 16] == 0 && (signbit(y[i]) || signbit(wide_y[i])));
        }
        free(x), free(w), free(y), free(wide), free(wide_y);
    }
}

static void test_empty(void **state)
{
    (void)state;
    for (int which = 0; which < 5; which++) {
        ls__conv_shape s = { .n = 2,
                             .h = 5,
                             .w = 5,
                             .c = 3,
                             .kh = 3,
                             .kw = 3,
                             .oc = 4,
                             .stride_h = 1,
                             .stride_w = 1,
                             .dilation_h = 1,
                             .dilation_w = 1 };
        int64_t *size[] = { &s.n, &s.h, &s.w, &s.c, &s.oc };
        *size[which] = 0;
        assert_int_equal(ls__conv_shape_complete(&s), LS_OK);
        check_shape(&s);
    }
    ls__conv_shape small = { .n = 1,
                             .h = 2,
                             .w = 2,
                             .c = 1,
                             .kh = 3,
                             .kw = 3,
                             .oc = 1,
                             .stride_h = 1,
                             .stride_w = 1,
                             .dilation_h = 1,
                             .dilation_w = 1 };
    assert_int_equal(ls__conv_shape_complete(&small), LS_OK);
    assert_int_equal(small.oh, 0);
    check_shape(&small);
}

static void test_refuses(void **state)
{
    (void)state;
    ls__conv_shape s = { .n = 1,
                         .h = 5,
                         .w = 5,
                         .c = 1,
                         .kh = 3,
                         .kw = 3,
                         .oc = 1,
                         .stride_h = 0,
                         .stride_w = 1,
                         .dilation_h = 1,
                         .dilation_w = 1 };
    assert_int_equal(ls__conv_shape_complete(&s), LS_INVALID);
    assert_int_equal(ls_error(), LS_INVALID);
    s.stride_h = 1, s.depthwise = true, s.multiplier = 2;
    assert_int_equal(ls__conv_shape_complete(&s), LS_SHAPE);
    assert_int_equal(ls_error(), LS_SHAPE);
    s.depthwise = false, s.h = s.w = 1 << 30, s.n = s.oc = 1 << 20, s.c = 16;
    assert_int_equal(ls__conv_shape_complete(&s), LS_INVALID);
    assert_int_equal(ls_error(), LS_INVALID);
}

static void *on_a_thread(void *opaque)
{
    void **arg = opaque;
    run_eager(arg[0], LS__CONV_W, arg[1]);
    return NULL;
}

/* The same call gives the same bits on another thread. */
static void test_threads_agree(void **state)
{
    (void)state;
    ls__conv_shape s = { .n = 8,
                         .h = 14,
                         .w = 14,
                         .c = 16,
                         .kh = 3,
                         .kw = 3,
                         .oc = 32,
                         .stride_h = 1,
                         .stride_w = 1,
                         .dilation_h = 1,
                         .dilation_w = 1 };
    assert_int_equal(ls__conv_shape_complete(&s), LS_OK);
    setting t = make_setting(&s);
    float *got[3];
    pthread_t thread[2];
    for (int i = 0; i < 3; i++)
        got[i] = numbers(t.n[LS__CONV_W]);
    run_eager(&t, LS__CONV_W, got[2]);
    void *arg[2][2] = { { &t, got[0] }, { &t, got[1] } };
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, on_a_thread, arg[i]), 0);
    for (int i = 0; i < 2; i++) {
        pthread_join(thread[i], NULL);
        assert_memory_equal(got[i], got[2], (size_t)t.n[LS__CONV_W] * sizeof(float));
    }
    for (int i = 0; i < 3; i++)
        free(got[i]);
    free_setting(&t);
}

/* Nothing is square: an h taken for a w shows. */
static void test_rectangular(void **state)
{
    (void)state;
    for (int i = 0; i < 40; i++) {
        ls__conv_shape s = { .n = pick(1, 2), .c = pick(1, 5), .oc = pick(1, 5) };
        bool tall = pick(0, 1);
        int64_t large = pick(3, 4), small = pick(1, 2);
        s.kh = tall ? large : small, s.kw = tall ? small : large;
        large = pick(2, 3), small = large - 1;
        s.stride_h = pick(0, 1) ? large : small, s.stride_w = large + small - s.stride_h;
        large = pick(2, 3), small = large - 1;
        s.dilation_h = pick(0, 1) ? large : small, s.dilation_w = large + small - s.dilation_h;
        int64_t reach_h = (s.kh - 1) * s.dilation_h, reach_w = (s.kw - 1) * s.dilation_w;
        s.h = reach_h + pick(3, 9), s.w = reach_w + pick(10, 14);
        s.pad_top = pick(0, reach_h), s.pad_bottom = pick(0, reach_h);
        s.pad_left = pick(0, reach_w), s.pad_right = pick(0, reach_w);
        if (i % 4 == 0) {
            s.depthwise = true;
            s.multiplier = pick(1, 2);
            s.oc = s.c * s.multiplier;
        }
        assert_int_equal(ls__conv_shape_complete(&s), LS_OK);
        assert_int_equal(s.oh, (s.h + s.pad_top + s.pad_bottom - reach_h - 1) / s.stride_h + 1);
        assert_int_equal(s.ow, (s.w + s.pad_left + s.pad_right - reach_w - 1) / s.stride_w + 1);
        check_shape(&s);
        /* Sizes stay, pads change places: a plan kept for the one is not the other's. */
        int64_t top = s.pad_top, left = s.pad_left;
        s.pad_top = s.pad_bottom, s.pad_bottom = top;
        s.pad_left = s.pad_right, s.pad_right = left;
        check_shape(&s);
        int64_t *pad[] = { &s.pad_top, &s.pad_left };
        for (int k = 0; k < 2; k++) {
            *pad[k] += *pad[k] > 0 ? -1 : 1;
            assert_int_equal(ls__conv_shape_complete(&s), LS_OK);
            check_shape(&s);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_shapes),  cmocka_unit_test(test_winograd),
        cmocka_unit_test(test_one_channel),    cmocka_unit_test(test_empty),
        cmocka_unit_test(test_refuses),        cmocka_unit_test(test_threads_agree),
        cmocka_unit_test(test_rectangular),    cmocka_unit_test(test_fused),
        cmocka_unit_test(test_fused_specials),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
