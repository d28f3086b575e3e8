/*
 * Prefetch gives what its input gives, in order, failures and the end included; positions do not know
 * of it; it ends at any moment; it does not run ahead further than it may.
 */
#include "data/prefetch.h"
#include "data/test_chain.h"

#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

static const int64_t depths[] = { 0, 1, 2, 3, 7, 1000 };
enum { DEPTHS = sizeof depths / sizeof *depths };

/* ---- order ---------------------------------------------------------------------------------- */

static void gives_what_its_input_gives(void **state)
{
    (void)state;
    int64_t want[100];
    for (int i = 0; i < 100; i++)
        want[i] = i;
    for (int i = 0; i < DEPTHS; i++)
        for (int n = 0; n <= 100; n += n < 5 ? 1 : 19)
            LS_FRAME {
                gives(ls_prefetch(watched_range(n), depths[i]), n, want);
                gives(ls_prefetch(ls_prefetch(watched_range(n), depths[i]), 2), n, want);
            }
    assert_int_equal(violations, 0);
}

static void is_known_before(void **state)
{
    (void)state;
    LS_FRAME {
        ls_dataset *d = ls_prefetch(ls_batch(ls_range(0, 10, 1), 4), 3);
        assert_int_equal(ls_cardinality(d), 3);
        assert_string_equal(ls_dataset_text(d), "i64[?]");
    }
}

static void end_comes_again_and_again(void **state)
{
    (void)state;
    LS_FRAME {
        ls_iterator *it = ls_iterate(ls_prefetch(ls_range(0, 4, 1), 2));
        int64_t x[MOST_ELEMENTS];
        assert_int_equal(rest_of(it, x), 4);
        for (int i = 0; i < 5; i++)
            assert_false(next_number(it, x));
        assert_int_equal(ls_error_pending(), LS_OK);
        assert_int_equal(ls_rewind(it), LS_OK);
        assert_int_equal(rest_of(it, x), 4);
        ls_iterator_free(it);
    }
}

/* What goes through is batches, strings and lists, too. */
static void elements_of_any_kind(void **state)
{
    (void)state;
    const char *words[] = { "one", "", "three" };
    LS_FRAME {
        ls_tensor *strings = ls_from_strings(LS_DIMS(3), (const void *const *)words, NULL);
        ls_tensor *numbers = ls_from(LS_F32, LS_DIMS(3, 2), (float[]){ 1, 2, 3, 4, 5, 6 });
        ls_dataset *d =
            ls_prefetch(ls_slices(ls_tensors(2, (ls_tensor *[]){ strings, numbers })), 2);
        int n = 0;
        LS_FOR_EACH (v, d) {
            const void *text;
            size_t length;
            assert_int_equal(ls_string_at(ls_item(v, 0), 0, &text, &length), LS_OK);
            assert_int_equal(length, strlen(words[n]));
            assert_memory_equal(text, words[n], length);
            assert_true(((const float *)ls_data(ls_item(v, 1)))[1] == 2.0F * (float)n + 2.0F);
            n++;
        }
        assert_int_equal(n, 3);
        assert_int_equal(ls_error(), LS_OK);
    }
}

/* ---- failures --------------------------------------------------------------------------------- */

static void failures_come_when_they_are_due(void **state)
{
    (void)state;
    enum { N = 20 };
    for (int i = 0; i < DEPTHS; i++)
        for (int bad = 0; bad < N; bad++)
            LS_FRAME {
                ls_dataset *d = watched((watched_options){ .count = N, .fails = bad });
                ls_iterator *it = ls_iterate(ls_prefetch(d, depths[i]));
                for (int k = 0; k < N; k++) {
                    ls_value *v = NULL;
                    ls_status st = ls_next(it, &v);
                    assert_int_equal(st, k == bad ? LS_CORRUPT : LS_OK);
                    if (st) {
                        assert_non_null(strstr(ls_error_text(), "is damaged"));
                        failed(LS_CORRUPT);
                    } else {
                        assert_int_equal(digest(v), k);
                    }
                }
                int64_t x;
                assert_false(next_number(it, &x));
                ls_iterator_free(it);
            }
    assert_int_equal(violations, 0);
}

/* Numbers, all at once; of number 5 there is too much to be copied. */
static ls_status one_too_large(ls__it *it, int most, ls__chunk *out)
{
    static const int64_t numbers[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 };
    int64_t *at = it->state;
    if (*at == 10)
        return LS_END;
    assert_int_equal(ls__chunk_room(out, most, 1, 1), LS_OK);
    out->structure = ls__type_structure(it->dataset->type);
    for (; out->n < most && *at < 10; out->n++) {
        *ls__chunk_datum(out, out->n, 0) =
            (ls__datum){ .spec = { .dtype = LS_I64 },
                         .data = &numbers[*at],
                         .bytes = *at == 5 ? SIZE_MAX / 4 : sizeof *numbers };
        *ls__chunk_after(out, out->n) = ++*at;
    }
    return LS_OK;
}

