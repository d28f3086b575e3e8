/*
 * Interleave and flat_map: positions at every element, also over inputs that have to be asked while they
 * remember; failures in their place.
 */
#include "data/interleave_test_support.h"

/* ---- positions -------------------------------------------------------------------------------- */

/* A dataset of datasets of datasets, each with threads. */
static ls_dataset *nested(ls_value *v, void *user)
{
    return ls_interleave(ls_range(0, number_of(v) % 4, 1),
                         LS_INTERLEAVE(.fn = numbers, .user = user, .cycle = 2, .parallel = 1));
}

static ls_value *twice(ls_value *v, void *user)
{
    (void)user;
    return ls_leaf(ls_add(ls_leaf_tensor(v), ls_leaf_tensor(v)));
}

static void resumes(void **state)
{
    (void)state;
    for (int light = 0; light < 2; light++)
        for (int cycle = 1; cycle <= 3; cycle++)
            for (int parallel = 0; parallel <= 2; parallel += 2)
                LS_FRAME {
                    plan p = { sizes, light };
                    ls_dataset *in =
                        watched((watched_options){ .count = 7, .fails = -1, .light = light });
                    ls_interleave_options *o =
                        LS_INTERLEAVE(.fn = numbers, .user = &p, .cycle = cycle, .block = cycle,
                                      .parallel = parallel);
                    resumes_everywhere(ls_interleave(in, o), NULL);
                    resumes_everywhere(ls_prefetch(ls_batch(ls_interleave(in, o), 2), 2), NULL);
                    o->fn = nested;
                    resumes_everywhere(
                        ls_map(ls_interleave(in, o), LS_MAP(.fn = twice, .parallel = 2)), NULL);
                    resumes_everywhere(ls_flat_map(ls_flat_map(in, nested, &p), nested, &p), NULL);
                }
    assert_int_equal(violations, 0);
}

/* Of one dataset that is open for ever the input forgets the origin; positions have it all the same. */
static const int64_t one_long[700] = { [0] = 2000, [1 ... 699] = 1 };

static ls_dataset *from_long(ls_value *v, void *user)
{
    (void)user;
    const int64_t i = number_of(v);
    return ls_range(10000 * i, 10000 * i + one_long[i], 1);
}

static void long_open_datasets(void **state)
{
    (void)state;
    LS_FRAME {
        ls_dataset *d =
            ls_interleave(watched_range(700), LS_INTERLEAVE(.fn = from_long, .cycle = 2));
        ls_iterator *it = ls_iterate(d), *other = ls_iterate(d);
        int64_t x, y;
        for (int i = 0; i < 1200; i++)
            assert_true(next_number(it, &x));
        assert_true(watched_released > 100);
        assert_int_equal(ls_seek(other, ls_position(it)), LS_OK);
        same_position(other, ls_position(it));
        for (int i = 0; i < 30; i++) {
            assert_true(next_number(it, &x) && next_number(other, &y));
            assert_int_equal(x, y);
            same_position(other, ls_position(it));
        }
        ls_iterator_free(it);
        ls_iterator_free(other);
    }
    assert_int_equal(violations, 0);
}

