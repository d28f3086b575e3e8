/*
 * Corners that a review found by hand, each kept as a test: strategies and the process around them:
 * threads, signals, a fork, a function freed while it runs.
 */
#include "strategy/strategy_support.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- the default strategy belongs to every thread ----------------------------------------------- */

static ls_value *add_to_itself(ls_value *arguments, void *user)
{
    (void)user;
    return ls_leaf(ls_add(ls_leaf_tensor(arguments), ls_leaf_tensor(arguments)));
}

static ls_value *merge_itself(ls_value *arguments, void *user)
{
    (void)user;
    return ls_merge_call(ls_get_replica_context(), echo_merge, NULL, arguments);
}

static void *run_default(void *wrong)
{
    static const ls_step steps[] = { echo, add_to_itself, merge_itself };
    for (int i = 0; i < 48; i++)
        LS_FRAME {
            ls_value *v = run_step(ls_default_strategy(), i % 2, steps[i % 3], NULL, number(i));
            if (!v || ls_to_float(part(v, 0)) != (float)(i % 3 == 1 ? 2 * i : i))
                ++*(int *)wrong;
            ls_error();
        }
    return NULL;
}

static void the_default_strategy_runs_on_many_threads_at_once(void **state)
{
    (void)state;
    pthread_t threads[3];
    int wrong[3] = { 0 };
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_default, &wrong[i]), 0);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(wrong[i], 0);
    }
}

/* ---- signals -------------------------------------------------------------------------------------- */

static volatile sig_atomic_t delivered;

static void note(int number)
{
    (void)number;
    delivered++;
}

static ls_value *meet(ls_value *arguments, void *user)
{
    (void)user;
    return ls_all_reduce(ls_get_replica_context(), LS_SUM, arguments);
}

/* The program blocks the signal, to wait for it: threads that do not block it would take it. */
static void check_signals(ls_strategy *s, int n, bool traced)
{
    struct sigaction ours = { .sa_handler = note }, before;
    sigset_t set, mask;
    HOLDS_EACH(run_step(s, traced, meet, NULL, number(1)), n, n, 0);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    delivered = 0;
    assert_int_equal(sigaction(SIGUSR1, &ours, &before), 0);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &set, &mask), 0);
    assert_int_equal(kill(getpid(), SIGUSR1), 0);
    int got = sigtimedwait(&set, NULL, &(struct timespec){ .tv_sec = 2 });
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    sigaction(SIGUSR1, &before, NULL);
    assert_int_equal(delivered, 0);
    assert_int_equal(got, SIGUSR1);
}

EVERYWHERE(threads_of_a_strategy_leave_signals_to_the_program, check_signals)

static ls_value *my_mask(ls_value *arguments, void *user)
{
    (void)arguments;
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    ((bool *)user)[my_id()] = sigismember(&now, SIGUSR1) == 1;
    return nothing();
}

/* What replica 0 does is done on the caller's thread, as he left it. */
static void check_mask(ls_strategy *s, int n, bool traced)
{
    bool blocked[MOST_REPLICAS] = { false };
    sigset_t now;
    if (traced)
        return;
    for (int turn = 0; turn < 2; turn++)
        GAVE(ls_run_eager(s, my_mask, blocked, nothing()));
    assert_false(blocked[0]);
    for (int i = 1; i < n; i++)
        assert_true(blocked[i]);
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    assert_int_equal(sigismember(&now, SIGUSR1), 0);
}

EVERYWHERE(the_caller_keeps_his_own_signal_mask, check_mask)

/* ---- a fork ------------------------------------------------------------------------------------------ */

/* In the child: 0, or which expectation failed. A replay on one device needs no thread. */
static int in_child(ls_strategy *s, bool traced)
{
    int n = ls_num_replicas(s), devices = 0;
    ls_parameter_devices(s, &devices);
    ls_value *v = run_step(s, traced, meet, NULL, number(1));
    if (v)
        return traced && devices == 1 && ls_to_float(part(v, n - 1)) == (float)n ? 0 : 1;
    if (ls_error_pending() != LS_STATE || !mentions(ls_error_report(), "forked"))
        return 2;
    ls_error();
    return ls_strategy_free(s) ? 3 : 0;
}

