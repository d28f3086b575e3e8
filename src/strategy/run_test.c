/*
 * Runs: rounds, meetings, failures; eager and traced, on any placement.
 */
#include <lockstep/device.h>
#include <lockstep/ops.h>
#include <lockstep/strategy.h>
#include <lockstep/tape.h>
#include <lockstep/variable.h>
#include <stdio.h>

#include "tensor/test_support.h"

#include "strategy/strategy.h"

enum { MOST = 8 };

static const char *const devices_of[] = { "/cpu:0", "/cpu:0,/cpu:1", "/cpu:0,/cpu:1,/cpu:2",
                                          "/cpu:0,/cpu:1,/cpu:2,/cpu:3" };

static ls_strategy *make(int replicas, int devices)
{
    ls_strategy *s =
        ls_mirrored(LS_MIRRORED(.devices = devices_of[devices - 1], .replicas = replicas));
    assert_non_null(s);
    return s;
}

/* x of replica r is r + 1. */
static ls_value *numbers(ls_strategy *s)
{
    ls_value *v[MOST];
    for (int r = 0; r < ls_num_replicas(s); r++)
        v[r] = ls_leaf(ls_scalar(LS_F32, r + 1));
    return ls_per_replica(s, v);
}

/* Runs a step eagerly twice (one by one, then at once) and traced twice. */
static ls_value *run_way(ls_strategy *s, int way, ls_step step, void *user, ls_value *arguments)
{
    if (way < 2)
        return ls_run_eager(s, step, user, arguments);
    ls_function *f = ls_trace(step, user);
    ls_value *v = NULL;
    for (int i = 0; i < way - 1; i++)
        v = ls_run(s, f, arguments);
    ls_function_free(f);
    return v;
}

enum { WAYS = 4 };

static void want(const ls_value *v, int r, float number)
{
    ls_value *mine = ls_select(v, r);
    assert_non_null(mine);
    assert_true(ls_to_float(ls_leaf_tensor(mine)) == number);
}

static void fails(ls_status status, const char *text)
{
    assert_int_equal(ls_error_pending(), status);
    if (!strstr(ls_error_text(), text))
        fail_msg("'%s' is not in '%s'", text, ls_error_text());
    ls_error();
}

#define EVERYWHERE(s, way)                                                                         \
    for (int v_ = 1; v_ <= 5; v_++)                                                                \
        for (int d_ = 1; d_ <= (v_ < 4 ? v_ : 4); d_++)                                            \
            for (ls_strategy *s = make(v_, d_); s; ls_strategy_free(s), s = NULL)                  \
                for (int way = 0; way < WAYS; way++)                                               \
                    LS_FRAME

/* ---- running ------------------------------------------------------------------------------ */

static ls_value *double_it(ls_value *x, void *user)
{
    (void)user;
    ls_tensor *t = ls_leaf_tensor(x);
    return ls_leaf(ls_add(t, t));
}

static void each_replica_gets_its_own(void **state)
{
    (void)state;
    EVERYWHERE(s, way)
    {
        ls_value *y = run_way(s, way, double_it, NULL, numbers(s));
        assert_non_null(y);
        assert_int_equal(ls_spread_of(y),
                         ls_num_replicas(s) == 1 ? LS_SPREAD_PLAIN : LS_SPREAD_PER_REPLICA);
        for (int r = 0; r < ls_num_replicas(s); r++)
            want(y, r, 2.0f * (float)(r + 1));
    }
}

static ls_value *hand_back(ls_value *x, void *user)
{
    (void)user;
    return x;
}

static void what_is_the_same_on_all_stays_plain(void **state)
{
    (void)state;
    EVERYWHERE(s, way)
    {
        ls_value *both = ls_list(2, (ls_value *[]){ numbers(s), ls_leaf(ls_scalar(LS_F32, 7)) });
        ls_value *y = run_way(s, way, hand_back, NULL, both);
        assert_non_null(y);
        assert_int_equal(ls_spread_of(ls_child(y, 1)), LS_SPREAD_PLAIN);
        assert_true(ls_to_float(ls_item(y, 1)) == 7);
        if (ls_num_replicas(s) > 1)
            assert_int_equal(ls_spread_of(ls_child(y, 0)), LS_SPREAD_PER_REPLICA);
        want(ls_child(y, 0), ls_num_replicas(s) - 1, (float)ls_num_replicas(s));
    }
}

