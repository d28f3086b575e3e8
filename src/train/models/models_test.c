/*
 * The models as models: how many parameters they have (worked out by hand), what
 * their variables are called, that they start knowing nothing (the loss is the log of
 * the number of classes) and that a step of Adam teaches them something; and what is
 * refused. tests/models_traced_test.c runs them traced.
 */
#include <lockstep.h>
#include <math.h>
#include <stdlib.h>

#include "tensor/test_support.h"
#include "train/models/samples.h"

enum { SAMPLES = 2, MOST_VARIABLES = 128 };

typedef struct expected {
    const char *name;
    int variables, trainable;
    int64_t parameters;
    int classes;
    double slack; /* around log(classes), of the first loss */
} expected;

/* A dense layer of a x b has a b + b parameters, a 3x3 convolution 9 a b (+ b). */
static const expected all[] = {
    { "cnn", 6, 6, 320 + (13 * 13 * 32 + 1) * 64 + 650, 10, 0.5 },
    { "cnn2", 8, 8, 320 + (9 * 32 + 1) * 64 + (5 * 5 * 64 + 1) * 64 + 650, 10, 0.5 },
    { "mlp", 6, 6, 785 * 2048 + 2049 * 2048 + 2049 * 10, 10, 0.5 },
    /* stem, six convolutions a stage, two projections; a norm has two parameters a channel
     * (7, 7 and 7 norms of 16, 32 and 64) and two moving statistics. */
    { "resnet", 21 * 5 + 2, 21 * 3 + 2,
      9 * 16 + 6 * 9 * 16 * 16 + (9 * 16 * 32 + 5 * 9 * 32 * 32) + (9 * 32 * 64 + 5 * 9 * 64 * 64) +
          16 * 32 + 32 * 64 + 2 * 7 * (16 + 32 + 64) + 650,
      10, 2 }, /* what nine blocks add up to is not small */
    { "gpt", 2 + 4 * 12 + 2, 2 + 4 * 12 + 2,
      256 * 256 + 128 * 256 + 4 * (2 * 512 + 257 * 768 + 257 * 256 + 257 * 1024 + 1025 * 256) + 512,
      256, 0.2 },
};
enum { N_MODELS = sizeof all / sizeof *all };

/* Samples of whatever the model takes, the same every time. */
static ls_value *make_batch(const ls_model *m, int64_t n, int classes)
{
    ls_random_step(1);
    ls_value *batch = ls__draw_samples(m, n, 0, classes);
    int64_t labels = ls_count(ls_item(batch, 1));
    int32_t *y = calloc((size_t)labels + 1, sizeof *y);
    assert_non_null(y);
    for (int64_t i = 0; i < labels; i++)
        y[i] = (int32_t)((i * 7 + 3) % classes);
    ls_tensor *label = ls_from(LS_I32, 1 + m->label.rank, ls_shape(ls_item(batch, 1)), y);
    free(y);
    return ls_tensors(2, (ls_tensor *[]){ ls_item(batch, 0), label });
}

static void parameters(void **state)
{
    (void)state;
    size_t before = memory();
    assert_int_equal(all[0].parameters, 347146);
    assert_int_equal(all[1].parameters, 121930);
    assert_int_equal(all[2].parameters, 5824522);
    assert_int_equal(all[3].parameters, 272186);
    assert_int_equal(all[4].parameters, 3257856);
    const char *what;
    assert_null(ls_model_known(N_MODELS, &what));
    assert_null(what);
    assert_null(ls_model_known(-1, NULL));
    for (int i = 0; i < N_MODELS; i++) {
        assert_string_equal(ls_model_known(i, &what), all[i].name);
        ls_model *m = ls_model_named(all[i].name);
        assert_non_null(m);
        assert_string_equal(ls_model_name(m), all[i].name);
        assert_string_equal(ls_model_what(m), what);
        assert_true(strlen(what) > 0);
        assert_int_equal(ls_model_count(m), 0); /* not built */
        assert_int_equal(ls_model_parameters(m), 0);
        assert_int_equal(ls_model_build(m), LS_OK);
        assert_int_equal(ls_model_parameters(m), all[i].parameters);
        assert_int_equal(ls_model_count(m), all[i].variables);
        int trainable = 0;
        for (int k = 0; k < ls_model_count(m); k++)
            trainable += ls_variable_trainable(ls_model_variables(m)[k]);
        assert_int_equal(trainable, all[i].trainable);
        ls_model_free(m);
    }
    assert_int_equal(memory(), before);
}

static ls_variable *find(const ls_model *m, const char *name)
{
    for (int i = 0; i < ls_model_count(m); i++)
        if (!strcmp(ls_variable_name(ls_model_variables(m)[i]), name))
            return ls_model_variables(m)[i];
    fail_msg("%s has no variable '%s'", ls_model_name(m), name);
    return NULL;
}