/* Positions of elements that are on their way: all since the last release, and no others. */
static void remembers_what_was_not_released(void **state)
{
    (void)state;
    plan p = { sizes, false };
    LS_FRAME {
        ls_dataset *d = ls_interleave(
            watched_range(6), LS_INTERLEAVE(.fn = numbers, .user = &p, .cycle = 3, .block = 2));
        ls__going going = { .skipped = 0 };
        ls__it *it = NULL, *other = NULL;
        ls__chunk chunk = { .n = 0 };
        int64_t all[MOST_ELEMENTS];
        const int n = all_of(d, all);
        assert_int_equal(n, 15);
        assert_int_equal(ls__it_open(d, &(ls__opening){ .going = &going }, &it), LS_OK);
        while (ls__it_pull(it, 2, &chunk) == LS_OK)
            ls__chunk_clear(&chunk);
        for (int64_t released = 0; released < n; released += 4) {
            ls__it_release(it, &released);
            for (int64_t at = released; at <= n; at++) {
                ls__bytes_out saved = { 0 };
                assert_int_equal(ls__it_save(it, &at, &saved), LS_OK);
                assert_int_equal(ls__it_open(d, &(ls__opening){ .going = &going }, &other), LS_OK);
                ls__bytes_in from = { saved.at, saved.at + saved.used };
                assert_int_equal(ls__it_load(other, &from), LS_OK);
                for (int64_t k = at; k < n; k++) {
                    ls__chunk_clear(&chunk);
                    assert_int_equal(ls__it_pull(other, 1, &chunk), LS_OK);
                    assert_int_equal(*(const int64_t *)ls__chunk_datum(&chunk, 0, 0)->data, all[k]);
                    assert_int_equal(*ls__chunk_after(&chunk, 0), k + 1);
                }
                ls__chunk_clear(&chunk);
                assert_int_equal(ls__it_pull(other, 1, &chunk), LS_END);
                ls__it_close(other);
                ls__bytes_out_free(&saved);
            }
            ls__bytes_out none = { 0 };
            assert_int_equal(ls__it_save(it, &(int64_t){ released - 1 }, &none), LS_STATE);
            failed(LS_STATE);
        }
        ls__chunk_free(&chunk);
        ls__it_close(it);
    }
    assert_int_equal(violations, 0);
}

/* The place in a dataset is forgotten as far as it was released. */
static ls_dataset *hundred(ls_value *v, void *user)
{
    (void)v;
    (void)user;
    return watched_range(100);
}

static void datasets_are_released(void **state)
{
    (void)state;
    LS_FRAME {
        int64_t x;
        ls_iterator *it = ls_iterate(ls_flat_map(ls_range(0, 1, 1), hundred, NULL));
        for (int i = 1; i <= 50; i++) {
            assert_true(next_number(it, &x));
            assert_int_equal(watched_released, i);
        }
        ls_iterator_free(it);
    }
    assert_int_equal(violations, 0);
}

/* A position of the input with something behind it. */
static void positions_are_read_to_their_end(void **state)
{
    (void)state;
    plan p = { sizes, true };
    LS_FRAME {
        ls_dataset *d = ls_flat_map(ls_range(0, 6, 1), numbers, &p);
        for (size_t more = 0; more < 3; more++) {
            ls__going going = { .skipped = 0 };
            ls__it *it = NULL;
            ls__bytes_out saved = { 0 };
            ls__put_ints(&saved, 6, (int64_t[]){ 1, 0, 1, 1, 1, 0 });
            ls__put_bytes(&saved, "\0\0\0", more); /* in front of number 0 */
            ls__put_ints(&saved, 2, (int64_t[]){ 1, 1 });
            ls__bytes_in from = { saved.at, saved.at + saved.used };
            assert_int_equal(ls__it_open(d, &(ls__opening){ .going = &going }, &it), LS_OK);
            assert_int_equal(ls__it_load(it, &from), more == 1 ? LS_OK : LS_CORRUPT);
            if (more != 1)
                failed(LS_CORRUPT);
            ls__it_close(it);
            ls__bytes_out_free(&saved);
        }
    }
}

/* Any bytes: refused, or a position of the dataset; never anything worse. */
static void damaged_positions(void **state)
{
    (void)state;
    plan p = { sizes, true };
    LS_FRAME {
        ls_dataset *d = ls_interleave(
            ls_range(0, 6, 1), LS_INTERLEAVE(.fn = numbers, .user = &p, .cycle = 3, .block = 2));
        ls__going going = { .skipped = 0 };
        ls__it *it = NULL, *other = NULL;
        ls__chunk chunk = { .n = 0 };
        assert_int_equal(ls__it_open(d, &(ls__opening){ .going = &going }, &it), LS_OK);
        for (int i = 0; i < 7; i++) {
            ls__chunk_clear(&chunk);
            assert_int_equal(ls__it_pull(it, 1, &chunk), LS_OK);
        }
        ls__bytes_out saved = { 0 };
        assert_int_equal(ls__it_save(it, &(int64_t){ 7 }, &saved), LS_OK);
        for (size_t n = 0; n <= saved.used; n++)
            for (int flip = 0; flip < 256; flip += n < saved.used ? 5 : 256) {
                unsigned char *bytes = malloc(saved.used + 1);
                memcpy(bytes, saved.at, saved.used);
                if (flip && n < saved.used)
                    bytes[n] ^= (unsigned char)flip;
                ls__bytes_in from = { bytes, bytes + (flip ? saved.used : n) };
                assert_int_equal(ls__it_open(d, &(ls__opening){ .going = &going }, &other), LS_OK);
                ls_status st = ls__it_load(other, &from);
                if (st)
                    failed(st);
                else
                    assert_true(flip || n == saved.used);
                for (int i = 0; i < 20 && !st; i++) {
                    ls__chunk_clear(&chunk);
                    st = ls__it_pull(other, 1, &chunk);
                }
                ls__chunk_clear(&chunk);
                ls__it_close(other);
                free(bytes);
            }
        ls__bytes_out_free(&saved);
        ls__chunk_free(&chunk);
        ls__it_close(it);
    }
}

