/*
 * What may be called where: functions of a strategy in cross-replica context, in a replica, under
 * another strategy; a replica's context on its own thread, during its step. One table of all
 * functions that take a strategy; each row is tried in every place.
 */
#include "strategy/strategy_support.h"

#include <pthread.h>
#include <stdio.h>

/* ---- one row a function ------------------------------------------------------------------ */

typedef struct place {
    ls_strategy *s;
    ls_variable *v;
} place;

static ls_status next_one(void *iterator, ls_value **out)
{
    (void)iterator;
    *out = number(1);
    return *out ? LS_OK : ls_error_pending();
}

static bool try_run(place p)
{
    ls_function *f = ls_trace(echo, NULL);
    bool good = ls_run(p.s, f, number(1));
    ls_function_free(f);
    return good;
}

static bool try_run_eager(place p)
{
    return ls_run_eager(p.s, echo, NULL, number(1));
}

static bool try_run_next(place p)
{
    return ls_run_next(p.s, echo, NULL, next_one, NULL);
}

static bool try_per_replica(place p)
{
    ls_value *each[MOST_REPLICAS];
    for (int i = 0; i < MOST_REPLICAS; i++)
        each[i] = number(i);
    return ls_per_replica(p.s, each);
}

static bool try_distribute_values(place p)
{
    return ls_distribute_values(p.s, one, NULL);
}

static bool try_reduce(place p)
{
    return ls_reduce(p.s, LS_MEAN, number(1), LS_NO_AXIS);
}

static bool try_local_results(place p)
{
    return ls_local_results(p.s, number(1));
}

static bool try_reduce_to(place p)
{
    return ls_reduce_to(p.s, LS_MEAN, number(1), ls_at_variable(p.v));
}

static bool try_batch_reduce_to(place p)
{
    ls_value *v = number(1);
    ls_destination *to = ls_at_variable(p.v);
    return ls_batch_reduce_to(p.s, LS_MEAN, 1, &v, &to);
}

static bool try_mirror_to(place p)
{
    return ls_mirror_to(p.s, ls_scalar(LS_F32, 1), ls_at_variable(p.v));
}

static bool try_update(place p)
{
    return ls_update(p.s, p.v, echo_component, NULL, number(1), true);
}

static bool try_update_non_slot(place p)
{
    int count = 0;
    const char *const *devices = ls_non_slot_devices(p.s, &count);
    return ls_update_non_slot(p.s, count, devices, echo, NULL, number(1), true);
}

static bool try_read_var(place p)
{
    return ls_read_var(p.s, p.v);
}

static bool try_group(place p)
{
    return ls_group(p.s, number(1)) == LS_OK;
}

static const struct row {
    const char *name;
    bool (*call)(place p);
} rows[] = {
    { "run", try_run },
    { "run_eager", try_run_eager },
    { "run_next", try_run_next },
    { "per_replica", try_per_replica },
    { "distribute_values", try_distribute_values },
    { "reduce", try_reduce },
    { "local_results", try_local_results },
    { "reduce_to", try_reduce_to },
    { "batch_reduce_to", try_batch_reduce_to },
    { "mirror_to", try_mirror_to },
    { "update", try_update },
    { "update_non_slot", try_update_non_slot },
    { "read_var", try_read_var },
    { "group", try_group },
};
enum { ROWS = sizeof rows / sizeof *rows };

static ls_variable *variable_of(ls_strategy *s)
{
    ls_variable *v = NULL;
    LS_SCOPE (s)
        v = ls_variable_new("v", ls_scalar(LS_F32, 1), true);
    assert_non_null(v);
    return v;
}

/* ---- where they work ------------------------------------------------------------------------ */

static void without_a_scope_and_in_their_own_they_work(void **state)
{
    (void)state;
    LS_FRAME {
        ls_strategy *s = replicas_on(2, 2);
        place p = { s, variable_of(s) };
        for (int i = 0; i < ROWS; i++) {
            if (!rows[i].call(p) || ls_error_pending())
                fail_msg("%s outside: %s", rows[i].name, ls_error_report());
            assert_false(ls_has_strategy());
            LS_SCOPE (s)
                if (!rows[i].call(p) || ls_error_pending())
                    fail_msg("%s in its scope: %s", rows[i].name, ls_error_report());
        }
        ls_variable_free(p.v);
        free_strategy(s);
    }
}

typedef struct in_merge {
    place p;
    char failed[1024];
} in_merge;

static ls_value *try_all(ls_strategy *s, ls_value *arguments, void *user)
{
    (void)s;
    in_merge *m = user;
    for (int i = 0; i < ROWS; i++)
        if (!rows[i].call(m->p) || ls_error_pending())
            snprintf(m->failed + strlen(m->failed), sizeof m->failed - strlen(m->failed),
                     "%s: %s; ", rows[i].name, ls_error_report());
    return arguments;
}

