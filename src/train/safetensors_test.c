/*
 * Safetensors files: what is written is read, files of others are read as they should be, and what is
 * wrong with a file is told. tests/safetensors_package_test.py has the package itself as witness.
 */
#include <lockstep/safetensors.h>
#include <math.h>
#include <sys/stat.h>

#include <lockstep/ops.h>
#include <lockstep/strategy.h>
#include <lockstep/tape.h>

#include "os/file_test_support.h"

static int clean(void **state)
{
    (void)state;
    ls_error();
    empty_test_dir();
    return 0;
}

static void failed(ls_status want, const char *word)
{
    if (ls_error_pending() != want || !strstr(ls_error_text(), word))
        fail_msg("wanted %s with '%s', got %s", ls_status_name(want), word, ls_error_report());
    ls_error();
}

/* ---- there and back ------------------------------------------------------------------------------ */

static ls_value *one(const char *key, ls_tensor *t)
{
    return ls_dict(1, &key, (ls_value *[]){ ls_leaf(t) });
}

static void check_same(const ls_tensor *a, const ls_tensor *b)
{
    assert_non_null(a);
    assert_non_null(b);
    assert_string_equal(ls_describe(a), ls_describe(b));
    if (ls_size_in_bytes(a))
        assert_memory_equal(ls_data(a), ls_data(b), ls_size_in_bytes(a));
}

static void every_dtype(void **state)
{
    (void)state;
    LS_FRAME {
        static const unsigned char some[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 250, 251, 252 };
        unsigned char raw[12 * 8];
        for (size_t i = 0; i < sizeof raw; i++)
            raw[i] = some[i % 12];
        const char *keys[20];
        ls_value *items[20];
        int n = 0;
        for (ls_dtype d = LS_F32; d <= LS_BF16; d++) {
            unsigned char truth[12] = { 1, 0, 0, 1, 1 };
            keys[n] = ls_dtype_name(d);
            items[n++] = ls_leaf(ls_from(d, LS_DIMS(3, 1, 4), d == LS_BOOL ? truth : raw));
        }
        keys[n] = "number";
        items[n++] = ls_leaf(ls_scalar(LS_F64, 0.1));
        keys[n] = "nothing";
        items[n++] = ls_leaf(ls_zeros(LS_I32, LS_DIMS(3, 0, 5)));
        keys[n] = "odd";
        items[n++] = ls_leaf(ls_from(LS_U8, LS_DIMS(3), raw));
        keys[n] = "";
        items[n++] = ls_leaf(ls_ones(LS_F32, LS_DIMS(1, 1, 1, 1, 1, 1, 1, 2)));
        keys[n] = "sch\xc3\xb6n \"x\" \\ \n/replica_0";
        items[n++] = ls_leaf(ls_scalar(LS_BOOL, 1));
        ls_value *all = ls_dict(n, keys, items);
        assert_int_equal(ls_safetensors_write(in_dir("x"), all, 0, NULL), LS_OK);
        assert_int_equal(entries(), 1);
        ls_value *read = ls_safetensors_read(in_dir("x"));
        assert_non_null(read);
        assert_int_equal(ls_same_structure(all, read), LS_OK);
        for (int i = 0; i < n; i++)
            check_same(ls_item(all, i), ls_item(read, i));
    }
    assert_int_equal(ls_error_pending(), LS_OK);
}

static void nothing_at_all(void **state)
{
    (void)state;
    LS_FRAME {
        assert_int_equal(ls_safetensors_write(in_dir("x"), ls_dict(0, NULL, NULL), 0, NULL), LS_OK);
        ls_value *read = ls_safetensors_read(in_dir("x"));
        assert_int_equal(ls_kind_of(read), LS_DICT);
        assert_int_equal(ls_length(read), 0);
    }
}

static void notes(void **state)
{
    (void)state;
    const ls_note two[] = { { "model", "cnn \xe2\x86\x92 \"10\"\n" }, { "", "" } };
    LS_FRAME {
        ls_value *x = one("x", ls_scalar(LS_F32, 1));
        assert_int_equal(ls_safetensors_write(in_dir("x"), x, 2, two), LS_OK);
        assert_string_equal(ls_safetensors_note(in_dir("x"), "model"), two[0].text);
        assert_string_equal(ls_safetensors_note(in_dir("x"), ""), "");
        assert_null(ls_safetensors_note(in_dir("x"), "other"));
        assert_int_equal(ls_error_pending(), LS_OK);
        assert_int_equal(ls_length(ls_safetensors_read(in_dir("x"))), 1);
    }
}

