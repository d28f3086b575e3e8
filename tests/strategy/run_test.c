/*
 * ls_run, ls_run_eager, ls_run_next: what replicas are given, how their results are grouped, and
 * what happens when some of them fail. Meetings of replicas are tested in meetings_test.c,
 * variables made by a step in run_variables_test.c.
 */
#include "strategy/strategy_support.h"

#include <stdatomic.h>
#include <stdio.h>

/* ---- arguments ----------------------------------------------------------------------- */

/* What each replica got. */
typedef struct given {
    ls_spread spread[MOST_REPLICAS];
    int components[MOST_REPLICAS];
} given;

/* { many: [per-replica, plain], same: mirrored, none: [] } -> their sum. */
static ls_value *add_nest(ls_value *arguments, void *user)
{
    given *g = user;
    g->spread[my_id()] = ls_spread_of(arguments);
    g->components[my_id()] = ls_components(arguments);
    ls_value *many = ls_get(arguments, "many");
    if (ls_length(ls_get(arguments, "none")) != 0)
        return fail_here("empty");
    ls_tensor *same = ls_leaf_tensor(ls_get(arguments, "same"));
    return ls_leaf(ls_add(ls_add(ls_item(many, 0), ls_item(many, 1)), same));
}

static void check_nests(ls_strategy *s, int n, bool traced)
{
    ls_value *per = numbers(s, 1, 1);
    ls_value *mirrored = ls_mirror_to(s, ls_scalar(LS_F32, 100), ls_at_value(per));
    GAVE(mirrored);
    if (n > 1) {
        assert_int_equal(ls_spread_of(per), LS_SPREAD_PER_REPLICA);
        assert_int_equal(ls_spread_of(mirrored), LS_SPREAD_MIRRORED);
        assert_int_equal(ls_components(per), n);
    }
    ls_value *nest = ls_dict(3, (const char *[]){ "same", "none", "many" },
                             (ls_value *[]){ mirrored, nothing(), pair(per, number(10)) });
    if (n > 1)
        assert_int_equal(ls_spread_of(nest), LS_SPREAD_MIXED);
    given g = { 0 };
    HOLDS_EACH(run_step(s, traced, add_nest, &g, nest), n, 111, 1);
    for (int i = 0; i < n; i++) {
        assert_int_equal(g.spread[i], LS_SPREAD_PLAIN);
        assert_int_equal(g.components[i], 1);
    }
}

EVERYWHERE(arguments_are_nests_of_per_replica_mirrored_and_plain_leaves, check_nests)

static ls_value *scalar_of(int replica, int replicas, void *user)
{
    (void)replicas, (void)user;
    return number(replica);
}

static void check_bad_arguments(ls_strategy *s, int n, bool traced)
{
    ls_strategy *more = replicas_on(n + 1, 1);
    ls_value *wrong = ls_distribute_values(more, scalar_of, NULL);
    GAVE(wrong);
    assert_null(run_step(s, traced, echo, NULL, wrong));
    char v[32], w[32];
    snprintf(v, sizeof v, "%d", n);
    snprintf(w, sizeof w, "%d", n + 1);
    FAILS(LS_INVALID, v, w, "replica");
    assert_null(ls_run_eager(s, echo, NULL, NULL));
    FAILS(LS_INVALID, "arguments");
    assert_null(ls_run_eager(s, NULL, NULL, number(1)));
    FAILS(LS_INVALID, "function");
    assert_null(ls_run_eager(NULL, echo, NULL, number(1)));
    FAILS(LS_INVALID, "strategy");
    assert_null(ls_run(s, NULL, number(1)));
    FAILS(LS_INVALID, "function");
    assert_int_equal(ls_steps(s), 0);
    GAVE(run_step(s, traced, echo, NULL, number(1)));
    free_strategy(more);
}

EVERYWHERE(arguments_that_are_not_for_these_replicas_are_refused, check_bad_arguments)

/* ---- results ---------------------------------------------------------------------------- */

/* [ the argument itself, { own: a number of its own, all: the argument } ] */
static ls_value *group_me(ls_value *arguments, void *user)
{
    (void)user;
    return pair(arguments, ls_dict(2, (const char *[]){ "own", "all" },
                                   (ls_value *[]){ ls_leaf(my_number(7, 0)), arguments }));
}

