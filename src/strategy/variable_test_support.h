/*
 * What the tests of variables share: strategies of a few replicas, steps run eagerly or traced,
 * and looking at copies and errors.
 */
#ifndef LS__STRATEGY_VARIABLE_TEST_SUPPORT_H
#define LS__STRATEGY_VARIABLE_TEST_SUPPORT_H

#include <lockstep.h>
#include <lockstep/extended.h>

#include "tensor/test_support.h"

#include "strategy/variable.h"

/* Whether run() below traces; set by the setup of a test. */
static bool traced;

static inline int eagerly(void **state)
{
    traced = false;
    return clean(state);
}

static inline int when_traced(void **state)
{
    traced = true;
    return clean(state);
}

/* A test that runs both ways. */
#define BOTH(test)                                                                                 \
    { #test, test, eagerly, NULL, NULL },                                                          \
    {                                                                                              \
#test " (traced)", test, when_traced, NULL, NULL                                           \
    }

/* V replicas on two devices (one, when V is 1). */
static inline ls_strategy *replicas(int count)
{
    ls_strategy *s = ls_mirrored(
        LS_MIRRORED(.devices = count > 1 ? "/cpu:0,/cpu:1" : "/cpu:0", .replicas = count));
    assert_non_null(s);
    return s;
}

static inline ls_value *none(void)
{
    return ls_list(0, NULL);
}

static inline int my_id(void)
{
    return ls_replica_id(ls_get_replica_context());
}

static inline ls_value *run_with(ls_strategy *s, ls_step step, void *user, ls_value *arguments)
{
    if (!traced)
        return ls_run_eager(s, step, user, arguments);
    ls_function *f = ls_trace(step, user);
    ls_value *results = ls_run(s, f, arguments);
    ls_function_free(f);
    return results;
}

static inline ls_value *run(ls_strategy *s, ls_step step, void *user)
{
    return run_with(s, step, user, none());
}

/* A run that must not fail. */
static inline ls_value *runs(ls_strategy *s, ls_step step, void *user)
{
    ls_value *results = run(s, step, user);
    if (!results)
        fail_msg("%s", ls_error_report());
    return results;
}

/* The error that is pending has this code, and all of these in its text or hint; takes it. */
static inline void said(ls_status want, const char *part, const char *other)
{
    ls_status got = ls_error_pending();
    const char *report = ls_error_report(); /* takes it */
    if (got != want || !strstr(report, part) || (other && !strstr(report, other)))
        fail_msg("wanted %s with '%s' and '%s', got: %s", ls_status_name(want), part,
                 other ? other : "", report);
}

static inline ls_tensor *number(double x)
{
    return ls_scalar(LS_F32, x);
}

/* What copy `i` of a scalar f32 variable holds. */
static inline float copy_of(const ls_variable *v, int i)
{
    return *(const float *)ls__cell_data(ls__variable_cell(v, i));
}

static inline void holds(ls_tensor *t, double want)
{
    if (!t || ls_to_double(t) != want)
        fail_msg("%g, not %g (%s)", t ? ls_to_double(t) : 0, want, ls_error_report());
}

#endif