static void names(void **state)
{
    (void)state;
    static const char *const some[N_MODELS][3] = {
        { "conv/kernel", "conv/bias", "out/bias" },
        { "conv2/kernel", "hidden/kernel", "hidden/bias" },
        { "hidden1/kernel", "hidden2/bias", "out/kernel" },
        { "block3/bn1/scale", "block4/shortcut/kernel", "stem/bn/variance" },
        { "tokens/table", "layer4/qkv/kernel", "norm/offset" },
    };
    for (int i = 0; i < N_MODELS; i++) {
        ls_model *m = ls__built(all[i].name);
        for (int k = 0; k < 3; k++)
            find(m, some[i][k]);
        ls_variable *const *v = ls_model_variables(m);
        for (int a = 0; a < ls_model_count(m); a++)
            for (int b = 0; b < a; b++)
                if (!strcmp(ls_variable_name(v[a]), ls_variable_name(v[b])))
                    fail_msg("%s: two variables are called %s", all[i].name,
                             ls_variable_name(v[a]));
        ls_model_free(m);
    }
}

/* A start is a function of the seed, and of nothing that was drawn for other ends. */
static void the_seed_decides(void **state)
{
    (void)state;
    for (int i = 0; i < N_MODELS; i++)
        LS_FRAME {
            ls_random_seed(7);
            ls_model *a = ls__built(all[i].name);
            ls_random_seed(7);
            ls_random_uniform(LS_F32, LS_DIMS(3), 0, 1);
            ls_model *b = ls__built(all[i].name);
            ls_random_seed(8);
            ls_model *c = ls__built(all[i].name);
            bool differs = false;
            for (int k = 0; k < ls_model_count(a); k++) {
                ls_tensor *x = ls_read(ls_model_variables(a)[k]);
                ls_tensor *y = ls_read(ls_model_variables(b)[k]);
                ls_tensor *z = ls_read(ls_model_variables(c)[k]);
                assert_memory_equal(ls_data(x), ls_data(y), ls_size_in_bytes(x));
                differs |= memcmp(ls_data(x), ls_data(z), ls_size_in_bytes(x)) != 0;
            }
            assert_true(differs);
            ls_model_free(a);
            ls_model_free(b);
            ls_model_free(c);
        }
}

static float train_once(ls_model *m, ls_optimizer *adam, ls_value *batch)
{
    float loss = NAN;
    LS_FRAME {
        ls_tape *tape = ls_tape_open();
        ls_tensor *l = ls__mean_loss(m, batch, true);
        assert_int_equal(ls_rank(l), 0);
        loss = ls_to_float(l);
        ls_status st = ls_minimize(adam, tape, l, ls_model_count(m), ls_model_variables(m));
        if (st)
            fail_msg("%s: %s", ls_model_name(m), ls_error_report());
    }
    return loss;
}

static void learns(void **state)
{
    (void)state;
    for (int i = 0; i < N_MODELS; i++)
        LS_FRAME {
            ls_random_seed(1);
            ls_model *m = ls__built(all[i].name);
            ls_optimizer *adam = ls_adam(NULL);
            ls_value *batch = make_batch(m, SAMPLES, all[i].classes);
            ls_tensor *logits = ls_model_forward(m, ls_item(batch, 0), false);
            int rank = ls_rank(ls_item(batch, 1));
            assert_int_equal(ls_rank(logits), rank + 1);
            for (int k = 0; k < rank; k++)
                assert_int_equal(ls_dim(logits, k), ls_dim(ls_item(batch, 1), k));
            assert_int_equal(ls_dim(logits, -1), all[i].classes);

            float first = train_once(m, adam, batch), second = train_once(m, adam, batch);
            if (!(fabs(first - log(all[i].classes)) <= all[i].slack))
                fail_msg("%s starts with a loss of %g", all[i].name, (double)first);
            if (!(second < first))
                fail_msg("%s: the loss goes from %g to %g", all[i].name, (double)first,
                         (double)second);
            ls_optimizer_free(adam);
            ls_model_free(m);
        }
}

/* Every trainable variable gets a gradient that is not zero: none is forgotten by
 * forward, nor used in place of another. */
static void all_variables_are_used(void **state)
{
    (void)state;
    for (int i = 0; i < N_MODELS; i++)
        LS_FRAME {
            ls_random_seed(1);
            ls_model *m = ls__built(all[i].name);
            ls_value *batch = make_batch(m, SAMPLES, all[i].classes);
            ls_tape *tape = ls_tape_open();
            ls_tensor *loss = ls__mean_loss(m, batch, true);
            ls_tape_stop(tape);
            int count = ls_model_count(m);
            ls_tensor *weights[MOST_VARIABLES];
            assert_true(count <= MOST_VARIABLES);
            for (int k = 0; k < count; k++)
                weights[k] = ls_read(ls_model_variables(m)[k]);
            ls_value *gradients = ls_gradients(tape, ls_leaf(loss), ls_tensors(count, weights));
            for (int k = 0; k < count; k++) {
                ls_variable *v = ls_model_variables(m)[k];
                ls_tensor *g = ls_densify(ls_item(gradients, k));
                float size = ls_to_float(ls_max(ls_abs(g), LS_ALL_AXES, false));
                if (ls_variable_trainable(v) != (size > 0))
                    fail_msg("%s: the largest gradient of %s is %g", all[i].name,
                             ls_variable_name(v), (double)size);
            }
            ls_model_free(m);
        }
}

