/*
 * Distributed datasets: the cases that CASES names, in which every number of every replica is told.
 */
#include "data/distribute_test_support.h"

static ls_dataset *range_batch(int64_t n, int64_t batch)
{
    return ls_batch(ls_range(0, n, 1), batch);
}

static void t18_batches_are_split(void **state)
{
    (void)state;
    ls_strategy *s = strategy_of(1, 2, false);
    LS_FRAME {
        ls_dataset *d = ls_distribute(s, range_batch(100, 10));
        assert_string_equal(ls_dataset_text(d), "i64[5]");
        assert_int_equal(ls_cardinality(d), 10);
        ls_iterator *it = ls_iterate(d);
        for (int round = 0; round < 2; round++) {
            for (int64_t k = 0; k < 10; k++) {
                ls_value *step = NULL;
                assert_int_equal(ls_next(it, &step), LS_OK);
                assert_int_equal(ls_spread_of(step), LS_SPREAD_PER_REPLICA);
                assert_int_equal(ls_components(step), 2);
                for (int r = 0; r < 2; r++) {
                    const ls_tensor *t = ls_leaf_tensor(ls_select(step, r));
                    assert_string_equal(ls_describe(t), "i64[5]");
                    for (int64_t i = 0; i < 5; i++)
                        assert_int_equal(((const int64_t *)ls_data(t))[i], 10 * k + 5 * r + i);
                }
            }
            ls_value *none = NULL;
            assert_int_equal(ls_next(it, &none), LS_END);
            assert_int_equal(ls_rewind(it), LS_OK);
        }
        ls_iterator_free(it);
    }
    free_strategy(s);
}

static void d1_d2_d3_uneven_and_partial_batches(void **state)
{
    (void)state;
    LS_FRAME {
        ls_strategy *s = strategy_of(1, 2, false);
        ls_dataset *d = ls_distribute(s, range_batch(14, 8));
        assert_string_equal(ls_dataset_text(d), "i64[?]");
        assert_int_equal(ls_cardinality(d), 2);
        expect_steps(d, 2, "[0 1 2 3 | 4 5 6 7][8 9 10 11 | 12 13]");
        expect_steps(ls_distribute(s, ls_batch_full(ls_range(0, 14, 1), 8)), 2,
                     "[0 1 2 3 | 4 5 6 7]");
        expect_steps(ls_distribute(s, veiled(range_batch(14, 8), &veil_stage)), 2,
                     "[0 1 2 3 | 4 5 6 7][8 9 10 | 11 12 13]");
        free_strategy(s);
        s = strategy_of(1, 4, false);
        expect_steps(ls_distribute(s, range_batch(10, 8)), 4,
                     "[0 1 | 2 3 | 4 5 | 6 7][8 9 |  |  | ]");
        expect_steps(ls_distribute(s, range_batch(10, 10)), 4, "[0 1 2 | 3 4 5 | 6 7 | 8 9]");
        expect_steps(ls_distribute(s, range_batch(5, 5)), 4, "[0 1 | 2 | 3 | 4]");
        free_strategy(s);
        s = strategy_of(1, 5, false);
        expect_steps(ls_distribute(s, range_batch(4, 4)), 5, "[0 | 1 | 2 | 3 | ]");
        free_strategy(s);
    }
}

static ls_value *same(ls_value *element, void *user)
{
    (void)user;
    return element;
}

static bool any(ls_value *element, void *user)
{
    (void)element, (void)user;
    return true;
}

