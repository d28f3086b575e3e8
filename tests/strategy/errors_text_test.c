/*
 * Bad input to every function of strategies: what is NULL is named, unless an error is pending
 * already, which is passed on; and errors inside a step name the replica and say what to do.
 */
#include "strategy/strategy_support.h"

#include <stdio.h>

typedef struct world {
    ls_strategy *s;
    ls_variable *v;
    ls_value *x;
    ls_tensor *t;
    ls_destination *to;
} world;

static ls_value *null_of_one(int replica, int replicas, void *user)
{
    (void)replicas, (void)user;
    return replica == 1 ? NULL : number(1);
}

static ls_status give_null(void *iterator, ls_value **out)
{
    (void)iterator;
    *out = NULL;
    return LS_OK;
}

/* ---- one row a call with something NULL ----------------------------------------------------- */

/* True when the call gave something or LS_OK. */
#define ROW(name, call)                                                                            \
    static bool name(world *w)                                                                     \
    {                                                                                              \
        (void)w;                                                                                   \
        return (call);                                                                             \
    }

ROW(scope_enter, ls_scope_enter(NULL) == LS_OK)
ROW(scope_leave, ls_scope_leave(NULL) == LS_OK)
ROW(set_steps, ls_set_steps(NULL, 1) == LS_OK)
ROW(run_s, ls_run_eager(NULL, echo, NULL, w->x))
ROW(run_step_null, ls_run_eager(w->s, NULL, NULL, w->x))
ROW(run_arguments, ls_run_eager(w->s, echo, NULL, NULL))
ROW(traced_s, ls_run(NULL, NULL, w->x))
ROW(traced_step, ls_run(w->s, NULL, w->x))
ROW(next_s, ls_run_next(NULL, echo, NULL, NULL, NULL))
ROW(next_step, ls_run_next(w->s, NULL, NULL, NULL, NULL))
ROW(next_nothing, ls_run_next(w->s, echo, NULL, give_null, NULL))
ROW(per_replica_s, ls_per_replica(NULL, &w->x))
ROW(per_replica_values, ls_per_replica(w->s, NULL))
ROW(per_replica_one, ls_per_replica(w->s, (ls_value *[]){ w->x, NULL }))
ROW(distribute_s, ls_distribute_values(NULL, one, NULL))
ROW(distribute_fn, ls_distribute_values(w->s, NULL, NULL))
ROW(distribute_null, ls_distribute_values(w->s, null_of_one, NULL))
ROW(merge_replica, ls_merge_call(NULL, echo_merge, NULL, w->x))
ROW(merge_fn_null, ls_merge_call(ls_get_replica_context(), NULL, NULL, w->x))
ROW(merge_arguments, ls_merge_call(ls_get_replica_context(), echo_merge, NULL, NULL))
ROW(all_reduce_replica, ls_all_reduce(NULL, LS_SUM, w->x))
ROW(all_reduce_value, ls_all_reduce(ls_get_replica_context(), LS_SUM, NULL))
ROW(reduce_s, ls_reduce(NULL, LS_SUM, w->x, LS_NO_AXIS))
ROW(reduce_value, ls_reduce(w->s, LS_SUM, NULL, LS_NO_AXIS))
ROW(gather_s, ls_gather_replicas(NULL, w->x, 0))
ROW(gather_value, ls_gather_replicas(w->s, NULL, 0))
ROW(local_s, ls_local_results(NULL, w->x))
ROW(local_value, ls_local_results(w->s, NULL))
ROW(at_value, ls_at_value(NULL))
ROW(at_variable, ls_at_variable(NULL))
ROW(at_device, ls_at_device(NULL))
ROW(reduce_to_s, ls_reduce_to(NULL, LS_SUM, w->x, w->to))
ROW(reduce_to_value, ls_reduce_to(w->s, LS_SUM, NULL, w->to))
ROW(reduce_to_to, ls_reduce_to(w->s, LS_SUM, w->x, NULL))
ROW(batch_s, ls_batch_reduce_to(NULL, LS_SUM, 1, &w->x, &w->to))
ROW(mirror_s, ls_mirror_to(NULL, w->t, w->to))
ROW(mirror_tensor, ls_mirror_to(w->s, NULL, w->to))
ROW(mirror_to, ls_mirror_to(w->s, w->t, NULL))
ROW(update_s, ls_update(NULL, w->v, echo_component, NULL, w->x, true))
ROW(update_v, ls_update(w->s, NULL, echo_component, NULL, w->x, true))
ROW(update_fn, ls_update(w->s, w->v, NULL, NULL, w->x, true))
ROW(update_arguments, ls_update(w->s, w->v, echo_component, NULL, NULL, true))
ROW(non_slot_s, ls_update_non_slot(NULL, 1, ls_worker_devices(w->s, NULL), echo, NULL, w->x, true))
ROW(non_slot_fn, ls_update_non_slot(w->s, 1, ls_worker_devices(w->s, NULL), NULL, NULL, w->x, true))
ROW(non_slot_args,
    ls_update_non_slot(w->s, 1, ls_worker_devices(w->s, NULL), echo, NULL, NULL, true))
