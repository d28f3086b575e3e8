/*
 * ls_batch: what it loses when it fails, and what it does not; sizes that no memory has.
 */
#include "data/stage_test.h"

#include <stdio.h>

static ls_dataset *shapes(int count, const int64_t *sizes)
{
    ls_dataset *d = NULL;
    for (int i = 0; i < count; i++) {
        ls_dataset *one = ls_once(ls_leaf(ls_full(LS_I64, LS_DIMS(sizes[i]), i)));
        d = d ? ls_concatenate(d, one) : one;
    }
    return d;
}

static void stacked_in_order(void **state)
{
    (void)state;
    for (int64_t n = 0; n < 700; n = 3 * n + 1)
        for (int64_t batch = 1; batch < 700; batch = 3 * batch + 1)
            for (int full = 0; full < 2; full++)
                LS_FRAME {
                    ls_dataset *d = WATCH(.count = n);
                    int64_t at = 0;
                    LS_FOR_EACH (v, full ? ls_batch_full(d, batch) : ls_batch(d, batch)) {
                        ls_tensor *t = ls_leaf_tensor(v);
                        const int64_t *x = ls_data(t), rows = ls_dim(t, 0);
                        assert_true(rows == batch || (!full && rows == n - at));
                        for (int64_t i = 0; i < rows; i++)
                            assert_int_equal(x[i], at++);
                    }
                    assert_int_equal(ls_error(), LS_OK);
                    assert_int_equal(at, full ? n - n % batch : n);
                }
}

/* An element that does not fit is missing, and no other: those before and behind it are there, also when
 * they came in one chunk (as they do from a shuffle that has all). */
static void shapes_that_differ(void **state)
{
    (void)state;
    enum { N = 12, BATCH = 4 };
    for (uint64_t seed = 0; seed < 20; seed++)
        LS_FRAME {
            const int64_t sizes[N] = { 1, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1 };
            ls_dataset *d = ls_shuffle_once(shapes(N, sizes), N + 1, seed);
            int64_t order[N], got[N], want[N];
            int n = 0, rows = 0, first = 0;
            assert_int_equal(run(d, N, order), N);
            for (int i = 0; i < N; i++) { /* the first of each batch */
                first = rows ? first : i;
                rows += sizes[order[i]] == sizes[order[first]];
                if (rows == BATCH || (rows > 0 && i == N - 1)) {
                    want[n++] = order[first];
                    rows = 0;
                }
            }
            assert_int_equal(run(ls_batch(d, BATCH), N, got), n);
            assert_memory_equal(got, want, (size_t)n * sizeof *got);
        }
}

static void errors_name_the_element(void **state)
{
    (void)state;
    LS_FRAME {
        ls_iterator *it = ls_iterate(ls_batch(shapes(3, (int64_t[]){ 1, 1, 2 }), 4));
        ls_value *v;
        assert_int_equal(ls_next(it, &v), LS_SHAPE);
        assert_string_equal(ls_error_text(), "ls_batch: leaf 0 of element 2 of a batch is i64[2], "
                                             "those before are i64[1]");
        failed(LS_SHAPE);
        assert_int_equal(ls_next(it, &v), LS_OK); /* the others */
        assert_int_equal(ls_dim(ls_leaf_tensor(v), 0), 2);
        assert_int_equal(ls_next(it, &v), LS_END);
        ls_iterator_free(it);
    }
}

/* The leaves before the one that does not fit were copied already: they are taken back. */
static void no_part_of_it_stays(void **state)
{
    (void)state;
    LS_FRAME {
        const void *words[] = { "a", "bc", "def", "g", "hi" };
        ls_dataset *all[] = { ls_slices(ls_leaf(ls_from_strings(LS_DIMS(5), words, NULL))),
                              ls_range(0, 5, 1), shapes(5, (int64_t[]){ 1, 1, 2, 1, 1 }) };
        ls_iterator *it = ls_iterate(ls_batch(ls_zip(3, all), 4));
        ls_value *v;
        assert_int_equal(ls_next(it, &v), LS_SHAPE);
        failed(LS_SHAPE);
        assert_int_equal(ls_next(it, &v), LS_OK);
        static const int64_t left[] = { 0, 1, 3, 4 };
        assert_memory_equal(ls__data(ls_item(v, 1)), left, sizeof left);
        for (int i = 0; i < 4; i++) {
            const void *word;
            size_t n;
            assert_int_equal(ls_string_at(ls_item(v, 0), i, &word, &n), LS_OK);
            assert_string_equal(word, words[left[i]]);
        }
        assert_int_equal(ls_next(it, &v), LS_END);
        ls_iterator_free(it);
    }
}

static ls_dataset *failing_batches(uint64_t seed)
{
    int64_t sizes[20];
    for (int i = 0; i < 20; i++)
        sizes[i] = i % 7 == 3 ? 2 : 1;
    ls_dataset *d = shapes(20, sizes);
    d = seed & 1 ? ls_shuffle(d, 30, seed) : d;
    d = ls_batch(d, 3);
    return seed & 2 ? ls_shuffle(d, 3, seed) : d;
}

static void positions_among_failures(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 8; seed++)
        assert_true(check_positions(failing_batches, seed, 0) >= 2);
}

