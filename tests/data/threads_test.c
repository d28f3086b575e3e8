/*
 * One dataset, iterators of several threads at once, each its own: what a dataset has for all of them
 * (what a cache remembers, how many iterations were begun) bears it. And one iterator that goes from
 * thread to thread.
 */
#include "data/data_support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 3, ROUNDS = 3, NUMBERS = 40 };

static ls_value *twice(ls_value *element, void *user)
{
    (void)user;
    return ls_leaf(ls_add(ls_leaf_tensor(element), ls_leaf_tensor(element)));
}

static ls_dataset *spread(ls_value *element, void *user)
{
    (void)user;
    int64_t n = ls_to_int(ls_leaf_tensor(element));
    return ls_range(4 * n, 4 * n + 4, 1);
}

typedef struct job {
    ls_dataset *dataset; /* kept */
    ls_iterator *it;
    int64_t sum, count;
    ls_status status;
} job;

/* Cannot assert: notes what it saw. */
static void *go_through(void *user)
{
    job *j = user;
    for (int round = 0; round < ROUNDS && !j->status; round++) {
        ls_status st = LS_OK;
        while (!st)
            LS_FRAME {
                ls_value *v;
                st = ls_next(j->it, &v);
                if (!st) {
                    j->sum += ls_to_int(ls_leaf_tensor(v));
                    j->count++;
                }
            }
        j->status = st == LS_END ? ls_rewind(j->it) : st;
    }
    return NULL;
}

/* Every thread sees all elements, in every round. */
static void at_once(ls_dataset *d, int64_t factor)
{
    pthread_t threads[THREADS];
    job jobs[THREADS] = { 0 };
    ls_dataset *kept = ls_dataset_keep(d);
    assert_non_null(kept);
    for (int i = 0; i < THREADS; i++) {
        jobs[i].it = ls_iterate(kept);
        assert_non_null(jobs[i].it);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, go_through, &jobs[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(jobs[i].status, LS_OK);
        assert_int_equal(jobs[i].count, ROUNDS * NUMBERS);
        assert_int_equal(jobs[i].sum, factor * ROUNDS * NUMBERS * (NUMBERS - 1) / 2);
        ls_iterator_free(jobs[i].it);
    }
    ls_dataset_drop(kept);
}

static void iterators_at_once(void **state)
{
    (void)state;
    LS_FRAME {
        ls_dataset *d = ls_range(0, NUMBERS, 1);
        at_once(d, 1);
        at_once(ls_shuffle(d, 7, 1), 1);
        at_once(ls_prefetch(ls_map(d, LS_MAP(.fn = twice, .parallel = 2)), 2), 2);
        at_once(ls_interleave(ls_range(0, NUMBERS / 4, 1),
                              LS_INTERLEAVE(.fn = spread, .cycle = 3, .parallel = 2)),
                1);
        at_once(ls_cache(ls_map(d, LS_MAP(.fn = twice)), NULL), 2);
        at_once(ls_cache(ls_map(d, LS_MAP(.fn = twice, .parallel = 2)), in_directory("at_once")),
                2);
        at_once(ls_cache(ls_map(d, LS_MAP(.fn = twice)), in_directory("at_once")),
                2); /* it is there */
    }
    assert_int_equal(ls_error(), LS_OK);
}

static void *take_five(void *user)
{
    job *j = user;
    for (int i = 0; i < 5 && !j->status; i++)
        LS_FRAME {
            ls_value *v;
            j->status = ls_next(j->it, &v);
            j->sum += j->status ? 0 : ls_to_int(ls_leaf_tensor(v));
        }
    return NULL;
}

static void *let_go(void *user)
{
    ls_iterator_free(((job *)user)->it);
    return NULL;
}

/* One thread at a time; freed by yet another. */
static void from_thread_to_thread(void **state)
{
    (void)state;
    job j = { 0 };
    LS_FRAME {
        ls_dataset *d = ls_map(ls_range(0, NUMBERS, 1), LS_MAP(.fn = twice, .parallel = 2));
        j.it = ls_iterate(ls_prefetch(d, 3));
    }
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, i < 3 ? take_five : let_go, &j), 0);
        pthread_join(thread, NULL);
    }
    assert_int_equal(j.status, LS_OK);
    assert_int_equal(j.sum, 2 * 15 * 14 / 2);
}

#define TEST(f) cmocka_unit_test_setup(f, clean)

int main(void)
{
    const struct CMUnitTest tests[] = { TEST(iterators_at_once), TEST(from_thread_to_thread) };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
