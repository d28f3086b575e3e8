/*
 * Help: every part is done once, by its owner or by one helper at a time; owners wait for parts
 * that others took; jobs follow each other by the thousand. A part that is lost hangs the test.
 */
#include "os/help.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fpu.h"
#include "os/help_test_support.h"

enum { PARTS = 8, MOST_PARTS = 64 };

/* ---- alone -------------------------------------------------------------------------------- */

typedef struct list {
    int count;
    int64_t parts[MOST_PARTS];
    int workers;
} list;

static void note(void *arg, int64_t part, int worker)
{
    list *l = arg;
    l->parts[l->count++] = part;
    l->workers |= worker;
}

static void check_list(const list *l, int64_t parts)
{
    assert_int_equal(l->count, parts);
    assert_int_equal(l->workers, 0);
    for (int64_t i = 0; i < parts; i++)
        assert_int_equal(l->parts[i], i);
}

static void alone_all_parts_in_order(void **state)
{
    (void)state;
    ls__help help, none = { .count = 0 };
    assert_true(ls__help_open(&help, 3));
    for (int way = 0; way < 3; way++) { /* in no help, in an empty one, in one where nobody waits */
        ls__help_member *before = way == 0 ? NULL : ls__help_join(way == 1 ? &none : &help, 1);
        for (int64_t parts = 0; parts <= PARTS; parts++) {
            list l = { 0 };
            ls__help_run(parts, note, &l);
            check_list(&l, parts);
        }
        if (way > 0)
            ls__help_leave(before);
    }
    assert_null(ls__help_join(&help, 0)); /* all had left */
    ls__help_leave(NULL);
    ls__help_close(&help);
    assert_int_equal(help.count, 0);
}

/* ---- helped --------------------------------------------------------------------------------- */

/* The owner does the first part, helpers all others: they wait in theirs until he has got it. */
typedef struct left {
    _Atomic bool owner_begun;
    int n_helped;
    _Atomic int at_once;
    bool together;        /* two were worker 1 at once */
    bool wrong_state;     /* a helper's floating point */
    int64_t order[PARTS]; /* of helpers' parts */
    int times[PARTS];
} left;

static void see(void *arg, int64_t part, int worker)
{
    left *l = arg;
    l->times[part]++;
    if (worker == 0) {
        l->owner_begun = true;
        return;
    }
    l->together |= ++l->at_once > 1;
    while (!l->owner_begun)
        ls__back_off(LS__SPIN_SHORT);
    nanosleep(&(struct timespec){ .tv_nsec = 300000 }, NULL); /* room for another to come */
    l->order[l->n_helped++] = part;
#if defined(__x86_64__)
    l->wrong_state |= (_mm_getcsr() & ~0x3Fu) != LS__FPU_STATE;
#endif
    l->at_once--;
}

static void helpers_take_the_last(void **state)
{
    (void)state;
    ls__help help;
    crew c;
    assert_true(ls__help_open(&help, 3));
    crew_begin(&c, &help, 2);
    ls__help_member *before = ls__help_join(&help, 2);
    help.members[2].leaves = PARTS - 1;
    for (int turn = 0; turn < 3; turn++) {
        left l = { 0 };
        ls__help_run(PARTS, see, &l);
        assert_int_equal(l.n_helped, PARTS - 1);
        assert_int_equal(help.members[2].given, (turn + 1) * (PARTS - 1));
        assert_false(l.together);
        assert_false(l.wrong_state);
        for (int i = 0; i < PARTS; i++)
            assert_int_equal(l.times[i], 1);
        for (int i = 0; i < PARTS - 1; i++)
            assert_int_equal(l.order[i], PARTS - 1 - i);
    }
    ls__help_leave(before);
    crew_end(&c);
    ls__help_close(&help);
}

/* The other way round: the helper is at a part when its owner has no more to do. */
typedef struct slow {
    _Atomic bool taken, owner_is_done;
    int done; /* by the helper: not atomic, the owner reads it when the job is over */
} slow;

static void dawdle(void *arg, int64_t part, int worker)
{
    slow *s = arg;
    if (worker == 1) {
        s->taken = true;
        while (!s->owner_is_done)
            ;
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 },
                  NULL); /* so that who does not wait is caught */
        s->done++;
        return;
    }
    while (!s->taken)
        ls__back_off(LS__SPIN_SHORT);
    s->owner_is_done = part == 6; /* 7 is the helper's */
}

static void owners_wait_for_what_was_taken(void **state)
{
    (void)state;
    ls__help help;
    crew c;
    assert_true(ls__help_open(&help, 2));
    crew_begin(&c, &help, 1);
    ls__help_member *before = ls__help_join(&help, 0);
    for (int turn = 0; turn < 10; turn++) {
        slow s = { 0 };
        ls__help_run(PARTS, dawdle, &s);
        assert_true(s.done >= 1);
    }
    ls__help_leave(before);
    crew_end(&c);
    ls__help_close(&help);
}

/* ---- many jobs ------------------------------------------------------------------------------ */

/* What helpers write is read by owners without further ado, and the other way round. */
typedef struct job {
    const int *x;
    int *y;
} job;

static void square(void *arg, int64_t part, int worker)
{
    (void)worker;
    const job *j = arg;
    j->y[part] = j->x[part] * j->x[part];
}

typedef struct owner {
    ls__help *help;
    int member;
    ls__event *end; /* for which all wait, helping those who are not there yet */
    uint32_t owners;
    int wrong;
    pthread_t thread;
} owner;

enum { OWNERS = 3, JOBS = 3000, MEET_EVERY = 100 };

static void *own_jobs(void *arg)
{
    owner *o = arg;
    ls__help_member *before = ls__help_join(o->help, o->member);
    for (int i = 0; i < JOBS; i++) {
        int x[MOST_PARTS], y[MOST_PARTS];
        const int parts = 1 + i % MOST_PARTS;
        for (int k = 0; k < parts; k++)
            x[k] = i + k;
        /* Jobs so short are helped with by luck, but for these. */
        o->help->members[o->member].leaves = i % MEET_EVERY == 0 ? parts / 2 : 0;
        ls__help_run(parts, square, &(job){ x, y });
        for (int k = 0; k < parts; k++)
            o->wrong += y[k] != x[k] * x[k];
        if ((i + 1) % MEET_EVERY == 0) {
            ls__event_post(o->end);
            ls__help_wait(o->help, o->end, o->owners * (uint32_t)((i + 1) / MEET_EVERY),
                          LS__SPIN_SHORT);
        }
    }
    ls__help_leave(before);
    return NULL;
}

static void many_jobs_of_many_owners(void **state)
{
    (void)state;
    ls__help help;
    crew c;
    ls__event end_of = { 0 };
    owner owners[OWNERS];
    assert_true(ls__help_open(&help, OWNERS));
    crew_begin(&c, &help, 1);
    for (int i = 0; i < OWNERS; i++) {
        owners[i] = (owner){ .help = &help, .member = i, .end = &end_of, .owners = OWNERS };
        assert_int_equal(pthread_create(&owners[i].thread, NULL, own_jobs, &owners[i]), 0);
    }
    for (int i = 0; i < OWNERS; i++) {
        pthread_join(owners[i].thread, NULL);
        assert_int_equal(owners[i].wrong, 0);
        assert_true(help.members[i].given >= JOBS / MEET_EVERY);
    }
    crew_end(&c);
    ls__help_close(&help);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone_all_parts_in_order),
        cmocka_unit_test(helpers_take_the_last),
        cmocka_unit_test(owners_wait_for_what_was_taken),
        cmocka_unit_test(many_jobs_of_many_owners),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