/* Neither to write it nor to read it. */
static void no_second_copy(void **state)
{
    (void)state;
    enum { EACH = 1 << 20 };
    size_t before, peak, now;
    LS_FRAME {
        const char *keys[] = { "a", "b", "c", "d" };
        ls_value *items[4];
        for (int i = 0; i < 4; i++)
            items[i] = ls_leaf(ls_full(LS_F32, LS_DIMS(EACH / 4), i));
        ls_value *all = ls_dict(4, keys, items);
        ls_memory(&before, &peak);
        assert_int_equal(ls_safetensors_write(in_dir("x"), all, 0, NULL), LS_OK);
        ls_memory(&now, &peak);
        assert_int_equal(now, before);
        assert_true(peak < before + EACH / 2);
        ls_value *read = ls_safetensors_read(in_dir("x"));
        ls_memory(&now, &peak);
        assert_true(peak <= before + 4 * (EACH + 4096));
        check_same(ls_item(read, 3), ls_item(all, 3));
    }
}

/* ---- files of others ----------------------------------------------------------------------------- */

static const char *put(const char *header, const void *data, size_t n)
{
    bytes b = { 0 };
    add_number(&b, strlen(header), 8);
    add_bytes(&b, header, strlen(header));
    add_bytes(&b, data, n);
    const char *path = put_in_memory(b.at, b.n);
    free_bytes(&b);
    return path;
}

static ls_tensor *read_one(const char *dtype, int count, const void *data, size_t n)
{
    char header[200];
    snprintf(header, sizeof header,
             "{\"t\":{\"dtype\":\"%s\",\"shape\":[%d],\"data_offsets\":[0,%zu]}}", dtype, count, n);
    ls_value *read = ls_safetensors_read(put(header, data, n));
    return read ? ls_item(read, 0) : NULL;
}

static void larger_dtypes(void **state)
{
    (void)state;
    LS_FRAME {
        const uint16_t f16[] = { 0x3c00, 0xc000, 0x7c00, 0x0001, 0x8000 };
        const float f32[] = { 1, -2, INFINITY, 5.9604644775390625e-8f, -0.0f };
        check_same(read_one("F16", 5, f16, 10), ls_from(LS_F32, LS_DIMS(5), f32));
        const int8_t i8[] = { -128, -1, 127 };
        check_same(read_one("I8", 3, i8, 3),
                   ls_from(LS_I32, LS_DIMS(3), (int32_t[]){ -128, -1, 127 }));
        const int16_t i16[] = { -32768, 32767 };
        check_same(read_one("I16", 2, i16, 4),
                   ls_from(LS_I32, LS_DIMS(2), (int32_t[]){ -32768, 32767 }));
        const uint16_t u16[] = { 0, 65535 };
        check_same(read_one("U16", 2, u16, 4),
                   ls_from(LS_I32, LS_DIMS(2), (int32_t[]){ 0, 65535 }));
        const uint32_t u32[] = { 0, UINT32_MAX };
        check_same(read_one("U32", 2, u32, 8),
                   ls_from(LS_I64, LS_DIMS(2), (int64_t[]){ 0, UINT32_MAX }));
        const uint64_t u64[] = { 1, INT64_MAX, (uint64_t)1 << 63 };
        check_same(read_one("U64", 2, u64, 16),
                   ls_from(LS_I64, LS_DIMS(2), (int64_t[]){ 1, INT64_MAX }));
        assert_null(read_one("U64", 3, u64, 24));
        failed(LS_SHAPE, "no i64");
        const uint8_t truth[] = { 0, 1, 2, 255 };
        check_same(read_one("BOOL", 4, truth, 4),
                   ls_from(LS_BOOL, LS_DIMS(4), (uint8_t[]){ 0, 1, 1, 1 }));
        /* more than one block of them */
        static int8_t many[10001];
        for (int i = 0; i < 10001; i++)
            many[i] = (int8_t)i;
        ls_tensor *all = read_one("I8", 10001, many, 10001);
        for (int i = 0; i < 10001; i++)
            assert_int_equal(((const int32_t *)ls_data(all))[i], (int8_t)i);
        assert_null(read_one("F8_E4M3", 2, u64, 2));
        failed(LS_UNSUPPORTED, "F8_E4M3");
        assert_null(read_one("C64", 1, u64, 8));
        failed(LS_UNSUPPORTED, "C64");
    }
}