static ls_value *merge_try_all(ls_value *arguments, void *user)
{
    return ls_merge_call(ls_get_replica_context(), try_all, user, arguments);
}

static void check_in_merge(ls_strategy *s, int n, bool traced)
{
    (void)n;
    if (traced)
        return; /* ls_run of a traced function is tried inside; merges of traces: elsewhere */
    in_merge m = { .p = { s, variable_of(s) } };
    GAVE(run_step(s, false, merge_try_all, &m, number(1)));
    assert_string_equal(m.failed, "");
    ls_variable_free(m.p.v);
}

static void in_a_merge_function_they_work(void **state)
{
    (void)state;
    everywhere_of(2, check_in_merge);
}

/* ---- where they do not ----------------------------------------------------------------------- */

typedef struct in_replica {
    place p;
    int row;
    bool gave;
    ls_status got;
} in_replica;

/* Replica 1 tries; the error it leaves fails the run. */
static ls_value *try_in_replica(ls_value *arguments, void *user)
{
    in_replica *r = user;
    if (my_id() == 1) {
        r->gave = rows[r->row].call(r->p);
        r->got = ls_error_pending();
    }
    return arguments;
}

static void check_in_replica(ls_strategy *s, int n, bool traced)
{
    (void)n;
    in_replica r = { .p = { s, variable_of(s) } };
    for (r.row = 0; r.row < ROWS; r.row++) {
        ls_value *v = run_step(s, traced, try_in_replica, &r, number(1));
        if (v || r.gave || r.got != LS_STATE)
            fail_msg("%s in a replica: gave %d, %s", rows[r.row].name, r.gave,
                     ls_status_name(r.got));
        FAILS(LS_STATE, "replica 1", "ls_merge_call", rows[r.row].name);
    }
    HOLDS(ls_read(r.p.v), 1);
    ls_variable_free(r.p.v);
}

static void in_a_replica_they_are_refused(void **state)
{
    (void)state;
    everywhere_of(2, check_in_replica);
}

static void under_another_strategy_they_are_refused(void **state)
{
    (void)state;
    LS_FRAME {
        ls_strategy *s = replicas_on(2, 2), *other = replicas_on(2, 1);
        place p = { s, variable_of(s) };
        LS_SCOPE (other) {
            for (int i = 0; i < ROWS; i++) {
                if (rows[i].call(p) || ls_error_pending() != LS_STATE)
                    fail_msg("%s under another strategy: %s", rows[i].name, ls_error_report());
                FAILS(LS_STATE, "strategy");
                assert_ptr_equal(ls_get_strategy(), other);
            }
            /* Its variables, too. */
            assert_null(ls_read(p.v));
            FAILS(LS_STATE, "'v'", "strategy");
            assert_int_equal(ls_assign(p.v, ls_scalar(LS_F32, 2)), LS_STATE);
            FAILS(LS_STATE, "'v'", "strategy");
            assert_int_equal(ls_assign_add(p.v, ls_scalar(LS_F32, 2)), LS_STATE);
            FAILS(LS_STATE, "'v'", "strategy");
        }
        HOLDS(ls_read(p.v), 1);
        ls_variable_free(p.v);
        free_strategy(s);
        free_strategy(other);
    }
}

static ls_value *use_variable_of_another(ls_value *arguments, void *user)
{
    (void)arguments;
    return ls_leaf(ls_read(user));
}

static void check_foreign_variable(ls_strategy *s, int n, bool traced)
{
    (void)n;
    ls_strategy *other = replicas_on(2, 1);
    ls_variable *v = variable_of(other);
    assert_null(run_step(s, traced, use_variable_of_another, v, nothing()));
    FAILS(LS_STATE, "'v'", "strategy", "replica 0");
    HOLDS(ls_read(v), 1); /* with no strategy active, its own is entered */
    OK(ls_assign(v, ls_scalar(LS_F32, 3)));
    HOLDS(ls_read(v), 3);
    assert_false(ls_has_strategy());
    ls_variable_free(v);
    free_strategy(other);
}

static void a_variable_of_another_strategy_is_refused_in_a_replica(void **state)
{
    (void)state;
    everywhere_of(2, check_foreign_variable);
}

/* ---- a replica's context ---------------------------------------------------------------------- */

typedef struct stolen {
    ls_replica *_Atomic replica;
    ls_status merge, reduce, in_thread;
    bool gave;
} stolen;

/* Uses a context that is not this thread's. */
static void misuse(stolen *t, ls_replica *r)
{
    t->gave = t->gave || ls_merge_call(r, echo_merge, NULL, number(1));
    t->merge = ls_error();
    t->gave = t->gave || ls_all_reduce(r, LS_SUM, number(1));
    t->reduce = ls_error();
}

