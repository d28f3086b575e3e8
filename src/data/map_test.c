/*
 * Map: results in order whatever calls cost and however many there are at once; failures in their
 * place; draws by the element's number alone; positions at every element.
 */
#include "data/test_chain.h"

#include <sched.h>
#include <stdio.h>

static const int crowds[] = { 0, 1, 2, 5 };
enum { CROWDS = sizeof crowds / sizeof *crowds };

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
        LS_FOR_EACH (v, d) {
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
        assert_int_equal(ls__it_open(d, &(ls__opening){ .going = &going }, &it), LS_OK);
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
        assert_int_equal(ls__it_open(d, &(ls__opening){ .going = &going }, &it), LS_OK);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(results_in_order, clean_chain),
        cmocka_unit_test_setup(spec_is_known_before, clean_chain),
        cmocka_unit_test_setup(failures_come_in_their_place, clean_chain),
        cmocka_unit_test_setup(failures_of_the_input, clean_chain),
        cmocka_unit_test_setup(numbers_count_failures, clean_chain),
        cmocka_unit_test_setup(older_errors_stay, clean_chain),
        cmocka_unit_test_setup(draws_depend_on_the_number, clean_chain),
        cmocka_unit_test_setup(resumes, clean_chain),
        cmocka_unit_test_setup(resumes_behind_failures, clean_chain),
        cmocka_unit_test_setup(goes_anywhere, clean_chain),
        cmocka_unit_test_setup(stands_behind_failures, clean_chain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
