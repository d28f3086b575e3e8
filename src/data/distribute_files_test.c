/*
 * Distributed datasets of real files: T30, 10 TFRecord files of 10 records each, on 5 pipelines.
 */
#include <lockstep/records.h>
#include <stdlib.h>
#include <unistd.h>

#include "data/distribute_test_support.h"

enum { FILES = 10, RECORDS = 10 };

static char directory[] = "/tmp/lockstep-distribute-XXXXXX";
static char pattern[64];

static const char *name_of(int file)
{
    static char name[64];
    snprintf(name, sizeof name, "%s/%d.tfrecord", directory, file);
    return name;
}

/* Record r of file f is "f r". */
static int write_files(void **state)
{
    (void)state;
    if (!mkdtemp(directory))
        return -1;
    snprintf(pattern, sizeof pattern, "%s/*.tfrecord", directory);
    for (int f = 0; f < FILES; f++) {
        ls_record_writer *w = ls_record_writer_open(name_of(f), LS_PLAIN);
        for (int r = 0; r < RECORDS; r++) {
            const char text[3] = { (char)('0' + f), ' ', (char)('0' + r) };
            if (ls_record_write(w, text, sizeof text))
                return -1;
        }
        if (ls_record_writer_close(w))
            return -1;
    }
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    for (int f = 0; f < FILES; f++)
        unlink(name_of(f));
    return rmdir(directory);
}

/* The records that each replica gets, in order, as f * 10 + r. */
typedef struct seen {
    int n[8];
    int record[8][FILES * RECORDS];
} seen;

static void go_through(ls_dataset *d, int replicas, seen *out)
{
    *out = (seen){ 0 };
    if (!d)
        fail_msg("%s", ls_error_report());
    LS_FOR_EACH(step, d)
    {
        for (int r = 0; r < replicas; r++) {
            const ls_tensor *t = ls_leaf_tensor(ls_select(step, r));
            for (int64_t i = 0; i < ls_dim(t, 0); i++) {
                const void *text;
                size_t length;
                assert_int_equal(ls_string_at(t, i, &text, &length), LS_OK);
                assert_int_equal(length, 3);
                const char *c = text;
                out->record[r][out->n[r]++] = 10 * (c[0] - '0') + c[2] - '0';
            }
        }
    }
    if (ls_error_pending())
        fail_msg("%s", ls_error_report());
}

static ls_dataset *records(ls_auto_shard policy)
{
    ls_dataset *d = ls_batch(ls_tfrecords(LS_FILES(pattern), NULL), 5);
    return ls_with_auto_shard(d, policy);
}

static void t30_files_and_their_records(void **state)
{
    (void)state;
    static const ls_auto_shard policies[] = { LS_AUTO_SHARD_AUTO, LS_AUTO_SHARD_FILE };
    ls_strategy *s = strategy_ahead(5, 1, 0);
    seen got;
    LS_FRAME {
        for (int i = 0; i < 2; i++) { /* w = 0: files 0 and 5; w = 3: 3 and 8 */
            go_through(ls_distribute(s, records(policies[i])), 5, &got);
            for (int w = 0; w < 5; w++) {
                assert_int_equal(got.n[w], 2 * RECORDS);
                for (int k = 0; k < got.n[w]; k++)
                    assert_int_equal(got.record[w][k], 10 * (w + 5 * (k / 10)) + k % 10);
            }
        }
        go_through(ls_distribute(s, records(LS_AUTO_SHARD_DATA)), 5, &got);
        for (int w = 0; w < 5; w++) { /* w = 0: records 0 and 5 of every file */
            assert_int_equal(got.n[w], 2 * FILES);
            for (int k = 0; k < got.n[w]; k++)
                assert_int_equal(got.record[w][k], 10 * (k / 2) + w + 5 * (k % 2));
        }
        go_through(ls_distribute(s, records(LS_AUTO_SHARD_OFF)), 5, &got);
        for (int w = 0; w < 5; w++) {
            assert_int_equal(got.n[w], FILES * RECORDS);
            for (int k = 0; k < got.n[w]; k++)
                assert_int_equal(got.record[w][k], k);
        }
    }
    free_strategy(s);
}

static ls_dataset *read_one(ls_value *name, void *user)
{
    (void)user;
    return ls_tfrecords(ls_once(name), NULL);
}

/* Readers in functions: the names are shared out before. */
static void interleaved_files_are_shared_out(void **state)
{
    (void)state;
    ls_strategy *s = strategy_ahead(5, 1, 0);
    seen got;
    LS_FRAME {
        ls_dataset *names = ls_shuffle(LS_FILES(pattern), 10, 4);
        ls_dataset *d = ls_interleave(names, LS_INTERLEAVE(.fn = read_one, .cycle = 2));
        go_through(ls_distribute(s, ls_batch(d, 5)), 5, &got);
        for (int w = 0; w < 5; w++) {
            bool has[FILES * RECORDS] = { false };
            assert_int_equal(got.n[w], 2 * RECORDS);
            for (int k = 0; k < got.n[w]; k++) {
                assert_int_equal(got.record[w][k] / 10 % 5, w);
                assert_false(has[got.record[w][k]]);
                has[got.record[w][k]] = true;
            }
        }
    }
    free_strategy(s);
}

/* Pipelines keep what is theirs: in every epoch, and for the next process. */
static void each_has_a_cache_of_its_own(void **state)
{
    (void)state;
    char file[96], own[128];
    ls_strategy *s = strategy_ahead(5, 1, 0);
    snprintf(file, sizeof file, "%s/cache", directory);
    for (int process = 0; process < 2; process++)
        LS_FRAME {
            ls_dataset *d = ls_cache(ls_tfrecords(LS_FILES(pattern), NULL), file);
            d = ls_distribute(s, ls_batch(d, 5));
            for (int epoch = 0; epoch < 2; epoch++) {
                seen got;
                go_through(d, 5, &got);
                for (int w = 0; w < 5; w++) {
                    assert_int_equal(got.n[w], 2 * RECORDS);
                    for (int k = 0; k < got.n[w]; k++)
                        assert_int_equal(got.record[w][k], 10 * (w + 5 * (k / 10)) + k % 10);
                }
            }
        }
    for (int w = 0; w < 5; w++) {
        snprintf(own, sizeof own, "%s-%d-of-5", file, w);
        assert_int_equal(unlink(own), 0);
    }
    free_strategy(s);
}

static void t30_too_few_files(void **state)
{
    (void)state;
    ls_strategy *s = strategy_of(11, 1, false);
    LS_FRAME {
        assert_null(ls_distribute(s, records(LS_AUTO_SHARD_FILE)));
        assert_non_null(strstr(ls_error_text(), "10 files, not enough for 11 pipelines"));
        failed(LS_INVALID);
        assert_non_null(ls_distribute(s, records(LS_AUTO_SHARD_DATA)));
        ls_dataset *d = ls_batch(ls_range(0, 1024, 1), 5);
        assert_null(ls_distribute(s, ls_with_auto_shard(d, LS_AUTO_SHARD_FILE)));
        failed(LS_NOT_FOUND);
    }
    free_strategy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(t30_files_and_their_records, clean),
        cmocka_unit_test_setup(interleaved_files_are_shared_out, clean),
        cmocka_unit_test_setup(each_has_a_cache_of_its_own, clean),
        cmocka_unit_test_setup(t30_too_few_files, clean),
    };
    return cmocka_run_group_tests(tests, write_files, remove_files);
}
