/*
 * Schedules of optimizers: what is refused, and that a rate or a schedule set between steps is
 * followed by a traced step without a new trace. Values: ops/rate_test.c, and against Keras.
 */
#include "train/optimizer_test_support.h"

static void refused(const ls_schedule *schedule, const char *part)
{
    ls_optimizer *o = ls_sgd(NULL);
    assert_null(ls_sgd(LS_SGD(.schedule = schedule)));
    said(LS_INVALID, "ls_sgd: ", part);
    assert_null(ls_adamw(LS_ADAM(.schedule = schedule)));
    said(LS_INVALID, "ls_adamw: ", part);
    assert_int_equal(ls_set_schedule(o, schedule), LS_INVALID);
    said(LS_INVALID, "ls_set_schedule: ", part);
    assert_true(ls_rate(o) == 0.01);
    ls_optimizer_free(o);
}

static void what_is_refused(void **state)
{
    (void)state;
    const int64_t one[] = { 5 }, falling[] = { 5, 4 }, twice[] = { 5, 5 }, negative[] = { -1 };
    const double values[] = { 1, 2, 3 }, bad[] = { 1, NAN }, minus[] = { 1, -2 };
#define STEPS(n, b, v)                                                                             \
    LS_SCHEDULE(.kind = LS_SCHEDULE_STEP, .count = n, .boundaries = b, .values = v)
#define COSINE(...) LS_SCHEDULE(.kind = LS_SCHEDULE_COSINE, __VA_ARGS__)
    refused(STEPS(0, one, values), "0 boundaries");
    refused(STEPS(-1, one, values), "-1 boundaries");
    refused(STEPS(65, one, values), "1 to 64 boundaries");
    refused(STEPS(1, NULL, values), "in NULL");
    refused(STEPS(1, one, NULL), "values in NULL");
    refused(STEPS(2, falling, values), "boundary 4 after boundary 5");
    refused(STEPS(2, twice, values), "boundaries rise");
    refused(STEPS(1, negative, values), "boundary -1");
    refused(STEPS(1, one, bad), "value nan");
    refused(STEPS(1, one, minus), "value -2");
    refused(LS_SCHEDULE(.kind = LS_SCHEDULE_STEP, .count = 1, .boundaries = one, .values = values,
                        .rate = 0.1),
            "its rates are .values");
    refused(COSINE(.steps = 0), "steps 0");
    refused(COSINE(.steps = -3), "steps -3");
    refused(COSINE(.steps = 5, .alpha = -0.1), "alpha -0.1");
    refused(COSINE(.steps = 5, .alpha = 1.5), "alpha 1.5");
    refused(COSINE(.steps = 5, .alpha = NAN), "alpha nan");
    refused(COSINE(.steps = 5, .rate = NAN), "rate nan");
    refused(LS_SCHEDULE(.rate = INFINITY), "rate inf");
    refused(LS_SCHEDULE(.rate = -2), "rate -2");
    refused(LS_SCHEDULE(.warmup_steps = -1), "warmup_steps -1");
    refused(LS_SCHEDULE(.warmup_steps = INT64_MAX), "warmup_steps");
    refused(LS_SCHEDULE(.warmup_steps = 1, .warmup_from = NAN), "warmup_from nan");
    refused(LS_SCHEDULE(.warmup_steps = 1, .warmup_from = -1), "warmup_from -1");
    refused(LS_SCHEDULE(.kind = (ls_schedule_kind)7), "kind 7");
    refused(&(ls_schedule){ .size = 3 }, "3 bytes");
    ls_optimizer *o = ls_sgd(NULL);
    const double rates[] = { NAN, INFINITY, -INFINITY, -0.5 };
    for (int i = 0; i < 4; i++) {
        assert_int_equal(ls_set_rate(o, rates[i]), LS_INVALID);
        said(LS_INVALID, "ls_set_rate: rate", "finite number, 0 or more");
        assert_null(ls_adam(LS_ADAM(.rate = rates[i])));
        said(LS_INVALID, "ls_adam: rate", "finite number, 0 or more");
    }
    assert_int_equal(ls_set_schedule(o, NULL), LS_INVALID);
    said(LS_INVALID, "the schedule is NULL", "ls_set_rate");
    assert_int_equal(ls_set_schedule(NULL, LS_SCHEDULE(.rate = 1)), LS_INVALID);
    said(LS_INVALID, "the optimizer is NULL", NULL);
    assert_true(ls_rate(o) == 0.01);
    ls_optimizer_free(o);
}

