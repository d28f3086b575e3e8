/*
 * Making tensors, asking them, reading them: as <lockstep/tensor.h> says, for
 * every dtype, and with every kind of nonsense for an argument.
 */
#include <lockstep/tensor.h>

#include <float.h>
#include <math.h>
#include <stdio.h>

#include "tensor/test_support.h"

/* Sanitizer builds return NULL too when memory is out. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);

const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static const ls_dtype numeric[] = { LS_F32, LS_F64, LS_I32, LS_I64, LS_U8, LS_BOOL, LS_BF16 };
enum { N_NUMERIC = sizeof numeric / sizeof *numeric };

/* The last call failed with `want` and said something; takes the error. */
static void dtypes(void **state)
{
    (void)state;
#define CHECK(name, value, text, bytes)                                                            \
    assert_int_equal(name, value);                                                                 \
    assert_string_equal(ls_dtype_name(name), text);                                                \
    assert_int_equal(ls_dtype_size(name), name == LS_BYTES ? 0 : bytes);
    LS_DTYPE_LIST(CHECK)
#undef CHECK
    static const int strange[] = { 0, -1, 9, 1000, INT32_MIN, INT32_MAX };
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
        assert_string_equal(ls_dtype_name((ls_dtype)strange[i]), "?");
        assert_int_equal(ls_dtype_size((ls_dtype)strange[i]), 0);
        assert_false(ls_dtype_is_float((ls_dtype)strange[i]));
        assert_false(ls_dtype_is_integer((ls_dtype)strange[i]));
    }
    for (int d = LS_F32; d <= LS_BYTES; d++) {
        assert_int_equal(ls_dtype_is_float((ls_dtype)d),
                         d == LS_F32 || d == LS_F64 || d == LS_BF16);
        assert_int_equal(ls_dtype_is_integer((ls_dtype)d),
                         d == LS_I32 || d == LS_I64 || d == LS_U8);
    }
    assert_int_equal(ls_error_pending(), LS_OK);
}

static void from_copies(void **state)
{
    (void)state;
    LS_FRAME {
        float data[6] = { 1, 2, 3, 4, 5, 6 };
        ls_tensor *t = ls_from(LS_F32, LS_DIMS(2, 3), data);
        assert_non_null(t);
        data[0] = 99;
        assert_int_equal(ls_dtype_of(t), LS_F32);
        assert_int_equal(ls_rank(t), 2);
        assert_int_equal(ls_shape(t)[0], 2);
        assert_int_equal(ls_shape(t)[1], 3);
        assert_int_equal(ls_count(t), 6);
        assert_int_equal(ls_size_in_bytes(t), 24);
        assert_string_equal(ls_describe(t), "f32[2,3]");
        const float *seen = ls_data(t);
        assert_non_null(seen);
        assert_ptr_not_equal(seen, data);
        assert_int_equal((uintptr_t)seen % 64, 0);
        for (int i = 0; i < 6; i++)
            assert_true(seen[i] == (float)(i + 1));
        ls_data_done(t);

        float out[6] = { 0 };
        assert_int_equal(ls_copy_out(t, out, sizeof out), LS_OK);
        assert_memory_equal(out, ((float[]){ 1, 2, 3, 4, 5, 6 }), sizeof out);

        ls_tensor *scalar = ls_from(LS_I64, LS_SCALAR, &(int64_t){ -7 });
        assert_int_equal(ls_rank(scalar), 0);
        assert_int_equal(ls_count(scalar), 1);
        assert_string_equal(ls_describe(scalar), "i64[]");
        assert_int_equal(ls_to_int(scalar), -7);

        ls_tensor *eight = ls_from(LS_U8, LS_DIMS(1, 1, 2, 1, 1, 1, 1, 1), "ab");
        assert_int_equal(ls_rank(eight), LS_MAX_RANK);
        assert_string_equal(ls_describe(eight), "u8[1,1,2,1,1,1,1,1]");
    }
    assert_int_equal(ls_error_pending(), LS_OK);
}

static void zero_elements(void **state)
{
    (void)state;
    LS_FRAME {
        char nothing[1];
        for (int i = 0; i < N_NUMERIC; i++) {
            ls_tensor *t = ls_from(numeric[i], LS_DIMS(3, 0, 2), nothing);
            assert_non_null(t);
            assert_int_equal(ls_count(t), 0);
            assert_int_equal(ls_size_in_bytes(t), 0);
            assert_int_equal(ls_copy_out(t, nothing, 0), LS_OK);
            assert_non_null(ls_zeros(numeric[i], LS_DIMS(0)));
            assert_non_null(ls_full(numeric[i], LS_DIMS(4, 0), 3));
            ls_to_double(t);
            assert_int_not_equal(ls_error(), LS_OK);
        }
    }
}

