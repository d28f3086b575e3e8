/*
 * idx files: every element type, plain and gzip, and every kind of damage. The
 * files are written here byte by byte.
 */
#include <lockstep/data.h>

#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#ifdef LS_HAVE_ZLIB
#include <zlib.h>
#endif

static char dir[64], path[128], zipped[136];

static int make_dir(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/lockstep-idx-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    snprintf(path, sizeof path, "%s/data", dir);
    snprintf(zipped, sizeof zipped, "%s.gz", path);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    unlink(path);
    unlink(zipped);
    return rmdir(dir);
}

static int clean(void **state)
{
    (void)state;
    ls_error();
    return 0;
}

static void failed(ls_status want, const char *word)
{
    if (!want || ls_error_pending() != want || !strstr(ls_error_text(), word))
        fail_msg("wanted %s with '%s', got %s", ls_status_name(want), word, ls_error_report());
    ls_error();
}

/* ---- writing --------------------------------------------------------------------- */

typedef struct bytes {
    unsigned char at[4096];
    size_t n;
} bytes;

static void put(bytes *b, uint64_t value, int size) /* big-endian */
{
    for (int i = size - 1; i >= 0; i--)
        b->at[b->n++] = (unsigned char)(value >> (8 * i));
}

static void header(bytes *b, int type, int rank, const uint32_t *dims)
{
    b->n = 0;
    put(b, 0, 2);
    put(b, (uint64_t)type, 1);
    put(b, (uint64_t)rank, 1);
    for (int i = 0; i < rank; i++)
        put(b, dims[i], 4);
}

