/*
 * .npy: files that numpy wrote (tools/golden_arrays.py), headers in every spelling, every half, and
 * every kind of damage.
 */
#include "data/npy.h"

#include <fcntl.h>
#include <lockstep/data.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tensor/test_support.h"

static char dir[64], path[128];

static int make_dir(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/lockstep-npy-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    snprintf(path, sizeof path, "%s/data.npy", dir);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(dir);
}

static const char *golden(const char *name)
{
    static char text[512];
    const char *tests = getenv("LOCKSTEP_TEST_DIR");
    if (!tests) {
        print_message("LOCKSTEP_TEST_DIR is not set: run this with meson test\n");
        skip();
    }
    snprintf(text, sizeof text, "%s/golden_arrays/%s", tests, name);
    return text;
}

static void failed_with(ls_status want, const char *word)
{
    if (!want || ls_error_pending() != want || !strstr(ls_error_text(), word))
        fail_msg("wanted %s with '%s', got %s", ls_status_name(want), word, ls_error_report());
    ls_error();
}

static void save(const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* Changes a byte of the file, which is much faster than writing all of it anew. */
static void poke(size_t at, unsigned char byte)
{
    int file = open(path, O_WRONLY);
    assert_true(file >= 0 && pwrite(file, &byte, 1, (off_t)at) == 1);
    close(file);
}

static void cut(size_t n)
{
    assert_int_equal(truncate(path, (off_t)n), 0);
}

static size_t load(const char *name, unsigned char *to, size_t room)
{
    FILE *f = fopen(name, "rb");
    assert_non_null(f);
    size_t n = fread(to, 1, room, f);
    fclose(f);
    return n;
}

/* ---- what numpy wrote ---------------------------------------------------------------------- */

static const struct {
    const char *name;
    ls_dtype dtype;
    int64_t least;
    uint64_t most;
} types[] = { { "b1", LS_BOOL, 0, 0 },         { "i1", LS_I32, INT8_MIN, INT8_MAX },
              { "u1", LS_U8, 0, UINT8_MAX },   { "i2", LS_I32, INT16_MIN, INT16_MAX },
              { "u2", LS_I32, 0, UINT16_MAX }, { "i4", LS_I32, INT32_MIN, INT32_MAX },
              { "u4", LS_I64, 0, UINT32_MAX }, { "i8", LS_I64, INT64_MIN, INT64_MAX },
              { "u8", LS_I64, 0, INT64_MAX },  { "f2", LS_F32, 0, 0 },
              { "f4", LS_F32, 0, 0 },          { "f8", LS_F64, 0, 0 } };

/* As golden_arrays.py has them. */
static double float_of(int type, int k)
{
    const int bytes = types[type].name[1] - '0';
    const double tiny = bytes == 2 ? 0x1p-24 : bytes == 4 ? 0x1p-149 : 0x1p-1074;
    const double most = bytes == 2 ? 65504 : bytes == 4 ? 0x1.fffffep127 : 0x1.fffffffffffffp1023;
    const double first[] = { -INFINITY, tiny, -0.0, most };
    return k < 4 ? first[k] : ((37 * k) % 200 - 100) / 8.0;
}

static int64_t whole_of(int type, int k)
{
    if (types[type].dtype == LS_BOOL)
        return k % 3 == 0;
    const int64_t low = types[type].name[0] == 'u' ? 0 : 100;
    return k == 0 ? types[type].least : k == 1 ? (int64_t)types[type].most : (37 * k) % 200 - low;
}

static void check_numbers(int type, const ls_tensor *t)
{
    const void *data = ls_data(t);
    assert_non_null(data);
    for (int k = 0; k < 24; k++) {
        double real = float_of(type, k);
        float single = (float)real;
        int64_t whole = whole_of(type, k);
        bool same = false;
        switch ((int)types[type].dtype) {
        case LS_BOOL:
        case LS_U8:
            same = ((const uint8_t *)data)[k] == whole;
            break;
        case LS_I32:
            same = ((const int32_t *)data)[k] == whole;
            break;
        case LS_I64:
            same = ((const int64_t *)data)[k] == whole;
            break;
        case LS_F32:
            same = memcmp((const float *)data + k, &single, sizeof single) == 0;
            break;
        case LS_F64:
            same = memcmp((const double *)data + k, &real, sizeof real) == 0;
            break;
        }
        if (!same)
            fail_msg("element %d of %s differs", k, types[type].name);
    }
}

static void every_type_in_every_order(void **state)
{
    (void)state;
    for (int type = 0; type < 12; type++)
        for (int way = 0; way < 4; way++) {
            char name[64], spec[32];
            if (types[type].name[1] == '1' && (way & 1))
                continue; /* a byte has no order */
            snprintf(name, sizeof name, "%s-%s-%s.npy", types[type].name,
                     way & 1 ? "big" : "little", way & 2 ? "fortran" : "c");
            snprintf(spec, sizeof spec, "%s[2,3,4]", ls_dtype_name(types[type].dtype));
            LS_FRAME {
                ls_tensor *t = ls_read_npy(golden(name));
                if (!t)
                    fail_msg("%s: %s", name, ls_error_report());
                assert_string_equal(ls_describe(t), spec);
                check_numbers(type, t);
            }
        }
    assert_int_equal(ls_error_pending(), LS_OK);
}

static void every_shape(void **state)
{
    (void)state;
    LS_FRAME {
        for (int version = 2; version <= 3; version++) {
            ls_tensor *t = ls_read_npy(golden(version == 2 ? "version2.npy" : "version3.npy"));
            assert_string_equal(ls_describe(t), "f32[2,3,4]");
            check_numbers(10, t);
        }
        ls_tensor *t = ls_read_npy(golden("scalar.npy"));
        assert_string_equal(ls_describe(t), "f64[]");
        assert_true(ls_to_double(t) == 2.5);
        t = ls_read_npy(golden("vector.npy"));
        assert_string_equal(ls_describe(t), "i32[5]");
        assert_int_equal(((const int32_t *)ls_data(t))[4], 4);
        assert_string_equal(ls_describe(ls_read_npy(golden("nothing.npy"))), "f32[3,0,2]");
        assert_string_equal(ls_describe(ls_read_npy(golden("nothing-fortran.npy"))), "f32[3,0,2]");
        t = ls_read_npy(golden("eight-axes.npy"));
        assert_string_equal(ls_describe(t), "u8[1,2,1,3,1,2,1,2]");
        for (int i = 0; i < 24; i++)
            assert_int_equal(((const uint8_t *)ls_data(t))[i], i);
        t = ls_read_npy(golden("long-fortran.npy"));
        assert_string_equal(ls_describe(t), "i32[3,2100]");
        for (int i = 0; i < 6300; i++)
            assert_int_equal(((const int32_t *)ls_data(t))[i], i);
    }
    assert_int_equal(ls_error_pending(), LS_OK);
}

static void what_tensors_cannot_be(void **state)
{
    (void)state;
    static const struct {
        const char *name, *word;
    } cases[] = { { "bad-complex", "'<c8'" },      { "bad-strings", "'<U2'" },
                  { "bad-bytes", "'|S2'" },        { "bad-objects", "'|O'" },
                  { "bad-fields", "fields" },      { "bad-dates", "'<M8[D]'" },
                  { "bad-long-double", "'<f16'" }, { "bad-nine-axes", "8 axes" } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.npy", cases[i].name);
        assert_null(ls_read_npy(golden(name)));
        failed_with(LS_UNSUPPORTED, cases[i].word);
    }
    assert_null(ls_read_npy(golden("bad-u8.npy")));
    failed_with(LS_SHAPE, "element 1 of the file is a u8 of numpy's, 9223372036854775808");
}

/* ---- files made here ------------------------------------------------------------------------- */

typedef struct file {
    unsigned char at[140000];
    size_t n;
} file;

static file made;

static void make(const char *dict, const void *data, size_t bytes)
{
    size_t n = strlen(dict);
    memcpy(made.at, "\x93NUMPY\x01\x00", 8);
    made.at[8] = (unsigned char)n;
    made.at[9] = (unsigned char)(n >> 8);
    memcpy(made.at + 10, dict, n);
    if (bytes)
        memcpy(made.at + 10 + n, data, bytes);
    made.n = 10 + n + bytes;
    save(made.at, made.n);
}

static void every_half(void **state)
{
    (void)state;
    static uint16_t all[65536];
    for (int i = 0; i < 65536; i++)
        all[i] = (uint16_t)i;
    make("{'descr': '<f2', 'fortran_order': False, 'shape': (65536,), }", all, sizeof all);
    LS_FRAME {
        const float *data = ls_data(ls_read_npy(path));
        assert_non_null(data);
        for (int i = 0; i < 65536; i++) {
            int exponent = i >> 10 & 31, fraction = i & 1023;
            double want = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
            if (exponent == 31)
                want = fraction ? NAN : INFINITY;
            float single = (float)(i & 0x8000 ? -want : want);
            if (isnan(want) ? !isnan(data[i]) : memcmp(&data[i], &single, sizeof single) != 0)
                fail_msg("half %04x is %a, wants %a", (unsigned)i, (double)data[i], (double)single);
        }
    }
}

static void a_bool_is_0_or_1(void **state)
{
    (void)state;
    make("{'descr': '|b1', 'fortran_order': False, 'shape': (4,), }", "\x00\x01\x02\xff", 4);
    LS_FRAME
        assert_memory_equal(ls_data(ls_read_npy(path)), "\x00\x01\x01\x01", 4);
}

/* ---- headers ---------------------------------------------------------------------------------- */

static void good_headers(void **state)
{
    (void)state;
    static const struct {
        const char *text, *spec;
        bool fortran;
    } cases[] = {
        { "{'descr': '|u1', 'fortran_order': False, 'shape': (), }", "u8[]", false },
        { "{'descr':'|u1','fortran_order':True,'shape':(2,3)}", "u8[2,3]", true },
        { "{\"shape\": (7,), \"descr\": \"<i4\", \"fortran_order\": False}\n", "i32[7]", false },
        { " {\t'shape' : ( 3L , 4L, ) ,\n'fortran_order' :True , 'descr': '=f8' , }  \r\n",
          "f64[3,4]", true },
        { "{'descr': '<u8', 'fortran_order': False, 'shape': (0, 1152921504606846975), }",
          "i64[0,1152921504606846975]", false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ls__npy_header h;
        if (ls__npy_parse("it", cases[i].text, strlen(cases[i].text), &h))
            fail_msg("%s: %s", cases[i].text, ls_error_report());
        assert_string_equal(ls__spec_text(&h.spec), cases[i].spec);
        assert_int_equal(h.fortran, cases[i].fortran);
    }
}

static void bad_headers(void **state)
{
    (void)state;
    static const struct {
        const char *text, *word;
    } cases[] = {
        { "", "letter 0: wants {" },
        { "[]", "wants {" },
        { "{", "wants a string" },
        { "{}", "each once" },
        { "{'descr': '<f4', 'fortran_order': False}", "each once" },
        { "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}", "each once" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (), 'x': 1}", "each once" },
        { "{'descr': '<f4' 'fortran_order': False, 'shape': ()}", "wants , or }" },
        { "{'descr' '<f4'}", "wants :" },
        { "{'descr': 4, 'fortran_order': False, 'shape': ()}", "wants a string" },
        { "{'descr': '<f4", "the end of a string" },
        { "{'descr': '<f4\\x00'}", "letters that print" },
        { "{'descr': '<f4\n'}", "letters that print" },
        { "{'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa': 1}", "a shorter string" },
        { "{'descr': '<f4', 'fortran_order': 0, 'shape': ()}", "True or False" },
        { "{'descr': '<f4', 'fortran_order': true, 'shape': ()}", "True or False" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': 3}", "a tuple" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (3)}", "a comma" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (3 4)}", "wants , or )" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}", "a size" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}", "a size" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (3, , 4)}", "a size" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4", "wants , or )" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}", "63 bits" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", "63 bits" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
          "no array" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 0)}",
          "no array" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807,)}", "no array" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': ()} x", "nothing behind" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': ()}}", "nothing behind" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ls__npy_header h;
        size_t n = strlen(cases[i].text);
        char *exact = malloc(n + 1); /* so that a sanitizer sees its end */
        assert_non_null(exact);
        memcpy(exact, cases[i].text, n + 1);
        exact = realloc(exact, n ? n : 1);
        if (ls__npy_parse("it", exact, n, &h) == LS_OK)
            fail_msg("taken: %s", cases[i].text);
        failed_with(LS_CORRUPT, cases[i].word);
        free(exact);
    }
    static const char *const other[] = {
        "f4", "<f3", "<i16", "f4<", "<V2", "", "<", "<f4 ", "xf4"
    };
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        char text[128];
        ls__npy_header h;
        snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': ()}",
                 other[i]);
        assert_int_equal(ls__npy_parse("it", text, strlen(text), &h), LS_UNSUPPORTED);
        failed_with(LS_UNSUPPORTED, other[i]);
    }
}

