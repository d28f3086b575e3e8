/*
 * Batches of a distributed dataset whose rows are copied by the replicas that get them: the same rows, however late
 * somebody looks, whatever a map made of them, and wherever they came from.
 */
#include "data/distribute_test_support.h"
#include "tensor/tensor.h"

enum { WIDE = 40 }; /* numbers of a row: enough that it is left where it is */

/* Row i of `rows`: 1000 i, 1000 i + 1, ... */
static ls_tensor *thousands(int64_t first, int64_t rows)
{
    int *x = malloc((size_t)(rows * WIDE) * sizeof *x);
    for (int64_t i = 0; i < rows * WIDE; i++)
        x[i] = (int)(1000 * (first + i / WIDE) + i % WIDE);
    ls_tensor *t = ls_from(LS_I32, LS_DIMS(rows, WIDE), x);
    free(x);
    return t;
}

static ls_dataset *rows_of(int64_t first, int64_t rows)
{
    return ls_slices(ls_leaf(thousands(first, rows)));
}

static void expect_row(const ls_tensor *t, int64_t row, int64_t want)
{
    const int *x = (const int *)ls_data(t) + row * WIDE;
    for (int k = 0; k < WIDE; k++)
        assert_int_equal(x[k], 1000 * want + k);
}

/* Rows 0, 1, ... of all steps, replica after replica. */
static int64_t expect_in_order(ls_dataset *d, int replicas)
{
    int64_t next = 0;
    LS_FOR_EACH (step, d)
        for (int r = 0; r < replicas; r++) {
            ls_tensor *t = ls_leaf_tensor(ls_select(step, r));
            for (int64_t i = 0; i < ls_dim(t, 0); i++)
                expect_row(t, i, next++);
        }
    assert_int_equal(ls_error(), LS_OK);
    return next;
}

static void in_order_and_in_parts(void **state)
{
    (void)state;
    static const int prefetch[] = { -1, 0, 3 };
    for (int replicas = 1; replicas <= 4; replicas++)
        for (int i = 0; i < 3; i++) {
            ls_strategy *s = strategy_ahead(1, replicas, prefetch[i]);
            LS_FRAME {
                ls_dataset *d = ls_batch(rows_of(0, 23), 2 * replicas);
                assert_int_equal(expect_in_order(ls_distribute(s, d), replicas), 23);
                d = ls_batch(ls_concatenate(rows_of(0, 7), rows_of(7, 9)), 4 * replicas);
                assert_int_equal(expect_in_order(ls_distribute(s, d), replicas), 16);
            }
            free_strategy(s);
        }
}

static bool waits(const ls_value *step, int replica)
{
    return ls__storage_waits(ls_leaf_tensor(ls_select(step, replica))->storage);
}

/* Nobody looked before the iterator and its data were gone. */
static void long_after_the_iterator(void **state)
{
    (void)state;
    const size_t before = memory();
    for (int replicas = 1; replicas <= 2; replicas++) {
        ls_strategy *s = strategy_ahead(1, replicas, 0);
        ls_value *kept[3] = { 0 };
        LS_FRAME {
            ls_iterator *it = ls_iterate(ls_distribute(s, ls_batch(rows_of(0, 12), 4)));
            for (int i = 0; i < 3; i++) {
                ls_value *step = NULL;
                assert_int_equal(ls_next(it, &step), LS_OK);
                for (int r = 0; r < replicas; r++)
                    assert_true(waits(step, r));
                kept[i] = ls_value_keep(step);
            }
            ls_iterator_free(it);
        }
        LS_FRAME
            for (int i = 0; i < 2; i++) /* the third is never looked at */
                for (int64_t row = 0; row < 4; row++)
                    expect_row(ls_leaf_tensor(ls_select(kept[i], (int)row * replicas / 4)),
                               row % (4 / replicas), 4 * i + row);
        for (int i = 0; i < 3; i++)
            ls_value_drop(kept[i]);
        free_strategy(s);
    }
    assert_int_equal(memory(), before);
}

/* ---- maps --------------------------------------------------------------------------------------- */

static ls_value *with_other_rows(ls_value *batch, void *user)
{
    (void)user; /* 4 rows of 60 where there were 6 of 40: each ends within a row */
    return ls_leaf(ls_reshape(ls_leaf_tensor(batch), LS_DIMS(4, 60)));
}

static ls_value *as_it_is(ls_value *batch, void *user)
{
    (void)user;
    return batch;
}

static ls_value *looked_at(ls_value *batch, void *user)
{
    const ls_tensor *t = ls_leaf_tensor(batch);
    *(int64_t *)user += ((const int *)ls_data(t))[0];
    return batch;
}

static ls_value *negative(ls_value *batch, void *user)
{
    (void)user;
    return ls_leaf(ls_neg(ls_leaf_tensor(batch)));
}

