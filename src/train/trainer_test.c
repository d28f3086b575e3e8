/*
 * What a trainer is not made of: wrong options, and names that could not be told apart later. What
 * the program gave is still its own then. And what its compiled step must not do.
 */
#include "fit_test_support.h"

#include <string.h>

#include "strategy/step.h"
#include "trace/function.h"
#include "train/trainer.h"

static void wrong_options(void **state)
{
    (void)state;
    LS_FRAME {
        assert_null(ls_trainer_new(NULL));
        assert_error(LS_INVALID, "LS_TRAINER");
        assert_null(ls_trainer_new(LS_TRAINER(.seed = 1)));
        assert_error(LS_INVALID, "no .model");
        ls_model *m = small_model(0);
        assert_null(ls_trainer_new(LS_TRAINER(.model = m, .global_batch = -1)));
        assert_error(LS_INVALID, "global batch of -1");
        ls_metric *loss = ls_mean_metric("loss");
        assert_null(ls_trainer_new(LS_TRAINER(.model = m, .n_metrics = 1, .metrics = &loss)));
        assert_error(LS_INVALID, "two metrics are named 'loss'");
        ls_metric_free(loss); /* both are still ours */
        ls_metric *none = NULL;
        assert_null(ls_trainer_new(LS_TRAINER(.model = m, .n_metrics = 1, .metrics = &none)));
        assert_error(LS_INVALID, "metric 0 is NULL");
        ls_model_free(m);
    }
    ls_trainer_free(NULL);
    assert_clean();
}

/* ---- names ---------------------------------------------------------------------------------- */

/* What cannot be saved is found out before an epoch was trained. */
static void a_name_that_no_checkpoint_takes(void **state)
{
    (void)state;
    ls_model *m = ls_model_new(LS_MODEL(.name = "named", .input = "f32[2]"));
    ls_dense_layer(m, LS_DENSE_LAYER(.name = "lockstep", .units = 4));
    ls_trainer *t = ls_trainer_new(LS_TRAINER(.model = m));
    if (!t)
        ls_model_free(m);
    const bool made = t != NULL;
    ls_error();
    ls_trainer_free(t);
    assert_false(made);
}

static ls_status make_sum(ls_layer *layer, ls_tensor *x, void *user)
{
    (void)x, (void)user;
    return ls_layer_make(layer, NULL, "sum", ls_scalar(LS_F32, 0)) ? LS_OK : ls_error_pending();
}

static ls_tensor *add_sum(ls_layer *layer, ls_tensor *x, bool training, void *user)
{
    (void)training, (void)user;
    return ls_add(x, ls_read(ls_layer_variable(layer, "sum")));
}

/* A model with a variable "hits/sum". */
static ls_model *model_that_sums(void)
{
    ls_model *m = ls_model_new(LS_MODEL(.name = "sums", .input = "f32[2]"));
    ls_own_layer(m, LS_LAYER(.name = "hits", .build = make_sum, .forward = add_sum));
    return m;
}

/* `why_not` NULL: it is taken. */
static void expect_metric(const char *name, const char *why_not)
{
    ls_model *m = model_that_sums();
    ls_metric *metric = ls_mean_metric(name);
    ls_trainer *t = ls_trainer_new(LS_TRAINER(.model = m, .n_metrics = 1, .metrics = &metric));
    assert_true((t != NULL) == (why_not == NULL));
    ls_trainer_free(t);
    if (!why_not) {
        assert_clean();
        return;
    }
    assert_error(LS_INVALID, why_not);
    ls_metric_free(metric);
    ls_model_free(m);
}

static void names_of_metrics(void **state)
{
    (void)state;
    expect_metric("test_loss", "those of tests");
    expect_metric("test_", "those of tests");
    expect_metric("hits", "both have a variable 'hits/sum'"); /* which a checkpoint holds by name */
    expect_metric("lockstep/hits", "begins with 'lockstep/'");
    expect_metric("h\xedts", "no UTF-8");
    expect_metric("tests", NULL);
    expect_metric("hit", NULL);
}

static void a_layer_that_is_no_utf8(void **state)
{
    (void)state;
    ls_model *m = ls_model_new(LS_MODEL(.name = "named", .input = "f32[2]"));
    ls_dense_layer(m, LS_DENSE_LAYER(.name = "caf\xe9", .units = 4));
    assert_null(ls_trainer_new(LS_TRAINER(.model = m)));
    assert_error(LS_INVALID, "no UTF-8");
    ls_model_free(m);
}

/* ---- while it is asked --------------------------------------------------------------------------- */

static ls_status disturb(ls_tensor *outputs, ls_value *batch, void *user)
{
    (void)outputs, (void)batch;
    ls_trainer *t = user;
    assert_int_equal(ls_fit(t, LS_FIT(.data = batches())), LS_STATE);
    assert_error(LS_STATE, "ls_fit: it is being asked");
    assert_int_equal(ls_trainer_resume(t, "nowhere", 0, NULL), LS_STATE);
    assert_error(LS_STATE, "ls_trainer_resume: it is being asked");
    ls_trainer_free(t);
    assert_error(LS_STATE, "ls_trainer_free: it is being asked");
    return LS_OK;
}

static void what_is_asked_is_not_disturbed(void **state)
{
    (void)state;
    ls_trainer *t = small_trainer(NULL, 0);
    LS_FRAME
        ls_predict(t, test_batches(), disturb, t);
    assert_clean();
    ls_trainer_free(t);
    assert_clean();
}

/* ---- the step ------------------------------------------------------------------------------- */

static int first_update(const ls__plan *plan)
{
    for (int i = 0; i < plan->n_instructions; i++)
        if (strncmp(plan->instructions[i].node->op->name, "adam", 4) == 0)
            return i;
    return -1;
}

/* Else every step would copy all weights and slots before it writes them. */
static void nothing_can_fail_behind_the_update(void **state)
{
    (void)state;
    for (int v = 1; v <= 2; v++) {
        ls_strategy *s = replicas(v, 1);
        ls_trainer *t = small_trainer(s, 0);
        LS_FRAME
            ls_fit(t, LS_FIT(.data = batches(), .steps = 1));
        assert_clean();
        const ls__traced_step *step = t->train->steps;
        const ls__plan *updates = v == 1 ? step->programs[0].plan : step->meetings[0].plan;
        assert_int_equal(step->n_meetings, v - 1);
        assert_true(first_update(updates) >= updates->tail);
        assert_true(v == 1 || !step->late_can_fail);
        ls_trainer_free(t);
        ls_strategy_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_options),
        cmocka_unit_test(a_name_that_no_checkpoint_takes),
        cmocka_unit_test(names_of_metrics),
        cmocka_unit_test(a_layer_that_is_no_utf8),
        cmocka_unit_test(what_is_asked_is_not_disturbed),
        cmocka_unit_test(nothing_can_fail_behind_the_update),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
