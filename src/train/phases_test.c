/*
 * Where the time of replicas goes: which instructions of a step are part of which phase, that the
 * seconds are those that operators take (one here sleeps), and that nothing is counted twice.
 * No test depends on how fast anything is: a sleep takes its time or longer, and what is counted
 * is never more than what has passed.
 */
#include <lockstep/extended.h>
#include <pthread.h>
#include <stdio.h>

#include "strategy/step.h"
#include "train/phases_test_support.h"

/* ---- which instructions ------------------------------------------------------------------------- */

/* "FBR": a letter a stretch. */
static const char *stretches(const ls__plan *plan)
{
    static char text[64];
    int n = 0;
    for (; n < plan->n_stretches && n < 63; n++)
        text[n] = "IFBRAO"[plan->stretches[n].phase];
    text[n] = 0;
    assert_int_equal(plan->stretches[n].begin, plan->n_instructions);
    return text;
}

static const ls__plan *program_of(const ls_function *f)
{
    return ((const ls__traced_step *)f->steps)->programs[0].plan;
}

static const ls__plan *meeting_of(const ls_function *f)
{
    return ((const ls__traced_step *)f->steps)->meetings[0].plan;
}

static void one_replica_goes_forward_back_and_applies(void **state)
{
    (void)state;
    world *t = world_open("/cpu:0", 1, NULL);
    world_run(t, t->train, 1);
    assert_string_equal(stretches(program_of(t->train)), "FBA");
    world_run(t, t->test, 1);
    assert_string_equal(stretches(program_of(t->test)), "F"); /* nothing is trained */
    world_close(t);
}

static void replicas_meet_after_their_gradients(void **state)
{
    (void)state;
    static const struct {
        double clip;
        const char *meeting;
    } cases[] = { { 0, "RA" }, { 1, "RA" } };
    for (int i = 0; i < 2; i++) {
        world *t = world_open("/cpu:0,/cpu:1", 2, LS_SGD(.clip_global_norm = cases[i].clip));
        world_run(t, t->train, 1);
        /* The replica's own variable was written by the forward pass; its place is later. */
        assert_string_equal(stretches(program_of(t->train)), "FBAR");
        assert_string_equal(stretches(meeting_of(t->train)), cases[i].meeting);
        world_close(t);
    }
}

static ls_value *rest_after(ls_value *x, void *user)
{
    world *t = user;
    ls_value *loss = world_train(x, t);
    ls_value *sum = ls_all_reduce(ls_get_replica_context(), LS_SUM, loss);
    return ls_leaf(ls_exp(ls_leaf_tensor(sum)));
}

static void what_comes_after_gradients_is_other(void **state)
{
    (void)state;
    world *t = world_open("/cpu:0", 2, NULL);
    ls_function *f = ls_trace(rest_after, t);
    world_run(t, f, 1);
    assert_string_equal(stretches(program_of(f)), "FBARO");
    ls_function_free(f);
    world_close(t);
}

/* ---- seconds -------------------------------------------------------------------------------------- */

static double sum_of(const double *t)
{
    double sum = 0;
    for (int i = 0; i < LS_PHASES; i++)
        sum += t[i];
    return sum;
}

static void take(const ls_strategy *s, int replica, double *t)
{
    assert_int_equal(ls_phase_seconds(s, replica, t), LS_OK);
}

static void seconds_are_where_the_time_goes(void **state)
{
    (void)state;
    static const struct {
        const char *devices;
        int replicas;
    } cases[] = {
        { "/cpu:0", 1 }, { "/cpu:0", 2 }, { "/cpu:0,/cpu:1", 2 }, { "/cpu:0,/cpu:1", 3 }
    };
    enum { STEPS = 3 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world *t = world_open(cases[i].devices, cases[i].replicas, NULL);
        double begun = seconds_now(), spent[LS_PHASES];
        world_run(t, t->train, STEPS);
        double wall = seconds_now() - begun;
        for (int r = 0; r < cases[i].replicas; r++) {
            take(t->strategy, r, spent);
            assert_true(spent[LS_PHASE_INPUT] == 0);
            assert_true(spent[LS_PHASE_FORWARD] >= STEPS * NAP);
            assert_true(spent[LS_PHASE_BACKWARD] >= STEPS * NAP);
            assert_true(spent[LS_PHASE_APPLY] > 0);
            assert_true((spent[LS_PHASE_REDUCE] > 0) == (cases[i].replicas > 1));
            assert_true(spent[LS_PHASE_OTHER] > 0); /* tracing, at least */
            assert_true(sum_of(spent) <= wall);
        }
        world_close(t);
    }
}

/* Two on one device: each naps twice while the other is not there; that is no reduction. */
static void another_ones_turn_is_other(void **state)
{
    (void)state;
    world *t = world_open("/cpu:0", 2, NULL);
    world_run(t, t->train, 1);
    double before[LS_PHASES], after[LS_PHASES];
    for (int r = 0; r < 2; r++) {
        take(t->strategy, r, before);
        world_run(t, t->train, 2);
        take(t->strategy, r, after);
        assert_true(after[LS_PHASE_OTHER] - before[LS_PHASE_OTHER] >= 2 * 2 * NAP);
    }
    world_close(t);
}

