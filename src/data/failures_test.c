/*
 * What a failure costs: the element that failed, and no other. The oracle is the same dataset of the
 * elements that do not fail.
 */
#include "data/stage_test.h"

/* 0, 1, ... of which some fail, or are left out. Their draws are the same. */
static ls_dataset *numbers(int64_t count, int64_t every, bool heavy, bool fail)
{
    return WATCH(.count = count, .heavy = heavy, .fail_every = every, .leave_out = !fail);
}

static ls_dataset *batched(ls_dataset *d, int kind, int64_t n)
{
    return kind == 0   ? ls_batch(d, n)
           : kind == 1 ? ls_batch_full(d, n)
                       : ls_padded_batch(d, n, LS_PADDED(.full = kind == 3));
}

/* All elements, as numbers that can be compared, and how many failures there were. */
static int go_through(ls_dataset *d, uint64_t *out, int most, int *failures)
{
    int n = 0;
    ls_iterator *it = ls_iterate(d);
    assert_non_null(it);
    *failures = 0;
    for (ls_status st = LS_OK; st != LS_END;)
        LS_FRAME {
            ls_value *v;
            st = ls_next(it, &v);
            assert_true(n < most && *failures < 1000);
            if (!st)
                out[n++] = hash_value(v);
            else if (st != LS_END)
                assert_int_equal(ls_error(), ((*failures)++, st));
        }
    ls_iterator_free(it);
    return n;
}

enum { MOST = 2048 };

static bool with_failures; /* in what is made now */

/* Returns how many elements there are. Failures that are no elements' (a shard with too few) are both's. */
static int expect_same(ls_dataset *failing, ls_dataset *good, int *failures)
{
    static uint64_t got[MOST], want[MOST];
    int others;
    with_failures = false;
    const int n = go_through(good, want, MOST, &others);
    with_failures = true;
    assert_int_equal(go_through(failing, got, MOST, failures), n);
    assert_true(*failures >= others);
    *failures -= others;
    if (n)
        assert_memory_equal(got, want, (size_t)n * sizeof *got);
    return n;
}

static void a_row_of_a_batch(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++)
        for (int64_t n = 1; n < 6; n++)
            for (int64_t every = 2; every < 6; every++)
                LS_FRAME {
                    int failures;
                    expect_same(batched(numbers(20, every, n % 2, true), kind, n),
                                batched(numbers(20, every, n % 2, false), kind, n), &failures);
                    assert_int_equal(failures, 20 / every);
                }
}

/* ---- batches behind which there are other stages --------------------------------------------------- */

static ls_value *with_a_draw(ls_value *v, void *user)
{
    (void)user;
    return ls_list(2, (ls_value *[]){ v, ls_leaf(ls_random_uniform(LS_I64, LS_SCALAR, 0, 1000)) });
}

static bool keep_some(ls_value *v, void *user)
{
    (void)user;
    return hash_value(v) % 4 && ls_to_double(ls_random_uniform(LS_F32, LS_SCALAR, 0, 1)) < 0.8;
}

static ls_dataset *some_batches(ls_value *v, void *user)
{
    (void)user;
    return ls_batch(numbers((int64_t)(hash_value(v) % 9), 3, false, with_failures), 2);
}

static ls_dataset *batches(uint64_t *r)
{
    const int64_t count = 4 + (int64_t)(draw_number(r) % 30),
                  every = 2 + (int64_t)(draw_number(r) % 4);
    const bool heavy = draw_number(r) % 2;
    const int kind = (int)(draw_number(r) % 4);
    return batched(numbers(count, every, heavy, with_failures), kind,
                   1 + (int64_t)(draw_number(r) % 3));
}

static ls_dataset *stage(ls_dataset *d, uint64_t *r, bool threads)
{
    const int64_t small = 1 + (int64_t)(draw_number(r) % 4);
    switch (draw_number(r) % 13) {
    case 0:
        return ls_shuffle(d, 2 * small, 7);
    case 1:
        return ls_repeat(d, small % 3);
    case 2:
        return ls_shard(d, small, (int64_t)(draw_number(r) % (uint64_t)small));
    case 3:
        return ls_concatenate(d, ls_skip(d, small));
    case 4:
        return ls_zip(2, (ls_dataset *[]){ d, batches(r) });
    case 5:
        return ls_enumerate(d, 0);
    case 6:
        return ls_filter(d, keep_some, NULL);
    case 7:
        return ls_take(d, 2 * small);
    case 8:
        return ls_skip(d, small);
    case 9:
        return ls_prefetch(d, threads ? small : 0);
    case 10:
        return ls_cache(d, NULL);
    case 11:
        return ls_interleave(d, LS_INTERLEAVE(.fn = some_batches, .cycle = (int)small));
    default:
        return ls_map(d, LS_MAP(.fn = with_a_draw, .parallel = threads ? (int)small : 0));
    }
}

