/*
 * Distributed datasets: what is refused, what failures of the data do, and replicas that have nothing.
 */
#include "data/distribute_test_support.h"

/* ---- what is refused ---------------------------------------------------------------------------- */

static ls_value *two(ls_tensor *a, ls_tensor *b)
{
    return ls_tensors(2, (ls_tensor *[]){ a, b });
}

static void datasets_without_rows(void **state)
{
    (void)state;
    for (int each = 1; each <= 2; each++) {
        ls_strategy *s = strategy_of(1, each, false);
        LS_FRAME {
            assert_null(ls_distribute(s, ls_range(0, 5, 1)));
            assert_non_null(strstr(ls_error_text(), "not batched"));
            assert_non_null(strstr(ls_error_hint(), "ls_batch"));
            failed(LS_INVALID);
            assert_null(ls_make_dataset_iterator(s, ls_range(0, 5, 1)));
            assert_non_null(strstr(ls_error_text(), "ls_make_dataset_iterator"));
            failed(LS_INVALID);
            ls_tensor *scalar = ls_scalar_int(LS_I64, 3), *row = ls_zeros(LS_F32, LS_DIMS(4));
            assert_null(ls_distribute(s, ls_once(two(row, scalar))));
            failed(LS_INVALID);
            assert_null(ls_distribute(s, NULL));
            failed(LS_INVALID);
            /* found out when it is seen; what comes after is given */
            ls_iterator *it = ls_iterate(ls_distribute(s, veiled(ls_range(0, 2, 1), &veil_stage)));
            ls_value *step = NULL;
            for (int i = 0; i < 2; i++) {
                assert_int_equal(ls_next(it, &step), LS_INVALID);
                failed(LS_INVALID);
            }
            assert_int_equal(ls_next(it, &step), LS_END);
            ls_iterator_free(it);
        }
        free_strategy(s);
    }
}

static void components_of_different_rows(void **state)
{
    (void)state;
    ls_strategy *s = strategy_of(1, 2, false);
    LS_FRAME {
        ls_dataset *d = ls_once(two(ls_zeros(LS_F32, LS_DIMS(4)), ls_zeros(LS_F32, LS_DIMS(3, 4))));
        assert_null(ls_distribute(s, d));
        assert_non_null(strstr(ls_error_text(), "leaf 1"));
        failed(LS_SHAPE);
        ls_iterator *it = ls_iterate(ls_distribute(s, veiled(d, &veil_stage)));
        ls_value *step = NULL;
        assert_int_equal(ls_next(it, &step), LS_SHAPE);
        assert_non_null(strstr(ls_error_hint(), "padded"));
        failed(LS_SHAPE);
        assert_int_equal(ls_next(it, &step), LS_END);
        ls_iterator_free(it);
        it = ls_iterate(ls_distribute(s, veiled(ls_once(ls_list(0, NULL)), &veil_stage)));
        assert_int_equal(ls_next(it, &step), LS_INVALID);
        failed(LS_INVALID);
        ls_iterator_free(it);
    }
    free_strategy(s);
}

static void options_of_strategies(void **state)
{
    (void)state;
    static const int wrong[] = { 2, 4, 6, -1 };
    for (int i = 0; i < 4; i++) {
        assert_null(ls_mirrored(LS_MIRRORED(.replicas = 3, .input_pipelines = wrong[i])));
        failed(LS_INVALID);
    }
    assert_null(ls_mirrored(LS_MIRRORED(.prefetch = -2)));
    failed(LS_INVALID);
    for (int p = 0; p <= 3; p += 3)
        free_strategy(ls_mirrored(LS_MIRRORED(.replicas = 3, .input_pipelines = p)));
}

static ls_dataset *no_dataset(const ls_input_context *c, void *user)
{
    (void)c;
    return user;
}

static ls_dataset *fails_at_one(const ls_input_context *c, void *user)
{
    (void)user;
    return c->input_pipeline_id == 1 ? ls_batch(ls_range(0, 5, 1), 0)
                                     : ls_batch(ls_range(0, 5, 1), 2);
}

static ls_dataset *of_two_kinds(const ls_input_context *c, void *user)
{
    ls_dataset *d = ls_batch(ls_range(0, 4, 1), 2);
    if (c->input_pipeline_id == 1)
        d = ls_once(ls_list(1, (ls_value *[]){ ls_leaf(ls_zeros(LS_I64, LS_DIMS(2))) }));
    return user ? veiled(d, &veil_stage) : d;
}

