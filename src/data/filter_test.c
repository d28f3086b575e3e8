/*
 * ls_filter and ls_shard.
 */
#include "data/stage_test.h"

/* ---- filter -------------------------------------------------------------------------------------- */

static bool is_even(ls_value *v, void *user)
{
    (*(int *)user)++;
    return number_of(v) % 2 == 0;
}

static bool says_yes(ls_value *v, void *user)
{
    (void)v, (void)user;
    return true;
}

static bool says_no(ls_value *v, void *user)
{
    (void)v, (void)user;
    return false;
}

static void elements_for_which_it_is_true(void **state)
{
    (void)state;
    int calls = 0;
    LS_FRAME {
        EXPECT(ls_filter(WATCH(.count = 7), is_even, &calls), 0, 2, 4, 6);
        assert_int_equal(calls, 7);
        EXPECT(ls_filter(ls_range(3, 6, 1), says_yes, NULL), 3, 4, 5);
        expect(ls_filter(ls_range(0, 300, 1), says_no, NULL), 0, NULL);
        expect(ls_filter(ls_range(0, 0, 1), says_yes, NULL), 0, NULL);
        EXPECT(ls_filter(WATCH(.count = 6, .fail_every = 3), is_even, &calls), 0, 4);
    }
}

static bool long_or_none(ls_value *v, void *user)
{
    const void *data;
    size_t length;
    (void)user;
    assert_int_equal(ls_string_at(ls_item(v, 1), 0, &data, &length), LS_OK);
    return length != 1;
}

/* Of several leaves, strings among them, lent, lasting and owned. */
static void elements_pass_as_they_are(void **state)
{
    (void)state;
    LS_FRAME {
        static const char *const words[] = { "a", "", "bcd", "e", "fg" };
        ls_tensor *numbers = ls_from(LS_I64, LS_DIMS(5), (int64_t[]){ 1, 2, 3, 4, 5 });
        ls_tensor *texts = ls_from_strings(LS_DIMS(5), (const void *const *)words, NULL);
        ls_dataset *d = ls_slices(ls_tensors(2, (ls_tensor *[]){ numbers, texts }));
        ls_dataset *kinds[] = { d, ls_unbatch(ls_batch(d, 2)),
                                ls_shuffle(ls_unbatch(ls_batch(d, 2)), 1, 0) };
        for (int i = 0; i < 3; i++) {
            ls_dataset *f = ls_filter(kinds[i], long_or_none, NULL);
            assert_string_equal(ls_dataset_text(f), "i64[], bytes[]");
            EXPECT(f, 2, 3, 5);
            ls_dataset *b = ls_batch(f, 3);
            LS_FOR_EACH (v, b) {
                const void *data;
                size_t length;
                assert_int_equal(ls_string_at(ls_item(v, 1), 1, &data, &length), LS_OK);
                assert_int_equal(length, 3);
                assert_memory_equal(data, "bcd", 3);
            }
        }
    }
    assert_int_equal(ls_error(), LS_OK);
}

static bool fails_at_three(ls_value *v, void *user)
{
    (void)user;
    if (number_of(v) % 4 == 3)
        ls_matmul(NULL, NULL);
    return true;
}

/* A function that fails fails its element, behind all that come before it, and no other. */
static void failures_of_the_function(void **state)
{
    (void)state;
    LS_FRAME {
        ls__going going = { 0 };
        trail t;
        ls_dataset *d = ls_filter(ls_range(0, 9, 1), fails_at_three, NULL);
        static const struct {
            ls_status status;
            int n;
        } want[] = { { LS_OK, 3 },      { LS_INVALID, 0 }, { LS_OK, 3 },
                     { LS_INVALID, 0 }, { LS_OK, 1 },      { LS_END, 0 } };
        for (int pending = 0; pending < 2; pending++) {
            ls__it *it = open_one(d, &going, 0, &t);
            ls__chunk chunk = { 0 };
            for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
                if (pending)
                    ls__fail(LS_DESYNC, "from before");
                ls__chunk_clear(&chunk);
                assert_int_equal(ls__it_pull(it, 100, &chunk), want[i].status);
                assert_int_equal(chunk.n, want[i].n);
                if (pending)
                    assert_string_equal(ls_error_text(), "from before");
                else if (i == 1)
                    assert_non_null(strstr(ls_error_text(), "ls_filter: element 3: "));
                assert_int_equal(ls_error(), pending                    ? LS_DESYNC
                                             : want[i].status == LS_END ? LS_OK
                                                                        : want[i].status);
            }
            ls__chunk_free(&chunk);
            ls__it_close(it);
        }
    }
}

static bool by_chance(ls_value *v, void *user)
{
    (void)v, (void)user;
    return ls_to_double(ls_random_uniform(LS_F32, LS_SCALAR, 0, 1)) < 0.5;
}

/* What a function draws depends on the element's number and the iteration, on nothing else. */
static void draws_of_the_function(void **state)
{
    (void)state;
    int64_t first[64], again[64], other[64];
    LS_FRAME {
        ls_random_seed(1);
        int n = run(ls_filter(ls_range(0, 64, 1), by_chance, NULL), 64, first);
        ls_random_seed(2);
        ls_dataset *d = ls_filter(ls_range(0, 64, 1), by_chance, NULL);
        assert_int_equal(run(d, 64, again), n);
        assert_memory_equal(first, again, (size_t)n * 8);
        assert_true(n > 16 && n < 48);
        int m = run(d, 64, other); /* another iteration */
        assert_true(m != n || memcmp(first, other, (size_t)n * 8) != 0);
    }
}

