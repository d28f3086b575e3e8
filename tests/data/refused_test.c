/*
 * What data.h refuses: NULL, zero, negative, huge, of another dtype or structure, for every function. A
 * refusal is NULL or a status, with an error whose text names the function; nothing crashes, and
 * the thread is clean once the error is taken.
 */
#include "data/data_refused.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- callbacks ------------------------------------------------------------------------------ */

static ls_value *same(ls_value *element, void *user)
{
    (void)user;
    return element;
}

static bool keep(ls_value *element, void *user)
{
    (void)element, (void)user;
    return true;
}

static ls_dataset *some(ls_value *element, void *user)
{
    (void)element, (void)user;
    return ls_range(0, 2, 1);
}

static ls_status no_next(void *state, ls_value **out)
{
    (void)state, (void)out;
    return LS_END;
}

static ls_dataset *numbers(void)
{
    return ls_range(0, 5, 1);
}

static ls_dataset *words(void)
{
    return ls_slices(ls_leaf(ls_from_strings(LS_DIMS(2), (const void *const[]){ "a", "b" }, NULL)));
}

/* ---- sources -------------------------------------------------------------------------------- */

static void sources(void **state)
{
    (void)state;
    NAMES("ls_once", LS_INVALID, ls_once(NULL));
    NAMES("ls_slices", LS_INVALID, ls_slices(NULL));
    NAMES("ls_slices", SHAPE_OR_INVALID, ls_slices(ls_leaf(ls_scalar(LS_F32, 1))));
    NAMES("ls_slices", SHAPE_OR_INVALID,
          ls_slices(ls_tensors(
              2, (ls_tensor *[]){ ls_zeros(LS_F32, LS_DIMS(3)), ls_zeros(LS_F32, LS_DIMS(4)) })));
    NAMES("ls_slices", LS_INVALID, ls_slices(ls_list(0, NULL))); /* no rows to count */
    NAMES("ls_range", LS_INVALID, ls_range(0, 10, 0));
    NAMES("ls_generate", LS_INVALID, ls_generate(NULL));
    NAMES("ls_generate", LS_INVALID, ls_generate(LS_GENERATOR(.next = NULL)));
    NAMES("ls_generate", LS_INVALID, ls_generate(&(ls_generator){ .next = no_next }));
    NAMES("ls_generate", LS_INVALID, ls_generate(LS_GENERATOR(.next = no_next, .spec = "f33[]")));
    NAMES("ls_generate", LS_INVALID, ls_generate(LS_GENERATOR(.next = no_next, .spec = "f32[2")));
    none_was_wrong();
}

static void sources_of_replicas(void **state)
{
    (void)state;
    ls_strategy *s = ls_mirrored(LS_MIRRORED(.replicas = 2));
    LS_FRAME {
        ls_value *one = ls_leaf(ls_zeros(LS_F32, LS_DIMS(2)));
        ls_value *both = ls_per_replica(s, (ls_value *[]){ one, one });
        NAMES("ls_once", LS_INVALID, ls_once(both));
        NAMES("ls_slices", LS_INVALID, ls_slices(ls_list(2, (ls_value *[]){ one, both })));
    }
    ls_strategy_free(s);
    none_was_wrong();
}

/* ---- stages --------------------------------------------------------------------------------- */

static void stages_of_null(void **state)
{
    (void)state;
    NAMES("ls_map", LS_INVALID, ls_map(NULL, LS_MAP(.fn = same)));
    NAMES("ls_filter", LS_INVALID, ls_filter(NULL, keep, NULL));
    NAMES("ls_batch", LS_INVALID, ls_batch(NULL, 2));
    NAMES("ls_batch_full", LS_INVALID, ls_batch_full(NULL, 2));
    NAMES("ls_padded_batch", LS_INVALID, ls_padded_batch(NULL, 2, NULL));
    NAMES("ls_unbatch", LS_INVALID, ls_unbatch(NULL));
    NAMES("ls_shuffle", LS_INVALID, ls_shuffle(NULL, 2, 1));
    NAMES("ls_shuffle_once", LS_INVALID, ls_shuffle_once(NULL, 2, 1));
    NAMES("ls_repeat", LS_INVALID, ls_repeat(NULL, 2));
    NAMES("ls_take", LS_INVALID, ls_take(NULL, 2));
    NAMES("ls_skip", LS_INVALID, ls_skip(NULL, 2));
    NAMES("ls_shard", LS_INVALID, ls_shard(NULL, 2, 0));
    NAMES("ls_cache", LS_INVALID, ls_cache(NULL, NULL));
    NAMES("ls_prefetch", LS_INVALID, ls_prefetch(NULL, 2));
    NAMES("ls_zip", LS_INVALID, ls_zip(1, (ls_dataset *[]){ NULL }));
    NAMES("ls_zip", LS_INVALID, ls_zip(2, (ls_dataset *[]){ numbers(), NULL }));
    NAMES("ls_concatenate", LS_INVALID, ls_concatenate(NULL, numbers()));
    NAMES("ls_concatenate", LS_INVALID, ls_concatenate(numbers(), NULL));
    NAMES("ls_enumerate", LS_INVALID, ls_enumerate(NULL, 0));
    NAMES("ls_flat_map", LS_INVALID, ls_flat_map(NULL, some, NULL));
    NAMES("ls_interleave", LS_INVALID, ls_interleave(NULL, LS_INTERLEAVE(.fn = some)));
    NAMES("ls_dataset_keep", LS_INVALID, ls_dataset_keep(NULL));
    NAMES("ls_iterate", LS_INVALID, ls_iterate(NULL));
    none_was_wrong();
}

