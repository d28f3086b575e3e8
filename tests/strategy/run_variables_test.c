/*
 * Variables that a step makes: replica 0 makes them, the others get the same ones by name and
 * order. And what else is keyed by replica and step: random draws.
 */
#include "strategy/strategy_support.h"

#include <stdio.h>

/* ---- made once ----------------------------------------------------------------------- */

typedef struct made {
    ls_variable *a[MOST_REPLICAS], *b[MOST_REPLICAS];
    bool freed;
} made;

/* Two variables of one name, another value on each replica: what replica 0 has counts. */
static ls_value *make_two(ls_value *arguments, void *user)
{
    (void)arguments;
    made *m = user;
    int i = my_id();
    if (!m->a[i]) {
        m->a[i] = ls_variable_new("foo", my_number(3, 10), true);
        m->b[i] = ls_variable_with(
            LS_VARIABLE(.synchronization = LS_SYNC_ON_READ, .aggregation = LS_AGGREGATE_SUM), "foo",
            my_number(4, 10));
    }
    return pair(ls_leaf(ls_read(m->a[i])), ls_leaf(ls_read(m->b[i])));
}

static void check_made(ls_strategy *s, int n, bool traced)
{
    made m = { .freed = false };
    ls_value *v = run_step(s, traced, make_two, &m, nothing());
    GAVE(v);
    HOLDS_EACH(ls_child(v, 0), n, 3, 0);
    HOLDS_EACH(ls_child(v, 1), n, 4, 0);
    for (int i = 0; i < n; i++) {
        assert_ptr_equal(m.a[i], m.a[0]);
        assert_ptr_equal(m.b[i], m.b[0]);
    }
    assert_ptr_not_equal(m.a[0], m.b[0]);
    assert_ptr_equal(ls_variable_strategy(m.a[0]), s);
    assert_true(ls_variable_created_in_scope(s, m.a[0]));
    assert_int_equal(ls_variable_components(m.a[0]), n);
    assert_string_equal(ls_variable_name(m.a[0]), "foo");
    for (int i = 0; i < n; i++) {
        char name[32] = "foo";
        if (i)
            snprintf(name, sizeof name, "foo/replica_%d", i);
        ls_variable *c = ls_variable_component(m.a[0], i);
        assert_string_equal(ls_variable_name(c), name);
        assert_ptr_equal(ls_value_container(c), m.a[0]);
        HOLDS(ls_read(c), 3);
    }
    HOLDS(ls_read(m.a[0]), 3);
    HOLDS(ls_read(m.b[0]), 4 * n);
    /* They last from run to run. */
    v = run_step(s, traced, make_two, &m, nothing());
    HOLDS_EACH(ls_child(v, 0), n, 3, 0);
    ls_variable_free(m.a[0]);
    ls_variable_free(m.b[0]);
}

EVERYWHERE(replica_0_makes_variables_and_the_others_get_them, check_made)

/* The same program on another placement draws the same initial values. */
static ls_value *make_random(ls_value *arguments, void *user)
{
    (void)arguments;
    made *m = user;
    int i = my_id();
    m->a[i] = ls_variable_new("r", ls_glorot_uniform(LS_F32, LS_DIMS(4, 4)), true);
    return ls_leaf(ls_read(m->a[i]));
}

static void check_random_initial(ls_strategy *s, int n, bool traced)
{
    made m = { .freed = false };
    ls_value *v = run_step(s, traced, make_random, &m, nothing());
    GAVE(v);
    float first[16], other[16];
    OK(ls_copy_out(part(v, 0), first, sizeof first));
    for (int i = 1; i < n; i++) {
        OK(ls_copy_out(part(v, i), other, sizeof other));
        assert_memory_equal(first, other, sizeof first);
    }
    ls_variable_free(m.a[0]);
}

EVERYWHERE(random_initial_values_are_those_of_replica_0, check_random_initial)

/* ---- not alike -------------------------------------------------------------------------- */

typedef enum unlike { OTHER_NAME, ONE_MORE, ONE_LESS, OTHER_ORDER } unlike;

typedef struct unlikely {
    unlike kind;
    ls_variable *of_first[3];
} unlikely;

static ls_variable *make(unlikely *u, int at, const char *name)
{
    ls_variable *v = ls_variable_new(name, ls_scalar(LS_F32, 1), true);
    if (my_id() == 0)
        u->of_first[at] = v;
    return v;
}

