/*
 * Saving and resuming a trainer where something is odd: data that cannot tell, callbacks that fail, a step
 * that failed, a place that was lost, numbers that no trainer has.
 */
#include "fit_test_support.h"
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/lockstep-trainer-XXXXXX";
static char file[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(file, sizeof file, "%s/a.safetensors", mkdtemp(folder));
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command);
}

static void digest_of(ls_trainer *t, char out[LS_DIGEST_MAX])
{
    ls_trainer_digest(t, 0, NULL, out);
    assert_clean();
}

/* The default strategy draws, too. */
static void resumed_without_a_strategy(void **state)
{
    (void)state;
    char want[LS_DIGEST_MAX], got[LS_DIGEST_MAX];
    ls_trainer *t = small_trainer(NULL, 0.3);
    LS_FRAME
        ls_fit(t, LS_FIT(.data = batches(), .epochs = 3));
    digest_of(t, want);
    ls_trainer_free(t);
    t = small_trainer(NULL, 0.3);
    LS_FRAME
        ls_fit(t, LS_FIT(.data = batches(), .epochs = 3, .steps = 7));
    ls_trainer_save(t, file, 0, NULL);
    ls_trainer_free(t);
    t = small_trainer(NULL, 0.3);
    ls_trainer_resume(t, file, 0, NULL);
    LS_FRAME
        ls_fit(t, LS_FIT(.data = batches(), .epochs = 3));
    digest_of(t, got);
    ls_trainer_free(t);
    assert_string_equal(want, got);
}

/* No trainer ever saved this. */
static void a_step_that_cannot_be(void **state)
{
    (void)state;
    ls_trainer *t = small_trainer(NULL, 0);
    t->at.step = -5;
    ls_trainer_save(t, file, 0, NULL);
    assert_clean();
    t->at.step = 0;
    assert_int_equal(ls_trainer_resume(t, file, 0, NULL), LS_CORRUPT);
    assert_error(LS_CORRUPT, "step -5");
    assert_int_equal(t->at.step, 0);
    ls_trainer_free(t);
}

static int batches_seen, bad_batch;

static ls_value *nan_once(ls_value *batch, void *user)
{
    (void)user;
    if (++batches_seen != bad_batch)
        return batch;
    ls_tensor *x = ls_scale(ls_item(batch, 0), NAN);
    return ls_tensors(2, (ls_tensor *[]){ x, ls_item(batch, 1) });
}

static void fit_with_a_nan_in(ls_trainer *t, int bad)
{
    batches_seen = 0;
    bad_batch = bad;
    LS_FRAME
        ls_fit(t, LS_FIT(.data = ls_map(batches(), LS_MAP(.fn = nan_once)), .epochs = 2));
}

/* "The trainer is as before that step": its batch is still to come. */
static void a_step_that_failed_did_not_take_its_batch(void **state)
{
    (void)state;
    char want[LS_DIGEST_MAX], got[LS_DIGEST_MAX];
    ls_strategy *s = replicas(2, 1);
    ls_trainer *t = small_trainer(s, 0.3);
    fit_with_a_nan_in(t, -1);
    digest_of(t, want);
    ls_trainer_free(t);
    ls_strategy_free(s);
    s = replicas(2, 1);
    t = small_trainer(s, 0.3);
    fit_with_a_nan_in(t, 3);
    assert_error(LS_NOT_FINITE, "step 3");
    fit_with_a_nan_in(t, -1);
    digest_of(t, got);
    const int64_t steps = ls_iterations(ls_trainer_optimizer(t));
    ls_trainer_free(t);
    ls_strategy_free(s);
    assert_int_equal(steps, 10);
    assert_string_equal(want, got);
}

/* A fit that fails before its first step changes nothing: the right data goes on at the right sample. */
static void wrong_data_do_not_lose_the_position(void **state)
{
    (void)state;
    char want[LS_DIGEST_MAX], got[LS_DIGEST_MAX];
    ls_trainer *t = small_trainer(NULL, 0);
    LS_FRAME
        ls_fit(t, LS_FIT(.data = batches(), .epochs = 2));
    digest_of(t, want);
    ls_trainer_free(t);
    t = small_trainer(NULL, 0);
    LS_FRAME
        ls_fit(t, LS_FIT(.data = batches(), .epochs = 2, .steps = 3));
    ls_trainer_save(t, file, 0, NULL);
    ls_trainer_free(t);
    for (int wrong = 0; wrong < 2; wrong++) {
        t = small_trainer(NULL, 0);
        ls_trainer_resume(t, file, 0, NULL);
        LS_FRAME { /* not batched, and of another length */
            ls_dataset *other = wrong == 0 ? points(20) : ls_batch(points(20), 4);
            assert_int_equal(ls_fit(t, LS_FIT(.data = other, .epochs = 2)), LS_INVALID);
        }
        ls_error();
        LS_FRAME
            ls_fit(t, LS_FIT(.data = batches(), .epochs = 2));
        digest_of(t, got);
        ls_trainer_free(t);
        assert_string_equal(want, got);
    }
}

