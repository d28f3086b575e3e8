/*
 * Locks keep threads apart; signals wake one, or all, of those that wait.
 */
#include "os/lock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "os/plain_thread.h"

enum { THREADS = 4, TURNS = 2000 };

typedef struct shared {
    ls__lock lock;
    ls__signal changed, arrived;
    int64_t count;
    int waiting, woken, tickets;
    bool open;
} shared;

static void set_up(shared *s)
{
    *s = (shared){ .count = 0 };
    ls__lock_init(&s->lock);
    ls__signal_init(&s->changed);
    ls__signal_init(&s->arrived);
}

static void tear_down(shared *s)
{
    ls__signal_end(&s->arrived);
    ls__signal_end(&s->changed);
    ls__lock_end(&s->lock);
}

static void start_all(shared *s, void (*fn)(void *), ls__thread **threads)
{
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(ls__thread_start("lock-test", -1, fn, s, &threads[i]), LS_OK);
}

static void join_all(ls__thread **threads)
{
    for (int i = 0; i < THREADS; i++)
        ls__thread_join(threads[i]);
}

static void count_up(void *user)
{
    shared *s = user;
    for (int i = 0; i < TURNS; i++) {
        ls__lock_take(&s->lock);
        s->count++;
        ls__lock_give(&s->lock);
    }
}

static void one_at_a_time(void **state)
{
    (void)state;
    shared s;
    ls__thread *threads[THREADS];
    set_up(&s);
    start_all(&s, count_up, threads);
    join_all(threads);
    assert_int_equal(s.count, THREADS * TURNS);
    tear_down(&s);
}

/* Waits for a ticket, or for the gate to open. */
static void wait_for_ticket(void *user)
{
    shared *s = user;
    ls__lock_take(&s->lock);
    s->waiting++;
    ls__signal_one(&s->arrived);
    while (!s->open && s->tickets == 0)
        ls__signal_wait(&s->changed, &s->lock);
    s->tickets -= !s->open;
    s->woken++;
    ls__signal_one(&s->arrived);
    ls__lock_give(&s->lock);
}

static void one_or_all_are_woken(void **state)
{
    (void)state;
    shared s;
    ls__thread *threads[THREADS];
    set_up(&s);
    start_all(&s, wait_for_ticket, threads);
    ls__lock_take(&s.lock);
    while (s.waiting < THREADS)
        ls__signal_wait(&s.arrived, &s.lock);
    assert_int_equal(s.woken, 0);
    s.tickets = 1;
    ls__signal_one(&s.changed);
    while (s.woken < 1)
        ls__signal_wait(&s.arrived, &s.lock);
    assert_int_equal(s.woken, 1);
    s.open = true;
    ls__signal_all(&s.changed);
    ls__lock_give(&s.lock);
    join_all(threads);
    assert_int_equal(s.woken, THREADS);
    tear_down(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(one_at_a_time),
                                        cmocka_unit_test(one_or_all_are_woken) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