static void other_options(void **state)
{
    (void)state;
    assert_null(ls_sgd(LS_SGD(.clip_value = 1, .clip_norm = 1)));
    said(LS_INVALID, "both clip_value and clip_norm", "give one");
    assert_null(ls_adam(LS_ADAM(.clip_norm = 1, .clip_global_norm = 1)));
    said(LS_INVALID, "both clip_norm and clip_global_norm", NULL);
    const double bad[] = { NAN, INFINITY, -0.5 };
    for (int i = 0; i < 3; i++) {
        assert_null(ls_sgd(LS_SGD(.clip_value = bad[i])));
        said(LS_INVALID, "ls_sgd: clip_value", "above 0");
        assert_null(ls_sgd(LS_SGD(.clip_norm = bad[i])));
        said(LS_INVALID, "ls_sgd: clip_norm", NULL);
        assert_null(ls_adamw(LS_ADAM(.clip_global_norm = bad[i])));
        said(LS_INVALID, "ls_adamw: clip_global_norm", NULL);
        assert_null(ls_adamw(LS_ADAM(.weight_decay = bad[i])));
        said(LS_INVALID, "ls_adamw: weight_decay", NULL);
        assert_null(ls_sgd(LS_SGD(.momentum = bad[i])));
        said(LS_INVALID, "ls_sgd: momentum", NULL);
    }
    ls_optimizer *o = ls_sgd(LS_SGD(.clip_value = -1, .clip_norm = 2)); /* -1 asks for none */
    assert_non_null(o);
    ls_optimizer_free(o);
    ls_schedule s = { .size = 7, .steps = 9 };
    ls_schedule_init(&s);
    assert_true(s.size == sizeof s && s.steps == 0);
    ls_schedule_init(NULL);
}

static ls_value *apply(ls_value *arguments, void *user)
{
    (void)arguments;
    pair *p = user;
    ls_tensor *g[] = { ls_ones(LS_F32, LS_DIMS(W_COUNT)), ls_ones(LS_F32, LS_DIMS(B_COUNT)) };
    ls_apply_gradients(p->o, 2, g, p->v);
    return none();
}

/* By how much the last step moved w: two replicas, so twice the rate. */
static void moved(ls_strategy *s, ls_function *f, pair *p, double rate)
{
    assert_true(fabs(ls_rate(p->o) - rate) < 1e-12);
    float before[MOST_STATE], after[MOST_STATE];
    state_of(p, before);
    LS_FRAME {
        ls_value *done = f ? ls_run(s, f, none()) : ls_run_eager(s, apply, p, none());
        if (!done)
            fail_msg("%s", ls_error_report());
    }
    state_of(p, after);
    assert_true(fabs((double)(before[0] - after[0]) - 2 * rate) < 1e-6);
}

static void a_traced_step_follows(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2);
    pair p = make_pair(s, ls_sgd(LS_SGD(.rate = 0.5, .schedule = LS_SCHEDULE(.warmup_steps = 2))));
    ls_function *f = traced ? ls_trace(apply, &p) : NULL;
    moved(s, f, &p, 0);
    moved(s, f, &p, 0.25);
    moved(s, f, &p, 0.5);
    assert_int_equal(ls_set_rate(p.o, 0.125), LS_OK);
    moved(s, f, &p, 0.125);
    /* Four updates are done; the rate is the one that was set. */
    assert_int_equal(
        ls_set_schedule(p.o, LS_SCHEDULE(.kind = LS_SCHEDULE_COSINE, .steps = 8, .alpha = 0.5)),
        LS_OK);
    moved(s, f, &p, 0.125 * 0.75);
    const int64_t at[] = { 5 };
    const double values[] = { 0.5, 0.0625 };
    assert_int_equal(ls_set_schedule(p.o, LS_SCHEDULE(.kind = LS_SCHEDULE_STEP, .count = 1,
                                                      .boundaries = at, .values = values)),
                     LS_OK);
    moved(s, f, &p, 0.5);
    moved(s, f, &p, 0.0625);
    assert_int_equal(ls_set_schedule(p.o, LS_SCHEDULE(.rate = -1)), LS_OK);
    moved(s, f, &p, 0);
    if (f)
        assert_int_equal(ls_function_traces(f), 1);
    ls_function_free(f);
    free_pair(&p);
    ls_strategy_free(s);
}