#define ENTRY(name, shape, from, to)                                                               \
    "\"" name "\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[" from "," to "]}"

/* With 8 bytes of data. */
static const char *const good_headers[] = {
    "{" ENTRY("a", "[2]", "0", "8") "}",
    "{" ENTRY("a", "[2]", "0", "8") "}   ",
    "{\n\t" ENTRY("b", "[1]", "4", "8") " , " ENTRY("a", "[]", "0", "4") "}\r\n",
    "{" ENTRY("a", "[2]", "0", "8") "," ENTRY("z", "[0,7]", "8", "8") "}",
    "{" ENTRY("z", "[0]", "0", "0") "," ENTRY("a", "[2,1]", "0", "8") "}",
    "{\"__metadata__\":{}," ENTRY("a", "[2]", "0", "8") "}",
    "{\"__metadata__\":null," ENTRY("a", "[2]", "0", "8") "}",
    "{" ENTRY("a", "[2]", "0", "8") ",\"__metadata__\":{\"k\":\"v\"}}",
    /* more is said than is known here */
    "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"more\":[{}]}}",
    /* a checksum that another program copied along with the notes */
    "{\"__metadata__\":{\"lockstep.crc32c\":\"00000000 00000000\"}," ENTRY("a", "[2]", "0",
                                                                           "8") "}",
};

static const struct {
    const char *header, *word;
} bad_headers[] = {
    { "", "begin" },
    { " {}", "begin" },
    { "[]", "begin" },
    { "{}", "no tensor" },
    { "{", "line 1" },
    { "{\"a\":{}}", "dtype" },
    { "{\"a\":7}", "dtype" },
    { "{\"a\":null}", "dtype" },
    { "{" ENTRY("a", "[2]", "0", "8") "}x", "line 1" },
    { "{" ENTRY("a", "[2]", "0", "8") "," ENTRY("a", "[2]", "0", "8") "}", "duplicate" },
    { "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
      "duplicate" },
    { "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", "shape" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", "data_offsets" },
    { "{\"a\":{\"dtype\":32,\"shape\":[2],\"data_offsets\":[0,8]}}", "dtype" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8,8]}}", "data_offsets" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":{},\"data_offsets\":[0,8]}}", "shape" },
    { "{" ENTRY("a", "[-2]", "0", "8") "}", "shape" },
    { "{" ENTRY("a", "[2.0]", "0", "8") "}", "shape" },
    { "{" ENTRY("a", "[\"2\"]", "0", "8") "}", "shape" },
    { "{" ENTRY("a", "[3]", "0", "8") "}", "data_offsets" },
    { "{" ENTRY("a", "[2]", "0", "9") "}", "data_offsets" },
    { "{" ENTRY("a", "[2]", "8", "0") "}", "data_offsets" },
    { "{" ENTRY("a", "[2]", "-8", "0") "}", "data_offsets" },
    { "{" ENTRY("a", "[2]", "1", "9") "}", "begin" },
    { "{" ENTRY("a", "[1]", "4", "8") "}", "begin" },
    { "{" ENTRY("a", "[1]", "0", "4") "}", "no tensor" },
    { "{" ENTRY("a", "[3]", "0", "12") "}", "end of the file" },
    { "{" ENTRY("a", "[1]", "0", "4") "," ENTRY("b", "[1]", "0", "4") "}", "begin" },
    { "{" ENTRY("a", "[2]", "0", "8") "," ENTRY("b", "[1]", "4", "8") "}", "begin" },
    { "{" ENTRY("a", "[4294967296,4294967296]", "0", "0") "}", "shape" },
    { "{" ENTRY("a", "[9223372036854775807]", "0", "8") "}", "shape" },
    { "{" ENTRY("a", "[99999999999999999999]", "0", "8") "}", "line 1" },
    { "{\"__metadata__\":[]," ENTRY("a", "[2]", "0", "8") "}", "__metadata__" },
    { "{\"__metadata__\":{\"k\":1}," ENTRY("a", "[2]", "0", "8") "}", "__metadata__" },
    { "{" ENTRY("\xff", "[2]", "0", "8") "}", "line 1" },
    { "{" ENTRY("a\\u0000b", "[2]", "0", "8") "}", "line 1" },
    /* checksums of ours, which are none or wrong */
    { "{\"__metadata__\": {\"lockstep.crc32c\":\"x0000000 00000000\"}," ENTRY("a", "[2]", "0",
                                                                              "8") "}",
      "checksum" },
    { "{\"__metadata__\": {\"lockstep.crc32c\":\"00000000 00000000\"}," ENTRY("a", "[2]", "0",
                                                                              "8") "}",
      "checksum" },
};

