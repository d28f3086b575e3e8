/*
 * Memory runs out while a trainer is fitted, tested, asked, saved or resumed: the n-th allocation fails, for
 * every n. Each time it is told, and the trainer goes on: with the bits of one that always had memory.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/sanitized.h"
#include "support/failing_memory.h"
#include "train/fit_test_support.h"

/* All of them as shipped; elsewhere some must do. */
#if defined(LS_HAVE_DNNL) && !defined(__clang__)
enum { EVERY = LS__SANITIZED ? 5 : 1 };
#else
enum { EVERY = 5 };
#endif

enum { EPOCHS = 2, FEW = 8 };

static char folder[] = "/tmp/lockstep-memory-XXXXXX", file[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(file, sizeof file, "%s/a.safetensors", mkdtemp(folder));
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(file);
    return rmdir(folder);
}

static ls_trainer *new_trainer(ls_strategy *s)
{
    ls_model *m = ls_model_new(LS_MODEL(.name = "small", .input = "f32[2]"));
    ls_dense_layer(m, LS_DENSE_LAYER(.units = 3, .activation = ls_relu));
    ls_batch_norm_layer(m, NULL);
    ls_dropout_layer(m, 0.5);
    ls_dense_layer(m, LS_DENSE_LAYER(.units = 4));
    ls_random_seed(3);
    ls_trainer *t = ls_trainer_new(LS_TRAINER(.strategy = s, .model = m, .global_batch = 4));
    assert_clean();
    return t;
}

/* Two batches. */
static ls_dataset *few(void)
{
    return ls_batch(ls_shuffle(points(FEW), FEW, 7), 4);
}

static ls_status fit(ls_trainer *t, ls_dataset *data, int64_t epochs)
{
    return ls_fit(t, LS_FIT(.data = data, .test = data, .epochs = epochs));
}

/* ---- what is done ---------------------------------------------------------------------------- */

static ls_status look_at(ls_tensor *outputs, ls_value *batch, void *user)
{
    (void)outputs, (void)batch, (void)user;
    return LS_OK;
}

static ls_status do_fit(ls_trainer *t, ls_dataset *data)
{
    return fit(t, data, EPOCHS);
}

static ls_status do_evaluate(ls_trainer *t, ls_dataset *data)
{
    return ls_evaluate(t, data);
}

static ls_status do_predict(ls_trainer *t, ls_dataset *data)
{
    return ls_predict(t, data, look_at, NULL);
}

static ls_status do_save(ls_trainer *t, ls_dataset *data)
{
    (void)data;
    return ls_trainer_save(t, file, 0, NULL);
}

static ls_status do_resume(ls_trainer *t, ls_dataset *data)
{
    (void)data;
    return ls_trainer_resume(t, file, 0, NULL);
}

/* ---- failures ---------------------------------------------------------------------------------- */

typedef ls_status (*action)(ls_trainer *t, ls_dataset *data);

static const struct {
    const char *name;
    action act;
    bool anew; /* in a trainer that was not fitted yet */
} actions[] = { { "fit", do_fit, false },
                { "evaluate", do_evaluate, false },
                { "predict", do_predict, false },
                { "save", do_save, false },
                { "resume", do_resume, true } };

/* The state after the action and the rest of the training, when allocation n fails; false when there
 * are not so many. One whose place was lost cannot go on, says so, and is resumed. */
static bool one_failure(size_t which, long n, char out[LS_DIGEST_MAX])
{
    ls_strategy *s = replicas(2, 1);
    ls_trainer *t = new_trainer(s);
    bool failed = false;
    LS_FRAME {
        ls_dataset *data = few();
        fit(t, data, 1); /* the second epoch is still to come */
        ls_trainer_save(t, file, 0, NULL);
        if (actions[which].anew) {
            ls_trainer_free(t);
            ls_strategy_free(s);
            s = replicas(2, 1); /* which has drawn nothing yet */
            t = new_trainer(s);
        }
        assert_clean();
        memory_fails_after(n);
        ls_status st = actions[which].act(t, data);
        failed = memory_is_back();
        if ((st && (!failed || st != LS_NO_MEMORY)) || ls_error() != st)
            fail_msg("%s, allocation %ld: %s, '%s'", actions[which].name, n, ls_status_name(st),
                     ls_error_text());
        st = fit(t, data, EPOCHS);
        if (st == LS_STATE && failed) {
            assert_error(LS_STATE, "no memory to note where");
            assert_int_equal(ls_trainer_resume(t, file, 0, NULL), LS_OK);
            st = fit(t, data, EPOCHS);
        }
        assert_clean();
        ls_trainer_digest(t, 0, NULL, out);
    }
    assert_clean();
    ls_trainer_free(t);
    assert_int_equal(ls_strategy_free(s), LS_OK);
    return failed;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    char want[LS_DIGEST_MAX], got[LS_DIGEST_MAX];
    assert_false(one_failure(0, -1, want));
    for (size_t which = 0; which < sizeof actions / sizeof *actions; which++) {
        long n = 0;
        for (; one_failure(which, n, got); n += EVERY)
            if (strcmp(want, got) != 0)
                fail_msg("%s, allocation %ld: other bits", actions[which].name, n);
        assert_string_equal(want, got);
        print_message("%s: %ld allocations\n", actions[which].name, n);
        assert_true(n > 2);
    }
}

static void say_nothing(ls_log_level level, const char *message, void *user)
{
    (void)level, (void)message, (void)user;
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_allocation_may_fail) };
    ls_log_set(say_nothing, NULL, LS_LOG_ERROR);
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
