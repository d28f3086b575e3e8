/*
 * Trains a small network on Fashion-MNIST with ls_fit: two replicas, a test after every epoch, early
 * stop, checkpoints that a second start goes on from, and event files for TensorBoard.
 *
 *     fit run 5            # 5 epochs; checkpoints and events go to the folder `run`
 *     fit run 8            # goes on: 3 more, with the bits of 8 in one go
 */
#include <lockstep.h>

#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 128 /* for both replicas together */ };

/* Labels as indices. */
static ls_value *to_indices(ls_value *batch, void *user)
{
    (void)user;
    return ls_tensors(2, (ls_tensor *[]){ ls_item(batch, 0), ls_cast(ls_item(batch, 1), LS_I32) });
}

/* Pixels from 0 to 1: each replica's own. */
static ls_tensor *to_numbers(ls_tensor *x, void *user)
{
    (void)user;
    return ls_scale(ls_cast(x, LS_F32), 1.0 / 255);
}

static ls_dataset *batches(const char *which)
{
    ls_dataset *d = ls_fashion_mnist(which);
    if (which[1] == 'r') /* train */
        d = ls_shuffle(d, 60000, 1);
    return ls_map(ls_batch(d, BATCH), LS_MAP(.fn = to_indices));
}

static ls_model *make_model(void)
{
    ls_model *m = ls_model_new(LS_MODEL(.name = "example", .input = "f32[28,28,1]"));
    ls_conv_layer(m, LS_CONV_LAYER(.filters = 16, .activation = ls_relu));
    ls_max_pool_layer(m, 2);
    ls_flatten_layer(m);
    ls_dropout_layer(m, 0.2);
    ls_dense_layer(m, LS_DENSE_LAYER(.units = 10));
    return m;
}

/* A callback of one's own: a line after every epoch. */
static ls_status print_epoch(const ls_progress *p, void *user)
{
    (void)user;
    printf("epoch %lld: loss %.4f, test accuracy %.2f %%\n", (long long)p->epoch, p->loss,
           100 * ls_trainer_value(p->trainer, "test_accuracy"));
    return LS_OK;
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : "run";
    int64_t epochs = argc > 2 ? atoll(argv[2]) : 1, steps = argc > 3 ? atoll(argv[3]) : 0;

    ls_random_seed(1);
    ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = "/cpu:0,/cpu:1"));
    ls_trainer *t = ls_trainer_new(LS_TRAINER(.strategy = s, .model = make_model(),
                                              .global_batch = BATCH, .seed = 1,
                                              .prepare = to_numbers));
    ls_callback *callbacks[] = {
        ls_early_stop(LS_EARLY_STOP(.patience = 3)),
        ls_checkpoints(LS_CHECKPOINTS(.directory = folder, .every = 100)),
        ls_event_log(folder, 0),
        LS_CALLBACK(.name = "print", .epoch = print_epoch),
    };
    if (ls_trainer_resume(t, folder, 4, callbacks) == LS_NOT_FOUND)
        ls_error(); /* there is none yet: it begins anew */

    ls_fit(t, LS_FIT(.data = batches("train"), .test = batches("test"), .epochs = epochs,
                     .steps = steps, .n_callbacks = 4, .callbacks = callbacks));

    char digest[LS_DIGEST_MAX];
    ls_model *m = ls_trainer_model(t);
    if (ls_weights_digest(ls_model_count(m), ls_model_variables(m), digest) == LS_OK)
        printf("weights %s\n", digest);
    for (int i = 0; i < 3; i++)
        ls_callback_free(callbacks[i]);
    ls_trainer_free(t);
    ls_strategy_free(s);
    if (ls_error_pending())
        return fprintf(stderr, "fit: %s\n", ls_error_report()), 1;
    return 0;
}
