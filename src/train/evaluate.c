/*
 * ls_evaluate, and the test after each epoch: one pass over the data that changes nothing but the
 * figures. Invariant: metrics, what replicas keep of their own, and the strategy's count of steps are
 * as before, so that a test in the middle of an epoch does not touch a bit of training.
 */
#include <lockstep/input.h>
#include <math.h>

#include "base/status.h"
#include "tensor/tensor.h"
#include "train/trainer.h"

/* What replicas keep for themselves and training changes: metrics, and batch norm's statistics. In
 * memory of the innermost frame; NULL: an error is pending. */
typedef struct own_variables {
    int count;
    ls_variable **at;
} own_variables;

static own_variables own_of(const ls_trainer *t)
{
    size_t most = 2 * (size_t)t->n_metrics + (size_t)ls_model_count(t->model);
    own_variables own = { 0, ls__frame_alloc(most * sizeof(ls_variable *)) };
    for (int i = 0; own.at && i < t->n_metrics; i++)
        for (int k = 0; k < 2; k++)
            own.at[own.count++] = ls_metric_variables(t->metrics[i])[k];
    for (int i = 0; own.at && i < ls_model_count(t->model); i++) {
        ls_variable *v = ls_model_variables(t->model)[i];
        if (ls_variable_synchronization(v) == LS_SYNC_ON_READ &&
            ls_variable_aggregation(v) != LS_AGGREGATE_NONE)
            own.at[own.count++] = v;
    }
    return own;
}

/* Metrics count from nothing; of what else replicas have of their own each gets what all have
 * together, so that a figure does not depend on which replica saw which row, and is the one that a
 * checkpoint gives. */
static ls_status even_out(const ls_trainer *t, const own_variables *own)
{
    ls_status st = LS_OK;
    for (int i = 0; i < t->n_metrics && !st; i++)
        st = ls_metric_reset(t->metrics[i]);
    for (int i = 2 * t->n_metrics; i < own->count && !st; i++)
        st = ls_assign(own->at[i], ls_read(own->at[i]));
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

/* Puts back what was before. */
static ls_status put_back(const ls_trainer *t, const own_variables *own, ls_value *before,
                          int64_t steps)
{
    ls_status st = ls_variables_restore(own->count, own->at, before);
    if (!st && t->strategy != ls_default_strategy())
        st = ls_set_steps(t->strategy, steps);
    return st;
}

/* The state of training is that outside of all that runs beside it: a test may hold another one. */
static ls_status run_aside(ls_trainer *t, const own_variables *own, ls_value *before,
                           ls_status (*fn)(ls_trainer *t, void *user), void *user)
{
    const int64_t steps = ls_steps(t->strategy);
    const bool outermost = !t->aside;
    if (outermost) {
        t->aside = before;
        t->aside_steps = steps;
    }
    ls_status st = LS_OK;
    LS_SCOPE (t->strategy)
        st = even_out(t, own);
    if (!st)
        st = ls_error_pending(); /* there was no entering the scope */
    if (!st)
        st = fn(t, user);
    ls__error_record failed;
    ls__error_take(&failed);
    ls_status back = put_back(t, own, before, steps);
    if (failed.status) {
        ls_error(); /* what came first is told */
        ls__error_put(&failed);
    }
    if (outermost)
        t->aside = NULL;
    return st ? st : back;
}

ls_status ls__aside(ls_trainer *t, ls_status (*fn)(ls_trainer *t, void *user), void *user)
{
    ls_status st = LS_NO_MEMORY;
    LS_FRAME {
        own_variables own = own_of(t);
        ls_value *before = own.at ? ls_variables_save(own.count, own.at) : NULL;
        st = before ? run_aside(t, &own, before, fn, user) : ls_error_pending();
    }
    return st;
}

ls_status ls__as_trained(ls_trainer *t, ls_status (*fn)(ls_trainer *t, void *user), void *user)
{
    if (!t->aside)
        return fn(t, user);
    ls_status st = LS_NO_MEMORY;
    LS_FRAME {
        own_variables own = own_of(t);
        ls_value *now = own.at ? ls_variables_save(own.count, own.at) : NULL;
        int64_t steps = ls_steps(t->strategy);
        st = now ? put_back(t, &own, t->aside, t->aside_steps) : ls_error_pending();
        if (!st)
            st = fn(t, user);
        ls__error_record failed;
        ls__error_take(&failed);
        ls_status back = now ? put_back(t, &own, now, steps) : LS_OK;
        if (failed.status) {
            ls_error(); /* what came first is told */
            ls__error_put(&failed);
        }
        st = st ? st : back;
    }
    return st;
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
