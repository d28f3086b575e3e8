/*
 * Metrics: a sum and a count on every replica. Invariant: a replica adds to its own and meets nobody;
 * what replicas have is put together when it is read, in the order of the tree. All of it is
 * operators on variables, so a step that updates can be traced, and one that fails has counted nothing.
 */
#include "train/metric.h"

#include <lockstep/ops.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "dispatch/tape.h"
#include "strategy/context.h"
#include "strategy/variable.h"
#include "tensor/tensor.h"
#include "train/model.h"

enum { SUM, COUNT };

static ls_status check_metric(const char *who, const ls_metric *m)
{
    if (m)
        return LS_OK;
    return ls_error_pending() ? ls_error_pending()
                              : ls__fail(LS_INVALID, "%s: the metric is NULL", who);
}

/* ---- making ----------------------------------------------------------------------------------- */

static ls_variable *make_variable(const ls_metric *m, const char *part, ls_dtype dtype)
{
    char full[LS__NAME_MOST + 16];
    snprintf(full, sizeof full, "%s/%s", m->name, part);
    ls_variable *v = NULL;
    LS_FRAME
        v = ls_variable_with(
            LS_VARIABLE(.synchronization = LS_SYNC_ON_READ, .aggregation = LS_AGGREGATE_SUM), full,
            ls_scalar(dtype, 0));
    return v;
}

ls_metric *ls__metric_new(const char *who, const char *name, const char *usual, ls_metric_fn fn,
                          void *user)
{
    if ((name && ls__check_name(who, name)) ||
        ls__check_alone(who, "make metrics before the run, in the scope of the strategy"))
        return NULL;
    ls_metric *m = calloc(1, sizeof *m);
    if (m)
        m->name = strdup(name ? name : usual);
    if (!m || !m->name) {
        ls__fail_memory("a metric", sizeof *m);
        free(m);
        return NULL;
    }
    m->fn = fn;
    m->user = user;
    m->variables[SUM] = make_variable(m, "sum", LS_F64);
    if (m->variables[SUM])
        m->variables[COUNT] = make_variable(m, "count", LS_I64);
    if (m->variables[COUNT])
        return m;
    ls_metric_free(m);
    return NULL;
}

void ls_metric_free(ls_metric *m)
{
    if (!m || ls__check_alone("ls_metric_free", "free it after the run"))
        return;
    ls_variable_free(m->variables[SUM]);
    ls_variable_free(m->variables[COUNT]);
    free(m->name);
    free(m);
}

const char *ls_metric_name(const ls_metric *m)
{
    return m ? m->name : NULL;
}

ls_variable *const *ls_metric_variables(const ls_metric *m)
{
    return m ? m->variables : NULL;
}

/* ---- counting ----------------------------------------------------------------------------------- */

/* A strategy's metric is counted by its replicas. */
static ls_status check_counts(const char *who, const ls_metric *m)
{
    if (!m->variables[SUM]->strategy || ls__hosted())
        return LS_OK;
    return ls__hint(
        ls__fail(LS_STATE, "%s: metric '%s' belongs to replicas, and this is none", who, m->name),
        "update it in the function that ls_run runs");
}

static ls_status check_values(const ls_tensor *values, const ls_tensor *weights)
{
    if (values->spec.dtype == LS_BYTES)
        return ls__fail(LS_SHAPE, "values are %s, wants numbers", ls_describe(values));
    if (weights &&
        (weights->spec.dtype == LS_BYTES || !ls__spec_same_shape(&values->spec, &weights->spec)))
        return ls__hint(ls__fail(LS_SHAPE, "values are %s, weights %s", ls_describe(values),
                                 ls_describe(weights)),
                        "give a number for each value");
    return LS_OK;
}

static ls_tensor *sum_of(ls_tensor *x)
{
    return ls_sum(x, LS_ALL_AXES, false);
}

