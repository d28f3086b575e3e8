/*
 * ls_make_example: its bytes against some written by hand here, and read back with
 * ls_parse_examples. (tests/examples_golden_test.c has TensorFlow's bytes.)
 */
#include "data/example_test_support.h"

#include <lockstep.h>
#include <math.h>

static ls_value *dict_of(const char *key, ls_tensor *t)
{
    return ls_dict(1, &key, (ls_value *[]){ ls_leaf(t) });
}

static void bytes_are(const ls_tensor *t, const bytes *want)
{
    const void *data;
    size_t length;
    assert_string_equal(ls_describe(t), "bytes[]");
    assert_int_equal(ls_string_at(t, 0, &data, &length), LS_OK);
    assert_int_equal(length, want->n);
    assert_memory_equal(data, want->at, want->n);
    assert_int_equal(((const char *)data)[length], '\0');
}

static void every_byte(void **state)
{
    (void)state;
    LS_FRAME {
        static const int64_t numbers[] = { 0, 1, 127, 128, -1, INT64_MIN, INT64_MAX };
        static const float reals[] = { 0, -0.0f, 1.5f, INFINITY };
        static const char *const texts[] = { "", "one", "\xff\xfe" };
        bytes features = { .n = 0 }, example = { .n = 0 };
        bytes parts[] = { int_feature(7, numbers), float_feature(4, reals),
                          bytes_feature(3, texts) };
        put_entry(&features, "a", &parts[1]); /* in the order of keys */
        put_entry(&features, "b", &parts[0]);
        put_entry(&features, "b b", &parts[2]);
        put_message(&example, 1, &features);
        ls_value *leaves[] = { ls_leaf(ls_from_strings(LS_DIMS(3, 1), (const void *const *)texts,
                                                       NULL)),
                               ls_leaf(ls_from(LS_I64, LS_DIMS(7), numbers)),
                               ls_leaf(ls_from(LS_F32, LS_DIMS(2, 2), reals)) };
        const char *keys[] = { "b b", "b", "a" };
        bytes_are(ls_make_example(ls_dict(3, keys, leaves)), &example);

        bytes nothing = { .n = 0 }; /* an Example with Features with nothing */
        put_bytes(&nothing, 1, "", 0);
        bytes_are(ls_make_example(ls_dict(0, NULL, NULL)), &nothing);
        assert_int_equal(ls_error_pending(), LS_OK);
    }
}

/* A list that is empty has a kind all the same. */
static void empty_lists(void **state)
{
    (void)state;
    static const ls_dtype dtypes[] = { LS_F32, LS_F64, LS_BF16, LS_I32,
                                       LS_I64, LS_U8,  LS_BOOL, LS_BYTES };
    static const uint32_t kinds[] = { 2, 2, 2, 3, 3, 3, 3, 1 };
    for (int i = 0; i < 8; i++)
        LS_FRAME {
            bytes feature = { .n = 0 }, features = { .n = 0 }, example = { .n = 0 };
            put_bytes(&feature, kinds[i], "", 0);
            put_entry(&features, "", &feature);
            put_message(&example, 1, &features);
            ls_tensor *none = dtypes[i] == LS_BYTES ? ls_from_strings(LS_DIMS(0), NULL, NULL)
                                                    : ls_zeros(dtypes[i], LS_DIMS(2, 0));
            bytes_are(ls_make_example(dict_of("", none)), &example);
        }
}

