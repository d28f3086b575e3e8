/*
 * A run that is stopped and resumed, in a trainer made anew, ends with the bits of one that never
 * stopped: at any step, within an epoch, at its end and within its test, on other devices, with
 * dropout, shuffled data, and callbacks that remember.
 */
#include "fit_test_support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/lockstep-resume-XXXXXX";
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

static const ls_fit_options *options(ls_callback *const *callbacks, int n)
{
    static ls_fit_options o;
    o = *LS_FIT(.data = batches(), .test = test_batches(), .epochs = 4, .n_callbacks = n,
                .callbacks = callbacks);
    return &o;
}

/* Stops after so many steps; negative: within the test after so many epochs. */
typedef struct stopper {
    int at;
    int tests; /* begun so far */
} stopper;

static ls_status stop_at_step(const ls_progress *p, void *user)
{
    return p->step == ((stopper *)user)->at ? LS_END : LS_OK;
}

static ls_status stop_at_test(const ls_progress *p, void *user)
{
    stopper *s = user;
    return s->at < 0 && p->test_step == 2 && p->epoch == -s->at ? LS_END : LS_OK;
}

static void whole(int v, char *out)
{
    ls_strategy *s = replicas(v, 1);
    ls_trainer *t = small_trainer(s, 0.3);
    ls_callback *early = ls_early_stop(LS_EARLY_STOP(.patience = 3, .best = true));
    LS_FRAME
        ls_fit(t, options(&early, 1));
    ls_trainer_digest(t, 1, &early, out);
    assert_clean();
    ls_callback_free(early);
    ls_trainer_free(t);
    ls_strategy_free(s);
}

static void first_part(int v, int at)
{
    ls_strategy *s = replicas(v, 1);
    ls_trainer *t = small_trainer(s, 0.3);
    stopper how = { .at = at };
    ls_callback stop =
        *LS_CALLBACK(.user = &how, .name = "stop", .step = stop_at_step, .test_step = stop_at_test);
    ls_callback *early = ls_early_stop(LS_EARLY_STOP(.patience = 3, .best = true));
    ls_callback *all[] = { early, &stop };
    LS_FRAME
        ls_fit(t, options(all, 2));
    ls_trainer_save(t, file, 1, &early);
    assert_clean();
    ls_callback_free(early);
    ls_trainer_free(t);
    ls_strategy_free(s);
}

static void second_part(int v, int devices, char *out)
{
    ls_strategy *s = replicas(v, devices);
    ls_random_seed(3);
    ls_trainer *t = small_trainer(s, 0.3);
    ls_callback *early = ls_early_stop(LS_EARLY_STOP(.patience = 3, .best = true));
    ls_trainer_resume(t, file, 1, &early);
    LS_FRAME
        ls_fit(t, options(&early, 1));
    ls_trainer_digest(t, 1, &early, out);
    assert_clean();
    ls_callback_free(early);
    ls_trainer_free(t);
    ls_strategy_free(s);
}

static void resumed_is_as_never_stopped(void **state)
{
    (void)state;
    char want[LS_DIGEST_MAX], got[LS_DIGEST_MAX];
    whole(3, want);
    static const int stops[] = { 1, 4, 5, 7, 10, 18, 20, -1, -2 };
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        first_part(3, stops[i]);
        second_part(3, 1 + (int)i % 3, got);
        if (strcmp(want, got) != 0)
            fail_msg("stopped at %d: %s, never stopped: %s", stops[i], got, want);
    }
}

/* ---- what is refused ------------------------------------------------------------------------------------- */

static void another_model_or_number_of_replicas(void **state)
{
    (void)state;
    first_part(2, 3);
    char before[LS_DIGEST_MAX], after[LS_DIGEST_MAX];
    ls_strategy *s = replicas(3, 1);
    ls_trainer *t = small_trainer(s, 0);
    ls_trainer_digest(t, 0, NULL, before);
    assert_int_equal(ls_trainer_resume(t, file, 0, NULL), LS_INVALID);
    assert_error(LS_INVALID, "2 replicas");
    ls_trainer_digest(t, 0, NULL, after);
    assert_string_equal(before, after);
    ls_trainer_free(t);
    ls_strategy_free(s);

    s = replicas(2, 1);
    ls_model *m = ls_model_new(LS_MODEL(.name = "other", .input = "f32[2]"));
    ls_dense_layer(m, LS_DENSE_LAYER(.units = 4));
    t = ls_trainer_new(LS_TRAINER(.strategy = s, .model = m));
    assert_int_equal(ls_trainer_resume(t, file, 0, NULL), LS_INVALID);
    assert_error(LS_INVALID, "'small'");
    ls_trainer_free(t);
    ls_strategy_free(s);
}

