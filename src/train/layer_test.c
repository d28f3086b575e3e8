/*
 * Layers: their names, variables and options; what each refuses; layers of a user's own.
 * tests/models_golden_test.c compares what they give with Keras; layer_norm_test.c has batch norm.
 */
#include <lockstep.h>
#include <math.h>
#include <stdlib.h>

#include "tensor/test_support.h"

/* The pending error, or its hint, has this in it. */
static void says(const char *part)
{
    if (!strstr(ls_error_text(), part) && !strstr(ls_error_hint(), part))
        fail_msg("'%s' is not in: %s", part, ls_error_report());
}

static ls_model *model_of(const char *input)
{
    return ls_model_new(LS_MODEL(.name = "m", .input = input));
}

/* ---- names ---------------------------------------------------------------------------------------- */

static void names(void **state)
{
    (void)state;
    ls_model *m = model_of("f32[8,8,2]");
    char name[16] = "mine";
    ls_layer *a = ls_dense_layer(m, LS_DENSE_LAYER(.units = 1));
    ls_layer *taken = ls_dense_layer(m, LS_DENSE_LAYER(.units = 1, .name = "dense_3"));
    ls_layer *b = ls_dense_layer(m, LS_DENSE_LAYER(.units = 1));
    ls_layer *mine = ls_layer_norm_layer(m, name, 0);
    name[0] = 'x'; /* names are copied */
    assert_string_equal(ls_layer_name(a), "dense_1");
    assert_string_equal(ls_layer_name(taken), "dense_3");
    assert_string_equal(ls_layer_name(b), "dense_4");
    assert_string_equal(ls_layer_name(mine), "mine");
    assert_string_equal(ls_layer_name(ls_conv_layer(m, LS_CONV_LAYER(.filters = 1))), "conv_1");
    assert_string_equal(ls_layer_name(ls_batch_norm_layer(m, NULL)), "batch_norm_1");
    assert_string_equal(ls_layer_name(ls_layer_norm_layer(m, NULL, 0)), "layer_norm_2");
    assert_string_equal(ls_layer_name(ls_embedding_layer(m, NULL, 2, 2, 0)), "embedding_1");
    assert_string_equal(ls_layer_name(ls_max_pool_layer(m, 2)), "max_pool_1");
    assert_string_equal(ls_layer_name(ls_avg_pool_layer(m, 2)), "avg_pool_1");
    assert_string_equal(ls_layer_name(ls_global_avg_pool_layer(m)), "global_avg_pool_1");
    assert_string_equal(ls_layer_name(ls_flatten_layer(m)), "flatten_1");
    assert_string_equal(ls_layer_name(ls_dropout_layer(m, 0.5)), "dropout_1");
    assert_string_equal(ls_layer_name(ls_activation_layer(m, ls_relu)), "activation_1");
    assert_null(ls_layer_name(NULL));
    assert_int_equal(ls_error_pending(), LS_OK);
    assert_null(ls_layer_norm_layer(m, "mine", 0));
    says("model 'm' has a layer 'mine' already");
    failed(LS_INVALID);
    char longer[200];
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = 0;
    assert_null(ls_layer_norm_layer(m, longer, 0));
    failed(LS_INVALID);
    assert_null(ls_layer_norm_layer(m, "", 0));
    failed(LS_INVALID);
    ls_model_free(m);
}

/* ---- variables ------------------------------------------------------------------------------------ */

static void shape_is(ls_layer *layer, const char *name, const char *want)
{
    ls_tensor *t = ls_read(ls_layer_variable(layer, name));
    if (!t)
        fail_msg("%s", ls_error_report());
    assert_string_equal(ls_describe(t), want);
}