/* ---- meeting ------------------------------------------------------------------------------- */

static ls_value *add_up(ls_strategy *s, ls_value *x, void *user)
{
    (void)user;
    assert_true(ls_in_cross_replica_context());
    assert_null(ls_get_replica_context());
    ls_tensor *sum = NULL;
    for (int r = 0; r < ls_num_replicas(s); r++) {
        ls_tensor *t = ls_leaf_tensor(ls_select(x, r));
        sum = sum ? ls_add(sum, t) : t;
    }
    return ls_leaf(sum);
}

static ls_value *meet_once(ls_value *x, void *user)
{
    ls_replica *me = ls_get_replica_context();
    assert_false(ls_in_cross_replica_context());
    ls_value *sum = ls_merge_call(me, add_up, user, x);
    return sum ? ls_list(2, (ls_value *[]){ sum, ls_leaf(ls_mul(ls_leaf_tensor(sum),
                                                                ls_leaf_tensor(x))) })
               : NULL;
}

static void a_merge_function_sees_all(void **state)
{
    (void)state;
    EVERYWHERE(s, way)
    {
        int n = ls_num_replicas(s);
        ls_value *y = run_way(s, way, meet_once, NULL, numbers(s));
        assert_non_null(y);
        float sum = (float)(n * (n + 1) / 2);
        assert_int_equal(ls_spread_of(ls_child(y, 0)), LS_SPREAD_PLAIN);
        want(ls_child(y, 0), 0, sum);
        for (int r = 0; r < n; r++)
            want(ls_child(y, 1), r, sum * (float)(r + 1));
    }
}

static ls_value *nested(ls_strategy *s, ls_value *x, void *user)
{
    int *depth = user;
    if (*depth == 0)
        return add_up(s, x, NULL);
    int below = *depth - 1;
    ls_value *step_meet(ls_value *, void *);
    return ls_run_eager(s, step_meet, &below, x);
}

ls_value *step_meet(ls_value *x, void *user)
{
    return ls_merge_call(ls_get_replica_context(), nested, user, x);
}

static void runs_nest_in_merge_functions(void **state)
{
    (void)state;
    EVERYWHERE(s, way)
    {
        int n = ls_num_replicas(s), depth = 3;
        ls_value *y = run_way(s, way, step_meet, &depth, numbers(s));
        if (!y)
            fail_msg("%s", ls_error_report());
        want(y, 0, (float)(n * (n + 1) / 2));
    }
}

/* ---- failing ----------------------------------------------------------------------------------- */

static ls_value *fail_in(ls_value *x, void *user)
{
    int *who = user, id = ls_replica_id(ls_get_replica_context());
    if (id == *who || id == *who + 1)
        return ls_leaf(ls_reshape(ls_leaf_tensor(x), LS_DIMS(5 + id)));
    ls_value *sum = ls_merge_call(ls_get_replica_context(), add_up, NULL, x);
    if (!sum)
        assert_int_equal(ls_error_pending(), LS_CANCELLED);
    return sum;
}

static void the_lowest_failure_is_told(void **state)
{
    (void)state;
    EVERYWHERE(s, way)
    {
        int n = ls_num_replicas(s);
        for (int who = 0; who < n; who++) {
            char text[32];
            snprintf(text, sizeof text, n > 1 ? "replica %d:" : "shape of %d", n > 1 ? who : 5);
            assert_null(run_way(s, way, fail_in, &who, numbers(s)));
            fails(LS_SHAPE, text);
            ls_value *y = run_way(s, way, meet_once, NULL, numbers(s)); /* usable afterwards */
            assert_non_null(y);
        }
    }
}

static ls_value *skip_in(ls_value *x, void *user)
{
    int *who = user, id = ls_replica_id(ls_get_replica_context());
    ls_value *sum = ls_merge_call(ls_get_replica_context(), add_up, NULL, x);
    return id == *who ? sum : ls_merge_call(ls_get_replica_context(), add_up, NULL, x);
}

static void who_does_not_come_is_named(void **state)
{
    (void)state;
    EVERYWHERE(s, way)
    {
        int n = ls_num_replicas(s);
        for (int who = 0; who < n && n > 1; who++) {
            char text[64];
            snprintf(text, sizeof text, "replica %d returned after 1 meeting", who);
            assert_null(run_way(s, way, skip_in, &who, numbers(s)));
            fails(LS_STATE, text);
        }
    }
}

