/*
 * ls_evaluate, and the test after each epoch: one pass over the data that changes nothing but the
 * figures. Invariant: metrics, what replicas keep of their own, and the strategy's count of steps are
 * as before, so that a test in the middle of an epoch does not touch a bit of training.
 */
#include <lockstep/input.h>
#include <math.h>

#include "base/status.h"
#include "train/trainer.h"

enum { MOST_SAVED = 1024 };

/* What replicas keep for themselves and training changes: metrics, and batch norm's statistics. */
static int own_variables(const ls_trainer *t, ls_variable **out)
{
    int n = 0;
    for (int i = 0; i < t->n_metrics && n + 2 <= MOST_SAVED; i++)
        for (int k = 0; k < 2; k++)
            out[n++] = ls_metric_variables(t->metrics[i])[k];
    for (int i = 0; i < ls_model_count(t->model) && n < MOST_SAVED; i++) {
        ls_variable *v = ls_model_variables(t->model)[i];
        if (ls_variable_synchronization(v) == LS_SYNC_ON_READ &&
            ls_variable_aggregation(v) != LS_AGGREGATE_NONE)
            out[n++] = v;
    }
    return n;
}

/* Metrics count from nothing; of what else replicas have of their own each gets what all have
 * together, so that a figure does not depend on which replica saw which row, and is the one that a
 * checkpoint gives. */
static ls_status even_out(const ls_trainer *t, int n, ls_variable *const *own)
{
    ls_status st = LS_OK;
    for (int i = 0; i < t->n_metrics && !st; i++)
        st = ls_metric_reset(t->metrics[i]);
    for (int i = 2 * t->n_metrics; i < n && !st; i++)
        st = ls_assign(own[i], ls_read(own[i]));
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

/* Puts back what was before: what `t->aside` and `t->aside_steps` say. */
static ls_status put_back(ls_trainer *t, int n, ls_variable *const *own)
{
    ls_status st = ls_variables_restore(n, own, t->aside);
    if (!st && t->strategy != ls_default_strategy())
        st = ls_set_steps(t->strategy, t->aside_steps);
    return st;
}

ls_status ls__aside(ls_trainer *t, ls_status (*fn)(ls_trainer *t, void *user), void *user)
{
    if (t->aside) /* a test within a test: nothing of training is there to be kept */
        return fn(t, user);
    ls_status st = LS_OK;
    LS_FRAME {
        ls_variable *own[MOST_SAVED];
        int n = own_variables(t, own);
        ls_value *before = ls_variables_save(n, own);
        t->aside = before ? ls_value_keep(before) : NULL;
        t->aside_steps = ls_steps(t->strategy);
        LS_SCOPE (t->strategy)
            st = t->aside ? even_out(t, n, own) : ls_error_pending();
        if (!st)
            st = fn(t, user);
        ls__error_record failed;
        ls__error_take(&failed);
        ls_status back = t->aside ? put_back(t, n, own) : LS_OK;
        if (failed.status) {
            ls_error(); /* what came first is told */
            ls__error_put(&failed);
        }
        st = st ? st : back;
        ls_value_drop(t->aside);
        t->aside = NULL;
    }
    return st;
}

ls_status ls__as_trained(ls_trainer *t, ls_status (*fn)(ls_trainer *t, void *user), void *user)
{
    if (!t->aside)
        return fn(t, user);
    ls_status st = LS_OK;
    LS_FRAME {
        ls_variable *own[MOST_SAVED];
        int n = own_variables(t, own);
        ls_value *now = ls_variables_save(n, own);
        int64_t steps = ls_steps(t->strategy);
        st = now ? put_back(t, n, own) : ls_error_pending();
        if (!st)
            st = fn(t, user);
        if (now && ls_variables_restore(n, own, now) == LS_OK &&
            t->strategy != ls_default_strategy())
            ls_set_steps(t->strategy, steps);
    }
    return st ? st : ls_error_pending();
}

/* What a test is given. */
typedef struct asked {
    const char *who;
    ls_dataset *data;
    const ls__audience *audience;
    ls_progress *progress;
} asked;

static ls_status run_test(ls_trainer *t, void *user)
{
    const asked *a = user;
    return test(a->who, t, a->data, a->audience, a->progress);
}

ls_status ls__test(const char *who, ls_trainer *t, ls_dataset *data, const ls__audience *audience,
                   ls_progress *p)
{
    return ls__aside(t, run_test, &(asked){ who, data, audience, p });
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
