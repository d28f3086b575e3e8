/*
 * Locks keep threads apart; signals wake one, or all, of those that wait; so do places.
 */
#include "os/lock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "os/event.h"
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

/* ---- places ---------------------------------------------------------------------------------- */

enum { ROUNDS = 500 };

typedef struct game {
    ls__lock lock;
    ls__place even, odd;
    int spin, ball;
} game;

/* Waits for its turn, and hands the ball back. */
static void play_odd(void *user)
{
    game *g = user;
    ls__lock_take(&g->lock);
    for (int i = 0; i < ROUNDS; i++) {
        while (g->ball % 2 == 0)
            ls__place_wait(&g->odd, &g->lock, g->spin);
        g->ball++;
        ls__place_tell(&g->even);
    }
    ls__lock_give(&g->lock);
}

/* However long they look before they sleep, nobody who was told sleeps on. */
static void no_word_is_lost_at_places(void **state)
{
    (void)state;
    const int spins[] = { LS__SPIN_NEVER, 1, 250, LS__SPIN_SHORT };
    for (size_t k = 0; k < sizeof spins / sizeof spins[0]; k++) {
        game g = { .spin = spins[k] };
        ls__thread *other;
        ls__lock_init(&g.lock);
        ls__place_init(&g.even);
        ls__place_init(&g.odd);
        assert_int_equal(ls__thread_start("place-test", -1, play_odd, &g, &other), LS_OK);
        ls__lock_take(&g.lock);
        for (int i = 0; i < ROUNDS; i++) {
            while (g.ball % 2 == 1)
                ls__place_wait(&g.even, &g.lock, g.spin);
            g.ball++;
            ls__place_tell(&g.odd);
        }
        ls__lock_give(&g.lock);
        ls__thread_join(other);
        assert_int_equal(g.ball, 2 * ROUNDS);
        ls__place_end(&g.odd);
        ls__place_end(&g.even);
        ls__lock_end(&g.lock);
    }
}

typedef struct crowd {
    ls__lock lock;
    ls__place gate, arrived;
    int waiting, spin;
    bool open;
} crowd;

static void wait_at_gate(void *user)
{
    crowd *c = user;
    ls__lock_take(&c->lock);
    c->waiting++;
    ls__place_tell(&c->arrived);
    while (!c->open)
        ls__place_wait(&c->gate, &c->lock, c->spin);
    ls__lock_give(&c->lock);
}

static void all_at_a_place_are_told(void **state)
{
    (void)state;
    for (int spin = 0; spin < 500; spin += 100) {
        crowd c = { .spin = spin };
        ls__thread *threads[THREADS];
        ls__lock_init(&c.lock);
        ls__place_init(&c.gate);
        ls__place_init(&c.arrived);
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(ls__thread_start("place-test", -1, wait_at_gate, &c, &threads[i]),
                             LS_OK);
        ls__lock_take(&c.lock);
        while (c.waiting < THREADS)
            ls__place_wait(&c.arrived, &c.lock, spin);
        c.open = true;
        ls__place_tell_all(&c.gate);
        ls__lock_give(&c.lock);
        join_all(threads);
        assert_int_equal(c.gate.looking + c.gate.asleep, 0);
        ls__place_end(&c.arrived);
        ls__place_end(&c.gate);
        ls__lock_end(&c.lock);
    }
}

/* Who was woken, and has not come yet, is none who can be told of another thing. */
static void who_was_told_is_told(void **state)
{
    (void)state;
    crowd c = { .spin = LS__SPIN_NEVER };
    ls__thread *threads[2];
    ls__lock_init(&c.lock);
    ls__place_init(&c.gate);
    ls__place_init(&c.arrived);
    for (int i = 0; i < 2; i++)
        assert_int_equal(ls__thread_start("place-test", -1, wait_at_gate, &c, &threads[i]), LS_OK);
    ls__lock_take(&c.lock);
    while (c.gate.asleep < 2) {
        ls__lock_give(&c.lock);
        ls__back_off(LS__SPIN_SHORT);
        ls__lock_take(&c.lock);
    }
    for (int i = 0; i < 2; i++) {
        assert_true(ls__place_is_manned(&c.gate));
        ls__place_tell(&c.gate);
    }
    assert_false(ls__place_is_manned(&c.gate));
    c.open = true;
    ls__place_tell_all(&c.gate);
    ls__lock_give(&c.lock);
    for (int i = 0; i < 2; i++)
        ls__thread_join(threads[i]);
    assert_int_equal(c.gate.told, 0);
    ls__place_end(&c.arrived);
    ls__place_end(&c.gate);
    ls__lock_end(&c.lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(one_at_a_time),
                                        cmocka_unit_test(one_or_all_are_woken),
                                        cmocka_unit_test(no_word_is_lost_at_places),
                                        cmocka_unit_test(all_at_a_place_are_told),
                                        cmocka_unit_test(who_was_told_is_told) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
