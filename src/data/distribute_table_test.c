/*
 * Every combination of 1 to 4 pipelines and 1 to 3 replicas each, batches and data that divide and that
 * do not: who sees each sample how often.
 */
#include "data/distribute_test_support.h"

enum { MOST_SAMPLES = 1000, MOST_STEP = 64 };

/* Some files have nothing in them. */
static int64_t some(int64_t file)
{
    return (5 * file + 3) % 8;
}

/* All samples in the order of the dataset. */
typedef struct samples {
    bool files; /* else 0 up to n */
    int64_t n;  /* of files, or of samples */
} samples;

static ls_dataset *dataset_of(const samples *s)
{
    return s->files ? read_files(ls_range(0, s->n, 1), some) : ls_range(0, s->n, 1);
}

/* How often every sample should be seen: those of files first, first + step, ... in batches. */
static void expect_some(const samples *s, int64_t first, int64_t step, int64_t batch, bool full,
                        int *want)
{
    int64_t list[MOST_SAMPLES], n = 0;
    if (!s->files)
        for (; n < s->n; n++)
            list[n] = n;
    for (int64_t f = first; f < s->n && s->files; f += step)
        for (int64_t i = 0; i < some(f); i++)
            list[n++] = 100 * f + i;
    n = full ? n - n % batch : n;
    for (int64_t i = 0; i < n; i++)
        want[list[i]]++;
}

static void expect_all(const samples *s, ls_auto_shard chosen, int pipelines, int64_t batch,
                       bool full, int *want)
{
    memset(want, 0, MOST_SAMPLES * sizeof *want);
    if (chosen == LS_AUTO_SHARD_DATA || pipelines == 1)
        expect_some(s, 0, 1, batch, full, want);
    else
        for (int p = 0; p < pipelines; p++)
            expect_some(s, chosen == LS_AUTO_SHARD_FILE ? p : 0,
                        chosen == LS_AUTO_SHARD_FILE ? pipelines : 1, batch, full, want);
}

/* Counts the samples of a step; returns how many there are. */
static int64_t count_step(const ls_value *step, int replicas, int *seen)
{
    int64_t rows = 0;
    for (int r = 0; r < replicas; r++) {
        const ls_tensor *t = ls_leaf_tensor(ls_select(step, r));
        assert_int_equal(ls_rank(t), 1);
        rows += ls_dim(t, 0);
        for (int64_t i = 0; i < ls_dim(t, 0); i++)
            seen[((const int64_t *)ls_data(t))[i]]++;
    }
    return rows;
}

/* Goes through; returns the number of steps. */
static int64_t go_through(ls_dataset *d, int replicas, int64_t batch, int *seen,
                          int64_t *short_steps)
{
    memset(seen, 0, MOST_SAMPLES * sizeof *seen);
    int64_t steps = 0;
    *short_steps = 0;
    if (!d)
        fail_msg("%s", ls_error_report());
    LS_FOR_EACH (step, d) {
        int64_t rows = count_step(step, replicas, seen);
        assert_true(rows > 0 && rows <= batch);
        *short_steps += rows < batch;
        steps++;
    }
    assert_int_equal(ls_error_pending(), LS_OK);
    return steps;
}

static void check(const samples *data, ls_strategy *s, int pipelines, int64_t batch, bool full,
                  ls_auto_shard policy)
{
    int want[MOST_SAMPLES], seen[MOST_SAMPLES];
    const int replicas = ls_num_replicas(s);
    ls_auto_shard chosen = policy != LS_AUTO_SHARD_AUTO ? policy
                           : data->files                ? LS_AUTO_SHARD_FILE
                                                        : LS_AUTO_SHARD_DATA;
    LS_FRAME {
        ls_dataset *d = dataset_of(data);
        d = full ? ls_batch_full(d, batch) : ls_batch(d, batch);
        d = ls_distribute(s, policy ? ls_with_auto_shard(d, policy) : d);
        int64_t few, steps = go_through(d, replicas, batch, seen, &few);
        expect_all(data, chosen, pipelines, batch, full, want);
        assert_memory_equal(seen, want, sizeof want);
        if (ls_cardinality(d) >= 0)
            assert_int_equal(ls_cardinality(d), steps);
        /* all use B rows in every step, but for the end of the data */
        if (chosen != LS_AUTO_SHARD_FILE || pipelines == 1)
            assert_true(few <= (full ? 0 : chosen == LS_AUTO_SHARD_DATA ? 1 : pipelines));
    }
}

