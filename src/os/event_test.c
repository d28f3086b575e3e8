/*
 * Events: threads that wait for each other many thousand times, spinning and asleep, over the wrap
 * of the count. A wake-up that is lost hangs the test.
 */
#include "os/event.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { BEFORE_WRAP = 1000 };

/* Not atomic: the events alone keep its two users apart. */
typedef struct game {
    ls__event there, back;
    uint32_t start;
    uint32_t turns;
    int spin;
    long ball;
} game;

static void *other_side(void *user)
{
    game *g = user;
    for (uint32_t i = 1; i <= g->turns; i++) {
        ls__event_wait(&g->there, g->start + i, g->spin);
        g->ball++;
        ls__event_post(&g->back);
    }
    return NULL;
}

static void play(uint32_t turns, int spin)
{
    game g = { .start = (uint32_t)-BEFORE_WRAP, .turns = turns, .spin = spin };
    atomic_init(&g.there.count, g.start);
    atomic_init(&g.back.count, g.start);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, other_side, &g), 0);
    long wrong = 0;
    for (uint32_t i = 1; i <= turns; i++) {
        ls__event_post(&g.there);
        ls__event_wait(&g.back, g.start + i, g.spin);
        wrong += g.ball != (long)i;
    }
    pthread_join(thread, NULL);
    assert_int_equal(wrong, 0);
    assert_int_equal(g.there.sleepers, 0);
    assert_int_equal(g.back.sleepers, 0);
    assert_true(g.there.count == g.start + turns);
}

static void to_and_fro_asleep(void **state)
{
    (void)state;
    play(5000, LS__SPIN_NEVER); /* each turn puts both to sleep */
}

static void to_and_fro_spinning(void **state)
{
    (void)state;
    play(20000, LS__SPIN_SHORT);
    play(20000, LS__SPIN_LONG);
}

/* Few turns, so that the other side comes while one is falling asleep. */
static void to_and_fro_between_the_two(void **state)
{
    (void)state;
    play(5000, 20);
}

static void what_has_happened_is_not_waited_for(void **state)
{
    (void)state;
    ls__event e = { 0 };
    ls__event_wait(&e, 0, LS__SPIN_NEVER);
    for (int i = 0; i < 3; i++)
        ls__event_post(&e);
    for (uint32_t i = 0; i <= 3; i++)
        ls__event_wait(&e, i, LS__SPIN_NEVER);
    assert_int_equal(e.count, 3);
    ls__event_wait(&e, (uint32_t)-5, LS__SPIN_NEVER); /* long ago, before the wrap */
}

/* ---- several that wait for one ------------------------------------------------------- */

enum { WAITERS = 5 };

typedef struct waiter {
    pthread_t thread;
    ls__event *event;
    uint32_t want;
    bool early;
} waiter;

static void *wait_for_it(void *user)
{
    waiter *w = user;
    ls__event_wait(w->event, w->want, LS__SPIN_NEVER);
    w->early = (int32_t)(atomic_load(&w->event->count) - w->want) < 0;
    return NULL;
}

/* Half of them want the second post: the first wakes them for nothing. */
static void all_who_sleep_are_woken(void **state)
{
    (void)state;
    for (int round = 0; round < 50; round++) {
        ls__event e = { 0 };
        waiter w[WAITERS];
        for (int i = 0; i < WAITERS; i++) {
            w[i] = (waiter){ .event = &e, .want = 1 + (uint32_t)i % 2 };
            assert_int_equal(pthread_create(&w[i].thread, NULL, wait_for_it, &w[i]), 0);
        }
        while (atomic_load(&e.sleepers) < WAITERS)
            sched_yield();
        ls__event_post(&e);
        while (atomic_load(&e.sleepers) > WAITERS / 2)
            sched_yield();
        ls__event_post(&e);
        for (int i = 0; i < WAITERS; i++) {
            pthread_join(w[i].thread, NULL);
            assert_false(w[i].early);
        }
        assert_int_equal(e.sleepers, 0);
    }
}

/* ---- deadlines, and an end of all waits -------------------------------------------------- */

static void a_deadline_ends_a_wait(void **state)
{
    (void)state;
    ls__event e = { 0 };
    const int spins[] = { LS__SPIN_NEVER, LS__SPIN_SHORT, LS__SPIN_LONG };
    for (size_t k = 0; k < sizeof spins / sizeof spins[0]; k++) {
        const int spin = spins[k];
        ls__deadline d = { .limit = 1000000 };
        assert_false(ls__event_wait_until(&e, 1, spin, &d));
        assert_true(d.at > 0);
        assert_false(ls__event_wait_until(&e, 1, spin, &d)); /* it has passed */
        assert_int_equal(e.sleepers, 0);
    }
    ls__event_post(&e);
    ls__deadline d = { .limit = 1 };
    assert_true(ls__event_wait_until(&e, 1, LS__SPIN_NEVER, &d));
    assert_true(ls__event_reached(&e, 1));
    assert_false(ls__event_reached(&e, 2));
    d = (ls__deadline){ .limit = INT64_MAX }; /* beyond the end of time */
    ls__event_post(&e);
    assert_true(ls__event_wait_until(&e, 2, LS__SPIN_NEVER, &d));
}

static void many_posts_end_all_waits(void **state)
{
    (void)state;
    ls__event e = { 0 };
    waiter w[WAITERS];
    for (int i = 0; i < WAITERS; i++) {
        w[i] = (waiter){ .event = &e, .want = 1000000u * ((uint32_t)i + 1) };
        assert_int_equal(pthread_create(&w[i].thread, NULL, wait_for_it, &w[i]), 0);
    }
    while (atomic_load(&e.sleepers) < WAITERS)
        sched_yield();
    ls__event_post_many(&e, 1u << 30);
    for (int i = 0; i < WAITERS; i++) {
        pthread_join(w[i].thread, NULL);
        assert_false(w[i].early);
    }
    assert_int_equal(e.sleepers, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_has_happened_is_not_waited_for),
        cmocka_unit_test(to_and_fro_asleep),
        cmocka_unit_test(to_and_fro_spinning),
        cmocka_unit_test(to_and_fro_between_the_two),
        cmocka_unit_test(all_who_sleep_are_woken),
        cmocka_unit_test(a_deadline_ends_a_wait),
        cmocka_unit_test(many_posts_end_all_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
