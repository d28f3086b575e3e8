/*
 * Contexts: which strategy a thread is in, as what, and what it may do there. Every state is
 * looked at from the outside, from a scope, from a replica and from a merge function.
 */
#include "strategy/strategy_support.h"

#include <pthread.h>

/* ---- what a thread sees --------------------------------------------------------------- */

typedef struct view {
    ls_strategy *strategy, *of_replica;
    ls_replica *replica;
    int id;
    bool has, cross;
} view;

static view look(void)
{
    ls_replica *r = ls_get_replica_context();
    return (view){ ls_get_strategy(), ls_replica_strategy(r), r,
                   ls_replica_id(r),  ls_has_strategy(),      ls_in_cross_replica_context() };
}

static void is_default(view v)
{
    assert_ptr_equal(v.strategy, ls_default_strategy());
    assert_ptr_equal(v.of_replica, ls_default_strategy());
    assert_non_null(v.replica);
    assert_int_equal(v.id, 0);
    assert_false(v.has);
    assert_false(v.cross);
    assert_int_equal(ls_error_pending(), LS_OK);
}

static void is_cross(view v, ls_strategy *s)
{
    assert_ptr_equal(v.strategy, s);
    assert_null(v.replica);
    assert_null(v.of_replica);
    assert_int_equal(v.id, -1);
    assert_true(v.has);
    assert_true(v.cross);
    assert_int_equal(ls_error_pending(), LS_OK);
}

static void is_replica(view v, ls_strategy *s, int id)
{
    assert_ptr_equal(v.strategy, s);
    assert_ptr_equal(v.of_replica, s);
    assert_non_null(v.replica);
    assert_int_equal(v.id, id);
    assert_true(v.has);
    assert_false(v.cross);
}

static void *look_from_a_thread(void *out)
{
    *(view *)out = look();
    return NULL;
}

static view elsewhere(void)
{
    view v = { 0 };
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, look_from_a_thread, &v), 0);
    pthread_join(t, NULL);
    return v;
}

/* ---- outside and in scopes --------------------------------------------------------------- */

static void without_a_strategy_there_is_the_default_one(void **state)
{
    (void)state;
    is_default(look());
    is_default(elsewhere());
    assert_int_equal(ls_num_replicas(ls_default_strategy()), 1);
    assert_int_not_equal(ls_strategy_free(ls_default_strategy()), LS_OK);
    ls_error();
    is_default(look());
    /* Its scope: cross-replica, and still no strategy but the default one. */
    OK(ls_scope_enter(ls_default_strategy()));
    assert_false(ls_has_strategy());
    assert_true(ls_in_cross_replica_context());
    OK(ls_scope_leave(ls_default_strategy()));
    is_default(look());
}

static void a_scope_is_cross_replica_and_of_one_thread(void **state)
{
    (void)state;
    ls_strategy *s = replicas_on(2, 2);
    OK(ls_scope_enter(s));
    is_cross(look(), s);
    is_default(elsewhere());
    OK(ls_scope_leave(s));
    is_default(look());
    free_strategy(s);
}

static void the_same_scope_nests_to_any_depth(void **state)
{
    (void)state;
    ls_strategy *s = replicas_on(2, 1);
    enum { DEEP = 40 };
    for (int i = 0; i < DEEP; i++)
        OK(ls_scope_enter(s));
    for (int i = 0; i < DEEP; i++) {
        is_cross(look(), s);
        OK(ls_scope_leave(s));
    }
    is_default(look());
    assert_int_equal(ls_scope_leave(s), LS_STATE);
    FAILS(LS_STATE, "scope");
    is_default(look());
    free_strategy(s);
}

static void another_strategy_cannot_be_entered_or_left_inside(void **state)
{
    (void)state;
    ls_strategy *a = replicas_on(2, 1), *b = replicas_on(3, 1);
    OK(ls_scope_enter(a));
    assert_int_equal(ls_scope_enter(b), LS_STATE);
    FAILS(LS_STATE, "mixing", "2 replicas", "3 replicas");
    is_cross(look(), a);
    assert_int_equal(ls_scope_leave(b), LS_STATE);
    FAILS(LS_STATE, "strategy");
    is_cross(look(), a);
    OK(ls_scope_leave(a));
    OK(ls_scope_enter(b));
    OK(ls_scope_leave(b));
    is_default(look());
    free_strategy(a);
    free_strategy(b);
}

