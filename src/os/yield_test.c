/*
 * Yields: whoever keeps the core is noticed, and forgotten when he is gone; a loop of them ends. How
 * long anything takes is not looked at: what does not come hangs the test.
 */
#include "os/yield.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "os/topology.h"

static void stay_on(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    if (pthread_setaffinity_np(pthread_self(), sizeof set, &set))
        abort(); /* no thread for assertions */
}

static void *yields_until_told(void *unused)
{
    (void)unused;
    ls__yields y = { 0 };
    while (ls__yield(&y))
        ;
    return NULL;
}

static void a_loop_of_yields_ends(void **state)
{
    (void)state;
    assert_false(ls__core_is_shared());
    for (int i = 0; i < 3; i++)
        yields_until_told(NULL);
}

static void *compute(void *over)
{
    stay_on(ls__core_number(0));
    while (!atomic_load((_Atomic bool *)over))
        ;
    return NULL;
}

/* On the same core. */
static void *notice_and_forget(void *over)
{
    stay_on(ls__core_number(0));
    while (!ls__core_is_shared())
        yields_until_told(NULL);
    atomic_store((_Atomic bool *)over, true);
    while (ls__core_is_shared())
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    return NULL;
}

static void who_keeps_the_core_is_noticed(void **state)
{
    (void)state;
    _Atomic bool over = false;
    pthread_t other, thread;
    assert_int_equal(pthread_create(&other, NULL, compute, &over), 0);
    assert_int_equal(pthread_create(&thread, NULL, notice_and_forget, &over), 0);
    pthread_join(thread, NULL);
    pthread_join(other, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loop_of_yields_ends),
        cmocka_unit_test(who_keeps_the_core_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
