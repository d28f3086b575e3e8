/*
 * Reading files: plain and gzip, whole, cut off at every byte, damaged,
 * missing, and things that are no files. The gzip files are written here, byte
 * by byte (stored blocks), so that no library is its own witness.
 */
#include "os/file.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[64], path[128];

static int make_dir(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/lockstep-file-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    snprintf(path, sizeof path, "%s/data", dir);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(dir);
}

static int clean(void **state)
{
    (void)state;
    ls_error();
    return 0;
}

static void put(const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
}

static int open_files(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static uint32_t crc32_of(const unsigned char *data, size_t n)
{
    uint32_t crc = 0xFFFFFFFFu;
    for (size_t i = 0; i < n; i++) {
        crc ^= data[i];
        for (int k = 0; k < 8; k++)
            crc = (crc >> 1) ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    return ~crc;
}

/* A gzip member of one stored block; returns its length. */
static size_t gzip_stored(const unsigned char *data, uint16_t n, unsigned char *out)
{
    static const unsigned char head[] = { 0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255, 1 };
    uint32_t crc = crc32_of(data, n), isize = n;
    uint16_t not_n = (uint16_t)~n;
    unsigned char *p = out;
    memcpy(p, head, sizeof head), p += sizeof head;
    *p++ = (unsigned char)n, *p++ = (unsigned char)(n >> 8);
    *p++ = (unsigned char)not_n, *p++ = (unsigned char)(not_n >> 8);
    memcpy(p, data, n), p += n;
    for (int i = 0; i < 4; i++)
        *p++ = (unsigned char)(crc >> (8 * i));
    for (int i = 0; i < 4; i++)
        *p++ = (unsigned char)(isize >> (8 * i));
    return (size_t)(p - out);
}

/* Reads all of `want` in pieces of `piece` bytes and then wants the end. */
static ls_status read_all(const unsigned char *want, size_t n, size_t piece)
{
    ls__reader *r = NULL;
    ls_status st = ls__reader_open(path, &r);
    if (st)
        return st;
    assert_non_null(r);
    unsigned char *got = malloc(n + 1);
    for (size_t at = 0; !st && at < n; at += piece)
        st = ls__reader_read(r, got + at, n - at < piece ? n - at : piece);
    if (!st) {
        assert_memory_equal(got, want, n);
        st = ls__reader_at_end(r);
    }
    free(got);
    ls__reader_close(r);
    return st;
}

static void plain(void **state)
{
    (void)state;
    int files = open_files();
    static unsigned char data[300000];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 7 + i / 256);
    put(data, sizeof data);
    assert_int_equal(read_all(data, sizeof data, sizeof data), LS_OK);
    assert_int_equal(read_all(data, sizeof data, 4097), LS_OK);
    put(data, 1000);
    assert_int_equal(read_all(data, 1000, 1), LS_OK);
    put("\x1f", 1); /* begins like gzip and is not */
    assert_int_equal(read_all((const unsigned char *)"\x1f", 1, 1), LS_OK);
    put("\x1f\x8a rest", 7);
    assert_int_equal(read_all((const unsigned char *)"\x1f\x8a rest", 7, 7), LS_OK);
    assert_int_equal(open_files(), files);
}

static void ends(void **state)
{
    (void)state;
    ls__reader *r = NULL;
    char to[8] = "";
    put("", 0);
    assert_int_equal(read_all((const unsigned char *)"", 0, 1), LS_OK);
    assert_int_equal(ls__reader_open(path, &r), LS_OK);
    assert_int_equal(ls__reader_read(r, to, 0), LS_OK);
    assert_int_equal(ls__reader_read(r, to, 1), LS_CORRUPT);
    ls__reader_close(r);
    ls_error();

    put("12345", 5);
    assert_int_equal(ls__reader_open(path, &r), LS_OK);
    assert_int_equal(ls__reader_read(r, to, 3), LS_OK);
    assert_int_equal(ls__reader_at_end(r), LS_CORRUPT); /* two bytes follow */
    assert_non_null(strstr(ls_error_text(), path));
    ls_error();
    ls__reader_close(r);

    assert_int_equal(ls__reader_open(path, &r), LS_OK);
    assert_int_equal(ls__reader_read(r, to, 6), LS_CORRUPT);
    assert_non_null(strstr(ls_error_text(), path));
    assert_non_null(strstr(ls_error_text(), "5")); /* where it ended */
    ls_error();
    ls__reader_close(r);
}

static void no_such_file(void **state)
{
    (void)state;
    int files = open_files();
    static const char *names[] = { "/nowhere/at/all", "", "/tmp" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ls__reader *r = NULL;
        char to[4];
        ls_status st = ls__reader_open(names[i], &r);
        if (st == LS_OK) { /* a directory may open and then refuse */
            st = ls__reader_read(r, to, 1);
            ls__reader_close(r);
        } else {
            assert_null(r);
        }
        assert_true(st == LS_NOT_FOUND || st == LS_IO || st == LS_INVALID);
        assert_int_equal(ls_error_pending(), st);
        assert_non_null(strstr(ls_error_text(), names[i]));
        ls_error();
    }
    if (geteuid() != 0) {
        ls__reader *r = NULL;
        put("x", 1);
        chmod(path, 0);
        assert_int_equal(ls__reader_open(path, &r), LS_IO);
        chmod(path, 0600);
    }
    assert_int_equal(open_files(), files);
}

/* Without zlib, gzip is refused and says so. */
static int gzip_supported(void)
{
    unsigned char zipped[64];
    put(zipped, gzip_stored((const unsigned char *)"x", 1, zipped));
    ls_status st = read_all((const unsigned char *)"x", 1, 1);
    if (st)
        assert_int_equal(st, LS_UNSUPPORTED);
    ls_error();
    return st == LS_OK;
}

static void gzip(void **state)
{
    (void)state;
    if (!gzip_supported())
        skip();
    static unsigned char data[60000], zipped[130000];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 13 + i / 100);
    size_t n = gzip_stored(data, sizeof data, zipped);
    put(zipped, n);
    assert_int_equal(read_all(data, sizeof data, sizeof data), LS_OK);
    assert_int_equal(read_all(data, sizeof data, 1021), LS_OK);

    n = gzip_stored(data, 0, zipped); /* nothing inside */
    put(zipped, n);
    assert_int_equal(read_all(data, 0, 1), LS_OK);

    n = gzip_stored(data, 500, zipped); /* two members are one text */
    n += gzip_stored(data + 500, 300, zipped + n);
    put(zipped, n);
    assert_int_equal(read_all(data, 800, 100), LS_OK);
}

