/*
 * Operators of a user's own, through <lockstep.h> alone: the example of
 * operator.h, attributes, scratch, several outputs, gradients of gradients, and
 * every way a row or a callback can be wrong.
 */
#include <lockstep.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include "tensor/test_support.h"

/* Sanitizer builds return NULL too when memory is out. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);

const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

/* ---- the example of the header, word for word ------------------------------- */

static ls_status double_shape(ls_call *c)
{
    if (ls_call_dtype(c, 0) != LS_F32)
        return ls_call_fail(c, LS_SHAPE, "wants f32");
    return ls_call_output(c, 0, LS_F32, ls_call_rank(c, 0), ls_call_shape(c, 0));
}

static ls_status double_kernel(ls_call *c)
{
    const float *x = ls_call_in(c, 0);
    float *y = ls_call_out(c, 0);
    for (int64_t i = 0; i < ls_call_count(c, 0); i++)
        y[i] = 2 * x[i];
    return LS_OK;
}

static ls_status double_gradient(ls_grad *g)
{
    ls_tensor *dy = ls_grad_output(g, 0);
    return ls_grad_give(g, 0, ls_add(dy, dy));
}

/* clang-format off */
static const ls_op twice = { .size = sizeof twice, .name = "twice",
    .inputs = 1, .outputs = 1,
    .shape = double_shape, .kernel = double_kernel, .gradient = double_gradient };
/* clang-format on */

static void example_of_the_header(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *x = ls_from(LS_F32, LS_DIMS(3), (float[]){ 1, 2, 3 });
        ls_tape *tape = ls_tape_open();
        ls_tensor *y = ls_apply(&twice, 1, &x, NULL);
        float out[3];
        assert_int_equal(ls_copy_out(y, out, sizeof out), LS_OK);
        assert_true(out[0] == 2 && out[1] == 4 && out[2] == 6);
        ls_tensor *dx = ls_gradient(tape, ls_mul(y, y), x); /* 8 x */
        assert_int_equal(ls_copy_out(dx, out, sizeof out), LS_OK);
        assert_true(out[0] == 8 && out[2] == 24);
        ls_tensor *ddx = ls_gradient(tape, dx, x);
        assert_int_equal(ls_copy_out(ddx, out, sizeof out), LS_OK);
        assert_true(out[0] == 8 && out[2] == 8);

        ls_tensor *ints = ls_ones(LS_I32, LS_DIMS(2, 5));
        assert_null(ls_apply(&twice, 1, &ints, NULL));
        const char *text = ls_error_text();
        assert_ptr_equal(strstr(text, "twice"), text); /* begins with its name */
        assert_non_null(strstr(text, "wants f32"));
        assert_non_null(strstr(text, "i32[2,5]")); /* and says what it was given */
        failed(LS_SHAPE);

        ls_tensor *empty = ls_zeros(LS_F32, LS_DIMS(0, 4));
        assert_string_equal(ls_describe(ls_apply(&twice, 1, &empty, NULL)), "f32[0,4]");
    }
}

/* ---- attributes, scratch, several outputs ------------------------------------ */

typedef struct bend_attrs {
    int64_t power;
    double slope;
    ls_ints times;
} bend_attrs;

static const ls_attr bend_list[] = { LS_ATTR_INT(bend_attrs, power),
                                     LS_ATTR_FLOAT(bend_attrs, slope),
                                     LS_ATTR_INTS(bend_attrs, times), LS_ATTR_END };

/* (slope x^power, x + number of times); asks for scratch it fills. */
static ls_status bend_shape(ls_call *c)
{
    const bend_attrs *a = ls_call_attrs(c);
    if (a->power < 1)
        return ls_call_fail(c, LS_INVALID, "power %d, must be at least 1", (int)a->power);
    ls_status st = ls_call_output(c, 0, LS_F64, ls_call_rank(c, 0), ls_call_shape(c, 0));
    return st ? st : ls_call_output(c, 1, LS_F64, ls_call_rank(c, 0), ls_call_shape(c, 0));
}

static size_t bend_scratch(ls_call *c)
{
    return (size_t)ls_call_count(c, 0) * sizeof(double) + 1;
}

static ls_status bend_kernel(ls_call *c)
{
    const bend_attrs *a = ls_call_attrs(c);
    const double *x = ls_call_in(c, 0);
    double *y = ls_call_out(c, 0), *z = ls_call_out(c, 1), *s = ls_call_scratch(c);
    if ((uintptr_t)s % 64 != 0)
        return ls_call_fail(c, LS_STATE, "scratch is not aligned");
    int64_t n = ls_call_out_count(c, 0);
    for (int64_t i = 0; i < n; i++)
        s[i] = pow(x[i], (double)a->power);
    ((char *)s)[(size_t)n * sizeof(double)] = 1; /* the last byte asked for */
    for (int64_t i = 0; i < n; i++) {
        y[i] = a->slope * s[i];
        z[i] = x[i] + (double)a->times.count;
    }
    return LS_OK;
}