static void headers(void **state)
{
    (void)state;
    const float data[2] = { 1, 2 };
    LS_FRAME {
        for (size_t i = 0; i < sizeof good_headers / sizeof *good_headers; i++) {
            ls_value *read = ls_safetensors_read(put(good_headers[i], data, 8));
            if (!read)
                fail_msg("%s: %s", good_headers[i], ls_error_report());
            assert_float_equal(((const float *)ls_data(ls_leaf_tensor(ls_get(read, "a"))))[0], 1,
                               0);
        }
        for (size_t i = 0; i < sizeof bad_headers / sizeof *bad_headers; i++) {
            if (ls_safetensors_read(put(bad_headers[i].header, data, 8)))
                fail_msg("not refused: %s", bad_headers[i].header);
            assert_non_null(strstr(ls_error_text(), "/proc/self/fd/"));
            failed(LS_CORRUPT, bad_headers[i].word);
        }
        assert_null(
            ls_safetensors_read(put("{" ENTRY("a", "[1,1,1,1,1,1,1,1,2]", "0", "8") "}", data, 8)));
        failed(LS_UNSUPPORTED, "9 dimensions");
        assert_null(ls_safetensors_read(put(
            "{" ENTRY("a", "[2]", "0", "8") "," ENTRY("z", "[0,4611686018427387904]", "8", "8") "}",
            data, 8)));
        failed(LS_UNSUPPORTED, "2 dimensions");
    }
}

/* Lengths that are none ask for no memory. */
static void lengths_that_lie(void **state)
{
    (void)state;
    static const uint64_t lengths[] = { 0,         1,         3, 100, 100000001, (uint64_t)1 << 40,
                                        INT64_MAX, UINT64_MAX };
    LS_FRAME {
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            bytes b = { 0 };
            add_number(&b, lengths[i], 8);
            add_bytes(&b, "{}", 2);
            const char *path = put_in_memory(b.at, b.n);
            free_bytes(&b);
            assert_null(ls_safetensors_read(path));
            failed(LS_CORRUPT, path);
        }
        for (size_t n = 0; n < 8; n++) {
            assert_null(ls_safetensors_read(put_in_memory("\2\0\0\0\0\0\0\0", n)));
            failed(LS_CORRUPT, "8 for the length");
        }
        const char *least = put_in_memory("\2\0\0\0\0\0\0\0{}", 10);
        assert_int_equal(ls_length(ls_safetensors_read(least)), 0);
        /* a header that is a deep nest */
        bytes b = { 0 };
        add_number(&b, 100000, 8);
        add_bytes(&b, "{\"a\":", 5);
        for (int i = 0; i < 99995; i++)
            add_bytes(&b, "[", 1);
        assert_null(ls_safetensors_read(put_in_memory(b.at, b.n)));
        free_bytes(&b);
        failed(LS_CORRUPT, "line 1");
    }
}

/* ---- damage -------------------------------------------------------------------------------------- */

static bytes file_bytes(const char *name)
{
    bytes b = { 0 };
    char part[4096];
    FILE *f = fopen(in_dir(name), "rb");
    assert_non_null(f);
    for (size_t n; (n = fread(part, 1, sizeof part, f)) > 0;)
        add_bytes(&b, part, n);
    fclose(f);
    return b;
}