/* Elements that failed have numbers, too: those behind them draw what they would have drawn. */
static void draws_behind_failures(void **state)
{
    (void)state;
    enum { N = 60 };
    int64_t whole[N], got[N];
    LS_FRAME {
        int n = run(ls_filter(WATCH(.count = N), by_chance, NULL), N, whole), k = 0;
        int m = run(ls_filter(WATCH(.count = N, .fail_every = 4), by_chance, NULL), N, got);
        for (int i = 0; i < n; i++)
            if (whole[i] % 4 != 3)
                assert_true(k < m && got[k++] == whole[i]);
        assert_int_equal(k, m);
    }
}

/* ---- shard ----------------------------------------------------------------------------------------- */

static void shards_take_turns(void **state)
{
    (void)state;
    for (int64_t n = 0; n < 40; n += 1 + n / 2)
        for (int64_t shards = 1; shards < 10; shards++)
            for (int64_t index = 0; index < shards; index++)
                LS_FRAME {
                    int64_t want[40];
                    int count = 0;
                    for (int64_t i = index; i < n; i += shards)
                        want[count++] = i;
                    ls_dataset *d = ls_shard(WATCH(.count = n), shards, index);
                    assert_int_equal(ls_cardinality(d), count);
                    expect(d, count, want);
                }
}

static void more_shards_than_a_chunk(void **state)
{
    (void)state;
    LS_FRAME {
        EXPECT(ls_shard(ls_range(0, 3000, 1), 1000, 999), 999, 1999, 2999);
        EXPECT(ls_shard(ls_range(0, 3000, 1), 1000, 0), 0, 1000, 2000);
        EXPECT(ls_shard(ls_range(0, 300, 1), INT64_MAX, 299), 299);
        expect(ls_shard(ls_range(0, 300, 1), INT64_MAX, INT64_MAX - 1), 0, NULL);
        assert_int_equal(ls_cardinality(ls_shard(ls_repeat(ls_range(0, 3, 1), -1), 2, 1)),
                         LS_INFINITE);
    }
}

/* An element that fails takes its turn: those of other shards stay theirs. */
static void shards_with_failures(void **state)
{
    (void)state;
    LS_FRAME {
        EXPECT(ls_shard(WATCH(.count = 10, .fail_every = 4), 2, 0), 0, 2, 4, 6, 8);
        EXPECT(ls_shard(WATCH(.count = 10, .fail_every = 4), 2, 1), 1, 5, 9);
    }
}

/* T30: five numbers, ten shards. */
static void t30_fewer_elements_than_shards(void **state)
{
    (void)state;
    LS_FRAME {
        ls_value *v;
        ls_iterator *it = ls_iterate(ls_shard(ls_range(0, 5, 1), 10, 3));
        assert_int_equal(ls_next(it, &v), LS_OK);
        assert_int_equal(ls_to_int(ls_leaf_tensor(v)), 3);
        assert_int_equal(ls_next(it, &v), LS_INVALID);
        assert_string_equal(ls_error_text(), "ls_shard: 5 elements for 10 shards, not enough");
        failed(LS_INVALID);
        assert_int_equal(ls_next(it, &v), LS_END);
        ls_iterator_free(it);
        it = ls_iterate(ls_shard(ls_range(0, 5, 1), 10, 5)); /* has none, and says nothing */
        assert_int_equal(ls_next(it, &v), LS_END);
        ls_iterator_free(it);
        it = ls_iterate(ls_shard(ls_range(0, 0, 1), 10, 0));
        assert_int_equal(ls_next(it, &v), LS_END);
        ls_iterator_free(it);
    }
}

static void bad_arguments(void **state)
{
    (void)state;
    LS_FRAME {
        ls_dataset *d = ls_range(0, 5, 1);
        assert_int_equal(ls_cardinality(ls_filter(d, says_no, NULL)), LS_UNKNOWN);
        assert_null(ls_filter(d, NULL, NULL));
        failed(LS_INVALID);
        assert_null(ls_filter(NULL, says_no, NULL));
        failed(LS_INVALID);
        assert_null(ls_shard(NULL, 1, 0));
        failed(LS_INVALID);
        assert_null(ls_shard(d, 0, 0));
        failed(LS_INVALID);
        assert_null(ls_shard(d, 2, 2));
        assert_string_equal(ls_error_text(), "ls_shard: index 2 of 2 shards");
        failed(LS_INVALID);
        assert_null(ls_shard(d, 2, -1));
        failed(LS_INVALID);
        assert_null(ls_filter(ls_shard(d, 2, 5), says_no, NULL)); /* one error, not two */
        assert_string_equal(ls_error_text(), "ls_shard: index 5 of 2 shards");
        failed(LS_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(elements_for_which_it_is_true, clean),
        cmocka_unit_test_setup(elements_pass_as_they_are, clean),
        cmocka_unit_test_setup(failures_of_the_function, clean),
        cmocka_unit_test_setup(draws_of_the_function, clean),
        cmocka_unit_test_setup(draws_behind_failures, clean),
        cmocka_unit_test_setup(shards_take_turns, clean),
        cmocka_unit_test_setup(more_shards_than_a_chunk, clean),
        cmocka_unit_test_setup(shards_with_failures, clean),
        cmocka_unit_test_setup(t30_fewer_elements_than_shards, clean),
        cmocka_unit_test_setup(bad_arguments, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