ROW(group_s, ls_group(NULL, w->x) == LS_OK)
ROW(group_value, ls_group(w->s, NULL) == LS_OK)
ROW(read_var_s, ls_read_var(NULL, w->v))
ROW(read_var_v, ls_read_var(w->s, NULL))
ROW(colocate_s, ls_colocate_begin(NULL, w->v) == LS_OK)
ROW(read_v, ls_read(NULL))
ROW(assign_v, ls_assign(NULL, w->t) == LS_OK)
ROW(assign_value, ls_assign(w->v, NULL) == LS_OK)
ROW(add_value, ls_assign_add(w->v, NULL) == LS_OK)
ROW(sub_value, ls_assign_sub(w->v, NULL) == LS_OK)
ROW(assign_leaf_v, ls_assign_value(NULL, w->x) == LS_OK)
ROW(assign_leaf, ls_assign_value(w->v, NULL) == LS_OK)
ROW(scatter_v, ls_scatter_add(NULL, w->t, w->t) == LS_OK)
ROW(scatter_rows, ls_scatter_add(w->v, NULL, w->t) == LS_OK)
ROW(scatter_values, ls_scatter_sub(w->v, w->t, NULL) == LS_OK)
ROW(new_name, ls_variable_new(NULL, w->t, true))
ROW(new_initial, ls_variable_new("v", NULL, true))
ROW(component_v, ls_variable_component(NULL, 0))
ROW(variable_leaf, ls_variable_leaf(NULL))
ROW(leaf_variable, ls_leaf_variable(NULL))
ROW(select_null, ls_select(NULL, 0))