static void set_strategy_lasts_until_another_is_set(void **state)
{
    (void)state;
    ls_strategy *a = replicas_on(2, 1), *b = replicas_on(3, 1);
    OK(ls_set_strategy(a));
    is_cross(look(), a);
    is_default(elsewhere());
    OK(ls_set_strategy(b));
    is_cross(look(), b);
    assert_int_equal(ls_scope_leave(b), LS_STATE); /* it was not entered */
    ls_error();
    is_cross(look(), b);
    LS_SCOPE (b) {
        is_cross(look(), b);
        assert_int_equal(ls_set_strategy(NULL), LS_STATE);
        FAILS(LS_STATE, "scope");
    }
    assert_int_equal(ls_scope_enter(a), LS_STATE);
    FAILS(LS_STATE, "strategy");
    is_cross(look(), b);
    OK(ls_set_strategy(NULL));
    is_default(look());
    OK(ls_set_strategy(NULL));
    LS_SCOPE (a) {
        assert_int_equal(ls_set_strategy(b), LS_STATE);
        FAILS(LS_STATE, "scope");
        assert_int_equal(ls_set_strategy(a), LS_STATE);
        FAILS(LS_STATE, "scope");
        is_cross(look(), a);
    }
    is_default(look());
    free_strategy(a);
    free_strategy(b);
}

static void a_strategy_in_use_is_not_freed(void **state)
{
    (void)state;
    ls_strategy *s = replicas_on(2, 2);
    LS_SCOPE (s) {
        assert_int_equal(ls_strategy_free(s), LS_STATE);
        FAILS(LS_STATE, "scope");
        is_cross(look(), s);
    }
    OK(ls_set_strategy(s));
    assert_int_equal(ls_strategy_free(s), LS_STATE);
    ls_error();
    OK(ls_set_strategy(NULL));
    free_strategy(s);
    OK(ls_strategy_free(NULL));
}

/* What its callbacks got when they tried to free the strategy, and the words. */
typedef struct freeing {
    ls_strategy *s;
    ls_status got;
    bool said, hinted;
} freeing;

static void try_to_free(freeing *f)
{
    f->got = ls_strategy_free(f->s);
    f->said = mentions(ls_error_text(), "is in use: a call of it has called this");
    f->hinted = mentions(ls_error_hint(), "functions it calls");
    ls_error();
}

static ls_value *free_to_distribute(int replica, int replicas, void *user)
{
    (void)replicas;
    try_to_free(user);
    return number(replica);
}

static ls_value *free_to_update(ls_variable *component, ls_value *arguments, void *user)
{
    (void)component;
    try_to_free(user);
    return arguments;
}

static ls_value *free_deep_inside(ls_value *arguments, void *user)
{
    freeing *f = user;
    return ls_distribute_values(f->s, free_to_distribute, f) ? arguments : NULL;
}

static void a_strategy_is_not_freed_by_what_it_calls(void **state)
{
    (void)state;
    ls_strategy *s = replicas_on(2, 2);
    ls_variable *v = NULL;
    LS_FRAME {
        LS_SCOPE (s)
            v = ls_variable_new("v", ls_scalar(LS_F32, 1), true);
        for (int way = 0; way < 3; way++) {
            freeing f = { .s = s };
            if (way == 0)
                GAVE(ls_distribute_values(s, free_to_distribute, &f));
            else if (way == 1)
                GAVE(ls_update(s, v, free_to_update, &f, nothing(), true));
            else
                GAVE(ls_update_non_slot(s, 1, ls_non_slot_devices(s, NULL), free_deep_inside, &f,
                                        nothing(), true));
            assert_int_equal(f.got, LS_STATE);
            assert_true(f.said && f.hinted);
        }
        HOLDS_EACH(ls_run_eager(s, echo, NULL, numbers(s, 1, 1)), 2, 1, 1); /* and it goes on */
    }
    ls_variable_free(v);
    free_strategy(s);
}

/* ---- LS_SCOPE ------------------------------------------------------------------------------- */

static int leave_by_return(ls_strategy *s)
{
    LS_SCOPE (s)
        return ls_in_cross_replica_context() ? 7 : 0;
    return 0;
}