static void variables(void **state)
{
    (void)state;
    LS_FRAME {
        ls_model *m = model_of("f64[9,7,2]"); /* variables have the dtype of x */
        ls_layer *conv = ls_conv_layer(
            m, LS_CONV_LAYER(.filters = 4, .window = 5, .stride = 2, .padding = LS_SAME));
        ls_layer *bare = ls_conv_layer(m, LS_CONV_LAYER(.filters = 3, .no_bias = true));
        ls_layer *norm = ls_batch_norm_layer(m, NULL);
        ls_layer *pool = ls_global_avg_pool_layer(m);
        ls_layer *rows = ls_layer_norm_layer(m, NULL, 0);
        ls_layer *out = ls_dense_layer(m, LS_DENSE_LAYER(.units = 6));
        assert_null(ls_layer_variable(out, "kernel"));
        says("layer 'dense_1' is not built");
        failed(LS_STATE);
        assert_int_equal(ls_model_build(m), LS_OK);
        shape_is(conv, "kernel", "f64[5,5,2,4]");
        shape_is(conv, "bias", "f64[4]");
        shape_is(bare, "kernel", "f64[3,3,4,3]");
        shape_is(norm, "scale", "f64[3]");
        shape_is(norm, "offset", "f64[3]");
        shape_is(norm, "mean", "f64[3]");
        shape_is(norm, "variance", "f64[3]");
        shape_is(rows, "scale", "f64[3]");
        shape_is(rows, "offset", "f64[3]");
        shape_is(out, "kernel", "f64[3,6]");
        shape_is(out, "bias", "f64[6]");
        assert_null(ls_layer_variable(norm, "kernel"));
        says("layer 'batch_norm_1' has no variable 'kernel'");
        says("scale, offset, mean, variance");
        failed(LS_NOT_FOUND);
        assert_null(ls_layer_variable(pool, "kernel"));
        says("it has none");
        failed(LS_NOT_FOUND);
        assert_null(ls_layer_variable(bare, NULL));
        failed(LS_INVALID);
        assert_null(ls_layer_variable(NULL, "kernel"));
        failed(LS_INVALID);
        ls_tensor *y = ls_model_forward(m, ls_ones(LS_F64, LS_DIMS(2, 9, 7, 2)), true);
        assert_string_equal(ls_describe(y), "f64[2,6]");
        ls_model_free(m);
    }
}

static ls_tensor *sevens(ls_dtype dtype, int rank, const int64_t *dims)
{
    return ls_full(dtype, rank, dims, 7);
}

static double spread_of(ls_tensor *t)
{
    const float *x = ls_data(t);
    double squares = 0;
    for (int64_t i = 0; i < ls_count(t); i++)
        squares += (double)x[i] * (double)x[i];
    return sqrt(squares / (double)ls_count(t));
}

static void initial_values(void **state)
{
    (void)state;
    LS_FRAME {
        ls_model *m = ls_model_new(LS_MODEL(.input = "i32[3]"));
        ls_layer *table = ls_embedding_layer(m, NULL, 50, 40, 0);
        ls_layer *own = ls_dense_layer(m, LS_DENSE_LAYER(.units = 40, .initial = sevens));
        ls_layer *wide = ls_dense_layer(m, LS_DENSE_LAYER(.units = 50, .spread = 2));
        ls_layer *usual = ls_dense_layer(m, LS_DENSE_LAYER(.units = 40));
        assert_int_equal(ls_model_build(m), LS_OK);
        assert_float_equal(spread_of(ls_read(ls_layer_variable(table, "table"))), 0.05, 0.004);
        assert_float_equal(spread_of(ls_read(ls_layer_variable(own, "kernel"))), 7, 0);
        assert_float_equal(spread_of(ls_read(ls_layer_variable(wide, "kernel"))), 2, 0.1);
        double limit = sqrt(6.0 / 90);
        assert_float_equal(spread_of(ls_read(ls_layer_variable(usual, "kernel"))), limit / sqrt(3),
                           0.01);
        assert_float_equal(spread_of(ls_read(ls_layer_variable(usual, "bias"))), 0, 0);
        ls_model_free(m);
    }
}

/* ---- without variables ------------------------------------------------------------------------------ */

