/*
 * Callbacks beside each other: who is called when one of them ends the run, and what each knows of the
 * others when it saves.
 */
#include "fit_test_support.h"

#include <lockstep/events.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static ls_status end_it(const ls_progress *p, void *user)
{
    return p->epoch == *(int *)user ? LS_END : LS_OK;
}

static ls_status count_epochs(const ls_progress *p, void *user)
{
    (void)p;
    ++*(int *)user;
    return LS_OK;
}

static ls_status fail_it(const ls_progress *p, void *user)
{
    (void)p, (void)user;
    return LS_IO;
}

/* All are told of an epoch, whoever ends the run there. */
static void one_that_ends_it_hides_nothing(void **state)
{
    (void)state;
    int last = 2, before = 0, after = 0;
    ls_callback first = *LS_CALLBACK(.user = &before, .epoch = count_epochs);
    ls_callback ends = *LS_CALLBACK(.user = &last, .epoch = end_it);
    ls_callback third = *LS_CALLBACK(.user = &after, .epoch = count_epochs);
    ls_callback *all[] = { &first, &ends, &third };
    ls_trainer *t = small_trainer(NULL, 0);
    LS_FRAME
        ls_fit(t, LS_FIT(.data = batches(), .epochs = 5, .n_callbacks = 3, .callbacks = all));
    assert_clean();
    assert_int_equal(before, 2);
    assert_int_equal(after, 2);
    ls_trainer_free(t);
}

static void one_that_fails_is_told_though_another_ends_it(void **state)
{
    (void)state;
    int last = 1, after = 0;
    ls_callback ends = *LS_CALLBACK(.user = &last, .epoch = end_it);
    ls_callback fails = *LS_CALLBACK(.name = "fails", .epoch = fail_it);
    ls_callback third = *LS_CALLBACK(.user = &after, .epoch = count_epochs);
    ls_callback *all[] = { &ends, &fails, &third };
    ls_trainer *t = small_trainer(NULL, 0);
    LS_FRAME
        assert_int_equal(ls_fit(t, LS_FIT(.data = batches(), .n_callbacks = 3, .callbacks = all)),
                         LS_IO);
    assert_error(LS_IO, "fails");
    assert_int_equal(after, 0);
    ls_trainer_free(t);
}

/* ---- what is in the files ------------------------------------------------------------------------ */

static double in_file(const char *path, const char *key)
{
    double value = NAN;
    LS_FRAME
        value = ls_to_double(ls_leaf_tensor(ls_get(ls_safetensors_read(path), key)));
    assert_clean();
    return value;
}

/* The checkpoint of an epoch knows that it was the best, in whatever order they are given. */
static void the_best_so_far_is_in_every_checkpoint(void **state)
{
    (void)state;
    for (int turned = 0; turned < 2; turned++) {
        ls_callback *both[] = { ls_checkpoints(LS_CHECKPOINTS(.directory = "steps")),
                                ls_best_checkpoint("best.safetensors", "loss") };
        ls_callback *list[] = { both[turned], both[!turned] };
        ls_trainer *t = small_trainer(NULL, 0);
        LS_FRAME
            ls_fit(t, LS_FIT(.data = batches(), .epochs = 2, .steps = 5, .n_callbacks = 2,
                             .callbacks = list));
        assert_clean();
        const double loss = ls_trainer_value(t, "loss");
        assert_true(in_file("steps/step-000000005.safetensors",
                            "lockstep/extra/callback/best checkpoint loss/best") == loss);
        ls_callback_free(both[0]);
        ls_callback_free(both[1]);
        ls_trainer_free(t);
    }
}

static bool every(ls_value *element, void *user)
{
    (void)element, (void)user;
    return true;
}

