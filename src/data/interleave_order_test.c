/*
 * Interleave and flat_map: tf.data's order, the same with threads; what they refuse.
 */
#include "data/interleave_test_support.h"

#include <pthread.h>

/* The rule, in plain loops. */
static int by_turns(int n, const int64_t *lengths, int cycle, int64_t block, int64_t *out)
{
    struct {
        bool open;
        int64_t i, at;
    } slots[16] = { { .open = false } };
    int got = 0, next = 0, open = 0, slot = 0;
    int64_t given = 0;
    while (next < n || open > 0) {
        bool pass = !slots[slot].open && next == n;
        if (!slots[slot].open && next < n) {
            slots[slot].open = true;
            slots[slot].i = next++;
            slots[slot].at = 0;
            open++;
        } else if (slots[slot].open && slots[slot].at < lengths[slots[slot].i]) {
            out[got++] = 100 * slots[slot].i + slots[slot].at++;
            pass = ++given == block;
        } else if (slots[slot].open) {
            slots[slot].open = false;
            open--;
            pass = true;
        }
        if (pass) {
            slot = (slot + 1) % cycle;
            given = 0;
        }
    }
    return got;
}

static void order_is_the_rule(void **state)
{
    (void)state;
    int64_t want[MOST_ELEMENTS];
    plan p = { sizes, false };
    for (int n = 0; n <= SIZES; n += n < 7 ? 1 : 7)
        for (int cycle = 1; cycle <= 16; cycle += cycle < 4 ? 1 : 4)
            for (int block = 1; block <= 4; block++)
                for (int parallel = 0; parallel <= 2; parallel++)
                    LS_FRAME {
                        ls_dataset *d =
                            ls_interleave(watched_range(n),
                                          LS_INTERLEAVE(.fn = numbers, .user = &p, .cycle = cycle,
                                                        .block = block, .parallel = parallel));
                        assert_int_equal(ls_cardinality(d), n ? LS_UNKNOWN : 0);
                        gives(d, by_turns(n, sizes, cycle, block, want), want);
                    }
    assert_int_equal(violations, 0);
}

/* What tf.data (TensorFlow 2.21) gives:
 *     Dataset.from_tensors of (i, sizes[i]) .interleave(range(sizes[i]) + 100 i, cycle, block) */
static void order_is_that_of_tensorflow(void **state)
{
    (void)state;
    static const struct {
        int cycle, block;
        int64_t want[15];
    } cases[] = {
        { 1, 1, { 0, 1, 2, 200, 201, 300, 301, 302, 303, 304, 400, 500, 501, 502, 503 } },
        { 2, 1, { 0, 1, 200, 2, 201, 300, 400, 301, 302, 500, 303, 501, 304, 502, 503 } },
        { 2, 2, { 0, 1, 2, 200, 201, 300, 301, 302, 303, 400, 304, 500, 501, 502, 503 } },
        { 3, 2, { 0, 1, 200, 201, 2, 300, 301, 400, 302, 303, 500, 501, 304, 502, 503 } },
        { 5, 3, { 0, 1, 2, 200, 201, 300, 301, 302, 400, 500, 501, 502, 303, 304, 503 } },
        { 16, 1, { 0, 200, 300, 400, 500, 1, 201, 301, 501, 2, 302, 502, 303, 503, 304 } },
    };
    plan p = { sizes, true };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int parallel = -1; parallel <= 2; parallel++)
            LS_FRAME {
                gives(
                    ls_interleave(ls_range(0, 6, 1),
                                  LS_INTERLEAVE(.fn = numbers, .user = &p, .cycle = cases[i].cycle,
                                                .block = cases[i].block, .parallel = parallel)),
                    15, cases[i].want);
            }
    LS_FRAME {
        gives(ls_flat_map(ls_range(0, 6, 1), numbers, &p), 15, cases[0].want);
        /* 0 stands for 16 and 1 */
        gives(ls_interleave(ls_range(0, 6, 1), LS_INTERLEAVE(.fn = numbers, .user = &p)), 15,
              cases[5].want);
    }
}

/* Datasets that hand on memory of their own, which goes with them: rows of what came in. */
static ls_dataset *rows(ls_value *v, void *user)
{
    (void)user;
    return ls_slices(v);
}