static void dropout_acts_in_training(void **state)
{
    (void)state;
    LS_FRAME {
        ls_model *m = model_of("f32[500]");
        ls_dropout_layer(m, 0.25);
        assert_int_equal(ls_model_build(m), LS_OK);
        assert_int_equal(ls_model_count(m), 0);
        ls_tensor *x = ls_ones(LS_F32, LS_DIMS(4, 500));
        assert_memory_equal(ls_data(ls_model_forward(m, x, false)), ls_data(x), 8000);
        const float *y = ls_data(ls_model_forward(m, x, true));
        int zeros = 0;
        for (int i = 0; i < 2000; i++) {
            zeros += y[i] == 0;
            assert_true(y[i] == 0 || fabsf(y[i] - 1 / 0.75f) < 1e-6f);
        }
        assert_in_range(zeros, 400, 600);
        ls_model_free(m);
    }
}

/* ---- layers of a user's own ------------------------------------------------------------------------------ */

typedef struct shifts {
    int builds;
    ls_variable *by;
    ls_status fails;
    bool calls_itself;
} shifts;

static ls_status shift_build(ls_layer *layer, ls_tensor *x, void *user)
{
    shifts *s = user;
    s->builds++;
    if (s->calls_itself)
        ls_forward(layer, x, false);
    s->by = ls_layer_make(layer, LS_VARIABLE(.trainable = LS_FROZEN), "by",
                          ls_full(LS_F32, LS_DIMS(ls_dim(x, -1)), 3));
    return s->fails ? s->fails : s->by ? LS_OK : ls_error_pending();
}

static ls_tensor *shift_forward(ls_layer *layer, ls_tensor *x, bool training, void *user)
{
    (void)training;
    assert_ptr_equal(ls_layer_variable(layer, "by"), ((shifts *)user)->by);
    return ls_add(x, ls_read(((shifts *)user)->by));
}

static ls_tensor *give_null(ls_layer *layer, ls_tensor *x, bool training, void *user)
{
    (void)layer;
    (void)x;
    (void)training;
    (void)user;
    return NULL;
}

static void own_layers(void **state)
{
    (void)state;
    LS_FRAME {
        shifts s = { 0 };
        ls_model *m = model_of("f32[2]");
        ls_layer *layer =
            ls_own_layer(m, LS_LAYER(.user = &s, .build = shift_build, .forward = shift_forward));
        assert_string_equal(ls_layer_name(layer), "layer_1");
        assert_int_equal(ls_model_build(m), LS_OK);
        ls_tensor *y = ls_model_forward(m, ls_ones(LS_F32, LS_DIMS(2, 2)), true);
        assert_float_equal(((const float *)ls_data(y))[3], 4, 0);
        assert_int_equal(s.builds, 1);
        assert_string_equal(ls_variable_name(ls_model_variables(m)[0]), "layer_1/by");
        assert_false(ls_variable_trainable(s.by));
        ls_model_free(m);
    }
}

static void own_layers_that_fail(void **state)
{
    (void)state;
    size_t before = memory();
    for (int i = 0; i < 3; i++) {
        shifts s = { .fails = i == 0 ? LS_IO : LS_OK, .calls_itself = i == 1 };
        static const ls_status want[] = { LS_IO, LS_STATE, LS_INVALID };
        static const char *const text[] = { "layer 'l': its function .build failed",
                                            "it is met while it is built",
                                            "layer 'l': its function gave NULL" };
        ls_model *m = model_of("f32[2]");
        ls_own_layer(m, LS_LAYER(.name = "l", .user = &s, .build = shift_build,
                                 .forward = i == 2 ? give_null : shift_forward));
        assert_int_equal(ls_model_build(m), want[i]);
        says(text[i]);
        failed(want[i]);
        assert_int_equal(memory(), before);
        ls_model_free(m);
    }
    ls_model *m = model_of("f32[2]");
    assert_null(ls_own_layer(m, NULL));
    failed(LS_INVALID);
    assert_null(ls_own_layer(m, LS_LAYER(.build = shift_build)));
    says("no .forward");
    failed(LS_INVALID);
    assert_null(ls_own_layer(m, &(ls_layer_options){ .forward = shift_forward }));
    failed(LS_INVALID);
    ls_model_free(m);
}

