/*
 * Map: results in order whatever calls cost and however many there are at once; failures in their
 * place; results of one structure; draws by the element's number alone.
 */
#include "data/test_chain.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

static const int crowds[] = { 0, 1, 2, 5 };
enum { CROWDS = sizeof crowds / sizeof *crowds };

static int64_t number_of(const ls_value *v)
{
    return ls_to_int(ls_leaf_tensor(v));
}

static ls_value *number(int64_t x)
{
    return ls_leaf(ls_scalar_int(LS_I64, x));
}

/* ---- order ---------------------------------------------------------------------------------- */

/* Costs as much as its number says: neighbours differ by far. */
static ls_value *square(ls_value *v, void *user)
{
    (void)user;
    int64_t x = number_of(v);
    for (volatile int64_t i = 0; i < x * 7919 % 13 * 1000; i = i + 1)
        ;
    return number(x * x);
}

static void results_in_order(void **state)
{
    (void)state;
    int64_t want[60];
    for (int i = 0; i < 60; i++)
        want[i] = (int64_t)i * i;
    for (int i = 0; i < CROWDS; i++)
        for (int n = 0; n <= 60; n += n < 6 ? 1 : 18)
            LS_FRAME {
                ls_dataset *d =
                    ls_map(watched_range(n), LS_MAP(.fn = square, .parallel = crowds[i]));
                assert_int_equal(ls_cardinality(d), n);
                assert_string_equal(ls_dataset_text(d), "?");
                gives(d, n, want);
                gives(ls_prefetch(d, 3), n, want);
            }
    assert_int_equal(violations, 0);
}

static ls_value *to_floats(ls_value *v, void *user)
{
    (void)user;
    ls_tensor *x = ls_cast(ls_leaf_tensor(v), LS_F32);
    ls_value *items[] = { ls_leaf(ls_mul(x, x)), v };
    return ls_dict(2, (const char *[]){ "square", "id" }, items);
}

/* A batch mapped to a dict, its spec known before and checked. */
static void spec_is_known_before(void **state)
{
    (void)state;
    LS_FRAME {
        ls_dataset *d =
            ls_map(ls_batch(ls_range(0, 10, 1), 4),
                   LS_MAP(.fn = to_floats, .parallel = 2, .spec = "{id: i64[?], square: f32[?]}"));
        assert_string_equal(ls_dataset_text(d), "{id: i64[?], square: f32[?]}");
        int64_t at = 0;
        LS_FOR_EACH(v, d)
        {
            ls_tensor *x = ls_leaf_tensor(ls_get(v, "id"));
            ls_tensor *y = ls_leaf_tensor(ls_get(v, "square"));
            for (int64_t i = 0; i < ls_count(x); i++, at++) {
                assert_int_equal(((const int64_t *)ls_data(x))[i], at);
                assert_true(((const float *)ls_data(y))[i] == (float)(at * at));
            }
        }
        assert_int_equal(at, 10);
        assert_int_equal(ls_error(), LS_OK);
    }
}

static _Atomic int at_once;
static pthread_t puller;

/* Comes back when three of them have been called. */
static ls_value *meet_three(ls_value *v, void *user)
{
    (void)user;
    if (number_of(v) == 0)
        return v; /* the first goes alone */
    at_once++;
    while (at_once < 3)
        sched_yield();
    return v;
}