static ls_value *two_tensors(void)
{
    const char *keys[] = { "bias", "weights" };
    return ls_dict(2, keys,
                   (ls_value *[]){ ls_leaf(ls_from(LS_I32, LS_DIMS(2), (int32_t[]){ 1, -1 })),
                                   ls_leaf(ls_from(LS_F64, LS_DIMS(1), (double[]){ 0.1 })) });
}

/* One bit in the name of the checksum hides it, and the values are as they were; any other is noticed. */
static void every_bit(void **state)
{
    (void)state;
    int unseen = 0;
    LS_FRAME {
        ls_value *all = two_tensors();
        assert_int_equal(ls_safetensors_write(in_dir("x"), all, 1, (ls_note[]){ { "k", "v" } }),
                         LS_OK);
        bytes b = file_bytes("x");
        for (size_t i = 0; i < 8 * b.n; i++)
            LS_FRAME {
                b.at[i / 8] ^= (unsigned char)(1 << i % 8);
                const char *path = put_in_memory(b.at, b.n);
                b.at[i / 8] ^= (unsigned char)(1 << i % 8);
                ls_value *read = ls_safetensors_read(path);
                if (!read) {
                    failed(LS_CORRUPT, path);
                    continue;
                }
                unseen++;
                assert_true(i / 8 >= 8 && i / 8 < 45); /* before the sums */
                assert_int_equal(ls_same_structure(all, read), LS_OK);
                for (int k = 0; k < 2; k++)
                    check_same(ls_item(all, k), ls_item(read, k));
            }
        for (size_t n = 0; n < b.n; n++)
            LS_FRAME {
                const char *path = put_in_memory(b.at, n);
                assert_null(ls_safetensors_read(path));
                failed(LS_CORRUPT, path);
            }
        add_bytes(&b, "", 1);
        assert_null(ls_safetensors_read(put_in_memory(b.at, b.n)));
        failed(LS_CORRUPT, "no tensor");
        free_bytes(&b);
    }
    assert_true(unseen > 0 && unseen < 300);
}

/* ---- what is refused ------------------------------------------------------------------------------ */

static ls_value *traced(ls_value *arguments, void *user)
{
    (void)user;
    assert_int_equal(
        ls_safetensors_write(in_dir("x"), one("t", ls_leaf_tensor(arguments)), 0, NULL), LS_STATE);
    return arguments;
}

static void bad_tensors(void **state)
{
    (void)state;
    LS_FRAME {
        const char *path = in_dir("x");
        ls_value *x = one("x", ls_scalar(LS_F32, 1));
        assert_int_equal(ls_safetensors_write(path, NULL, 0, NULL), LS_INVALID);
        failed(LS_INVALID, "NULL");
        assert_int_equal(ls_safetensors_write(path, ls_leaf(ls_scalar(LS_F32, 1)), 0, NULL),
                         LS_INVALID);
        failed(LS_INVALID, "no dict");
        assert_int_equal(
            ls_safetensors_write(path, ls_dict(1, (const char *[]){ "n" }, &x), 0, NULL),
            LS_INVALID);
        failed(LS_INVALID, "nest");
        assert_int_equal(
            ls_safetensors_write(
                path, one("s", ls_from_strings(LS_SCALAR, (const void *[]){ "a" }, NULL)), 0, NULL),
            LS_SHAPE);
        failed(LS_SHAPE, "'s' is bytes[]");
        assert_int_equal(
            ls_safetensors_write(path, one("__metadata__", ls_scalar(LS_F32, 1)), 0, NULL),
            LS_INVALID);
        failed(LS_INVALID, "__metadata__");
        assert_int_equal(ls_safetensors_write(path, one("caf\xe9", ls_scalar(LS_F32, 1)), 0, NULL),
                         LS_INVALID);
        failed(LS_INVALID, "'caf' is no UTF-8 from byte 3");
        ls_tensor *sparse = ls_sparse(ls_from(LS_I64, LS_DIMS(1), (int64_t[]){ 1 }),
                                      ls_ones(LS_F32, LS_DIMS(1, 2)), 3);
        assert_int_equal(ls_safetensors_write(path, one("s", sparse), 0, NULL), LS_SHAPE);
        failed(LS_SHAPE, "sparse");
        ls_function *f = ls_trace(traced, NULL);
        assert_null(ls_function_call(f, ls_leaf(ls_scalar(LS_F32, 1))));
        failed(LS_STATE, "traced");
        ls_function_free(f);
        /* an error that is pending is passed on */
        assert_null(ls_safetensors_read(in_dir("none")));
        assert_int_equal(ls_safetensors_write(path, NULL, 0, NULL), LS_NOT_FOUND);
        failed(LS_NOT_FOUND, "none");
        assert_int_equal(entries(), 0);
    }
}