static void bad_shapes(void **state)
{
    (void)state;
    static const int64_t nine[9] = { 1, 1, 1, 1, 1, 1, 1, 1, 1 };
    static const struct {
        int rank;
        int64_t dims[LS_MAX_RANK];
    } bad[] = {
        { 1, { -1 } },
        { 1, { INT64_MIN } },
        { 2, { 3, -2 } },
        { 2, { 0, -1 } },
        { 2, { INT64_MAX, 2 } },
        { 2, { (int64_t)1 << 40, (int64_t)1 << 40 } },
        { 2, { (int64_t)1 << 32, (int64_t)1 << 32 } },
        { 8, { 65536, 65536, 65536, 65536, 65536, 65536, 65536, 65536 } },
        { 1, { INT64_MAX } }, /* the bytes overflow */
        { 2, { ((int64_t)1 << 62) + 1, 4 } },
    };
    char byte[1] = { 0 };
    LS_FRAME {
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            /* Eight bytes an element, so that INT64_MAX elements overflow. */
            assert_null(ls_from(LS_F64, bad[i].rank, bad[i].dims, byte));
            failed(LS_INVALID);
            assert_null(ls_zeros(LS_I64, bad[i].rank, bad[i].dims));
            failed(LS_INVALID);
            assert_null(ls_full(LS_F64, bad[i].rank, bad[i].dims, 1));
            failed(LS_INVALID);
            assert_null(ls_from_strings(bad[i].rank, bad[i].dims, (const void *[]){ byte }, NULL));
            failed(LS_INVALID);
        }
        assert_null(ls_from(LS_F32, 9, nine, byte));
        failed(LS_INVALID);
        assert_null(ls_from(LS_F32, -1, nine, byte));
        failed(LS_INVALID);
        assert_null(ls_ones(LS_F32, INT32_MAX, nine));
        failed(LS_INVALID);
        assert_null(ls_from(LS_F32, 2, NULL, byte)); /* no dims */
        failed(LS_INVALID);
        assert_null(ls_zeros(LS_F32, 1, NULL));
        failed(LS_INVALID);
        assert_null(ls_from(LS_F32, LS_DIMS(2), NULL)); /* no data */
        failed(LS_INVALID);
        assert_null(ls_from(LS_F32, LS_SCALAR, NULL));
        failed(LS_INVALID);
    }
}

static void bad_dtypes(void **state)
{
    (void)state;
    static const int bad[] = { 0, 9, -1, 100, INT32_MIN, LS_BYTES };
    double data[2] = { 0 };
    LS_FRAME {
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            ls_dtype d = (ls_dtype)bad[i];
            assert_null(ls_from(d, LS_DIMS(1), data));
            failed(LS_INVALID);
            assert_null(ls_wrap(d, LS_DIMS(1), data, NULL, NULL));
            failed(LS_INVALID);
            assert_null(ls_scalar(d, 1));
            failed(LS_INVALID);
            assert_null(ls_scalar_int(d, 1));
            failed(LS_INVALID);
            assert_null(ls_full(d, LS_DIMS(2), 1));
            failed(LS_INVALID);
            assert_null(ls_zeros(d, LS_DIMS(2)));
            failed(LS_INVALID);
            assert_null(ls_ones(d, LS_DIMS(2)));
            failed(LS_INVALID);
        }
    }
}

static void out_of_memory_is_an_error(void **state)
{
    (void)state;
    LS_FRAME {
        size_t now, after, peak;
        ls_memory(&now, &peak);
        assert_null(ls_zeros(LS_F32, LS_DIMS((int64_t)1 << 50)));
        failed(LS_NO_MEMORY);
        assert_null(ls_zeros(LS_U8, LS_DIMS(INT64_MAX)));
        failed(LS_NO_MEMORY);
        ls_memory(&after, &peak);
        assert_int_equal(after, now);
        assert_non_null(ls_zeros(LS_F32, LS_DIMS(4)));
    }
}

typedef struct released {
    int count;
    void *data;
} released;

static void release(void *data, void *user)
{
    released *r = user;
    r->count++;
    r->data = data;
}

