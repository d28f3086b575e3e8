/*
 * ls_shuffle against a plain loop, and what its positions cost. (That they are right, at every element
 * of all kinds of chains, is positions_test.c's.)
 */
#include "base/philox.h"
#include "data/stage_test.h"

__extension__ typedef unsigned __int128 u128;

/* ---- order ------------------------------------------------------------------------------------ */

static uint64_t random_number(uint64_t seed, int64_t iteration, uint64_t k)
{
    const ls__draw draw = { .key = ls__draw_key(seed, LS__DRAW_DATASET, 0, iteration) };
    uint32_t w[4];
    ls__philox_block(&draw, k / 2, w);
    return k % 2 ? (uint64_t)w[3] << 32 | w[2] : (uint64_t)w[1] << 32 | w[0];
}

/* The same as said in data.h. */
static void shuffle_plainly(int64_t n, int64_t buffer, uint64_t seed, int64_t iteration,
                            int64_t *out)
{
    int64_t in[512], filled = 0, next = 0;
    for (int64_t k = 0; k < n; k++) {
        for (; filled < buffer && next < n; next++)
            in[filled++] = next;
        int64_t slot =
            (int64_t)((u128)random_number(seed, iteration, (uint64_t)k) * (uint64_t)filled >> 64);
        out[k] = in[slot];
        in[slot] = next < n ? next : in[--filled];
        next += next < n;
    }
}

static void order_is_that_of_a_plain_loop(void **state)
{
    (void)state;
    int64_t want[500];
    for (int64_t n = 0; n < 500; n += 1 + n * 2)
        for (int64_t buffer = 1; buffer < 600; buffer += 1 + buffer)
            for (int64_t iteration = 0; iteration < 3; iteration++)
                LS_FRAME {
                    ls_dataset *d = ls_shuffle(WATCH(.count = n), buffer, 5);
                    ls_dataset *once = ls_shuffle_once(WATCH(.count = n), buffer, 5);
                    atomic_store(&d->iterations, iteration);
                    atomic_store(&once->iterations, iteration);
                    shuffle_plainly(n, buffer, 5, iteration, want);
                    expect(d, (int)n, want);
                    shuffle_plainly(n, buffer, 5, 0, want);
                    expect(once, (int)n, want);
                }
}

/* Of 3 elements, each of the 6 orders as often, whatever differs: the seed or the iteration. */
static void orders_have_the_same_chance(void **state)
{
    (void)state;
    enum { RUNS = 1200 };
    for (int by_seed = 0; by_seed < 2; by_seed++) {
        int count[27] = { 0 };
        for (int i = 0; i < RUNS; i++) {
            int64_t got[3];
            shuffle_plainly(3, 3, by_seed ? (uint64_t)i : 1, by_seed ? 0 : i, got);
            count[9 * got[0] + 3 * got[1] + got[2]]++;
        }
        double squares = 0;
        for (int i = 0; i < 27; i++)
            squares +=
                count[i] ? (count[i] - RUNS / 6.0) * (count[i] - RUNS / 6.0) / (RUNS / 6.0) : 0;
        assert_true(squares < 20.5); /* 5 degrees of freedom: one in a thousand */
    }
}

static void every_iteration_has_its_order(void **state)
{
    (void)state;
    int64_t first[64], second[64], again[64];
    LS_FRAME {
        ls_dataset *d = ls_shuffle(ls_range(0, 64, 1), 64, 1);
        ls_iterator *it = ls_iterate(d);
        assert_int_equal(numbers_of(it, 64, first), 64);
        assert_int_equal(ls_rewind(it), LS_OK);
        assert_int_equal(numbers_of(it, 64, second), 64);
        assert_memory_not_equal(first, second, sizeof first);
        ls_iterator_free(it);
        assert_int_equal(run(ls_shuffle(ls_range(0, 64, 1), 64, 1), 64, again), 64);
        assert_memory_equal(first, again, sizeof first);
        assert_int_equal(run(ls_shuffle(ls_range(0, 64, 1), 64, 2), 64, again), 64);
        assert_memory_not_equal(first, again, sizeof first);
        /* the epochs of a repeat are those iterations */
        int64_t both[128];
        assert_int_equal(run(ls_repeat(ls_shuffle(ls_range(0, 64, 1), 64, 1), 2), 128, both), 128);
        assert_memory_equal(both, first, sizeof first);
        assert_memory_equal(both + 64, second, sizeof second);
        ls_dataset *once = ls_shuffle_once(ls_range(0, 64, 1), 64, 1);
        assert_int_equal(run(ls_repeat(once, 2), 128, both), 128);
        assert_memory_equal(both, both + 64, sizeof first);
    }
}

/* ---- what is known, what is held -------------------------------------------------------------- */

