/*
 * The models, and three that have every layer, against Keras: golden_models.txt (made by
 * tools/golden_models.py) has what they give for weights and inputs that are a function of the
 * variable's number in creation order and of the element's, so the order is checked too.
 */
#include <lockstep.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/case.h"
#include "tensor/test_support.h"
#include "train/model.h"

enum { INPUT = 1000, MOST_NUMBERS = 512 };

static const double tolerance = 2e-5; /* of a logit about 1, after twenty layers */

static uint32_t mixed(uint32_t element, uint32_t number)
{
    uint32_t h = element * 0x9E3779B1u + number * 0x85EBCA77u;
    h ^= h >> 15;
    h *= 0x2C1B3C6Du;
    return h ^ h >> 12;
}

/* -0.5 up to 0.5 */
static double unit(uint32_t element, uint32_t number)
{
    return (mixed(element, number) >> 8) / 16777216.0 - 0.5;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);
    return n >= k && !strcmp(text + n - k, end);
}

/* What the variable with this number holds; see Weights in golden_models.py. */
static void fill(ls_variable *v, uint32_t number)
{
    ls_tensor *old = ls_read(v);
    int64_t count = ls_count(old), fan_in = count / ls_dim(old, -1);
    const char *name = ls_variable_name(v);
    double around = ends_with(name, "/scale") || ends_with(name, "/variance") ? 1 : 0;
    float *data = malloc((size_t)count * sizeof *data);
    assert_non_null(data);
    for (int64_t i = 0; i < count; i++) {
        double u = unit((uint32_t)i, number);
        data[i] = (float)(ls_rank(old) == 1 ? around + 0.2 * u : u * sqrt(12.0 / (double)fan_in));
    }
    assert_int_equal(ls_assign(v, ls_from(LS_F32, ls_rank(old), ls_shape(old), data)), LS_OK);
    free(data);
}

/* A text of 128 bytes, two of 6 words, two pictures. */
static ls_tensor *make_input(const ls_model *m)
{
    if (m->input.dtype == LS_I32) {
        const bool bytes = m->input.dims[0] == 128;
        int32_t ids[128];
        for (uint32_t i = 0; i < 128; i++)
            ids[i] = (int32_t)(mixed(i, INPUT) & (bytes ? 255 : 15));
        return bytes ? ls_from(LS_I32, LS_DIMS(1, 128), ids) : ls_from(LS_I32, LS_DIMS(2, 6), ids);
    }
    float pixels[2 * 28 * 28];
    for (uint32_t i = 0; i < 2 * 28 * 28; i++)
        pixels[i] = (float)(unit(i, INPUT) + 0.5);
    const int64_t *d = m->input.dims;
    return ls_from(LS_F32, LS_DIMS(2, d[0], d[1], d[2]), pixels);
}

/* ---- all layers -------------------------------------------------------------------------------- */

static ls_model *layers(void)
{
    ls_model *m = ls_model_new(LS_MODEL(.name = "layers", .input = "f32[12,10,3]"));
    ls_conv_layer(m, LS_CONV_LAYER(.filters = 4, .window = 5, .stride = 2, .padding = LS_SAME,
                                   .activation = ls_relu));
    ls_batch_norm_layer(m, LS_BATCH_NORM_LAYER(.momentum = 0.9, .epsilon = 1e-2));
    ls_avg_pool_layer(m, 2);
    ls_layer_norm_layer(m, NULL, 0);
    ls_conv_layer(m,
                  LS_CONV_LAYER(.filters = 5, .window = 2, .no_bias = true, .activation = ls_tanh));
    ls_flatten_layer(m);
    ls_dense_layer(m, LS_DENSE_LAYER(.units = 7, .no_bias = true));
    ls_activation_layer(m, ls_sigmoid);
    ls_dropout_layer(m, 0.5);
    ls_dense_layer(m, LS_DENSE_LAYER(.units = 3));
    return m;
}

static ls_model *pooled(void)
{
    ls_model *m = ls_model_new(LS_MODEL(.name = "pooled", .input = "f32[12,10,3]"));
    ls_conv_layer(m, LS_CONV_LAYER(.filters = 4, .stride = 3));
    ls_global_avg_pool_layer(m);
    ls_dense_layer(m, LS_DENSE_LAYER(.units = 3));
    return m;
}

