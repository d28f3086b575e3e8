/*
 * Workers: where their jobs run, in what order, and what comes back; the hook
 * at a thread's end.
 */
#include "os/thread.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/topology.h"

static int clean(void **state)
{
    (void)state;
    ls_error();
    return 0;
}

typedef struct place {
    pthread_t thread;
    cpu_set_t mask;
    char name[32];
    int runs;
} place;

static ls_status look_around(void *user)
{
    place *p = user;
    p->thread = pthread_self();
    sched_getaffinity(0, sizeof p->mask, &p->mask);
    pthread_getname_np(pthread_self(), p->name, sizeof p->name);
    p->runs++;
    return LS_OK;
}

static void pinned_to_its_core(void **state)
{
    (void)state;
    for (int i = 0; i < ls__cores(); i++) {
        int core = ls__core_number(i);
        ls__worker *w = NULL;
        place p = { .runs = 0 };
        assert_int_equal(ls__worker_start("tester", core, &w), LS_OK);
        assert_int_equal(ls__worker_run(w, look_around, &p), LS_OK);
        assert_int_equal(CPU_COUNT(&p.mask), 1);
        assert_true(CPU_ISSET(core, &p.mask));
        assert_string_equal(p.name, "tester");
        assert_false(pthread_equal(p.thread, pthread_self()));
        ls__worker_stop(w);
    }
}

static void not_pinned_and_long_name(void **state)
{
    (void)state;
    cpu_set_t mine;
    sched_getaffinity(0, sizeof mine, &mine);
    ls__worker *w = NULL;
    place p = { .runs = 0 };
    assert_int_equal(ls__worker_start("abcdefghijklmnopqrstuvwxyz", -1, &w), LS_OK);
    assert_int_equal(ls__worker_run(w, look_around, &p), LS_OK);
    assert_true(CPU_EQUAL(&mine, &p.mask));
    assert_string_equal(p.name, "abcdefghijklmno"); /* 15 characters */
    ls__worker_stop(w);
}

static ls_status start_another(void *user)
{
    ls__worker *w = NULL;
    ls_status st = ls__worker_start("inner", -1, &w);
    if (!st)
        st = ls__worker_run(w, look_around, user);
    ls__worker_stop(w);
    return st;
}

/* Pinning is not handed down. */
static void not_pinned_by_one_who_is(void **state)
{
    (void)state;
    cpu_set_t mine;
    sched_getaffinity(0, sizeof mine, &mine);
    ls__worker *w = NULL;
    place p = { .runs = 0 };
    assert_int_equal(ls__worker_start("outer", ls__core_number(0), &w), LS_OK);
    assert_int_equal(ls__worker_run(w, start_another, &p), LS_OK);
    assert_int_equal(p.runs, 1);
    assert_true(CPU_EQUAL(&mine, &p.mask));
    ls__worker_stop(w);
}

/* The caller's own thread keeps its mask when a worker is pinned. */
static void caller_stays_unpinned(void **state)
{
    (void)state;
    cpu_set_t before, after;
    sched_getaffinity(0, sizeof before, &before);
    ls__worker *w = NULL;
    assert_int_equal(ls__worker_start("tester", ls__core_number(0), &w), LS_OK);
    ls__worker_stop(w); /* without any job */
    sched_getaffinity(0, sizeof after, &after);
    assert_true(CPU_EQUAL(&before, &after));
}

static ls_status fail_with_text(void *user)
{
    ls_status *seen = user;
    *seen = ls_error_pending();
    return ls__hint(ls__fail(LS_CORRUPT, "job broke"), "try again");
}

static ls_status fail_silently(void *user)
{
    (void)user;
    return LS_TIMEOUT;
}

static ls_status leave_an_error(void *user)
{
    (void)user;
    ls__fail(LS_SHAPE, "left behind");
    return LS_OK;
}

static void errors_come_back(void **state)
{
    (void)state;
    ls__worker *w = NULL;
    ls_status seen = LS_IO;
    place p = { .runs = 0 };
    assert_int_equal(ls__worker_start("tester", -1, &w), LS_OK);

    assert_int_equal(ls__worker_run(w, fail_with_text, &seen), LS_CORRUPT);
    assert_int_equal(seen, LS_OK);
    assert_int_equal(ls_error_pending(), LS_CORRUPT);
    assert_non_null(strstr(ls_error_text(), "job broke"));
    assert_string_equal(ls_error_hint(), "try again");
    ls_error();

    assert_int_equal(ls__worker_run(w, fail_silently, NULL), LS_TIMEOUT);
    ls_error();

    ls__worker_run(w, leave_an_error, NULL);
    assert_int_equal(ls_error(), LS_SHAPE);

    /* Nothing sticks to the worker. */
    assert_int_equal(ls__worker_run(w, look_around, &p), LS_OK);
    assert_int_equal(ls_error_pending(), LS_OK);

    /* An error of the caller's own is not seen by the job and stays the first. */
    seen = LS_PEER;
    ls__fail(LS_IO, "mine");
    assert_int_equal(ls__worker_run(w, fail_with_text, &seen), LS_CORRUPT);
    assert_int_equal(seen, LS_OK);
    assert_int_equal(ls_error_pending(), LS_IO);
    assert_string_equal(ls_error_text(), "mine");
    ls_error();
    ls__worker_stop(w);
}