static void wrap_does_not_copy(void **state)
{
    (void)state;
    float data[4] = { 1, 2, 3, 4 };
    released r = { 0 };
    LS_FRAME {
        ls_tensor *t = ls_wrap(LS_F32, LS_DIMS(2, 2), data, release, &r);
        assert_non_null(t);
        assert_ptr_equal(ls_data(t), data);
        ls_data_done(t);
        float out[4];
        assert_int_equal(ls_copy_out(t, out, sizeof out), LS_OK);
        assert_memory_equal(out, data, sizeof out);
        assert_int_equal(r.count, 0);
    }
    assert_int_equal(r.count, 1);
    assert_ptr_equal(r.data, data);

    /* Several handles are one value: released when the last one goes. */
    r = (released){ 0 };
    ls_tensor *kept = NULL;
    LS_FRAME {
        ls_tensor *t = ls_wrap(LS_F32, LS_DIMS(4), data, release, &r);
        kept = ls_keep(t);
        assert_non_null(ls_import(t));
    }
    assert_int_equal(r.count, 0);
    assert_true(ls_count(kept) == 4);
    ls_drop(kept);
    assert_int_equal(r.count, 1);

    LS_FRAME { /* nothing to release */
        assert_non_null(ls_wrap(LS_F32, LS_DIMS(4), data, NULL, NULL));
    }
    assert_true(data[0] == 1 && data[3] == 4);
}

static void failed_wrap_releases_nothing(void **state)
{
    (void)state;
    float data[4] = { 0 };
    released r = { 0 };
    LS_FRAME {
        assert_null(ls_wrap(LS_F32, LS_DIMS(-1), data, release, &r));
        failed(LS_INVALID);
        assert_null(ls_wrap(LS_F32, 9, (int64_t[9]){ 1 }, data, release, &r));
        failed(LS_INVALID);
        assert_null(ls_wrap(LS_F32, LS_DIMS(INT64_MAX, 3), data, release, &r));
        failed(LS_INVALID);
        assert_null(ls_wrap(LS_F32, 1, NULL, data, release, &r));
        failed(LS_INVALID);
        assert_null(ls_wrap(LS_F32, LS_DIMS(4), NULL, release, &r));
        failed(LS_INVALID);
        assert_null(ls_wrap((ls_dtype)77, LS_DIMS(4), data, release, &r));
        failed(LS_INVALID);
        assert_null(ls_wrap(LS_BYTES, LS_DIMS(1), data, release, &r));
        failed(LS_INVALID);
    }
    assert_int_equal(r.count, 0);
}

/* Memory that does not fit its dtype is refused, or else works. */
static void misaligned_wrap(void **state)
{
    (void)state;
    _Alignas(64) char block[64];
    memset(block, 0, sizeof block);
    float want[3] = { 1.5f, 2.5f, 3.5f };
    released r = { 0 };
    bool refused = false;
    memcpy(block + 1, want, sizeof want);
    LS_FRAME {
        ls_tensor *t = ls_wrap(LS_F32, LS_DIMS(3), block + 1, release, &r);
        if (!t) {
            refused = true;
            failed(LS_INVALID);
        } else {
            float out[3];
            assert_int_equal(ls_copy_out(t, out, sizeof out), LS_OK);
            assert_memory_equal(out, want, sizeof want);
        }
    }
    assert_int_equal(r.count, refused ? 0 : 1);

    /* The natural alignment of the element is always enough. */
    r = (released){ 0 };
    memcpy(block + 4, want, sizeof want);
    LS_FRAME {
        ls_tensor *t = ls_wrap(LS_F32, LS_DIMS(3), block + 4, release, &r);
        assert_non_null(t);
        float out[3];
        assert_int_equal(ls_copy_out(t, out, sizeof out), LS_OK);
        assert_memory_equal(out, want, sizeof want);
    }
    assert_int_equal(r.count, 1);
}