static void what_maps_make_of_them(void **state)
{
    (void)state;
    ls_strategy *s = strategy_ahead(1, 2, 0), *four = strategy_ahead(1, 4, 0);
    LS_FRAME {
        int64_t sum = 0;
        ls_dataset *d = ls_batch(rows_of(0, 12), 4);
        LS_FOR_EACH (step, ls_distribute(s, ls_map(d, LS_MAP(.fn = as_it_is))))
            assert_true(waits(step, 0) && waits(step, 1));
        assert_int_equal(expect_in_order(ls_distribute(s, ls_map(d, LS_MAP(.fn = as_it_is))), 2),
                         12);
        ls_dataset *looking = ls_map(d, LS_MAP(.fn = looked_at, .user = &sum));
        assert_int_equal(expect_in_order(ls_distribute(s, looking), 2), 12);
        assert_int_equal(sum, 0 + 4000 + 8000);
        ls_dataset *twice = ls_map(ls_map(d, LS_MAP(.fn = negative)), LS_MAP(.fn = negative));
        assert_int_equal(expect_in_order(ls_distribute(s, twice), 2), 12);
        d = ls_map(ls_batch(rows_of(0, 6), 6), LS_MAP(.fn = with_other_rows));
        int64_t next = 0;
        LS_FOR_EACH (step, ls_distribute(four, d))
            for (int r = 0; r < 4; r++) {
                const int *x = ls_data(ls_leaf_tensor(ls_select(step, r)));
                for (int k = 0; k < 60; k++, next++)
                    assert_int_equal(x[k], 1000 * (next / WIDE) + next % WIDE);
            }
        assert_int_equal(ls_error(), LS_OK);
        assert_int_equal(next, 240);
    }
    free_strategy(four);
    free_strategy(s);
}

/* ---- into steps, and other datasets -------------------------------------------------------------- */

static ls_value *add_up(ls_value *batch, void *user)
{
    (void)user;
    return ls_leaf(ls_sum(ls_cast(ls_leaf_tensor(batch), LS_F64), LS_ALL_AXES, false));
}

static ls_value *first_number(ls_value *batch, void *user)
{
    (void)user; /* and what the step got, as it is */
    ls_tensor *x = ls_leaf_tensor(batch);
    return ls_tensors(
        2, (ls_tensor *[]){ ls_slice(x, 2, (int64_t[]){ 0, 0 }, (int64_t[]){ 1, 1 }), x });
}

static void into_steps(void **state)
{
    (void)state;
    for (int traced = 0; traced < 2; traced++) {
        ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = "/cpu:0,/cpu:1", .replicas = 4));
        LS_FRAME {
            ls_function *sum = ls_trace(add_up, NULL), *first = ls_trace(first_number, NULL);
            int64_t next = 0;
            LS_FOR_EACH (batch, ls_distribute(s, ls_batch(rows_of(0, 40), 8))) {
                ls_value *sums =
                    traced ? ls_run(s, sum, batch) : ls_run_eager(s, add_up, NULL, batch);
                ls_value *firsts =
                    traced ? ls_run(s, first, batch) : ls_run_eager(s, first_number, NULL, batch);
                for (int r = 0; r < 4; r++, next += 2) {
                    const double want = WIDE * 1000.0 * (double)(2 * next + 1) + WIDE * (WIDE - 1);
                    ls_value *mine = ls_select(firsts, r);
                    assert_true(ls_to_double(ls_leaf_tensor(ls_select(sums, r))) == want);
                    assert_int_equal(*(const int *)ls_data(ls_item(mine, 0)), 1000 * next);
                    expect_row(ls_item(mine, 1), 1, next + 1);
                }
            }
            assert_int_equal(ls_error(), LS_OK);
            assert_int_equal(next, 40);
            ls_function_free(sum);
            ls_function_free(first);
        }
        free_strategy(s);
    }
}

/* A generator that gives what a distributed dataset gave: its elements are looked at by stages. */
static void into_other_datasets(void **state)
{
    (void)state;
    ls_strategy *s = strategy_ahead(1, 1, 0);
    LS_FRAME {
        ls_iterator *it = ls_iterate(ls_distribute(s, ls_batch(rows_of(0, 12), 4)));
        ls_dataset *d = ls_generate(LS_GENERATOR(.next = ls_next_of, .user = it));
        assert_int_equal(expect_in_order(ls_distribute(s, ls_batch(ls_unbatch(d), 3)), 1), 12);
        ls_iterator_free(it);
    }
    free_strategy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(in_order_and_in_parts, clean),
        cmocka_unit_test_setup(long_after_the_iterator, clean),
        cmocka_unit_test_setup(what_maps_make_of_them, clean),
        cmocka_unit_test_setup(into_steps, clean),
        cmocka_unit_test_setup(into_other_datasets, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