static void check_grouping(ls_strategy *s, int n, bool traced)
{
    ls_value *v = run_step(s, traced, group_me, NULL, number(3));
    GAVE(v);
    assert_int_equal(ls_kind_of(v), LS_LIST);
    assert_int_equal(ls_length(v), 2);
    ls_value *dict = ls_child(v, 1);
    assert_int_equal(ls_kind_of(dict), LS_DICT);
    /* The identical object is plain; equal numbers that each replica made are not. */
    assert_int_equal(ls_spread_of(ls_child(v, 0)), LS_SPREAD_PLAIN);
    assert_int_equal(ls_spread_of(ls_get(dict, "all")), LS_SPREAD_PLAIN);
    assert_int_equal(ls_spread_of(ls_get(dict, "own")),
                     n == 1 ? LS_SPREAD_PLAIN : LS_SPREAD_PER_REPLICA);
    HOLDS(ls_leaf_tensor(ls_child(v, 0)), 3);
    HOLDS_EACH(ls_get(dict, "own"), n, 7, 0);
    /* One replica: plain values. More: a per-replica leaf has no tensor of its own. */
    if (n == 1) {
        HOLDS(ls_leaf_tensor(ls_get(dict, "own")), 7);
    } else {
        assert_null(ls_leaf_tensor(ls_get(dict, "own")));
        FAILS(LS_INVALID, "replica");
    }
    ls_value *list = ls_local_results(s, ls_get(dict, "own"));
    assert_int_equal(ls_length(list), n);
    HOLDS(ls_item(list, n - 1), 7);
    assert_int_equal(ls_length(ls_local_results(s, ls_child(v, 0))), 1);
    ls_value *plain = ls_local_results(s, pair(number(1), number(2)));
    assert_int_equal(ls_length(plain), 1);
    HOLDS(ls_item(ls_child(plain, 0), 1), 2);
    /* A nest with something distributed in it: n nests. */
    ls_value *nests = ls_local_results(s, v);
    assert_int_equal(ls_length(nests), n);
    HOLDS(ls_leaf_tensor(ls_get(ls_child(ls_child(nests, n - 1), 1), "all")), 3);
    /* Nothing. */
    ls_value *none = run_step(s, traced, echo, NULL, nothing());
    GAVE(none);
    assert_int_equal(ls_length(none), 0);
    assert_int_equal(ls_spread_of(none), LS_SPREAD_PLAIN);
}

EVERYWHERE(results_keep_their_structure_and_are_grouped_leaf_by_leaf, check_grouping)

typedef struct variable_leaves {
    ls_variable *v;
    int mode; /* 0: the variable, 1: own component, 2: another's, 3: replica 0's */
} variable_leaves;

static ls_value *give_variable(ls_value *arguments, void *user)
{
    (void)arguments;
    const variable_leaves *l = user;
    int n = ls_variable_components(l->v), i = my_id();
    if (l->mode == 0)
        return ls_variable_leaf(l->v);
    return ls_variable_leaf(ls_variable_component(l->v, l->mode == 1   ? i
                                                        : l->mode == 2 ? (i + 1) % n
                                                                       : 0));
}

static ls_value *read_leaf(ls_value *arguments, void *user)
{
    (void)user;
    return ls_leaf(ls_read(ls_leaf_variable(arguments)));
}

static void check_variables(ls_strategy *s, int n, bool traced)
{
    variable_leaves l = { 0 };
    LS_SCOPE (s)
        l.v = ls_variable_new("w", ls_scalar(LS_F32, 4), true);
    GAVE(l.v);
    for (l.mode = 0; l.mode < 2; l.mode++) {
        ls_value *v = run_step(s, traced, give_variable, &l, nothing());
        GAVE(v);
        assert_ptr_equal(ls_leaf_variable(v), l.v);
    }
    if (n > 1) {
        l.mode = 2;
        assert_null(run_step(s, traced, give_variable, &l, nothing()));
        FAILS(LS_INVALID, "component", "variable", "replica");
        l.mode = 3;
        ls_value *first = run_step(s, traced, give_variable, &l, nothing());
        GAVE(first);
        assert_ptr_equal(ls_leaf_variable(first), ls_variable_component(l.v, 0));
    }
    HOLDS_EACH(run_step(s, traced, read_leaf, NULL, ls_variable_leaf(l.v)), n, 4, 0);
    assert_null(ls_leaf_variable(number(1)));
    ls_error();
    ls_variable_free(l.v);
}

EVERYWHERE(components_of_a_variable_become_the_variable, check_variables)

/* mode 0: a list of length id; 1: other keys; 2: a leaf or a list. Only the last replica parts. */
static ls_value *other_structure(ls_value *arguments, void *user)
{
    bool last = my_id() == ls_num_replicas(ls_get_strategy()) - 1;
    switch (*(int *)user) {
    case 0:
        return last ? pair(arguments, arguments) : ls_list(1, &arguments);
    case 1:
        return ls_dict(1, (const char *[]){ last ? "odd" : "even" }, &arguments);
    default:
        return last ? arguments : ls_list(1, &arguments);
    }
}