static void what_is_known_stays_known(void **state)
{
    (void)state;
    LS_FRAME {
        ls_dataset *d = ls_shuffle(ls_batch(ls_range(0, 12, 1), 4), 10, 0);
        assert_string_equal(ls_dataset_text(d), "i64[4]");
        assert_int_equal(ls_cardinality(d), 3);
        assert_int_equal(ls_cardinality(ls_shuffle_once(ls_repeat(d, -1), 1, 0)), LS_INFINITE);
        assert_string_equal(ls_dataset_text(ls_shuffle(WATCH(.unknown = true), 1, 0)), "?");
    }
}

static void bytes_held_are_told(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *rows = ls_zeros(LS_F32, LS_DIMS(64, 1000));
        /* lent by unbatch, so copied; kept by slices, so not */
        ls_iterator *copied =
            ls_iterate(ls_shuffle(ls_unbatch(ls_batch(ls_slices(ls_leaf(rows)), 64)), 32, 0));
        ls_iterator *looked_at = ls_iterate(ls_shuffle(ls_slices(ls_leaf(rows)), 32, 0));
        ls_value *v = NULL;
        assert_int_equal(ls_iterator_bytes(copied), 0);
        for (int i = 0; i < 40; i++)
            LS_FRAME {
                assert_int_equal(ls_next(copied, &v), LS_OK);
                assert_int_equal(ls_next(looked_at, &v), LS_OK);
            }
        const size_t bytes = ls_iterator_bytes(copied);
        assert_true(bytes > 24 * 4000 && bytes < 96 * 4000);
        assert_true(ls_iterator_bytes(looked_at) < 4 * 4000);
        assert_int_equal(ls_rewind(copied), LS_OK);
        assert_int_equal(ls_iterator_bytes(copied), 0);
        ls_iterator_free(copied);
        ls_iterator_free(looked_at);
    }
}

/* A buffer far larger than what there is, or could be. */
static void buffer_grows_with_the_input(void **state)
{
    (void)state;
    LS_FRAME {
        int64_t got[100], seen[100] = { 0 };
        assert_int_equal(run(ls_shuffle(ls_range(0, 100, 1), INT64_MAX, 3), 100, got), 100);
        for (int i = 0; i < 100; i++)
            assert_int_equal(seen[got[i]]++, 0);
    }
}

/* ---- positions -------------------------------------------------------------------------------- */

/* Pulls up to draw `until`. */
static void go_far(ls__it *it, int64_t until)
{
    ls__chunk chunk = { 0 };
    for (int64_t draws = 0; draws < until;) {
        int64_t want = until - draws;
        ls__chunk_clear(&chunk);
        assert_int_equal(ls__it_pull(it, want < 256 ? (int)want : 256, &chunk), LS_OK);
        draws = *ls__chunk_after(&chunk, chunk.n - 1);
        ls__it_release(it, &draws);
    }
    ls__chunk_free(&chunk);
}

static void save_at(ls__it *it, int64_t draws, ls__bytes_out *to)
{
    assert_int_equal(ls__it_save(it, &draws, to), LS_OK);
}

static void compare_next(ls__it *a, ls__it *b, int elements)
{
    ls__chunk x = { 0 }, y = { 0 };
    for (int i = 0; i < elements; i++) {
        ls__chunk_clear(&x);
        ls__chunk_clear(&y);
        assert_int_equal(ls__it_pull(a, 1, &x), LS_OK);
        assert_int_equal(ls__it_pull(b, 1, &y), LS_OK);
        assert_int_equal(*(const int64_t *)x.data[0].data, *(const int64_t *)y.data[0].data);
        assert_int_equal(*ls__chunk_after(&x, 0), *ls__chunk_after(&y, 0));
    }
    ls__chunk_free(&x);
    ls__chunk_free(&y);
}

/* Restoring reads what was in the buffer, once, and nothing of what came before. */
static void restoring_costs_the_buffer_at_ten_million(void **state)
{
    (void)state;
    enum { FAR = 10 * 1000 * 1000, BUFFER = 1000 };
    int64_t reads = 0;
    LS_FRAME {
        ls_dataset *d =
            ls_shuffle(WATCH(.count = 2 * FAR, .lasting = true, .reads = &reads), BUFFER, 9);
        ls__going going = { 0 };
        trail t;
        ls__it *it = open_one(d, &going, 0, &t), *other = open_one(d, &going, 0, &t);
        ls__bytes_out saved = { 0 };
        go_far(it, FAR);
        assert_true(reads >= FAR + BUFFER - 1);
        save_at(it, FAR, &saved);
        assert_true(saved.used < 8 * BUFFER);
        reads = 0;
        ls__bytes_in from = { saved.at, saved.at + saved.used };
        assert_int_equal(ls__it_load(other, &from), LS_OK);
        assert_int_equal(reads, BUFFER - 1);
        compare_next(it, other, 100);
        ls__bytes_out_free(&saved);
        ls__it_close(it);
        ls__it_close(other);
    }
}