static ls_status count(ls_metric *m, ls_tensor *values, ls_tensor *weights)
{
    ls_status st = check_values(values, weights);
    if (st)
        return st;
    ls_tensor *wide = ls_cast(values, LS_F64), *number;
    if (weights) {
        wide = ls_mul(wide, ls_cast(weights, LS_F64));
        number = sum_of(ls_cast(ls_cast(weights, LS_BOOL), LS_I64)); /* to bool: not 0 */
    } else {
        number = ls_scalar_int(LS_I64, ls_count(values));
    }
    st = ls_assign_add(m->variables[SUM], sum_of(wide));
    return st ? st : ls_assign_add(m->variables[COUNT], number);
}

ls_status ls_metric_add(ls_metric *m, ls_tensor *values, ls_tensor *weights)
{
    static const char who[] = "ls_metric_add";
    ls_status st = check_metric(who, m);
    if (!st)
        st = ls__check_tensor(who, "values", values);
    if (!st)
        st = weights ? ls__check_tensor(who, "weights", weights) : ls_error_pending();
    if (!st)
        st = check_counts(who, m);
    if (st)
        return st;
    int tapes = ls__tape_pause();
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    st = ls__error_scope_close(&scope, count(m, values, weights), "metric '%s'", m->name);
    ls__tape_resume(tapes);
    return st;
}

static ls_status update(ls_metric *m, ls_tensor *outputs, ls_tensor *labels)
{
    ls_tensor *values = m->fn(outputs, labels, m->user);
    if (values)
        return count(m, values, NULL);
    return ls_error_pending() ? ls_error_pending()
                              : ls__hint(ls__fail(LS_INVALID, "its function gave NULL"),
                                         "return the numbers whose mean is taken");
}

ls_status ls_metric_update(ls_metric *m, ls_tensor *outputs, ls_tensor *labels)
{
    static const char who[] = "ls_metric_update";
    ls_status st = check_metric(who, m);
    if (!st && !m->fn)
        st = ls__hint(
            ls__fail(LS_INVALID, "%s: metric '%s' is a mean of what it is given", who, m->name),
            "use ls_metric_add");
    if (!st)
        st = ls__check_tensor(who, "outputs", outputs);
    if (!st)
        st = ls__check_tensor(who, "labels", labels);
    if (!st)
        st = check_counts(who, m);
    if (st)
        return st;
    int tapes = ls__tape_pause();
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    st = ls__error_scope_close(&scope, update(m, outputs, labels), "metric '%s'", m->name);
    ls__tape_resume(tapes);
    return st;
}

/* ---- all replicas together ---------------------------------------------------------------------------- */

static ls_status check_together(const char *who, const ls_metric *m)
{
    if (!ls__hosted())
        return LS_OK;
    return ls__hint(ls__fail(LS_STATE,
                             "%s: metric '%s' is asked in a replica, which has a part of it", who,
                             m->name),
                    "ask after the run, or in a merge function");
}

/* LS_OK: both are known. */
static ls_status look(const char *who, ls_metric *m, double *sum, int64_t *number)
{
    ls_status st = check_together(who, m);
    if (st)
        return st;
    LS_FRAME {
        ls_tensor *a = ls_read(m->variables[SUM]), *b = a ? ls_read(m->variables[COUNT]) : NULL;
        if (a && b) {
            *sum = ls_to_double(a);
            *number = ls_to_int(b);
        } else {
            st = ls_error_pending();
        }
    }
    return st;
}

double ls_metric_result(ls_metric *m)
{
    double sum;
    int64_t number;
    if (!m || look("ls_metric_result", m, &sum, &number))
        return NAN;
    return number ? sum / (double)number : NAN;
}

int64_t ls_metric_samples(ls_metric *m)
{
    double sum;
    int64_t number;
    return !m || look("ls_metric_samples", m, &sum, &number) ? 0 : number;
}

ls_status ls_metric_reset(ls_metric *m)
{
    static const char who[] = "ls_metric_reset";
    ls_status st = check_metric(who, m);
    if (!st)
        st = check_together(who, m);
    if (st)
        return st;
    LS_FRAME {
        st = ls_assign(m->variables[SUM], ls_scalar(LS_F64, 0));
        if (!st)
            st = ls_assign(m->variables[COUNT], ls_scalar(LS_I64, 0));
    }
    return st;
}
