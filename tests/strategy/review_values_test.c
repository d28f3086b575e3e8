/*
 * Corners that a review found by hand, each kept as a test: what arguments and variables are on
 * their way into replicas and meetings, and out again.
 */
#include "strategy/strategy_support.h"

/* ---- variables --------------------------------------------------------------------------------- */

static ls_value *read_argument(ls_value *arguments, void *user)
{
    (void)user;
    return ls_leaf(ls_read(ls_leaf_variable(arguments)));
}

static void check_new_variable(ls_strategy *s, int n, bool traced)
{
    ls_function *f = ls_trace(read_argument, NULL);
    for (int i = 1; i <= 12; i++)
        LS_FRAME {
            ls_variable *v = NULL;
            LS_SCOPE (s)
                v = ls_variable_new("v", ls_scalar(LS_F32, i), true);
            ls_value *a = ls_variable_leaf(v);
            HOLDS_EACH(traced ? ls_run(s, f, a) : ls_run_eager(s, read_argument, NULL, a), n, i, 0);
            ls_variable_free(v); /* the next one has its address, likely */
        }
    ls_function_free(f);
}

EVERYWHERE(a_new_variable_as_an_argument_is_not_taken_for_one_that_was_freed, check_new_variable)

static ls_value *assign_mine(ls_value *arguments, void *user)
{
    ls_variable **v = user;
    return ls_assign(v[my_id() % 2], my_number(10, 1)) ? NULL : arguments;
}

static void check_same_name(ls_strategy *s, int n, bool traced)
{
    ls_variable *v[2] = { NULL };
    LS_SCOPE (s)
        for (int i = 0; i < 2; i++)
            v[i] = ls_variable_with(LS_VARIABLE(.aggregation = LS_AGGREGATE_SUM), "w",
                                    ls_scalar(LS_F32, 0));
    ls_value *got = run_step(s, traced, assign_mine, v, nothing());
    if (n > 1) {
        assert_null(got);
        FAILS(LS_STATE, "did not meet", "variable 'w'");
    }
    HOLDS(ls_read(v[0]), n > 1 ? 0 : 10);
    HOLDS(ls_read(v[1]), 0);
    ls_variable_free(v[0]);
    ls_variable_free(v[1]);
}

EVERYWHERE(writes_of_two_variables_of_one_name_do_not_meet, check_same_name)

static ls_value *add_one(ls_variable *component, ls_value *arguments, void *user)
{
    (void)user;
    return ls_assign_add(component, ls_scalar(LS_F32, 1)) ? NULL : arguments;
}

static ls_value *update_argument(ls_strategy *s, ls_value *arguments, void *user)
{
    *(ls_variable **)user = ls_leaf_variable(arguments);
    return ls_update(s, ls_leaf_variable(arguments), add_one, NULL, nothing(), true);
}

typedef struct bringing {
    ls_variable *mine, *arrived;
} bringing;

static ls_value *bring_component(ls_value *arguments, void *user)
{
    (void)arguments;
    bringing *b = user;
    return ls_merge_call(ls_get_replica_context(), update_argument, &b->arrived,
                         ls_variable_leaf(ls_variable_component(b->mine, my_id())));
}

static void check_component_brought(ls_strategy *s, int n, bool traced)
{
    (void)n;
    bringing b = { 0 };
    LS_SCOPE (s)
        b.mine = ls_variable_new("v", ls_scalar(LS_F32, 0), true);
    GAVE(run_step(s, traced, bring_component, &b, nothing()));
    assert_ptr_equal(b.arrived, b.mine);
    HOLDS(ls_read(b.mine), 1);
    ls_variable_free(b.mine);
}

EVERYWHERE(components_brought_to_a_merge_function_arrive_as_the_variable, check_component_brought)

typedef struct two {
    ls_variable *mirrored, *own;
} two;

static ls_value *overwrite(ls_strategy *s, ls_value *arguments, void *user)
{
    two *t = user;
    double all = 100.0 * ls_num_replicas(s);
    if (ls_assign(t->mirrored, ls_scalar(LS_F32, 100)) || ls_assign(t->own, ls_scalar(LS_F32, all)))
        return NULL;
    return ls_list(4, (ls_value *[]){ ls_child(arguments, 0), ls_child(arguments, 1),
                                      ls_leaf(ls_read(t->mirrored)), ls_leaf(ls_read(t->own)) });
}

static ls_value *read_and_bring(ls_value *arguments, void *user)
{
    (void)arguments;
    two *t = user;
    ls_tensor *read[2] = { ls_read(t->mirrored), ls_reshape(ls_read(t->own), LS_DIMS(1)) };
    ls_value *m = ls_merge_call(ls_get_replica_context(), overwrite, t, ls_tensors(2, read));
    if (!m || ls_assign_add(t->own, my_number(5, 1)))
        return NULL;
    return ls_list(3, (ls_value *[]){ m, ls_leaf(ls_read(t->mirrored)), ls_leaf(ls_read(t->own)) });
}