static void what_lasts_there_lasts_here(void **state)
{
    (void)state;
    const char *words[] = { "a", "bc", "", "def", "g", "hi" };
    LS_FRAME {
        ls_tensor *strings = ls_from_strings(LS_DIMS(3, 2), (const void *const *)words, NULL);
        ls_tensor *floats = ls_from(LS_F32, LS_DIMS(3, 2, 1), (float[]){ 0, 1, 2, 3, 4, 5 });
        ls_value *both = ls_tensors(2, (ls_tensor *[]){ strings, floats });
        ls_dataset *d = ls_flat_map(ls_slices(both), rows, NULL);
        ls_iterator *it = ls_iterate(ls_batch(d, 6)), *one = ls_iterate(d);
        ls_value *all = NULL, *v[6];
        assert_int_equal(ls_next(it, &all), LS_OK);
        ls_iterator_free(it);
        for (int i = 0; i < 6; i++)
            assert_int_equal(ls_next(one, &v[i]), LS_OK);
        ls_iterator_free(one);
        for (int i = 0; i < 6; i++) {
            const void *text;
            size_t length;
            assert_int_equal(ls_string_at(ls_item(v[i], 0), 0, &text, &length), LS_OK);
            assert_int_equal(length, strlen(words[i]));
            assert_memory_equal(text, words[i], length);
            assert_int_equal(ls_string_at(ls_item(all, 0), i, &text, &length), LS_OK);
            assert_memory_equal(text, words[i], length);
            assert_true(ls_to_float(ls_item(v[i], 1)) == (float)i);
            assert_true(((const float *)ls_data(ls_item(all, 1)))[i] == (float)i);
        }
    }
}

/* ---- on threads --------------------------------------------------------------------------------- */

static pthread_t puller;
static _Atomic int elsewhere;

static ls_value *note_thread(ls_value *v, void *user)
{
    (void)user;
    elsewhere += !pthread_equal(pthread_self(), puller);
    return v;
}

static ls_dataset *noted(ls_value *v, void *user)
{
    (void)v;
    (void)user;
    return ls_map(ls_range(0, 10, 1), LS_MAP(.fn = note_thread));
}

static void reads_ahead_on_threads(void **state)
{
    (void)state;
    int64_t x[MOST_ELEMENTS];
    puller = pthread_self();
    for (int parallel = 0; parallel <= 3; parallel++)
        LS_FRAME {
            elsewhere = 0;
            ls_dataset *d = ls_interleave(
                ls_range(0, 3, 1), LS_INTERLEAVE(.fn = noted, .cycle = 3, .parallel = parallel));
            assert_int_equal(all_of(d, x), 30);
            assert_int_equal(elsewhere, 9 * parallel); /* the first of each goes alone */
        }
}

static void bad_arguments(void **state)
{
    (void)state;
    plan p = { sizes, false };
    LS_FRAME {
        ls_dataset *d = ls_range(0, 3, 1);
        ls_interleave_options o;
        assert_null(ls_flat_map(d, NULL, NULL));
        failed(LS_INVALID);
        assert_null(ls_flat_map(NULL, numbers, NULL));
        failed(LS_INVALID);
        assert_null(ls_interleave(d, NULL));
        failed(LS_INVALID);
        assert_null(ls_interleave(NULL, LS_INTERLEAVE(.fn = numbers)));
        failed(LS_INVALID);
        assert_null(ls_interleave(d, LS_INTERLEAVE(.fn = NULL)));
        failed(LS_INVALID);
        assert_null(ls_interleave(d, LS_INTERLEAVE(.fn = numbers, .cycle = -1)));
        failed(LS_INVALID);
        assert_null(ls_interleave(d, LS_INTERLEAVE(.fn = numbers, .block = -1)));
        failed(LS_INVALID);
        assert_null(ls_interleave(d, LS_INTERLEAVE(.fn = numbers, .parallel = -2)));
        failed(LS_INVALID);
        assert_null(ls_interleave(d, &(ls_interleave_options){ .size = 1, .fn = numbers }));
        failed(LS_INVALID);
        ls_interleave_init(&o);
        o.fn = numbers;
        o.user = &p;
        gives(ls_interleave(d, &o), 5, (int64_t[]){ 0, 200, 1, 201, 2 });
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(order_is_the_rule, clean_chain),
        cmocka_unit_test_setup(order_is_that_of_tensorflow, clean_chain),
        cmocka_unit_test_setup(what_lasts_there_lasts_here, clean_chain),
        cmocka_unit_test_setup(reads_ahead_on_threads, clean_chain),
        cmocka_unit_test_setup(bad_arguments, clean_chain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