static void check_mismatch(ls_strategy *s, int n, bool traced)
{
    const char *last = replica_named(n - 1, n);
    for (int mode = 0; mode < 3; mode++) {
        ls_value *v = run_step(s, traced, other_structure, &mode, number(1));
        if (n == 1) {
            GAVE(v);
            continue;
        }
        assert_null(v);
        if (mode == 1)
            FAILS(LS_INVALID, "replica 0", last, "odd", "even");
        else
            FAILS(LS_INVALID, "replica 0", last);
    }
    GAVE(run_step(s, traced, echo, NULL, number(1)));
}

EVERYWHERE(replicas_that_return_different_structures_fail, check_mismatch)

/* ---- replicas that fail -------------------------------------------------------------------- */

typedef struct failing {
    int mask;       /* replicas that fail by themselves */
    ls_variable *v; /* written before anything else */
    ls_status met[MOST_REPLICAS];
    bool meet;
} failing;

static ls_value *count_merge(ls_strategy *s, ls_value *arguments, void *user)
{
    (void)s, (void)user;
    return arguments;
}

static ls_value *fail_some(ls_value *arguments, void *user)
{
    failing *f = user;
    int i = my_id();
    if (f->v && ls_assign_add(f->v, ls_scalar(LS_F32, 1)))
        return NULL;
    if (f->mask & 1 << i) {
        char what[32];
        snprintf(what, sizeof what, "fault_of_%d", i);
        return fail_here(what);
    }
    if (f->meet) {
        ls_value *v = ls_merge_call(ls_get_replica_context(), count_merge, NULL, arguments);
        f->met[i] = ls_error_pending();
        return v;
    }
    return arguments;
}

static void check_failing(ls_strategy *s, int n, bool traced)
{
    failing f = { 0 };
    LS_SCOPE (s)
        f.v = ls_variable_with(LS_VARIABLE(.aggregation = LS_AGGREGATE_SUM), "v",
                               ls_scalar(LS_F32, 5));
    for (int meet = 0; meet < 2; meet++)
        for (f.mask = 1; f.mask < 1 << n; f.mask++) {
            f.meet = meet;
            memset(f.met, 0, sizeof f.met);
            int lowest = 0;
            while (!(f.mask & 1 << lowest))
                lowest++;
            char what[32];
            snprintf(what, sizeof what, "fault_of_%d", lowest);
            /* A traced function is traced again after a failure. */
            assert_null(run_step(s, traced, fail_some, &f, number(1)));
            FAILS(LS_NOT_FOUND, replica_named(lowest, n), what);
            for (int i = 0; meet && i < n; i++)
                if (!(f.mask & 1 << i) && f.met[i] != LS_CANCELLED)
                    fail_msg("replica %d of %d, failing %x: met %s", i, n, (unsigned)f.mask,
                             ls_status_name(f.met[i]));
            HOLDS(ls_read(f.v), 5);
        }
    f.mask = 0;
    HOLDS(ls_leaf_tensor(ls_select(run_step(s, traced, fail_some, &f, number(1)), 0)), 1);
    HOLDS(ls_read(f.v), 5 + n);
    ls_variable_free(f.v);
}

EVERYWHERE(the_lowest_replica_that_failed_is_named_and_nothing_happened, check_failing)

typedef enum oddity { NULL_WITHOUT_ERROR, UNREAD_ERROR, READ_ERROR } oddity;

static ls_value *odd_step(ls_value *arguments, void *user)
{
    if (my_id() != ls_num_replicas(ls_get_strategy()) - 1)
        return arguments;
    if (*(oddity *)user == NULL_WITHOUT_ERROR)
        return NULL;
    fail_here("left_behind");
    if (*(oddity *)user == READ_ERROR)
        ls_error();
    return arguments;
}

static void check_odd(ls_strategy *s, int n, bool traced)
{
    const char *who = replica_named(n - 1, n);
    assert_null(run_step(s, traced, odd_step, &(oddity){ NULL_WITHOUT_ERROR }, number(1)));
    FAILS(LS_INVALID, who, "NULL");
    assert_null(run_step(s, traced, odd_step, &(oddity){ UNREAD_ERROR }, number(1)));
    FAILS(LS_NOT_FOUND, who, "left_behind");
    GAVE(run_step(s, traced, odd_step, &(oddity){ READ_ERROR }, number(1)));
    /* An error that was there before stays, and is nobody's in the run. */
    ls_value *arguments = number(1);
    fail_here("before");
    ls_value *v = run_step(s, traced, echo, NULL, arguments);
    assert_non_null(v);
    FAILS(LS_NOT_FOUND, "before");
}