static const struct row {
    const char *name;
    bool (*call)(world *w);
    const char *word; /* what the error must name */
} rows[] = {
    { "scope_enter", scope_enter, "strategy" },
    { "scope_leave", scope_leave, "strategy" },
    { "set_steps", set_steps, "strategy" },
    { "run: s", run_s, "strategy" },
    { "run: step", run_step_null, "function" },
    { "run: arguments", run_arguments, "arguments" },
    { "ls_run: s", traced_s, "strategy" },
    { "ls_run: step", traced_step, "function" },
    { "run_next: s", next_s, "strategy" },
    { "run_next: step", next_step, "function" },
    { "run_next: nothing", next_nothing, "next" },
    { "per_replica: s", per_replica_s, "strategy" },
    { "per_replica: values", per_replica_values, "values" },
    { "per_replica: one of them", per_replica_one, "1" },
    { "distribute_values: s", distribute_s, "strategy" },
    { "distribute_values: fn", distribute_fn, "function" },
    { "distribute_values: NULL", distribute_null, "replica 1" },
    { "merge_call: replica", merge_replica, "replica" },
    { "merge_call: fn", merge_fn_null, "function" },
    { "merge_call: arguments", merge_arguments, "arguments" },
    { "all_reduce: replica", all_reduce_replica, "replica" },
    { "all_reduce: value", all_reduce_value, "value" },
    { "reduce: s", reduce_s, "strategy" },
    { "reduce: value", reduce_value, "value" },
    { "gather: s", gather_s, "strategy" },
    { "gather: value", gather_value, "value" },
    { "local_results: s", local_s, "strategy" },
    { "local_results: value", local_value, "value" },
    { "at_value", at_value, "value" },
    { "at_variable", at_variable, "variable" },
    { "at_device", at_device, "device" },
    { "reduce_to: s", reduce_to_s, "strategy" },
    { "reduce_to: value", reduce_to_value, "value" },
    { "reduce_to: destination", reduce_to_to, "destination" },
    { "batch_reduce_to: s", batch_s, "strategy" },
    { "mirror_to: s", mirror_s, "strategy" },
    { "mirror_to: tensor", mirror_tensor, "tensor" },
    { "mirror_to: destination", mirror_to, "destination" },
    { "update: s", update_s, "strategy" },
    { "update: v", update_v, "variable" },
    { "update: fn", update_fn, "function" },
    { "update: arguments", update_arguments, "arguments" },
    { "update_non_slot: s", non_slot_s, "strategy" },
    { "update_non_slot: fn", non_slot_fn, "function" },
    { "update_non_slot: arguments", non_slot_args, "arguments" },
    { "group: s", group_s, "strategy" },
    { "group: value", group_value, "value" },
    { "read_var: s", read_var_s, "strategy" },
    { "read_var: v", read_var_v, "variable" },
    { "colocate_begin: s", colocate_s, "strategy" },
    { "read", read_v, "variable" },
    { "assign: v", assign_v, "variable" },
    { "assign: value", assign_value, "value" },
    { "assign_add: value", add_value, "value" },
    { "assign_sub: value", sub_value, "value" },
    { "assign_value: v", assign_leaf_v, "variable" },
    { "assign_value: value", assign_leaf, "value" },
    { "scatter_add: v", scatter_v, "variable" },
    { "scatter_add: rows", scatter_rows, "rows" },
    { "scatter_sub: values", scatter_values, "values" },
    { "variable_new: name", new_name, "name" },
    { "variable_new: initial", new_initial, "initial" },
    { "variable_component: v", component_v, "variable" },
    { "variable_leaf", variable_leaf, "variable" },
    { "leaf_variable", leaf_variable, "leaf" },
    { "select", select_null, "value" },
};
enum { ROWS = sizeof rows / sizeof *rows };

static world make_world(void)
{
    world w = { .s = replicas_on(2, 2) };
    LS_SCOPE (w.s)
        w.v = ls_variable_with(LS_VARIABLE(.aggregation = LS_AGGREGATE_SUM), "vee",
                               ls_scalar(LS_F32, 5));
    w.x = number(1);
    w.t = ls_scalar(LS_F32, 1);
    w.to = ls_at_value(w.x);
    GAVE(w.to);
    return w;
}

static void free_world(world *w)
{
    HOLDS(ls_read(w->v), 5);
    ls_variable_free(w->v);
    free_strategy(w->s);
}

/* All rows are tried before one fails the test, so that the report is whole. */
static void what_is_null_is_named(void **state)
{
    (void)state;
    LS_FRAME {
        world w = make_world();
        int bad = 0;
        for (int i = 0; i < ROWS; i++) {
            bool gave_something = rows[i].call(&w);
            ls_status st = ls_error_pending();
            char report[1024];
            snprintf(report, sizeof report, "%s", ls_error_report());
            if (gave_something || st != LS_INVALID || !mentions(report, rows[i].word)) {
                print_error("%s: wanted LS_INVALID with '%s', got %d '%s'\n", rows[i].name,
                            rows[i].word, gave_something, report);
                bad++;
            }
        }
        assert_int_equal(bad, 0);
        free_world(&w);
    }
}