/* Stages that keep batches as they are hide no B; a map may have changed it, unless it tells. */
static void batches_are_known_through_stages(void **state)
{
    (void)state;
    ls_strategy *s = strategy_of(1, 2, false);
    const char *known = "[0 1 2 3 | 4 5 6 7][8 9 10 11 | 12 13]";
    LS_FRAME {
        ls_dataset *d = range_batch(14, 8);
        ls_dataset *keep[] = { ls_filter(d, any, NULL),
                               ls_prefetch(d, 2),
                               ls_repeat(d, 1),
                               ls_shard(d, 1, 0),
                               ls_shuffle(d, 1, 3),
                               ls_skip(d, 0),
                               ls_take(d, 2),
                               ls_with_auto_shard(d, LS_AUTO_SHARD_OFF),
                               ls_padded_batch(ls_range(0, 14, 1), 8, NULL),
                               ls_concatenate(ls_take(d, 1), ls_skip(d, 1)),
                               ls_zip(2, (ls_dataset *[]){ d, d }) };
        for (size_t i = 0; i < sizeof keep / sizeof *keep; i++)
            expect_steps(ls_distribute(s, keep[i]), 2, known);
        const char *unknown = "[0 1 2 3 | 4 5 6 7][8 9 10 | 11 12 13]";
        expect_steps(ls_distribute(s, ls_map(d, LS_MAP(.fn = same))), 2, unknown);
        ls_dataset *other = ls_concatenate(ls_take(d, 1), range_batch(3, 4));
        expect_steps(ls_distribute(s, other), 2, "[0 1 2 3 | 4 5 6 7][0 1 | 2]");
        d = ls_map(range_batch(8, 4), LS_MAP(.fn = same, .spec = "i64[4]"));
        assert_string_equal(ls_dataset_text(ls_distribute(s, d)), "i64[2]");
    }
    free_strategy(s);
}

/* ---- a dataset for each pipeline ----------------------------------------------------------------- */

typedef struct made {
    int64_t n, batch;
    bool full, shard;
    int asked;
} made;

static ls_dataset *make(const ls_input_context *c, void *user)
{
    made *m = user;
    assert_int_equal(c->input_pipeline_id, m->asked++);
    ls_dataset *d = ls_range(0, m->n, 1);
    d = m->full ? ls_batch_full(d, m->batch) : ls_batch(d, m->batch);
    return m->shard ? ls_shard(d, c->num_input_pipelines, c->input_pipeline_id) : d;
}

static void t19_uneven_batches(void **state)
{
    (void)state;
    ls_strategy *s = strategy_of(1, 2, false), *whole = strategy_of(1, 2, true);
    LS_FRAME {
        made m = { .n = 9, .batch = 2 };
        ls_dataset *d = ls_distribute_from_function(s, make, &m);
        assert_int_equal(ls_cardinality(d), 3);
        assert_string_equal(ls_dataset_text(d), "i64[?]");
        expect_steps(d, 2, "[0 1 | 2 3][4 5 | 6 7][8 | ]");
        m = (made){ .n = 9, .batch = 2, .full = true };
        expect_steps(ls_distribute_from_function(s, make, &m), 2, "[0 1 | 2 3][4 5 | 6 7]");
        m = (made){ .n = 9, .batch = 2 };
        d = ls_distribute_from_function(whole, make, &m);
        assert_int_equal(ls_cardinality(d), 2);
        expect_steps(d, 2, "[0 1 | 2 3][4 5 | 6 7]");
        assert_int_equal(m.asked, 1);
    }
    free_strategy(s);
    free_strategy(whole);
}

static void t23_each_shards_for_itself(void **state)
{
    (void)state;
    ls_strategy *s = strategy_of(2, 1, false);
    LS_FRAME {
        made m = { .n = 14, .batch = 4, .shard = true };
        expect_steps(ls_distribute_from_function(s, make, &m), 2,
                     "[0 1 2 3 | 4 5 6 7][8 9 10 11 | 12 13]");
        assert_int_equal(m.asked, 2);
    }
    free_strategy(s);
}

static ls_dataset *t32_fn(const ls_input_context *c, void *user)
{
    (void)user;
    assert_int_equal(c->num_input_pipelines, 2);
    assert_int_equal(c->num_replicas_in_sync, 2);
    int64_t n = ls_per_replica_batch_size(c, 10);
    assert_int_equal(n, 5);
    return ls_shard(ls_batch(ls_repeat(ls_range(0, 100, 1), -1), n), 2, c->input_pipeline_id);
}