static void check_fork(ls_strategy *s, int n, bool traced)
{
    int status = -1;
    HOLDS_EACH(run_step(s, traced, meet, NULL, number(1)), n, n, 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(20);
        _exit(in_child(s, traced));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    HOLDS_EACH(run_step(s, traced, meet, NULL, number(1)), n, n, 0);
}

static void a_forked_child_is_told_that_the_threads_are_not_its_own(void **state)
{
    (void)state;
    everywhere_of(3, check_fork);
}

/* ---- what one replica read, on all of them -------------------------------------------------------- */

enum { LARGE = 1 << 13 };

static ls_value *read_last(ls_strategy *s, ls_value *arguments, void *user)
{
    (void)arguments;
    return ls_leaf(ls_read(ls_variable_component(user, ls_num_replicas(s) - 1)));
}

/* All look at what the last one has, which writes it meanwhile. */
static ls_value *look_and_write(ls_value *arguments, void *user)
{
    ls_replica *r = ls_get_replica_context();
    ls_value *brought = ls_merge_call(r, read_last, user, nothing());
    ls_tensor *all = brought ? ls_add(ls_leaf_tensor(brought), ls_leaf_tensor(arguments)) : NULL;
    if (ls_replica_id(r) == ls_num_replicas(ls_replica_strategy(r)) - 1 &&
        ls_assign_add(user, ls_ones(LS_F32, LS_DIMS(LARGE))))
        return NULL;
    for (int i = 0; i < 40 && all; i++)
        all = ls_maximum(all, ls_add(ls_leaf_tensor(brought), ls_leaf_tensor(arguments)));
    return ls_leaf(ls_max(all, LS_ALL_AXES, false));
}

static void check_own_seen_by_all(ls_strategy *s, int n, bool traced)
{
    ls_variable *v = NULL;
    LS_SCOPE (s)
        v = ls_variable_with(
            LS_VARIABLE(.synchronization = LS_SYNC_ON_READ, .aggregation = LS_AGGREGATE_MEAN), "v",
            ls_zeros(LS_F32, LS_DIMS(LARGE)));
    for (int turn = 0; turn < (traced ? 2 : 8); turn++)
        LS_FRAME {
            ls_value *a = ls_leaf(ls_read(ls_variable_component(v, n - 1)));
            ls_value *got = run_step(s, traced, look_and_write, v, a);
            HOLDS_EACH(got, n, 2 * turn, 0);
        }
    ls_variable_free(v);
}

static void what_one_replica_has_stays_for_all_what_it_was_when_it_was_read(void **state)
{
    (void)state;
    everywhere_of(3, check_own_seen_by_all);
}

/* ---- many, and early ends ------------------------------------------------------------------------- */

static ls_value *sum_of_numbers(ls_value *arguments, void *user)
{
    (void)user;
    ls_tensor *x = ls_add(ls_leaf_tensor(arguments), my_number(0, 1));
    return ls_all_reduce(ls_get_replica_context(), LS_SUM, ls_leaf(x));
}

static void hundreds_of_replicas_meet(void **state)
{
    (void)state;
    enum { MANY = SANITIZED ? 60 : 300 };
    ls_strategy *s = replicas_on(MANY, 2);
    for (int turn = 0; turn < 4; turn++)
        LS_FRAME {
            ls_value *v = run_step(s, turn % 2, sum_of_numbers, NULL, number(turn));
            GAVE(v);
            for (int i = 0; i < MANY; i += MANY - 1)
                HOLDS(part(v, i), turn * MANY + MANY * (MANY - 1) / 2);
        }
    free_strategy(s);
}

static ls_value *free_itself(ls_value *arguments, void *user)
{
    ls_function **f = user;
    ls_function_free(*f);
    *f = NULL;
    return add_to_itself(arguments, NULL);
}

static void check_free_itself(ls_strategy *s, int n, bool traced)
{
    if (!traced)
        return;
    ls_function *f = ls_trace(free_itself, &f);
    HOLDS_EACH(ls_run(s, f, numbers(s, 2, 1)), n, 4, 2);
    assert_null(f);
}

EVERYWHERE(a_step_may_free_its_function, check_free_itself)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_default_strategy_runs_on_many_threads_at_once),
        TEST(threads_of_a_strategy_leave_signals_to_the_program),
        TEST(the_caller_keeps_his_own_signal_mask),
        TEST(a_forked_child_is_told_that_the_threads_are_not_its_own),
        TEST(what_one_replica_has_stays_for_all_what_it_was_when_it_was_read),
        TEST(hundreds_of_replicas_meet),
        TEST(a_step_may_free_its_function),
    };
    return RUN_TESTS(tests);
}