static ls_dataset *chain(uint64_t seed, bool fail)
{
    uint64_t r = seed;
    with_failures = fail;
    ls_dataset *d = batches(&r);
    for (uint64_t n = draw_number(&r) % 4; n > 0; n--)
        d = stage(d, &r, seed % 16 == 0);
    return draw_number(&r) % 8 ? d : ls_with_auto_shard(d, LS_AUTO_SHARD_OFF);
}

static void no_batch_of_a_chain(void **state)
{
    (void)state;
    int elements = 0, failures = 0;
    for (uint64_t seed = 0; seed < 300; seed++)
        LS_FRAME {
            int failed;
            ls_dataset *failing = chain(seed, true), *good = chain(seed, false);
            elements += expect_same(failing, good, &failed);
            failures += failed;
        }
    assert_true(elements > 1000 && failures > 500);
}

/* Failures in both: what is side by side stays so, as without failures in the other. */
static void pairs_of_batches_stay_together(void **state)
{
    (void)state;
    LS_FRAME {
        int failures;
        ls_dataset *failing[] = { ls_batch(numbers(12, 3, false, true), 2),
                                  ls_batch(numbers(16, 2, true, true), 2) };
        ls_dataset *good[] = { ls_batch(numbers(12, 3, false, false), 2),
                               ls_batch(numbers(16, 2, true, false), 2) };
        assert_int_equal(expect_same(ls_zip(2, failing), ls_zip(2, good), &failures), 4);
        assert_int_equal(failures,
                         4 + 7); /* the last of the second is behind the end of the first */
    }
}

/* ---- as programs see it ----------------------------------------------------------------------------- */

/* A position behind a failure is behind it, inside of a batch, too. */
static void resumed_behind_a_failure(void **state)
{
    (void)state;
    for (int heavy = 0; heavy < 2; heavy++)
        LS_FRAME {
            ls_dataset *d = ls_batch(WATCH(.count = 9, .heavy = heavy, .fail_every = 3), 4);
            ls_iterator *it = ls_iterate(d), *other = ls_iterate(d);
            ls_value *v = NULL;
            assert_int_equal(ls_next(it, &v), LS_IO);
            assert_string_equal(ls_error_text(), "watched: element 2 fails");
            failed(LS_IO);
            assert_int_equal(ls_seek(other, ls_position(it)), LS_OK);
            assert_int_equal(ls_next(other, &v), LS_OK);
            assert_memory_equal(ls__data(ls_leaf_tensor(v)), ((int64_t[]){ 0, 1, 3, 4 }), 32);
            assert_int_equal(ls_next(other, &v), LS_IO);
            assert_string_equal(ls_error_text(), "watched: element 5 fails");
            failed(LS_IO);
            ls_iterator_free(it);
            ls_iterator_free(other);
        }
}

/* An error that was pending stays the first while known failures are passed over. */
static void a_pending_error_stays(void **state)
{
    (void)state;
    LS_FRAME {
        ls_dataset *d = ls_batch(WATCH(.count = 9, .fail_every = 3), 4);
        ls_iterator *it = ls_iterate(d);
        ls_value *v = NULL;
        assert_int_equal(ls_next(it, &v), LS_IO);
        failed(LS_IO);
        assert_int_equal(ls_seek(it, ls_position(it)), LS_OK);
        ls__fail(LS_INVALID, "from before");
        assert_int_equal(ls_next(it, &v), LS_OK);
        assert_string_equal(ls_error_text(), "from before");
        failed(LS_INVALID);
        ls_iterator_free(it);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_row_of_a_batch, clean),
        cmocka_unit_test_setup(no_batch_of_a_chain, clean),
        cmocka_unit_test_setup(pairs_of_batches_stay_together, clean),
        cmocka_unit_test_setup(resumed_behind_a_failure, clean),
        cmocka_unit_test_setup(a_pending_error_stays, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