static ls_value *set_in_a_replica(ls_value *arguments, void *user)
{
    (void)arguments;
    ls_set_schedule(user, LS_SCHEDULE(.rate = 0.5));
    return none();
}

static void not_by_one_replica_of_several(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2);
    ls_optimizer *o = ls_sgd(NULL);
    LS_FRAME {
        assert_null(run(s, set_in_a_replica, o));
        said(LS_STATE, "ls_set_schedule: called by replica 0 of 2", "merge function");
    }
    assert_true(ls_rate(o) == 0.01);
    ls_optimizer_free(o);
    ls_strategy_free(s);
}

static ls_value *set_steps(ls_strategy *s, ls_value *arguments, void *user)
{
    (void)s;
    (void)arguments;
    const int64_t at[] = { 5 };
    const double values[] = { 0.5, 0.0625 };
    ls_set_schedule(user, LS_SCHEDULE(.kind = LS_SCHEDULE_STEP, .count = 1, .boundaries = at,
                                      .values = values));
    return none();
}

static ls_value *set_cosine(ls_strategy *s, ls_value *arguments, void *user)
{
    (void)s;
    (void)arguments;
    ls_set_schedule(user, LS_SCHEDULE(.kind = LS_SCHEDULE_COSINE, .steps = 8));
    return none();
}

static ls_value *meet_for_steps(ls_value *arguments, void *user)
{
    return ls_merge_call(ls_get_replica_context(), set_steps, user, arguments);
}

static ls_value *meet_for_cosine(ls_value *arguments, void *user)
{
    return ls_merge_call(ls_get_replica_context(), set_cosine, user, arguments);
}

/* A schedule without a rate has the optimizer's own, not that of the schedule before; in a merge
 * function, too, and a replay takes the one that was set before it. */
static void schedules_leave_the_own_rate(void **state)
{
    (void)state;
    ls_strategy *s = replicas(2);
    ls_optimizer *o = ls_sgd(LS_SGD(.rate = 0.125, .schedule = LS_SCHEDULE(.rate = 0.5)));
    assert_true(ls_rate(o) == 0.5);
    assert_int_equal(ls_set_schedule(o, LS_SCHEDULE(.kind = LS_SCHEDULE_COSINE, .steps = 8)),
                     LS_OK);
    assert_true(ls_rate(o) == 0.125);
    assert_int_equal(ls_set_schedule(o, LS_SCHEDULE(.rate = -1)), LS_OK);
    assert_true(ls_rate(o) == 0);
    LS_FRAME {
        runs(s, meet_for_cosine, o);
        assert_true(ls_rate(o) == 0.125);
        runs(s, meet_for_steps, o);
        assert_true(ls_rate(o) == 0.5);
    }
    ls_function *f = ls_trace(meet_for_cosine, o);
    for (int i = 1; i < 4; i++)
        LS_FRAME {
            assert_int_equal(ls_set_rate(o, 0.25 * i), LS_OK);
            assert_int_equal(ls_set_schedule(o, LS_SCHEDULE(.rate = 7)), LS_OK);
            assert_non_null(ls_run(s, f, none()));
            assert_true(ls_rate(o) == 0.25 * i);
        }
    assert_int_equal(ls_function_traces(f), 1);
    ls_function_free(f);
    ls_optimizer_free(o);
    ls_strategy_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_is_refused, clean),
        cmocka_unit_test_setup(other_options, clean),
        BOTH(a_traced_step_follows),
        BOTH(schedules_leave_the_own_rate),
        BOTH(not_by_one_replica_of_several),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