static void gzip_cut_off(void **state)
{
    (void)state;
    if (!gzip_supported())
        skip();
    int files = open_files();
    unsigned char data[100], zipped[200];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)i;
    size_t n = gzip_stored(data, sizeof data, zipped);
    for (size_t cut = 2; cut < n; cut++) {
        put(zipped, cut);
        ls_status st = read_all(data, sizeof data, 10);
        if (st != LS_CORRUPT)
            fail_msg("cut to %zu of %zu bytes: %s", cut, n, ls_status_name(st));
        assert_int_equal(ls_error(), LS_CORRUPT);
    }
    /* A damaged body or checksum is noticed at the latest at the end. */
    for (size_t at = 15; at < n; at++) {
        zipped[at] ^= 0x10;
        put(zipped, n);
        ls__reader *r = NULL;
        unsigned char got[100];
        assert_int_equal(ls__reader_open(path, &r), LS_OK);
        ls_status st = ls__reader_read(r, got, sizeof got);
        if (!st)
            st = ls__reader_at_end(r);
        ls__reader_close(r);
        if (st != LS_CORRUPT)
            fail_msg("bit flipped in byte %zu: %s", at, ls_status_name(st));
        assert_non_null(strstr(ls_error_text(), path));
        ls_error();
        zipped[at] ^= 0x10;
    }
    assert_int_equal(open_files(), files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(plain, clean),        cmocka_unit_test_setup(ends, clean),
        cmocka_unit_test_setup(no_such_file, clean), cmocka_unit_test_setup(gzip, clean),
        cmocka_unit_test_setup(gzip_cut_off, clean),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