/* A chain that begins with an error ends with that one. */
static void the_first_error_of_a_chain(void **state)
{
    (void)state;
    ls_dataset *d = ls_range(0, 1, 0);
    d = ls_map(d, LS_MAP(.fn = same));
    d = ls_filter(d, keep, NULL);
    d = ls_padded_batch(ls_batch_full(ls_batch(d, 2), 2), 2, NULL);
    d = ls_shuffle_once(ls_shuffle(ls_unbatch(d), 3, 1), 3, 1);
    d = ls_shard(ls_skip(ls_take(ls_repeat(d, 2), 2), 2), 2, 1);
    d = ls_enumerate(ls_prefetch(ls_cache(d, NULL), 2), 0);
    d = ls_zip(2, (ls_dataset *[]){ d, d });
    d = ls_flat_map(ls_concatenate(d, d), some, NULL);
    d = ls_interleave(d, LS_INTERLEAVE(.fn = some));
    d = ls_fixed_records(ls_text_lines(ls_tfrecords(d, NULL), NULL), LS_RECORDS(.record_bytes = 1));
    assert_null(d);
    assert_null(ls_dataset_keep(d));
    assert_null(ls_iterate(d));
    NAMES("ls_range", LS_INVALID, d);
    none_was_wrong();
}

static void numbers_that_are_none(void **state)
{
    (void)state;
    NAMES("ls_batch", LS_INVALID, ls_batch(numbers(), 0));
    NAMES("ls_batch", LS_INVALID, ls_batch(numbers(), -1));
    NAMES("ls_batch", LS_INVALID, ls_batch(numbers(), INT64_MIN));
    NAMES("ls_batch_full", LS_INVALID, ls_batch_full(numbers(), 0));
    NAMES("ls_batch_full", LS_INVALID, ls_batch_full(numbers(), -3));
    NAMES("ls_padded_batch", LS_INVALID, ls_padded_batch(numbers(), 0, NULL));
    NAMES("ls_padded_batch", LS_INVALID, ls_padded_batch(numbers(), -1, NULL));
    NAMES("ls_shuffle", LS_INVALID, ls_shuffle(numbers(), 0, 1));
    NAMES("ls_shuffle", LS_INVALID, ls_shuffle(numbers(), -1, 1));
    NAMES("ls_shuffle_once", LS_INVALID, ls_shuffle_once(numbers(), 0, 1));
    NAMES("ls_repeat", LS_INVALID, ls_repeat(numbers(), -2));
    NAMES("ls_repeat", LS_INVALID, ls_repeat(numbers(), INT64_MIN));
    NAMES("ls_take", LS_INVALID, ls_take(numbers(), -2));
    NAMES("ls_skip", LS_INVALID, ls_skip(numbers(), -2));
    NAMES("ls_shard", LS_INVALID, ls_shard(numbers(), 0, 0));
    NAMES("ls_shard", LS_INVALID, ls_shard(numbers(), -2, 0));
    NAMES("ls_shard", LS_INVALID, ls_shard(numbers(), 2, 2));
    NAMES("ls_shard", LS_INVALID, ls_shard(numbers(), 2, -1));
    NAMES("ls_prefetch", LS_INVALID, ls_prefetch(numbers(), -1));
    NAMES("ls_prefetch", LS_INVALID, ls_prefetch(numbers(), INT64_MIN));
    NAMES("ls_zip", LS_INVALID, ls_zip(0, NULL));
    NAMES("ls_zip", LS_INVALID, ls_zip(-1, (ls_dataset *[]){ numbers() }));
    NAMES("ls_zip", LS_INVALID, ls_zip(1, NULL));
    NAMES("ls_interleave", LS_INVALID,
          ls_interleave(numbers(), LS_INTERLEAVE(.fn = some, .cycle = -1)));
    NAMES("ls_interleave", LS_INVALID,
          ls_interleave(numbers(), LS_INTERLEAVE(.fn = some, .block = -1)));
    NAMES("ls_interleave", LS_INVALID,
          ls_interleave(numbers(), LS_INTERLEAVE(.fn = some, .parallel = -2)));
    NAMES("ls_map", LS_INVALID, ls_map(numbers(), LS_MAP(.fn = same, .parallel = -2)));
    NAMES("ls_map", LS_INVALID, ls_map(numbers(), LS_MAP(.fn = same, .parallel = INT_MIN)));
    none_was_wrong();
}

