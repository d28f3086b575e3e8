/*
 * Optimizers against the Keras formulas in plain double, over many steps; their options.
 */
#include <lockstep.h>

#include <math.h>
#include <stdlib.h>

#include "tensor/test_support.h"
#include "train/optimizer_test_model.h"

enum { N = 37 }; /* odd, so that vector bodies and tails both run */

static ls_tensor *from_doubles(ls_dtype dtype, const double *x)
{
    if (dtype == LS_F64)
        return ls_from(LS_F64, LS_DIMS(N), x);
    float f[N];
    for (int i = 0; i < N; i++)
        f[i] = (float)x[i];
    return ls_from(LS_F32, LS_DIMS(N), f);
}

static double element(const ls_tensor *t, int i)
{
    const void *data = ls_data(t);
    assert_non_null(data);
    return ls_dtype_of(t) == LS_F64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

/* Runs `steps` updates of optimizer and model side by side. */
static void follow(ls_optimizer *o, ls_dtype dtype, int steps, double tolerance,
                   void (*update)(model *, double, double), double (*rate)(int64_t))
{
    model x[N];
    double start[N], g[N];
    for (int i = 0; i < N; i++) {
        start[i] = dtype == LS_F64 ? cos(i) : (double)cosf((float)i);
        x[i] = (model){ .w = start[i] };
    }
    ls_variable *v = NULL;
    LS_FRAME {
        v = ls_variable_new("w", from_doubles(dtype, start), true);
    }
    size_t flat = 0;
    for (int64_t t = 0; t < steps; t++) {
        LS_FRAME {
            if (rate)
                assert_int_equal(ls_set_rate(o, rate(t)), LS_OK);
            for (int i = 0; i < N; i++) {
                g[i] = dtype == LS_F64 ? slope(t, i) : (double)(float)slope(t, i);
                update(&x[i], g[i], rate ? rate(t) : ls_rate(o));
            }
            ls_tensor *gradient = from_doubles(dtype, g);
            assert_int_equal(ls_apply_gradients(o, 1, &gradient, &v), LS_OK);
        }
        assert_int_equal(ls_iterations(o), t + 1);
        if (t == 1)
            flat = memory();
    }
    assert_int_equal(memory(), flat); /* slots are made once */
    LS_FRAME {
        ls_tensor *w = ls_read(v);
        for (int i = 0; i < N; i++) {
            double got = element(w, i), want = x[i].w;
            if (!(fabs(got - want) <= tolerance * (1 + fabs(want))))
                fail_msg("element %d: %.17g, not %.17g", i, got, want);
        }
    }
    ls_variable_free(v);
}

static void default_adam(model *x, double g, double rate)
{
    model_adam(x, g, rate, 0.9, 0.999, 1e-7);
}

static void other_adam(model *x, double g, double rate)
{
    model_adam(x, g, rate, 0.5, 0.75, 1e-3);
}

static void no_momentum(model *x, double g, double rate)
{
    model_adam(x, g, rate, 0, 0.99, 1e-7);
}

static double falling(int64_t t)
{
    return 0.1 / (double)(1 + t);
}

static void sgd_follows_keras(void **state)
{
    (void)state;
    size_t before = memory();
    ls_optimizer *o = ls_sgd(NULL);
    assert_true(ls_rate(o) == 0.01); /* the default */
    assert_int_equal(ls_iterations(o), 0);
    follow(o, LS_F64, 300, 1e-12, model_sgd, NULL);
    ls_optimizer_free(o);
    o = ls_sgd(LS_SGD(.rate = 0.25));
    follow(o, LS_F32, 300, 2e-5, model_sgd, NULL);
    ls_optimizer_free(o);
    o = ls_sgd(LS_SGD(.rate = 0.25));
    follow(o, LS_F64, 50, 1e-12, model_sgd, falling);
    ls_optimizer_free(o);
    ls_optimizer_free(NULL);
    assert_int_equal(memory(), before);
}

static void adam_follows_keras(void **state)
{
    (void)state;
    size_t before = memory();
    ls_optimizer *o = ls_adam(NULL);
    assert_true(ls_rate(o) == 0.001);
    follow(o, LS_F64, 500, 1e-11, default_adam, NULL);
    ls_optimizer_free(o);
    o = ls_adam(LS_ADAM(.rate = 0));
    assert_true(ls_rate(o) == 0.001); /* zero means default */
    follow(o, LS_F32, 500, 2e-5, default_adam, NULL);
    ls_optimizer_free(o);
    o = ls_adam(LS_ADAM(.rate = 0.01, .beta1 = 0.5, .beta2 = 0.75, .epsilon = 1e-3));
    follow(o, LS_F64, 200, 1e-11, other_adam, falling);
    ls_optimizer_free(o);
    o = ls_adam(LS_ADAM(.rate = 0.01, .beta1 = -1, .beta2 = 0.99));
    follow(o, LS_F64, 200, 1e-11, no_momentum, NULL); /* -1 asks for zero itself */
    ls_optimizer_free(o);
    assert_int_equal(memory(), before);
}

/* ---- options ------------------------------------------------------------------- */

static void options(void **state)
{
    (void)state;
    ls_sgd_options s;
    memset(&s, 0x55, sizeof s);
    ls_sgd_init(&s);
    assert_int_equal(s.size, sizeof s);
    ls_optimizer *o = ls_sgd(&s);
    assert_true(ls_rate(o) == 0.01);
    ls_optimizer_free(o);
    ls_adam_options a;
    memset(&a, 0x55, sizeof a);
    ls_adam_init(&a);
    assert_int_equal(a.size, sizeof a);
    o = ls_adam(&a);
    assert_true(ls_rate(o) == 0.001);
    ls_optimizer_free(o);

    static const size_t sizes[] = {
        0, 1, 8, sizeof(ls_adam_options) - 8, sizeof(ls_adam_options) + 8, SIZE_MAX
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (sizes[i] != sizeof(ls_sgd_options)) {
            ls_sgd_options bad = { .size = sizes[i], .rate = 0.1 };
            assert_null(ls_sgd(&bad));
            failed(LS_INVALID);
        }
        ls_adam_options bad = { .size = sizes[i], .rate = 0.1 };
        assert_null(ls_adam(&bad));
        failed(LS_INVALID);
    }
    assert_null(ls_sgd(LS_SGD(.rate = NAN)));
    failed(LS_INVALID);
    assert_null(ls_sgd(LS_SGD(.rate = INFINITY)));
    failed(LS_INVALID);
    assert_null(ls_adam(LS_ADAM(.rate = NAN)));
    failed(LS_INVALID);
    assert_null(ls_adam(LS_ADAM(.beta1 = NAN)));
    failed(LS_INVALID);
    assert_null(ls_adam(LS_ADAM(.beta2 = NAN)));
    failed(LS_INVALID);
    assert_null(ls_adam(LS_ADAM(.epsilon = NAN)));
    failed(LS_INVALID);
    assert_null(ls_adam(LS_ADAM(.beta1 = 1))); /* divides by 1 - beta1^t */
    failed(LS_INVALID);
    assert_null(ls_adam(LS_ADAM(.beta2 = 1.5)));
    failed(LS_INVALID);

    o = ls_sgd(LS_SGD(.rate = -1)); /* zero itself */
    assert_true(ls_rate(o) == 0);
    assert_int_equal(ls_set_rate(o, NAN), LS_INVALID);
    failed(LS_INVALID);
    assert_int_equal(ls_set_rate(o, -INFINITY), LS_INVALID);
    failed(LS_INVALID);
    assert_true(ls_rate(o) == 0); /* as before */
    assert_int_equal(ls_set_rate(o, 0.5), LS_OK);
    assert_true(ls_rate(o) == 0.5);
    ls_optimizer_free(o);
    assert_int_equal(ls_set_rate(NULL, 1), LS_INVALID);
    failed(LS_INVALID);
    ls_sgd_init(NULL);
    ls_adam_init(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(sgd_follows_keras, clean),
        cmocka_unit_test_setup(adam_follows_keras, clean),
        cmocka_unit_test_setup(options, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