static void other_data_than_the_checkpoints(void **state)
{
    (void)state;
    first_part(2, 3);
    ls_strategy *s = replicas(2, 1);
    ls_trainer *t = small_trainer(s, 0.3);
    assert_int_equal(ls_trainer_resume(t, file, 0, NULL), LS_OK);
    LS_FRAME
        assert_int_equal(ls_fit(t, LS_FIT(.data = ls_batch(points(9), 3))), LS_INVALID);
    ls_error();
    ls_trainer_free(t);
    ls_strategy_free(s);
}

/* Weights alone, by name: the optimizer begins anew. */
static void weights_by_name(void **state)
{
    (void)state;
    first_part(2, 7);
    ls_trainer *t = small_trainer(NULL, 0.3);
    assert_int_equal(ls_trainer_take_weights(t, file), LS_OK);
    LS_FRAME {
        ls_value *saved = ls_safetensors_read(file);
        ls_variable *first = ls_model_variables(ls_trainer_model(t))[0];
        ls_tensor *in_file = ls_leaf_tensor(ls_get(saved, ls_variable_name(first)));
        ls_tensor *same = ls_all(ls_equal(ls_read(first), in_file), LS_ALL_AXES, false);
        assert_int_equal(ls_to_int(same), 1);
    }
    assert_int_equal(ls_iterations(ls_trainer_optimizer(t)), 0);
    ls_trainer_free(t);
    assert_clean();
}

/* ---- callbacks that save ---------------------------------------------------------------------------------- */

static int files_in(const char *where)
{
    char command[160];
    snprintf(command, sizeof command, "ls '%s' | grep -c '^step-.*[.]safetensors$'", where);
    FILE *pipe = popen(command, "r");
    int n = -1;
    assert_int_equal(fscanf(pipe, "%d", &n), 1);
    pclose(pipe);
    return n;
}

static void checkpoints_are_kept(void **state)
{
    (void)state;
    char where[80], newest[256];
    snprintf(where, sizeof where, "%s/run/deep", folder);
    ls_trainer *t = small_trainer(NULL, 0);
    ls_callback *saved = ls_checkpoints(LS_CHECKPOINTS(.directory = where, .every = 2, .keep = 2));
    LS_FRAME
        ls_fit(t, options(&saved, 1));
    assert_clean();
    assert_int_equal(files_in(where), 2);
    assert_int_equal(ls_checkpoint_newest(where, newest, sizeof newest), LS_OK);
    assert_non_null(strstr(newest, "step-000000020.safetensors"));
    ls_callback_free(saved);
    ls_trainer_free(t);
}

static void the_best_is_saved(void **state)
{
    (void)state;
    ls_trainer *t = small_trainer(NULL, 0);
    ls_callback *best = ls_best_checkpoint(file, "test_accuracy");
    LS_FRAME
        ls_fit(t, options(&best, 1));
    assert_clean();
    ls_trainer *again = small_trainer(NULL, 0);
    assert_int_equal(ls_trainer_resume(again, file, 0, NULL), LS_OK);
    assert_true(ls_trainer_value(again, "test_accuracy") >= ls_trainer_value(t, "test_accuracy"));
    ls_callback_free(best);
    ls_trainer_free(again);
    ls_trainer_free(t);
}

static void nowhere_to_save(void **state)
{
    (void)state;
    ls_trainer *t = small_trainer(NULL, 0);
    ls_callback *saved = ls_checkpoints(LS_CHECKPOINTS(.directory = "/dev/null/run"));
    LS_FRAME
        assert_int_equal(ls_fit(t, options(&saved, 1)), LS_IO);
    assert_error(LS_IO, "/dev/null");
    ls_callback_free(saved);
    ls_trainer_free(t);
    assert_null(ls_checkpoints(LS_CHECKPOINTS(.every = 1)));
    assert_error(LS_INVALID, "no .directory");
    assert_null(ls_best_checkpoint(NULL, NULL));
    assert_error(LS_INVALID, "no file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resumed_is_as_never_stopped),
        cmocka_unit_test(another_model_or_number_of_replicas),
        cmocka_unit_test(other_data_than_the_checkpoints),
        cmocka_unit_test(weights_by_name),
        cmocka_unit_test(checkpoints_are_kept),
        cmocka_unit_test(the_best_is_saved),
        cmocka_unit_test(nowhere_to_save),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