static void every_sample_as_often_as_it_should(void **state)
{
    (void)state;
    static const int64_t batches[] = { 1, 2, 3, 4, 6, 7, 12 }, sizes[] = { 0, 1, 5, 12, 24, 31 };
    ls_log_set(NULL, NULL, LS_LOG_ERROR);
    for (int pipelines = 1; pipelines <= 4; pipelines++)
        for (int each = 1; each <= 3; each++) {
            ls_strategy *s = strategy_of(pipelines, each, false);
            for (size_t b = 0; b < sizeof batches / sizeof *batches; b++)
                for (int full = 0; full < 2; full++) {
                    for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
                        samples range = { .n = sizes[n] };
                        check(&range, s, pipelines, batches[b], full, LS_AUTO_SHARD_DATA);
                        check(&range, s, pipelines, batches[b], full, LS_AUTO_SHARD_OFF);
                    }
                    for (int64_t n = pipelines; n <= 9; n += 3) {
                        samples files = { .files = true, .n = n };
                        for (int policy = 0; policy < 4; policy++)
                            check(&files, s, pipelines, batches[b], full, (ls_auto_shard)policy);
                    }
                }
            free_strategy(s);
        }
}

/* The same, made ahead on threads: fewer of them. */
static void every_sample_when_made_ahead(void **state)
{
    (void)state;
    for (int pipelines = 1; pipelines <= 4; pipelines++)
        for (int each = 1; each <= 3; each++) {
            ls_strategy *s = strategy_ahead(pipelines, each, 0);
            samples files = { .files = true, .n = 7 };
            for (int policy = 0; policy < 4; policy++)
                check(&files, s, pipelines, 5, false, (ls_auto_shard)policy);
            free_strategy(s);
        }
}

/* Names in another order, records in another order, twice: per epoch it is the same. */
static void every_sample_when_shuffled(void **state)
{
    (void)state;
    int want[MOST_SAMPLES], seen[MOST_SAMPLES];
    for (int pipelines = 1; pipelines <= 4; pipelines++)
        for (int policy = 0; policy < 4; policy++) {
            ls_strategy *s = strategy_of(pipelines, 2, false);
            LS_FRAME {
                samples files = { .files = true, .n = 7 };
                ls_dataset *d = read_files(ls_shuffle(ls_range(0, 7, 1), 4, 1), some);
                d = ls_batch(ls_repeat(ls_shuffle(d, 9, 2), 2), 5);
                int64_t few;
                go_through(ls_distribute(s, ls_with_auto_shard(d, (ls_auto_shard)policy)),
                           2 * pipelines, 5, seen, &few);
                expect_all(&files, policy ? (ls_auto_shard)policy : LS_AUTO_SHARD_FILE, pipelines,
                           1, false, want);
                for (int i = 0; i < MOST_SAMPLES; i++)
                    assert_int_equal(seen[i], 2 * want[i]);
            }
            free_strategy(s);
        }
}

static void quiet(ls_log_level level, const char *message, void *user)
{
    (void)level, (void)message;
    ++*(int *)user;
}

/* AUTO on what reads no files, which warns: once if there is something to share. */
static void auto_warns_once(void **state)
{
    (void)state;
    int lines = 0, expected = 0;
    ls_log_set(quiet, &lines, LS_LOG_DEBUG);
    for (int pipelines = 1; pipelines <= 4; pipelines++)
        for (int each = 1; each <= 3; each++) {
            ls_strategy *s = strategy_of(pipelines, each, false);
            samples range = { .n = 17 };
            lines = 0;
            check(&range, s, pipelines, 5, false, LS_AUTO_SHARD_AUTO);
            expected = pipelines > 1;
            assert_int_equal(lines, expected);
            samples files = { .files = true, .n = 6 };
            lines = 0;
            check(&files, s, pipelines, 5, false, LS_AUTO_SHARD_FILE);
            assert_int_equal(lines, expected);
            free_strategy(s);
        }
    ls_log_set(NULL, NULL, LS_LOG_WARNING);
}

