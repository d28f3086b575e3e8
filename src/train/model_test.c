/*
 * Models: sequential and free-form; what a build makes, in which order, and that it leaves nothing when
 * it fails; layers that are met twice, later, or never; what is refused, and how it says so.
 * layer_test.c has the layers' own behaviour.
 */
#include <lockstep.h>
#include <stdio.h>
#include <stdlib.h>

#include "dispatch/tape.h"
#include "tensor/test_support.h"

/* The pending error, or its hint, has this in it. */
static void says(const char *part)
{
    if (!strstr(ls_error_text(), part) && !strstr(ls_error_hint(), part))
        fail_msg("'%s' is not in: %s", part, ls_error_report());
}

/* ---- sequential ----------------------------------------------------------------------------------- */

static ls_model *small(void)
{
    ls_model *m = ls_model_new(LS_MODEL(.name = "small", .input = "f32[6,6,1]"));
    ls_conv_layer(m, LS_CONV_LAYER(.filters = 2, .activation = ls_relu));
    ls_max_pool_layer(m, 2);
    ls_flatten_layer(m);
    ls_dense_layer(m, LS_DENSE_LAYER(.units = 4));
    ls_dense_layer(m, LS_DENSE_LAYER(.name = "out", .units = 3, .no_bias = true));
    return m;
}

static void sequential(void **state)
{
    (void)state;
    static const char *const names[] = { "conv_1/kernel", "conv_1/bias", "dense_1/kernel",
                                         "dense_1/bias", "out/kernel" };
    size_t before = memory();
    ls_model *m = small();
    assert_int_equal(ls_model_count(m), 0);
    assert_null(ls_model_variables(m));
    assert_int_equal(memory(), before); /* no variable yet */
    assert_int_equal(ls_model_build(m), LS_OK);
    assert_int_equal(ls_model_count(m), 5);
    for (int i = 0; i < 5; i++)
        assert_string_equal(ls_variable_name(ls_model_variables(m)[i]), names[i]);
    assert_int_equal(ls_model_parameters(m), 9 * 2 + 2 + 8 * 4 + 4 + 4 * 3);
    ls_variable *const *same = ls_model_variables(m);
    assert_int_equal(ls_model_build(m), LS_OK); /* once */
    assert_ptr_equal(ls_model_variables(m), same);
    assert_int_equal(ls_model_count(m), 5);
    LS_FRAME {
        ls_tensor *y = ls_model_forward(m, ls_ones(LS_F32, LS_DIMS(7, 6, 6, 1)), false);
        assert_string_equal(ls_describe(y), "f32[7,3]");
        y = ls_model_forward(m, ls_ones(LS_F32, LS_DIMS(0, 6, 6, 1)), true);
        assert_string_equal(ls_describe(y), "f32[0,3]");
    }
    ls_model_free(m);
    assert_int_equal(memory(), before);
}

static void asked(void **state)
{
    (void)state;
    ls_model *m = ls_model_new(LS_MODEL(.input = " f32[ 4 ] "));
    assert_string_equal(ls_model_name(m), "model");
    assert_string_equal(ls_model_what(m), "");
    assert_string_equal(ls_model_input(m), "f32[4]");
    assert_string_equal(ls_model_label(m), "i32[]");
    assert_int_equal(ls_model_batch(m), 64);
    assert_ptr_equal(ls_model_loss(m), ls_sparse_softmax_xent);
    ls_model_free(m);
    ls_model_options o;
    ls_model_init(&o);
    o.input = "i32[7]";
    o.label = "f32[2,2]";
    o.what = "for people";
    o.batch = 5;
    o.loss = ls_mse;
    m = ls_model_new(&o);
    assert_string_equal(ls_model_what(m), "for people");
    assert_string_equal(ls_model_label(m), "f32[2,2]");
    assert_int_equal(ls_model_batch(m), 5);
    assert_ptr_equal(ls_model_loss(m), ls_mse);
    ls_model_free(m);
    assert_null(ls_model_name(NULL));
    assert_null(ls_model_what(NULL));
    assert_null(ls_model_input(NULL));
    assert_null(ls_model_label(NULL));
    assert_null(ls_model_loss(NULL));
    assert_null(ls_model_variables(NULL));
    assert_int_equal(ls_model_batch(NULL) + ls_model_count(NULL), 0);
    assert_int_equal(ls_model_parameters(NULL), 0);
    ls_model_free(NULL);
    assert_int_equal(ls_error_pending(), LS_OK);
}

