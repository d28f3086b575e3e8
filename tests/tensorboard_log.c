/*
 * Trains a small convolutional network on two replicas and logs it: what tensorboard_test.py looks at.
 * Beside the log it writes what it logged, as raw numbers. Usage: tensorboard_log DIRECTORY
 */
#include <lockstep.h>
#include <lockstep/train.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { STEPS = 8, VARIABLES = 6 };

static ls_variable *v[VARIABLES];

static ls_value *train_step(ls_value *batch, void *optimizer)
{
    ls_tensor *x = ls_item(batch, 0), *y = ls_item(batch, 1);
    ls_tape *tape = ls_tape_open();
    ls_tensor *h = ls_add(ls_conv2d(x, ls_read(v[0]), NULL), ls_read(v[1]));
    h = ls_flatten_rows(ls_max_pool2d(ls_relu(h), 2, 2, LS_VALID));
    h = ls_relu(ls_dense(h, ls_read(v[2]), ls_read(v[3])));
    h = ls_dense(h, ls_read(v[4]), ls_read(v[5]));
    ls_tensor *loss = ls_mean(ls_sparse_softmax_xent(h, y), LS_ALL_AXES, false);
    ls_minimize(optimizer, tape, loss, VARIABLES, v);
    return ls_leaf(loss);
}

static void make_variables(void)
{
    v[0] = ls_variable_new("conv/kernel", ls_glorot_uniform(LS_F32, LS_DIMS(3, 3, 1, 8)), true);
    v[1] = ls_variable_new("conv/bias", ls_zeros(LS_F32, LS_DIMS(8)), true);
    v[2] = ls_variable_new("hidden/kernel", ls_glorot_uniform(LS_F32, LS_DIMS(200, 16)), true);
    v[3] = ls_variable_new("hidden/bias", ls_zeros(LS_F32, LS_DIMS(16)), true);
    v[4] = ls_variable_new("out/kernel", ls_glorot_uniform(LS_F32, LS_DIMS(16, 10)), true);
    v[5] = ls_variable_new("out/bias", ls_zeros(LS_F32, LS_DIMS(10)), true);
}

/* As raw numbers, for who compares. */
static void keep(const char *directory, const char *name, int step, ls_tensor *t)
{
    char path[512];
    size_t bytes = ls_size_in_bytes(t);
    void *data = malloc(bytes);
    snprintf(path, sizeof path, "%s/%s_%d.raw", directory, name, step);
    FILE *f = fopen(path, "wb");
    if (!f || !data || ls_copy_out(t, data, bytes) || fwrite(data, 1, bytes, f) != bytes ||
        fclose(f)) {
        fprintf(stderr, "tensorboard_log: cannot write '%s'\n", path);
        exit(1);
    }
    free(data);
}

static void log_step(ls_events *e, const char *directory, int step, double loss)
{
    ls_tensor *seen = ls_scalar(LS_F64, loss);
    ls_events_scalar(e, step, "loss", loss);
    keep(directory, "loss", step, seen);
    ls_events_histogram(e, step, "conv/kernel", ls_read(v[0]));
    keep(directory, "conv", step, ls_read(v[0]));
    ls_events_histogram(e, step, "hidden/kernel", ls_read(v[2]));
    keep(directory, "hidden", step, ls_read(v[2]));
}

/* Edge cases, which TensorBoard must take, too. */
static void log_others(ls_events *e)
{
    const float some[] = { NAN, 1, 2, INFINITY, -INFINITY, 4 };
    ls_events_histogram(e, 0, "empty", ls_zeros(LS_F32, LS_DIMS(0, 3)));
    ls_events_histogram(e, 0, "equal", ls_ones(LS_I32, LS_DIMS(7)));
    ls_events_histogram(e, 0, "with_nan", ls_from(LS_F32, LS_DIMS(6), some));
    ls_events_scalar(e, 0, "not_finite", NAN);
    ls_events_scalar(e, 3000000000, "far/along", -2.5);
    ls_events_text(e, 0, "about", "# A run\n\nof *two* replicas: \xe2\x82\xac & <b>");
}

static void train(ls_strategy *s, ls_function *step, const char *directory, const char *logs)
{
    ls_events *e = ls_events_open(logs);
    for (int i = 0; i < STEPS && !ls_error_pending(); i++)
        LS_FRAME {
            ls_tensor *batch[] = { ls_random_normal(LS_F32, LS_DIMS(4, 12, 12, 1), 0, 1),
                                   ls_from(LS_I32, LS_DIMS(4), (const int32_t[]){ 1, 7, 2, 9 }) };
            ls_value *losses = ls_run(s, step, ls_tensors(2, batch));
            log_step(e, directory, i, ls_to_float(ls_reduce(s, LS_MEAN, losses, LS_NO_AXIS)));
        }
    LS_FRAME
        log_others(e);
    ls_events_graph(e, step);
    ls_events_close(e);
}

int main(int argc, char **argv)
{
    char logs[512];
    if (argc != 2)
        return 2;
    snprintf(logs, sizeof logs, "%s/logs/run1", argv[1]);
    ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = "/cpu:0,/cpu:1"));
    ls_optimizer *adam = NULL;
    LS_SCOPE (s)
        LS_FRAME {
            make_variables();
            adam = ls_adam(NULL);
        }
    ls_function *step = ls_trace_with(LS_TRACE(.name = "train_step"), train_step, adam);
    train(s, step, argv[1], logs);
    ls_function_free(step);
    ls_optimizer_free(adam);
    for (int i = 0; i < VARIABLES; i++)
        ls_variable_free(v[i]);
    ls_strategy_free(s);
    if (ls_error_pending()) {
        fprintf(stderr, "tensorboard_log: %s\n", ls_error_report());
        return 1;
    }
    return 0;
}
