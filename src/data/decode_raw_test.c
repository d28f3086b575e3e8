/*
 * ls_decode_raw against plain loops over the bytes, in every dtype and both orders.
 */
#include <stdio.h>

#include "data/example_test_support.h"

/* bytes[2,3] of `length` bytes each, in memory of exactly that size: byte k of string i is below. */
static uint8_t byte_of(int i, size_t k)
{
    return (uint8_t)(37 * i + 11 * (int)k + 3);
}

static ls_tensor *six_strings(size_t length)
{
    static uint8_t memory_of[6][64];
    const uint8_t *data[6];
    size_t lengths[6];
    for (int i = 0; i < 6; i++) {
        for (size_t k = 0; k < length; k++)
            memory_of[i][k] = byte_of(i, k);
        data[i] = memory_of[i];
        lengths[i] = length;
    }
    ls_tensor *t = exact_strings(6, data, lengths);
    t->spec = (ls__spec){ .dtype = LS_BYTES, .rank = 2, .dims = { 2, 3 } };
    return t;
}

static void every_dtype(void **state)
{
    (void)state;
    static const ls_dtype dtypes[] = { LS_U8, LS_BF16, LS_I32, LS_F32, LS_I64, LS_F64 };
    for (int d = 0; d < 6; d++)
        for (int big = 0; big < 2; big++)
            LS_FRAME {
                size_t size = ls_dtype_size(dtypes[d]);
                ls_tensor *s = six_strings(4 * size);
                ls_tensor *t = big ? ls_decode_raw_big_endian(s, dtypes[d], LS_DIMS(2, 2))
                                   : ls_decode_raw(s, dtypes[d], LS_DIMS(2, 2));
                char text[32];
                snprintf(text, sizeof text, "%s[2,3,2,2]", ls_dtype_name(dtypes[d]));
                assert_string_equal(ls_describe(t), text);
                const uint8_t *at = ls_data(t);
                for (int i = 0; i < 6; i++)
                    for (size_t k = 0; k < 4 * size; k++) {
                        size_t from = big ? k - k % size + size - 1 - k % size : k;
                        assert_int_equal(*at++, byte_of(i, from));
                    }
            }
}

static void shapes(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *s = six_strings(24);
        assert_string_equal(ls_describe(ls_decode_raw(s, LS_I32, LS_DIMS(-1))), "i32[2,3,6]");
        assert_string_equal(ls_describe(ls_decode_raw(s, LS_I32, LS_DIMS(2, -1))), "i32[2,3,2,3]");
        assert_string_equal(ls_describe(ls_decode_raw(s, LS_U8, LS_DIMS(-1, 3, 4))),
                            "u8[2,3,2,3,4]");
        assert_string_equal(ls_describe(ls_decode_raw(six_strings(8), LS_F64, LS_SCALAR)),
                            "f64[2,3]"); /* one number each */
        assert_string_equal(ls_describe(ls_decode_raw(six_strings(0), LS_F64, LS_DIMS(-1))),
                            "f64[2,3,0]");
        assert_string_equal(ls_describe(ls_decode_raw(six_strings(0), LS_U8, LS_DIMS(4, 0))),
                            "u8[2,3,4,0]");
        assert_string_equal(ls_describe(ls_decode_raw(six_strings(0), LS_U8, LS_DIMS(0, -1))),
                            "u8[2,3,0,0]");
        ls_tensor *none = exact_strings(0, NULL, NULL);
        assert_string_equal(ls_describe(ls_decode_raw(none, LS_I64, LS_DIMS(2, -1))), "i64[0,2,0]");
        assert_string_equal(ls_describe(ls_decode_raw(none, LS_I64, LS_DIMS(2, 2))), "i64[0,2,2]");
        ls_tensor *one = ls_decode_raw(exact_string("\x01\x02", 2), LS_U8, LS_DIMS(2));
        assert_string_equal(ls_describe(one), "u8[2]");
        assert_memory_equal(ls_data(one), "\x01\x02", 2);
        one = ls_decode_raw_big_endian(exact_string("\x01\x02", 2), LS_U8, LS_DIMS(2));
        assert_memory_equal(ls_data(one), "\x01\x02", 2); /* bytes have no order */
        assert_int_equal(ls_error_pending(), LS_OK);
    }
}