static void strings(void **state)
{
    (void)state;
    LS_FRAME {
        char first[] = "alpha";
        const void *texts[4] = { first, "", "a\0b", "gamma" };
        size_t lengths[4] = { 5, 0, 3, 2 };
        ls_tensor *t = ls_from_strings(LS_DIMS(2, 2), texts, lengths);
        assert_non_null(t);
        memset(first, 'X', 5);
        assert_int_equal(ls_dtype_of(t), LS_BYTES);
        assert_int_equal(ls_count(t), 4);
        assert_int_equal(ls_size_in_bytes(t), 0);
        assert_string_equal(ls_describe(t), "bytes[2,2]");
        static const char *want[4] = { "alpha", "", "a\0b", "ga" };
        for (int64_t i = 0; i < 4; i++) {
            const void *data = NULL;
            size_t length = 99;
            assert_int_equal(ls_string_at(t, i, &data, &length), LS_OK);
            assert_int_equal(length, lengths[i]);
            assert_memory_equal(data, want[i], length + 1); /* with its NUL */
        }

        ls_tensor *c = ls_from_strings(LS_DIMS(2), (const void *[]){ "one", "three" }, NULL);
        const void *data = NULL;
        size_t length = 0;
        assert_int_equal(ls_string_at(c, 1, &data, &length), LS_OK);
        assert_int_equal(length, 5);
        assert_string_equal(data, "three");
        assert_non_null(ls_from_strings(LS_SCALAR, (const void *[]){ "s" }, NULL));
        ls_tensor *none = ls_from_strings(LS_DIMS(0), (const void *[]){ "s" }, NULL);
        assert_int_equal(ls_count(none), 0);

        /* Out of range, and not strings: outputs stay as they were. */
        data = first, length = 42;
        assert_int_equal(ls_string_at(c, 2, &data, &length), LS_INVALID);
        failed(LS_INVALID);
        assert_int_equal(ls_string_at(c, -1, &data, &length), LS_INVALID);
        failed(LS_INVALID);
        ls_tensor *x = ls_scalar(LS_F32, 1);
        assert_int_not_equal(ls_string_at(x, 0, &data, &length), LS_OK);
        assert_int_not_equal(ls_error(), LS_OK);
        assert_ptr_equal(data, first);
        assert_int_equal(length, 42);
        assert_int_equal(ls_string_at(NULL, 0, &data, &length), LS_INVALID);
        failed(LS_INVALID);

        assert_null(ls_from_strings(LS_DIMS(1), NULL, NULL));
        failed(LS_INVALID);
        assert_null(ls_from_strings(LS_DIMS(2), (const void *[]){ "x", NULL }, NULL));
        failed(LS_INVALID);

        /* No numbers in strings. */
        char out[64];
        ls_tensor *one = ls_from_strings(LS_DIMS(1), (const void *[]){ "5" }, NULL);
        assert_true(isnan(ls_to_double(one)));
        assert_int_not_equal(ls_error(), LS_OK);
        assert_int_equal(ls_to_int(one), 0);
        assert_int_not_equal(ls_error(), LS_OK);
        assert_int_not_equal(ls_copy_out(one, out, 16), LS_OK);
        assert_int_not_equal(ls_error(), LS_OK);
    }
}

static void asking_null_records_nothing(void **state)
{
    (void)state;
    assert_int_equal(ls_dtype_of(NULL), 0);
    assert_int_equal(ls_rank(NULL), 0);
    assert_null(ls_shape(NULL));
    assert_int_equal(ls_count(NULL), 0);
    assert_int_equal(ls_size_in_bytes(NULL), 0);
    assert_string_equal(ls_describe(NULL), "NULL");
    assert_null(ls_device_of(NULL));
    assert_int_equal(ls_error_pending(), LS_OK);
}

static void dims(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *t = ls_zeros(LS_F32, LS_DIMS(2, 3, 5));
        assert_int_equal(ls_dim(t, 0), 2);
        assert_int_equal(ls_dim(t, 2), 5);
        assert_int_equal(ls_dim(t, -1), 5);
        assert_int_equal(ls_dim(t, -3), 2);
        static const int bad[] = { 3, -4, INT32_MAX, INT32_MIN };
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            assert_int_equal(ls_dim(t, bad[i]), -1);
            failed(LS_INVALID);
        }
        assert_int_equal(ls_dim(ls_scalar(LS_F32, 1), 0), -1);
        failed(LS_INVALID);
    }
}

static void describe_keeps_eight(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *t[9];
        const char *text[8];
        for (int i = 0; i < 9; i++)
            t[i] = ls_zeros(LS_F32, LS_DIMS(i + 1, 7));
        for (int i = 0; i < 8; i++)
            text[i] = ls_describe(t[i]);
        for (int i = 0; i < 8; i++) {
            char want[32];
            snprintf(want, sizeof want, "f32[%d,7]", i + 1);
            assert_string_equal(text[i], want);
        }
        ls_tensor *big = ls_zeros(LS_BF16, LS_DIMS(0, INT64_MAX / 8, 1, 1, 1, 1, 1, 1));
        if (big)
            assert_string_equal(ls_describe(big), "bf16[0,1152921504606846975,1,1,1,1,1,1]");
        ls_error();
    }
}