static void *misuse_in_a_thread(void *user)
{
    stolen *t = user;
    misuse(t, t->replica);
    return NULL;
}

static ls_value *lend_to_a_thread(ls_value *arguments, void *user)
{
    stolen *t = user;
    if (my_id() == 0) {
        t->replica = ls_get_replica_context();
        pthread_t thread;
        if (pthread_create(&thread, NULL, misuse_in_a_thread, t) == 0)
            pthread_join(thread, NULL);
    }
    return arguments;
}

/* Replica 0 runs before 1 the first time; its context is used by replica 1. */
static ls_value *lend_to_the_next(ls_value *arguments, void *user)
{
    stolen *t = user;
    if (my_id() == 0)
        t->replica = ls_get_replica_context();
    else
        misuse(t, t->replica);
    return arguments;
}

static ls_value *misuse_in_merge(ls_strategy *s, ls_value *arguments, void *user)
{
    (void)s;
    misuse(user, ((stolen *)user)->replica);
    return arguments;
}

static ls_value *lend_to_merge(ls_value *arguments, void *user)
{
    if (my_id() == 0)
        ((stolen *)user)->replica = ls_get_replica_context();
    return ls_merge_call(ls_get_replica_context(), misuse_in_merge, user, arguments);
}

static ls_value *use_the_lent(ls_value *arguments, void *user)
{
    if (my_id() == 0)
        misuse(user, ((stolen *)user)->replica);
    return arguments;
}

static void refused(const stolen *t)
{
    assert_false(t->gave);
    assert_int_equal(t->merge, LS_STATE);
    assert_int_equal(t->reduce, LS_STATE);
}

static void check_stolen(ls_strategy *s, int n, bool traced)
{
    (void)n;
    static const ls_step lends[] = { lend_to_a_thread, lend_to_the_next, lend_to_merge };
    stolen t;
    for (int i = 0; i < 3; i++) {
        t = (stolen){ .replica = NULL };
        GAVE(run_step(s, traced, lends[i], &t, number(1)));
        refused(&t);
    }
    /* After its run. */
    misuse(&t, t.replica);
    refused(&t);
    LS_SCOPE (s)
        misuse(&t, t.replica);
    refused(&t);
    /* The default replica's, where this thread is not that: in a scope, and in a replica. */
    t = (stolen){ .replica = ls_get_replica_context() };
    LS_SCOPE (s)
        misuse(&t, t.replica);
    refused(&t);
    t = (stolen){ .replica = ls_get_replica_context() };
    GAVE(run_step(s, traced, use_the_lent, &t, number(1)));
    refused(&t);
}

static void a_replica_context_is_of_its_thread_and_step(void **state)
{
    (void)state;
    everywhere_of(2, check_stolen);
}

/* ---- one step at a time --------------------------------------------------------------------------- */

typedef struct second_run {
    ls_strategy *s;
    bool gave;
    ls_status got;
} second_run;

static void *run_meanwhile(void *user)
{
    second_run *r = user;
    LS_FRAME {
        r->gave = ls_run_eager(r->s, echo, NULL, number(1));
        r->got = ls_error();
    }
    return NULL;
}

static ls_value *run_from_a_thread(ls_value *arguments, void *user)
{
    pthread_t thread;
    if (my_id() == 0 && pthread_create(&thread, NULL, run_meanwhile, user) == 0)
        pthread_join(thread, NULL);
    return arguments;
}

static void check_one_at_a_time(ls_strategy *s, int n, bool traced)
{
    (void)n;
    second_run r = { .s = s };
    GAVE(run_step(s, traced, run_from_a_thread, &r, number(1)));
    assert_false(r.gave);
    assert_int_equal(r.got, LS_STATE);
    ls_strategy *other = replicas_on(2, 2);
    r = (second_run){ .s = other };
    GAVE(run_step(s, traced, run_from_a_thread, &r, number(1)));
    assert_true(r.gave);
    assert_int_equal(r.got, LS_OK);
    free_strategy(other);
    run_meanwhile(&(second_run){ .s = s });
}

static void a_strategy_runs_one_step_at_a_time(void **state)
{
    (void)state;
    everywhere_of(2, check_one_at_a_time);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_a_scope_and_in_their_own_they_work),
        TEST(in_a_merge_function_they_work),
        TEST(in_a_replica_they_are_refused),
        TEST(under_another_strategy_they_are_refused),
        TEST(a_variable_of_another_strategy_is_refused_in_a_replica),
        TEST(a_replica_context_is_of_its_thread_and_step),
        TEST(a_strategy_runs_one_step_at_a_time),
    };
    return RUN_TESTS(tests);
}