static void save_to(const char *name, const void *data, size_t n)
{
    FILE *f = fopen(name, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static ls_tensor *read_back(const bytes *b)
{
    save_to(path, b->at, b->n);
    return ls_read_idx(path);
}

/* ---- reading --------------------------------------------------------------------- */

static void every_type(void **state)
{
    (void)state;
    static const uint32_t dims[2] = { 2, 3 };
    bytes b;
    LS_FRAME {
        header(&b, 0x08, 2, dims);
        for (int i = 0; i < 6; i++)
            put(&b, (uint64_t)(i * 50), 1);
        ls_tensor *t = read_back(&b);
        assert_string_equal(ls_describe(t), "u8[2,3]");
        for (int i = 0; i < 6; i++)
            assert_int_equal(((const uint8_t *)ls_data(t))[i], i * 50);

        static const int32_t whole[6] = { -128, -1, 0, 1, 100, 127 };
        header(&b, 0x09, 2, dims); /* i8 becomes i32 */
        for (int i = 0; i < 6; i++)
            put(&b, (uint64_t)whole[i], 1);
        t = read_back(&b);
        assert_string_equal(ls_describe(t), "i32[2,3]");
        assert_memory_equal(ls_data(t), whole, sizeof whole);

        static const int32_t half[6] = { -32768, -129, -1, 0, 255, 32767 };
        header(&b, 0x0B, 2, dims); /* so does i16 */
        for (int i = 0; i < 6; i++)
            put(&b, (uint64_t)half[i], 2);
        t = read_back(&b);
        assert_string_equal(ls_describe(t), "i32[2,3]");
        assert_memory_equal(ls_data(t), half, sizeof half);

        static const int32_t full[6] = { INT32_MIN, -70000, -1, 0, 70000, INT32_MAX };
        header(&b, 0x0C, 2, dims);
        for (int i = 0; i < 6; i++)
            put(&b, (uint64_t)full[i], 4);
        t = read_back(&b);
        assert_string_equal(ls_describe(t), "i32[2,3]");
        assert_memory_equal(ls_data(t), full, sizeof full);

        static const float single[6] = { 1.5f, -2.25f, 1e-40f, -0.0f, INFINITY, 3.4e38f };
        header(&b, 0x0D, 2, dims);
        for (int i = 0; i < 6; i++) {
            uint32_t bits;
            memcpy(&bits, &single[i], 4);
            put(&b, bits, 4);
        }
        t = read_back(&b);
        assert_string_equal(ls_describe(t), "f32[2,3]");
        assert_memory_equal(ls_data(t), single, sizeof single); /* to the bit */

        static const double wide[6] = { 1.5, -2.25, 1e-310, -0.0, -INFINITY, 1e300 };
        header(&b, 0x0E, 2, dims);
        for (int i = 0; i < 6; i++) {
            uint64_t bits;
            memcpy(&bits, &wide[i], 8);
            put(&b, bits, 8);
        }
        t = read_back(&b);
        assert_string_equal(ls_describe(t), "f64[2,3]");
        assert_memory_equal(ls_data(t), wide, sizeof wide);
        assert_int_equal(ls_error_pending(), LS_OK);
    }
}

static void every_rank(void **state)
{
    (void)state;
    static const uint32_t dims[9] = { 2, 1, 3, 1, 2, 1, 1, 2, 1 };
    bytes b;
    LS_FRAME {
        for (int rank = 1; rank <= LS_MAX_RANK; rank++) {
            header(&b, 0x08, rank, dims);
            int64_t count = 1;
            for (int i = 0; i < rank; i++)
                count *= dims[i];
            for (int64_t i = 0; i < count; i++)
                put(&b, (uint64_t)i, 1);
            ls_tensor *t = read_back(&b);
            assert_int_equal(ls_rank(t), rank);
            assert_int_equal(ls_count(t), count);
            assert_int_equal(((const uint8_t *)ls_data(t))[count - 1], count - 1);
        }
        header(&b, 0x08, 9, dims); /* one more than there can be */
        for (int i = 0; i < 24; i++)
            put(&b, 1, 1);
        assert_null(read_back(&b));
        assert_true(ls_error_pending() == LS_CORRUPT || ls_error_pending() == LS_UNSUPPORTED ||
                    ls_error_pending() == LS_INVALID);
        assert_non_null(strstr(ls_error_text(), path));
        ls_error();
        header(&b, 0x0C, 2, (uint32_t[]){ 0, 5 }); /* nothing inside */
        ls_tensor *t = read_back(&b);
        assert_string_equal(ls_describe(t), "i32[0,5]");
        header(&b, 0x08, 0, dims); /* a single number: read, or refused */
        put(&b, 7, 1);
        t = read_back(&b);
        if (t)
            assert_int_equal(ls_to_int(t), 7);
        else
            assert_int_equal(ls_error_pending(), LS_CORRUPT);
        ls_error();
    }
}

static void longer_than_any_buffer(void **state)
{
    (void)state;
    enum { N = 300001 };
    unsigned char *file = malloc(8 + (size_t)N * 2);
    assert_non_null(file);
    bytes b;
    header(&b, 0x0B, 1, (uint32_t[]){ N });
    memcpy(file, b.at, 8);
    for (uint32_t i = 0; i < N; i++) {
        file[8 + 2 * i] = (unsigned char)(i >> 8);
        file[9 + 2 * i] = (unsigned char)i;
    }
    save_to(path, file, 8 + (size_t)N * 2);
    free(file);
    LS_FRAME {
        const int32_t *data = ls_data(ls_read_idx(path));
        assert_non_null(data);
        for (int32_t i = 0; i < N; i++)
            if (data[i] != (int16_t)i)
                fail_msg("element %d is %d", i, data[i]);
    }
}

/* ---- damage ------------------------------------------------------------------------ */

static void sample(bytes *b)
{
    header(b, 0x0C, 2, (uint32_t[]){ 2, 3 });
    for (int i = 0; i < 6; i++)
        put(b, (uint64_t)i, 4);
}

static void cut_off_at_every_byte(void **state)
{
    (void)state;
    bytes b;
    sample(&b);
    LS_FRAME {
        size_t before, after, peak;
        ls_memory(&before, &peak);
        for (size_t n = 0; n < b.n; n++) {
            LS_FRAME {
                save_to(path, b.at, n);
                assert_null(ls_read_idx(path));
                failed(LS_CORRUPT, path);
            }
        }
        ls_memory(&after, &peak);
        assert_int_equal(after, before);
    }
}

static void trailing_bytes(void **state)
{
    (void)state;
    bytes b;
    sample(&b);
    put(&b, 0, 1);
    LS_FRAME {
        assert_null(read_back(&b));
        failed(LS_CORRUPT, path);
        for (int i = 0; i < 2000; i++)
            put(&b, 0, 1);
        assert_null(read_back(&b));
        failed(LS_CORRUPT, path);
    }
}

static void lying_headers(void **state)
{
    (void)state;
    LS_FRAME {
        bytes b;
        for (int type = 0; type < 256; type++) { /* unknown element types */
            if (type == 0x08 || type == 0x09 || (type >= 0x0B && type <= 0x0E))
                continue;
            header(&b, type, 1, (uint32_t[]){ 8 });
            put(&b, 0, 8);
            assert_null(read_back(&b));
            failed(LS_CORRUPT, path);
        }
        sample(&b);
        b.at[0] = 1; /* not the magic number */
        assert_null(read_back(&b));
        failed(LS_CORRUPT, path);
        sample(&b);
        b.at[1] = 0x80;
        assert_null(read_back(&b));
        failed(LS_CORRUPT, path);

        /* Sizes far beyond the file: refused without asking for the memory first. */
        header(&b, 0x08, 3, (uint32_t[]){ 4000, 1000, 1000 });
        put(&b, 0, 8);
        size_t at_first, most, most_then;
        ls_memory(&at_first, &most);
        assert_null(read_back(&b));
        failed(LS_CORRUPT, path);
        ls_memory(&at_first, &most_then);
        assert_true(most_then <= most + 64 * 1024 * 1024);
        static const uint32_t huge[][3] = { { 0xFFFFFFFF, 1, 1 },
                                            { 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF },
                                            { 0x80000000, 0x80000000, 2 },
                                            { 1000, 1000, 1000 } };
        for (int i = 0; i < 4; i++) {
            size_t now, peak_before, peak;
            ls_memory(&now, &peak_before);
            header(&b, 0x0E, 3, huge[i]);
            put(&b, 0, 8);
            assert_null(read_back(&b));
            ls_status st = ls_error_pending();
            assert_true(st == LS_CORRUPT || st == LS_INVALID || st == LS_NO_MEMORY);
            assert_non_null(strstr(ls_error_text(), path));
            ls_error();
            ls_memory(&now, &peak);
            if (peak > peak_before + 64 * 1024 * 1024)
                fail_msg("a file of %zu bytes took %zu bytes of memory", b.n, peak - peak_before);
        }
    }
}

/* Whatever bit is wrong: read, or an error that names the file. */
static void change_every_bit(const void *data, size_t n)
{
    save_to(path, data, n);
    int file = open(path, O_WRONLY);
    assert_true(file >= 0);
    for (size_t i = 0; i < n; i++)
        for (int bit = 0; bit < 8; bit++)
            LS_FRAME {
                unsigned char good = ((const unsigned char *)data)[i];
                unsigned char bad = good ^ (unsigned char)(1 << bit);
                assert_int_equal(pwrite(file, &bad, 1, (off_t)i), 1);
                if (!ls_read_idx(path))
                    failed(ls_error_pending(), path);
                assert_int_equal(ls_error_pending(), LS_OK);
                assert_int_equal(pwrite(file, &good, 1, (off_t)i), 1);
            }
    close(file);
}

static void every_bit_changed(void **state)
{
    (void)state;
    bytes b;
    sample(&b);
    change_every_bit(b.at, b.n);
}

static void no_file(void **state)
{
    (void)state;
    LS_FRAME {
        assert_null(ls_read_idx("/nowhere/at/all"));
        failed(ls_error_pending() == LS_NOT_FOUND ? LS_NOT_FOUND : LS_IO, "/nowhere/at/all");
        assert_null(ls_read_idx(dir)); /* a directory */
        assert_non_null(strstr(ls_error_text(), dir));
        assert_int_not_equal(ls_error(), LS_OK);
        assert_null(ls_read_idx(NULL));
        failed(LS_INVALID, "NULL");
        assert_null(ls_read_idx(""));
        assert_int_not_equal(ls_error(), LS_OK);
    }
}

/* ---- gzip ---------------------------------------------------------------------------- */

/* Compresses what lies at `path` to `zipped`; false when nothing here can. */
static bool compress_it(const bytes *b)
{
    save_to(path, b->at, b->n);
#ifdef LS_HAVE_ZLIB
    gzFile f = gzopen(zipped, "wb9");
    assert_non_null(f);
    assert_int_equal(gzwrite(f, b->at, (unsigned)b->n), (int)b->n);
    assert_int_equal(gzclose(f), Z_OK);
    return true;
#else
    char command[400];
    snprintf(command, sizeof command, "gzip -9 -c < %s > %s 2> /dev/null", path, zipped);
    return system(command) == 0;
#endif
}

static void compressed(void **state)
{
    (void)state;
    bytes b;
    sample(&b);
    if (!compress_it(&b))
        skip();
    unsigned char file[4096];
    FILE *f = fopen(zipped, "rb");
    assert_non_null(f);
    size_t n = fread(file, 1, sizeof file, f);
    fclose(f);
    LS_FRAME {
        ls_tensor *t = ls_read_idx(zipped);
        if (!t) { /* a build without zlib says so */
            failed(LS_UNSUPPORTED, "gz");
            skip();
        }
        assert_string_equal(ls_describe(t), "i32[2,3]");
        assert_int_equal(((const int32_t *)ls_data(t))[5], 5);
        save_to(path, file, n); /* told by its bytes, not by its name */
        assert_non_null(ls_read_idx(path));

        for (size_t cut = 0; cut < n; cut++) {
            save_to(path, file, cut);
            if (ls_read_idx(path))
                fail_msg("cut to %zu of %zu bytes, and read", cut, n);
            failed(LS_CORRUPT, path);
        }
        change_every_bit(file, n);
        file[n - 6] ^= 1; /* the checksum */
        save_to(path, file, n);
        assert_null(ls_read_idx(path));
        failed(LS_CORRUPT, path);

        put(&b, 0, 1); /* one byte too many inside */
        assert_true(compress_it(&b));
        assert_null(ls_read_idx(zipped));
        failed(LS_CORRUPT, zipped);
    }
}

/* Bytes for which there is room at once, by the file's size, and bytes packed so much that they are read in
 * steps: whole, cut short anywhere, one too many, and with a header that lies. */
static void packed_bytes(void **state)
{
    (void)state;
    for (int dull = 0; dull < 2; dull++)
        LS_FRAME {
            enum { SIDE = 60, ALL = SIDE * SIDE };
            bytes b;
            header(&b, 0x08, 2, (uint32_t[]){ SIDE, SIDE });
            for (uint32_t i = 0; i < ALL; i++)
                put(&b, dull ? 7 : i * 2654435761u >> 24, 1);
            if (!compress_it(&b))
                skip();
            bytes file = { .n = 0 };
            FILE *f = fopen(zipped, "rb");
            assert_non_null(f);
            file.n = fread(file.at, 1, sizeof file.at, f);
            fclose(f);
            assert_true(dull ? file.n < ALL / 20 : file.n > ALL / 4);
            ls_tensor *t = ls_read_idx(zipped);
            if (!t) {
                failed(LS_UNSUPPORTED, "gz");
                skip();
            }
            assert_string_equal(ls_describe(t), "u8[60,60]");
            assert_memory_equal(ls_data(t), b.at + b.n - ALL, ALL);
            for (size_t cut = 0; cut < file.n; cut += dull ? 1 : 37) {
                save_to(path, file.at, cut);
                assert_null(ls_read_idx(path));
                failed(LS_CORRUPT, path);
            }
            const bytes whole = b;
            put(&b, 0, 1);
            assert_true(compress_it(&b));
            assert_null(ls_read_idx(zipped));
            failed(LS_CORRUPT, "more data");
            b = whole;
            b.at[7]++; /* one row more */
            assert_true(compress_it(&b));
            assert_null(ls_read_idx(zipped));
            failed(LS_CORRUPT, "wants");
            assert_null(read_back(&b));
            failed(LS_CORRUPT, "wants 60 more");
        }
}

/* ---- Fashion-MNIST ----------------------------------------------------------------------- */

#define PACKAGE "/usr/share/datasets/fashion-mnist"

static void fashion_mnist(void **state)
{
    (void)state;
    unsetenv("LOCKSTEP_FASHION_MNIST");
    if (access(PACKAGE "/t10k-images-idx3-ubyte.gz", R_OK) != 0)
        skip();
    LS_FRAME {
        ls_value *test = ls_read_fashion_mnist("test");
        if (!test && ls_error_pending() == LS_UNSUPPORTED)
            skip();
        assert_int_equal(ls_length(test), 2);
        assert_string_equal(ls_describe(ls_item(test, 0)), "u8[10000,28,28]");
        assert_string_equal(ls_describe(ls_item(test, 1)), "u8[10000]");
        const uint8_t *labels = ls_data(ls_item(test, 1));
        int classes[10] = { 0 };
        for (int i = 0; i < 10000; i++) {
            assert_true(labels[i] < 10);
            classes[labels[i]]++;
        }
        for (int i = 0; i < 10; i++)
            assert_int_equal(classes[i], 1000);
        assert_int_equal(labels[0], 9); /* an ankle boot */

        ls_value *train = ls_read_fashion_mnist("train");
        assert_string_equal(ls_describe(ls_item(train, 0)), "u8[60000,28,28]");
        assert_string_equal(ls_describe(ls_item(train, 1)), "u8[60000]");
        assert_int_equal(ls_error_pending(), LS_OK);
    }
}

static void fashion_mnist_elsewhere(void **state)
{
    (void)state;
    LS_FRAME {
        assert_null(ls_read_fashion_mnist("validation"));
        failed(LS_INVALID, "validation");
        assert_null(ls_read_fashion_mnist(NULL));
        failed(LS_INVALID, "NULL");
        setenv("LOCKSTEP_FASHION_MNIST", "/nowhere/at/all", 1);
        assert_null(ls_read_fashion_mnist("train"));
        assert_null(ls_read_fashion_mnist("test")); /* the first error stays */
        failed(LS_NOT_FOUND, "/nowhere/at/all/train-images-idx3-ubyte.gz");

        /* Files that are there and are not what they should be. */
        bytes b;
        static const char *names[] = { "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz",
                                       "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte" };
        sample(&b);
        for (int i = 0; i < 4; i++) {
            char name[256];
            snprintf(name, sizeof name, "%s/%s", dir, names[i]);
            save_to(name, b.at, b.n);
        }
        setenv("LOCKSTEP_FASHION_MNIST", dir, 1);
        ls_value *strange = ls_read_fashion_mnist("test");
        ls_status st = ls_error_pending();
        for (int i = 0; i < 4; i++) {
            char name[256];
            snprintf(name, sizeof name, "%s/%s", dir, names[i]);
            unlink(name);
        }
        unsetenv("LOCKSTEP_FASHION_MNIST");
        assert_null(strange);
        assert_int_equal(st, LS_CORRUPT);
        ls_error();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_type, clean),
        cmocka_unit_test_setup(every_rank, clean),
        cmocka_unit_test_setup(longer_than_any_buffer, clean),
        cmocka_unit_test_setup(cut_off_at_every_byte, clean),
        cmocka_unit_test_setup(trailing_bytes, clean),
        cmocka_unit_test_setup(lying_headers, clean),
        cmocka_unit_test_setup(every_bit_changed, clean),
        cmocka_unit_test_setup(no_file, clean),
        cmocka_unit_test_setup(compressed, clean),
        cmocka_unit_test_setup(packed_bytes, clean),
        cmocka_unit_test_setup(fashion_mnist, clean),
        cmocka_unit_test_setup(fashion_mnist_elsewhere, clean),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