static void t32_input_context(void **state)
{
    (void)state;
    ls_strategy *s = strategy_of(2, 1, false);
    LS_FRAME {
        ls_dataset *d = ls_distribute_from_function(s, t32_fn, NULL);
        assert_int_equal(ls_cardinality(d), LS_INFINITE);
        assert_string_equal(ls_dataset_text(d), "i64[5]");
        ls_iterator *it = ls_iterate(d);
        ls_value *step = NULL;
        assert_int_equal(ls_next(it, &step), LS_OK);
        for (int r = 0; r < 2; r++) {
            ls_tensor *t = ls_leaf_tensor(ls_select(step, r));
            assert_int_equal(ls_to_int(ls_sum(t, LS_ALL_AXES, false)), r == 0 ? 10 : 35);
        }
        ls_iterator_free(it);
    }
    free_strategy(s);
    ls_input_context c = { .num_input_pipelines = 1, .num_replicas_in_sync = 2 };
    assert_int_equal(ls_per_replica_batch_size(&c, 10), 5);
    assert_int_equal(ls_per_replica_batch_size(&c, 7), 0);
    failed(LS_INVALID);
    assert_int_equal(ls_per_replica_batch_size(&c, 0), 0);
    failed(LS_INVALID);
    assert_int_equal(ls_per_replica_batch_size(NULL, 8), 0);
    failed(LS_INVALID);
    c.num_replicas_in_sync = 0;
    assert_int_equal(ls_per_replica_batch_size(&c, 8), 0);
    failed(LS_INVALID);
}

/* ---- several pipelines ---------------------------------------------------------------------------- */

static ls_dataset *shared(int64_t n, int64_t batch, ls_auto_shard policy)
{
    return ls_with_auto_shard(range_batch(n, batch), policy);
}

static void t22_t24_data(void **state)
{
    (void)state;
    ls_strategy *s = strategy_of(2, 1, false);
    LS_FRAME {
        ls_dataset *d = ls_distribute(s, shared(14, 8, LS_AUTO_SHARD_DATA));
        assert_int_equal(ls_cardinality(d), 2);
        expect_steps(d, 2, "[0 1 2 3 | 4 5 6 7][8 9 10 | 11 12 13]");
        expect_steps(ls_distribute(s, shared(9, 2, LS_AUTO_SHARD_AUTO)), 2,
                     "[0 | 1][2 | 3][4 | 5][6 | 7][8 | ]");
        expect_steps(ls_distribute(s, ls_with_auto_shard(ls_batch_full(ls_range(0, 9, 1), 2),
                                                         LS_AUTO_SHARD_DATA)),
                     2, "[0 | 1][2 | 3][4 | 5][6 | 7]");
    }
    free_strategy(s);
    s = strategy_of(2, 1, true);
    LS_FRAME {
        ls_dataset *d = ls_distribute(s, shared(9, 2, LS_AUTO_SHARD_DATA));
        assert_int_equal(ls_cardinality(d), LS_UNKNOWN);
        expect_steps(d, 2, "[0 | 1][2 | 3][4 | 5][6 | 7]");
        d = ls_distribute(s, shared(3, 1, LS_AUTO_SHARD_DATA)); /* the second never has any */
        expect_steps(d, 2, "[0 | ][1 | ][2 | ]");
        /* what has no end ends where a batch is not whole */
        d = ls_repeat(range_batch(5, 3), -1);
        for (int policy = LS_AUTO_SHARD_DATA; policy <= LS_AUTO_SHARD_OFF; policy++) {
            ls_dataset *out = ls_distribute(s, ls_with_auto_shard(d, (ls_auto_shard)policy));
            assert_int_equal(ls_cardinality(out), LS_UNKNOWN);
        }
    }
    free_strategy(s);
    s = strategy_of(2, 2, false);
    LS_FRAME
        expect_steps(ls_distribute(s, shared(8, 4, LS_AUTO_SHARD_DATA)), 4,
                     "[0 | 2 | 1 | 3][4 | 6 | 5 | 7]");
    free_strategy(s);
}

