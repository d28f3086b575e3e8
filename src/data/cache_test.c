/*
 * Caches in memory: what is kept, when, for whom; and positions, which must not depend on it.
 */
#include "data/cache_test_support.h"

#include "os/plain_thread.h"

static ls_dataset *squares(recipe *r, bool light)
{
    return light ? light_squares(r) : made_squares(r, true);
}

/* ---- what is kept ------------------------------------------------------------------------------- */

static void reads_the_input_once(void **state)
{
    (void)state;
    for (int light = 0; light < 2; light++) {
        recipe r = { .n = 300, .fail_at = -1 };
        LS_FRAME {
            ls_dataset *d = ls_cache(squares(&r, light), NULL);
            assert_string_equal(ls_dataset_text(d), light ? "i64[]" : "?");
            assert_int_equal(ls_cardinality(d), LS_UNKNOWN);
            for (int i = 0; i < 4; i++)
                check_all(d, 300);
            assert_int_equal(r.opened, 1);
            assert_int_equal(r.reads, 300);
            int64_t sum = 0;
            LS_FOR_EACH (b, ls_batch(d, 7))
                sum += ls_to_int(ls_sum(ls_leaf_tensor(b), LS_ALL_AXES, false));
            assert_int_equal(sum, 299 * 300 * 599 / 6);
            assert_int_equal(r.opened, 1);
        }
        assert_false(r.seen_iteration_1);
    }
    LS_FRAME {
        ls_dataset *d = ls_cache(ls_range(0, 5, 1), NULL);
        assert_int_equal(ls_cardinality(d), 5);
        assert_string_equal(ls_dataset_text(d), "i64[]");
    }
    assert_int_equal(ls_error_pending(), LS_OK);
}

static void what_is_not_all_is_not_kept(void **state)
{
    (void)state;
    for (int light = 0; light < 2; light++) {
        recipe r = { .n = 300, .fail_at = -1 };
        LS_FRAME {
            ls_dataset *d = ls_cache(squares(&r, light), NULL);
            ls_iterator *it = ls_iterate(d); /* all, but for the end */
            for (int i = 0; i < 300; i++)
                assert_int_equal(next_number(it), (int64_t)i * i);
            ls_iterator_free(it);
            check_all(d, 300);
            assert_int_equal(r.opened, 2);
            check_all(d, 300);
            assert_int_equal(r.opened, 2);
        }
    }
    for (int light = 0; light < 2; light++) {
        recipe r = { .n = 10, .fail_at = 4 };
        LS_FRAME {
            ls_dataset *d = ls_cache(squares(&r, light), NULL);
            for (int turn = 0; turn < 3; turn++) {
                ls_iterator *it = ls_iterate(d);
                ls_value *v;
                for (int i = 0; i < 4; i++)
                    assert_int_equal(next_number(it), (int64_t)i * i);
                assert_int_equal(ls_next(it, &v), LS_CORRUPT);
                failed_with(LS_CORRUPT, "element 4");
                check_rest(it, 5, 10);
                ls_iterator_free(it);
                assert_int_equal(r.opened, turn + 1);
            }
        }
    }
    assert_int_equal(ls_error_pending(), LS_OK);
}

static void an_empty_one_is_kept(void **state)
{
    (void)state;
    recipe r = { .n = 0, .fail_at = -1 };
    LS_FRAME {
        ls_dataset *d = ls_cache(light_squares(&r), NULL);
        for (int i = 0; i < 3; i++)
            check_all(d, 0);
        assert_int_equal(r.opened, 1);
    }
}

static void all_kinds_of_elements(void **state)
{
    (void)state;
    LS_FRAME {
        ls_dataset *d = ls_cache(all_kinds(), NULL), *e = ls_cache(string_arrays(), NULL);
        for (int i = 0; i < 3; i++) {
            same_elements(d, all_kinds(), 4);
            same_elements(e, string_arrays(), 1);
        }
        /* Elements larger than the blocks they lie in, among small ones. */
        float *big = calloc(3 * 100000, sizeof *big);
        assert_non_null(big);
        for (int i = 0; i < 300000; i++)
            big[i] = (float)i;
        ls_tensor *t = ls_from(LS_F32, LS_DIMS(3, 100000), big);
        free(big);
        ls_dataset *rows = ls_slices(ls_leaf(t)), *kept = ls_cache(rows, NULL);
        for (int i = 0; i < 3; i++)
            same_elements(kept, rows, 3);
        ls_dataset *many = ls_range(0, 20000, 1);
        kept = ls_cache(many, NULL);
        for (int i = 0; i < 2; i++)
            LS_FRAME
                same_elements(kept, many, 20000);
    }
    assert_int_equal(ls_error_pending(), LS_OK);
}