static void ends_at_any_moment(void **state)
{
    (void)state;
    plan p = { sizes, false };
    for (int parallel = 0; parallel <= 3; parallel++)
        LS_FRAME {
            ls_interleave_options *o =
                LS_INTERLEAVE(.fn = numbers, .user = &p, .cycle = 3, .parallel = parallel);
            frees_everywhere(ls_interleave(watched_range(9), o));
            frees_everywhere(ls_prefetch(ls_interleave(watched_range(9), o), 2));
        }
    assert_int_equal(violations, 0);
}

/* ---- failures ------------------------------------------------------------------------------------- */

typedef struct bad {
    int64_t at;
    int how;
} bad;

static ls_dataset *fail_at(ls_value *v, void *user)
{
    const bad *b = user;
    const int64_t i = number_of(v);
    watched_options o = { .from = 10 * i, .count = 3, .fails = -1 };
    if (i != b->at)
        return watched(o);
    switch (b->how) {
    case 0: /* says why */
        return ls_take(ls_range(0, 3, 1), -5);
    case 1: /* does not */
        return NULL;
    case 2: /* another structure */
        return ls_batch(
            ls_batch(ls_slices(ls_tensors(1, (ls_tensor *[]){ ls_zeros(LS_I64, LS_DIMS(4)) })), 2),
            2);
    case 3: /* another dtype */
        return ls_slices(ls_leaf(ls_zeros(LS_F32, LS_DIMS(4))));
    default: /* the second of its elements is damaged */
        o.fails = 1;
        return watched(o);
    }
}

static void failures_come_in_their_place(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "ls_flat_map: element 2: ls_take: n is -5",
        "ls_flat_map: element 2: the function gave NULL",
        "ls_flat_map: the dataset of element 2: not like the first "
        "element: structures differ",
        "ls_flat_map: the dataset of element 2: not like the first "
        "element: leaf 0 is f32, was i64",
        "number 1 is damaged"
    };
    for (int how = 0; how < 5; how++)
        LS_FRAME {
            bad b = { 2, how };
            ls_iterator *it = ls_iterate(ls_flat_map(watched_range(5), fail_at, &b));
            const int64_t want[] = { 0, 1, 2, 10, 11, 12, 20, -1, 22, 30, 31, 32, 40, 41, 42 };
            for (int k = 0; k < 15; k++) {
                if (how < 4 && (k == 6 || k == 8))
                    continue; /* of the dataset that failed nothing comes */
                ls_value *v = NULL;
                ls_status st = ls_next(it, &v);
                if (want[k] >= 0) {
                    if (st)
                        fail_msg("%d, %d: %s", how, k, ls_error_report());
                    assert_int_equal(number_of(v), want[k]);
                } else {
                    assert_true(st && st == ls_error_pending());
                    if (!strstr(ls_error_text(), texts[how]))
                        fail_msg("\"%s\" is not in \"%s\"", texts[how], ls_error_text());
                    ls_error();
                }
            }
            int64_t x;
            assert_false(next_number(it, &x));
            ls_iterator_free(it);
        }
    assert_int_equal(violations, 0);
}