static void ls_scope_closes_on_every_way_out(void **state)
{
    (void)state;
    ls_strategy *s = replicas_on(2, 1), *other = replicas_on(2, 1);
    int turns = 0;
    LS_SCOPE (s) {
        is_cross(look(), s);
        turns++;
    }
    is_default(look());
    for (int i = 0; i < 3; i++) {
        LS_SCOPE (s) {
            turns++;
            if (i == 1)
                break;
            is_cross(look(), s);
        }
        is_default(look());
    }
    for (int i = 0; i < 2; i++)
        LS_SCOPE (s) {
            turns++;
            continue;
        }
    is_default(look());
    assert_int_equal(leave_by_return(s), 7);
    is_default(look());
    LS_SCOPE (s) {
        turns++;
        goto out;
    }
out:
    is_default(look());
    assert_int_equal(turns, 7);
    LS_SCOPE (s)
        LS_SCOPE (s)
            turns++;
    is_default(look());

    LS_SCOPE (s) {
        LS_SCOPE (other)
            turns = -100;
        FAILS(LS_STATE, "strategy");
        is_cross(look(), s);
    }
    is_default(look());
    LS_SCOPE ((ls_strategy *)NULL)
        turns = -100;
    FAILS(LS_INVALID, "strategy");
    assert_int_equal(turns, 8);
    is_default(look());
    free_strategy(s);
    free_strategy(other);
}

/* ---- in replicas and merge functions ----------------------------------------------------------- */

typedef struct seen {
    view in_step[MOST_REPLICAS], after_merge[MOST_REPLICAS], in_merge, in_nested[MOST_REPLICAS];
    int merges;
    ls_strategy *merge_strategy;
} seen;

static ls_value *nested_step(ls_value *arguments, void *user)
{
    seen *all = user;
    all->in_nested[my_id()] = look();
    return arguments;
}

static ls_value *looking_merge(ls_strategy *s, ls_value *arguments, void *user)
{
    seen *all = user;
    all->merges++;
    all->in_merge = look();
    all->merge_strategy = s;
    return ls_run_eager(s, nested_step, user, arguments);
}

static ls_value *looking_step(ls_value *arguments, void *user)
{
    (void)arguments;
    seen *all = user;
    int i = my_id();
    all->in_step[i] = look();
    ls_value *mine =
        ls_merge_call(ls_get_replica_context(), looking_merge, user, ls_leaf(my_number(0, 1)));
    all->after_merge[i] = look();
    return mine;
}

static void check_views(ls_strategy *s, int n, bool traced)
{
    for (int scoped = 0; scoped < 2; scoped++) {
        seen all = { 0 };
        if (scoped)
            OK(ls_scope_enter(s));
        HOLDS_EACH(run_step(s, traced, looking_step, &all, nothing()), n, 0, 1);
        assert_int_equal(all.merges, 1);
        assert_ptr_equal(all.merge_strategy, s);
        is_cross(all.in_merge, s);
        for (int i = 0; i < n; i++) {
            is_replica(all.in_step[i], s, i);
            is_replica(all.in_nested[i], s, i);
            is_replica(all.after_merge[i], s, i);
            assert_ptr_equal(all.in_step[i].replica, all.after_merge[i].replica);
            for (int j = 0; j < i; j++)
                assert_ptr_not_equal(all.in_step[i].replica, all.in_step[j].replica);
        }
        if (scoped) {
            is_cross(look(), s);
            OK(ls_scope_leave(s));
        }
        is_default(look());
    }
}

EVERYWHERE(replicas_merge_functions_and_nested_runs_see_where_they_are, check_views)

typedef enum forbidden { ENTER, ENTER_OTHER, LEAVE, SET, SET_NULL, FREE, FORBIDDEN } forbidden;

typedef struct attempt {
    forbidden what;
    ls_strategy *s, *other;
    ls_status got[MOST_REPLICAS], in_merge;
} attempt;

static ls_status do_forbidden(attempt *a)
{
    ls_status st = LS_OK;
    switch (a->what) {
    case ENTER:
        st = ls_scope_enter(a->s);
        break;
    case ENTER_OTHER:
        st = ls_scope_enter(a->other);
        break;
    case LEAVE:
        st = ls_scope_leave(a->s);
        break;
    case SET:
        st = ls_set_strategy(a->s);
        break;
    case SET_NULL:
        st = ls_set_strategy(NULL);
        break;
    default:
        st = ls_strategy_free(a->s);
    }
    ls_error();
    return st;
}

