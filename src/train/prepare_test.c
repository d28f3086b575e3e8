/*
 * .prepare of a trainer: what replicas make of their rows is what the model would have been given by a
 * map of the dataset, in training, testing and predicting; and what it must not give is an
 * error of the step.
 */
#include "fit_test_support.h"

#include <string.h>

/* Bytes instead of numbers. */
static ls_dataset *bytes(int rows)
{
    static uint8_t x[2 * 100];
    static int32_t y[100];
    for (int i = 0; i < rows; i++) {
        x[2 * i] = (uint8_t)(i * 37);
        x[2 * i + 1] = (uint8_t)(i * 53);
        y[i] = (x[2 * i] > 127) + 2 * (x[2 * i + 1] > 127);
    }
    return ls_slices(ls_tensors(2, (ls_tensor *[]){ ls_from(LS_U8, LS_DIMS(rows, 2), x),
                                                    ls_from(LS_I32, LS_DIMS(rows), y) }));
}

static ls_tensor *to_numbers(ls_tensor *x, void *user)
{
    return ls_scale(ls_cast(x, LS_F32), *(const double *)user);
}

static ls_value *map_to_numbers(ls_value *batch, void *user)
{
    return ls_tensors(2, (ls_tensor *[]){ to_numbers(ls_item(batch, 0), user), ls_item(batch, 1) });
}

static double factor = 1.0 / 255;

static ls_trainer *trainer(ls_strategy *s, bool prepares)
{
    ls_random_seed(3); /* without dropout: what is drawn depends on the operators before it */
    return ls_trainer_new(LS_TRAINER(.strategy = s, .model = small_model(0), .global_batch = BATCH,
                                     .prepare = prepares ? to_numbers : NULL,
                                     .prepare_user = &factor));
}

static ls_dataset *data(int rows, bool prepares)
{
    ls_dataset *d = ls_batch(bytes(rows), BATCH);
    return prepares ? d : ls_map(d, LS_MAP(.fn = map_to_numbers, .user = &factor));
}

typedef struct outcome {
    float weights[16];
    double test_loss;
    float outputs[4];
} outcome;

static ls_status keep_outputs(ls_tensor *outputs, ls_value *batch, void *user)
{
    (void)batch;
    memcpy(((outcome *)user)->outputs, ls_data(outputs), sizeof(float) * 4);
    return LS_OK;
}

static outcome trained(int v, int devices, bool prepares)
{
    outcome got = { 0 };
    ls_strategy *s = replicas(v, devices);
    ls_trainer *t = trainer(s, prepares);
    LS_FRAME {
        assert_int_equal(ls_fit(t, LS_FIT(.data = data(POINTS, prepares),
                                          .test = data(30, prepares), .epochs = 2)),
                         LS_OK);
        got.test_loss = ls_trainer_value(t, "test_loss");
        ls_tensor *w = ls_read(ls_model_variables(ls_trainer_model(t))[0]);
        memcpy(got.weights, ls_data(w), sizeof got.weights);
        assert_int_equal(ls_predict(t, data(5, prepares), keep_outputs, &got), LS_OK);
    }
    ls_trainer_free(t);
    ls_strategy_free(s);
    assert_clean();
    return got;
}

static void assert_near(const float *a, const float *b, int n)
{
    for (int i = 0; i < n; i++)
        assert_float_equal(a[i], b[i], 1e-5);
}

/* The same numbers; the same bits on any devices. (Not those of the map: a product may be made by another
 * kernel where its operands lie elsewhere, and that is another program.) */
static void the_same_as_a_map(void **state)
{
    (void)state;
    for (int v = 1; v <= 3; v++) {
        outcome mapped = trained(v, 1, false), prepared = trained(v, 1, true);
        outcome elsewhere = trained(v, v > 1 ? 2 : 1, true);
        assert_near(mapped.weights, prepared.weights, 16);
        assert_near(mapped.outputs, prepared.outputs, 4);
        assert_float_equal(mapped.test_loss, prepared.test_loss, 1e-5);
        assert_memory_equal(&prepared, &elsewhere, sizeof prepared);
    }
}

static ls_tensor *of_another_shape(ls_tensor *x, void *user)
{
    (void)user;
    return ls_reshape(ls_cast(x, LS_F32), 1, (const int64_t[]){ -1 });
}

static ls_tensor *fails(ls_tensor *x, void *user)
{
    (void)x, (void)user;
    return NULL;
}

static void what_it_must_not_give(void **state)
{
    (void)state;
    ls_tensor *(*const wrong[])(ls_tensor *, void *) = { of_another_shape, fails };
    for (int i = 0; i < 2; i++) {
        ls_trainer *t = ls_trainer_new(LS_TRAINER(.model = small_model(0), .prepare = wrong[i]));
        LS_FRAME
            assert_int_not_equal(ls_fit(t, LS_FIT(.data = data(24, true))), LS_OK);
        assert_int_not_equal(ls_error(), LS_OK);
        ls_trainer_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_as_a_map),
        cmocka_unit_test(what_it_must_not_give),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