static void elements_outlive_the_cache(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *kept = NULL;
        LS_FRAME {
            ls_dataset *d = ls_cache(all_kinds(), NULL);
            same_elements(d, all_kinds(), 4);
            ls_iterator *it = ls_iterate(d);
            ls_value *v = NULL;
            assert_int_equal(ls_next(it, &v), LS_OK);
            kept = ls_keep(ls_leaf_tensor(ls_get(v, "floats: {")));
            ls_iterator_free(it);
        }
        assert_true(((const float *)ls_data(kept))[2] == 3.5f);
        ls_drop(kept);
    }
}

/* ---- several at once ------------------------------------------------------------------------------ */

static void two_at_once(void **state)
{
    (void)state;
    for (int light = 0; light < 2; light++) {
        recipe r = { .n = 300, .fail_at = -1 };
        LS_FRAME {
            ls_dataset *d = ls_cache(squares(&r, light), NULL);
            ls_iterator *a = ls_iterate(d), *b = ls_iterate(d);
            for (int64_t i = 0; i < 200; i++) {
                assert_int_equal(next_number(a), i * i);
                assert_int_equal(next_number(b), i * i);
            }
            size_t holds = ls_iterator_bytes(a);
            check_rest(b, 200, 300); /* this one is kept */
            check_all(d, 300);
            assert_int_equal(r.opened, 2);
            check_rest(a, 200, 300);
            assert_true(ls_iterator_bytes(a) < holds / 2); /* and that one let go of */
            check_all(d, 300);
            assert_int_equal(r.opened, 2);
            ls_iterator_free(a);
            ls_iterator_free(b);
        }
    }
}

static void go_through(void *user)
{
    ls_dataset *d = user;
    for (int turn = 0; turn < 3; turn++)
        LS_FRAME {
            ls_iterator *it = ls_iterate(d);
            int64_t at = 0;
            for (int64_t x = next_number(it); x >= 0; x = next_number(it), at++)
                if (x != at * at)
                    abort();
            if (at != 2000)
                abort();
            ls_iterator_free(it);
        }
}

static void threads_at_once(void **state)
{
    (void)state;
    recipe r = { .n = 2000, .fail_at = -1 };
    LS_FRAME {
        ls_dataset *d = ls_cache(light_squares(&r), NULL);
        ls__thread *threads[3];
        for (int i = 0; i < 3; i++)
            assert_int_equal(ls__thread_start("cache", -1, go_through, d, &threads[i]), LS_OK);
        for (int i = 0; i < 3; i++)
            ls__thread_join(threads[i]);
        int64_t opened = r.opened;
        assert_true(opened >= 1 && opened <= 3);
        check_all(d, 2000);
        assert_int_equal(r.opened, opened);
    }
}

/* Sharding puts other inputs under the same stage. */
static void other_inputs_have_their_own(void **state)
{
    (void)state;
    recipe r = { .n = 10, .fail_at = -1 }, q = { .n = 20, .fail_at = -1 };
    LS_FRAME {
        ls_dataset *d = ls_cache(light_squares(&r), NULL);
        ls_dataset *e = ls__dataset_on(d, (ls_dataset *[]){ light_squares(&q) });
        for (int i = 0; i < 3; i++) {
            check_all(d, 10);
            check_all(e, 20);
        }
        assert_int_equal(r.opened, 1);
        assert_int_equal(q.opened, 1);
    }
}

/* ---- memory ------------------------------------------------------------------------------------------ */

