/*
 * ls_evaluate, and the test after each epoch: one pass over the data that changes nothing but the
 * figures. Invariant: metrics and the strategy's count of steps are as before, so that a test in the
 * middle of an epoch does not touch a bit of training.
 */
#include <lockstep/input.h>
#include <math.h>

#include "base/status.h"
#include "train/trainer.h"

static ls_value *save_metrics(const ls_trainer *t)
{
    ls_value *saved[64];
    int n = t->n_metrics < 64 ? t->n_metrics : 64;
    for (int i = 0; i < n; i++)
        saved[i] = ls_variables_save(2, ls_metric_variables(t->metrics[i]));
    return ls_list(n, saved);
}

static ls_status restore_metrics(const ls_trainer *t, ls_value *saved)
{
    ls_status st = LS_OK;
    for (int i = 0; i < ls_length(saved) && !st; i++)
        st = ls_variables_restore(2, ls_metric_variables(t->metrics[i]), ls_child(saved, i));
    return st;
}

static ls_status reset(const ls_trainer *t)
{
    ls_status st = LS_OK;
    for (int i = 0; i < t->n_metrics && !st; i++)
        st = ls_metric_reset(t->metrics[i]);
    return st;
}

static ls_status test_step(const char *who, ls_trainer *t, ls_iterator *it)
{
    ls_value *batch = NULL;
    ls_status st = ls_next(it, &batch);
    if (st)
        return st;
    if (ls__batch_rows(who, t, batch) < 0 || !ls_run(t->strategy, t->test, batch))
        return ls_error_pending();
    return LS_OK;
}

static ls_status test_steps(const char *who, ls_trainer *t, ls_iterator *it,
                            const ls__audience *audience, ls_progress *p)
{
    for (;;) {
        ls_status st = LS_OK;
        LS_FRAME
            st = test_step(who, t, it);
        if (st == LS_END)
            return p->test_step > 0
                       ? LS_OK
                       : ls__fail(LS_INVALID, "%s: the data to test with has no element", who);
        if (st)
            return st;
        p->test_step++;
        st = ls__call_callbacks(audience, LS__AT_TEST_STEP, p);
        if (st)
            return st;
    }
}

static ls_status test(const char *who, ls_trainer *t, ls_dataset *data,
                      const ls__audience *audience, ls_progress *p)
{
    ls_dist_dataset *parts = ls_distribute(t->strategy, data);
    ls_iterator *it = ls_iterate(parts);
    if (!it)
        return ls_error_pending();
    int64_t steps = ls_cardinality(parts);
    p->test_step = 0;
    p->test_steps = steps >= 0 ? steps : LS_UNKNOWN;
    ls_status st = test_steps(who, t, it, audience, p);
    ls_iterator_free(it);
    for (int i = 0; i < t->n_metrics && !st; i++)
        t->values[t->n_metrics + i] = ls_metric_result(t->metrics[i]);
    return st ? st : ls_error_pending();
}

ls_status ls__test(const char *who, ls_trainer *t, ls_dataset *data, const ls__audience *audience,
                   ls_progress *p)
{
    ls_status st;
    int64_t steps = ls_steps(t->strategy);
    LS_FRAME {
        ls_value *before = save_metrics(t);
        st = before ? reset(t) : ls_error_pending();
        if (!st)
            st = test(who, t, data, audience, p);
        ls__error_record failed;
        ls__error_take(&failed);
        ls_status back = before ? restore_metrics(t, before) : LS_OK;
        if (!back && !(t->strategy == ls_default_strategy()))
            back = ls_set_steps(t->strategy, steps);
        if (failed.status)
            ls__error_put(&failed);
        st = st ? st : back;
    }
    return st;
}

ls_status ls_evaluate(ls_trainer *t, ls_dataset *data)
{
    ls_status st = ls__check_trainer("ls_evaluate", t);
    if (st)
        return st;
    if (!data)
        return ls_error_pending() ? ls_error_pending()
                                  : ls__fail(LS_INVALID, "ls_evaluate: the data is NULL");
    ls_progress p = { .size = sizeof p, .trainer = t, .step = t->at.step, .loss = NAN };
    return ls__test("ls_evaluate", t, data, &(ls__audience){ 0 }, &p);
}
