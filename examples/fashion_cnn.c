/*
 * Trains a small convolutional network on Fashion-MNIST for one epoch on one
 * device, with a traced step, and prints its accuracy on the test images. `make
 * train` runs it.
 */
#include <lockstep.h>

#include <stdio.h>
#include <time.h>

enum { BATCH = 64, PARAMETERS = 6 };
static ls_variable *p[PARAMETERS];

/* ---- data ----------------------------------------------------------------------------------- */

/* A batch as the network takes it: pixels from 0 to 1, labels as indices. */
static ls_value *to_numbers(ls_value *batch, void *user)
{
    (void)user;
    ls_tensor *images = ls_scale(ls_cast(ls_item(batch, 0), LS_F32), 1.0 / 255);
    ls_tensor *labels = ls_cast(ls_item(batch, 1), LS_I32);
    return ls_tensors(2, (ls_tensor *[]){ images, labels });
}

/* Shuffled, in batches that are made ahead, on a thread of their own. */
static ls_dataset *training_data(void)
{
    ls_dataset *d = ls_shuffle(ls_fashion_mnist("train"), 60000, 1);
    d = ls_batch_full(d, BATCH);
    return ls_prefetch(ls_map(d, LS_MAP(.fn = to_numbers)), 2);
}

static ls_dataset *test_data(void)
{
    return ls_map(ls_batch(ls_fashion_mnist("test"), 1000), LS_MAP(.fn = to_numbers));
}

/* ---- the network ---------------------------------------------------------------------------- */

static ls_tensor *logits(ls_tensor *images)
{
    ls_tensor *h = ls_relu(ls_add(ls_conv2d(images, ls_read(p[0]), NULL), ls_read(p[1])));
    h = ls_flatten_rows(ls_max_pool2d(h, 2, 2, LS_VALID));
    h = ls_relu(ls_dense(h, ls_read(p[2]), ls_read(p[3])));
    return ls_dense(h, ls_read(p[4]), ls_read(p[5]));
}

/* One step, written as ordinary C: recorded the first time it is called, replayed after. */
static ls_value *train_step(ls_value *batch, void *adam)
{
    ls_tape *tape = ls_tape_open();
    ls_tensor *losses = ls_sparse_softmax_xent(logits(ls_item(batch, 0)), ls_item(batch, 1));
    ls_tensor *loss = ls_mean(losses, LS_ALL_AXES, false);
    ls_minimize(adam, tape, loss, PARAMETERS, p);
    return ls_leaf(loss);
}

/* How many of a batch are classified right. */
static ls_value *count_hits(ls_value *batch, void *user)
{
    (void)user;
    ls_tensor *guesses = ls_cast(ls_argmax(logits(ls_item(batch, 0)), -1), LS_I32);
    ls_tensor *hits = ls_cast(ls_equal(guesses, ls_item(batch, 1)), LS_I64);
    return ls_leaf(ls_sum(hits, LS_ALL_AXES, false));
}

/* ---- training and testing ------------------------------------------------------------------- */

static double seconds(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void train(ls_dataset *data)
{
    ls_optimizer *adam = ls_adam(NULL);
    ls_function *step = ls_trace(train_step, adam);
    const int steps = (int)ls_cardinality(data);
    const double start = seconds();
    int n = 0;
    LS_FOR_EACH (batch, data) {
        ls_value *loss = ls_function_call(step, batch);
        if (!loss)
            break;
        if (++n % 100 == 0 || n == steps)
            printf("step %4d of %d  loss %.4f  %.0f images/s\n", n, steps,
                   ls_to_float(ls_leaf_tensor(loss)), n * BATCH / (seconds() - start));
        fflush(stdout);
    }
    ls_function_free(step);
    ls_optimizer_free(adam);
}

static double accuracy(ls_dataset *data)
{
    ls_function *test = ls_trace(count_hits, NULL);
    double right = 0, all = 0;
    LS_FOR_EACH (batch, data) {
        ls_value *hits = ls_function_call(test, batch);
        if (!hits)
            break;
        right += (double)ls_to_int(ls_leaf_tensor(hits));
        all += (double)ls_count(ls_item(batch, 1));
    }
    ls_function_free(test);
    return right / all;
}

int main(void)
{
    ls_random_seed(1);
    p[0] = ls_variable_new("conv", ls_glorot_uniform(LS_F32, LS_DIMS(3, 3, 1, 32)), true);
    p[1] = ls_variable_new("conv_bias", ls_zeros(LS_F32, LS_DIMS(32)), true);
    p[2] = ls_variable_new("hidden", ls_glorot_uniform(LS_F32, LS_DIMS(13 * 13 * 32, 64)), true);
    p[3] = ls_variable_new("hidden_bias", ls_zeros(LS_F32, LS_DIMS(64)), true);
    p[4] = ls_variable_new("out", ls_glorot_uniform(LS_F32, LS_DIMS(64, 10)), true);
    p[5] = ls_variable_new("out_bias", ls_zeros(LS_F32, LS_DIMS(10)), true);

    train(training_data());
    double share = accuracy(test_data());
    for (int i = 0; i < PARAMETERS; i++)
        ls_variable_free(p[i]);

    if (ls_error_pending()) {
        fprintf(stderr, "fashion_cnn: %s\n", ls_error_report());
        return 1;
    }
    printf("test accuracy %.2f %%\n", 100 * share);
    return 0;
}