static void check_what_was_read(ls_strategy *s, int n, bool traced)
{
    two t = { 0 };
    LS_SCOPE (s) {
        t.mirrored = ls_variable_with(LS_VARIABLE(.aggregation = LS_AGGREGATE_SUM), "mirrored",
                                      ls_scalar(LS_F32, 1));
        t.own = ls_variable_with(
            LS_VARIABLE(.synchronization = LS_SYNC_ON_READ, .aggregation = LS_AGGREGATE_SUM), "own",
            ls_scalar(LS_F32, 4));
    }
    ls_function *f = ls_trace(read_and_bring, &t);
    for (int turn = 0; turn < 3; turn++)
        LS_FRAME {
            ls_value *v =
                traced ? ls_run(s, f, nothing()) : ls_run_eager(s, read_and_bring, &t, nothing());
            GAVE(v);
            ls_value *m = ls_child(v, 0);
            HOLDS_EACH(ls_child(m, 0), n, turn ? 100 : 1, 0);
            HOLDS_EACH(ls_child(m, 1), n, turn ? 105 : 4, turn ? 1 : 0);
            HOLDS_EACH(ls_child(m, 2), n, 100, 0);
            HOLDS_EACH(ls_child(m, 3), n, 100 * n, 0);
            HOLDS_EACH(ls_child(v, 1), n, 100, 0);
            HOLDS_EACH(ls_child(v, 2), n, 105, 1);
            HOLDS(ls_read(t.mirrored), 100);
            HOLDS(ls_read(t.own), 105 * n + n * (n - 1) / 2);
        }
    ls_function_free(f);
    ls_variable_free(t.mirrored);
    ls_variable_free(t.own);
}

EVERYWHERE(what_was_read_stays_what_it_was_when_a_merge_function_writes, check_what_was_read)

/* ---- arguments ------------------------------------------------------------------------------------ */

static ls_value *keep_symbol(ls_value *arguments, void *user)
{
    ls_tensor **kept = user, *x = ls_leaf_tensor(arguments);
    if (!*kept)
        *kept = ls_keep(ls_add(x, x));
    return arguments;
}

static ls_value *twice(ls_value *arguments, void *user)
{
    (void)user;
    return ls_leaf(ls_add(ls_leaf_tensor(arguments), ls_leaf_tensor(arguments)));
}

static void check_symbol(ls_strategy *s, int n, bool traced)
{
    (void)n;
    ls_tensor *symbol = NULL;
    GAVE(run_step(s, true, keep_symbol, &symbol, ls_leaf(ls_ones(LS_F32, LS_DIMS(4)))));
    assert_non_null(symbol);
    assert_null(run_step(s, traced, twice, NULL, ls_leaf(symbol)));
    FAILS(LS_STATE, "of a traced step, used outside it");
    ls_drop(symbol);
}

EVERYWHERE(what_a_traced_step_computes_is_no_argument_of_a_run, check_symbol)

static ls_value *second(ls_value *arguments, void *user)
{
    (void)user;
    return ls_child(arguments, 1);
}

static ls_value *bring_all(ls_value *arguments, void *user)
{
    (void)user;
    return ls_child(ls_merge_call(ls_get_replica_context(), echo_merge, NULL, arguments), 1);
}

static void check_strings(ls_strategy *s, int n, bool traced)
{
    static const ls_step steps[] = { second, bring_all };
    const void *texts[2] = { "abc", "defg" };
    const size_t lengths[2] = { 3, 4 };
    ls_value *a = pair(ls_leaf(ls_from_strings(LS_DIMS(2), texts, lengths)), numbers(s, 2, 1));
    GAVE(a);
    for (int i = 0; i < 2; i++) {
        ls_function *f = ls_trace(steps[i], NULL);
        for (int again = 0; again < 2; again++) {
            ls_value *v = traced ? ls_run(s, f, a) : ls_run_eager(s, steps[i], NULL, a);
            if (!traced) {
                HOLDS_EACH(v, n, 2, 1);
                continue;
            }
            assert_null(v);
            FAILS(LS_SHAPE, "argument 0 is bytes[2]", "strings stay outside of traced functions");
        }
        ls_function_free(f);
    }
}

EVERYWHERE(strings_go_into_eager_runs_only, check_strings)

static ls_value *sum_of(ls_strategy *s, ls_value *arguments, void *user)
{
    (void)user;
    return ls_leaf(ls_reduce(s, LS_SUM, arguments, LS_NO_AXIS));
}

static ls_value *bring_to_sum(ls_value *arguments, void *user)
{
    return ls_merge_call(ls_get_replica_context(), sum_of, user, arguments);
}

static void check_same_tensor(ls_strategy *s, int n, bool traced)
{
    ls_value *each[MOST_REPLICAS];
    each[0] = number(3);
    for (int i = 1; i < n; i++)
        each[i] = each[0];
    ls_value *given = ls_per_replica(s, each);
    ls_value *back = run_step(s, traced, echo, NULL, given);
    GAVE(back);
    if (n > 1)
        assert_int_equal(ls_spread_of(back), LS_SPREAD_PER_REPLICA);
    HOLDS_EACH(back, n, 3, 0);
    HOLDS(ls_reduce(s, LS_SUM, back, LS_NO_AXIS), 3 * n);
    HOLDS_EACH(run_step(s, traced, bring_to_sum, NULL, given), n, 3 * n, 0);
}

EVERYWHERE(one_tensor_given_to_all_replicas_as_theirs_stays_theirs, check_same_tensor)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_new_variable_as_an_argument_is_not_taken_for_one_that_was_freed),
        TEST(writes_of_two_variables_of_one_name_do_not_meet),
        TEST(components_brought_to_a_merge_function_arrive_as_the_variable),
        TEST(what_was_read_stays_what_it_was_when_a_merge_function_writes),
        TEST(what_a_traced_step_computes_is_no_argument_of_a_run),
        TEST(strings_go_into_eager_runs_only),
        TEST(one_tensor_given_to_all_replicas_as_theirs_stays_theirs),
    };
    return RUN_TESTS(tests);
}