static ls_status bend_gradient(ls_grad *g)
{
    const bend_attrs *a = ls_grad_attrs(g);
    ls_tensor *x = ls_grad_input(g, 0);
    ls_tensor *p = ls_scale(ls_pow(x, ls_full(LS_F64, LS_SCALAR, (double)a->power - 1)),
                            a->slope * (double)a->power);
    ls_tensor *dx = ls_mul(ls_grad_output(g, 0), p);
    return ls_grad_give(g, 0, ls_add(dx, ls_grad_output(g, 1)));
}

static const ls_op bend = { .size = sizeof(ls_op),
                            .name = "test.bend",
                            .inputs = 1,
                            .outputs = 2,
                            .attr_size = sizeof(bend_attrs),
                            .attrs = bend_list,
                            .shape = bend_shape,
                            .scratch = bend_scratch,
                            .kernel = bend_kernel,
                            .gradient = bend_gradient };

static double at(const ls_tensor *t, int i)
{
    const double *data = ls_data(t);
    assert_non_null(data);
    return data[i];
}

static void attributes_scratch_and_outputs(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *x = ls_from(LS_F64, LS_DIMS(2), (double[]){ 2, 3 });
        bend_attrs a;
        memset(&a, 0, sizeof a);
        a.power = 3, a.slope = 0.5, a.times.count = 2;
        ls_tape *tape = ls_tape_open();
        ls_value *both = ls_apply_all(&bend, 1, &x, &a);
        memset(&a, 0xFF, sizeof a); /* attributes were copied */
        assert_non_null(both);
        assert_int_equal(ls_length(both), 2);
        ls_tensor *y = ls_item(both, 0), *z = ls_item(both, 1);
        assert_true(at(y, 0) == 4 && at(y, 1) == 13.5);
        assert_true(at(z, 0) == 4 && at(z, 1) == 5);

        ls_tensor *dy = ls_gradient(tape, y, x); /* 1.5 x^2 */
        assert_true(fabs(at(dy, 0) - 6) < 1e-12 && fabs(at(dy, 1) - 13.5) < 1e-12);
        ls_tensor *dz = ls_gradient(tape, z, x); /* only the second output was used */
        assert_true(at(dz, 0) == 1 && at(dz, 1) == 1);
        ls_tensor *dsum = ls_gradient(tape, ls_add(y, z), x);
        assert_true(fabs(at(dsum, 0) - 7) < 1e-12);
        ls_tensor *ddy = ls_gradient(tape, dy, x); /* 3 x */
        assert_true(fabs(at(ddy, 0) - 6) < 1e-12 && fabs(at(ddy, 1) - 9) < 1e-12);

        memset(&a, 0, sizeof a); /* the shape rule looks at attributes */
        assert_null(ls_apply_all(&bend, 1, &x, &a));
        assert_non_null(strstr(ls_error_text(), "power 0"));
        failed(LS_INVALID);
        assert_null(ls_apply_all(&bend, 1, &x, NULL)); /* attributes are missing */
        failed(LS_INVALID);
        a.power = 1;
        assert_null(ls_apply(&bend, 1, &x, &a)); /* two outputs: ls_apply_all */
        failed(LS_INVALID);
    }
}

/* ---- any number in, any number out --------------------------------------------- */

static int many_count(ls_call *c)
{
    return ls_call_inputs(c) + 1;
}

static ls_status many_shape(ls_call *c)
{
    ls_status st = LS_OK;
    for (int i = 0; !st && i <= ls_call_inputs(c); i++)
        st = ls_call_output(c, i, LS_F32, LS_SCALAR);
    return st;
}

static ls_status many_kernel(ls_call *c)
{
    float total = 0;
    for (int i = 0; i < ls_call_inputs(c); i++) {
        float x = *(const float *)ls_call_in(c, i);
        *(float *)ls_call_out(c, i) = -x;
        total += x;
    }
    *(float *)ls_call_out(c, ls_call_inputs(c)) = total;
    return LS_OK;
}

static ls_status many_gradient(ls_grad *g)
{
    int n = ls_grad_inputs(g);
    ls_status st = LS_OK;
    for (int i = 0; !st && i < n; i++)
        st = ls_grad_give(g, i, ls_sub(ls_grad_output(g, n), ls_grad_output(g, i)));
    return st;
}