static void calls_run_at_once(void **state)
{
    (void)state;
    LS_FRAME {
        int64_t x[MOST_ELEMENTS];
        at_once = 0;
        ls_dataset *d = ls_map(ls_range(0, 10, 1), LS_MAP(.fn = meet_three, .parallel = 3));
        assert_int_equal(all_of(d, x), 10);
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

/* ---- failures --------------------------------------------------------------------------------- */

typedef struct failing {
    int64_t at;
    int how;
} failing;

static ls_value *fail_at(ls_value *v, void *user)
{
    const failing *f = user;
    int64_t x = number_of(v);
    for (volatile int64_t i = 0; i < x * 7919 % 13 * 200; i = i + 1)
        ;
    if (x != f->at)
        return v;
    if (f->how == 0) /* says why */
        return ls_leaf(ls_matmul(ls_leaf_tensor(v), ls_leaf_tensor(v)));
    if (f->how == 1) /* does not */
        return NULL;
    ls_matmul(ls_leaf_tensor(v), ls_leaf_tensor(v)); /* does not look */
    return v;
}

static void failures_come_in_their_place(void **state)
{
    (void)state;
    enum { N = 12 };
    for (int c = 0; c < CROWDS; c++)
        for (int at = 0; at < N; at++)
            LS_FRAME {
                failing f = { at, at % 3 };
                ls_iterator *it = ls_iterate(ls_map(
                    ls_range(0, N, 1), LS_MAP(.fn = fail_at, .user = &f, .parallel = crowds[c])));
                char place[32];
                snprintf(place, sizeof place, "ls_map: element %d: ", at);
                for (int k = 0; k < N; k++) {
                    ls_value *v = NULL;
                    ls_status st = ls_next(it, &v);
                    if (k == at) {
                        assert_true(st != LS_OK && st == ls_error_pending());
                        assert_memory_equal(ls_error_text(), place, strlen(place));
                        if (f.how == 1)
                            assert_non_null(strstr(ls_error_text(), "gave NULL and no error"));
                        else
                            assert_non_null(strstr(ls_error_text(), "matmul"));
                        ls_error();
                    } else {
                        assert_int_equal(st, LS_OK);
                        assert_int_equal(number_of(v), k);
                    }
                }
                int64_t x;
                assert_false(next_number(it, &x));
                assert_int_equal(ls_error_pending(), LS_OK);
                ls_iterator_free(it);
            }
}

/* The input's failures, too; elements behind keep their numbers. */
static void failures_of_the_input(void **state)
{
    (void)state;
    enum { N = 10 };
    for (int c = 0; c < CROWDS; c++)
        for (int bad = 0; bad < N; bad++)
            LS_FRAME {
                ls_dataset *d = watched((watched_options){ .count = N, .fails = bad });
                ls_iterator *it =
                    ls_iterate(ls_map(d, LS_MAP(.fn = square, .parallel = crowds[c])));
                for (int k = 0; k < N; k++) {
                    ls_value *v = NULL;
                    assert_int_equal(ls_next(it, &v), k == bad ? LS_CORRUPT : LS_OK);
                    if (k == bad)
                        failed(LS_CORRUPT);
                    else
                        assert_int_equal(number_of(v), k * k);
                }
                ls_iterator_free(it);
            }
    assert_int_equal(violations, 0);
}

static void numbers_count_failures(void **state)
{
    (void)state;
    for (int c = 0; c < CROWDS; c++)
        LS_FRAME {
            failing f = { 5, 1 };
            ls_dataset *d = watched((watched_options){ .count = 7, .fails = 2 });
            ls_iterator *it =
                ls_iterate(ls_map(d, LS_MAP(.fn = fail_at, .user = &f, .parallel = crowds[c])));
            ls_value *v = NULL;
            for (int k = 0; k < 5; k++) {
                assert_int_equal(ls_next(it, &v), k == 2 ? LS_CORRUPT : LS_OK);
                ls_error();
            }
            assert_int_equal(ls_next(it, &v), LS_INVALID);
            assert_non_null(strstr(ls_error_text(), "ls_map: element 5: "));
            failed(LS_INVALID);
            ls_iterator_free(it);
        }
}

/* An error that was pending before a call stays the first, and does not fail the call. */
static void older_errors_stay(void **state)
{
    (void)state;
    for (int c = 0; c < CROWDS; c++)
        LS_FRAME {
            ls_iterator *it =
                ls_iterate(ls_map(ls_range(0, 5, 1), LS_MAP(.fn = square, .parallel = crowds[c])));
            ls_value *v = NULL;
            ls_dim(NULL, 0);
            assert_int_equal(ls_error_pending(), LS_INVALID);
            for (int k = 0; k < 5; k++) {
                assert_int_equal(ls_next(it, &v), LS_OK);
                assert_int_equal(number_of(v), k * k);
            }
            assert_int_equal(ls_error(), LS_INVALID);
            ls_iterator_free(it);
        }
}

/* ---- structure --------------------------------------------------------------------------------- */

static ls_value *odd_one(ls_value *v, void *user)
{
    const int how = *(const int *)user;
    if (number_of(v) != 6)
        return v;
    switch (how) {
    case 0: /* another nest */
        return ls_list(1, (ls_value *[]){ v });
    case 1: /* another dtype */
        return ls_leaf(ls_cast(ls_leaf_tensor(v), LS_F32));
    case 2: /* another shape: fine unless the spec says no */
        return ls_leaf(ls_reshape(ls_leaf_tensor(v), LS_DIMS(1, 1)));
    default: /* of a frame that has gone */
        break;
    }
    ls_value *gone = NULL;
    LS_FRAME {
        gone = number(1);
    }
    return gone;
}

static void check_odd(int how, const char *spec, int parallel, ls_status want, const char *text)
{
    LS_FRAME {
        ls_iterator *it =
            ls_iterate(ls_map(ls_range(0, 9, 1), LS_MAP(.fn = odd_one, .user = &how,
                                                        .parallel = parallel, .spec = spec)));
        for (int k = 0; k < 9; k++) {
            ls_value *v = NULL;
            ls_status st = ls_next(it, &v);
            assert_int_equal(st, k == 6 ? want : LS_OK);
            if (st) {
                if (!strstr(ls_error_text(), text))
                    fail_msg("\"%s\" is not in \"%s\"", text, ls_error_text());
                failed(want);
            }
        }
        ls_iterator_free(it);
    }
}

static void one_structure(void **state)
{
    (void)state;
    for (int c = 0; c < CROWDS; c++) {
        check_odd(0, NULL, crowds[c], LS_INVALID,
                  "ls_map: element 6: not like the first element: structures differ at 'value': a "
                  "leaf and a list");
        check_odd(1, NULL, crowds[c], LS_SHAPE,
                  "ls_map: element 6: not like the first element: leaf 0 is f32, was i64");
        check_odd(2, NULL, crowds[c], LS_OK, "");
        check_odd(3, NULL, crowds[c], LS_INVALID, "ls_map: element 6: ");
        check_odd(1, "i64[]", crowds[c], LS_SHAPE,
                  "ls_map: element 6: not as .spec says: leaf 0 of an element is f32[], of i64[]");
        check_odd(2, "i64[]", crowds[c], LS_SHAPE, "leaf 0 of an element is i64[1,1], of i64[]");
        check_odd(2, "i64", crowds[c], LS_OK, "");
        check_odd(0, "?", crowds[c], LS_INVALID, "not as .spec says: structures differ");
    }
}

/* The first that works is the first, however slow it is. */
static ls_value *slow_first(ls_value *v, void *user)
{
    (void)user;
    if (number_of(v) == 0)
        return NULL;
    if (number_of(v) > 1)
        return ls_leaf(ls_cast(ls_leaf_tensor(v), LS_F32));
    for (int i = 0; i < 100; i++)
        sched_yield();
    return v;
}

static void first_is_not_the_fastest(void **state)
{
    (void)state;
    for (int c = 0; c < CROWDS; c++)
        LS_FRAME {
            ls_iterator *it = ls_iterate(
                ls_map(ls_range(0, 5, 1), LS_MAP(.fn = slow_first, .parallel = crowds[c])));
            ls_value *v = NULL;
            assert_int_equal(ls_next(it, &v), LS_INVALID);
            failed(LS_INVALID);
            assert_int_equal(ls_next(it, &v), LS_OK);
            for (int k = 2; k < 5; k++) {
                assert_int_equal(ls_next(it, &v), LS_SHAPE);
                failed(LS_SHAPE);
            }
            ls_iterator_free(it);
        }
}

static ls_value *with_variable(ls_value *v, void *user)
{
    (void)v;
    return ls_variable_leaf(user);
}

static void results_are_plain(void **state)
{
    (void)state;
    LS_FRAME {
        ls_variable *x = ls_variable_new("x", ls_scalar(LS_F32, 1), false);
        ls_iterator *it =
            ls_iterate(ls_map(ls_range(0, 2, 1), LS_MAP(.fn = with_variable, .user = x)));
        ls_value *v = NULL;
        assert_int_equal(ls_next(it, &v), LS_SHAPE);
        assert_non_null(strstr(ls_error_text(), "ls_map: element 0: leaf 0"));
        failed(LS_SHAPE);
        ls_iterator_free(it);
        ls_variable_free(x);
    }
}

static void bad_arguments(void **state)
{
    (void)state;
    LS_FRAME {
        ls_dataset *d = ls_range(0, 3, 1);
        ls_map_options o;
        assert_null(ls_map(d, NULL));
        failed(LS_INVALID);
        assert_null(ls_map(d, LS_MAP(.fn = NULL)));
        failed(LS_INVALID);
        assert_null(ls_map(d, LS_MAP(.fn = square, .parallel = -2)));
        failed(LS_INVALID);
        assert_null(ls_map(d, LS_MAP(.fn = square, .parallel = 5000)));
        failed(LS_INVALID);
        assert_null(ls_map(d, LS_MAP(.fn = square, .spec = "i65[]")));
        failed(LS_INVALID);
        assert_null(ls_map(d, &(ls_map_options){ .size = 3, .fn = square }));
        failed(LS_INVALID);
        assert_null(ls_map(NULL, LS_MAP(.fn = square)));
        failed(LS_INVALID);
        ls_map_init(&o);
        o.fn = square;
        o.parallel = -1; /* one a core */
        gives(ls_map(d, &o), 3, (int64_t[]){ 0, 1, 4 });
    }
}

/* ---- draws ------------------------------------------------------------------------------------- */

static ls_value *draw(ls_value *v, void *user)
{
    (void)user;
    for (volatile int64_t i = 0; i < number_of(v) * 7919 % 13 * 200; i = i + 1)
        ;
    ls_tensor *a = ls_random_uniform(LS_F32, LS_DIMS(3), 0, 1);
    ls_tensor *b = ls_random_normal(LS_F32, LS_DIMS(2), 0, 1);
    return ls_tensors(3, (ls_tensor *[]){ a, b, ls_leaf_tensor(v) });
}

static void draws_depend_on_the_number(void **state)
{
    (void)state;
    enum { N = 25 };
    int64_t first[MOST_ELEMENTS], second[MOST_ELEMENTS], got[MOST_ELEMENTS];
    for (int c = 0; c < CROWDS; c++)
        LS_FRAME {
            ls_random_seed((uint64_t)c); /* the program's own draws have nothing to do with it */
            ls_dataset *d = ls_map(ls_range(0, N, 1), LS_MAP(.fn = draw, .parallel = crowds[c]));
            assert_int_equal(all_of(d, c == 0 ? first : got), N);
            if (c > 0)
                assert_memory_equal(first, got, N * sizeof *got);
            assert_int_equal(all_of(d, c == 0 ? second : got), N); /* another iteration */
            if (c > 0)
                assert_memory_equal(second, got, N * sizeof *got);
            for (int i = 0; i < N; i++)
                assert_true(first[i] != second[i]);
        }
}

/* ---- positions --------------------------------------------------------------------------------- */

static _Atomic int64_t calls;

static ls_value *draw_and_count(ls_value *v, void *user)
{
    calls++;
    return draw(v, user);
}

static int ahead;

/* Until the threads have run ahead. */
static void wait_for_threads(int64_t taken)
{
    const int64_t want = taken > 1 ? taken + ahead : taken;
    while (calls < (want < 20 ? want : 20))
        sched_yield();
}

static void resumes(void **state)
{
    (void)state;
    for (int c = 0; c < CROWDS; c++)
        LS_FRAME {
            ls_map_options *o = LS_MAP(.fn = draw_and_count, .parallel = crowds[c]);
            calls = 0;
            ahead = crowds[c] > 1 ? crowds[c] : 0;
            resumes_everywhere(ls_map(watched_range(20), o), wait_for_threads);
            resumes_everywhere(
                ls_prefetch(ls_map(ls_take(ls_skip(ls_range(0, 50, 1), 5), 18), o), 2), NULL);
            resumes_everywhere(
                ls_prefetch(ls_batch(ls_map(ls_prefetch(watched_range(30), 2), o), 4), 2), NULL);
            resumes_everywhere(ls_map(ls_batch_full(watched_range(30), 4),
                                      LS_MAP(.fn = to_floats, .parallel = crowds[c])),
                               NULL);
        }
    assert_int_equal(violations, 0);
}

/* A failed element is behind us when we go on, and numbers are as they were. */
static void resumes_behind_failures(void **state)
{
    (void)state;
    enum { N = 10 };
    for (int c = 0; c < CROWDS; c++)
        for (int at = 0; at < N - 1; at++)
            LS_FRAME {
                failing f = { at, 0 };
                ls_dataset *d = ls_map(watched_range(N),
                                       LS_MAP(.fn = fail_at, .user = &f, .parallel = crowds[c]));
                ls_iterator *it = ls_iterate(d), *other = ls_iterate(d);
                ls_value *v = NULL;
                for (int k = 0; k <= at + 1; k++)
                    if (ls_next(it, &v))
                        ls_error();
                assert_int_equal(number_of(v), at + 1);
                assert_int_equal(ls_seek(other, ls_position(it)), LS_OK);
                for (int k = at + 2; k < N; k++) {
                    assert_int_equal(ls_next(other, &v), LS_OK);
                    assert_int_equal(number_of(v), k);
                }
                assert_int_equal(ls_next(other, &v), LS_END);
                ls_iterator_free(it);
                ls_iterator_free(other);
            }
    assert_int_equal(violations, 0);
}

static void goes_anywhere(void **state)
{
    (void)state;
    LS_FRAME {
        ls_dataset *source = watched((watched_options){ .count = 50, .fails = -1, .light = true });
        ls_dataset *d = ls_map(source, LS_MAP(.fn = square, .parallel = 3));
        ls__going going = { .skipped = 0 };
        ls__it *it = NULL;
        ls__chunk chunk = { .n = 0 };
        int64_t words[2];
        assert_int_equal(ls__it_open(d, &(ls__opening){ &going, 0 }, &it), LS_OK);
        assert_true(it->light);
        for (int64_t to = 0; to < 50; to += 7)
            for (int more = 1; more < 5; more++) {
                assert_int_equal(ls__it_go(it, (int64_t[]){ to, to }), LS_OK);
                for (int64_t i = to; i < to + more && i < 50; i++) {
                    ls__it_words(it, words);
                    assert_true(words[0] == i && words[1] == i);
                    ls__chunk_clear(&chunk);
                    assert_int_equal(ls__it_pull(it, 1, &chunk), LS_OK);
                    assert_int_equal(*(const int64_t *)ls__chunk_datum(&chunk, 0, 0)->data, i * i);
                }
            }
        assert_int_equal(ls__it_go(it, (int64_t[]){ -1, 0 }), LS_CORRUPT);
        failed(LS_CORRUPT);
        ls__chunk_free(&chunk);
        ls__it_close(it);
        assert_int_equal(going.bytes, 0);
    }
    assert_int_equal(violations, 0);
}

/* Behind a failure, too, it knows where it stands. */
static void stands_behind_failures(void **state)
{
    (void)state;
    LS_FRAME {
        failing f = { 4, 1 };
        ls_dataset *d = ls_map(watched((watched_options){ .count = 9, .fails = 6 }),
                               LS_MAP(.fn = fail_at, .user = &f, .parallel = 2));
        ls__going going = { .skipped = 0 };
        ls__it *it = NULL;
        ls__chunk chunk = { .n = 0 };
        int64_t words[2];
        assert_int_equal(ls__it_open(d, &(ls__opening){ &going, 0 }, &it), LS_OK);
        for (int64_t i = 0; i <= 9; i++) {
            ls__it_words(it, words);
            assert_true(words[0] == i && words[1] == i);
            ls__chunk_clear(&chunk);
            ls_status st = ls__it_pull(it, 1, &chunk);
            assert_int_equal(st, i == 4   ? LS_INVALID
                                 : i == 6 ? LS_CORRUPT
                                 : i == 9 ? LS_END
                                          : LS_OK);
            ls_error();
        }
        ls__it_words(it, words);
        assert_true(words[0] == 9 && words[1] == 9);
        ls__chunk_free(&chunk);
        ls__it_close(it);
    }
    assert_int_equal(violations, 0);
}

/* ---- how far, and when it ends ------------------------------------------------------------------ */

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
            ls_map_options *o = LS_MAP(.fn = square, .parallel = crowds[c]);
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
                ls_iterate(ls_map(watched_range(100), LS_MAP(.fn = square, .parallel = crowds[c])));
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
        cmocka_unit_test_setup(results_in_order, clean_chain),
        cmocka_unit_test_setup(spec_is_known_before, clean_chain),
        cmocka_unit_test_setup(calls_run_at_once, clean_chain),
        cmocka_unit_test_setup(one_at_a_time_needs_no_thread, clean_chain),
        cmocka_unit_test_setup(nothing_waits_for_what_follows, clean_chain),
        cmocka_unit_test_setup(failures_come_in_their_place, clean_chain),
        cmocka_unit_test_setup(failures_of_the_input, clean_chain),
        cmocka_unit_test_setup(numbers_count_failures, clean_chain),
        cmocka_unit_test_setup(older_errors_stay, clean_chain),
        cmocka_unit_test_setup(one_structure, clean_chain),
        cmocka_unit_test_setup(first_is_not_the_fastest, clean_chain),
        cmocka_unit_test_setup(results_are_plain, clean_chain),
        cmocka_unit_test_setup(bad_arguments, clean_chain),
        cmocka_unit_test_setup(draws_depend_on_the_number, clean_chain),
        cmocka_unit_test_setup(resumes, clean_chain),
        cmocka_unit_test_setup(resumes_behind_failures, clean_chain),
        cmocka_unit_test_setup(goes_anywhere, clean_chain),
        cmocka_unit_test_setup(stands_behind_failures, clean_chain),
        cmocka_unit_test_setup(runs_ahead_so_far, clean_chain),
        cmocka_unit_test_setup(ends_at_any_moment, clean_chain),
        cmocka_unit_test_setup(bytes_are_counted, clean_chain),
        cmocka_unit_test_setup(releases_are_passed_on, clean_chain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