static ls_status save_in_a_test(const ls_progress *p, void *user)
{
    (void)user;
    return p->epoch == 2 && p->test_step == 2 ? ls_trainer_save(p->trainer, file, 0, NULL) : LS_OK;
}

static ls_trainer *with_batch_norm(ls_strategy *s)
{
    ls_model *m = ls_model_new(LS_MODEL(.name = "norm", .input = "f32[2]"));
    ls_dense_layer(m, LS_DENSE_LAYER(.units = 8));
    ls_batch_norm_layer(m, LS_BATCH_NORM_LAYER(.momentum = 0.9));
    ls_dense_layer(m, LS_DENSE_LAYER(.units = 4));
    ls_random_seed(3);
    return ls_trainer_new(LS_TRAINER(.strategy = s, .model = m, .global_batch = BATCH));
}

/* "Between steps: from a callback": those of a test are callbacks. */
static void saved_within_a_test(void **state)
{
    (void)state;
    char want[LS_DIGEST_MAX], got[LS_DIGEST_MAX];
    ls_callback save = *LS_CALLBACK(.name = "save", .test_step = save_in_a_test);
    ls_callback *all = &save;
    ls_strategy *s = replicas(3, 1);
    ls_trainer *t = with_batch_norm(s);
    LS_FRAME
        ls_fit(t, LS_FIT(.data = batches(), .test = test_batches(), .epochs = 2, .n_callbacks = 1,
                         .callbacks = &all));
    digest_of(t, want);
    ls_trainer_free(t);
    t = with_batch_norm(s);
    ls_trainer_resume(t, file, 0, NULL);
    LS_FRAME
        ls_fit(t, LS_FIT(.data = batches(), .test = test_batches(), .epochs = 2));
    digest_of(t, got);
    ls_trainer_free(t);
    ls_strategy_free(s);
    assert_string_equal(want, got);
}

static ls_value *save_number(void *user)
{
    return ls_dict(1, (const char *[]){ "n" },
                   (ls_value *[]){ ls_leaf(ls_scalar(LS_I64, *(int *)user)) });
}

static ls_status load_number(ls_value *saved, void *user)
{
    *(int *)user = (int)ls_to_int(ls_leaf_tensor(ls_get(saved, "n")));
    return ls_error_pending();
}

static ls_status load_nothing(ls_value *saved, void *user)
{
    (void)saved, (void)user;
    return LS_INVALID;
}

/* "Nothing has changed when it fails." */
static void a_callback_that_cannot_load(void **state)
{
    (void)state;
    int number = 7;
    ls_callback first =
        *LS_CALLBACK(.name = "first", .user = &number, .save = save_number, .load = load_number);
    ls_callback second =
        *LS_CALLBACK(.name = "second", .user = &number, .save = save_number, .load = load_nothing);
    ls_callback *both[] = { &first, &second };
    ls_trainer *t = small_trainer(NULL, 0);
    ls_trainer_save(t, file, 2, both);
    number = 1;
    assert_int_equal(ls_trainer_resume(t, file, 2, both), LS_INVALID);
    ls_error();
    ls_trainer_free(t);
    assert_int_equal(number, 1);
}

static ls_status load_what_is_not_there(ls_value *saved, void *user)
{
    *(int *)user = (int)ls_to_int(ls_leaf_tensor(ls_get(saved, "missing")));
    return LS_OK;
}

