/*
 * The library's callbacks: when early stop stops and what it gives back, the rate of an epoch, figures
 * that are watched.
 */
#include "fit_test_support.h"

#include <math.h>
#include <string.h>

static void early_stop_waits(void **state)
{
    (void)state;
    /* The test loss of a run that learns nothing stays: it ends after the first epoch and `patience`. */
    for (int patience = 1; patience <= 3; patience++) {
        ls_random_seed(3);
        ls_trainer *t = ls_trainer_new(LS_TRAINER(
            .model = small_model(0), .optimizer = ls_sgd(LS_SGD(.rate = -1))));
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
        assert_int_equal(ls_fit(t, LS_FIT(.data = batches(), .n_callbacks = 1, .callbacks = &early)),
                         LS_NOT_FOUND);
    assert_error(LS_NOT_FOUND, "loss, accuracy, test_loss, test_accuracy");
    ls_callback_free(early);
    ls_trainer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(early_stop_waits),
        cmocka_unit_test(early_stop_gives_the_best_back),
        cmocka_unit_test(the_rate_of_an_epoch),
        cmocka_unit_test(wrong_callbacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