static void options_and_functions(void **state)
{
    (void)state;
    NAMES("ls_map", LS_INVALID, ls_map(numbers(), NULL));
    NAMES("ls_map", LS_INVALID, ls_map(numbers(), LS_MAP(.fn = NULL)));
    NAMES("ls_map", LS_INVALID, ls_map(numbers(), &(ls_map_options){ .fn = same }));
    NAMES("ls_map", LS_INVALID, ls_map(numbers(), LS_MAP(.fn = same, .spec = "i64[] i64[]")));
    NAMES("ls_map", LS_INVALID, ls_map(numbers(), LS_MAP(.fn = same, .spec = "{a: i64[]")));
    NAMES("ls_map", LS_INVALID, ls_map(numbers(), LS_MAP(.fn = same, .spec = "i64[-3]")));
    NAMES("ls_map", LS_INVALID,
          ls_map(numbers(), LS_MAP(.fn = same, .spec = "i64[99999999999999999999]")));
    NAMES("ls_map", LS_INVALID,
          ls_map(numbers(), LS_MAP(.fn = same, .spec = "i64[1,1,1,1,1,1,1,1,1]")));
    NAMES("ls_filter", LS_INVALID, ls_filter(numbers(), NULL, NULL));
    NAMES("ls_flat_map", LS_INVALID, ls_flat_map(numbers(), NULL, NULL));
    NAMES("ls_interleave", LS_INVALID, ls_interleave(numbers(), NULL));
    NAMES("ls_interleave", LS_INVALID, ls_interleave(numbers(), LS_INTERLEAVE(.fn = NULL)));
    NAMES("ls_interleave", LS_INVALID,
          ls_interleave(numbers(), &(ls_interleave_options){ .fn = some }));
    NAMES("ls_padded_batch", LS_INVALID,
          ls_padded_batch(numbers(), 2, &(ls_padded_options){ .full = true }));
    NAMES("ls_padded_batch", LS_INVALID,
          ls_padded_batch(numbers(), 2, LS_PADDED(.shapes = "i64[")));
    none_was_wrong();
}

static void types_that_do_not_fit(void **state)
{
    (void)state;
    ls_value *pair = ls_tensors(
        2, (ls_tensor *[]){ ls_zeros(LS_F32, LS_DIMS(3)), ls_zeros(LS_F32, LS_DIMS(3, 2)) });
    NAMES("ls_unbatch", SHAPE_OR_INVALID, ls_unbatch(numbers()));
    NAMES("ls_unbatch", SHAPE_OR_INVALID, ls_unbatch(ls_slices(pair)));
    NAMES("ls_concatenate", SHAPE_OR_INVALID, ls_concatenate(numbers(), words()));
    NAMES("ls_concatenate", SHAPE_OR_INVALID, ls_concatenate(numbers(), ls_slices(pair)));
    NAMES("ls_padded_batch", SHAPE_OR_INVALID,
          ls_padded_batch(numbers(), 2, LS_PADDED(.shapes = "i64[3]")));
    NAMES("ls_padded_batch", SHAPE_OR_INVALID,
          ls_padded_batch(numbers(), 2, LS_PADDED(.shapes = "f32[]")));
    NAMES("ls_padded_batch", SHAPE_OR_INVALID,
          ls_padded_batch(numbers(), 2, LS_PADDED(.shapes = "i64[], i64[]")));
    ls_dataset *deep = ls_once(ls_leaf(ls_zeros(LS_F32, LS_DIMS(1, 1, 1, 1, 1, 1, 1, 1))));
    NAMES("ls_batch", SHAPE_OR_INVALID, ls_batch(deep, 1));
    NAMES("ls_batch_full", SHAPE_OR_INVALID, ls_batch_full(deep, 1));
    NAMES("ls_padded_batch", SHAPE_OR_INVALID, ls_padded_batch(deep, 1, NULL));
    none_was_wrong();
}