/* What comes: a number, or minus a status. */
static int64_t next_event(ls_iterator *it)
{
    int64_t x = 0;
    LS_FRAME {
        ls_value *v = NULL;
        ls_status st = ls_next(it, &v);
        x = st ? -(int64_t)st : number_of(v);
        if (st != LS_END)
            assert_int_equal(ls_error(), st);
    }
    return x;
}

/* Failures of the input, of the function and in a dataset: who goes on from a position sees those that
 * are to come, and none twice. (Not failures of structure: "the first" is the first of an iterator.) */
static void resumes_behind_failures(void **state)
{
    (void)state;
    for (int how = 0; how < 5; how += how == 1 ? 3 : 1)
        for (int at = 0; at < 6; at++)
            for (int light = 0; light < 2; light++)
                LS_FRAME {
                    bad b = { at, how };
                    ls_dataset *in = watched(
                        (watched_options){ .count = 6, .fails = (at + 3) % 6, .light = light });
                    ls_dataset *d =
                        ls_interleave(in, LS_INTERLEAVE(.fn = fail_at, .user = &b, .cycle = 2));
                    ls_tensor *positions[64];
                    int64_t all[64];
                    int n = 0;
                    ls_iterator *it = ls_iterate(d);
                    do {
                        all[n] = next_event(it);
                        positions[n] = ls_position(it);
                    } while (all[n++] != -LS_END);
                    ls_iterator_free(it);
                    for (int k = 0; k < n; k++) {
                        if (all[k] < 0)
                            continue;
                        it = ls_iterate(d);
                        assert_int_equal(ls_seek(it, positions[k]), LS_OK);
                        for (int i = k + 1; i < n; i++)
                            assert_int_equal(next_event(it), all[i]);
                        ls_iterator_free(it);
                    }
                }
    assert_int_equal(violations, 0);
}

/* An input whose words are counters stands before a failure, not behind it: the element that was
 * opened is found all the same. */
static ls_dataset *with_hole(ls_value *v, void *user)
{
    (void)user;
    return watched(
        (watched_options){ .from = 3 * number_of(v), .count = 3, .fails = number_of(v) % 2 });
}

/* The next number, over failures; minus LS_END at the end. */
static int64_t next_good(ls_iterator *it)
{
    int64_t x = next_event(it);
    while (x < 0 && x != -LS_END)
        x = next_event(it);
    return x;
}

static void finds_elements_behind_failures(void **state)
{
    (void)state;
    bad none = { -1, 0 };
    LS_FRAME {
        ls_dataset *in = ls_flat_map(ls_range(0, 3, 1), with_hole, NULL);
        ls_dataset *d =
            ls_interleave(in, LS_INTERLEAVE(.fn = fail_at, .user = &none, .cycle = 2, .block = 2));
        ls_tensor *positions[64];
        int64_t all[64];
        int n = 0;
        ls_iterator *it = ls_iterate(d);
        do {
            all[n] = next_good(it);
            positions[n] = ls_position(it);
        } while (all[n++] != -LS_END);
        ls_iterator_free(it);
        assert_int_equal(n, 6 * 3 + 1);
        for (int k = 0; k < n; k++) {
            it = ls_iterate(d);
            assert_int_equal(ls_seek(it, positions[k]), LS_OK);
            same_position(it, positions[k]);
            for (int i = k + 1; i < n; i++)
                assert_int_equal(next_good(it), all[i]);
            ls_iterator_free(it);
        }
    }
    assert_int_equal(violations, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(resumes, clean_chain),
        cmocka_unit_test_setup(long_open_datasets, clean_chain),
        cmocka_unit_test_setup(remembers_what_was_not_released, clean_chain),
        cmocka_unit_test_setup(datasets_are_released, clean_chain),
        cmocka_unit_test_setup(positions_are_read_to_their_end, clean_chain),
        cmocka_unit_test_setup(damaged_positions, clean_chain),
        cmocka_unit_test_setup(ends_at_any_moment, clean_chain),
        cmocka_unit_test_setup(failures_come_in_their_place, clean_chain),
        cmocka_unit_test_setup(resumes_behind_failures, clean_chain),
        cmocka_unit_test_setup(finds_elements_behind_failures, clean_chain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