/* ---- moving ------------------------------------------------------------------------------------- */

typedef struct trained {
    ls_variable *w, *seen;
} trained;

/* Draws, a meeting that writes, a copy per replica. */
static ls_value *train(ls_value *x, void *user)
{
    trained *m = user;
    ls_tensor *noisy = ls_add(ls_leaf_tensor(x), ls_random_uniform(LS_F32, LS_SCALAR, 0, 1));
    ls_assign_add(m->w, ls_mul(noisy, ls_read(m->w)));
    ls_assign_add(m->seen, noisy);
    return ls_leaf(ls_add(ls_read(m->w), ls_read(m->seen)));
}

static void train_on(bool moving, bool traced, float *out)
{
    ls_strategy *s = make(5, 2);
    trained m;
    LS_SCOPE (s) {
        m.w = ls_variable_with(LS_VARIABLE(.aggregation = LS_AGGREGATE_MEAN), "w",
                               ls_scalar(LS_F32, 0.1));
        m.seen = ls_variable_with(
            LS_VARIABLE(.synchronization = LS_SYNC_ON_READ, .aggregation = LS_AGGREGATE_SUM),
            "seen", ls_scalar(LS_F32, 0));
    }
    ls_function *f = ls_trace(train, &m);
    for (int step = 0; step < 12; step++)
        LS_FRAME {
            if (moving)
                assert_int_equal(ls__strategy_place(s, devices_of[step % 4]), LS_OK);
            ls_value *y =
                traced ? ls_run(s, f, numbers(s)) : ls_run_eager(s, train, &m, numbers(s));
            if (!y)
                fail_msg("%s", ls_error_report());
            for (int r = 0; r < 5; r++)
                out[r] = ls_to_float(ls_leaf_tensor(ls_select(y, r)));
        }
    assert_true(!traced || ls_function_traces(f) == 1);
    LS_FRAME {
        out[5] = ls_to_float(ls_read(m.w));
        out[6] = ls_to_float(ls_read(m.seen));
    }
    ls_function_free(f);
    ls_variable_free(m.w);
    ls_variable_free(m.seen);
    assert_int_equal(ls_strategy_free(s), LS_OK);
}

/* Where replicas are hosted may change between two steps; nothing else does, not even the trace. */
static void replicas_may_move(void **state)
{
    (void)state;
    float stayed[7], moved[7];
    for (int traced = 0; traced < 2; traced++) {
        train_on(false, traced, stayed);
        train_on(true, traced, moved);
        assert_memory_equal(stayed, moved, sizeof stayed);
    }
    ls_strategy *s = make(2, 2);
    assert_int_equal(ls__strategy_place(s, devices_of[2]), LS_INVALID);
    fails(LS_INVALID, "3 devices for 2 replicas");
    assert_int_equal(ls_strategy_free(s), LS_OK);
}

/* Who waits spins only while everybody waited for can run. */
static void waits_sleep_when_devices_outnumber_cores(void **state)
{
    (void)state;
    char devices[64 * 20] = "/cpu:0";
    int n = ls_cpu_cores() < 60 ? ls_cpu_cores() : 60;
    for (int d = 1; d <= n; d++)
        snprintf(devices + strlen(devices), 20, ",/cpu:%d", d);
    ls_strategy *many = ls_mirrored(LS_MIRRORED(.devices = devices)), *few = make(4, 1);
    assert_non_null(many);
    if (n == ls_cpu_cores())
        assert_int_equal(many->spin, 0);
    assert_true(few->spin > 0);
    assert_int_equal(ls_strategy_free(many), LS_OK);
    assert_int_equal(ls_strategy_free(few), LS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(each_replica_gets_its_own, clean),
        cmocka_unit_test_setup(what_is_the_same_on_all_stays_plain, clean),
        cmocka_unit_test_setup(a_merge_function_sees_all, clean),
        cmocka_unit_test_setup(runs_nest_in_merge_functions, clean),
        cmocka_unit_test_setup(the_lowest_failure_is_told, clean),
        cmocka_unit_test_setup(who_does_not_come_is_named, clean),
        cmocka_unit_test_setup(replicas_may_move, clean),
        cmocka_unit_test_setup(waits_sleep_when_devices_outnumber_cores, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