/* Of data whose length is not known, the last step of an epoch does not look like one. */
static void the_end_of_an_epoch_of_unknown_length_is_saved(void **state)
{
    (void)state;
    int tests = 0;
    ls_callback counts = *LS_CALLBACK(.user = &tests, .test_step = count_epochs);
    ls_callback *all[] = { ls_checkpoints(LS_CHECKPOINTS(.directory = "unknown", .every = 2)),
                           &counts };
    ls_trainer *t = small_trainer(NULL, 0);
    LS_FRAME {
        const ls_fit_options *o =
            LS_FIT(.data = ls_batch(ls_filter(points(8), every, NULL), 2),
                   .test = ls_batch(points(4), 2), .n_callbacks = 2, .callbacks = all);
        ls_fit(t, o);
        ls_trainer_free(t);
        t = small_trainer(NULL, 0);
        ls_trainer_resume(t, "unknown", 0, NULL);
        assert_false(isnan(ls_trainer_value(t, "test_loss")));
        ls_fit(t, o); /* nothing is left to do */
    }
    assert_clean();
    assert_int_equal(tests, 2);
    ls_callback_free(all[0]);
    ls_trainer_free(t);
}

static ls_status ruin(const ls_progress *p, void *user)
{
    (void)user;
    ls_variable *v = ls_model_variables(ls_trainer_model(p->trainer))[0];
    return p->step == 10 ? ls_assign(v, ls_scale(ls_read(v), NAN)) : LS_OK;
}

/* The second epoch has the better loss, and leaves weights that are no numbers. */
static void weights_that_are_no_numbers_are_never_the_best(void **state)
{
    (void)state;
    ls_callback ruins = *LS_CALLBACK(.name = "ruins", .step = ruin);
    ls_callback *all[] = { ls_best_checkpoint("good.safetensors", "loss"), &ruins };
    ls_trainer *t = small_trainer(NULL, 0);
    LS_FRAME
        assert_int_equal(
            ls_fit(t, LS_FIT(.data = batches(), .epochs = 2, .n_callbacks = 2, .callbacks = all)),
            LS_NOT_FINITE);
    assert_error(LS_NOT_FINITE, "step 10");
    ls_trainer_free(t);
    t = small_trainer(NULL, 0);
    assert_int_equal(ls_trainer_resume(t, "good.safetensors", 0, NULL), LS_OK);
    assert_int_equal(ls_iterations(ls_trainer_optimizer(t)), 5);
    ls_callback_free(all[0]);
    ls_trainer_free(t);
}

/* ---- a run that was stopped early ---------------------------------------------------------------- */

static ls_trainer *learns_nothing(void)
{
    ls_random_seed(3);
    return ls_trainer_new(
        LS_TRAINER(.model = small_model(0), .optimizer = ls_sgd(LS_SGD(.rate = -1))));
}

static void stopped_early_it_stays_stopped(void **state)
{
    (void)state;
    for (int resumed = 0; resumed < 2; resumed++) {
        ls_callback *early = ls_early_stop(NULL);
        ls_trainer *t = learns_nothing();
        LS_FRAME {
            const ls_fit_options *o = LS_FIT(.data = batches(), .test = test_batches(), .epochs = 9,
                                             .n_callbacks = 1, .callbacks = &early);
            ls_fit(t, o);
            assert_int_equal(ls_iterations(ls_trainer_optimizer(t)), 10);
            if (resumed) {
                ls_trainer_save(t, "stopped.safetensors", 1, &early);
                ls_trainer_free(t);
                ls_callback_free(early);
                early = ls_early_stop(NULL);
                t = learns_nothing();
                ls_trainer_resume(t, "stopped.safetensors", 1, &early);
            }
            ls_fit(t, o);
        }
        assert_clean();
        assert_int_equal(ls_iterations(ls_trainer_optimizer(t)), 10);
        ls_callback_free(early);
        ls_trainer_free(t);
    }
}

/* What is saved at the end is what the run ended with: the best weights, given back. */
static void the_end_is_saved_with_the_best_weights(void **state)
{
    (void)state;
    char want[LS_DIGEST_MAX], got[LS_DIGEST_MAX];
    ls_callback *all[] = { ls_checkpoints(LS_CHECKPOINTS(.directory = "end")),
                           ls_early_stop(LS_EARLY_STOP(.watch = "loss", .best = true)) };
    ls_random_seed(3);
    ls_trainer *t =
        ls_trainer_new(LS_TRAINER(.model = small_model(0), .optimizer = ls_sgd(LS_SGD(.rate = 3))));
    LS_FRAME
        ls_fit(t, LS_FIT(.data = batches(), .epochs = 50, .n_callbacks = 2, .callbacks = all));
    assert_clean();
    ls_trainer_digest(t, 0, NULL, want);
    ls_trainer_resume(t, "end", 0, NULL);
    ls_trainer_digest(t, 0, NULL, got);
    assert_clean();
    assert_string_equal(want, got);
    ls_callback_free(all[0]);
    ls_callback_free(all[1]);
    ls_trainer_free(t);
}