typedef struct nested {
    ls__worker *worker;
    place outer, inner;
    ls_status status;
} nested;

static ls_status run_again(void *user)
{
    nested *n = user;
    look_around(&n->outer);
    n->status = ls__worker_run(n->worker, look_around, &n->inner);
    return LS_OK;
}

static void on_the_worker_itself_in_place(void **state)
{
    (void)state;
    nested n = { .status = LS_IO };
    assert_int_equal(ls__worker_start("tester", -1, &n.worker), LS_OK);
    assert_int_equal(ls__worker_run(n.worker, run_again, &n), LS_OK);
    assert_int_equal(n.status, LS_OK);
    assert_int_equal(n.inner.runs, 1);
    assert_true(pthread_equal(n.outer.thread, n.inner.thread));
    ls__worker_stop(n.worker);
}

typedef struct shared {
    ls__worker *worker;
    int inside, overlaps, total; /* plain: jobs take turns */
} shared;

static ls_status count_one(void *user)
{
    shared *s = user;
    if (s->inside++)
        s->overlaps++;
    s->total++;
    s->inside--;
    return LS_OK;
}

static void *call_often(void *arg)
{
    shared *s = arg;
    for (int i = 0; i < 300; i++)
        if (ls__worker_run(s->worker, count_one, s))
            return s;
    return NULL;
}

static void callers_take_turns(void **state)
{
    (void)state;
    shared s = { .total = 0 };
    pthread_t threads[4];
    assert_int_equal(ls__worker_start("tester", -1, &s.worker), LS_OK);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_often, &s), 0);
    for (int i = 0; i < 4; i++) {
        void *failed = &s;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(s.total, 1200);
    assert_int_equal(s.overlaps, 0);
    ls__worker_stop(s.worker);
}

static void impossible_core_is_no_crash(void **state)
{
    (void)state;
    ls__worker *w = NULL;
    place p = { .runs = 0 };
    if (ls__worker_start("tester", 1 << 28, &w) == LS_OK) {
        assert_int_equal(ls__worker_run(w, look_around, &p), LS_OK);
        ls__worker_stop(w);
    } else {
        assert_null(w);
        assert_int_not_equal(ls_error(), LS_OK);
    }
}

static int ended[2];
static __thread int ended_here = -1;

static void at_end_zero(void)
{
    ended[0] += ended_here == 7; /* thread-local data is still there */
}

static void at_end_one(void)
{
    ended[1]++;
}

static void *hook_zero(void *arg)
{
    ended_here = 7;
    ls__at_thread_end(at_end_zero);
    ls__at_thread_end(at_end_zero);
    return arg;
}

static void *hook_both(void *arg)
{
    ls__at_thread_end(at_end_zero);
    ls__at_thread_end(at_end_one);
    return arg;
}

static void in_a_thread(void *(*fn)(void *))
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, fn, NULL), 0);
    pthread_join(thread, NULL);
}

static void hook_runs_when_its_thread_ends(void **state)
{
    (void)state;
    in_a_thread(hook_zero);
    assert_int_equal(ended[0], 1); /* once, although given twice */
    in_a_thread(hook_zero);
    assert_int_equal(ended[0], 2);
    in_a_thread(hook_both);
    assert_int_equal(ended[0], 2); /* the last one given wins */
    assert_int_equal(ended[1], 1);
}

static ls_status hook_on_worker(void *user)
{
    hook_both(user);
    return LS_OK;
}

static void hook_runs_on_workers_too(void **state)
{
    (void)state;
    int before = ended[1];
    ls__worker *w = NULL;
    assert_int_equal(ls__worker_start("tester", -1, &w), LS_OK);
    assert_int_equal(ls__worker_run(w, hook_on_worker, NULL), LS_OK);
    assert_int_equal(ended[1], before); /* not yet */
    ls__worker_stop(w);
    assert_int_equal(ended[1], before + 1);
}

static void a_forked_child_has_no_workers(void **state)
{
    (void)state;
    ls__worker *w = NULL;
    place p = { .runs = 0 };
    assert_int_equal(ls__worker_start("tester", -1, &w), LS_OK);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(20); /* a hang fails the test */
        _exit((int)ls__worker_run(w, look_around, &p));
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), LS_STATE);
    assert_int_equal(ls__worker_run(w, look_around, &p), LS_OK);
    assert_int_equal(p.runs, 1);
    ls__worker_stop(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(pinned_to_its_core, clean),
        cmocka_unit_test_setup(not_pinned_and_long_name, clean),
        cmocka_unit_test_setup(not_pinned_by_one_who_is, clean),
        cmocka_unit_test_setup(caller_stays_unpinned, clean),
        cmocka_unit_test_setup(errors_come_back, clean),
        cmocka_unit_test_setup(on_the_worker_itself_in_place, clean),
        cmocka_unit_test_setup(callers_take_turns, clean),
        cmocka_unit_test_setup(impossible_core_is_no_crash, clean),
        cmocka_unit_test_setup(hook_runs_when_its_thread_ends, clean),
        cmocka_unit_test_setup(hook_runs_on_workers_too, clean),
        cmocka_unit_test_setup(a_forked_child_has_no_workers, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