static void t27_off(void **state)
{
    (void)state;
    ls_strategy *s = strategy_of(2, 1, false);
    LS_FRAME {
        expect_steps(ls_distribute(s, shared(12, 8, LS_AUTO_SHARD_OFF)), 2,
                     "[0 1 2 3 | 0 1 2 3][4 5 6 7 | 4 5 6 7][8 9 10 11 | 8 9 10 11]");
        ls_dataset *hidden = ls_map(shared(12, 8, LS_AUTO_SHARD_OFF), LS_MAP(.fn = same));
        expect_steps(ls_distribute(s, hidden), 2,
                     "[0 1 2 3 | 0 1 2 3][4 5 6 7 | 4 5 6 7][8 9 | 8 9][10 11 | 10 11]");
        ls_dataset *d = ls_distribute(s, shared(16, 8, LS_AUTO_SHARD_OFF));
        assert_string_equal(ls_dataset_text(d), "i64[4]");
        assert_int_equal(ls_cardinality(d), 4);
    }
    free_strategy(s);
    s = strategy_of(2, 2, false); /* T20's sizes, with rows */
    LS_FRAME
        expect_steps(ls_distribute(s, shared(7, 7, LS_AUTO_SHARD_OFF)), 4,
                     "[0 1 | 2 3 | 0 1 | 2][4 5 | 6 | 3 4 | 5 6]");
    free_strategy(s);
}

static int64_t five(int64_t file)
{
    (void)file;
    return 5;
}

/* Where pipelines may end one after the other, some replicas may have no rows. */
static void rows_are_known_where_all_have_as_many(void **state)
{
    (void)state;
    static const char *const want[] = { "i64[?]", "i64[?]", "i64[2]", "i64[2]" };
    ls_strategy *s = strategy_of(2, 1, false);
    LS_FRAME {
        ls_dataset *d = ls_batch_full(read_files(ls_range(0, 3, 1), five), 4);
        for (int policy = 0; policy < 4; policy++) {
            ls_dataset *shared_out = ls_with_auto_shard(d, (ls_auto_shard)policy);
            assert_string_equal(ls_dataset_text(ls_distribute(s, shared_out)), want[policy]);
        }
        d = ls_distribute(s, ls_batch(ls_repeat(ls_range(0, 7, 1), -1), 4));
        assert_string_equal(ls_dataset_text(d), "i64[2]");
        assert_int_equal(ls_cardinality(d), LS_INFINITE);
    }
    free_strategy(s);
}

static void t29_ranges_on_two_workers(void **state)
{
    (void)state;
    ls_strategy *s = strategy_of(2, 1, false);
    LS_FRAME {
        expect_steps(ls_distribute(s, range_batch(4, 2)), 2, "[0 | 1][2 | 3]");
        expect_steps(ls_distribute(s, shared(4, 2, LS_AUTO_SHARD_OFF)), 2,
                     "[0 | 0][1 | 1][2 | 2][3 | 3]");
    }
    free_strategy(s);
}

/* ---- structures ------------------------------------------------------------------------------------ */

/* Two leaves: numbers and their squares. */
static ls_value *squares(int n)
{
    int64_t x[64], y[64];
    for (int i = 0; i < n; i++) {
        x[i] = i;
        y[i] = (int64_t)i * i;
    }
    return ls_tensors(
        2, (ls_tensor *[]){ ls_from(LS_I64, LS_DIMS(n), x), ls_from(LS_I64, LS_DIMS(n), y) });
}

static ls_dataset *t50_fn(const ls_input_context *c, void *user)
{
    (void)c, (void)user;
    ls_value *both = squares(10);
    return ls_zip(2,
                  (ls_dataset *[]){ ls_slices(ls_child(both, 0)), ls_slices(ls_child(both, 1)) });
}

static void t50_tuples_of_scalars(void **state)
{
    (void)state;
    ls_strategy *s = strategy_of(1, 2, false);
    LS_FRAME {
        ls_dataset *d = ls_distribute_from_function(s, t50_fn, NULL);
        assert_int_equal(ls_cardinality(d), 5);
        ls_iterator *it = ls_iterate(d);
        for (int64_t i = 0; i < 10; i += 2) {
            ls_value *step = NULL;
            assert_int_equal(ls_next(it, &step), LS_OK);
            for (int r = 0; r < 2; r++) {
                ls_value *own = ls_select(step, r);
                assert_int_equal(ls_to_int(ls_item(own, 0)), i + r);
                assert_int_equal(ls_to_int(ls_item(own, 1)), (i + r) * (i + r));
            }
        }
        ls_value *none = NULL;
        assert_int_equal(ls_next(it, &none), LS_END);
        ls_iterator_free(it);
    }
    free_strategy(s);
}

