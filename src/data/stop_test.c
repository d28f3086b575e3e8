/*
 * Threads that run ahead come back from pulls that have no end: iterators are let go of, begin anew, go
 * elsewhere and reach the next epoch while a thread is in one. And an input that was stopped in the
 * middle of anything goes where it is told, as if nothing had been.
 */
#include <sched.h>

#include "data/test_chain.h"
#include "os/file_test_support.h"

/* Elements 0, 1, 2 come; behind them nothing does, though the input has no end. */
enum { GIVEN = 3 };

static ls_dataset *numbers(void)
{
    return watched((watched_options){ .count = INT64_MAX, .fails = -1, .light = true });
}

/* ---- pulls without end ----------------------------------------------------------------------- */

static bool is_first(ls_value *v, void *user)
{
    (void)user;
    return ls_to_int(ls_leaf_tensor(v)) < GIVEN;
}

static ls_dataset *filtered(void)
{
    return ls_filter(numbers(), is_first, NULL);
}

static ls_dataset *itself_or_nothing(ls_value *v, void *user)
{
    (void)user;
    const int64_t x = ls_to_int(ls_leaf_tensor(v));
    return ls_range(x, x < GIVEN ? x + 1 : x, 1);
}

static ls_dataset *flat(void)
{
    return ls_flat_map(numbers(), itself_or_nothing, NULL);
}

static ls_dataset *interleaved(void)
{
    return ls_interleave(numbers(),
                         LS_INTERLEAVE(.fn = itself_or_nothing, .cycle = 2, .parallel = 2));
}

static ls_dataset *skipped(void)
{
    return ls_concatenate(ls_range(0, GIVEN, 1), ls_skip(numbers(), INT64_MAX));
}

static ls_value *itself_or_no_rows(ls_value *v, void *user)
{
    (void)user;
    int64_t x = ls_to_int(ls_leaf_tensor(v));
    return ls_leaf(ls_from(LS_I64, 1, &(int64_t){ x < GIVEN }, &x));
}

static ls_dataset *unbatched(void)
{
    return ls_unbatch(ls_map(numbers(), LS_MAP(.fn = itself_or_no_rows, .spec = "i64[?]")));
}

/* Names of a file that is damaged from its first byte on. */
static ls_value *name_of_file(ls_value *v, void *user)
{
    (void)v;
    const char *name = user;
    return ls_leaf(ls_from_strings(0, NULL, (const void *const *)&name, NULL));
}

static ls_value *no_number(ls_value *v, void *user)
{
    (void)v;
    (void)user;
    return ls_leaf(ls_scalar_int(LS_I64, -1));
}

static ls_dataset *damaged(void)
{
    static char name[256];
    snprintf(name, sizeof name, "%s", in_dir("damaged"));
    put_file("damaged", "this is no TFRecord file, not at all", 36);
    ls_dataset *names =
        ls_map(numbers(), LS_MAP(.fn = name_of_file, .user = name, .spec = "bytes[]"));
    ls_dataset *records = ls_tfrecords(names, LS_RECORDS(.skip_corrupt = true));
    return ls_concatenate(ls_range(0, GIVEN, 1),
                          ls_map(records, LS_MAP(.fn = no_number, .spec = "i64[]")));
}

static ls_dataset *zipped(void)
{
    return ls_zip(2, (ls_dataset *[]){ ls_prefetch(numbers(), 2), filtered() });
}

static ls_dataset *(*const endless[])(void) = { filtered,  flat,    interleaved, skipped,
                                                unbatched, damaged, zipped };
enum { ENDLESS = sizeof endless / sizeof *endless };

/* ---- threads in front of them ------------------------------------------------------------------ */

static ls_value *same(ls_value *v, void *user)
{
    (void)user;
    return v;
}

static ls_dataset *prefetched(ls_dataset *d)
{
    return ls_prefetch(d, 4);
}

static ls_dataset *mapped(ls_dataset *d)
{
    return ls_map(d, LS_MAP(.fn = same, .parallel = 3));
}

/* The outer threads wait for the inner ones, which are in the pull. */
static ls_dataset *twice(ls_dataset *d)
{
    return ls_prefetch(ls_batch(ls_map(ls_prefetch(d, 2), LS_MAP(.fn = same, .parallel = 2)), 1),
                       3);
}

static ls_dataset *repeated(ls_dataset *d)
{
    return ls_prefetch(ls_repeat(ls_prefetch(d, 2), -1), 2);
}

static ls_dataset *(*const fronts[])(ls_dataset *d) = { prefetched, mapped, twice, repeated };
enum { FRONTS = sizeof fronts / sizeof *fronts };

/* What comes was taken, and a thread looks for more where none is. */
static void take_what_comes(ls_iterator *it)
{
    int64_t x;
    for (int i = 0; i < GIVEN; i++)
        assert_true(next_number(it, &x));
    const int64_t pulls = watched_pulls;
    while (watched_pulls < pulls + 20)
        sched_yield();
}

static void lets_go(void **state)
{
    (void)state;
    for (int i = 0; i < ENDLESS; i++)
        for (int k = 0; k < FRONTS; k++)
            LS_FRAME {
                ls_dataset *d = fronts[k](endless[i]());
                const size_t before = memory();
                ls_iterator *it = ls_iterate(d);
                if (!it)
                    fail_msg("%d %d: %s", i, k, ls_error_report());
                take_what_comes(it);
                ls_iterator_free(it);
                assert_int_equal(ls_error_pending(), LS_OK);
                assert_int_equal(memory(), before);
            }
    assert_int_equal(violations, 0);
}