static const ls_op many = { .size = sizeof(ls_op),
                            .name = "test.many",
                            .inputs = LS_ANY_NUMBER,
                            .outputs = LS_ANY_NUMBER,
                            .count_outputs = many_count,
                            .shape = many_shape,
                            .kernel = many_kernel,
                            .gradient = many_gradient };

static void any_number(void **state)
{
    (void)state;
    enum { N = 40 }; /* more than fits any small array */
    LS_FRAME {
        ls_tensor *xs[N];
        for (int i = 0; i < N; i++)
            xs[i] = ls_scalar(LS_F32, i);
        ls_tape *tape = ls_tape_open();
        ls_value *ys = ls_apply_all(&many, N, xs, NULL);
        assert_int_equal(ls_length(ys), N + 1);
        assert_true(ls_to_float(ls_item(ys, 7)) == -7);
        assert_true(ls_to_float(ls_item(ys, N)) == N * (N - 1) / 2);
        ls_value *grads = ls_gradients(tape, ys, ls_tensors(N, xs)); /* 1 - 1 */
        for (int i = 0; i < N; i++)
            assert_true(ls_to_float(ls_item(grads, i)) == 0);
        assert_true(ls_to_float(ls_gradient(tape, ls_item(ys, 3), xs[3])) == -1);
        assert_true(ls_to_float(ls_gradient(tape, ls_item(ys, N), xs[3])) == 1);

        assert_null(ls_apply_all(&many, 0, xs, NULL)); /* at least one */
        failed(LS_INVALID);
    }
}

/* ---- failing callbacks ------------------------------------------------------------ */

static int mode;

static ls_status moody_shape(ls_call *c)
{
    static const int64_t minus[] = { -1 }, huge[] = { INT64_MAX, 2 }, one[] = { 1 };
    switch (mode) {
    case 1:
        return ls_call_output(c, 0, LS_F32, 1, minus);
    case 2:
        return ls_call_output(c, 0, LS_F32, 2, huge);
    case 3:
        return ls_call_output(c, 0, (ls_dtype)99, 1, one);
    case 4:
        return ls_call_output(c, 0, LS_F32, 9, huge);
    case 5:
        return ls_call_output(c, 1, LS_F32, 1, one); /* there is no output 1 */
    case 6:
        return ls_call_output(c, -1, LS_F32, 1, one);
    case 7:
        return LS_OK; /* declares nothing */
    case 8:
        return LS_TIMEOUT; /* says nothing */
    case 9:
        return ls_call_output(c, 0, LS_F32, 1, NULL);
    case 10: /* an error left unread fails the call, whatever is returned */
        ls_scalar((ls_dtype)0, 1);
        return ls_call_output(c, 0, LS_F32, 1, one);
    default:
        return ls_call_output(c, 0, LS_F32, 1, one);
    }
}

static size_t moody_scratch(ls_call *c)
{
    (void)c;
    return mode == 20 ? SIZE_MAX : mode == 21 ? SIZE_MAX / 2 : 0;
}

static ls_status moody_kernel(ls_call *c)
{
    *(float *)ls_call_out(c, 0) = 5;
    if (mode == 30)
        return ls_call_fail(c, LS_CORRUPT, "value %d at %s", 12, "row 3");
    if (mode == 31)
        return LS_PEER;
    if (mode == 32)
        ls_scalar((ls_dtype)0, 1);
    return LS_OK;
}

static ls_status moody_gradient(ls_grad *g)
{
    switch (mode) {
    case 40:
        return LS_TIMEOUT;
    case 41:
        return ls_grad_give(g, 0, ls_ones(LS_F32, LS_DIMS(7))); /* wrong shape */
    case 42:
        return ls_grad_give(g, 0, ls_ones(LS_F64, LS_DIMS(1))); /* wrong dtype */
    case 43:
        return ls_grad_give(g, 1, ls_grad_output(g, 0)); /* no such input */
    case 44:
        return ls_grad_give(g, 0, NULL); /* nothing pending */
    case 45:
        return ls_grad_give(g, 0, ls_scalar((ls_dtype)0, 1)); /* passed on */
    case 46:
        return LS_OK; /* gives nothing: no gradient */
    case 47:
        ls_scalar((ls_dtype)0, 1);
        return LS_OK; /* leaves an error unread */
    case 48:
        return ls_grad_give(g, 0, ls_grad_output(g, 1)) /* no such output */;
    case 49:
        return ls_grad_give(g, 0, ls_grad_input(g, -1));
    case 50:
        return ls_grad_give(g, 0, ls_grad_result(g, 5));
    default:
        return ls_grad_give(g, 0, ls_grad_output(g, 0));
    }
}