/* ---- damage ------------------------------------------------------------------------------------- */

static void sample(void)
{
    static const int16_t numbers[6] = { 1, 2, 3, 4, 5, 6 };
    make("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }\n", numbers, sizeof numbers);
}

static void cut_off_at_every_byte(void **state)
{
    (void)state;
    sample();
    LS_FRAME {
        size_t before = memory();
        for (size_t n = made.n; n-- > 0;) {
            cut(n);
            assert_null(ls_read_npy(path));
            failed_with(LS_CORRUPT, path);
        }
        assert_int_equal(memory(), before);
        made.at[made.n] = 0;
        save(made.at, made.n + 1);
        assert_null(ls_read_npy(path));
        failed_with(LS_CORRUPT, "13 bytes of elements, i32[2,3] wants 12");
    }
}

static void every_byte_changed(void **state)
{
    (void)state;
    sample();
    for (size_t i = 0; i < made.n; i++)
        for (int bit = 0; bit < 8; bit++)
            LS_FRAME {
                poke(i, made.at[i] ^ (unsigned char)(1 << bit));
                ls_tensor *t = ls_read_npy(path);
                poke(i, made.at[i]);
                if (t)
                    assert_int_equal(ls_error_pending(), LS_OK);
                else
                    failed_with(ls_error_pending(), path);
                if (!t && i >= made.n - 12)
                    fail_msg("refused for a change of element byte %zu", i);
                if (t && i < 6)
                    fail_msg("read for a change of the magic, byte %zu", i);
            }
}