static ls_status note_file(const ls_progress *p, void *user)
{
    (void)p;
    struct stat is = { 0 };
    stat("once/step-000000005.safetensors", &is);
    *(ino_t *)user = is.st_ino;
    return LS_OK;
}

static ls_status write_weights(const ls_progress *p, void *user)
{
    note_file(p, user);
    ls_variable *v = ls_model_variables(ls_trainer_model(p->trainer))[0];
    return ls_assign(v, ls_scale(ls_read(v), 0));
}

/* The last epoch was saved: the end is that file, unless somebody wrote to a variable since. */
static void the_end_is_saved_once(void **state)
{
    (void)state;
    for (int writes = 0; writes < 2; writes++) {
        ino_t before = 0, after = 0;
        ls_callback c =
            *LS_CALLBACK(.name = "c", .user = &before, .end = writes ? write_weights : note_file);
        ls_callback *all[] = { ls_checkpoints(LS_CHECKPOINTS(.directory = "once")), &c };
        ls_trainer *t = small_trainer(NULL, 0);
        LS_FRAME
            ls_fit(t, LS_FIT(.data = batches(), .n_callbacks = 2, .callbacks = all));
        assert_clean();
        note_file(NULL, &after);
        assert_true(before != 0);
        assert_int_equal(before != after, writes);
        ls_callback_free(all[0]);
        ls_trainer_free(t);
    }
}

/* ---- the log ------------------------------------------------------------------------------------------ */

static ls_status make_own(ls_layer *layer, ls_tensor *x, void *user)
{
    (void)x, (void)user;
    const ls_variable_options *o =
        LS_VARIABLE(.synchronization = LS_SYNC_ON_READ, .aggregation = LS_AGGREGATE_NONE);
    return ls_layer_make(layer, o, "own", ls_scalar(LS_F32, 0)) ? LS_OK : ls_error_pending();
}

static ls_tensor *pass(ls_layer *layer, ls_tensor *x, bool training, void *user)
{
    (void)layer, (void)training, (void)user;
    return x;
}

/* It has no value that is of all replicas, so no histogram. */
static void a_variable_that_cannot_be_read_is_not_logged(void **state)
{
    (void)state;
    ls_model *m = small_model(0);
    ls_own_layer(m, LS_LAYER(.build = make_own, .forward = pass));
    ls_strategy *s = replicas(2, 1);
    ls_trainer *t = ls_trainer_new(LS_TRAINER(.strategy = s, .model = m));
    ls_callback *log = ls_event_log("log", 0);
    LS_FRAME
        ls_fit(t, LS_FIT(.data = batches(), .n_callbacks = 1, .callbacks = &log));
    assert_clean();
    ls_callback_free(log);
    ls_trainer_free(t);
    ls_strategy_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_ends_it_hides_nothing),
        cmocka_unit_test(one_that_fails_is_told_though_another_ends_it),
        cmocka_unit_test(the_best_so_far_is_in_every_checkpoint),
        cmocka_unit_test(the_end_of_an_epoch_of_unknown_length_is_saved),
        cmocka_unit_test(weights_that_are_no_numbers_are_never_the_best),
        cmocka_unit_test(stopped_early_it_stays_stopped),
        cmocka_unit_test(the_end_is_saved_with_the_best_weights),
        cmocka_unit_test(the_end_is_saved_once),
        cmocka_unit_test(a_variable_that_cannot_be_read_is_not_logged),
    };
    char folder[] = "/tmp/lockstep-callback-XXXXXX", command[64];
    if (!mkdtemp(folder) || chdir(folder))
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return chdir("/") || system(command) ? 1 : failed;
}