/* ---- huge numbers: taken or refused, but nothing breaks ------------------------------------- */

static void huge_numbers(void **state)
{
    (void)state;
    IS_FINE("ls_batch", ls_batch(numbers(), INT64_MAX), "[0 1 2 3 4]");
    IS_FINE("ls_batch_full", ls_batch_full(numbers(), INT64_MAX), NULL);
    IS_FINE("ls_padded_batch", ls_padded_batch(numbers(), INT64_MAX, NULL), "[0 1 2 3 4]");
    IS_FINE("ls_shuffle", ls_shuffle(ls_range(7, 8, 1), INT64_MAX, UINT64_MAX), "[7]");
    IS_FINE("ls_repeat", ls_repeat(numbers(), INT64_MAX), "[0]");
    IS_FINE("ls_repeat", ls_repeat(ls_repeat(numbers(), INT64_MAX), INT64_MAX), "[0]");
    IS_FINE("ls_take", ls_take(numbers(), INT64_MAX), "[0]");
    IS_FINE("ls_skip", ls_skip(numbers(), INT64_MAX), NULL);
    IS_FINE("ls_shard", ls_shard(numbers(), INT64_MAX, 0), "[0]");
    IS_FINE("ls_shard", ls_shard(numbers(), INT64_MAX, INT64_MAX - 1), NULL);
    IS_FINE("ls_prefetch", ls_prefetch(numbers(), INT64_MAX), "[0]");
    IS_FINE("ls_enumerate", ls_enumerate(ls_range(3, 4, 1), INT64_MAX),
            "[9.2233720368547758e+18; 3]");
    IS_FINE("ls_enumerate", ls_enumerate(numbers(), INT64_MIN), "[-9.2233720368547758e+18; 0]");
    IS_FINE("ls_map", ls_map(numbers(), LS_MAP(.fn = same, .parallel = INT_MAX)), "[0]");
    IS_FINE("ls_interleave",
            ls_interleave(numbers(), LS_INTERLEAVE(.fn = some, .cycle = INT_MAX, .block = INT64_MAX,
                                                   .parallel = INT_MAX)),
            "[0]");
    IS_FINE("ls_range", ls_range(INT64_MIN, INT64_MAX, INT64_MAX), "[-9.2233720368547758e+18]");
    IS_FINE("ls_range", ls_range(INT64_MAX, INT64_MIN, INT64_MIN), "[9.2233720368547758e+18]");
    IS_FINE("ls_range", ls_range(INT64_MIN, INT64_MAX, 1), "[-9.2233720368547758e+18]");
    IS_FINE("ls_repeat", ls_repeat(ls_range(0, 0, 1), -1), NULL); /* nothing, for ever: the end */
    IS_FINE("ls_repeat", ls_repeat(ls_range(0, 0, 1), INT64_MAX), NULL);
    none_was_wrong();
}

/* ---- zero and less that are allowed --------------------------------------------------------- */

static void zeros_that_are_allowed(void **state)
{
    (void)state;
    IS_FINE("", ls_take(numbers(), 0), NULL);
    IS_FINE("", ls_take(numbers(), -1), "[0]");
    IS_FINE("", ls_skip(numbers(), 0), "[0]");
    IS_FINE("", ls_skip(numbers(), -1), NULL);
    IS_FINE("", ls_repeat(numbers(), 0), NULL);
    IS_FINE("", ls_repeat(numbers(), -1), "[0]");
    IS_FINE("", ls_range(0, 0, 1), NULL);
    IS_FINE("", ls_range(0, -5, 1), NULL);
    IS_FINE("", ls_range(0, -2, -1), "[0]");
    IS_FINE("", ls_map(numbers(), LS_MAP(.fn = same, .parallel = -1)), "[0]");
    IS_FINE("", ls_once(ls_list(0, NULL)), "[]");
    IS_FINE("", ls_batch(ls_slices(ls_leaf(ls_zeros(LS_F32, LS_DIMS(0, 3)))), 2), NULL);
    IS_FINE("", ls_slices(ls_leaf(ls_zeros(LS_F32, LS_DIMS(2, 0)))), "[]");
    none_was_wrong();
}

#define TEST(f) cmocka_unit_test_setup(f, clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(sources),
        TEST(sources_of_replicas),
        TEST(stages_of_null),
        TEST(the_first_error_of_a_chain),
        TEST(numbers_that_are_none),
        TEST(options_and_functions),
        TEST(types_that_do_not_fit),
        TEST(huge_numbers),
        TEST(zeros_that_are_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