static void an_error_that_is_pending_is_passed_on(void **state)
{
    (void)state;
    LS_FRAME {
        world w = make_world();
        int bad = 0;
        for (int i = 0; i < ROWS; i++) {
            fail_here("the_first");
            bool gave_something = rows[i].call(&w);
            ls_status st = ls_error_pending();
            if (gave_something || st != LS_NOT_FOUND || !mentions(ls_error_text(), "the_first")) {
                print_error("%s: gave %d, and the error became %s\n", rows[i].name, gave_something,
                            ls_error_report());
                bad++;
            }
            ls_error();
        }
        assert_int_equal(bad, 0);
        free_world(&w);
    }
}

/* ---- NULL at a meeting ------------------------------------------------------------------------- */

typedef enum at { MERGE_ARGUMENTS, MERGE_FN, REDUCE_VALUE, ASSIGN_VALUE, ATS } at;

typedef struct nulls {
    at kind;
    bool pending;
    int who;
    ls_variable *v;
} nulls;

/* One replica meets with NULL: it still arrives, so nobody waits for it. */
static ls_value *meet_with_null(ls_value *arguments, void *user)
{
    const nulls *u = user;
    bool mine = my_id() == u->who;
    ls_replica *r = ls_get_replica_context();
    ls_value *x = ls_leaf(my_number(1, 1));
    if (mine && u->pending)
        fail_here("of_my_own");
    switch (u->kind) {
    case MERGE_ARGUMENTS:
        return ls_merge_call(r, echo_merge, NULL, mine ? NULL : x);
    case MERGE_FN:
        return ls_merge_call(r, mine ? NULL : echo_merge, NULL, x);
    case REDUCE_VALUE:
        return ls_all_reduce(r, LS_SUM, mine ? NULL : x);
    default:
        return ls_assign(u->v, mine ? NULL : ls_leaf_tensor(x)) ? NULL : arguments;
    }
}

static void check_null_at_meetings(ls_strategy *s, int n, bool traced)
{
    static const char *const words[] = { "arguments", "function", "value", "value" };
    nulls u = { .v = NULL };
    LS_SCOPE (s)
        u.v = ls_variable_with(LS_VARIABLE(.aggregation = LS_AGGREGATE_SUM), "vee",
                               ls_scalar(LS_F32, 5));
    for (int kind = 0; kind < ATS; kind++)
        for (int turn = 0; turn < 4 * n; turn++) {
            u.kind = (at)kind;
            u.pending = turn & 2;
            u.who = turn / 4;
            assert_null(run_step(s, traced, meet_with_null, &u, number(1)));
            if (u.pending)
                FAILS(LS_NOT_FOUND, replica_named(u.who, n), "of_my_own");
            else
                FAILS(LS_INVALID, replica_named(u.who, n), words[kind]);
        }
    HOLDS(ls_read(u.v), 5);
    ls_variable_free(u.v);
}

EVERYWHERE(a_replica_that_meets_with_null_still_arrives, check_null_at_meetings)

/* ---- hints ----------------------------------------------------------------------------------------- */

static void hinted(ls_status want)
{
    assert_int_equal(ls_error_pending(), want);
    if (!*ls_error_hint())
        fail_msg("nothing is said about what to do: %s", ls_error_report());
    ls_error();
}

static void errors_say_what_to_do(void **state)
{
    (void)state;
    LS_FRAME {
        world w = make_world();
        ls_strategy *other = replicas_on(2, 1);
        LS_SCOPE (other) {
            ls_scope_enter(w.s);
            hinted(LS_STATE);
            ls_set_strategy(w.s);
            hinted(LS_STATE);
        }
        ls_reduce(w.s, LS_SUM, w.x, LS_NO_AXIS);
        hinted(LS_INVALID);
        ls_mirrored(LS_MIRRORED(.devices = "/cpu:0,CPU:0"));
        hinted(LS_INVALID);
        ls_mirrored(LS_MIRRORED(.devices = "/job:worker/task:1/cpu:0"));
        assert_true(*ls_error_hint());
        ls_error();
        ls_variable_free(NULL);
        free_strategy(other);
        free_world(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_null_is_named),
        TEST(an_error_that_is_pending_is_passed_on),
        TEST(a_replica_that_meets_with_null_still_arrives),
        TEST(errors_say_what_to_do),
    };
    return RUN_TESTS(tests);
}