static void sizes_that_lie(void **state)
{
    (void)state;
    static const char *const dicts[] = {
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1152921504606846975,), }",
        "{'descr': '|i1', 'fortran_order': True, 'shape': (1000, 1000, 1000), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (0,), }",
    };
    for (size_t i = 0; i < sizeof dicts / sizeof *dicts; i++) {
        size_t now, before, after;
        ls_memory(&now, &before);
        make(dicts[i], "12345678", 8);
        assert_null(ls_read_npy(path));
        failed_with(LS_CORRUPT, "8 bytes of elements");
        ls_memory(&now, &after);
        assert_int_equal(after, before);
    }
    make("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", "12345678", 8);
    made.at[8] = made.at[9] = 0xff; /* a header longer than the file */
    save(made.at, made.n);
    assert_null(ls_read_npy(path));
    failed_with(LS_CORRUPT, "wants 65545 at least");
    memcpy(made.at + 6, "\x02\x00\x01\x00\x01\x00", 6); /* and one of a length that is never read */
    memset(made.at + 12, ' ', 70000);
    save(made.at, 70000);
    assert_null(ls_read_npy(path));
    failed_with(LS_UNSUPPORTED, "65537 letters");
    memcpy(made.at + 6, "\x04\x00", 2);
    save(made.at, 100);
    assert_null(ls_read_npy(path));
    failed_with(LS_UNSUPPORTED, "version 4.0");
    memcpy(made.at + 6, "\x01\x01", 2);
    save(made.at, 100);
    assert_null(ls_read_npy(path));
    failed_with(LS_UNSUPPORTED, "version 1.1");
}