/* ---- free-form ------------------------------------------------------------------------------------- */

typedef struct net {
    ls_layer *in, *twice, *late;
    ls_variable *shift;
    int builds;
    bool forgets; /* meets `late` in training only */
    bool noted;   /* a tape saw it in its last forward */
    int defect;
} net;

enum { NONE, SHORT_NAME, SECOND_VARIABLE, WRONG_SHAPE, GIVES_NULL, MAKES_LAYERS, LEFT_ERROR };

static void build(ls_model *m, void *user)
{
    net *n = user;
    n->builds++;
    n->in = ls_dense_layer(m, LS_DENSE_LAYER(.name = "in", .units = 5, .activation = ls_tanh));
    n->twice = ls_dense_layer(m, LS_DENSE_LAYER(.name = "twice", .units = 5));
    n->late = ls_dense_layer(m, LS_DENSE_LAYER(.name = "late", .units = 5));
    n->shift = ls_model_variable(m, "shift", ls_random_normal(LS_F32, LS_DIMS(5), 0, 1), false);
    if (n->defect == SHORT_NAME)
        ls_dense_layer(m, LS_DENSE_LAYER(.name = "", .units = 5));
    if (n->defect == SECOND_VARIABLE)
        ls_model_variable(m, "shift", ls_ones(LS_F32, LS_DIMS(5)), true);
    if (n->defect == LEFT_ERROR)
        ls_matmul(ls_ones(LS_F32, LS_DIMS(2, 2)), ls_ones(LS_F32, LS_DIMS(3, 2)));
}

static ls_model *the_model; /* that a function of its own would change */

static ls_tensor *forward(void *user, ls_tensor *x, bool training)
{
    net *n = user;
    n->noted = ls__tape_noting();
    ls_tensor *h = ls_forward(n->in, x, training);
    h = ls_forward(n->twice, ls_forward(n->twice, h, training), training);
    if (n->defect == WRONG_SHAPE)
        h = ls_forward(n->twice, x, training);
    if (n->defect == GIVES_NULL)
        return NULL;
    if (n->defect == MAKES_LAYERS)
        h = ls_forward(ls_dense_layer(the_model, LS_DENSE_LAYER(.units = 2)), h, training);
    if (training || !n->forgets)
        h = ls_forward(n->late, h, training);
    return ls_add(h, ls_read(n->shift));
}

static ls_model *free_form(net *n)
{
    return ls_model_new(
        LS_MODEL(.name = "free", .input = "f32[2]", .user = n, .build = build, .forward = forward));
}

static void free_form_models(void **state)
{
    (void)state;
    static const char *const names[] = { "shift",      "in/kernel",   "in/bias",  "twice/kernel",
                                         "twice/bias", "late/kernel", "late/bias" };
    net n = { 0 };
    ls_model *m = free_form(&n);
    assert_int_equal(n.builds, 0);
    LS_FRAME {
        ls_tape *tape = ls_tape_open();
        ls_random_seed(3);
        assert_int_equal(ls_model_build(m), LS_OK);
        assert_int_equal(n.builds, 1);
        assert_false(n.noted);
        assert_true(ls__tape_noting());
        assert_int_equal(ls_model_count(m), 7);
        for (int i = 0; i < 7; i++)
            assert_string_equal(ls_variable_name(ls_model_variables(m)[i]), names[i]);
        assert_false(ls_variable_trainable(n.shift));
        assert_int_equal(ls_model_parameters(m), 15 + 30 + 30);
        /* Draws of a step are those of a program that has built nothing. */
        ls_tensor *a = ls_random_uniform(LS_F32, LS_DIMS(3), 0, 1);
        ls_random_seed(3);
        ls_tensor *b = ls_random_uniform(LS_F32, LS_DIMS(3), 0, 1);
        assert_memory_equal(ls_data(a), ls_data(b), 12);
        /* A layer that is met twice has its gradient once, of both. */
        ls_tensor *y = ls_model_forward(m, ls_ones(LS_F32, LS_DIMS(3, 2)), true);
        ls_tensor *g = ls_gradient(tape, y, ls_read(ls_layer_variable(n.twice, "kernel")));
        assert_string_equal(ls_describe(g), "f32[5,5]");
        assert_true(ls_to_float(ls_max(ls_abs(g), LS_ALL_AXES, false)) > 0);
    }
    ls_model_free(m);
}