static void bad_notes(void **state)
{
    (void)state;
    static const struct {
        int n;
        ls_note note[2];
        const char *word;
    } all[] = {
        { -1, { { "a", "b" } }, "-1 notes" },
        { 1, { { NULL, "b" } }, "key" },
        { 1, { { "a", NULL } }, "text" },
        { 2, { { "a", "b" }, { "a", "c" } }, "two notes 'a'" },
        { 1, { { "lockstep.crc32c", "b" } }, "checksum" },
        { 1, { { "a\xff", "b" } }, "UTF-8" },
        { 1, { { "a", "b\xed\xa0\x80" } }, "UTF-8" },
    };
    LS_FRAME {
        ls_value *x = one("x", ls_scalar(LS_F32, 1));
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            assert_int_equal(ls_safetensors_write(in_dir("x"), x, all[i].n, all[i].note),
                             LS_INVALID);
            failed(LS_INVALID, all[i].word);
        }
        assert_int_equal(ls_safetensors_write(in_dir("x"), x, 1, NULL), LS_INVALID);
        failed(LS_INVALID, "NULL");
        assert_int_equal(entries(), 0);
    }
}

static void bad_paths(void **state)
{
    (void)state;
    int files = open_files();
    LS_FRAME {
        ls_value *x = one("x", ls_scalar(LS_F32, 1));
        assert_null(ls_safetensors_read(NULL));
        failed(LS_INVALID, "NULL");
        assert_null(ls_safetensors_read(in_dir("none")));
        failed(LS_NOT_FOUND, in_dir("none"));
        assert_null(ls_safetensors_read(test_dir));
        failed(LS_IO, test_dir);
        assert_int_equal(mkfifo(in_dir("pipe"), 0666), 0); /* nobody writes to it: no waiting */
        assert_null(ls_safetensors_read(in_dir("pipe")));
        failed(LS_IO, "no file");
        assert_null(ls_safetensors_note(in_dir("none"), "k"));
        failed(LS_NOT_FOUND, "none");
        assert_int_equal(ls_safetensors_write(in_dir("x"), x, 0, NULL), LS_OK);
        assert_null(ls_safetensors_note(in_dir("x"), NULL));
        failed(LS_INVALID, "key");
        assert_int_equal(ls_safetensors_write(NULL, x, 0, NULL), LS_INVALID);
        failed(LS_INVALID, "NULL");
        assert_int_equal(ls_safetensors_write(in_dir("no/such"), x, 0, NULL), LS_NOT_FOUND);
        failed(LS_NOT_FOUND, "no/such");
        assert_int_equal(ls_safetensors_write(in_dir("x/below"), x, 0, NULL), LS_NOT_FOUND);
        failed(LS_NOT_FOUND, "x/below");
    }
    assert_int_equal(open_files(), files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(no_second_copy, clean), /* first: it looks at the peak */
        cmocka_unit_test_setup(every_dtype, clean),
        cmocka_unit_test_setup(nothing_at_all, clean),
        cmocka_unit_test_setup(notes, clean),
        cmocka_unit_test_setup(larger_dtypes, clean),
        cmocka_unit_test_setup(headers, clean),
        cmocka_unit_test_setup(lengths_that_lie, clean),
        cmocka_unit_test_setup(every_bit, clean),
        cmocka_unit_test_setup(bad_tensors, clean),
        cmocka_unit_test_setup(bad_notes, clean),
        cmocka_unit_test_setup(bad_paths, clean),
    };
    return cmocka_run_group_tests(tests, make_test_dir, remove_test_dir);
}
