/*
 * The library's callbacks: when early stop stops and what it gives back, the rate of an epoch, figures
 * that are watched.
 */
#include "fit_test_support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void early_stop_waits(void **state)
{
    (void)state;
    /* The test loss of a run that learns nothing stays: it ends after the first epoch and `patience`. */
    for (int patience = 1; patience <= 3; patience++) {
        ls_random_seed(3);
        ls_trainer *t = ls_trainer_new(
            LS_TRAINER(.model = small_model(0), .optimizer = ls_sgd(LS_SGD(.rate = -1))));
        ls_callback *early = ls_early_stop(LS_EARLY_STOP(.patience = patience));
        LS_FRAME
            ls_fit(t, LS_FIT(.data = batches(), .test = test_batches(), .epochs = 9,
                             .n_callbacks = 1, .callbacks = &early));
        assert_clean();
        assert_int_equal(ls_iterations(ls_trainer_optimizer(t)), 5 * (1 + patience));
        ls_callback_free(early);
        ls_trainer_free(t);
    }
}

/* A rate that ruins the model from the third epoch on: the best weights are those of the second. */
static double ruinous(int64_t epoch, void *user)
{
    *(int64_t *)user = epoch;
    return epoch < 3 ? 0.01 : 5;
}

static void early_stop_gives_the_best_back(void **state)
{
    (void)state;
    int64_t last = 0;
    ls_trainer *t = small_trainer(NULL, 0);
    ls_callback *both[] = { ls_epoch_rate(ruinous, &last),
                            ls_early_stop(LS_EARLY_STOP(.patience = 2, .best = true)) };
    LS_FRAME
        ls_fit(t, LS_FIT(.data = batches(), .test = test_batches(), .epochs = 9, .n_callbacks = 2,
                         .callbacks = both));
    double ruined = ls_trainer_value(t, "test_loss");
    LS_FRAME
        ls_evaluate(t, test_batches());
    assert_clean();
    assert_int_equal(ls_iterations(ls_trainer_optimizer(t)), 5 * 4);
    assert_true(ls_trainer_value(t, "test_loss") < ruined);
    ls_callback_free(both[0]);
    ls_callback_free(both[1]);
    ls_trainer_free(t);
}

static double halved(int64_t epoch, void *user)
{
    (void)user;
    return 0.01 / (double)epoch;
}

static ls_status check_rate(const ls_progress *p, void *user)
{
    (void)user;
    assert_true(ls_rate(ls_trainer_optimizer(p->trainer)) == 0.01 / (double)p->epoch);
    return LS_OK;
}

static void the_rate_of_an_epoch(void **state)
{
    (void)state;
    ls_trainer *t = small_trainer(NULL, 0);
    ls_callback check = *LS_CALLBACK(.name = "check", .step = check_rate);
    ls_callback *both[] = { ls_epoch_rate(halved, NULL), &check };
    LS_FRAME
        ls_fit(t, LS_FIT(.data = batches(), .epochs = 3, .n_callbacks = 2, .callbacks = both));
    assert_clean();
    ls_callback_free(both[0]);
    ls_trainer_free(t);
}

static void wrong_callbacks(void **state)
{
    (void)state;
    assert_null(ls_epoch_rate(NULL, NULL));
    assert_error(LS_INVALID, "the function is NULL");
    assert_null(ls_early_stop(LS_EARLY_STOP(.patience = -1)));
    assert_error(LS_INVALID, "patience of -1");
    assert_null(ls_event_log(NULL, 0));
    assert_error(LS_INVALID, "'NULL'");
    ls_callback_free(NULL);
    ls_trainer *t = small_trainer(NULL, 0);
    ls_callback *early = ls_early_stop(LS_EARLY_STOP(.watch = "test_fun"));
    LS_FRAME
        assert_int_equal(
            ls_fit(t, LS_FIT(.data = batches(), .n_callbacks = 1, .callbacks = &early)),
            LS_NOT_FOUND);
    assert_error(LS_NOT_FOUND, "loss, accuracy, test_loss, test_accuracy");
    ls_callback_free(early);
    ls_trainer_free(t);
}

/* ---- found in review ------------------------------------------------------------------------------- */

#define FOLDER_OF_TESTS "run" /* main makes a folder, and is in it */

static void weights_of(ls_trainer *t, char out[LS_DIGEST_MAX])
{
    const ls_model *m = ls_trainer_model(t);
    ls_weights_digest(ls_model_count(m), ls_model_variables(m), out);
}