static void copy_out_checks_its_room(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *t = ls_ones(LS_F32, LS_DIMS(3));
        char out[32];
        memset(out, 0x55, sizeof out);
        static const size_t bad[] = { 0, 11, 13, 24, SIZE_MAX };
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            assert_int_equal(ls_copy_out(t, out, bad[i]), LS_INVALID);
            failed(LS_INVALID);
        }
        for (size_t i = 0; i < sizeof out; i++)
            assert_int_equal(out[i], 0x55);
        assert_int_equal(ls_copy_out(t, NULL, 12), LS_INVALID);
        failed(LS_INVALID);
        assert_int_equal(ls_copy_out(NULL, out, 12), LS_INVALID);
        failed(LS_INVALID);
        assert_null(ls_data(NULL));
        failed(LS_INVALID);
    }
}

/* NULL in with an error pending passes that error on. */
static void null_passes_the_error_on(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *bad = ls_zeros((ls_dtype)0, LS_SCALAR);
        assert_null(bad);
        char first[512], out[8];
        snprintf(first, sizeof first, "%s", ls_error_text());
        assert_int_equal(ls_copy_out(bad, out, 8), LS_INVALID);
        assert_true(isnan(ls_to_float(bad)));
        assert_null(ls_keep(bad));
        assert_null(ls_hand_up(bad));
        assert_null(ls_import(bad));
        assert_null(ls_data(bad));
        assert_string_equal(ls_error_text(), first);
        assert_int_equal(ls_error(), LS_INVALID);
    }
}

static void memory_counts(void **state)
{
    (void)state;
    size_t before, now, peak, peak_before;
    ls_memory(&before, &peak_before);
    assert_true(peak_before >= before);
    LS_FRAME {
        assert_non_null(ls_zeros(LS_F32, LS_DIMS(1 << 18)));
        ls_memory(&now, &peak);
        assert_true(now >= before + (1 << 20));
        assert_true(now < before + (1 << 20) + 65536);
        assert_true(peak >= now);
    }
    ls_memory(&now, &peak);
    assert_int_equal(now, before);
    assert_true(peak >= before + (1 << 20));
}

static void lives_on_cpu_0(void **state)
{
    (void)state;
    LS_FRAME {
        assert_string_equal(ls_device_of(ls_scalar(LS_F32, 1)),
                            "/job:localhost/replica:0/task:0/device:CPU:0");
    }
}

/* Lengths that cannot be are refused before a byte is copied. */
static void string_lengths_that_overflow(void **state)
{
    (void)state;
    static const size_t bad[][2] = { { SIZE_MAX, 1 },
                                     { 1, SIZE_MAX },
                                     { SIZE_MAX / 2, SIZE_MAX / 2 } };
    LS_FRAME {
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            assert_null(ls_from_strings(LS_DIMS(2), (const void *[]){ "x", "y" }, bad[i]));
            assert_int_not_equal(ls_error(), LS_OK);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(dtypes, clean),
        cmocka_unit_test_setup(from_copies, clean),
        cmocka_unit_test_setup(zero_elements, clean),
        cmocka_unit_test_setup(bad_shapes, clean),
        cmocka_unit_test_setup(bad_dtypes, clean),
        cmocka_unit_test_setup(out_of_memory_is_an_error, clean),
        cmocka_unit_test_setup(wrap_does_not_copy, clean),
        cmocka_unit_test_setup(failed_wrap_releases_nothing, clean),
        cmocka_unit_test_setup(misaligned_wrap, clean),
        cmocka_unit_test_setup(strings, clean),
        cmocka_unit_test_setup(asking_null_records_nothing, clean),
        cmocka_unit_test_setup(dims, clean),
        cmocka_unit_test_setup(describe_keeps_eight, clean),
        cmocka_unit_test_setup(copy_out_checks_its_room, clean),
        cmocka_unit_test_setup(null_passes_the_error_on, clean),
        cmocka_unit_test_setup(memory_counts, clean),
        cmocka_unit_test_setup(lives_on_cpu_0, clean),
        cmocka_unit_test_setup(string_lengths_that_overflow, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
