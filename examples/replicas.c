/*
 * Trains a network on Fashion-MNIST with two replicas, each on its half of every batch, and
 * prints a digest of the weights. Where the replicas are is not the program's business:
 *
 *     replicas "/cpu:0,/cpu:1" 100       # a device each, 100 steps
 *     replicas /cpu:0 100                # taking turns on one: the same digest
 */
#include <lockstep.h>

#include <stdio.h>
#include <stdlib.h>

enum { REPLICAS = 2, ROWS = 32 /* for each */, PARAMETERS = 4 };
static ls_variable *p[PARAMETERS];

/* Made in the scope of the strategy, so every replica has them. */
static void make_parameters(void)
{
    p[0] = ls_variable_new("hidden", ls_glorot_uniform(LS_F32, LS_DIMS(784, 64)), true);
    p[1] = ls_variable_new("hidden_bias", ls_zeros(LS_F32, LS_DIMS(64)), true);
    p[2] = ls_variable_new("out", ls_glorot_uniform(LS_F32, LS_DIMS(64, 10)), true);
    p[3] = ls_variable_new("out_bias", ls_zeros(LS_F32, LS_DIMS(10)), true);
}

/* One replica's part of a step. Gradients add up over replicas: the loss is per sample of all. */
static ls_value *train_step(ls_value *batch, void *adam)
{
    ls_tape *tape = ls_tape_open();
    ls_tensor *x = ls_scale(ls_cast(ls_flatten_rows(ls_item(batch, 0)), LS_F32), 1.0 / 255);
    ls_tensor *h = ls_relu(ls_dense(x, ls_read(p[0]), ls_read(p[1])));
    ls_tensor *losses = ls_sparse_softmax_xent(ls_dense(h, ls_read(p[2]), ls_read(p[3])),
                                               ls_cast(ls_item(batch, 1), LS_I32));
    ls_tensor *loss = ls_scale(ls_sum(losses, LS_ALL_AXES, false), 1.0 / (REPLICAS * ROWS));
    ls_minimize(adam, tape, loss, PARAMETERS, p);
    return ls_leaf(loss);
}

/* Batches for all replicas together, epoch after epoch. */
static ls_dataset *batches(void)
{
    ls_dataset *d = ls_shuffle(ls_fashion_mnist("train"), 10000, 1);
    return ls_batch(ls_repeat(d, -1), REPLICAS * ROWS);
}

/* FNV-1a of all the bytes of all the weights. */
static unsigned long long digest(void)
{
    unsigned long long hash = 0xcbf29ce484222325;
    for (int i = 0; i < PARAMETERS; i++) {
        ls_tensor *weights = ls_read(p[i]);
        const unsigned char *bytes = ls_data(weights);
        for (int64_t b = 0; bytes && b < 4 * ls_count(weights); b++)
            hash = (hash ^ bytes[b]) * 0x100000001b3;
    }
    return hash;
}

int main(int argc, char **argv)
{
    int64_t steps = argc > 2 ? atoll(argv[2]) : 100;
    const char *devices = argc > 1 ? argv[1] : "/cpu:0,/cpu:1";
    ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = devices, .replicas = REPLICAS));
    LS_SCOPE (s)
        make_parameters();
    ls_optimizer *adam = ls_adam(NULL);
    ls_function *step = ls_trace(train_step, adam);
    ls_dataset *data = ls_distribute(s, ls_take(batches(), steps));
    int64_t n = 0;
    LS_FOR_EACH (batch, data) {
        ls_value *losses = ls_run(s, step, batch);
        if (!losses)
            break;
        ls_tensor *loss = ls_reduce(s, LS_SUM, losses, LS_NO_AXIS);
        if (++n % 20 == 0 || n == steps)
            printf("step %3lld  loss %.4f\n", (long long)n, ls_to_float(loss));
    }
    printf("weights %016llx\n", digest());
    ls_function_free(step);
    ls_optimizer_free(adam);
    for (int i = 0; i < PARAMETERS; i++)
        ls_variable_free(p[i]);
    ls_strategy_free(s);
    if (ls_error_pending())
        return fprintf(stderr, "replicas: %s\n", ls_error_report()), 1;
    return 0;
}