static void tells_what_it_holds(void **state)
{
    (void)state;
    for (int light = 0; light < 2; light++) {
        recipe r = { .n = 1000, .fail_at = -1 };
        LS_FRAME {
            ls_dataset *d = ls_cache(squares(&r, light), NULL);
            ls__going going = { 0 };
            const ls__opening how = { .going = &going };
            ls__it *it;
            ls__chunk c = { 0 };
            assert_int_equal(ls__it_open(d, &how, &it), LS_OK);
            int64_t last = going.bytes;
            while (ls__it_pull(it, 50, &c) == LS_OK) {
                assert_true(going.bytes >= last);
                last = going.bytes;
                ls__chunk_clear(&c);
            }
            assert_true(last > 1000 * 8 && last < 1000 * 250);
            ls__it_close(it);
            assert_int_equal(going.bytes, 0);
            assert_int_equal(ls__it_open(d, &how, &it), LS_OK);
            assert_true(going.bytes > 1000 * 8);
            ls__it_close(it);
            assert_int_equal(going.bytes, 0);
            ls__chunk_free(&c);
        }
        assert_int_equal(ls_error_pending(), LS_OK);
    }
    LS_FRAME { /* what never ends is never kept */
        size_t before = memory();
        ls__dataset_draft draft = { .stage = &squares_stage, .cardinality = LS_INFINITE };
        recipe r = { .n = INT64_MAX, .fail_at = -1 };
        recipe **o = ls__dataset_options(&draft, sizeof *o, NULL);
        *o = &r;
        assert_int_equal(ls__type_parse("squares", "i64[]", &draft.type), LS_OK);
        ls_iterator *it = ls_iterate(ls_cache(ls__dataset_new(&draft, "for ever"), NULL));
        for (int i = 0; i < 10000; i++)
            next_number(it);
        assert_int_equal(ls_iterator_bytes(it), 0);
        assert_true(memory() < before + 100000);
        ls_iterator_free(it);
    }
}

/* ---- positions -------------------------------------------------------------------------------------- */

/* Filling, passing and reading give the same positions, bit for bit, and each goes on from each. */
static void positions_do_not_depend_on_it(void **state)
{
    (void)state;
    enum { N = 300, STEP = 7 };
    for (int light = 0; light < 2; light++) {
        recipe r = { .n = N, .fail_at = -1 };
        for (int64_t at = 0; at <= N; at += STEP)
            LS_FRAME {
                ls_dataset *fresh = ls_cache(squares(&r, light), NULL);
                ls_dataset *kept = ls_cache(squares(&r, light), NULL);
                check_all(kept, N);
                check_all(kept, N); /* so that both of the following are iteration 0 to 2 */
                ls_iterator *fills = ls_iterate(fresh), *reads = ls_iterate(kept);
                ls_rewind(fills);
                ls_rewind(fills);
                for (int64_t i = 0; i < at; i++) {
                    assert_int_equal(next_number(fills), i * i);
                    assert_int_equal(next_number(reads), i * i);
                }
                ls_tensor *position = ls_position(fills);
                assert_true(same_bytes(position, ls_position(reads)));

                ls_dataset *elsewhere = ls_cache(squares(&r, light), NULL);
                ls_iterator *passes = ls_iterate(elsewhere), *other = ls_iterate(kept);
                r.reads = 0;
                assert_int_equal(ls_seek(passes, position), LS_OK);
                assert_true(r.reads <= (light ? 0 : 70));
                assert_int_equal(ls_seek(other, position), LS_OK);
                assert_true(same_bytes(position, ls_position(passes)));
                assert_true(same_bytes(position, ls_position(other)));
                for (int64_t i = at; i < N; i++) {
                    assert_int_equal(next_number(passes), i * i);
                    assert_int_equal(next_number(other), i * i);
                    if (i % 10 == 0)
                        assert_true(same_bytes(ls_position(passes), ls_position(other)));
                }
                assert_int_equal(next_number(passes), -1);
                assert_int_equal(next_number(other), -1);

                r.reads =
                    0; /* the iteration that began in the middle kept nothing, the next does */
                ls_iterator_free(passes);
                check_all(elsewhere, N);
                assert_int_equal(r.reads, at > 0 ? N : 0);
                check_all(elsewhere, N);
                assert_int_equal(r.reads, at > 0 ? N : 0);
                check_rest(fills, at, N);
                check_rest(reads, at, N);
                ls_iterator_free(fills);
                ls_iterator_free(reads);
                ls_iterator_free(other);
            }
    }
    assert_int_equal(ls_error_pending(), LS_OK);
}

