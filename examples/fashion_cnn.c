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

static ls_tensor *logits(ls_tensor *images)
{
    ls_tensor *x = ls_scale(ls_cast(ls_expand_dims(images, -1), LS_F32), 1.0 / 255);
    ls_tensor *h = ls_relu(ls_add(ls_conv2d(x, ls_read(p[0]), NULL), ls_read(p[1])));
    h = ls_flatten_rows(ls_max_pool2d(h, 2, 2, LS_VALID));
    h = ls_relu(ls_dense(h, ls_read(p[2]), ls_read(p[3])));
    return ls_dense(h, ls_read(p[4]), ls_read(p[5]));
}

static ls_tensor *rows(ls_tensor *data, ls_tensor *order, int64_t begin, int64_t count)
{
    return ls_gather(data, ls_slice(order, LS_DIMS(begin), (int64_t[]){ count }), 0);
}

/* A permutation of 0 .. n - 1: the order of n random keys. */
static ls_tensor *shuffled(int64_t n)
{
    return ls_item(ls_top_k(ls_random_uniform(LS_F64, LS_DIMS(n), 0, 1), n), 1);
}

/* One step, written as ordinary C: recorded the first time it is called, replayed after. */
static ls_value *train_step(ls_value *batch, void *adam)
{
    ls_tape *tape = ls_tape_open();
    ls_tensor *y = ls_cast(ls_item(batch, 1), LS_I32);
    ls_tensor *losses = ls_sparse_softmax_xent(logits(ls_item(batch, 0)), y);
    ls_tensor *loss = ls_mean(losses, LS_ALL_AXES, false);
    ls_minimize(adam, tape, loss, PARAMETERS, p);
    return ls_leaf(loss);
}

static void train(ls_tensor *images, ls_tensor *labels)
{
    ls_optimizer *adam = ls_adam(NULL);
    ls_function *step = ls_trace(train_step, adam);
    ls_tensor *order = shuffled(ls_count(labels));
    int64_t steps = ls_count(labels) / BATCH;
    clock_t start = clock();
    for (int64_t i = 0; i < steps && !ls_error_pending(); i++)
        LS_FRAME {
            ls_tensor *batch[] = { rows(images, order, i * BATCH, BATCH),
                                   rows(labels, order, i * BATCH, BATCH) };
            ls_value *loss = ls_function_call(step, ls_tensors(2, batch));
            if ((i + 1) % 100 == 0 || i + 1 == steps)
                printf("step %4lld of %lld  loss %.4f  %.0f images/s\n", (long long)i + 1,
                       (long long)steps, ls_to_float(ls_leaf_tensor(loss)),
                       (double)((i + 1) * BATCH) * CLOCKS_PER_SEC / (double)(clock() - start));
            fflush(stdout);
        }
    ls_function_free(step);
    ls_optimizer_free(adam);
}

/* How many of a batch are classified right: traced for the batch, and for what is left over. */
static ls_value *count_hits(ls_value *batch, void *user)
{
    (void)user;
    ls_tensor *y = ls_cast(ls_item(batch, 1), LS_I64);
    ls_tensor *hits = ls_equal(ls_argmax(logits(ls_item(batch, 0)), -1), y);
    return ls_leaf(ls_sum(ls_cast(hits, LS_I64), LS_ALL_AXES, false));
}

static double accuracy(ls_tensor *images, ls_tensor *labels)
{
    const int64_t n = ls_count(labels), most = 1000;
    ls_function *test = ls_trace(count_hits, NULL);
    double right = 0;
    for (int64_t at = 0; at < n; at += most)
        LS_FRAME {
            int64_t count = n - at < most ? n - at : most;
            ls_tensor *batch[] = { ls_slice(images, LS_DIMS(at, 0, 0), (int64_t[]){ count, -1, -1 }),
                                   ls_slice(labels, LS_DIMS(at), (int64_t[]){ count }) };
            right += (double)ls_to_int(ls_leaf_tensor(ls_function_call(test, ls_tensors(2, batch))));
        }
    ls_function_free(test);
    return right / (double)n;
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

    ls_value *training = ls_read_fashion_mnist("train"), *test = ls_read_fashion_mnist("test");
    train(ls_item(training, 0), ls_item(training, 1));
    double share = accuracy(ls_item(test, 0), ls_item(test, 1));
    for (int i = 0; i < PARAMETERS; i++)
        ls_variable_free(p[i]);

    if (ls_error_pending()) {
        fprintf(stderr, "fashion_cnn: %s\n", ls_error_report());
        return 1;
    }
    printf("test accuracy %.2f %%\n", 100 * share);
    return 0;
}