/* The struct that a model keeps begins with zeros, and a build that fails leaves them. */
typedef struct kept_net {
    int builds;
    ls_layer *out;
} kept_net;

static int refusals; /* builds that are to fail */

static void kept_build(ls_model *m, void *user)
{
    kept_net *n = user;
    assert_int_equal(n->builds, 0);
    assert_null(n->out);
    n->builds++;
    n->out = ls_dense_layer(m, LS_DENSE_LAYER(.name = "out", .units = 2));
    if (refusals > 0) {
        refusals--;
        ls_model_variable(m, "bad", NULL, true);
    }
}

static ls_tensor *kept_forward(void *user, ls_tensor *x, bool training)
{
    return ls_forward(((kept_net *)user)->out, x, training);
}

static void a_kept_struct(void **state)
{
    (void)state;
    size_t before = memory();
    ls_model *m = ls_model_new(LS_MODEL(.input = "f32[3]", .net_bytes = sizeof(kept_net),
                                        .build = kept_build, .forward = kept_forward));
    refusals = 2;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ls_model_build(m), LS_INVALID);
        failed(LS_INVALID);
        assert_int_equal(ls_model_count(m), 0);
        assert_int_equal(memory(), before);
    }
    assert_int_equal(ls_model_build(m), LS_OK);
    assert_int_equal(ls_model_count(m), 2);
    ls_model_free(m);
    assert_int_equal(memory(), before);
}

/* A model without .forward is sequential also when a function makes its layers. */
static void layers_of(ls_model *m, void *user)
{
    (void)user;
    ls_flatten_layer(m);
    ls_dense_layer(m, LS_DENSE_LAYER(.units = 2));
}

static void sequential_by_a_function(void **state)
{
    (void)state;
    ls_model *m = ls_model_new(LS_MODEL(.input = "f32[2,2]", .build = layers_of));
    assert_int_equal(ls_model_build(m), LS_OK);
    LS_FRAME
        assert_string_equal(
            ls_describe(ls_model_forward(m, ls_ones(LS_F32, LS_DIMS(3, 2, 2)), true)), "f32[3,2]");
    ls_model_free(m);
}

/* ---- builds that fail ---------------------------------------------------------------------------------- */

static void builds_that_fail(void **state)
{
    (void)state;
    static const struct {
        int defect;
        ls_status status;
        const char *text;
    } defects[] = {
        { SHORT_NAME, LS_INVALID, "ls_model_build: model 'free': ls_dense_layer: a name of 0" },
        { SECOND_VARIABLE, LS_INVALID, "a second variable 'shift'" },
        { WRONG_SHAPE, LS_SHAPE,
          "model 'free': layer 'twice': x is f32[0,2], wants f32 with a last" },
        { GIVES_NULL, LS_INVALID, "model 'free': its function .forward gave NULL" },
        { MAKES_LAYERS, LS_STATE, "is being built" },
        { LEFT_ERROR, LS_SHAPE, "matmul" },
    };
    size_t before = memory();
    for (size_t i = 0; i < sizeof defects / sizeof *defects; i++) {
        net n = { .defect = defects[i].defect };
        ls_model *m = the_model = free_form(&n);
        assert_int_equal(ls_model_build(m), defects[i].status);
        says(defects[i].text);
        failed(defects[i].status);
        assert_int_equal(ls_model_count(m), 0);
        assert_int_equal(memory(), before); /* no variable is left */
        ls_random_seed(5);
        n.defect = NONE; /* and it can be built again, as if it had not been tried */
        assert_int_equal(ls_model_build(m), LS_OK);
        assert_int_equal(ls_model_count(m), 7);
        ls_model_free(m);
    }
    assert_int_equal(memory(), before);
}