static void t50_numpy_data(void **state)
{
    (void)state;
    ls_strategy *s = strategy_of(1, 2, false);
    LS_FRAME {
        float x[12];
        int64_t y[6];
        for (int i = 0; i < 12; i++)
            x[i] = (float)i;
        for (int i = 0; i < 6; i++)
            y[i] = i;
        ls_value *arrays = ls_dict(2, (const char *[]){ "x", "y" },
                                   (ls_value *[]){ ls_leaf(ls_from(LS_F32, LS_DIMS(6, 2), x)),
                                                   ls_leaf(ls_from(LS_I64, LS_DIMS(6), y)) });
        ls_dataset *d = ls_batch(ls_repeat(ls_make_numpy_dataset(s, arrays), 2), 6);
        ls_iterator *it = ls_make_dataset_iterator(s, d);
        ls_value *step = NULL;
        assert_int_equal(ls_next(it, &step), LS_STATE);
        failed(LS_STATE);
        assert_null(ls_position(it));
        failed(LS_STATE);
        for (int round = 0; round < 2; round++) {
            assert_int_equal(ls_initialize(it), LS_OK);
            for (int epoch = 0; epoch < 2; epoch++) {
                assert_int_equal(ls_next(it, &step), LS_OK);
                ls_tensor *all = ls_gather_replicas(s, ls_get(step, "x"), 0);
                assert_string_equal(ls_describe(all), "f32[6,2]");
                assert_memory_equal(ls_data(all), x, sizeof x);
                all = ls_gather_replicas(s, ls_get(step, "y"), 0);
                assert_memory_equal(ls_data(all), y, sizeof y);
            }
            assert_int_equal(ls_next(it, &step), LS_END);
        }
        ls_iterator_free(it);
    }
    free_strategy(s);
}

/* What replicas get lies where the batch lies. */
static void nothing_is_copied(void **state)
{
    (void)state;
    ls_strategy *s = strategy_of(1, 4, false);
    LS_FRAME {
        ls_iterator *it = ls_iterate(ls_distribute(s, range_batch(8, 8)));
        ls_value *step = NULL;
        assert_int_equal(ls_next(it, &step), LS_OK);
        const int64_t *first = ls_data(ls_leaf_tensor(ls_select(step, 0)));
        for (int r = 0; r < 4; r++)
            assert_ptr_equal(ls_data(ls_leaf_tensor(ls_select(step, r))), first + 2 * r);
        ls_iterator_free(it); /* what was given lives on */
        assert_int_equal(((const int64_t *)ls_data(ls_leaf_tensor(ls_select(step, 3))))[1], 7);
    }
    free_strategy(s);
}

/* A batch that lasts for several steps is told of. */
static void what_is_held_is_declared(void **state)
{
    (void)state;
    ls_strategy *s = strategy_of(2, 1, false);
    LS_FRAME {
        ls_dataset *d = ls_with_auto_shard(range_batch(12, 8), LS_AUTO_SHARD_OFF);
        ls_iterator *it = ls_iterate(ls_distribute(s, d));
        static const size_t rows[] = { 8, 0, 0 };
        for (int i = 0; i < 3; i++) {
            ls_value *step = NULL;
            assert_int_equal(ls_next(it, &step), LS_OK);
            assert_int_equal(ls_iterator_bytes(it), 2 * 8 * rows[i]);
        }
        ls_iterator_free(it);
    }
    free_strategy(s);
}