/* An error that it leaves pending is a failure, too. */
static void a_callback_that_does_not_look_at_errors(void **state)
{
    (void)state;
    int number = 7;
    ls_callback c = *LS_CALLBACK(.name = "c", .user = &number, .save = save_number,
                                 .load = load_what_is_not_there);
    ls_callback *all = &c;
    char before[LS_DIGEST_MAX], after[LS_DIGEST_MAX];
    ls_trainer *t = small_trainer(NULL, 0);
    LS_FRAME
        ls_fit(t, LS_FIT(.data = batches()));
    ls_trainer_save(t, file, 1, &all);
    ls_trainer_free(t);
    t = small_trainer(NULL, 0);
    digest_of(t, before);
    assert_int_equal(ls_trainer_resume(t, file, 1, &all), LS_NOT_FOUND);
    assert_error(LS_NOT_FOUND, "missing");
    digest_of(t, after);
    assert_string_equal(before, after);
    ls_trainer_free(t);
}

/* As after a fit that had no memory to note it. */
static void a_lost_place_stays_lost(void **state)
{
    (void)state;
    ls_trainer *t = small_trainer(NULL, 0);
    LS_FRAME {
        ls_fit(t, LS_FIT(.data = batches(), .steps = 3));
        ls_trainer_save(t, file, 0, NULL);
        ls_drop(t->position);
        t->position = NULL;
        t->lost = true;
        for (int i = 0; i < 2; i++) {
            assert_int_equal(ls_fit(t, LS_FIT(.data = batches())), LS_STATE);
            assert_error(LS_STATE, "no memory to note where");
            assert_int_equal(ls_trainer_save(t, file, 0, NULL), LS_STATE);
            assert_error(LS_STATE, "no memory to note where");
        }
        assert_int_equal(ls_trainer_resume(t, file, 0, NULL), LS_OK);
        assert_int_equal(ls_fit(t, LS_FIT(.data = batches())), LS_OK);
    }
    assert_clean();
    ls_trainer_free(t);
}

static ls_status next_batch(void *user, ls_value **out)
{
    int *left = user;
    if ((*left)-- == 0)
        return LS_END;
    ls_tensor *two[] = { ls_ones(LS_F32, LS_DIMS(2, 2)), ls_zeros(LS_I32, LS_DIMS(2)) };
    *out = ls_tensors(2, two);
    return LS_OK;
}

/* A generator that cannot tell where it stands: nobody can go on with its exact next sample. */
static void data_that_cannot_tell_is_not_saved(void **state)
{
    (void)state;
    int left = 5;
    ls_trainer *t = small_trainer(NULL, 0);
    LS_FRAME {
        ls_dataset *data = ls_generate(
            LS_GENERATOR(.user = &left, .next = next_batch, .spec = "f32[2,2], i32[2]"));
        ls_fit(t, LS_FIT(.data = data, .steps = 3));
    }
    assert_clean();
    assert_int_equal(ls_trainer_save(t, file, 0, NULL), LS_UNSUPPORTED);
    assert_error(LS_UNSUPPORTED, "cannot tell where it stood");
    ls_trainer_free(t);
}

static ls_status save_nowhere(const ls_progress *p, void *user)
{
    (void)user;
    if (p->test_step == 2) {
        assert_int_equal(ls_trainer_save(p->trainer, "/dev/null/no", 0, NULL), LS_IO);
        ls_error();
    }
    return LS_OK;
}

/* What is saved within a test is what training has; the test goes on with its own figures. */
static void a_test_in_which_saving_fails(void **state)
{
    (void)state;
    double loss[2];
    for (int fails = 0; fails < 2; fails++) {
        ls_callback c = *LS_CALLBACK(.name = "save", .test_step = save_nowhere);
        ls_callback *all = &c;
        ls_trainer *t = small_trainer(NULL, 0);
        LS_FRAME
            ls_fit(t, LS_FIT(.data = batches(), .test = test_batches(), .n_callbacks = fails,
                             .callbacks = &all));
        assert_clean();
        loss[fails] = ls_trainer_value(t, "test_loss");
        ls_trainer_free(t);
    }
    assert_true(loss[0] == loss[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resumed_without_a_strategy),
        cmocka_unit_test(a_step_that_cannot_be),
        cmocka_unit_test(a_step_that_failed_did_not_take_its_batch),
        cmocka_unit_test(wrong_data_do_not_lose_the_position),
        cmocka_unit_test(saved_within_a_test),
        cmocka_unit_test(a_callback_that_cannot_load),
        cmocka_unit_test(a_callback_that_does_not_look_at_errors),
        cmocka_unit_test(a_lost_place_stays_lost),
        cmocka_unit_test(data_that_cannot_tell_is_not_saved),
        cmocka_unit_test(a_test_in_which_saving_fails),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