static ls_dataset *of_two_dtypes(const ls_input_context *c, void *user)
{
    ls_dataset *d = ls_once(ls_leaf(ls_zeros(c->input_pipeline_id ? LS_F32 : LS_I64, LS_DIMS(2))));
    return user ? veiled(d, &veil_stage) : d;
}

static void input_functions_that_fail(void **state)
{
    (void)state;
    ls_strategy *s = strategy_of(2, 1, false);
    LS_FRAME {
        assert_null(ls_distribute_from_function(s, NULL, NULL));
        failed(LS_INVALID);
        assert_null(ls_distribute_from_function(s, no_dataset, NULL));
        assert_non_null(strstr(ls_error_text(), "pipeline 0"));
        failed(LS_INVALID);
        assert_null(ls_distribute_from_function(s, fails_at_one, NULL));
        assert_non_null(strstr(ls_error_text(), "pipeline 1"));
        assert_non_null(strstr(ls_error_text(), "ls_batch"));
        failed(LS_INVALID);
        ls_dataset *d =
            ls_distribute(s, ls_with_auto_shard(ls_batch(ls_range(0, 4, 1), 2), LS_AUTO_SHARD_OFF));
        assert_null(ls_distribute_from_function(s, no_dataset, d));
        assert_non_null(strstr(ls_error_text(), "distributed"));
        failed(LS_INVALID);
        assert_null(ls_distribute_from_function(s, of_two_kinds, NULL));
        failed(LS_INVALID);
        assert_null(ls_distribute_from_function(s, of_two_dtypes, NULL));
        failed(LS_SHAPE);
        ls_iterator *it = ls_iterate(ls_distribute_from_function(s, of_two_kinds, s));
        ls_value *step = NULL;
        assert_int_equal(ls_next(it, &step), LS_INVALID);
        failed(LS_INVALID);
        ls_iterator_free(it);
        it = ls_iterate(ls_distribute_from_function(s, of_two_dtypes, s));
        assert_int_equal(ls_next(it, &step), LS_SHAPE);
        failed(LS_SHAPE);
        assert_int_equal(ls_next(it, &step), LS_END);
        ls_iterator_free(it);
    }
    free_strategy(s);
}

/* ---- contexts ------------------------------------------------------------------------------------ */

static ls_dataset *any_fn(const ls_input_context *c, void *user)
{
    (void)c, (void)user;
    return ls_batch(ls_range(0, 4, 1), 2);
}

static ls_status any_source(const ls_input_context *c, void *user, ls_input_source *out)
{
    out->dataset = any_fn(c, user);
    return LS_OK;
}

/* All of them, which fail with LS_STATE. */
static void all_refuse(ls_strategy *s, ls_status want)
{
    ls_dataset *d = ls_batch(ls_range(0, 4, 1), 2);
    assert_null(ls_distribute(s, d));
    failed(want);
    assert_null(ls_distribute_from_function(s, any_fn, NULL));
    failed(want);
    assert_null(ls_make_dataset_iterator(s, d));
    failed(want);
    assert_null(ls_make_input_fn_iterator(s, any_source, NULL, LS_INPUT_PER_WORKER));
    failed(want);
    assert_null(ls_make_numpy_dataset(s, ls_leaf(ls_zeros(LS_F32, LS_DIMS(3)))));
    failed(want);
}

static ls_value *in_a_replica(ls_value *arguments, void *user)
{
    all_refuse(user, LS_STATE);
    return arguments;
}

static void contexts(void **state)
{
    (void)state;
    ls_strategy *s = strategy_of(1, 2, false), *other = strategy_of(1, 2, false);
    LS_FRAME {
        all_refuse(NULL, LS_INVALID);
        assert_non_null(ls_run_eager(s, in_a_replica, s, ls_list(0, NULL)));
        LS_SCOPE (other)
            all_refuse(s, LS_STATE);
        LS_SCOPE (s) {
            ls_dataset *d = ls_batch(ls_range(0, 4, 1), 2);
            assert_non_null(ls_distribute(s, d));
            assert_non_null(ls_distribute_from_function(s, any_fn, NULL));
        }
        assert_int_equal(ls_error_pending(), LS_OK);
    }
    free_strategy(s);
    free_strategy(other);
}

