/*
 * What is around a run and what it leaves behind: devices, seeds and draws of the thread that
 * calls, memory, other threads with the same strategy, values made by hand.
 */
#include "strategy/strategy_support.h"

#include <lockstep/device.h>
#include <lockstep/random.h>

#include <pthread.h>
#include <stdio.h>

/* ---- devices -------------------------------------------------------------------------- */

typedef struct devices_seen {
    char current[MOST_REPLICAS][LS_DEVICE_NAME_MAX], made_on[MOST_REPLICAS][LS_DEVICE_NAME_MAX];
    bool spoil; /* change the device, and do not change it back */
} devices_seen;

static ls_value *see_devices(ls_value *arguments, void *user)
{
    devices_seen *d = user;
    int i = my_id();
    snprintf(d->current[i], LS_DEVICE_NAME_MAX, "%s", ls_device_current());
    snprintf(d->made_on[i], LS_DEVICE_NAME_MAX, "%s", ls_device_of(ls_scalar(LS_F32, 1)));
    if (d->spoil)
        ls_device_set("/cpu:99", NULL);
    return arguments;
}

static void check_devices(ls_strategy *s, int n, bool traced)
{
    const char *const *devices = ls_worker_devices(s, NULL);
    char before[LS_DEVICE_NAME_MAX];
    snprintf(before, sizeof before, "%s", ls_device_current());
    for (int spoil = 1; spoil >= 0; spoil--) {
        devices_seen d = { .spoil = spoil };
        GAVE(run_step(s, traced, see_devices, &d, number(1)));
        for (int i = 0; i < n; i++) {
            assert_string_equal(d.current[i], devices[i]);
            if (!traced)
                assert_string_equal(d.made_on[i], devices[i]);
        }
        assert_string_equal(ls_device_current(), before);
    }
}

EVERYWHERE(a_replica_is_on_its_device_and_the_caller_stays_on_his, check_devices)

/* ---- draws ----------------------------------------------------------------------------- */

static ls_value *draw(ls_value *arguments, void *user)
{
    (void)arguments, (void)user;
    return ls_leaf(ls_random_uniform(LS_F32, LS_SCALAR, 0, 1));
}

static void check_draws(ls_strategy *s, int n, bool traced)
{
    float got[3][MOST_REPLICAS], outside[2];
    static const uint64_t seeds[] = { 11, 12, 11 };
    for (int k = 0; k < 3; k++) {
        ls_random_seed(seeds[k]);
        OK(ls_set_steps(s, 0));
        ls_value *v = run_step(s, traced, draw, NULL, nothing());
        GAVE(v);
        for (int i = 0; i < n; i++)
            got[k][i] = ls_to_float(part(v, i));
    }
    for (int i = 0; i < n; i++) {
        assert_true(got[0][i] == got[2][i]);
        assert_true(got[0][i] != got[1][i]);
    }
    /* A run does not touch what the caller draws next. */
    for (int k = 0; k < 2; k++) {
        ls_random_seed(5);
        ls_random_step(3);
        ls_random_uniform(LS_F32, LS_SCALAR, 0, 1);
        if (k)
            GAVE(run_step(s, traced, draw, NULL, nothing()));
        outside[k] = ls_to_float(ls_random_uniform(LS_F32, LS_SCALAR, 0, 1));
    }
    assert_true(outside[0] == outside[1]);
    ls_random_seed(0);
    ls_random_step(0);
}

EVERYWHERE(replicas_draw_with_the_callers_seed_and_leave_his_draws_alone, check_draws)

/* ---- memory ------------------------------------------------------------------------------ */

static ls_value *reduce_some(ls_value *arguments, void *user)
{
    (void)user;
    ls_tensor *x = ls_scale(ls_leaf_tensor(arguments), 2);
    return ls_all_reduce(ls_get_replica_context(), LS_MEAN, ls_leaf(x));
}

static ls_value *large(int replica, int replicas, void *user)
{
    (void)replicas, (void)user;
    return ls_leaf(ls_full(LS_F32, LS_DIMS(1000), replica));
}