static void begins_anew(void **state)
{
    (void)state;
    for (int k = 0; k < FRONTS; k++)
        LS_FRAME {
            ls_iterator *it = ls_iterate(fronts[k](filtered()));
            ls_tensor *start = ls_position(it);
            take_what_comes(it);
            assert_int_equal(ls_rewind(it), LS_OK);
            take_what_comes(it);
            assert_int_equal(ls_seek(it, start), LS_OK);
            take_what_comes(it);
            ls_iterator_free(it);
        }
    assert_int_equal(violations, 0);
}

/* The first epoch's thread is in a pull without end when the second begins. */
static void next_epoch_comes(void **state)
{
    (void)state;
    const int64_t want[] = { 0, 1, 2, 0, 1, 2, 0, 1, 2 };
    LS_FRAME {
        gives(ls_repeat(ls_take(ls_prefetch(filtered(), 4), GIVEN), 3), 9, want);
        gives(ls_repeat(ls_take(mapped(filtered()), GIVEN), 3), 9, want);
        gives(ls_prefetch(ls_repeat(ls_take(ls_prefetch(flat(), 4), GIVEN), 3), 2), 9, want);
    }
    assert_int_equal(violations, 0);
}

/* ---- stopped anywhere ----------------------------------------------------------------------------- */

/* A source that asks all to stop, when its time has come. */
static ls__stop stop;
static _Atomic int pulls_left;

static ls_value *stops(ls_value *v, void *user)
{
    (void)user;
    if (pulls_left-- == 0)
        stop.asked = true;
    return v;
}

static bool is_even(ls_value *v, void *user)
{
    (void)user;
    return ls_to_int(ls_leaf_tensor(v)) % 2 == 0;
}

static ls_dataset *source(int64_t n)
{
    return ls_map(ls_range(0, n, 1), LS_MAP(.fn = stops, .spec = "i64[]"));
}

static ls_dataset *chain(int which)
{
    ls_dataset *d = source(40);
    switch (which) {
    case 0:
        return ls_batch(d, 3);
    case 1:
        return ls_padded_batch(d, 3, NULL);
    case 2:
        return ls_filter(d, is_even, NULL);
    case 3:
        return ls_unbatch(ls_batch(d, 7));
    case 4:
        return ls_shard(d, 3, 1);
    case 5:
        return ls_zip(2, (ls_dataset *[]){ ls_filter(d, is_even, NULL), source(30) });
    case 6:
        return ls_concatenate(ls_take(d, 5), ls_skip(source(20), 6));
    case 7:
        return ls_repeat(ls_batch(ls_enumerate(ls_take(d, 10), 3), 4), 3);
    case 8:
        return ls_prefetch(ls_batch(d, 4), 2);
    default:
        return NULL;
    }
}

static uint64_t pull_one(ls__it *it, ls_status *st, int64_t *after)
{
    ls__chunk c = { 0 };
    uint64_t h = 0;
    *st = ls__it_pull(it, 1, &c);
    if (!*st)
        LS_FRAME {
            memcpy(after, ls__chunk_after(&c, 0), (size_t)it->words * sizeof *after);
            h = (uint64_t)digest(ls__element_value(&c, 0));
        }
    ls__chunk_free(&c);
    return h;
}

static void goes_on_behind_a_stop(void **state)
{
    (void)state;
    enum { MOST_WORDS = 16 };
    for (int which = 0; which < 9; which++)
        for (int when = 0; when < 50; when++)
            LS_FRAME {
                ls__going going = { .skipped = 0 };
                ls__it *it = NULL;
                uint64_t all[64];
                int64_t words[64][MOST_WORDS];
                ls_status st = LS_OK;
                int n = 0;
                stop.asked = false;
                pulls_left = -1;
                const ls__opening how = { .going = &going, .stop = &stop };
                assert_int_equal(ls__it_open(chain(which), &how, &it), LS_OK);
                assert_true(it->light && it->words <= MOST_WORDS);
                ls__it_words(it, words[0]);
                for (; n < 63 && !st; n++)
                    all[n] = pull_one(it, &st, words[n + 1]);
                assert_int_equal(st, LS_END);
                n--;
                assert_int_equal(ls__it_go(it, words[0]), LS_OK);
                pulls_left = when;
                for (st = LS_OK; !st;)
                    pull_one(it, &st, (int64_t[MOST_WORDS]){ 0 });
                if (st != LS_END)
                    failed(LS_CANCELLED);
                pulls_left = -1;
                stop.asked = false;
                const int to = when % (n + 1);
                assert_int_equal(ls__it_go(it, words[to]), LS_OK);
                for (int i = to; i < n; i++) {
                    assert_int_equal(pull_one(it, &st, words[63]), all[i]);
                    assert_memory_equal(words[63], words[i + 1],
                                        (size_t)it->words * sizeof words[0][0]);
                }
                pull_one(it, &st, words[63]);
                assert_int_equal(st, LS_END);
                ls__it_close(it);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(lets_go, clean_chain),
        cmocka_unit_test_setup(begins_anew, clean_chain),
        cmocka_unit_test_setup(next_epoch_comes, clean_chain),
        cmocka_unit_test_setup(goes_on_behind_a_stop, clean_chain),
    };
    return cmocka_run_group_tests(tests, make_test_dir, remove_test_dir);
}