/* Strings one by one, and arrays of them. */
static void strings_of_any_rank(void **state)
{
    (void)state;
    static const char *const words[] = { "a", "bc", "", "def", "ghij", "k" };
    const struct {
        int rank;
        int64_t dims[3];
        const char *text, *batch;
    } cases[] = { { 1, { 6 }, "bytes[]", "bytes[2]" },
                  { 2, { 6, 1 }, "bytes[1]", "bytes[2,1]" },
                  { 2, { 3, 2 }, "bytes[2]", "bytes[2,2]" },
                  { 3, { 2, 3, 1 }, "bytes[3,1]", "bytes[2,3,1]" },
                  { 2, { 2, 0 }, "bytes[0]", "bytes[2,0]" } };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        LS_FRAME {
            ls_value *all = ls_leaf(
                ls_from_strings(cases[c].rank, cases[c].dims, (const void *const *)words, NULL));
            ls_dataset *d = ls_slices(all);
            assert_string_equal(ls_dataset_text(d), cases[c].text);
            int64_t at = 0;
            bool first = true;
            LS_FOR_EACH (v, ls_batch(d, 2)) {
                const ls_tensor *t = ls_leaf_tensor(v);
                if (first)
                    assert_string_equal(ls_describe(t), cases[c].batch);
                first = false;
                for (int64_t i = 0; i < ls_count(t); i++, at++) {
                    const void *string;
                    size_t length;
                    assert_int_equal(ls_string_at(t, i, &string, &length), LS_OK);
                    assert_string_equal(string, words[at]);
                    assert_int_equal(length, strlen(words[at]));
                }
            }
            assert_int_equal(at, ls_count(ls_leaf_tensor(all)));
        }
    assert_int_equal(ls_error(), LS_OK);
}

/* "a3", "b3" and 3, which is i64[1]; but for 2, 9 and 10, where it is i64[2]. */
static ls_value *words_and_number(ls_value *v, void *user)
{
    (void)user;
    const int64_t x = number_of(v), both[] = { x, x };
    char a[8], b[8];
    snprintf(a, sizeof a, "a%d", (int)x);
    snprintf(b, sizeof b, "b%d", (int)x);
    ls_tensor *words = ls_from_strings(LS_DIMS(2), (const void *const[]){ a, b }, NULL);
    const bool odd = x == 2 || x == 9 || x == 10;
    return ls_tensors(2, (ls_tensor *[]){ ls_from(LS_I64, LS_DIMS(odd ? 2 : 1), both), words });
}

static ls_value *turned(ls_value *v, void *user)
{
    v = words_and_number(v, user);
    return ls_tensors(2, (ls_tensor *[]){ ls_item(v, 1), ls_item(v, 0) });
}

/* Rows stay together, whichever leaf of an element is the one that does not fit, and whatever becomes of
 * those that were there before. */
static void rows_stay_together(void **state)
{
    (void)state;
    for (int last = 0; last < 2; last++)
        for (int64_t n = 1; n < 8; n++)
            LS_FRAME {
                ls_iterator *it = ls_iterate(ls_batch(
                    ls_map(ls_range(0, 20, 1), LS_MAP(.fn = last ? turned : words_and_number)), n));
                ls_value *v = NULL;
                int rows = 0;
                for (ls_status st; (st = ls_next(it, &v)) != LS_END; ls_error())
                    for (int64_t r = 0; !st && r < ls_dim(ls_item(v, 0), 0); r++, rows++) {
                        const ls_tensor *words = ls_item(v, last ? 0 : 1);
                        const ls_tensor *x = ls_item(v, last ? 1 : 0);
                        const int64_t id = ((const int64_t *)ls_data(x))[r * ls_dim(x, 1)];
                        for (int k = 0; k < 2; k++) {
                            const void *text;
                            size_t length;
                            char want[8];
                            snprintf(want, sizeof want, "%c%d", "ab"[k], (int)id);
                            assert_int_equal(ls_string_at(words, 2 * r + k, &text, &length), LS_OK);
                            assert_string_equal(text, want);
                        }
                    }
                assert_in_range(rows, 1, 20);
                ls_iterator_free(it);
            }
}

/* More rows than could ever be: nothing is written where there is no memory. */
static void far_too_large(void **state)
{
    (void)state;
    static const char *const words[] = { "a", "b" };
    static const int64_t sizes[] = { (int64_t)1 << 56, (int64_t)1 << 59, (int64_t)1 << 60,
                                     INT64_MAX };
    LS_FRAME {
        ls_dataset *texts =
            ls_slices(ls_leaf(ls_from_strings(LS_DIMS(2), (const void *const *)words, NULL)));
        for (int i = 0; i < 4; i++)
            for (int numbers = 0; numbers < 2; numbers++) {
                ls_iterator *it =
                    ls_iterate(ls_batch(numbers ? ls_range(0, 2, 1) : texts, sizes[i]));
                ls_value *v;
                assert_int_equal(ls_next(it, &v), LS_NO_MEMORY);
                failed(LS_NO_MEMORY);
                ls_iterator_free(it);
            }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(stacked_in_order, clean),
        cmocka_unit_test_setup(shapes_that_differ, clean),
        cmocka_unit_test_setup(errors_name_the_element, clean),
        cmocka_unit_test_setup(no_part_of_it_stays, clean),
        cmocka_unit_test_setup(positions_among_failures, clean),
        cmocka_unit_test_setup(strings_of_any_rank, clean),
        cmocka_unit_test_setup(rows_stay_together, clean),
        cmocka_unit_test_setup(far_too_large, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
