/*
 * How far a map runs ahead, on which threads, what it holds meanwhile, and that it can be left at any
 * moment.
 */
#include "base/sanitized.h"
#include "data/test_chain.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

static const int crowds[] = { 0, 1, 2, 5 };
enum { CROWDS = sizeof crowds / sizeof *crowds };

static _Atomic int at_once;
static pthread_t puller;

/* Comes back when all have been called that can be at once. */
static ls_value *meet_all(ls_value *v, void *all)
{
    if (number_of(v) == 0)
        return v; /* the first goes alone */
    at_once++;
    while (at_once < *(const int *)all)
        sched_yield();
    return v;
}

/* Each of them, also who is asleep while others find something to do. */
static void calls_run_at_once(void **state)
{
    (void)state;
    for (int all = 2; all < 6; all++)
        for (int round = 0; round < (LS__SANITIZED ? 50 : all == 3 ? 3000 : 200); round++)
            LS_FRAME {
                int64_t x[MOST_ELEMENTS];
                at_once = 0;
                ls_map_options *o = LS_MAP(.fn = meet_all, .user = &all, .parallel = all);
                assert_int_equal(all_of(ls_map(ls_range(0, 10, 1), o), x), 10);
            }
}

static ls_value *same_thread(ls_value *v, void *user)
{
    (void)user;
    return pthread_equal(pthread_self(), puller) ? v : NULL;
}

static void one_at_a_time_needs_no_thread(void **state)
{
    (void)state;
    puller = pthread_self();
    LS_FRAME {
        int64_t x[MOST_ELEMENTS];
        assert_int_equal(all_of(ls_map(ls_range(0, 9, 1), LS_MAP(.fn = same_thread)), x), 9);
        assert_int_equal(
            all_of(ls_map(ls_range(0, 9, 1), LS_MAP(.fn = same_thread, .parallel = 1)), x), 9);
    }
}

static _Atomic int64_t given;

/* An input of which an element is there when the one before it was given, and not sooner. Who asks for one
 * and keeps another back meanwhile waits for himself. */
static ls_status behind_the_last(void *state, ls_value **out)
{
    int64_t *next = state;
    for (int i = 0; i < 5000 && *next > given; i++)
        usleep(1000);
    if (*next > given && *next < 20)
        return ls__fail(LS_STATE, "element %lld was never given", (long long)*next - 1);
    if (*next == 20)
        return LS_END;
    *out = ls_leaf(ls_scalar_int(LS_I64, (*next)++));
    return LS_OK;
}

static ls_value *square(ls_value *v, void *user)
{
    (void)user;
    return ls_leaf(ls_mul(ls_leaf_tensor(v), ls_leaf_tensor(v)));
}

static void nothing_waits_for_what_follows(void **state)
{
    (void)state;
    for (int c = 0; c < CROWDS; c++)
        LS_FRAME {
            int64_t next = 0;
            given = 0;
            ls_dataset *d = ls_generate(LS_GENERATOR(.next = behind_the_last, .user = &next));
            d = ls_map(ls_prefetch(d, 4), LS_MAP(.fn = square, .parallel = crowds[c]));
            ls_iterator *it = ls_iterate(ls_prefetch(d, 4));
            int64_t x;
            for (; given < 20; given++) {
                assert_true(next_number(it, &x));
                assert_int_equal(x, given * given);
            }
            assert_false(next_number(it, &x));
            ls_iterator_free(it);
        }
}

/* ---- how far, and when it ends ------------------------------------------------------------------ */

static _Atomic int64_t calls;

static ls_value *count_call(ls_value *v, void *user)
{
    (void)user;
    calls++;
    return v;
}

