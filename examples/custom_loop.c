/*
 * A training loop of one's own: what ls_fit does, by hand, with gradients accumulated over two
 * batches before each update. For who wants to do something that ls_fit does not.
 *
 *     custom_loop 200          # so many updates
 */
#include <lockstep.h>

#include <stdio.h>
#include <stdlib.h>

enum { REPLICAS = 2, BATCH = 128 /* for all replicas together */, PARTS = 2 /* of an update */ };

typedef struct loop {
    ls_model *model;
    ls_optimizer *adam;
    ls_metric *loss, *accuracy;
} loop;

/* The loss of one replica, per sample of all parts of all replicas: their sum is the mean. */
static ls_tensor *loss_of(loop *l, ls_value *batch, bool training)
{
    ls_tensor *x = ls_scale(ls_cast(ls_item(batch, 0), LS_F32), 1.0 / 255);
    ls_tensor *y = ls_cast(ls_item(batch, 1), LS_I32);
    ls_tensor *logits = ls_model_forward(l->model, x, training);
    ls_tensor *each = ls_sparse_softmax_xent(logits, y);
    ls_metric_add(l->loss, each, NULL);
    ls_metric_update(l->accuracy, logits, y);
    return ls_compute_average_loss(each, PARTS * BATCH);
}

/* A part of an update: all but the last only add to this replica's sums, and nobody waits. */
static ls_value *first_part(ls_value *batch, void *user)
{
    loop *l = user;
    ls_tape *tape = ls_tape_open();
    ls_tensor *loss = loss_of(l, batch, true);
    ls_accumulate(l->adam, tape, loss, ls_model_count(l->model), ls_model_variables(l->model));
    return ls_leaf(loss);
}

static ls_value *last_part(ls_value *batch, void *user)
{
    loop *l = user;
    ls_tape *tape = ls_tape_open();
    ls_tensor *loss = loss_of(l, batch, true);
    ls_minimize(l->adam, tape, loss, ls_model_count(l->model), ls_model_variables(l->model));
    return ls_leaf(loss);
}

static ls_value *test(ls_value *batch, void *user)
{
    return ls_leaf(loss_of(user, batch, false));
}

static void start_metrics(loop *l)
{
    ls_metric_reset(l->loss);
    ls_metric_reset(l->accuracy);
}

static void print_metrics(loop *l, const char *what)
{
    printf("%s: loss %.4f, accuracy %.2f %%\n", what, ls_metric_result(l->loss),
           100 * ls_metric_result(l->accuracy));
}

int main(int argc, char **argv)
{
    int64_t updates = argc > 1 ? atoll(argv[1]) : 200, part = 0;
    ls_random_seed(1);
    ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = "/cpu:0,/cpu:1", .replicas = REPLICAS));
    loop l = { .model = ls_model_named("cnn"), .adam = ls_adam(LS_ADAM(.accumulates = true)) };
    LS_SCOPE (s) {
        ls_model_build(l.model);
        l.loss = ls_mean_metric("loss");
        l.accuracy = ls_accuracy("accuracy");
    }

    ls_function *steps[] = { ls_trace(first_part, &l), ls_trace(last_part, &l) };
    ls_dataset *data = ls_repeat(ls_shuffle(ls_fashion_mnist("train"), 60000, 1), -1);
    data = ls_take(ls_batch(data, BATCH), PARTS * updates);
    LS_FOR_EACH (batch, ls_distribute(s, data)) {
        if (!ls_run(s, steps[++part % PARTS == 0], batch))
            break;
        if (part % (100 * PARTS) == 0) {
            print_metrics(&l, "training");
            start_metrics(&l);
        }
    }

    start_metrics(&l);
    ls_function *testing = ls_trace(test, &l);
    LS_FOR_EACH (batch, ls_distribute(s, ls_batch(ls_fashion_mnist("test"), 1000)))
        if (!ls_run(s, testing, batch))
            break;
    print_metrics(&l, "test");

    for (int i = 0; i < 2; i++)
        ls_function_free(steps[i]);
    ls_function_free(testing);
    ls_metric_free(l.loss);
    ls_metric_free(l.accuracy);
    ls_optimizer_free(l.adam);
    ls_model_free(l.model);
    ls_strategy_free(s);
    if (ls_error_pending())
        return fprintf(stderr, "custom_loop: %s\n", ls_error_report()), 1;
    return 0;
}