static const ls_op moody = { .size = sizeof(ls_op),
                             .name = "test.moody",
                             .inputs = 1,
                             .outputs = 1,
                             .shape = moody_shape,
                             .scratch = moody_scratch,
                             .kernel = moody_kernel,
                             .gradient = moody_gradient };

static ls_status in_mood(int m, ls_tensor *x)
{
    mode = m;
    size_t before, after, peak;
    ls_memory(&before, &peak);
    ls_tensor *y = ls_apply(&moody, 1, &x, NULL);
    ls_memory(&after, &peak);
    ls_status st = ls_error_pending();
    if (st) {
        assert_null(y);
        if (m < 20)
            assert_int_equal(after, before); /* refused before memory is taken */
        if (!strstr(ls_error_text(), "test.moody") && m != 32 && m != 10)
            fail_msg("mode %d: '%s' does not name the operator", m, ls_error_text());
    } else {
        assert_non_null(y);
    }
    ls_error();
    return st;
}

static void failing_shape_rules(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *x = ls_ones(LS_F32, LS_DIMS(1));
        assert_int_equal(in_mood(0, x), LS_OK);
        for (int m = 1; m <= 10; m++) {
            ls_status st = in_mood(m, x);
            if (st == LS_OK)
                fail_msg("shape rule %d passed", m);
        }
        assert_int_equal(in_mood(8, x), LS_TIMEOUT);
        assert_int_equal(in_mood(20, x), LS_NO_MEMORY);
        assert_int_equal(in_mood(21, x), LS_NO_MEMORY);
        assert_int_equal(in_mood(0, x), LS_OK);
    }
}

static void failing_kernels(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *x = ls_ones(LS_F32, LS_DIMS(1));
        mode = 30;
        assert_null(ls_apply(&moody, 1, &x, NULL));
        const char *text = ls_error_text();
        assert_ptr_equal(strstr(text, "test.moody"), text);
        assert_non_null(strstr(text, "value 12 at row 3"));
        assert_non_null(strstr(text, "f32[1]"));
        failed(LS_CORRUPT);
        assert_int_equal(in_mood(31, x), LS_PEER);    /* without a text */
        assert_int_equal(in_mood(32, x), LS_INVALID); /* unread inside */
        assert_int_equal(in_mood(0, x), LS_OK);
    }
}

static void failing_gradients(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *x = ls_ones(LS_F32, LS_DIMS(1));
        for (int m = 40; m <= 50; m++) {
            LS_FRAME {
                mode = 0;
                ls_tape *tape = ls_tape_open();
                ls_tensor *y = ls_apply(&moody, 1, &x, NULL);
                mode = m;
                ls_tensor *dx = ls_gradient(tape, y, x);
                if (m == 46) {
                    assert_int_equal(ls_error_pending(), LS_OK);
                    assert_true(ls_to_float(dx) == 0);
                } else {
                    if (dx || !ls_error_pending())
                        fail_msg("gradient of mode %d passed", m);
                    if (m <= 44 && !strstr(ls_error_text(), "test.moody"))
                        fail_msg("mode %d: '%s' does not name the operator", m, ls_error_text());
                    if (m == 40)
                        assert_int_equal(ls_error_pending(), LS_TIMEOUT);
                }
                ls_error();
                mode = 0; /* the tape still works */
                assert_true(ls_to_float(ls_gradient(tape, y, x)) == 1);
            }
        }
    }
}

static void bad_calls(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *x = ls_ones(LS_F32, LS_DIMS(1)), *two[2] = { x, x };
        mode = 0;
        assert_null(ls_apply(NULL, 1, &x, NULL));
        failed(LS_INVALID);
        assert_null(ls_apply(&moody, 0, &x, NULL));
        failed(LS_INVALID);
        assert_null(ls_apply(&moody, 2, two, NULL));
        failed(LS_INVALID);
        assert_null(ls_apply(&moody, -1, two, NULL));
        failed(LS_INVALID);
        assert_null(ls_apply(&moody, 1, NULL, NULL));
        failed(LS_INVALID);
        assert_null(ls_apply(&moody, 1, (ls_tensor *[]){ NULL }, NULL));
        assert_non_null(strstr(ls_error_text(), "test.moody"));
        failed(LS_INVALID);
        ls_tensor *text = ls_from_strings(LS_DIMS(1), (const void *[]){ "s" }, NULL);
        assert_null(ls_apply(&moody, 1, &text, NULL)); /* no row takes strings unasked */
        assert_non_null(strstr(ls_error_text(), "test.moody"));
        assert_int_not_equal(ls_error(), LS_OK);

        ls_tensor *dead = NULL;
        LS_FRAME {
            dead = ls_ones(LS_F32, LS_DIMS(1));
        }
        assert_null(ls_apply(&moody, 1, &dead, NULL));
        assert_non_null(strstr(ls_error_text(), "test.moody"));
        failed(LS_INVALID);

        /* With an error pending, NULL passes it on. */
        ls_tensor *bad = ls_scalar((ls_dtype)0, 1);
        char first[512];
        snprintf(first, sizeof first, "%s", ls_error_text());
        assert_null(ls_apply(&moody, 1, &bad, NULL));
        assert_string_equal(ls_error_text(), first);
        failed(LS_INVALID);
    }
}