/* A run that goes on at the end of an epoch has the rate of the next one, not of that which ended. */
static void the_rate_of_an_epoch_after_a_stop_between_epochs(void **state)
{
    (void)state;
    ls_callback check = *LS_CALLBACK(.name = "check", .step = check_rate);
    ls_callback *both[] = { ls_epoch_rate(halved, NULL), &check };
    ls_trainer *t = small_trainer(NULL, 0);
    LS_FRAME {
        ls_fit(t, LS_FIT(.data = batches(), .epochs = 2, .n_callbacks = 2, .callbacks = both));
        ls_fit(t, LS_FIT(.data = batches(), .epochs = 3, .n_callbacks = 2, .callbacks = both));
    }
    assert_clean();
    ls_callback_free(both[0]);
    ls_trainer_free(t);
}

static ls_status stop_at_17(const ls_progress *p, void *user)
{
    (void)user;
    return p->step == 17 ? LS_END : LS_OK;
}

static double ruinous_from_2(int64_t epoch, void *user)
{
    (void)user;
    return epoch < 2 ? 0.01 : 1;
}

/* Stopped within an epoch, before patience was out: what is saved is the run as it stood. */
static void early_stop_leaves_a_run_that_something_else_stopped(void **state)
{
    (void)state;
    char want[LS_DIGEST_MAX], got[LS_DIGEST_MAX];
    ls_callback stop = *LS_CALLBACK(.name = "stop", .step = stop_at_17);
    ls_callback *rate = ls_epoch_rate(ruinous_from_2, NULL);
    ls_callback *all[] = { rate, ls_early_stop(LS_EARLY_STOP(.patience = 4, .best = true)),
                           ls_checkpoints(LS_CHECKPOINTS(.directory = FOLDER_OF_TESTS)), &stop };
    ls_trainer *t = small_trainer(NULL, 0);
    LS_FRAME
        ls_fit(t, LS_FIT(.data = batches(), .test = test_batches(), .epochs = 9, .steps = 17,
                         .n_callbacks = 1, .callbacks = all));
    weights_of(t, want);
    ls_trainer_free(t);
    t = small_trainer(NULL, 0);
    LS_FRAME
        ls_fit(t, LS_FIT(.data = batches(), .test = test_batches(), .epochs = 9, .n_callbacks = 4,
                         .callbacks = all));
    ls_trainer_free(t);
    t = small_trainer(NULL, 0);
    assert_int_equal(ls_trainer_resume(t, FOLDER_OF_TESTS "/step-000000017.safetensors", 0, NULL),
                     LS_OK);
    weights_of(t, got);
    assert_clean();
    ls_trainer_free(t);
    for (int i = 0; i < 3; i++)
        ls_callback_free(all[i]);
    assert_string_equal(want, got);
}

static ls_trainer *learns_nothing(void)
{
    ls_random_seed(3);
    return ls_trainer_new(
        LS_TRAINER(.model = small_model(0), .optimizer = ls_sgd(LS_SGD(.rate = -1))));
}

/* A resumed run stops where the whole one did, whichever of the callbacks comes first. */
static void early_stop_behind_checkpoints(void **state)
{
    (void)state;
    ls_callback *both[] = { ls_checkpoints(
                                LS_CHECKPOINTS(.directory = FOLDER_OF_TESTS, .keep = -1)),
                            ls_early_stop(LS_EARLY_STOP(.patience = 2)) };
    int64_t steps[2];
    for (int resumed = 0; resumed < 2; resumed++) {
        ls_trainer *t = learns_nothing();
        if (resumed)
            ls_trainer_resume(t, FOLDER_OF_TESTS "/step-000000010.safetensors", 2, both);
        LS_FRAME
            ls_fit(t, LS_FIT(.data = batches(), .test = test_batches(), .epochs = 9,
                             .n_callbacks = 2, .callbacks = both));
        steps[resumed] = ls_iterations(ls_trainer_optimizer(t));
        assert_clean();
        ls_trainer_free(t);
        ls_callback_free(both[1]);
        both[1] = ls_early_stop(LS_EARLY_STOP(.patience = 2));
    }
    ls_callback_free(both[0]);
    ls_callback_free(both[1]);
    assert_int_equal(steps[0], steps[1]);
}