static ls_status open_large(ls__it *it)
{
    it->words = 1;
    it->light = true;
    return LS_OK;
}

static void close_large(ls__it *it)
{
    (void)it;
}

static void large_words(ls__it *it, int64_t *words)
{
    words[0] = *(int64_t *)it->state;
}

static ls_status go_large(ls__it *it, const int64_t *words)
{
    *(int64_t *)it->state = words[0];
    return LS_OK;
}

static const ls__stage large_stage = { .name = "large",
                                       .state_bytes = sizeof(int64_t),
                                       .open = open_large,
                                       .close = close_large,
                                       .pull = one_too_large,
                                       .words_now = large_words,
                                       .go = go_large };

/* Who has no memory for one element has the others all the same, and goes on behind it. */
static void one_that_has_no_room_fails_alone(void **state)
{
    (void)state;
    for (int i = 1; i < DEPTHS; i++)
        for (int again = 0; again < 10; again++)
            LS_FRAME {
                ls__dataset_draft draft = { .stage = &large_stage, .cardinality = 10 };
                assert_int_equal(ls__type_parse("large", "i64[]", &draft.type), LS_OK);
                ls_dataset *d = ls_prefetch(ls__dataset_new(&draft, "large"), depths[i]);
                ls_iterator *it = ls_iterate(d);
                for (int k = 0; k < 10; k++) {
                    ls_value *v = NULL;
                    assert_int_equal(ls_next(it, &v), k == 5 ? LS_NO_MEMORY : LS_OK);
                    if (k == 5)
                        failed(LS_NO_MEMORY);
                    else
                        assert_int_equal(digest(v), k);
                    if (k == again && k != 5)
                        assert_int_equal(ls_seek(it, ls_position(it)), LS_OK);
                }
                int64_t x;
                assert_false(next_number(it, &x));
                ls_iterator_free(it);
            }
}

static void bad_arguments(void **state)
{
    (void)state;
    LS_FRAME {
        assert_null(ls_prefetch(ls_range(0, 3, 1), -1));
        assert_non_null(strstr(ls_error_text(), "n is -1, wants 0 or more"));
        failed(LS_INVALID);
        assert_null(ls_prefetch(NULL, 2));
        failed(LS_INVALID);
    }
}

/* ---- positions -------------------------------------------------------------------------------- */

static void resumes(void **state)
{
    (void)state;
    for (int i = 0; i < DEPTHS; i++)
        LS_FRAME {
            resumes_everywhere(ls_prefetch(watched_range(20), depths[i]), NULL);
            resumes_everywhere(
                ls_prefetch(watched((watched_options){ .count = 20, .fails = -1, .light = true }),
                            depths[i]),
                NULL);
            resumes_everywhere(
                ls_prefetch(ls_batch(ls_take(ls_prefetch(watched_range(40), 3), 33), 4), depths[i]),
                NULL);
            resumes_everywhere(ls__prefetch_patiently(watched_range(20), depths[i], 8), NULL);
        }
    assert_int_equal(violations, 0);
}

/* A position taken with one depth is one with any other. */
static void positions_do_not_know_the_depth(void **state)
{
    (void)state;
    LS_FRAME {
        ls_iterator *a = ls_iterate(ls_prefetch(watched_range(50), 0));
        ls_iterator *b = ls_iterate(ls_prefetch(watched_range(50), 9));
        int64_t x, y;
        for (int i = 0; i < 20; i++) {
            assert_true(next_number(a, &x) && next_number(b, &y));
            same_position(b, ls_position(a));
        }
        ls_iterator *c = ls_iterate(ls_prefetch(watched_range(50), 4));
        assert_int_equal(ls_seek(c, ls_position(b)), LS_OK);
        assert_true(next_number(c, &x));
        assert_int_equal(x, 20);
        ls_iterator_free(a);
        ls_iterator_free(b);
        ls_iterator_free(c);
    }
    assert_int_equal(violations, 0);
}

/* Goes to any place, also while the thread runs; and who goes about for one element each time pulls
 * no more than that. */