/* An earlier error of the caller's own does not keep an operator from working. */
static void pending_error_does_not_stop_maths(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *x = ls_ones(LS_F32, LS_DIMS(1));
        ls_scalar((ls_dtype)0, 1);
        ls_tensor *y = ls_apply(&twice, 1, &x, NULL);
        assert_non_null(y);
        assert_true(ls_to_float(y) == 2);
        failed(LS_INVALID);
    }
}

/* ---- flags ------------------------------------------------------------------------- */

static ls_status like_shape(ls_call *c)
{
    return ls_call_output(c, 0, ls_call_dtype(c, 0), ls_call_rank(c, 0), ls_call_shape(c, 0));
}

static int seen_dtype;

static ls_status third_kernel(ls_call *c)
{
    seen_dtype = ls_call_dtype(c, 0);
    const float *x = ls_call_in(c, 0);
    float *y = ls_call_out(c, 0);
    for (int64_t i = 0; i < ls_call_count(c, 0); i++)
        y[i] = x[i] / 3;
    return LS_OK;
}

static const ls_op third = { .size = sizeof(ls_op),
                             .name = "test.third",
                             .inputs = 1,
                             .outputs = 1,
                             .flags = LS_OP_BF16_AS_F32 | LS_OP_ELEMENTWISE,
                             .shape = like_shape,
                             .kernel = third_kernel };

static const ls_op same = { .size = sizeof(ls_op),
                            .name = "test.same",
                            .inputs = 1,
                            .outputs = 1,
                            .flags = LS_OP_ALIAS | LS_OP_TAKES_STRINGS,
                            .shape = like_shape };

static void flags(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *x = ls_full(LS_BF16, LS_DIMS(5), 1);
        ls_tensor *y = ls_apply(&third, 1, &x, NULL);
        assert_int_equal(ls_dtype_of(y), LS_BF16);
        assert_int_equal(seen_dtype, LS_F32);
        uint16_t halves[5];
        assert_int_equal(ls_copy_out(y, halves, sizeof halves), LS_OK);
        for (int i = 0; i < 5; i++)
            assert_int_equal(halves[i], 0x3EAB); /* 1/3 rounded to bf16 */

        ls_tensor *t = ls_from(LS_F32, LS_DIMS(2), (float[]){ 1, 2 });
        size_t before, after, peak;
        ls_memory(&before, &peak);
        ls_tensor *alias = ls_apply(&same, 1, &t, NULL);
        ls_memory(&after, &peak);
        assert_non_null(alias);
        assert_ptr_equal(ls_data(alias), ls_data(t)); /* no copy */
        assert_int_equal(after, before);
        ls_tensor *text = ls_from_strings(LS_DIMS(1), (const void *[]){ "s" }, NULL);
        ls_tensor *kept = ls_apply(&same, 1, &text, NULL);
        const void *data = NULL;
        size_t length = 0;
        assert_int_equal(ls_string_at(kept, 0, &data, &length), LS_OK);
        assert_string_equal(data, "s");

        /* A row without gradient stops gradients. */
        ls_tape *tape = ls_tape_open();
        ls_tensor *f = ls_ones(LS_F32, LS_DIMS(2));
        assert_true(ls_to_float(ls_sum(ls_gradient(tape, ls_apply(&third, 1, &f, NULL), f),
                                       LS_ALL_AXES, false)) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(example_of_the_header, clean),
        cmocka_unit_test_setup(attributes_scratch_and_outputs, clean),
        cmocka_unit_test_setup(any_number, clean),
        cmocka_unit_test_setup(failing_shape_rules, clean),
        cmocka_unit_test_setup(failing_kernels, clean),
        cmocka_unit_test_setup(failing_gradients, clean),
        cmocka_unit_test_setup(bad_calls, clean),
        cmocka_unit_test_setup(pending_error_does_not_stop_maths, clean),
        cmocka_unit_test_setup(flags, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