/* One for the loss, one for the accuracy. */
static void two_callbacks_of_one_kind(void **state)
{
    (void)state;
    ls_trainer *t = small_trainer(NULL, 0);
    ls_callback *both[] = { ls_best_checkpoint(FOLDER_OF_TESTS "/loss.safetensors", "test_loss"),
                            ls_best_checkpoint(FOLDER_OF_TESTS "/accuracy.safetensors",
                                               "test_accuracy") };
    LS_FRAME
        ls_fit(t, LS_FIT(.data = batches(), .test = test_batches(), .n_callbacks = 2,
                         .callbacks = both));
    ls_callback_free(both[0]);
    ls_callback_free(both[1]);
    ls_trainer_free(t);
    assert_clean();
}

/* "loss" without a test: also when there was an ls_evaluate before. */
static void early_stop_watches_no_test_of_before(void **state)
{
    (void)state;
    int64_t steps[2];
    for (int tested = 0; tested < 2; tested++) {
        ls_trainer *t = small_trainer(NULL, 0);
        ls_callback *early = ls_early_stop(NULL);
        LS_FRAME {
            if (tested)
                ls_evaluate(t, test_batches());
            ls_fit(t,
                   LS_FIT(.data = batches(), .epochs = 9, .n_callbacks = 1, .callbacks = &early));
        }
        steps[tested] = ls_iterations(ls_trainer_optimizer(t));
        ls_callback_free(early);
        ls_trainer_free(t);
    }
    assert_clean();
    assert_int_equal(steps[0], steps[1]);
}

/* 30 batch norms on 4 replicas, fewer variables than `resnet` has on 8. */
static void early_stop_keeps_the_best_of_many_variables(void **state)
{
    (void)state;
    ls_strategy *s = replicas(4, 1);
    ls_model *m = ls_model_new(LS_MODEL(.name = "many", .input = "f32[2]"));
    for (int i = 0; i < 30; i++)
        ls_batch_norm_layer(m, LS_BATCH_NORM_LAYER(.momentum = 0.9));
    ls_dense_layer(m, LS_DENSE_LAYER(.units = 4));
    ls_trainer *t = ls_trainer_new(LS_TRAINER(.strategy = s, .model = m));
    ls_callback *both[] = { ls_early_stop(LS_EARLY_STOP(.best = true)),
                            ls_checkpoints(LS_CHECKPOINTS(.directory = FOLDER_OF_TESTS)) };
    LS_FRAME
        ls_fit(t, LS_FIT(.data = batches(), .n_callbacks = 2, .callbacks = both));
    ls_callback_free(both[0]);
    ls_callback_free(both[1]);
    ls_trainer_free(t);
    ls_strategy_free(s);
    assert_clean();
}

/* "At the end", also of a fit that had nothing left to do. */
static void checkpoints_of_a_trainer_that_was_fitted_before(void **state)
{
    (void)state;
    char newest[256];
    ls_trainer *t = small_trainer(NULL, 0);
    ls_callback *saved = ls_checkpoints(LS_CHECKPOINTS(.directory = FOLDER_OF_TESTS "/end"));
    LS_FRAME {
        ls_fit(t, LS_FIT(.data = batches()));
        ls_fit(t, LS_FIT(.data = batches(), .n_callbacks = 1, .callbacks = &saved));
    }
    ls_callback_free(saved);
    ls_trainer_free(t);
    assert_clean();
    assert_int_equal(ls_checkpoint_newest(FOLDER_OF_TESTS "/end", newest, sizeof newest), LS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(early_stop_waits),
        cmocka_unit_test(early_stop_gives_the_best_back),
        cmocka_unit_test(the_rate_of_an_epoch),
        cmocka_unit_test(wrong_callbacks),
        cmocka_unit_test(the_rate_of_an_epoch_after_a_stop_between_epochs),
        cmocka_unit_test(early_stop_leaves_a_run_that_something_else_stopped),
        cmocka_unit_test(early_stop_behind_checkpoints),
        cmocka_unit_test(two_callbacks_of_one_kind),
        cmocka_unit_test(early_stop_watches_no_test_of_before),
        cmocka_unit_test(early_stop_keeps_the_best_of_many_variables),
        cmocka_unit_test(checkpoints_of_a_trainer_that_was_fitted_before),
    };
    char folder[] = "/tmp/lockstep-callback-XXXXXX", command[64];
    if (!mkdtemp(folder) || chdir(folder))
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return chdir("/") || system(command) ? 1 : failed;
}