/* What a failed build drew is drawn again. */
static void a_failed_build_draws_nothing(void **state)
{
    (void)state;
    net n = { 0 }, bad = { .defect = GIVES_NULL };
    float start[2][5];
    for (int i = 0; i < 2; i++)
        LS_FRAME {
            ls_random_seed(9);
            ls_model *m = free_form(&n), *other = free_form(&bad);
            if (i == 1) {
                assert_int_equal(ls_model_build(other), LS_INVALID);
                failed(LS_INVALID);
            }
            assert_int_equal(ls_model_build(m), LS_OK);
            ls_copy_out(ls_read(n.shift), start[i], sizeof start[i]);
            ls_model_free(m);
            ls_model_free(other);
        }
    assert_memory_equal(start[0], start[1], sizeof start[0]);
}

/* Two models of one seed are not one: the second goes on where the first ended. */
static void one_after_the_other(void **state)
{
    (void)state;
    LS_FRAME {
        net a = { 0 }, b = { 0 };
        ls_random_seed(9);
        ls_model *first = free_form(&a), *second = free_form(&b);
        assert_int_equal(ls_model_build(first), LS_OK);
        assert_int_equal(ls_model_build(second), LS_OK);
        assert_memory_not_equal(ls_data(ls_read(a.shift)), ls_data(ls_read(b.shift)), 20);
        ls_model_free(first);
        ls_model_free(second);
    }
}

static int failures; /* of the next builds */

static ls_status build_or_not(ls_layer *layer, ls_tensor *x, void *user)
{
    (void)layer;
    (void)x;
    (void)user;
    return failures-- > 0 ? LS_IO : LS_OK;
}

static ls_tensor *same(ls_layer *layer, ls_tensor *x, bool training, void *user)
{
    (void)layer;
    (void)training;
    (void)user;
    return x;
}

/* A layer that had its variables when the build failed has new ones. */
static void layers_of_a_failed_build(void **state)
{
    (void)state;
    LS_FRAME {
        ls_model *m = ls_model_new(LS_MODEL(.input = "f32[2]"));
        ls_layer *dense = ls_dense_layer(m, LS_DENSE_LAYER(.units = 3));
        ls_own_layer(m, LS_LAYER(.build = build_or_not, .forward = same));
        failures = 1;
        assert_int_equal(ls_model_build(m), LS_IO);
        failed(LS_IO);
        assert_null(ls_layer_variable(dense, "kernel"));
        failed(LS_STATE);
        assert_int_equal(ls_model_build(m), LS_OK);
        assert_ptr_equal(ls_layer_variable(dense, "kernel"), ls_model_variables(m)[0]);
        assert_ptr_equal(ls_layer_variable(dense, "bias"), ls_model_variables(m)[1]);
        ls_model_free(m);
    }
}

/* Layers that could not be made, of a program that looks at errors at the end. */
static void a_layer_is_lacking(void **state)
{
    (void)state;
    ls_model *m = ls_model_new(LS_MODEL(.input = "f32[2]"));
    ls_dense_layer(m, LS_DENSE_LAYER(.units = 0));
    ls_dense_layer(m, LS_DENSE_LAYER(.units = 3));
    assert_int_equal(ls_model_build(m), LS_INVALID);
    says("ls_dense_layer: .units 0");
    assert_int_equal(ls_model_count(m), 0);
    assert_null(ls_model_forward(m, NULL, false));
    says("ls_dense_layer: .units 0"); /* still the first */
    failed(LS_INVALID);
    ls_model_free(m);
}