static void waiting_for_others_is_reduce(void **state)
{
    (void)state;
    world *t = world_open("/cpu:0,/cpu:1", 3, NULL); /* one device has two replicas */
    world_run(t, t->train, 1);
    double spent[LS_PHASES], waited = 0;
    for (int i = 0; i < 100 && waited < 2 * NAP; i++) { /* its thread may begin late */
        world_run(t, t->train, 1);
        for (int r = 0; r < 3; r++) {
            take(t->strategy, r, spent);
            waited = spent[LS_PHASE_REDUCE] > waited ? spent[LS_PHASE_REDUCE] : waited;
        }
    }
    /* Who has a device for itself waits two naps a step. */
    assert_true(waited >= 2 * NAP);
    world_close(t);
}

/* A step that fails is counted, too, and leaves nothing running. */
static ls_value *fails(ls_value *x, void *user)
{
    (void)user;
    ls_tensor *t = napping(ls_leaf_tensor(x));
    return ls_leaf(ls_div(ls_cast(t, LS_I32), ls_cast(t, LS_I32)));
}

static void a_run_that_fails_ends(void **state)
{
    (void)state;
    world *t = world_open("/cpu:0,/cpu:1", 2, NULL);
    ls_function *f = ls_trace(fails, NULL);
    double spent[LS_PHASES], later[LS_PHASES];
    LS_FRAME {
        assert_null(ls_run(t->strategy, f, ls_leaf(ls_zeros(LS_F32, LS_DIMS(4)))));
        failed(LS_INVALID);
    }
    take(t->strategy, 1, spent);
    assert_true(spent[LS_PHASE_FORWARD] >= NAP);
    nap();
    take(t->strategy, 1, later);
    assert_memory_equal(spent, later, sizeof spent);
    ls_function_free(f);
    world_close(t);
}

static ls_value *napping_merge(ls_strategy *s, ls_value *arguments, void *user)
{
    (void)s, (void)user;
    nap();
    return arguments;
}

static ls_value *meets(ls_value *x, void *user)
{
    return ls_merge_call(ls_get_replica_context(), napping_merge, user, x);
}

static void eager_meetings_are_reduce_and_the_rest_is_other(void **state)
{
    (void)state;
    world *t = world_open("/cpu:0,/cpu:1", 2, NULL);
    double begun = seconds_now(), spent[LS_PHASES];
    for (int i = 0; i < 2; i++)
        LS_FRAME
            assert_non_null(ls_run_eager(t->strategy, meets, NULL, ls_leaf(ls_scalar(LS_F32, 1))));
    double wall = seconds_now() - begun;
    take(t->strategy, 1, spent);
    assert_true(spent[LS_PHASE_REDUCE] >= 2 * NAP);
    assert_true(spent[LS_PHASE_OTHER] > 0 && sum_of(spent) <= wall);
    assert_true(spent[LS_PHASE_FORWARD] == 0 && spent[LS_PHASE_APPLY] == 0);
    world_close(t);
}

/* A run inside a meeting of a run: what is counted for it is not counted for the meeting. */
static ls_value *runs_inside(ls_strategy *s, ls_value *arguments, void *user)
{
    world *t = user;
    assert_non_null(ls_run(s, t->test, ls_select(arguments, 0)));
    return ls_list(0, NULL);
}

static ls_value *meets_to_run(ls_value *x, void *user)
{
    return ls_merge_call(ls_get_replica_context(), runs_inside, user, x);
}

static void nested_runs_count_once(void **state)
{
    (void)state;
    world *t = world_open("/cpu:0,/cpu:1", 2, NULL);
    double begun = seconds_now(), spent[LS_PHASES];
    for (int i = 0; i < 3; i++)
        LS_FRAME
            assert_non_null(ls_run_eager(t->strategy, meets_to_run, t,
                                         ls_leaf(ls_full(LS_F32, LS_DIMS(8, WIDTH), 0.01))));
    double wall = seconds_now() - begun;
    for (int r = 0; r < 2; r++) {
        take(t->strategy, r, spent);
        assert_true(spent[LS_PHASE_FORWARD] >= 3 * NAP);
        assert_true(sum_of(spent) <= wall);
    }
    world_close(t);
}

/* ---- input ------------------------------------------------------------------------------------------ */

static ls_value *slow_row(ls_value *element, void *user)
{
    (void)user;
    nap();
    return element;
}

static ls_dataset *slow_batches(ls_strategy *s, int count)
{
    ls_dataset *rows = ls_slices(ls_leaf(ls_full(LS_F32, LS_DIMS(2 * count, WIDTH), 0.01)));
    return ls_distribute(s, ls_map(ls_batch(rows, 2), LS_MAP(.fn = slow_row)));
}