/* An input that cannot be gone to: gone through from before the oldest element in the buffer. */
static void restoring_goes_through_an_input_that_is_not_light(void **state)
{
    (void)state;
    enum { FAR = 100 * 1000, BUFFER = 100 };
    int64_t reads = 0;
    LS_FRAME {
        ls_dataset *d =
            ls_shuffle(WATCH(.count = 2 * FAR, .heavy = true, .reads = &reads), BUFFER, 9);
        ls__going going = { 0 };
        trail t;
        ls__it *it = open_one(d, &going, 0, &t), *other = open_one(d, &going, 0, &t);
        ls__bytes_out saved = { 0 }, again = { 0 };
        go_far(it, FAR);
        save_at(it, FAR, &saved);
        assert_true(saved.used < 8 * BUFFER);
        reads = 0;
        ls__bytes_in from = { saved.at, saved.at + saved.used };
        assert_int_equal(ls__it_load(other, &from), LS_OK);
        assert_true(reads >= BUFFER - 1 && reads < 20 * BUFFER);
        save_at(other, FAR, &again);
        assert_int_equal(saved.used, again.used);
        assert_memory_equal(saved.at, again.at, saved.used);
        compare_next(it, other, 1000);
        ls__bytes_out_free(&saved);
        ls__bytes_out_free(&again);
        ls__it_close(it);
        ls__it_close(other);
    }
}

static void what_cannot_be_saved_can_be_shuffled(void **state)
{
    (void)state;
    LS_FRAME {
        ls_iterator *it = ls_iterate(ls_shuffle(WATCH(.count = 20, .unsaved = true), 4, 1));
        int64_t got[20];
        assert_null(ls_position(it));
        failed(LS_UNSUPPORTED);
        assert_int_equal(numbers_of(it, 10, got), 10);
        assert_null(ls_position(it));
        assert_string_equal(ls_error_text(), "watched: cannot be saved");
        failed(LS_UNSUPPORTED);
        assert_int_equal(numbers_of(it, 20, got), 10);
        ls_iterator_free(it);
    }
}

/* Any byte of a position changed, and every beginning of it: an error or a position, never more. */
static void damaged_positions_are_refused(void **state)
{
    (void)state;
    for (int heavy = 0; heavy < 2; heavy++)
        LS_FRAME {
            ls_dataset *d = ls_shuffle(ls_repeat(WATCH(.count = 40, .heavy = heavy), -1), 8, 1);
            ls__going going = { 0 };
            trail t;
            ls__it *it = open_one(d, &going, 0, &t);
            ls__bytes_out saved = { 0 };
            go_far(it, 60);
            save_at(it, 60, &saved);
            for (size_t at = 0; at < saved.used; at++)
                for (int change = 0; change < 9; change++) {
                    unsigned char *bytes = malloc(saved.used);
                    memcpy(bytes, saved.at, saved.used);
                    bytes[at] ^= (unsigned char)(1 << change);
                    ls__bytes_in from = { bytes, bytes + (change == 8 ? at : saved.used) };
                    ls__it *other = open_one(d, &going, 0, &t);
                    ls_status st = ls__it_load(other, &from);
                    assert_int_equal(ls_error(), st);
                    assert_true(st == LS_OK || st == LS_CORRUPT);
                    assert_true(change < 8 || st == LS_CORRUPT);
                    ls__it_close(other);
                    free(bytes);
                }
            ls__bytes_out_free(&saved);
            ls__it_close(it);
            assert_int_equal(going.bytes, 0);
        }
}

static void bad_arguments(void **state)
{
    (void)state;
    LS_FRAME {
        assert_null(ls_shuffle(NULL, 1, 0));
        failed(LS_INVALID);
        assert_null(ls_shuffle(ls_range(0, 1, 1), 0, 0));
        assert_non_null(strstr(ls_error_text(), "ls_shuffle: buffer is 0"));
        failed(LS_INVALID);
        assert_null(ls_shuffle_once(ls_range(0, 1, 1), -1, 0));
        assert_non_null(strstr(ls_error_text(), "ls_shuffle_once: buffer is -1"));
        failed(LS_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(order_is_that_of_a_plain_loop, clean),
        cmocka_unit_test_setup(orders_have_the_same_chance, clean),
        cmocka_unit_test_setup(every_iteration_has_its_order, clean),
        cmocka_unit_test_setup(what_is_known_stays_known, clean),
        cmocka_unit_test_setup(bytes_held_are_told, clean),
        cmocka_unit_test_setup(buffer_grows_with_the_input, clean),
        cmocka_unit_test_setup(restoring_costs_the_buffer_at_ten_million, clean),
        cmocka_unit_test_setup(restoring_goes_through_an_input_that_is_not_light, clean),
        cmocka_unit_test_setup(what_cannot_be_saved_can_be_shuffled, clean),
        cmocka_unit_test_setup(damaged_positions_are_refused, clean),
        cmocka_unit_test_setup(bad_arguments, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