/* As a shuffle does: places one after another, forwards and back. */
static void goes_anywhere(void **state)
{
    (void)state;
    recipe r = { .n = 1000, .fail_at = -1 };
    LS_FRAME {
        ls_dataset *d = ls_cache(light_squares(&r), NULL);
        ls__going going = { 0 };
        ls__it *fills, *reads;
        ls__chunk c = { 0 };
        assert_int_equal(ls__it_open(d, &(ls__opening){ .going = &going }, &fills), LS_OK);
        check_all(d, 1000);
        assert_int_equal(ls__it_open(d, &(ls__opening){ .going = &going }, &reads), LS_OK);
        assert_true(fills->light && reads->light);
        assert_int_equal(fills->words, reads->words);
        for (int64_t i = 0; i < 300; i++) {
            int64_t at = (i * 617) % 1000, words[3] = { at, at, -7 }, now[3];
            ls__it *its[2] = { fills, reads };
            for (int k = 0; k < 2; k++) {
                assert_int_equal(ls__it_go(its[k], words), LS_OK);
                ls__it_words(its[k], now);
                assert_memory_equal(now, words, sizeof now);
                ls__chunk_clear(&c);
                assert_int_equal(ls__it_pull(its[k], 1, &c), LS_OK);
                assert_int_equal(*(const int64_t *)ls__chunk_datum(&c, 0, 0)->data, at * at);
                assert_int_equal(ls__chunk_after(&c, 0)[0], at + 1);
                assert_int_equal(ls__chunk_after(&c, 0)[1], at + 1);
                assert_int_equal(ls__chunk_after(&c, 0)[2], -7);
            }
        }
        assert_int_equal(ls__it_go(reads, (int64_t[]){ 1001, 0, -7 }), LS_CORRUPT);
        failed_with(LS_CORRUPT, "damaged");
        assert_int_equal(ls__it_go(fills, (int64_t[]){ -1, 0, -7 }), LS_CORRUPT);
        failed_with(LS_CORRUPT, "damaged");
        ls__chunk_free(&c);
        ls__it_close(fills);
        ls__it_close(reads);
    }
}

/* A generator gives them one by one. */
static ls_dataset *squares_in_chunks(recipe *r)
{
    return ls_unbatch(ls_batch(made_squares(r, true), 64));
}

/* Elements on their way can be saved: a mark in the middle of a chunk is for those behind it. */
static void elements_on_their_way(void **state)
{
    (void)state;
    recipe r = { .n = 400, .fail_at = -1 };
    LS_FRAME {
        ls_dataset *d = ls_cache(squares_in_chunks(&r), NULL);
        for (int turn = 0; turn < 2; turn++) { /* filling, reading */
            ls__going going = { 0 };
            ls__it *it;
            ls__chunk c[8] = { { 0 } };
            int chunks = 0, done = 0;
            assert_int_equal(ls__it_open(d, &(ls__opening){ .going = &going }, &it), LS_OK);
            while (ls__it_pull(it, 64, &c[chunks]) == LS_OK)
                chunks++;
            assert_true(chunks >= 6);
            for (int k = 0; k < chunks; k++)
                for (int i = 0; i < c[k].n; i++, done++) {
                    ls__bytes_out bytes = { 0 };
                    ls__it *other;
                    ls__chunk one = { 0 };
                    assert_int_equal(ls__it_save(it, ls__chunk_after(&c[k], i), &bytes), LS_OK);
                    ls__it_release(it, ls__chunk_after(&c[k], i));
                    if (done % 11 == 0 && done < 399) {
                        ls__bytes_in from = { bytes.at, bytes.at + bytes.used };
                        ls_dataset *e = ls_cache(squares_in_chunks(&r), NULL);
                        assert_int_equal(ls__it_open(e, &(ls__opening){ .going = &going }, &other),
                                         LS_OK);
                        assert_int_equal(ls__it_load(other, &from), LS_OK);
                        assert_int_equal(ls__it_pull(other, 1, &one), LS_OK);
                        assert_int_equal(*(const int64_t *)ls__chunk_datum(&one, 0, 0)->data,
                                         (int64_t)(done + 1) * (done + 1));
                        ls__chunk_free(&one);
                        ls__it_close(other);
                    }
                    ls__bytes_out_free(&bytes);
                }
            assert_int_equal(done, 400);
            for (int k = 0; k < 8; k++)
                ls__chunk_free(&c[k]);
            ls__it_close(it);
            assert_int_equal(going.bytes, 0);
        }
    }
    assert_int_equal(ls_error_pending(), LS_OK);
}

static void positions_behind_a_failure(void **state)
{
    (void)state;
    for (int light = 0; light < 2; light++) {
        recipe r = { .n = 10, .fail_at = 4 };
        LS_FRAME {
            ls_iterator *it = ls_iterate(ls_cache(squares(&r, light), NULL));
            ls_iterator *other = ls_iterate(ls_cache(squares(&r, light), NULL));
            ls_value *v;
            for (int i = 0; i < 4; i++)
                next_number(it);
            assert_int_equal(ls_next(it, &v), LS_CORRUPT);
            ls_error();
            assert_int_equal(next_number(it), 25);
            assert_int_equal(ls_seek(other, ls_position(it)), LS_OK);
            check_rest(other, 6, 10);
            ls_iterator_free(it);
            ls_iterator_free(other);
        }
    }
    assert_int_equal(ls_error_pending(), LS_OK);
}