static void nothing_to_build(void **state)
{
    (void)state;
    ls_model *m = ls_model_new(LS_MODEL(.name = "empty", .input = "f32[2]"));
    assert_int_equal(ls_model_build(m), LS_INVALID);
    says("model 'empty': it has no layers");
    failed(LS_INVALID);
    assert_int_equal(ls_model_build(NULL), LS_INVALID);
    failed(LS_INVALID);
    ls_model_free(m);
}

/* ---- too early, too late ---------------------------------------------------------------------------------- */

static void a_path_not_taken(void **state)
{
    (void)state;
    net n = { .forgets = true };
    ls_model *m = free_form(&n);
    assert_int_equal(ls_model_build(m), LS_OK);
    assert_int_equal(ls_model_count(m), 5);
    LS_FRAME {
        ls_tensor *x = ls_ones(LS_F32, LS_DIMS(3, 2));
        assert_non_null(ls_model_forward(m, x, false));
        assert_null(ls_model_forward(m, x, true));
        says("layer 'late': it was not met when model 'free' was built");
        says("also when `training` is false");
        failed(LS_STATE);
        assert_null(ls_layer_variable(n.late, "kernel"));
        failed(LS_STATE);
    }
    ls_model_free(m);
}

static void in_the_wrong_order(void **state)
{
    (void)state;
    ls_model *m = small();
    LS_FRAME {
        ls_tensor *x = ls_ones(LS_F32, LS_DIMS(1, 6, 6, 1));
        assert_null(ls_model_forward(m, x, false));
        says("model 'small' is not built");
        says("ls_model_build");
        failed(LS_STATE);
        ls_layer *layer = ls_dense_layer(m, LS_DENSE_LAYER(.name = "d", .units = 2));
        assert_null(ls_forward(layer, ls_ones(LS_F32, LS_DIMS(1, 3)), false));
        says("layer 'd': model 'small' is not built");
        failed(LS_STATE);
        assert_null(ls_model_variable(m, "v", x, true));
        says("not making its variables");
        failed(LS_STATE);
        assert_null(ls_layer_make(layer, NULL, "v", x));
        failed(LS_STATE);
        assert_int_equal(ls_model_build(m), LS_OK);
        assert_null(ls_flatten_layer(m));
        says("model 'small' is built: no layer can be added");
        failed(LS_STATE);
        assert_non_null(ls_model_forward(m, x, false));
    }
    ls_model_free(m);
}

static ls_value *builds(ls_value *arguments, void *user)
{
    assert_int_equal(ls_model_build(user), LS_STATE);
    says("build the model before");
    ls_error();
    return arguments;
}

static ls_value *frees(ls_value *arguments, void *user)
{
    ls_model_free(user);
    failed(LS_STATE);
    return arguments;
}

static void in_the_wrong_place(void **state)
{
    (void)state;
    ls_model *m = small();
    ls_function *f = ls_trace(builds, m);
    ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = "/cpu:0", .replicas = 2));
    LS_FRAME {
        assert_non_null(ls_function_call(f, ls_list(0, NULL)));
        assert_non_null(ls_run_eager(s, builds, m, ls_list(0, NULL)));
        assert_non_null(ls_run_eager(s, frees, m, ls_list(0, NULL)));
    }
    assert_int_equal(ls_model_count(m), 0);
    assert_int_equal(ls_model_build(m), LS_OK);
    ls_function_free(f);
    ls_model_free(m);
    assert_int_equal(ls_strategy_free(s), LS_OK);
}

/* Variables belong to the strategy in whose scope the model is built. */
static void in_a_scope(void **state)
{
    (void)state;
    ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = "/cpu:0,/cpu:1", .replicas = 3));
    ls_model *m = small();
    LS_SCOPE (s)
        assert_int_equal(ls_model_build(m), LS_OK);
    for (int i = 0; i < ls_model_count(m); i++) {
        assert_ptr_equal(ls_variable_strategy(ls_model_variables(m)[i]), s);
        assert_int_equal(ls_variable_components(ls_model_variables(m)[i]), 3);
    }
    ls_model_free(m);
    assert_int_equal(ls_strategy_free(s), LS_OK);
}

