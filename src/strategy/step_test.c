/*
 * Traced steps from the inside: what is compiled once, what is cached, what shares memory.
 */
#include <lockstep/ops.h>
#include <lockstep/strategy.h>
#include <lockstep/variable.h>
#include <stdio.h>

#include "tensor/test_support.h"

#include "strategy/step.h"

enum { REPLICAS = 4 };

static ls_strategy *four(void)
{
    ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = "/cpu:0,/cpu:1", .replicas = REPLICAS));
    assert_non_null(s);
    return s;
}

typedef struct own {
    ls_variable *count;
    bool by_id; /* the replica's number is in the program */
} own;

static ls_value *count_up(ls_value *x, void *user)
{
    own *o = user;
    double by = o->by_id ? ls_replica_id(ls_get_replica_context()) : 1;
    ls_assign_add(o->count, ls_scalar(LS_F32, by));
    return ls_leaf(ls_add(ls_leaf_tensor(x), ls_read(o->count)));
}

static int compilations(const ls_function *f)
{
    const ls__traced_step *step = f->steps;
    int n = 0;
    for (int r = 0; r < step->replicas; r++)
        n += !step->programs[r].shares_plan;
    return n;
}

static void replicas_alike_are_compiled_once(void **state)
{
    (void)state;
    for (int by_id = 0; by_id < 2; by_id++) {
        ls_strategy *s = four();
        own o = { .by_id = by_id };
        LS_SCOPE (s)
            o.count = ls_variable_with(
                LS_VARIABLE(.synchronization = LS_SYNC_ON_READ, .aggregation = LS_AGGREGATE_SUM),
                "count", ls_scalar(LS_F32, 0));
        ls_function *f = ls_trace(count_up, &o);
        for (int i = 1; i <= 3; i++)
            LS_FRAME {
                ls_value *y = ls_run(s, f, ls_leaf(ls_scalar(LS_F32, 10)));
                assert_non_null(y);
                for (int r = 0; r < REPLICAS; r++) /* each with its own copy, all the same */
                    assert_true(ls_to_float(ls_leaf_tensor(ls_select(y, r))) ==
                                10.0f + (float)(i * (by_id ? r : 1)));
            }
        assert_int_equal(compilations(f), by_id ? REPLICAS : 1);
        ls_function_free(f);
        ls_variable_free(o.count);
        assert_int_equal(ls_strategy_free(s), LS_OK);
    }
}

static ls_value *hand_back(ls_value *x, void *user)
{
    (void)user;
    return ls_leaf(ls_neg(ls_leaf_tensor(x)));
}

static void count_warnings(ls_log_level level, const char *message, void *user)
{
    if (level == LS_LOG_WARNING && strstr(message, "traced again and again"))
        ++*(int *)user;
}

/* Replicas with different shapes are one step; another split is another. The oldest goes. */
static void steps_are_kept_by_what_replicas_get(void **state)
{
    (void)state;
    ls_strategy *s = four();
    int warnings = 0;
    ls_log_set(count_warnings, &warnings, LS_LOG_WARNING);
    ls_function *f = ls_trace_with(LS_TRACE(.cache = 2, .name = "kept"), hand_back, NULL);
    static const int longer[] = { 0, 0, 1, 0, 1, 2, 0, 3, 2, 1 }; /* whose tensor is longer */
    static const int traces[] = { 1, 1, 2, 2, 2, 3, 4, 5, 6, 7 };
    for (size_t i = 0; i < sizeof longer / sizeof *longer; i++)
        LS_FRAME {
            ls_value *v[REPLICAS];
            for (int r = 0; r < REPLICAS; r++)
                v[r] = ls_leaf(ls_ones(LS_F32, LS_DIMS(r == longer[i] ? 2 : 1)));
            ls_value *y = ls_run(s, f, ls_per_replica(s, v));
            assert_non_null(y);
            assert_int_equal(ls_count(ls_leaf_tensor(ls_select(y, longer[i]))), 2);
            assert_int_equal(ls_function_traces(f), traces[i]);
        }
    ls_log_set(NULL, NULL, LS_LOG_WARNING);
    assert_true(warnings > 0);
    assert_non_null(ls_function_dump(f, LS_DUMP_TEXT, true)); /* replica 0's */
    ls_function_free(f);
    assert_int_equal(ls_strategy_free(s), LS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(replicas_alike_are_compiled_once, clean),
        cmocka_unit_test_setup(steps_are_kept_by_what_replicas_get, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