/* The future of a text does not show in the logits of its past, and a shorter text has
 * the logits that the beginning of a longer one has. */
static void gpt_is_causal(void **state)
{
    (void)state;
    LS_FRAME {
        ls_random_seed(1);
        ls_model *m = ls__built("gpt");
        int32_t text[128];
        for (int i = 0; i < 128; i++)
            text[i] = i * 37 % 256;
        ls_tensor *a = ls_model_forward(m, ls_from(LS_I32, LS_DIMS(1, 128), text), false);
        ls_tensor *c = ls_model_forward(m, ls_from(LS_I32, LS_DIMS(1, 50), text), false);
        text[60] = 255 - text[60];
        ls_tensor *b = ls_model_forward(m, ls_from(LS_I32, LS_DIMS(1, 128), text), false);
        assert_int_equal(ls_dim(c, 1), 50);
        const float *la = ls_data(a), *lb = ls_data(b), *lc = ls_data(c);
        double past = 0, future = 0, shorter = 0;
        for (int i = 0; i < 128 * 256; i++) {
            double d = fabs((double)la[i] - (double)lb[i]);
            *(i < 60 * 256 ? &past : &future) += d;
            if (i < 50 * 256)
                shorter = fmax(shorter, fabs((double)la[i] - (double)lc[i]));
        }
        assert_true(past == 0);
        assert_true(future > 1);
        assert_true(shorter < 1e-4); /* products of another size round differently */
        ls_model_free(m);
    }
}

/* ---- refused -------------------------------------------------------------------------- */

static void bad_input(void **state)
{
    (void)state;
    size_t before = memory();
    assert_null(ls_model_named("vgg"));
    assert_non_null(strstr(ls_error_text(), "vgg"));
    assert_non_null(strstr(ls_error_hint(), "cnn, cnn2, mlp, resnet, gpt"));
    failed(LS_NOT_FOUND);
    assert_null(ls_model_named(""));
    failed(LS_NOT_FOUND);
    assert_null(ls_model_named(NULL));
    failed(LS_INVALID);
    ls_model_free(NULL);
    assert_int_equal(ls_model_count(NULL), 0);
    assert_null(ls_model_forward(NULL, NULL, true));
    failed(LS_INVALID);
    LS_FRAME {
        ls_model *cnn = ls__built("cnn"), *gpt = ls__built("gpt");
        static const struct {
            bool text;
            ls_dtype dtype;
            int rank;
            int64_t dims[4];
        } bad[] = { { false, LS_F32, 3, { 2, 28, 28 } },    { false, LS_F32, 4, { 2, 28, 28, 3 } },
                    { false, LS_F32, 4, { 2, 27, 28, 1 } }, { false, LS_U8, 4, { 2, 28, 28, 1 } },
                    { true, LS_I32, 2, { 2, 129 } },        { true, LS_I32, 2, { 2, 0 } },
                    { true, LS_F32, 2, { 2, 128 } },        { true, LS_I32, 1, { 128 } } };
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            ls_tensor *x = ls_zeros(bad[i].dtype, bad[i].rank, bad[i].dims);
            assert_null(ls_model_forward(bad[i].text ? gpt : cnn, x, true));
            assert_non_null(strstr(ls_error_text(), bad[i].text ? "[128]" : "[28,28,1]"));
            failed(LS_SHAPE);
        }
        ls_tensor *x = ls_zeros(LS_F32, LS_DIMS(2, 28, 28, 1));
        ls_tensor *y = ls_full(LS_I32, LS_DIMS(2), 10); /* there is no class 10 */
        assert_null(ls__mean_loss(cnn, ls_tensors(2, (ls_tensor *[]){ x, y }), true));
        assert_int_not_equal(ls_error(), LS_OK);
        ls_model_free(cnn);
        ls_model_free(gpt);
    }
    assert_int_equal(memory(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(parameters, clean),
        cmocka_unit_test_setup(names, clean),
        cmocka_unit_test_setup(the_seed_decides, clean),
        cmocka_unit_test_setup(learns, clean),
        cmocka_unit_test_setup(all_variables_are_used, clean),
        cmocka_unit_test_setup(gpt_is_causal, clean),
        cmocka_unit_test_setup(bad_input, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
