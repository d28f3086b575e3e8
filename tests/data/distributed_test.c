/*
 * Distribution as a program has it, steps made ahead as by default: which rows each replica gets, in
 * cases that CASES names (tests in src/data have the others, and these as plans) and in many sizes.
 */
#include "data/data_support.h"

#include <stdio.h>

/* ---- batches over replicas ------------------------------------------------------------------ */

/* B rows and N replicas, an incomplete last batch: the header's rule, in a loop. */
static void check_rule(int batch, int replicas, int rows)
{
    ls_strategy *s = pipelines_of(replicas, 1);
    LS_FRAME {
        int64_t next = 0;
        LS_FOR_EACH (v, ls_distribute(s, ls_batch(ls_range(0, rows, 1), batch))) {
            int64_t left = rows - next < batch ? rows - next : batch;
            for (int r = 0; r < replicas; r++) {
                int64_t got[64], room = batch / replicas + (r < batch % replicas);
                int64_t want = room < left ? room : left;
                ls_tensor *t = ls_leaf_tensor(ls_select(v, r));
                assert_int_equal(ls_rank(t), 1);
                assert_int_equal(ls_dtype_of(t), LS_I64);
                if (numbers_of(t, got, 64) != want)
                    fail_msg("B %d, N %d, %d rows: replica %d has %lld of row %lld on, not %lld",
                             batch, replicas, rows, r, (long long)ls_count(t), (long long)next,
                             (long long)want);
                for (int64_t i = 0; i < want; i++)
                    assert_int_equal(got[i], next++);
                left -= want;
            }
        }
        assert_int_equal(ls_error(), LS_OK);
        assert_int_equal(next, rows);
    }
    ls_strategy_free(s);
}

static void the_rule(void **state)
{
    (void)state;
    check_rule(8, 2, 6);   /* 4 and 2 */
    check_rule(32, 4, 40); /* 8, 0, 0, 0 */
    check_rule(32, 5, 64);
    check_rule(10, 4, 10);
    check_rule(5, 4, 13);
    check_rule(4, 5, 9);
    for (int batch = 1; batch <= 9; batch += 2)
        for (int replicas = 1; replicas <= 6; replicas++)
            check_rule(batch, replicas, 17);
}

/* ---- batches over pipelines ----------------------------------------------------------------- */

/* How many rows each replica gets: every pipeline sees enough rows, so nothing runs out. */
static void sizes(int batch, int pipelines, int each, int steps, const int *want)
{
    int replicas = pipelines * each;
    ls_strategy *s = pipelines_of(replicas, pipelines);
    LS_FRAME {
        ls_dataset *d = ls_batch(ls_range(0, 1000 * batch, 1), batch);
        ls_iterator *it = ls_iterate(ls_distribute(s, ls_with_auto_shard(d, LS_AUTO_SHARD_OFF)));
        int64_t next[16] = { 0 }; /* of each pipeline */
        for (int step = 0; step < steps; step++) {
            ls_value *v;
            int total = 0;
            assert_int_equal(ls_next(it, &v), LS_OK);
            for (int r = 0; r < replicas; r++) {
                int64_t rows[64];
                int n = numbers_of(ls_leaf_tensor(ls_select(v, r)), rows, 64);
                if (want && n != want[step * replicas + r])
                    fail_msg("B %d, W %d, R %d: replica %d has %d rows in step %d", batch,
                             pipelines, each, r, n, step);
                assert_in_range(n, batch / replicas, (batch + replicas - 1) / replicas);
                for (int i = 0; i < n; i++)
                    assert_int_equal(rows[i], next[r / each]++);
                total += n;
            }
            assert_int_equal(total, batch);
        }
        ls_iterator_free(it);
    }
    ls_strategy_free(s);
}

static void t20_batch_sizes_of_pipelines(void **state)
{
    (void)state;
    sizes(8, 2, 2, 2, (int[]){ 2, 2, 2, 2, 2, 2, 2, 2 });
    sizes(7, 2, 2, 3, (int[]){ 2, 2, 2, 1, 2, 1, 2, 2, 2, 2, 2, 1 });
    sizes(4, 3, 1, 4, (int[]){ 2, 1, 1, 1, 1, 2, 1, 2, 1, 2, 1, 1 });
    sizes(4, 1, 5, 3, NULL);
    sizes(4, 2, 5, 7, NULL);
    sizes(4, 5, 1, 7, NULL);
}

/* The numbers that replica r gets: from r on, every `step`-th. */
static void sees_every(int64_t step, ls_dataset *d, int r, int count)
{
    int64_t want = r;
    LS_FOR_EACH (v, d) {
        int64_t rows[16];
        int n = numbers_of(ls_leaf_tensor(ls_select(v, r)), rows, 16);
        for (int i = 0; i < n; i++, want += step)
            assert_int_equal(rows[i], want);
    }
    if (ls_error_pending())
        fail_msg("%s", ls_error_report());
    assert_int_equal(want, r + count * step);
}