static void goes_anywhere(void **state)
{
    (void)state;
    LS_FRAME {
        ls_dataset *d =
            ls_prefetch(watched((watched_options){ .count = 50, .fails = -1, .light = true }), 5);
        ls__going going = { .skipped = 0 };
        ls__it *it = NULL;
        ls__chunk chunk = { .n = 0 };
        int64_t words;
        assert_int_equal(ls__it_open(d, &(ls__opening){ .going = &going }, &it), LS_OK);
        for (int64_t to = 0; to < 50; to += 7)
            for (int more = 1; more < 5; more++) {
                assert_int_equal(ls__it_go(it, &to), LS_OK);
                for (int i = 0; i < more && to + i < 50; i++) {
                    ls__it_words(it, &words);
                    assert_int_equal(words, to + i);
                    ls__chunk_clear(&chunk);
                    assert_int_equal(ls__it_pull(it, 1, &chunk), LS_OK);
                    assert_int_equal(*(const int64_t *)ls__chunk_datum(&chunk, 0, 0)->data, to + i);
                }
            }
        assert_int_equal(ls__it_go(it, &(int64_t){ 3 }), LS_OK);
        watched_pulls = 0;
        for (int64_t to = 0; to < 50; to++) {
            assert_int_equal(ls__it_go(it, &to), LS_OK);
            ls__chunk_clear(&chunk);
            assert_int_equal(ls__it_pull(it, 1, &chunk), LS_OK);
        }
        assert_int_equal(watched_pulls, 50);
        ls__chunk_free(&chunk);
        ls__it_close(it);
        assert_int_equal(going.bytes, 0);
    }
    assert_int_equal(violations, 0);
}

/* ---- how far, and when it ends ------------------------------------------------------------------ */

static _Atomic int64_t calls;

static ls_value *count_call(ls_value *v, void *user)
{
    (void)user;
    calls++;
    return v;
}

static void wait_for_calls(int64_t n)
{
    while (calls < n)
        sched_yield();
}

static void runs_ahead_so_far(void **state)
{
    (void)state;
    for (int i = 0; i < DEPTHS; i++)
        LS_FRAME {
            calls = 0;
            ls_dataset *d = ls_map(ls_batch(ls_range(0, 1000, 1), 10), LS_MAP(.fn = count_call));
            ls_iterator *it = ls_iterate(ls_prefetch(d, depths[i]));
            int64_t x;
            for (int k = 1; k <= 10; k++) {
                assert_true(next_number(it, &x));
                assert_true(calls <= k + depths[i]);
                if (k == 1)
                    assert_int_equal(calls, 1); /* the thread begins with the second */
                else
                    wait_for_calls(depths[i] < 100 ? k + depths[i] / 2 : 100);
            }
            ls_iterator_free(it);
        }
}

/* With patience, nothing is made ahead while pulls are short; and all is, when they were long: of pulls that take
 * more than eight nanoseconds each, with the fourth. */
static void runs_ahead_of_long_pulls_only(void **state)
{
    (void)state;
    for (int patient = 0; patient < 2; patient++)
        LS_FRAME {
            calls = 0;
            ls_dataset *d = ls_map(ls_range(0, 1000, 1), LS_MAP(.fn = count_call));
            const int64_t hour = (int64_t)3600 * 1000000000;
            ls_iterator *it = ls_iterate(ls__prefetch_patiently(d, 8, patient ? hour : 8));
            for (int64_t k = 0; k < 10; k++) {
                int64_t x;
                assert_true(next_number(it, &x));
                assert_int_equal(x, k);
                if (patient)
                    assert_int_equal(calls, k + 1);
                else if (k >= 4)
                    wait_for_calls(k + 1 + 8 / 2);
            }
            ls_iterator_free(it);
        }
}