/* ---- refused ------------------------------------------------------------------------------------------- */

static void bad_options(void **state)
{
    (void)state;
    ls_model *m = model_of("f32[2]");
#define REFUSED(call)                                                                              \
    do {                                                                                           \
        assert_null(call);                                                                         \
        failed(LS_INVALID);                                                                        \
    } while (0)
    REFUSED(ls_dense_layer(m, NULL));
    REFUSED(ls_dense_layer(m, LS_DENSE_LAYER(.units = -1)));
    REFUSED(ls_dense_layer(m, LS_DENSE_LAYER(.units = 1, .spread = -1)));
    REFUSED(ls_dense_layer(m, LS_DENSE_LAYER(.units = 1, .spread = NAN)));
    REFUSED(ls_dense_layer(m, LS_DENSE_LAYER(.units = 1, .spread = 1, .initial = sevens)));
    REFUSED(ls_dense_layer(m, &(ls_dense_layer_options){ .units = 1 }));
    REFUSED(ls_dense_layer(NULL, LS_DENSE_LAYER(.units = 1)));
    REFUSED(ls_conv_layer(m, NULL));
    REFUSED(ls_conv_layer(m, LS_CONV_LAYER(.filters = 0)));
    REFUSED(ls_conv_layer(m, LS_CONV_LAYER(.filters = 1, .window = -1)));
    REFUSED(ls_conv_layer(m, LS_CONV_LAYER(.filters = 1, .stride = -2)));
    REFUSED(ls_conv_layer(m, LS_CONV_LAYER(.filters = 1, .padding = (ls_padding)7)));
    REFUSED(ls_conv_layer(m, LS_CONV_LAYER(.filters = 1, .spread = INFINITY)));
    REFUSED(ls_conv_layer(m, &(ls_conv_layer_options){ .filters = 1 }));
    REFUSED(ls_batch_norm_layer(m, LS_BATCH_NORM_LAYER(.momentum = 1.5)));
    REFUSED(ls_batch_norm_layer(m, LS_BATCH_NORM_LAYER(.epsilon = -2)));
    REFUSED(ls_batch_norm_layer(m, &(ls_batch_norm_layer_options){ .epsilon = 1 }));
    REFUSED(ls_layer_norm_layer(m, NULL, -1));
    REFUSED(ls_layer_norm_layer(m, NULL, NAN));
    REFUSED(ls_embedding_layer(m, NULL, 0, 1, 0));
    REFUSED(ls_embedding_layer(m, NULL, 1, 0, 0));
    REFUSED(ls_embedding_layer(m, NULL, 1, 1, -1));
    REFUSED(ls_max_pool_layer(m, 0));
    REFUSED(ls_avg_pool_layer(m, -1));
    REFUSED(ls_dropout_layer(m, 1));
    REFUSED(ls_dropout_layer(m, -0.1));
    REFUSED(ls_dropout_layer(m, NAN));
    REFUSED(ls_activation_layer(m, NULL));
    REFUSED(ls_flatten_layer(NULL));
    REFUSED(ls_global_avg_pool_layer(NULL));
#undef REFUSED
    ls_model_free(m);
    ls_dense_layer_options dense;
    ls_conv_layer_options conv;
    ls_batch_norm_layer_options norm;
    ls_layer_options own;
    ls_dense_layer_init(&dense);
    ls_conv_layer_init(&conv);
    ls_batch_norm_layer_init(&norm);
    ls_layer_init(&own);
    assert_int_equal(dense.size, sizeof dense);
    assert_int_equal(conv.size, sizeof conv);
    assert_int_equal(norm.size, sizeof norm);
    assert_int_equal(own.size, sizeof own);
}