static void t30_a_long_range_is_shared_by_data(void **state)
{
    (void)state;
    ls_strategy *s = pipelines_of(2, 2);
    LS_FRAME {
        ls_dataset *d = ls_distribute(s, ls_batch(ls_range(0, 1024, 1), 2));
        sees_every(2, d, 0, 512); /* the even ones */
        sees_every(2, d, 1, 512);
    }
    ls_strategy_free(s);
}

/* Fewer elements than pipelines. As it is, the range cannot be shared out: an error for all. In
 * batches it can, however small: what DATA shares out is N parts of each batch, never fewer than there
 * are pipelines. */
static void t30_five_numbers_on_ten_pipelines(void **state)
{
    (void)state;
    ls_strategy *s = pipelines_of(10, 10);
    LS_FRAME {
        ls_dataset *five = ls_range(0, 5, 1);
        assert_null(ls_distribute(s, five));
        REFUSED(LS_INVALID, "ls_distribute", "batch");
        GIVES(ls_distribute(s, ls_batch(five, 5)), 10, "[0][1][2][3][4][][][][][]");
        GIVES(ls_distribute(s, ls_batch(five, 4)), 10, "[0][1][2][3][][][][][][]",
              "[4][][][][][][][][][]");
    }
    ls_strategy_free(s);
}

/* ---- pipelines that differ ------------------------------------------------------------------ */

static ls_dataset *shorter_later(const ls_input_context *c, void *user)
{
    (void)user;
    return ls_batch(ls_range(100 * c->input_pipeline_id,
                             100 * c->input_pipeline_id + 7 - 4 * c->input_pipeline_id, 1),
                    2);
}

static void pipelines_that_end_first(void **state)
{
    (void)state;
    ls_strategy *s = pipelines_of(2, 2);
    LS_FRAME {
        ls_dataset *d = ls_distribute_from_function(s, shorter_later, NULL);
        for (int epoch = 0; epoch < 2; epoch++)
            GIVES(d, 2, "[0 1][100 101]", "[2 3][102]", "[4 5][]", "[6][]");
    }
    ls_strategy_free(s);
}

/* All pipelines go by one order, another one in each epoch, and every number comes once. */
static void epochs_of_pipelines(void **state)
{
    (void)state;
    for (int pipelines = 1; pipelines <= 3; pipelines++) {
        ls_strategy *s = pipelines_of(3 * pipelines, pipelines);
        LS_FRAME {
            ls_dataset *d = ls_distribute(s, ls_batch(ls_shuffle(ls_range(0, 30, 1), 30, 1), 10));
            int64_t order[3][30];
            for (int epoch = 0; epoch < 3; epoch++) {
                int n = 0, seen = 0;
                LS_FOR_EACH (v, d)
                    for (int r = 0; r < 3 * pipelines; r++) {
                        int64_t rows[30];
                        int here = numbers_of(ls_leaf_tensor(ls_select(v, r)), rows, 30);
                        for (int i = 0; i < here && n < 30; i++) {
                            order[epoch][n++] = rows[i];
                            seen |= 1 << rows[i];
                        }
                    }
                assert_int_equal(n, 30);
                assert_int_equal(seen, (1 << 30) - 1);
                for (int before = 0; before < epoch; before++)
                    assert_memory_not_equal(order[before], order[epoch], sizeof *order);
            }
        }
        ls_strategy_free(s);
    }
    assert_int_equal(ls_error(), LS_OK);
}

/* ---- structure ------------------------------------------------------------------------------ */

static ls_value *square(ls_value *element, void *user)
{
    (void)user;
    int64_t n = ls_to_int(ls_leaf_tensor(element));
    return ls_leaf(ls_scalar_int(LS_I64, n * n));
}

static ls_dataset *with_squares(void)
{
    ls_dataset *squares = ls_map(ls_range(0, 10, 1), LS_MAP(.fn = square, .spec = "i64[]"));
    return ls_zip(2, (ls_dataset *[]){ ls_range(0, 10, 1), squares });
}

static void t50_lists_are_split(void **state)
{
    (void)state;
    ls_strategy *s = pipelines_of(2, 1);
    LS_FRAME {
        GIVES(ls_distribute(s, ls_batch(with_squares(), 2)), 2, "[0; 0][1; 1]", "[2; 4][3; 9]",
              "[4; 16][5; 25]", "[6; 36][7; 49]", "[8; 64][9; 81]");
    }
    ls_strategy_free(s);
}

#define TEST(f) cmocka_unit_test_setup(f, clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_rule),
        TEST(t20_batch_sizes_of_pipelines),
        TEST(t30_a_long_range_is_shared_by_data),
        TEST(t30_five_numbers_on_ten_pipelines),
        TEST(pipelines_that_end_first),
        TEST(epochs_of_pipelines),
        TEST(t50_lists_are_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