static void no_file(void **state)
{
    (void)state;
    assert_null(ls_read_npy("/nowhere/at/all"));
    failed_with(LS_NOT_FOUND, "/nowhere/at/all");
    assert_null(ls_read_npy(dir));
    failed_with(LS_IO, dir);
    assert_null(ls_read_npy(NULL));
    failed_with(LS_INVALID, "NULL");
    assert_null(ls_read_npy(""));
    failed_with(LS_NOT_FOUND, "''");
    save("", 0);
    assert_null(ls_read_npy(path));
    failed_with(LS_CORRUPT, "has 0 bytes");
    char inside[sizeof path + 8];
    snprintf(inside, sizeof inside, "%s/in", path); /* of what is no directory */
    assert_null(ls_read_npy(inside));
    failed_with(LS_NOT_FOUND, inside);
    save("PK\x03\x04 and more", 13);
    assert_null(ls_read_npy(path));
    failed_with(LS_CORRUPT, "50 4b 03 04");
    if (geteuid() != 0) {
        chmod(path, 0);
        assert_null(ls_read_npy(path));
        failed_with(LS_IO, path);
    }
}

static void a_real_file_in_pieces(void **state)
{
    (void)state;
    static unsigned char bytes[4096];
    size_t n = load(golden("i4-big-fortran.npy"), bytes, sizeof bytes);
    save(bytes, n);
    for (size_t i = 0; i < n; i++)
        LS_FRAME {
            poke(i, bytes[i] ^ 0x11);
            if (!ls_read_npy(path))
                failed_with(ls_error_pending(), path);
            poke(i, bytes[i]);
        }
    while (n-- > 0) {
        cut(n);
        assert_null(ls_read_npy(path));
        failed_with(LS_CORRUPT, path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_type_in_every_order, clean),
        cmocka_unit_test_setup(every_shape, clean),
        cmocka_unit_test_setup(what_tensors_cannot_be, clean),
        cmocka_unit_test_setup(every_half, clean),
        cmocka_unit_test_setup(a_bool_is_0_or_1, clean),
        cmocka_unit_test_setup(good_headers, clean),
        cmocka_unit_test_setup(bad_headers, clean),
        cmocka_unit_test_setup(cut_off_at_every_byte, clean),
        cmocka_unit_test_setup(every_byte_changed, clean),
        cmocka_unit_test_setup(sizes_that_lie, clean),
        cmocka_unit_test_setup(no_file, clean),
        cmocka_unit_test_setup(a_real_file_in_pieces, clean),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