/* A layer met for the first time by something that it does not take, and later by another thing. */
static void bad_x(void **state)
{
    (void)state;
    static const struct {
        const char *input, *text;
        int kind;
    } first[] = {
        { "i32[4]", "layer 'l': x is i32[0,4], wants floats [n, ..., in]", 0 },
        { "f32[]", "layer 'l': x is f32[0], wants floats [n, ..., in]", 0 },
        { "f32[4,4]", "layer 'l': x is f32[0,4,4], wants floats [n, height", 1 },
        { "u8[4,4,1]", "wants floats [n, height, width, channels]", 1 },
        { "i64[4]", "wants floats [n, ..., width]", 2 },
        { "i32[4]", "wants floats [n, ..., width]", 3 },
        { "f32[4]", "wants i32 or i64", 4 },
        { "f32[2,2,1]", "layer 'l': conv2d", 1 }, /* 3 x 3 in 2 x 2 */
    };
    size_t before = memory();
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        ls_model *m = model_of(first[i].input);
        switch (first[i].kind) {
        case 0:
            ls_dense_layer(m, LS_DENSE_LAYER(.name = "l", .units = 2));
            break;
        case 1:
            ls_conv_layer(m, LS_CONV_LAYER(.name = "l", .filters = 2));
            break;
        case 2:
            ls_batch_norm_layer(m, LS_BATCH_NORM_LAYER(.name = "l"));
            break;
        case 3:
            ls_layer_norm_layer(m, "l", 0);
            break;
        default:
            ls_embedding_layer(m, "l", 3, 3, 0);
        }
        assert_int_not_equal(ls_model_build(m), LS_OK);
        says(first[i].text);
        says("ls_model_build: model 'm'");
        assert_int_not_equal(ls_error(), LS_OK);
        assert_int_equal(ls_model_count(m), 0);
        ls_model_free(m);
        assert_int_equal(memory(), before);
    }
}

static void other_x_later(void **state)
{
    (void)state;
    LS_FRAME {
        ls_model *m = model_of("f32[8,8,2]");
        ls_layer *conv = ls_conv_layer(m, LS_CONV_LAYER(.name = "c", .filters = 3));
        ls_layer *norm = ls_batch_norm_layer(m, LS_BATCH_NORM_LAYER(.name = "b"));
        ls_flatten_layer(m);
        ls_layer *out = ls_dense_layer(m, LS_DENSE_LAYER(.name = "d", .units = 2));
        assert_int_equal(ls_model_build(m), LS_OK);
        assert_null(ls_forward(conv, ls_ones(LS_F32, LS_DIMS(1, 8, 8, 5)), true));
        says("layer 'c': x is f32[1,8,8,5], wants f32 [n, height, width, 2]");
        failed(LS_SHAPE);
        assert_null(ls_forward(norm, ls_ones(LS_F32, LS_DIMS(1, 2)), true));
        says("wants a last axis of 3");
        failed(LS_SHAPE);
        assert_null(ls_forward(out, ls_ones(LS_F64, LS_DIMS(1, 108)), true));
        says("wants f32 with a last axis of 108");
        failed(LS_SHAPE);
        assert_null(ls_forward(out, ls_ones(LS_F32, LS_DIMS(1, 4)), true));
        failed(LS_SHAPE);
        /* Of other sizes it may be: */
        assert_non_null(ls_forward(conv, ls_ones(LS_F32, LS_DIMS(1, 5, 4, 2)), true));
        assert_non_null(ls_forward(out, ls_ones(LS_F32, LS_DIMS(2, 7, 108)), true));
        ls_model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(names, clean),
        cmocka_unit_test_setup(variables, clean),
        cmocka_unit_test_setup(initial_values, clean),
        cmocka_unit_test_setup(dropout_acts_in_training, clean),
        cmocka_unit_test_setup(own_layers, clean),
        cmocka_unit_test_setup(own_layers_that_fail, clean),
        cmocka_unit_test_setup(bad_options, clean),
        cmocka_unit_test_setup(bad_x, clean),
        cmocka_unit_test_setup(other_x_later, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