EVERYWHERE(errors_left_unread_fail_the_run_and_read_ones_do_not, check_odd)

/* ---- the order of replicas ------------------------------------------------------------------- */

typedef struct order {
    atomic_int next;
    int at[MOST_REPLICAS];
} order;

static ls_value *note_order(ls_value *arguments, void *user)
{
    order *o = user;
    o->at[my_id()] = atomic_fetch_add(&o->next, 1);
    return arguments;
}

static void check_order(ls_strategy *s, int n, bool traced)
{
    order o = { 0 };
    GAVE(run_step(s, traced, note_order, &o, number(1)));
    for (int i = 0; i < n; i++)
        assert_int_equal(o.at[i], i);
    if (!traced) {
        GAVE(ls_run_eager(s, note_order, &o, number(1)));
        assert_int_equal(o.next, 2 * n);
    }
    char devices[] = "/cpu:0,/cpu:1,/cpu:2,/cpu:3,/cpu:4";
    devices[7 * n - 1] = 0;
    ls_strategy *one_by_one = ls_mirrored(LS_MIRRORED(.devices = devices, .sequential = true));
    for (int turn = 0; turn < 3; turn++) {
        o = (order){ 0 };
        GAVE(run_step(one_by_one, traced, note_order, &o, number(1)));
        for (int i = 0; i < n; i++)
            assert_int_equal(o.at[i], i);
    }
    free_strategy(one_by_one);
}

EVERYWHERE(first_runs_and_sequential_ones_go_in_the_order_of_replicas, check_order)

/* ---- run_next ---------------------------------------------------------------------------------- */

typedef struct feed {
    ls_strategy *s;
    int calls, end;
    ls_status fault; /* what the call after the last gives */
} feed;

static ls_status next_number(void *iterator, ls_value **out)
{
    feed *f = iterator;
    if (f->calls++ == f->end) {
        if (f->fault == LS_NOT_FOUND)
            fail_here("file");
        return f->fault;
    }
    *out = f->fault == LS_INVALID ? NULL : pair(numbers(f->s, f->calls, 1), number(100));
    return LS_OK;
}

static ls_value *add_pair(ls_value *arguments, void *user)
{
    (void)user;
    return ls_leaf(ls_add(ls_item(arguments, 0), ls_item(arguments, 1)));
}

static ls_value *count_arguments(ls_value *arguments, void *user)
{
    (void)user;
    return number(ls_length(arguments) + 10 * ls_kind_of(arguments));
}

static void check_next(ls_strategy *s, int n, bool traced)
{
    (void)traced;
    feed f = { .s = s, .end = 2, .fault = LS_END };
    HOLDS_EACH(ls_run_next(s, add_pair, NULL, next_number, &f), n, 101, 1);
    HOLDS_EACH(ls_run_next(s, add_pair, NULL, next_number, &f), n, 102, 1);
    assert_null(ls_run_next(s, add_pair, NULL, next_number, &f));
    assert_int_equal(ls_error(), LS_END);
    assert_int_equal(f.calls, 3);
    assert_int_equal(ls_steps(s), 2);
    f = (feed){ .s = s, .end = 0, .fault = LS_NOT_FOUND };
    assert_null(ls_run_next(s, add_pair, NULL, next_number, &f));
    FAILS(LS_NOT_FOUND, "file");
    f = (feed){ .s = s, .end = 1, .fault = LS_INVALID };
    assert_null(ls_run_next(s, add_pair, NULL, next_number, &f));
    FAILS(LS_INVALID, "next");
    HOLDS_EACH(ls_run_next(s, count_arguments, NULL, NULL, NULL), n, 10 * LS_LIST, 0);
    assert_null(ls_run_next(s, NULL, NULL, next_number, &f));
    FAILS(LS_INVALID, "function");
}

EVERYWHERE(run_next_takes_one_element_a_call_until_the_end, check_next)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(arguments_are_nests_of_per_replica_mirrored_and_plain_leaves),
        TEST(arguments_that_are_not_for_these_replicas_are_refused),
        TEST(results_keep_their_structure_and_are_grouped_leaf_by_leaf),
        TEST(components_of_a_variable_become_the_variable),
        TEST(replicas_that_return_different_structures_fail),
        TEST(the_lowest_replica_that_failed_is_named_and_nothing_happened),
        TEST(errors_left_unread_fail_the_run_and_read_ones_do_not),
        TEST(first_runs_and_sequential_ones_go_in_the_order_of_replicas),
        TEST(run_next_takes_one_element_a_call_until_the_end),
    };
    return RUN_TESTS(tests);
}