static void what_cannot_be_saved(void **state)
{
    (void)state;
    recipe r = { .n = 10, .fail_at = -1 };
    LS_FRAME {
        ls_dataset *d = ls_cache(made_squares(&r, false), NULL);
        for (int turn = 0; turn < 2; turn++) {
            ls_iterator *it = ls_iterate(d);
            assert_int_equal(next_number(it), 0);
            assert_null(ls_position(it));
            failed_with(LS_UNSUPPORTED, turn ? "before ls_cache cannot be saved" : "a generator");
            check_rest(it, 1, 10);
            ls_iterator_free(it);
        }
        assert_int_equal(r.opened, 1);
    }
}

static void damaged_positions(void **state)
{
    (void)state;
    recipe r = { .n = 200, .fail_at = -1 };
    LS_FRAME {
        ls_dataset *d = ls_cache(made_squares(&r, true), NULL);
        ls__going going = { 0 };
        ls__it *it;
        ls__chunk c = { 0 };
        ls__bytes_out bytes = { 0 };
        assert_int_equal(ls__it_open(d, &(ls__opening){ .going = &going }, &it), LS_OK);
        for (int i = 0; i < 3; i++) {
            ls__chunk_clear(&c);
            assert_int_equal(ls__it_pull(it, 50, &c), LS_OK);
        }
        assert_int_equal(ls__it_save(it, ls__chunk_after(&c, c.n - 1), &bytes), LS_OK);
        ls__it_close(it);
        ls__chunk_free(&c);
        for (size_t i = 0; i < bytes.used; i++) /* the iterator's checksum does not help here */
            for (int bit = 0; bit < 8; bit++) {
                bytes.at[i] ^= (unsigned char)(1 << bit);
                ls__bytes_in from = { bytes.at, bytes.at + bytes.used };
                assert_int_equal(ls__it_open(d, &(ls__opening){ .going = &going }, &it), LS_OK);
                if (ls__it_load(it, &from))
                    assert_int_not_equal(ls_error(), LS_OK);
                ls__it_close(it);
                bytes.at[i] ^= (unsigned char)(1 << bit);
            }
        for (size_t n = 0; n < bytes.used; n++) {
            ls__bytes_in from = { bytes.at, bytes.at + n };
            assert_int_equal(ls__it_open(d, &(ls__opening){ .going = &going }, &it), LS_OK);
            assert_int_equal(ls__it_load(it, &from), LS_CORRUPT);
            failed_with(LS_CORRUPT, "damaged");
            ls__it_close(it);
        }
        ls__bytes_out_free(&bytes);
        assert_int_equal(going.bytes, 0);
    }
}

static void wrong_arguments(void **state)
{
    (void)state;
    LS_FRAME {
        assert_null(ls_cache(NULL, NULL));
        failed_with(LS_INVALID, "ls_cache: the dataset is NULL");
        assert_null(ls_cache(ls_range(0, 3, 1), ""));
        failed_with(LS_INVALID, "no name");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(reads_the_input_once, clean),
        cmocka_unit_test_setup(what_is_not_all_is_not_kept, clean),
        cmocka_unit_test_setup(an_empty_one_is_kept, clean),
        cmocka_unit_test_setup(all_kinds_of_elements, clean),
        cmocka_unit_test_setup(elements_outlive_the_cache, clean),
        cmocka_unit_test_setup(two_at_once, clean),
        cmocka_unit_test_setup(threads_at_once, clean),
        cmocka_unit_test_setup(other_inputs_have_their_own, clean),
        cmocka_unit_test_setup(tells_what_it_holds, clean),
        cmocka_unit_test_setup(positions_do_not_depend_on_it, clean),
        cmocka_unit_test_setup(goes_anywhere, clean),
        cmocka_unit_test_setup(elements_on_their_way, clean),
        cmocka_unit_test_setup(positions_behind_a_failure, clean),
        cmocka_unit_test_setup(what_cannot_be_saved, clean),
        cmocka_unit_test_setup(damaged_positions, clean),
        cmocka_unit_test_setup(wrong_arguments, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