static void check_memory(ls_strategy *s, int n, bool traced)
{
    ls_function *f = ls_trace(reduce_some, NULL);
    size_t after[2] = { 0 };
    for (int step = 0; step < 40; step++) {
        LS_FRAME {
            ls_value *x = ls_distribute_values(s, large, NULL);
            ls_value *v = traced ? ls_run(s, f, x) : ls_run_eager(s, reduce_some, NULL, x);
            GAVE(v);
            HOLDS(ls_mean(part(v, n - 1), LS_ALL_AXES, false), n - 1);
        }
        if (step == 9)
            after[0] = memory();
    }
    after[1] = memory();
    assert_int_equal(after[0], after[1]);
    ls_function_free(f);
}

EVERYWHERE(runs_leave_no_tensors_behind, check_memory)

static void a_strategy_leaves_no_tensors_behind(void **state)
{
    (void)state;
    size_t before = memory();
    for (int turn = 0; turn < 20; turn++)
        LS_FRAME {
            ls_strategy *s = replicas_on(4, 2);
            ls_variable *v = NULL;
            LS_SCOPE (s)
                v = ls_variable_with(LS_VARIABLE(.synchronization = LS_SYNC_ON_READ), "v",
                                     ls_zeros(LS_F32, LS_DIMS(100)));
            GAVE(run_step(s, turn % 2, reduce_some, NULL, numbers(s, 0, 1)));
            ls_variable_free(v);
            free_strategy(s);
        }
    assert_int_equal(memory(), before);
}

/* ---- threads -------------------------------------------------------------------------------- */

static void *set_and_end(void *s)
{
    return (void *)(intptr_t)ls_set_strategy(s);
}

typedef struct held {
    ls_strategy *s;
    pthread_barrier_t entered, tried;
    ls_status status;
} held;

static void *hold_scope(void *user)
{
    held *h = user;
    h->status = ls_scope_enter(h->s);
    pthread_barrier_wait(&h->entered);
    pthread_barrier_wait(&h->tried);
    if (!h->status)
        h->status = ls_scope_leave(h->s);
    return NULL;
}

static void a_scope_of_another_thread_counts_until_that_ends(void **state)
{
    (void)state;
    pthread_t t;
    held h = { .s = replicas_on(2, 2) };
    pthread_barrier_init(&h.entered, NULL, 2);
    pthread_barrier_init(&h.tried, NULL, 2);
    assert_int_equal(pthread_create(&t, NULL, hold_scope, &h), 0);
    pthread_barrier_wait(&h.entered);
    ls_status freed = ls_strategy_free(h.s);
    ls_error();
    pthread_barrier_wait(&h.tried);
    pthread_join(t, NULL);
    assert_int_equal(freed, LS_STATE);
    assert_int_equal(h.status, LS_OK);

    void *status = NULL;
    assert_int_equal(pthread_create(&t, NULL, set_and_end, h.s), 0);
    pthread_join(t, &status);
    assert_null(status);
    free_strategy(h.s);
    pthread_barrier_destroy(&h.entered);
    pthread_barrier_destroy(&h.tried);
}

typedef struct worker {
    pthread_t thread;
    ls_strategy *s;
    int number, wrong;
} worker;

static ls_value *add_ids(ls_value *arguments, void *user)
{
    (void)user;
    return ls_all_reduce(ls_get_replica_context(), LS_SUM,
                         ls_leaf(ls_add(ls_leaf_tensor(arguments), my_number(0, 1))));
}

static void *run_own(void *user)
{
    worker *w = user;
    for (int step = 0; step < 50; step++)
        LS_FRAME {
            ls_value *v = run_step(w->s, step % 10 == 0, add_ids, w, number(w->number));
            if (!v || ls_to_float(part(v, 0)) != (float)(3 * w->number + 3))
                w->wrong++;
            ls_error();
        }
    return NULL;
}