/* Bytes of what is waiting: in the end, none. */
static void bytes_are_counted(void **state)
{
    (void)state;
    LS_FRAME {
        enum { BATCH = 100 * 8 };
        calls = 0;
        ls_dataset *d = ls_map(ls_batch(ls_range(0, 2000, 1), 100), LS_MAP(.fn = count_call));
        ls_iterator *it = ls_iterate(ls_prefetch(d, 4));
        int64_t x;
        assert_int_equal(ls_iterator_bytes(it), 0);
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

static void ends_at_any_moment(void **state)
{
    (void)state;
    for (int i = 0; i < DEPTHS; i++)
        LS_FRAME {
            frees_everywhere(ls_prefetch(ls_batch(watched_range(40), 2), depths[i]));
            frees_everywhere(ls_prefetch(ls_prefetch(watched_range(20), 2), depths[i]));
        }
    assert_int_equal(violations, 0);
}

/* Freed with the queue full, and with the thread in the middle of a call, which is waited for. */
static _Atomic bool entered, left;

static ls_value *slow_third(ls_value *v, void *user)
{
    (void)user;
    if (ls_to_int(ls_leaf_tensor(v)) == 3) {
        entered = true;
        for (int i = 0; i < 2000; i++)
            sched_yield();
        left = true;
    }
    return v;
}

static void waits_for_what_runs(void **state)
{
    (void)state;
    LS_FRAME {
        int64_t x;
        ls_dataset *d = ls_map(ls_range(0, 10, 1), LS_MAP(.fn = slow_third));
        ls_iterator *it = ls_iterate(ls_prefetch(d, 2));
        assert_true(next_number(it, &x) && next_number(it, &x));
        while (!entered)
            sched_yield();
        ls_iterator_free(it);
        assert_true(left);
        calls = 0;
        d = ls_map(ls_range(0, 10, 1), LS_MAP(.fn = count_call));
        it = ls_iterate(ls_prefetch(d, 2));
        assert_true(next_number(it, &x) && next_number(it, &x));
        wait_for_calls(4);
        ls_iterator_free(it);
        assert_int_equal(calls, 4);
    }
}

static void releases_are_passed_on(void **state)
{
    (void)state;
    LS_FRAME {
        ls_iterator *it = ls_iterate(ls_prefetch(watched_range(100), 2));
        int64_t x;
        for (int i = 0; i < 50; i++)
            assert_true(next_number(it, &x));
        ls_iterator_free(it);
        assert_true(watched_releases > 10);
        assert_true(watched_released > 40 && watched_released <= 50);
    }
    assert_int_equal(violations, 0);
}

/* ---- processes ------------------------------------------------------------------------------------- */

static _Atomic bool in_next, goes_on;
static int closed;

static ls_status stop_half_way(void *state, ls_value **out)
{
    int64_t *next = state;
    in_next = *next == 2; /* the third is made ahead */
    while (in_next && !goes_on)
        sched_yield();
    *out = ls_leaf(ls_scalar_int(LS_I64, (*next)++));
    return *next < 4 ? LS_OK : LS_END;
}

static void count_close(void *state)
{
    (void)state;
    closed++;
}

static ls_value *same(ls_value *v, void *user)
{
    (void)user;
    return v;
}

/* In a child there is no thread that would end what it was at: what it was at is left alone. */
static void forked_children_close_nothing_half_way(void **state)
{
    (void)state;
    for (int map = 0; map < 2; map++)
        LS_FRAME {
            int64_t next = 0, x;
            in_next = goes_on = false;
            closed = 0;
            ls_dataset *d = ls_generate(
                LS_GENERATOR(.next = stop_half_way, .close = count_close, .user = &next));
            d = map ? ls_map(d, LS_MAP(.fn = same, .parallel = 2)) : ls_prefetch(d, 2);
            ls_iterator *it = ls_iterate(d);
            assert_true(next_number(it, &x) && next_number(it, &x));
            while (!in_next)
                sched_yield();
            pid_t child = fork();
            assert_true(child >= 0);
            if (child == 0) {
                ls_iterator_free(it);
                _exit(closed);
            }
            int status = -1;
            assert_int_equal(waitpid(child, &status, 0), child);
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
            goes_on = true;
            ls_iterator_free(it);
            assert_int_equal(closed, 1);
        }
}

static void forked_children_are_told(void **state)
{
    (void)state;
    LS_FRAME {
        ls_iterator *it = ls_iterate(ls_prefetch(ls_range(0, 100, 1), 4));
        int64_t x;
        assert_true(next_number(it, &x) && next_number(it, &x));
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            ls_value *v = NULL;
            bool told = ls_next(it, &v) == LS_STATE && ls_error() == LS_STATE;
            ls_iterator_free(it);
            _exit(told ? 0 : 1);
        }
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        assert_true(next_number(it, &x));
        assert_int_equal(x, 2);
        ls_iterator_free(it);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(gives_what_its_input_gives, clean_chain),
        cmocka_unit_test_setup(is_known_before, clean_chain),
        cmocka_unit_test_setup(end_comes_again_and_again, clean_chain),
        cmocka_unit_test_setup(elements_of_any_kind, clean_chain),
        cmocka_unit_test_setup(failures_come_when_they_are_due, clean_chain),
        cmocka_unit_test_setup(one_that_has_no_room_fails_alone, clean_chain),
        cmocka_unit_test_setup(bad_arguments, clean_chain),
        cmocka_unit_test_setup(resumes, clean_chain),
        cmocka_unit_test_setup(positions_do_not_know_the_depth, clean_chain),
        cmocka_unit_test_setup(goes_anywhere, clean_chain),
        cmocka_unit_test_setup(runs_ahead_so_far, clean_chain),
        cmocka_unit_test_setup(runs_ahead_of_long_pulls_only, clean_chain),
        cmocka_unit_test_setup(bytes_are_counted, clean_chain),
        cmocka_unit_test_setup(ends_at_any_moment, clean_chain),
        cmocka_unit_test_setup(waits_for_what_runs, clean_chain),
        cmocka_unit_test_setup(releases_are_passed_on, clean_chain),
        cmocka_unit_test_setup(forked_children_are_told, clean_chain),
        cmocka_unit_test_setup(forked_children_close_nothing_half_way, clean_chain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