static void waiting_for_input_is_counted_for_all(void **state)
{
    (void)state;
    enum { COUNT = 3 };
    world *t = world_open("/cpu:0,/cpu:1", 2, NULL);
    double begun = seconds_now(), spent[LS_PHASES];
    LS_FRAME {
        int n = 0;
        LS_FOR_EACH (batch, slow_batches(t->strategy, COUNT)) {
            n++;
            assert_non_null(ls_run(t->strategy, t->train, batch));
        }
        assert_int_equal(n, COUNT);
    }
    double wall = seconds_now() - begun;
    for (int r = 0; r < 2; r++) {
        take(t->strategy, r, spent);
        assert_true(spent[LS_PHASE_INPUT] >= COUNT * NAP);
        assert_true(sum_of(spent) <= wall);
    }
    assert_int_equal(ls_error_pending(), LS_OK);
    world_close(t);
}

static ls_value *nothing(ls_value *x, void *user)
{
    (void)user;
    return x;
}

static void waiting_inside_a_run_is_no_other(void **state)
{
    (void)state;
    world *t = world_open("/cpu:0,/cpu:1", 2, NULL);
    double spent[LS_PHASES];
    LS_FRAME {
        ls_iterator *it = ls_iterate(slow_batches(t->strategy, 1));
        double begun = seconds_now();
        assert_non_null(ls_run_next(t->strategy, nothing, NULL, ls_next_of, it));
        double wall = seconds_now() - begun;
        ls_iterator_free(it);
        take(t->strategy, 1, spent);
        assert_true(spent[LS_PHASE_INPUT] >= NAP && sum_of(spent) <= wall);
    }
    world_close(t);
}

/* While a step runs, an element that another thread gets keeps nobody waiting. */
typedef struct reader {
    ls_iterator *it;
    _Atomic bool begun, done;
    ls_status status;
} reader;

static void *read_beside(void *user)
{
    reader *r = user;
    atomic_store(&r->begun, true);
    LS_FRAME {
        ls_value *x;
        r->status = ls_next(r->it, &x);
    }
    atomic_store(&r->done, true);
    return NULL;
}

static ls_value *until_read(ls_value *x, void *user)
{
    reader *r = user;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, read_beside, r), 0);
    pthread_join(thread, NULL);
    return x;
}

static void input_beside_a_run_is_not_waited_for(void **state)
{
    (void)state;
    world *t = world_open("/cpu:0", 1, NULL);
    double spent[LS_PHASES];
    LS_FRAME {
        reader r = { .it = ls_iterate(slow_batches(t->strategy, 1)) };
        assert_non_null(ls_run_eager(t->strategy, until_read, &r, ls_leaf(ls_scalar(LS_F32, 1))));
        assert_int_equal(r.status, LS_OK);
        ls_iterator_free(r.it);
    }
    take(t->strategy, 0, spent);
    assert_true(spent[LS_PHASE_INPUT] == 0);
    world_close(t);
}

/* ---- what is refused -------------------------------------------------------------------------------- */

static void names_and_bad_arguments(void **state)
{
    (void)state;
    assert_string_equal(ls_phase_name(LS_PHASE_BACKWARD), "backward");
    assert_string_equal(ls_phase_name((ls_phase)LS_PHASES), "?");
    assert_string_equal(ls_phase_name((ls_phase)-1), "?");
    world *t = world_open("/cpu:0", 2, NULL);
    double spent[LS_PHASES];
    assert_int_equal(ls_phase_seconds(t->strategy, 2, spent), LS_INVALID);
    assert_non_null(strstr(ls_error_text(), "replica 2 of 2"));
    failed(LS_INVALID);
    assert_int_equal(ls_phase_seconds(t->strategy, -1, spent), LS_INVALID);
    failed(LS_INVALID);
    assert_int_equal(ls_phase_seconds(t->strategy, 0, NULL), LS_INVALID);
    failed(LS_INVALID);
    assert_int_equal(ls_phase_seconds(NULL, 0, spent), LS_INVALID);
    failed(LS_INVALID);
    world_close(t);
    /* The default strategy is any thread's: it counts nothing. */
    assert_int_equal(ls_phase_seconds(ls_default_strategy(), 0, spent), LS_OK);
    assert_true(sum_of(spent) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(one_replica_goes_forward_back_and_applies, clean),
        cmocka_unit_test_setup(replicas_meet_after_their_gradients, clean),
        cmocka_unit_test_setup(what_comes_after_gradients_is_other, clean),
        cmocka_unit_test_setup(seconds_are_where_the_time_goes, clean),
        cmocka_unit_test_setup(another_ones_turn_is_other, clean),
        cmocka_unit_test_setup(waiting_for_others_is_reduce, clean),
        cmocka_unit_test_setup(a_run_that_fails_ends, clean),
        cmocka_unit_test_setup(eager_meetings_are_reduce_and_the_rest_is_other, clean),
        cmocka_unit_test_setup(nested_runs_count_once, clean),
        cmocka_unit_test_setup(waiting_for_input_is_counted_for_all, clean),
        cmocka_unit_test_setup(waiting_inside_a_run_is_no_other, clean),
        cmocka_unit_test_setup(input_beside_a_run_is_not_waited_for, clean),
        cmocka_unit_test_setup(names_and_bad_arguments, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