/* The last replica parts. */
static ls_value *make_unlike(ls_value *arguments, void *user)
{
    unlikely *u = user;
    bool last = my_id() == ls_num_replicas(ls_get_strategy()) - 1;
    bool good = true;
    switch (u->kind) {
    case OTHER_NAME:
        good = make(u, 0, last ? "strange" : "usual");
        break;
    case ONE_MORE:
        good = make(u, 0, "usual") && (!last || make(u, 1, "strange"));
        break;
    case ONE_LESS:
        good = make(u, 0, "usual") && (last || make(u, 1, "strange"));
        break;
    default:
        good = make(u, 0, last ? "strange" : "usual") && make(u, 1, last ? "usual" : "strange");
    }
    return good ? arguments : NULL;
}

static void check_unlike(ls_strategy *s, int n, bool traced)
{
    if (n == 1)
        return;
    const char *last = replica_named(n - 1, n);
    for (int kind = OTHER_NAME; kind < ONE_LESS; kind++) {
        unlikely u = { .kind = (unlike)kind };
        if (run_step(s, traced, make_unlike, &u, number(1)))
            fail_msg("unlike %d went well", kind);
        FAILS(LS_STATE, "strange", last);
        for (int i = 0; i < 3; i++)
            ls_variable_free(u.of_first[i]);
    }
    /* By name and order of that name: another order of different names is the same. And a replica
     * that finds a variable made by replica 0 need not make it again. */
    for (int kind = ONE_LESS; kind <= OTHER_ORDER; kind++) {
        unlikely u = { .kind = (unlike)kind };
        GAVE(run_step(s, traced, make_unlike, &u, number(1)));
        for (int i = 0; i < 3; i++)
            ls_variable_free(u.of_first[i]);
    }
}

EVERYWHERE(variables_made_by_some_replicas_only_are_refused, check_unlike)

static ls_value *make_then_fail(ls_value *arguments, void *user)
{
    (void)arguments;
    unlikely *u = user;
    if (!make(u, 0, "kept"))
        return NULL;
    return my_id() == ls_num_replicas(ls_get_strategy()) - 1 ? fail_here("after_all") : nothing();
}

static void check_made_in_vain(ls_strategy *s, int n, bool traced)
{
    (void)n;
    unlikely u = { .kind = OTHER_NAME };
    assert_null(run_step(s, traced, make_then_fail, &u, number(1)));
    FAILS(LS_NOT_FOUND, "after_all");
    /* It is who made it who frees it, also then. */
    assert_non_null(u.of_first[0]);
    ls_variable_free(u.of_first[0]);
}

EVERYWHERE(a_failed_step_leaves_its_variables_to_who_made_them, check_made_in_vain)

/* ---- draws -------------------------------------------------------------------------------- */

static ls_value *draw(ls_value *arguments, void *user)
{
    (void)arguments, (void)user;
    return ls_leaf(ls_random_uniform(LS_F32, LS_DIMS(4), 0, 1));
}

static void draws(ls_strategy *s, bool traced, int n, float out[][4])
{
    LS_FRAME {
        ls_value *v = run_step(s, traced, draw, NULL, nothing());
        GAVE(v);
        for (int i = 0; i < n; i++)
            OK(ls_copy_out(part(v, i), out[i], 4 * sizeof(float)));
    }
}

static void draws_depend_on_replica_and_step_not_on_the_placement(void **state)
{
    (void)state;
    enum { N = 3 };
    float want[2][N][4], got[N][4];
    for (int devices = 1; devices <= N; devices++)
        for (int traced = 0; traced < 2; traced++) {
            ls_strategy *s = replicas_on(N, devices);
            for (int step = 0; step < 2; step++) {
                draws(s, traced, N, got);
                if (devices == 1 && !traced)
                    memcpy(want[step], got, sizeof got);
                assert_memory_equal(got, want[step], sizeof got);
            }
            /* A step done again draws them again. */
            OK(ls_set_steps(s, 1));
            draws(s, traced, N, got);
            assert_memory_equal(got, want[1], sizeof got);
            free_strategy(s);
        }
    assert_memory_not_equal(want[0], want[1], sizeof got);
    assert_memory_not_equal(want[0][0], want[0][1], sizeof got[0]);
    assert_memory_not_equal(want[0][1], want[0][2], sizeof got[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(replica_0_makes_variables_and_the_others_get_them),
        TEST(random_initial_values_are_those_of_replica_0),
        TEST(variables_made_by_some_replicas_only_are_refused),
        TEST(a_failed_step_leaves_its_variables_to_who_made_them),
        TEST(draws_depend_on_replica_and_step_not_on_the_placement),
    };
    return RUN_TESTS(tests);
}