/* ---- refused -------------------------------------------------------------------------------------------- */

static void bad_options(void **state)
{
    (void)state;
    static const char *const inputs[] = { "",
                                          "f32",
                                          "f32[?]",
                                          "f32[2,0]",
                                          "x[2]",
                                          "bytes",
                                          "bytes[]",
                                          "f32[2],f32[2]",
                                          "(f32[2])",
                                          "f32[-1]",
                                          "f32[1,1,1,1,1,1,1,1]" };
    size_t before = memory();
    assert_null(ls_model_new(NULL));
    failed(LS_INVALID);
    assert_null(ls_model_new(LS_MODEL(.name = "a")));
    says("'a' has no .input");
    failed(LS_INVALID);
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        assert_null(ls_model_new(LS_MODEL(.name = "a", .input = inputs[i])));
        says("ls_model_new: .input of 'a'");
        failed(LS_INVALID);
        assert_null(ls_model_new(LS_MODEL(.input = "f32[2]", .label = inputs[i])));
        says(".label of 'model'");
        failed(LS_INVALID);
    }
    assert_null(ls_model_new(LS_MODEL(.input = "f32[2]", .name = "")));
    failed(LS_INVALID);
    assert_null(ls_model_new(LS_MODEL(.input = "f32[2]", .name = "a\tb")));
    failed(LS_INVALID);
    assert_null(ls_model_new(LS_MODEL(.input = "f32[2]", .batch = -1)));
    failed(LS_INVALID);
    assert_null(ls_model_new(LS_MODEL(.input = "f32[2]", .net_bytes = 8, .user = &before)));
    failed(LS_INVALID);
    assert_null(ls_model_new(&(ls_model_options){ .input = "f32[2]" }));
    says("options of 0 bytes");
    failed(LS_INVALID);
    assert_int_equal(memory(), before);
}

static void bad_x(void **state)
{
    (void)state;
    ls_model *m = small();
    assert_int_equal(ls_model_build(m), LS_OK);
    LS_FRAME {
        ls_tensor *const bad[] = { ls_ones(LS_F32, LS_DIMS(6, 6, 1)),
                                   ls_ones(LS_F32, LS_DIMS(2, 5, 6, 1)),
                                   ls_ones(LS_F64, LS_DIMS(2, 6, 6, 1)) };
        for (int i = 0; i < 3; i++) {
            assert_null(ls_model_forward(m, bad[i], true));
            says("model 'small': x is ");
            says("wants any number of f32[6,6,1]");
            failed(LS_SHAPE);
        }
        assert_null(ls_model_forward(m, NULL, true));
        failed(LS_INVALID);
        assert_null(ls_forward(NULL, bad[0], true));
        failed(LS_INVALID);
    }
    assert_null(ls_model_forward(NULL, NULL, true));
    failed(LS_INVALID);
    ls_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(sequential, clean),
        cmocka_unit_test_setup(asked, clean),
        cmocka_unit_test_setup(free_form_models, clean),
        cmocka_unit_test_setup(a_kept_struct, clean),
        cmocka_unit_test_setup(sequential_by_a_function, clean),
        cmocka_unit_test_setup(builds_that_fail, clean),
        cmocka_unit_test_setup(a_failed_build_draws_nothing, clean),
        cmocka_unit_test_setup(one_after_the_other, clean),
        cmocka_unit_test_setup(layers_of_a_failed_build, clean),
        cmocka_unit_test_setup(a_layer_is_lacking, clean),
        cmocka_unit_test_setup(nothing_to_build, clean),
        cmocka_unit_test_setup(a_path_not_taken, clean),
        cmocka_unit_test_setup(in_the_wrong_order, clean),
        cmocka_unit_test_setup(in_the_wrong_place, clean),
        cmocka_unit_test_setup(in_a_scope, clean),
        cmocka_unit_test_setup(bad_options, clean),
        cmocka_unit_test_setup(bad_x, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