/* A merge function is in the scope already: entering it nests, and is left again. */
static ls_value *forbidden_merge(ls_strategy *s, ls_value *arguments, void *user)
{
    attempt *a = user;
    a->in_merge = do_forbidden(a);
    if (a->what == ENTER && a->in_merge == LS_OK && ls_scope_leave(s) == LS_OK)
        a->in_merge = LS_STATE;
    return arguments;
}

static ls_value *forbidden_step(ls_value *arguments, void *user)
{
    attempt *a = user;
    a->got[my_id()] = do_forbidden(a);
    return ls_merge_call(ls_get_replica_context(), forbidden_merge, a, arguments);
}

static void check_forbidden(ls_strategy *s, int n, bool traced)
{
    ls_strategy *other = replicas_on(2, 1);
    for (int what = 0; what < FORBIDDEN; what++) {
        attempt a = { .what = (forbidden)what, .s = s, .other = other };
        GAVE(run_step(s, traced, forbidden_step, &a, number(1)));
        for (int i = 0; i < n; i++)
            if (a.got[i] != LS_STATE)
                fail_msg("attempt %d in replica %d: %s", what, i, ls_status_name(a.got[i]));
        if (a.in_merge != LS_STATE)
            fail_msg("attempt %d in a merge function: %s", what, ls_status_name(a.in_merge));
        is_default(look());
    }
    free_strategy(other);
}

static void scopes_are_not_touched_from_inside_a_run(void **state)
{
    (void)state;
    everywhere_of(2, check_forbidden);
}

static ls_value *enter_and_stay(ls_strategy *s, ls_value *arguments, void *user)
{
    *(ls_status *)user = ls_scope_enter(s);
    return arguments;
}

static ls_value *stay_in_scope(ls_value *arguments, void *user)
{
    return ls_merge_call(ls_get_replica_context(), enter_and_stay, user, arguments);
}

static void check_left_open(ls_strategy *s, int n, bool traced)
{
    (void)n;
    ls_status entered = LS_STATE;
    assert_null(run_step(s, traced, stay_in_scope, &entered, number(1)));
    FAILS(LS_STATE, "scope", "leave");
    assert_int_equal(entered, LS_OK);
    is_default(look());
}

EVERYWHERE(a_scope_that_a_merge_function_leaves_open_fails_the_run, check_left_open)

/* ---- the default replica ------------------------------------------------------------------------- */

static ls_value *plus_one(ls_strategy *s, ls_value *arguments, void *user)
{
    *(view *)user = look();
    ((view *)user)->of_replica = s;
    return ls_leaf(ls_shift(ls_leaf_tensor(arguments), 1));
}

static void outside_of_everything_a_merge_is_a_call(void **state)
{
    (void)state;
    LS_FRAME {
        view v;
        HOLDS(ls_leaf_tensor(ls_merge_call(ls_get_replica_context(), plus_one, &v, number(2))), 3);
        assert_true(v.cross);
        assert_null(v.replica);
        assert_ptr_equal(v.of_replica, ls_default_strategy());
        is_default(look());
        ls_replica *r = ls_get_replica_context();
        HOLDS(ls_leaf_tensor(ls_all_reduce(r, LS_SUM, number(2))), 2);
        HOLDS(ls_leaf_tensor(ls_all_reduce(r, LS_MEAN, number(2))), 2);
        is_default(look());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_a_strategy_there_is_the_default_one),
        TEST(a_scope_is_cross_replica_and_of_one_thread),
        TEST(the_same_scope_nests_to_any_depth),
        TEST(another_strategy_cannot_be_entered_or_left_inside),
        TEST(set_strategy_lasts_until_another_is_set),
        TEST(a_strategy_in_use_is_not_freed),
        TEST(a_strategy_is_not_freed_by_what_it_calls),
        TEST(ls_scope_closes_on_every_way_out),
        TEST(replicas_merge_functions_and_nested_runs_see_where_they_are),
        TEST(scopes_are_not_touched_from_inside_a_run),
        TEST(a_scope_that_a_merge_function_leaves_open_fails_the_run),
        TEST(outside_of_everything_a_merge_is_a_call),
    };
    return RUN_TESTS(tests);
}