static ls_model *words(void)
{
    ls_model *m = ls_model_new(LS_MODEL(.name = "words", .input = "i32[6]"));
    ls_embedding_layer(m, NULL, 16, 5, 0);
    ls_dense_layer(m, LS_DENSE_LAYER(.units = 4, .activation = ls_relu));
    ls_layer_norm_layer(m, NULL, 1e-2);
    ls_flatten_layer(m);
    ls_dense_layer(m, LS_DENSE_LAYER(.units = 2));
    return m;
}

static ls_model *make_model(const char *name)
{
    ls_model *m = !strcmp(name, "layers")   ? layers()
                  : !strcmp(name, "pooled") ? pooled()
                  : !strcmp(name, "words")  ? words()
                                            : ls_model_named(name);
    if (ls_model_build(m))
        fail_msg("%s", ls_error_report());
    for (int i = 0; i < ls_model_count(m); i++)
        LS_FRAME
            fill(ls_model_variables(m)[i], (uint32_t)i);
    return m;
}

/* The numbers a line is about: logits (of gpt, every 9th place's every 17th), or a variable. */
static int answer(ls_model *m, const char *what, double *out)
{
    bool train = !strcmp(what, "train");
    int n = 0;
    if (train || !strcmp(what, "evaluate")) {
        ls_tensor *y = ls_model_forward(m, make_input(m), train);
        if (!y)
            fail_msg("%s", ls_error_report());
        const float *at = ls_data(y);
        bool text = ls_rank(y) == 3;
        for (int64_t row = 0; row < ls_dim(y, -2); row += text ? 9 : 1)
            for (int64_t i = 0; i < ls_dim(y, -1); i += text ? 17 : 1)
                out[n++] = (double)at[row * ls_dim(y, -1) + i];
        return n;
    }
    for (int i = 0; i < ls_model_count(m); i++)
        if (!strcmp(ls_variable_name(ls_model_variables(m)[i]), what)) {
            ls_tensor *t = ls_read(ls_model_variables(m)[i]);
            for (const float *at = ls_data(t); n < ls_count(t); n++)
                out[n] = (double)at[n];
        }
    return n;
}

static void check_line(ls_model *m, const char *what, char *rest)
{
    double got[MOST_NUMBERS];
    int count = 0, n = 0;
    LS_FRAME
        count = answer(m, what, got);
    for (char *word = strtok(rest, " \n"); word; word = strtok(NULL, " \n"), n++) {
        double want = strtod(word, NULL);
        if (n < count && !(fabs(got[n] - want) <= tolerance * fmax(1, fabs(want))))
            fail_msg("%s, %s: number %d is %.9g, Keras says %.9g", ls_model_name(m), what, n,
                     got[n], want);
    }
    if (n == 0 && !strcmp(what, "train"))
        return; /* it was to leave its statistics */
    if (n == 0 || n != count)
        fail_msg("%s, %s: %d numbers, Keras has %d", ls_model_name(m), what, count, n);
}

static void models_agree_with_keras(void **state)
{
    (void)state;
    char path[512], line[8192], name[32], what[64];
    snprintf(path, sizeof path, "%s/golden_models.txt", case_root());
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("%s is not there", path);
    ls_model *m = NULL;
    int lines = 0, models = 0, skip;
    while (fgets(line, sizeof line, file)) {
        if (line[0] == '#')
            continue;
        assert_int_equal(sscanf(line, "%31s %63s%n", name, what, &skip), 2);
        if (!m || strcmp(ls_model_name(m), name)) {
            ls_model_free(m);
            m = make_model(name);
            models++;
        }
        check_line(m, what, line + skip);
        lines++;
    }
    fclose(file);
    ls_model_free(m);
    assert_int_equal(models, 8);
    assert_int_equal(lines, 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test_setup(models_agree_with_keras, clean) };
    return cmocka_run_group_tests_name("models against Keras", tests, NULL, NULL);
}