static void strings_are_split(void **state)
{
    (void)state;
    ls_strategy *s = strategy_of(1, 3, false);
    LS_FRAME {
        const char *words[] = { "a", "bc", "", "def", "g" };
        ls_dataset *d = ls_slices(ls_leaf(ls_from_strings(LS_DIMS(5), (const void **)words, NULL)));
        ls_iterator *it = ls_iterate(ls_distribute(s, ls_batch(d, 4)));
        const int counts[2][3] = { { 2, 1, 1 }, { 1, 0, 0 } };
        int next = 0;
        for (int k = 0; k < 2; k++) {
            ls_value *step = NULL;
            assert_int_equal(ls_next(it, &step), LS_OK);
            for (int r = 0; r < 3; r++) {
                const ls_tensor *t = ls_leaf_tensor(ls_select(step, r));
                assert_int_equal(ls_dim(t, 0), counts[k][r]);
                for (int64_t i = 0; i < counts[k][r]; i++, next++) {
                    const void *text;
                    size_t length;
                    assert_int_equal(ls_string_at(t, i, &text, &length), LS_OK);
                    assert_int_equal(length, strlen(words[next]));
                    assert_memory_equal(text, words[next], length);
                }
            }
        }
        assert_int_equal(next, 5);
        ls_iterator_free(it);
    }
    free_strategy(s);
}

/* Rows of arrays are batches as they are, and are not copied either. */
static void arrays_are_split_where_they_lie(void **state)
{
    (void)state;
    ls_strategy *s = strategy_of(1, 2, false);
    LS_FRAME {
        int64_t x[6] = { 0, 1, 2, 3, 4, 5 };
        ls_dataset *d = ls_slices(ls_leaf(ls_from(LS_I64, LS_DIMS(2, 3), x)));
        expect_steps(ls_distribute(s, d), 2, "[0 1 | 2][3 4 | 5]");
    }
    free_strategy(s);
}

static void one_replica_has_plain_values(void **state)
{
    (void)state;
    ls_strategy *s = strategy_of(1, 1, false);
    LS_FRAME {
        ls_iterator *it = ls_iterate(ls_distribute(s, range_batch(3, 2)));
        ls_value *step = NULL;
        assert_int_equal(ls_next(it, &step), LS_OK);
        assert_int_equal(ls_spread_of(step), LS_SPREAD_PLAIN);
        assert_string_equal(ls_describe(ls_leaf_tensor(step)), "i64[2]");
        ls_iterator_free(it);
        expect_steps(ls_distribute(ls_default_strategy(), range_batch(3, 2)), 1, "[0 1][2]");
    }
    free_strategy(s);
}

static void replicas_have_theirs_on_their_device(void **state)
{
    (void)state;
    ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = "/cpu:0,/cpu:1", .prefetch = -1));
    LS_FRAME {
        ls_iterator *it = ls_iterate(ls_distribute(s, range_batch(4, 4)));
        ls_value *step = NULL;
        assert_int_equal(ls_next(it, &step), LS_OK);
        for (int r = 0; r < 2; r++)
            assert_string_equal(ls_device_of(ls_leaf_tensor(ls_select(step, r))),
                                ls_worker_devices(s, NULL)[r]);
        ls_iterator_free(it);
    }
    free_strategy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(t18_batches_are_split, clean),
        cmocka_unit_test_setup(d1_d2_d3_uneven_and_partial_batches, clean),
        cmocka_unit_test_setup(batches_are_known_through_stages, clean),
        cmocka_unit_test_setup(t19_uneven_batches, clean),
        cmocka_unit_test_setup(t22_t24_data, clean),
        cmocka_unit_test_setup(t23_each_shards_for_itself, clean),
        cmocka_unit_test_setup(t27_off, clean),
        cmocka_unit_test_setup(rows_are_known_where_all_have_as_many, clean),
        cmocka_unit_test_setup(t29_ranges_on_two_workers, clean),
        cmocka_unit_test_setup(t32_input_context, clean),
        cmocka_unit_test_setup(t50_tuples_of_scalars, clean),
        cmocka_unit_test_setup(t50_numpy_data, clean),
        cmocka_unit_test_setup(nothing_is_copied, clean),
        cmocka_unit_test_setup(what_is_held_is_declared, clean),
        cmocka_unit_test_setup(strings_are_split, clean),
        cmocka_unit_test_setup(arrays_are_split_where_they_lie, clean),
        cmocka_unit_test_setup(one_replica_has_plain_values, clean),
        cmocka_unit_test_setup(replicas_have_theirs_on_their_device, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