/* A dataset holds what it needs of its strategy. */
static void datasets_outlive_their_strategy(void **state)
{
    (void)state;
    ls_strategy *s = strategy_of(1, 2, false);
    LS_FRAME {
        ls_dataset *d = ls_distribute(s, ls_batch(ls_range(0, 4, 1), 4));
        free_strategy(s);
        expect_steps(d, 2, "[0 1 | 2 3]");
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

static ls_dataset *inner(ls_value *element, void *user)
{
    (void)element;
    return user;
}

/* Stage i on d, for all there are; false behind the last. */
static bool stage_on(ls_strategy *s, ls_dataset *d, int i, ls_dataset **out)
{
    ls_dataset *other = ls_batch(ls_range(0, 4, 1), 2);
    switch (i) {
#define STAGE(number, call)                                                                        \
    case number:                                                                                   \
        *out = call;                                                                               \
        return true;
        STAGE(0, ls_batch(d, 2))
        STAGE(1, ls_batch_full(d, 2))
        STAGE(2, ls_padded_batch(d, 2, NULL))
        STAGE(3, ls_unbatch(d))
        STAGE(4, ls_map(d, LS_MAP(.fn = same)))
        STAGE(5, ls_filter(d, any, NULL))
        STAGE(6, ls_shuffle(d, 5, 1))
        STAGE(7, ls_shuffle_once(d, 5, 1))
        STAGE(8, ls_repeat(d, 2))
        STAGE(9, ls_take(d, 1))
        STAGE(10, ls_skip(d, 1))
        STAGE(11, ls_shard(d, 2, 0))
        STAGE(12, ls_prefetch(d, 2))
        STAGE(13, ls_zip(2, (ls_dataset *[]){ other, d }))
        STAGE(14, ls_concatenate(d, other))
        STAGE(15, ls_concatenate(other, d))
        STAGE(16, ls_enumerate(d, 0))
        STAGE(17, ls_flat_map(d, inner, other))
        STAGE(18, ls_interleave(d, LS_INTERLEAVE(.fn = inner, .user = other)))
        STAGE(19, ls_with_auto_shard(d, LS_AUTO_SHARD_OFF))
        STAGE(20, ls_distribute(s, d))
        STAGE(21, ls_cache(d, NULL))
        STAGE(22, ls_tfrecords(d, NULL))
        STAGE(23, ls_text_lines(d, NULL))
        STAGE(24, ls_fixed_records(d, LS_RECORDS(.record_bytes = 1)))
#undef STAGE
    }
    return false;
}

static void no_further_stages(void **state)
{
    (void)state;
    ls_strategy *s = strategy_of(1, 2, false);
    LS_FRAME {
        ls_dataset *d = ls_distribute(s, ls_batch(ls_range(0, 4, 1), 2)), *refused = NULL;
        int stages = 0;
        for (; stage_on(s, d, stages, &refused); stages++) {
            assert_null(refused);
            assert_non_null(strstr(ls_error_text(), "no further stages"));
            failed(LS_INVALID);
        }
        assert_int_equal(stages, 25);
        ls_iterator *it = ls_make_dataset_iterator(s, d);
        assert_null(it);
        failed(LS_INVALID);
    }
    free_strategy(s);
}

/* ---- failures of the data ------------------------------------------------------------------------ */

static int failing; /* which pull fails */
static ls_status fails_once(ls__it *it, int most, ls__chunk *out)
{
    ls_status st = veil_pull(it, most, out);
    if (!st && --failing == 0) {
        ls__chunk_clear(out);
        return ls__fail(LS_CORRUPT, "a damaged element");
    }
    return st;
}
static const ls__stage failing_stage = { .name = "failing",
                                         .state_bytes = sizeof(veil_state),
                                         .open = veil_open,
                                         .close = veil_close,
                                         .pull = fails_once,
                                         LS__PASSES_POSITIONS_ON };

static ls_dataset *one_fails(const ls_input_context *c, void *user)
{
    (void)user;
    const int64_t base = 100 * c->input_pipeline_id;
    ls_dataset *d = ls_batch(ls_range(base, base + 6, 1), 1);
    return c->input_pipeline_id == 1 ? veiled(d, &failing_stage) : d;
}

/* Pipelines that have their part of the step keep it. */
static void a_failure_loses_nothing_else(void **state)
{
    (void)state;
    ls_strategy *s = strategy_of(2, 1, false);
    LS_FRAME {
        char text[MOST_TEXT] = "";
        failing = 3;
        ls_iterator *it = ls_iterate(ls_distribute_from_function(s, one_fails, NULL));
        ls_value *step = NULL;
        for (int i = 0; i < 2; i++) {
            assert_int_equal(ls_next(it, &step), LS_OK);
            put_step(text, step, 2);
            put_text(text, "; ", 0);
        }
        assert_int_equal(ls_next(it, &step), LS_CORRUPT);
        failed(LS_CORRUPT);
        assert_string_equal(text, "0 | 100; 1 | 101; ");
        assert_string_equal(rest_of(it, 2, text), "[2 | 103][3 | 104][4 | 105][5 | ]");
        ls_iterator_free(it);
    }
    free_strategy(s);
}

/* The same where batches last for two steps; positions inside the batch behind the failure lead back
 * to it, not to the failure. */
static void positions_behind_a_failure(void **state)
{
    (void)state;
    ls_strategy *s = strategy_of(2, 1, false);
    LS_FRAME {
        char text[MOST_TEXT];
        ls_dataset *d = veiled(ls_batch(ls_range(0, 12, 1), 4), &failing_stage);
        d = ls_distribute(s, ls_with_auto_shard(d, LS_AUTO_SHARD_OFF));
        failing = 3; /* the second batch of the first pipeline */
        ls_iterator *it = ls_iterate(d);
        ls_value *step = NULL;
        assert_int_equal(ls_next(it, &step), LS_OK);
        assert_int_equal(ls_next(it, &step), LS_OK);
        assert_int_equal(ls_next(it, &step), LS_CORRUPT);
        failed(LS_CORRUPT);
        assert_int_equal(ls_next(it, &step), LS_OK); /* 8 9 | 4 5 */
        ls_tensor *position = ls_position(it);
        const char *want = "[10 11 | 6 7][ | 8 9][ | 10 11]";
        assert_string_equal(rest_of(it, 2, text), want);
        assert_int_equal(ls_seek(it, position), LS_OK);
        assert_string_equal(rest_of(it, 2, text), want);
        ls_iterator_free(it);
    }
    free_strategy(s);
}

/* The same inside of a batch that a position led to, and of which there is nothing behind the failure:
 * the pipeline has ended, and is not in the middle of a batch any more. */
static void positions_behind_a_failure_at_the_end(void **state)
{
    (void)state;
    ls_strategy *s = strategy_of(2, 1, false);
    LS_FRAME {
        char text[MOST_TEXT] = "";
        ls_dataset *d = veiled(ls_batch(ls_range(0, 8, 1), 8), &failing_stage);
        d = ls_distribute(s, ls_with_auto_shard(d, LS_AUTO_SHARD_OFF));
        failing = 0;
        ls_iterator *it = ls_iterate(d);
        ls_value *step = NULL;
        assert_int_equal(ls_next(it, &step), LS_OK);
        assert_int_equal(ls_seek(it, ls_position(it)), LS_OK);
        failing = 1; /* the first pipeline cannot read its batch again */
        assert_int_equal(ls_next(it, &step), LS_CORRUPT);
        failed(LS_CORRUPT);
        assert_int_equal(ls_next(it, &step), LS_OK);
        put_step(text, step, 2);
        assert_string_equal(text, " | 4 5 6 7");
        assert_int_equal(ls_seek(it, ls_position(it)), LS_OK);
        assert_int_equal(ls_next(it, &step), LS_END);
        ls_iterator_free(it);
    }
    free_strategy(s);
}

/* ---- replicas that have nothing --------------------------------------------------------------------- */

/* Pipeline 0 has one batch, pipeline 1 two. */
static ls_dataset *ends_first(const ls_input_context *c, void *user)
{
    const int64_t n = c->input_pipeline_id + 1;
    ls_dataset *d = ls_slices(ls_leaf(ls_zeros(LS_F32, LS_DIMS(2 * n, 3, 5))));
    d = ls_batch(d, 2);
    return user ? veiled(d, &veil_stage) : d;
}

static ls_dataset *unknown_sizes(const ls_input_context *c, void *user)
{
    (void)user;
    const int64_t n = c->input_pipeline_id + 1;
    ls_dataset *d = ls_batch(ls_slices(ls_leaf(ls_zeros(LS_F32, LS_DIMS(2 * n, 3, 5)))), 2);
    /* as after a padded batch: the middle size is not known */
    ls__dataset_draft draft = {
        .stage = &veil_stage, .n_inputs = 1, .inputs = &d, .cardinality = n
    };
    assert_int_equal(ls__type_parse("test", "f32[?,?,5]", &draft.type), LS_OK);
    return ls__dataset_new(&draft, "unknown sizes");
}

static void expect_empty(ls_strategy *s, ls_input_fn fn, void *user, const char *want)
{
    LS_FRAME {
        ls_iterator *it = ls_iterate(ls_distribute_from_function(s, fn, user));
        ls_value *step = NULL;
        assert_int_equal(ls_next(it, &step), LS_OK);
        assert_int_equal(ls_next(it, &step), LS_OK);
        assert_string_equal(ls_describe(ls_leaf_tensor(ls_select(step, 0))), want);
        assert_string_equal(ls_describe(ls_leaf_tensor(ls_select(step, 1))), "f32[2,3,5]");
        assert_int_equal(ls_next(it, &step), LS_END);
        ls_iterator_free(it);
    }
}

static void empty_replicas_keep_the_other_sizes(void **state)
{
    (void)state;
    ls_strategy *s = strategy_of(2, 1, false);
    expect_empty(s, ends_first, NULL, "f32[0,3,5]");
    expect_empty(s, ends_first, s, "f32[0,3,5]"); /* nothing is known: as the others' are */
    expect_empty(s, unknown_sizes, NULL, "f32[0,0,5]");
    free_strategy(s);
    s = strategy_of(1, 3, false); /* of a batch that is there all sizes are known */
    LS_FRAME {
        ls_dataset *d = ls_batch(ls_slices(ls_leaf(ls_zeros(LS_F32, LS_DIMS(1, 4)))), 3);
        ls_iterator *it = ls_iterate(ls_distribute(s, veiled(d, &veil_stage)));
        ls_value *step = NULL;
        assert_int_equal(ls_next(it, &step), LS_OK);
        assert_string_equal(ls_describe(ls_leaf_tensor(ls_select(step, 2))), "f32[0,4]");
        ls_iterator_free(it);
    }
    free_strategy(s);
}

static ls_dataset *scalars(const ls_input_context *c, void *user)
{
    (void)c;
    ls_dataset *d = ls_range(0, 3, 1);
    return user ? veiled(d, &veil_stage) : d;
}

/* A scalar cannot be empty, and a 0 that nobody gave would be data. */
static void scalars_cannot_be_empty(void **state)
{
    (void)state;
    ls_strategy *s = strategy_of(1, 2, false), *whole = strategy_of(1, 2, true);
    for (int i = 0; i < 2; i++)
        LS_FRAME {
            ls_iterator *it = ls_iterate(ls_distribute_from_function(s, scalars, i ? s : NULL));
            ls_value *step = NULL;
            assert_int_equal(ls_next(it, &step), LS_OK);
            assert_int_equal(ls_next(it, &step), LS_INVALID);
            failed(LS_INVALID);
            assert_int_equal(ls_next(it, &step), LS_END);
            ls_iterator_free(it);
            expect_steps(ls_distribute_from_function(whole, scalars, i ? s : NULL), 2, "[0 | 1]");
        }
    free_strategy(s);
    free_strategy(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(datasets_without_rows, clean),
        cmocka_unit_test_setup(components_of_different_rows, clean),
        cmocka_unit_test_setup(options_of_strategies, clean),
        cmocka_unit_test_setup(input_functions_that_fail, clean),
        cmocka_unit_test_setup(contexts, clean),
        cmocka_unit_test_setup(datasets_outlive_their_strategy, clean),
        cmocka_unit_test_setup(no_further_stages, clean),
        cmocka_unit_test_setup(a_failure_loses_nothing_else, clean),
        cmocka_unit_test_setup(positions_behind_a_failure, clean),
        cmocka_unit_test_setup(positions_behind_a_failure_at_the_end, clean),
        cmocka_unit_test_setup(empty_replicas_keep_the_other_sizes, clean),
        cmocka_unit_test_setup(scalars_cannot_be_empty, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
