/*
 * .npz: archives that numpy wrote (tools/golden_arrays.py), and archives made here byte by byte that
 * lie about everything an archive can tell.
 */
#include <fcntl.h>
#include <lockstep/data.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "data/npy.h"
#include "tensor/test_support.h"

static char dir[64], path[128];

static int make_dir(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/lockstep-npz-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    snprintf(path, sizeof path, "%s/data.npz", dir);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(dir);
}

static void failed_with(ls_status want, const char *word)
{
    if (!want || ls_error_pending() != want || !strstr(ls_error_text(), word))
        fail_msg("wanted %s with '%s', got %s", ls_status_name(want), word, ls_error_report());
    ls_error();
}

#ifndef LS_HAVE_LIBZIP

static void says_what_to_install(void **state)
{
    (void)state;
    assert_null(ls_read_npz("a.npz"));
    assert_non_null(strstr(ls_error_hint(), "libzip-dev"));
    failed_with(LS_UNSUPPORTED, "a.npz");
    assert_null(ls_read_npz(NULL));
    failed_with(LS_INVALID, "NULL");
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test_setup(says_what_to_install, clean) };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}

#else

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

/* ---- what numpy wrote ---------------------------------------------------------------------- */

static const ls_tensor *named(const ls_value *all, const char *key, const char *spec)
{
    const ls_tensor *t = ls_leaf_tensor(ls_get(all, key));
    assert_string_equal(ls_describe(t), spec);
    return t;
}

static void check_archive(const char *name)
{
    LS_FRAME {
        ls_value *all = ls_read_npz(golden(name));
        if (!all)
            fail_msg("%s", ls_error_report());
        assert_int_equal(ls_length(all), 6);
        assert_string_equal(ls_key(all, 0), "");
        assert_true(ls_to_float(named(all, "", "f32[]")) == 1.5f);
        const uint8_t *x = ls_data(named(all, "x_train", "u8[2,3,4]"));
        const int64_t *y = ls_data(named(all, "y_train", "i64[2,3,4]"));
        const float *a = ls_data(named(all, "a/b c", "f32[2,3,4]"));
        const double *f = ls_data(named(all, "fortran", "f64[2,3,4]"));
        for (int k = 4; k < 24; k++) { /* the first ones are extremes */
            assert_int_equal(x[k], (37 * k) % 200);
            assert_int_equal(y[k], (37 * k) % 200 - 100);
            assert_true(a[k] == (float)((37 * k) % 200 - 100) / 8);
            assert_true(f[k] == ((37 * k) % 200 - 100) / 8.0);
        }
        const float *zeros = ls_data(named(all, "zeros", "f32[3000]"));
        for (int k = 0; k < 3000; k++)
            assert_true(zeros[k] == 0);
    }
    assert_int_equal(ls_error_pending(), LS_OK);
}

static void stored_and_deflated(void **state)
{
    (void)state;
    check_archive("stored.npz");
    check_archive("deflated.npz");
}

static void small_ones(void **state)
{
    (void)state;
    LS_FRAME {
        ls_value *none = ls_read_npz(golden("empty.npz"));
        assert_int_equal(ls_kind_of(none), LS_DICT);
        assert_int_equal(ls_length(none), 0);
        ls_value *one = ls_read_npz(golden("zip64.npz"));
        assert_int_equal(((const int32_t *)ls_data(named(one, "a", "i32[5]")))[4], 4);
    }
    assert_int_equal(ls_error_pending(), LS_OK);
}

static void more_than_the_limit(void **state)
{
    (void)state;
    const uint64_t array = (1 << 20) + 128;
    LS_FRAME {
        ls_value *all = ls_read_npz(golden("large.npz"));
        named(all, "b", "u8[1048576]");
        assert_non_null(ls__npz_read(golden("large.npz"), 2 * array));
    }
    LS_FRAME {
        size_t before = memory();
        assert_null(ls__npz_read(golden("large.npz"), 2 * array - 1));
        failed_with(LS_UNSUPPORTED, "'b'");
        assert_int_equal(memory(), before); /* the first is not kept */
        assert_null(ls__npz_read(golden("large.npz"), 1000));
        assert_non_null(strstr(ls_error_hint(), "numpy.savez"));
        failed_with(LS_UNSUPPORTED, "1048704 bytes");
    }
}