static void strategies_of_several_threads_run_side_by_side(void **state)
{
    (void)state;
    worker all[3];
    for (int i = 0; i < 3; i++) {
        all[i] = (worker){ .s = replicas_on(3, 2), .number = i };
        assert_int_equal(pthread_create(&all[i].thread, NULL, run_own, &all[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(all[i].thread, NULL);
        assert_int_equal(all[i].wrong, 0);
        free_strategy(all[i].s);
    }
}

/* ---- variables made later ---------------------------------------------------------------------- */

typedef struct later {
    int run;
    ls_variable *made[MOST_REPLICAS];
} later;

/* Makes its variable in the second run, when replicas may run at once. */
static ls_value *make_later(ls_value *arguments, void *user)
{
    later *l = user;
    if (l->run == 0)
        return arguments;
    int i = my_id();
    l->made[i] = ls_variable_new("late", my_number(7, 1), true);
    return ls_leaf(ls_read(l->made[i]));
}

static void check_later(ls_strategy *s, int n, bool traced)
{
    if (traced)
        return;
    for (int turn = 0; turn < 5; turn++) {
        later l = { 0 };
        GAVE(ls_run_eager(s, make_later, &l, number(1)));
        l.run = 1;
        ls_value *v = ls_run_eager(s, make_later, &l, number(1));
        HOLDS_EACH(v, n, 7, 0);
        for (int i = 0; i < n; i++)
            assert_ptr_equal(l.made[i], l.made[0]);
        ls_variable_free(l.made[0]);
    }
}

EVERYWHERE(variables_made_in_a_later_run_are_replica_0s_too, check_later)

/* ---- values made by hand -------------------------------------------------------------------------- */

static ls_value *unlike_values(int replica, int replicas, void *user)
{
    (void)user;
    return replica == replicas - 1 ? nothing() : number(replica);
}

static ls_value *distributed_values(int replica, int replicas, void *user)
{
    (void)replica, (void)replicas;
    return user;
}

static void check_made_by_hand(ls_strategy *s, int n, bool traced)
{
    HOLDS_EACH(ls_distribute_values(s, large, NULL) ? numbers(s, 3, 4) : NULL, n, 3, 4);
    if (n > 1) {
        assert_null(ls_distribute_values(s, unlike_values, NULL));
        FAILS(LS_INVALID, replica_named(n - 1, n));
        assert_null(ls_distribute_values(s, distributed_values, numbers(s, 0, 1)));
        FAILS(LS_INVALID, "replica");
        ls_value *same[MOST_REPLICAS];
        for (int i = 0; i < n; i++)
            same[i] = number(1);
        assert_int_equal(ls_spread_of(ls_per_replica(s, same)), LS_SPREAD_PER_REPLICA);
        assert_null(ls_select(numbers(s, 0, 1), n));
        FAILS(LS_INVALID, "component");
        assert_null(ls_select(numbers(s, 0, 1), -1));
        FAILS(LS_INVALID, "-1");
    }
    /* A deep nest. */
    ls_value *deep = numbers(s, 0, 1);
    for (int i = 0; i < 100; i++)
        deep = ls_list(1, &deep);
    ls_value *back = run_step(s, traced, echo, NULL, deep);
    GAVE(back);
    for (int i = 0; i < 100; i++)
        back = ls_child(back, 0);
    HOLDS_EACH(back, n, 0, 1);
}

EVERYWHERE(values_made_by_hand_have_one_structure, check_made_by_hand)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_replica_is_on_its_device_and_the_caller_stays_on_his),
        TEST(replicas_draw_with_the_callers_seed_and_leave_his_draws_alone),
        TEST(runs_leave_no_tensors_behind),
        TEST(a_strategy_leaves_no_tensors_behind),
        TEST(a_scope_of_another_thread_counts_until_that_ends),
        TEST(strategies_of_several_threads_run_side_by_side),
        TEST(variables_made_in_a_later_run_are_replica_0s_too),
        TEST(values_made_by_hand_have_one_structure),
    };
    return RUN_TESTS(tests);
}