static void bools_are_bools(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *t = ls_decode_raw(exact_string("\x00\x01\x02\xff", 4), LS_BOOL, LS_DIMS(-1));
        assert_string_equal(ls_describe(t), "bool[4]");
        assert_memory_equal(ls_data(t), "\x00\x01\x01\x01", 4);
    }
}

static void bad_calls(void **state)
{
    (void)state;
    LS_FRAME {
        const uint8_t *data[] = { (const uint8_t *)"12345678", (const uint8_t *)"12345678",
                                  (const uint8_t *)"1234567" };
        ls_tensor *uneven = exact_strings(3, data, (size_t[]){ 8, 8, 7 });
        assert_null(ls_decode_raw(uneven, LS_I32, LS_DIMS(2)));
        says(LS_SHAPE, "ls_decode_raw: string 2 has 7 bytes; i32[2] has 8");
        assert_null(ls_decode_raw_big_endian(uneven, LS_I32, LS_DIMS(-1)));
        says(LS_SHAPE, "ls_decode_raw_big_endian: string 2 has 7 bytes; i32[2] has 8");
        assert_null(ls_decode_raw(uneven, LS_U8, LS_DIMS(7)));
        says(LS_SHAPE, "string 0 has 8 bytes; u8[7] has 7");
        assert_null(ls_decode_raw(uneven, LS_U8, LS_DIMS(-1, 3)));
        says(LS_SHAPE, "string 0 has 8 bytes, which is no multiple of 3");
        assert_null(ls_decode_raw(uneven, LS_U8, LS_DIMS(0, -1)));
        says(LS_SHAPE, "string 0 has 8 bytes; u8[0,0] has 0");
        assert_null(ls_decode_raw(uneven, LS_U8, LS_DIMS(-1, -1)));
        says(LS_INVALID, "axes 0 and 1 are both -1");
        assert_null(ls_decode_raw(uneven, LS_U8, LS_DIMS(4, -2)));
        says(LS_INVALID, "size -2");
        assert_null(ls_decode_raw(uneven, LS_U8, 9, (int64_t[]){ 1, 1, 1, 1, 1, 1, 1, 1, 1 }));
        says(LS_INVALID, "rank 9");
        assert_null(ls_decode_raw(six_strings(1), LS_U8, 7, (int64_t[]){ 1, 1, 1, 1, 1, 1, 1 }));
        says(LS_INVALID, "rank 9"); /* with the two that the strings have */
        assert_null(ls_decode_raw(uneven, LS_U8, -1, NULL));
        says(LS_INVALID, "rank -1");
        assert_null(ls_decode_raw(uneven, LS_U8, 1, NULL));
        says(LS_INVALID, "dims is NULL");
        assert_null(ls_decode_raw(uneven, LS_BYTES, LS_SCALAR));
        says(LS_INVALID, "ls_decode_raw: ");
        assert_null(ls_decode_raw(uneven, (ls_dtype)50, LS_SCALAR));
        says(LS_INVALID, "50 is no dtype");
        assert_null(ls_decode_raw(NULL, LS_U8, LS_SCALAR));
        says(LS_INVALID, "ls_decode_raw: strings is NULL");
        assert_null(ls_decode_raw(ls_ones(LS_F32, LS_DIMS(2)), LS_U8, LS_SCALAR));
        says(LS_SHAPE, "ls_decode_raw: wants bytes, got f32[2]");
        int64_t much[] = { INT64_MAX / 2, INT64_MAX / 2 };
        assert_null(ls_decode_raw(uneven, LS_U8, 2, much));
        says(LS_INVALID, "overflows");
        uneven->storage->symbol = 1; /* as what a step computes has while it is traced */
        assert_null(ls_decode_raw(uneven, LS_U8, LS_DIMS(-1)));
        says(LS_STATE, "ls_decode_raw: in a traced step");
        uneven->storage->symbol = 0;
        assert_int_equal(ls_error_pending(), LS_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_dtype, clean),
        cmocka_unit_test_setup(shapes, clean),
        cmocka_unit_test_setup(bools_are_bools, clean),
        cmocka_unit_test_setup(bad_calls, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