static void archives_of_other_things(void **state)
{
    (void)state;
    assert_null(ls_read_npz(golden("bad-method.npz")));
    failed_with(LS_UNSUPPORTED, "method 12");
    assert_null(ls_read_npz(golden("bad-name.npz")));
    failed_with(LS_CORRUPT, "'b.txt'");
    assert_null(ls_read_npz(golden("bad-folder.npz")));
    failed_with(LS_CORRUPT, "'folder/'");
    assert_null(ls_read_npz(golden("bad-twice.npz")));
    failed_with(LS_CORRUPT, "'a' twice");
    assert_null(ls_read_npz(golden("vector.npy")));
    failed_with(LS_CORRUPT, "vector.npy");
}

/* ---- archives made here -------------------------------------------------------------------------- */

typedef struct bytes {
    unsigned char at[8192];
    size_t n;
} bytes;

static void put(bytes *b, uint64_t value, int size)
{
    for (int i = 0; i < size; i++)
        b->at[b->n++] = (unsigned char)(i < 8 ? value >> (8 * i) : 0);
}

static void put_text(bytes *b, const void *text, size_t n)
{
    memcpy(b->at + b->n, text, n);
    b->n += n;
}

static uint32_t crc32_of(const unsigned char *at, size_t n)
{
    uint32_t crc = ~0u;
    for (; n > 0; n--) {
        crc ^= *at++;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

typedef struct told {
    int method, flags;
    uint64_t size; /* that the archive tells */
    uint32_t crc;
    bytes packed;
    uint64_t packed_size; /* that it tells */
} told;

static void header(bytes *b, bool central, const told *t, const char *name)
{
    put(b, central ? 0x02014b50 : 0x04034b50, 4);
    if (central)
        put(b, 20, 2);
    put(b, 20, 2);
    put(b, (uint64_t)t->flags, 2);
    put(b, (uint64_t)t->method, 2);
    put(b, 0, 4); /* time */
    put(b, t->crc, 4);
    put(b, t->packed_size, 4);
    put(b, t->size, 4);
    put(b, strlen(name), 2);
    put(b, 0, 2); /* extra */
    if (central)
        put(b, 0, 2 + 2 + 2 + 4 + 4); /* comment, disk, attributes, at the front */
}

/* One array, and the same one again under another name when `twice` says so. */
static void archive(bytes *b, const told *t, bool twice)
{
    b->n = 0;
    header(b, false, t, "a.npy");
    put_text(b, "a.npy", 5);
    put_text(b, t->packed.at, t->packed.n);
    size_t central = b->n;
    for (int i = 0; i < 1 + twice; i++) {
        header(b, true, t, "a.npy");
        put_text(b, i ? "b.npy" : "a.npy", 5);
    }
    size_t end = b->n;
    put(b, 0x06054b50, 4);
    put(b, 0, 4);
    put(b, (uint64_t)(1 + twice), 2);
    put(b, (uint64_t)(1 + twice), 2);
    put(b, end - central, 4);
    put(b, central, 4);
    put(b, 0, 2);
    save(b->at, b->n);
}

/* u8[100] that says it has `count` elements. */
static void array(bytes *b, int count)
{
    char dict[128];
    int n = snprintf(dict, sizeof dict, "{'descr': '|u1', 'fortran_order': False, 'shape': (%d,)}",
                     count);
    b->n = 0;
    put_text(b, "\x93NUMPY\x01\x00", 8);
    put(b, (uint64_t)n, 2);
    put_text(b, dict, (size_t)n);
    for (int i = 0; i < 100; i++)
        put(b, (uint64_t)i, 1);
}

/* Deflated without getting smaller: one stored block. */
static void deflate(told *t, const bytes *raw)
{
    t->method = 8;
    t->packed.n = 0;
    put(&t->packed, 1, 1);
    put(&t->packed, raw->n, 2);
    put(&t->packed, ~(uint64_t)raw->n, 2);
    put_text(&t->packed, raw->at, raw->n);
    t->packed_size = t->packed.n;
    t->size = raw->n;
    t->crc = crc32_of(raw->at, raw->n);
}

static void sample(told *t)
{
    static bytes raw;
    *t = (told){ 0 };
    array(&raw, 100);
    deflate(t, &raw);
}

static void the_sample_is_good(void **state)
{
    (void)state;
    static told t;
    static bytes b;
    sample(&t);
    archive(&b, &t, true);
    LS_FRAME {
        ls_value *all = ls_read_npz(path);
        if (!all)
            fail_msg("%s", ls_error_report());
        for (int i = 0; i < 100; i++) {
            assert_int_equal(((const uint8_t *)ls_data(named(all, "a", "u8[100]")))[i], i);
            assert_int_equal(((const uint8_t *)ls_data(named(all, "b", "u8[100]")))[i], i);
        }
    }
    /* Both lie in the same bytes, and count twice. */
    LS_FRAME
        assert_non_null(ls__npz_read(path, 2 * t.size));
    assert_null(ls__npz_read(path, 2 * t.size - 1));
    failed_with(LS_UNSUPPORTED, "'b'");
}

static void archives_that_lie(void **state)
{
    (void)state;
    static told t;
    static bytes b, raw;
    array(&raw, 200); /* 100 more than there are, and the archive agrees */
    deflate(&t, &raw);
    t.size += 100;
    archive(&b, &t, false);
    assert_null(ls_read_npz(path));
    failed_with(LS_CORRUPT, "'a'");

    array(&raw, 50); /* 50 fewer */
    deflate(&t, &raw);
    t.size -= 50;
    archive(&b, &t, false);
    assert_null(ls_read_npz(path));
    failed_with(LS_CORRUPT, "'a'");

    sample(&t); /* more than deflate can do: not even tried */
    t.size = t.packed_size * 1032 + 1;
    archive(&b, &t, false);
    assert_null(ls_read_npz(path));
    failed_with(LS_CORRUPT, "bytes out of");

    sample(&t); /* not what was written */
    t.crc ^= 1;
    archive(&b, &t, false);
    assert_null(ls_read_npz(path));
    failed_with(LS_CORRUPT, "damaged");

    sample(&t); /* no deflate at all */
    memset(t.packed.at, 0xff, t.packed.n);
    archive(&b, &t, false);
    assert_null(ls_read_npz(path));
    failed_with(LS_CORRUPT, "damaged");

    sample(&t); /* a secret */
    t.flags = 1;
    archive(&b, &t, false);
    assert_null(ls_read_npz(path));
    failed_with(LS_UNSUPPORTED, "encrypted");

    sample(&t); /* stored, and longer than the archive */
    t.method = 0;
    t.packed_size = t.size = 100000;
    archive(&b, &t, false);
    assert_null(ls_read_npz(path));
    failed_with(LS_CORRUPT, path);
}

static void cut_off_and_changed_everywhere(void **state)
{
    (void)state;
    static told t;
    static bytes b;
    sample(&t);
    archive(&b, &t, true);
    for (size_t i = 0; i < b.n; i++)
        for (int bit = 0; bit < 8; bit += 3)
            LS_FRAME {
                poke(i, b.at[i] ^ (unsigned char)(1 << bit));
                if (!ls_read_npz(path))
                    failed_with(ls_error_pending(), path);
                poke(i, b.at[i]);
            }
    LS_FRAME {
        size_t before = memory();
        for (size_t n = b.n; n-- > 0;) {
            cut(n);
            if (ls_read_npz(path))
                fail_msg("cut to %zu of %zu bytes, and read", n, b.n);
            failed_with(ls_error_pending(), path);
        }
        assert_int_equal(memory(), before);
    }
}

static void a_real_one_changed_everywhere(void **state)
{
    (void)state;
    static unsigned char at[2048];
    FILE *f = fopen(golden("deflated.npz"), "rb");
    assert_non_null(f);
    size_t n = fread(at, 1, sizeof at, f);
    fclose(f);
    save(at, n);
    for (size_t i = 0; i < n; i++)
        LS_FRAME {
            poke(i, at[i] ^ (unsigned char)(i % 2 ? 0x55 : 0xff));
            if (!ls_read_npz(path))
                failed_with(ls_error_pending(), path);
            poke(i, at[i]);
        }
}

static void no_file(void **state)
{
    (void)state;
    assert_null(ls_read_npz("/nowhere/at/all"));
    failed_with(LS_NOT_FOUND, "/nowhere/at/all");
    assert_null(ls_read_npz(dir));
    failed_with(LS_IO, dir);
    assert_null(ls_read_npz(NULL));
    failed_with(LS_INVALID, "NULL");
    assert_null(ls_read_npz(""));
    failed_with(LS_NOT_FOUND, "''");
    save("", 0);
    assert_null(ls_read_npz(path));
    failed_with(LS_CORRUPT, path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(stored_and_deflated, clean),
        cmocka_unit_test_setup(small_ones, clean),
        cmocka_unit_test_setup(more_than_the_limit, clean),
        cmocka_unit_test_setup(archives_of_other_things, clean),
        cmocka_unit_test_setup(the_sample_is_good, clean),
        cmocka_unit_test_setup(archives_that_lie, clean),
        cmocka_unit_test_setup(cut_off_and_changed_everywhere, clean),
        cmocka_unit_test_setup(a_real_one_changed_everywhere, clean),
        cmocka_unit_test_setup(no_file, clean),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}

#endif