/* The named error, whichever pipeline would have had some. */
static void fewer_files_than_pipelines(void **state)
{
    (void)state;
    for (int pipelines = 2; pipelines <= 4; pipelines++) {
        ls_strategy *s = strategy_of(pipelines, 1, false);
        for (int64_t n = 0; n < pipelines; n++)
            for (int policy = LS_AUTO_SHARD_AUTO; policy <= LS_AUTO_SHARD_FILE; policy++)
                LS_FRAME {
                    samples files = { .files = true, .n = n };
                    ls_dataset *d =
                        ls_with_auto_shard(ls_batch(dataset_of(&files), 2), (ls_auto_shard)policy);
                    d = ls_distribute(s, d);
                    if (n == 0) {
                        expect_steps(d, pipelines, "");
                        break;
                    }
                    assert_null(d);
                    assert_non_null(strstr(ls_error_text(), "not enough"));
                    failed(LS_INVALID);
                }
        free_strategy(s);
    }
}

static bool has_empty(const char *steps)
{
    return strstr(steps, "|  |") || strstr(steps, "[ |") || strstr(steps, "| ]");
}

static int64_t steps_in(const char *steps)
{
    int64_t n = 0;
    for (; *steps; steps++)
        n += *steps == '[';
    return n;
}

/* Whole steps are the first ones of all steps, up to the first that is not whole. */
static void whole_steps_are_the_first_of_all(void **state)
{
    (void)state;
    char all[MOST_TEXT], whole[MOST_TEXT];
    for (int pipelines = 1; pipelines <= 3; pipelines++)
        for (int each = 1; each <= 3; each++)
            for (int64_t batch = 1; batch <= 7; batch += 2) {
                ls_strategy *s = strategy_of(pipelines, each, false);
                ls_strategy *w = strategy_of(pipelines, each, true);
                LS_FRAME {
                    samples files = { .files = true, .n = 7 };
                    ls_dataset *d =
                        ls_with_auto_shard(ls_batch(dataset_of(&files), batch), LS_AUTO_SHARD_FILE);
                    const int v = ls_num_replicas(s);
                    ls_iterator *a = ls_iterate(ls_distribute(s, d));
                    ls_iterator *b = ls_iterate(ls_distribute(w, d));
                    rest_of(a, v, all);
                    rest_of(b, v, whole);
                    assert_memory_equal(all, whole, strlen(whole));
                    if (batch >= v)
                        assert_false(has_empty(whole));
                    /* the same of a range, where one may know how many there are */
                    d = ls_with_auto_shard(ls_batch(ls_range(0, 9, 1), batch), LS_AUTO_SHARD_OFF);
                    ls_dataset *known = ls_distribute(w, d);
                    ls_iterator *c = ls_iterate(known);
                    rest_of(c, v, whole);
                    if (ls_cardinality(known) >= 0)
                        assert_int_equal(ls_cardinality(known), steps_in(whole));
                    else
                        assert_true(9 % batch != 0);
                    ls_iterator_free(c);
                    ls_iterator_free(a);
                    ls_iterator_free(b);
                }
                free_strategy(s);
                free_strategy(w);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_sample_as_often_as_it_should, clean),
        cmocka_unit_test_setup(every_sample_when_made_ahead, clean),
        cmocka_unit_test_setup(every_sample_when_shuffled, clean),
        cmocka_unit_test_setup(auto_warns_once, clean),
        cmocka_unit_test_setup(fewer_files_than_pipelines, clean),
        cmocka_unit_test_setup(whole_steps_are_the_first_of_all, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