static void every_dtype(void **state)
{
    (void)state;
    LS_FRAME {
        static const int32_t ints[] = { -5, 0, INT32_MAX, INT32_MIN };
        static const uint8_t small[] = { 0, 255, 7, 128 };
        static const double wide[] = { 0.1, 1e300, -1e-300, NAN };
        ls_value *leaves[] = { ls_leaf(ls_from(LS_I32, LS_DIMS(4), ints)),
                               ls_leaf(ls_from(LS_U8, LS_DIMS(4), small)),
                               ls_leaf(ls_cast(ls_from(LS_U8, LS_DIMS(4), small), LS_BOOL)),
                               ls_leaf(ls_from(LS_F64, LS_DIMS(4), wide)),
                               ls_leaf(ls_full(LS_BF16, LS_DIMS(4), 1.5)) };
        const char *keys[] = { "i32", "u8", "bool", "f64", "bf16" };
        ls_feature features[5];
        for (int i = 0; i < 5; i++)
            features[i] = (ls_feature){
                .key = keys[i], .dtype = i < 3 ? LS_I64 : LS_F32, .rank = 1, .dims = { 4 }
            };
        ls_value *v = ls_parse_examples(ls_make_example(ls_dict(5, keys, leaves)), 5, features);
        const int64_t *i32 = ls_data(ls_leaf_tensor(ls_get(v, "i32"))),
                      *u8 = ls_data(ls_leaf_tensor(ls_get(v, "u8"))),
                      *bools = ls_data(ls_leaf_tensor(ls_get(v, "bool")));
        const float *f64 = ls_data(ls_leaf_tensor(ls_get(v, "f64"))),
                    *bf16 = ls_data(ls_leaf_tensor(ls_get(v, "bf16")));
        for (int i = 0; i < 4; i++) {
            assert_int_equal(i32[i], ints[i]);
            assert_int_equal(u8[i], small[i]);
            assert_int_equal(bools[i], small[i] != 0);
            assert_true(f64[i] == (float)wide[i] || (isnan(f64[i]) && isnan(wide[i])));
            assert_true(bf16[i] == 1.5f);
        }
        uint32_t bits = 0x7fa12345, back; /* a NaN that signals, bit for bit */
        float nan_in;
        memcpy(&nan_in, &bits, 4);
        ls_feature one = { .key = "x", .dtype = LS_F32 };
        v = ls_parse_examples(ls_make_example(dict_of("x", ls_from(LS_F32, LS_SCALAR, &nan_in))), 1,
                              &one);
        memcpy(&back, ls_data(ls_leaf_tensor(ls_get(v, "x"))), 4);
        assert_int_equal(back, bits);
        assert_int_equal(ls_error_pending(), LS_OK);
    }
}

/* Lengths on both sides of where they need another byte, in every message around. */
static void every_length(void **state)
{
    (void)state;
    for (int n = 0; n < 20000; n += n < 160 ? 1 : 1237)
        LS_FRAME {
            char *text = ls__frame_alloc((size_t)n + 1);
            memset(text, 'x', (size_t)n);
            const void *at = text;
            size_t length = (size_t)n;
            ls_tensor *made =
                ls_make_example(dict_of("image", ls_from_strings(LS_SCALAR, &at, &length)));
            ls_feature f = { .key = "image", .dtype = LS_BYTES };
            ls_value *v = ls_parse_examples(made, 1, &f);
            assert_int_equal(ls_string_at(ls_leaf_tensor(ls_get(v, "image")), 0, &at, &length),
                             LS_OK);
            assert_int_equal(length, n);
            assert_memory_equal(at, text, (size_t)n);
        }
}

static ls_value *in_a_step(ls_value *arguments, void *user)
{
    (void)user;
    return ls_leaf(ls_make_example(dict_of("x", ls_item(arguments, 0))));
}

static void bad_calls(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *t = ls_ones(LS_F32, LS_DIMS(2));
        assert_null(ls_make_example(NULL));
        says(LS_INVALID, "ls_make_example: the value is NULL");
        assert_null(ls_make_example(ls_leaf(t)));
        says(LS_INVALID, "ls_make_example: wants a dict, got a leaf");
        assert_null(ls_make_example(ls_tensors(1, &t)));
        says(LS_INVALID, "wants a dict, got a list");
        const char *key = "deep";
        assert_null(ls_make_example(ls_dict(1, &key, (ls_value *[]){ ls_tensors(1, &t) })));
        says(LS_INVALID, "ls_make_example: 'deep' is a list");
        ls_tensor *rows = ls_zeros(LS_I64, LS_DIMS(1)), *values = ls_ones(LS_F32, LS_DIMS(1, 2));
        assert_null(ls_make_example(dict_of("rows", ls_sparse(rows, values, 4))));
        says(LS_SHAPE, "ls_make_example: 'rows' is sparse");
        ls_function *step = ls_trace(in_a_step, NULL);
        assert_null(ls_function_call(step, ls_tensors(1, &t)));
        says(LS_STATE, "ls_make_example: 'x' in a traced step");
        ls_function_free(step);
        assert_int_equal(ls_error_pending(), LS_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_byte, clean),  cmocka_unit_test_setup(empty_lists, clean),
        cmocka_unit_test_setup(every_dtype, clean), cmocka_unit_test_setup(every_length, clean),
        cmocka_unit_test_setup(bad_calls, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