static void runs_ahead_so_far(void **state)
{
    (void)state;
    for (int parallel = 2; parallel < 5; parallel++)
        LS_FRAME {
            calls = 0;
            ls_dataset *d =
                ls_map(ls_range(0, 100, 1), LS_MAP(.fn = count_call, .parallel = parallel));
            ls_iterator *it = ls_iterate(d);
            int64_t x;
            for (int k = 1; k <= 20; k++) {
                assert_true(next_number(it, &x));
                assert_true(calls <= k + 2 * parallel);
                while (k > 1 && calls < k + parallel)
                    sched_yield();
            }
            ls_iterator_free(it);
        }
}

/* Costs as much as its number says: neighbours differ by far. */
static ls_value *uneven(ls_value *v, void *user)
{
    (void)user;
    for (volatile int64_t i = 0; i < number_of(v) * 7919 % 13 * 1000; i = i + 1)
        ;
    return v;
}

static _Atomic int inside;

static ls_value *slow(ls_value *v, void *user)
{
    (void)user;
    inside++;
    for (int i = 0; i < 200 && number_of(v) > 0; i++)
        sched_yield();
    inside--;
    return v;
}

static void ends_at_any_moment(void **state)
{
    (void)state;
    for (int c = 0; c < CROWDS; c++)
        LS_FRAME {
            ls_map_options *o = LS_MAP(.fn = uneven, .parallel = crowds[c]);
            frees_everywhere(ls_map(watched_range(30), o));
            frees_everywhere(ls_map(ls_prefetch(ls_map(watched_range(12), o), 2), o));
            frees_everywhere(ls_prefetch(ls_batch(ls_map(watched_range(30), o), 3), 2));
            for (int k = 0; k < 4; k++) {
                ls_iterator *it = ls_iterate(
                    ls_map(ls_range(0, 50, 1), LS_MAP(.fn = slow, .parallel = crowds[c])));
                int64_t x;
                for (int i = 0; i < k; i++)
                    assert_true(next_number(it, &x));
                ls_iterator_free(it);
                assert_int_equal(inside, 0); /* calls that had begun were waited for */
            }
        }
    assert_int_equal(violations, 0);
}

static void bytes_are_counted(void **state)
{
    (void)state;
    LS_FRAME {
        enum { BATCH = 100 * 8 };
        ls_dataset *d =
            ls_map(ls_batch(ls_range(0, 2000, 1), 100), LS_MAP(.fn = count_call, .parallel = 2));
        ls_iterator *it = ls_iterate(d);
        int64_t x;
        assert_true(next_number(it, &x) && next_number(it, &x));
        while (ls_iterator_bytes(it) < 2 * BATCH)
            sched_yield();
        for (int i = 2; i < 20; i++) {
            assert_true(ls_iterator_bytes(it) <= 4 * BATCH);
            assert_true(next_number(it, &x));
        }
        assert_false(next_number(it, &x));
        assert_int_equal(ls_iterator_bytes(it), 0);
        ls_iterator_free(it);
    }
}

static void releases_are_passed_on(void **state)
{
    (void)state;
    for (int c = 0; c < CROWDS; c++)
        LS_FRAME {
            watched_releases = watched_released = 0;
            ls_iterator *it =
                ls_iterate(ls_map(watched_range(100), LS_MAP(.fn = uneven, .parallel = crowds[c])));
            int64_t x;
            for (int i = 0; i < 50; i++)
                assert_true(next_number(it, &x));
            ls_iterator_free(it);
            assert_true(watched_releases > 0);
            assert_true(watched_released > 30 && watched_released <= 50);
        }
    assert_int_equal(violations, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(calls_run_at_once, clean_chain),
        cmocka_unit_test_setup(one_at_a_time_needs_no_thread, clean_chain),
        cmocka_unit_test_setup(nothing_waits_for_what_follows, clean_chain),
        cmocka_unit_test_setup(runs_ahead_so_far, clean_chain),
        cmocka_unit_test_setup(ends_at_any_moment, clean_chain),
        cmocka_unit_test_setup(bytes_are_counted, clean_chain),
        cmocka_unit_test_setup(releases_are_passed_on, clean_chain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
