/*
 * Decoding pictures: against TensorFlow's pixels (tests/images, made by tools/golden_images.py), and
 * what is refused. PNGs are exact. JPEGs may be 2 levels off: versions of libjpeg-turbo round
 * differently. What damage does is in image_damage_test.c.
 */
#include <lockstep.h>

#include <stdio.h>
#include <stdlib.h>

#include "data/image_test_support.h"

enum { MOST_PIXELS_HEX = 1 << 14 };

static ls_tensor *file_tensor(const void *at, size_t size)
{
    return ls_from_strings(LS_SCALAR, &at, &size);
}

/* ---- the golden pictures ---------------------------------------------------------------------- */

typedef struct golden {
    char name[64];
    int asked, height, width, channels;
    char hex[MOST_PIXELS_HEX];
} golden;

static int level(const golden *g, int64_t i)
{
    char digits[3] = { g->hex[2 * i], g->hex[2 * i + 1], 0 };
    return (int)strtol(digits, NULL, 16);
}

static void check_golden(const golden *g)
{
    bool jpeg = strstr(g->name, ".jpg") != NULL;
    int most = jpeg ? 2 : 0;
    if (jpeg ? !READS_JPEG : !READS_PNG)
        return;
    LS_FRAME {
        blob b = load_image(g->name);
        ls_tensor *file = file_tensor(b.at, b.size);
        ls_tensor *t = jpeg ? ls_decode_jpeg(file, g->asked) : ls_decode_png(file, g->asked);
        ls_tensor *guessed = ls_decode_image(file, g->asked);
        if (!t || !guessed)
            fail_msg("%s: %s", g->name, ls_error_report());
        assert_int_equal(ls_dtype_of(t), LS_U8);
        assert_int_equal(ls_rank(t), 3);
        assert_int_equal(ls_dim(t, 0), g->height);
        assert_int_equal(ls_dim(t, 1), g->width);
        assert_int_equal(ls_dim(t, 2), g->channels);
        const uint8_t *got = ls_data(t);
        for (int64_t i = 0; i < ls_count(t); i++)
            if (abs(got[i] - level(g, i)) > most)
                fail_msg("%s, %d channels: sample %d is %d, want %d", g->name, g->asked, (int)i,
                         got[i], level(g, i));
        assert_memory_equal(ls_data(guessed), got, ls_size_in_bytes(t));
        free(b.at);
    }
}

static void pixels_are_tensorflows(void **state)
{
    (void)state;
    static golden g;
    char line[128];
    FILE *in = open_image("expected.txt");
    int count = 0;
    assert_non_null(fgets(line, sizeof line, in)); /* who made it */
    while (fscanf(in, "%63s %d %d %d %d %16383s", g.name, &g.asked, &g.height, &g.width,
                  &g.channels, g.hex) == 6) {
        check_golden(&g);
        count++;
    }
    fclose(in);
    assert_true(count > 100);
}

/* ---- arguments --------------------------------------------------------------------------------- */

static void says(ls_tensor *y, ls_status want, const char *what)
{
    assert_null(y);
    if (!strstr(ls_error_text(), what) && !strstr(ls_error_hint(), what))
        fail_msg("'%s' is not in: %s", what, ls_error_report());
    failed(want);
}

static void arguments_are_checked(void **state)
{
    (void)state;
    LS_FRAME {
        const void *two[] = { "ab", "c" };
        ls_tensor *file = file_tensor("no picture", 10), *empty = file_tensor("", 0);
        says(ls_decode_jpeg(NULL, 0), LS_INVALID, "ls_decode_jpeg: file is NULL");
        says(ls_decode_png(NULL, 0), LS_INVALID, "ls_decode_png: file is NULL");
        says(ls_decode_image(NULL, 0), LS_INVALID, "ls_decode_image: file is NULL");
        says(ls_decode_image(ls_zeros(LS_U8, LS_DIMS(9)), 3), LS_SHAPE,
             "given u8[9], wants bytes[]");
        says(ls_decode_image(ls_from_strings(LS_DIMS(2), two, NULL), 3), LS_SHAPE, "bytes[2]");
        says(ls_decode_image(file, 2), LS_INVALID, "channels 2");
        says(ls_decode_jpeg(file, -1), LS_INVALID, "1 is grey");
        says(ls_decode_png(file, 5), LS_INVALID, "ls_decode_png: channels 5");
        says(ls_decode_image(file, 3), LS_CORRUPT, "10 bytes that begin with 6e 6f 20 70");
        says(ls_decode_image(file, 3), LS_CORRUPT, "a PNG with 89 50 4e 47");
        says(ls_decode_image(empty, 3), LS_CORRUPT, "0 bytes");
    }
}

/* ---- JPEG: headers of our own -------------------------------------------------------------------- */

static ls_tensor *decode_jpeg(const blob *b, int channels)
{
    return ls_decode_jpeg(file_tensor(b->at, b->size), channels);
}

static void jpegs_say_what_is_wrong(void **state)
{
    (void)state;
    if (!READS_JPEG)
        skip();
    LS_FRAME {
        ls_tensor *png = file_tensor("\x89PNG\r\n\x1a\n", 8);
        says(ls_decode_jpeg(png, 3), LS_CORRUPT, "8 bytes is damaged: it does not begin as a JPEG");
        says(ls_decode_jpeg(png, 4), LS_INVALID, "a JPEG has no alpha");
        blob b = plain_jpeg(PLAIN(.width = 16, .height = 16, .components = 4));
        says(decode_jpeg(&b, 3), LS_UNSUPPORTED, "CMYK");
        free(b.at);
        b = plain_jpeg(PLAIN(.width = 16, .height = 16, .components = 3, .precision = 12));
        says(decode_jpeg(&b, 3), LS_UNSUPPORTED, "12 bits");
        free(b.at);
        b = plain_jpeg(PLAIN(.width = 16, .height = 16, .components = 3, .kind = 0xC3));
        says(decode_jpeg(&b, 3), LS_UNSUPPORTED, "kind ff c3");
        free(b.at);
        b = plain_jpeg(PLAIN(.width = 0, .height = 16, .components = 3));
        says(decode_jpeg(&b, 3), LS_CORRUPT, "is damaged: ");
        memcpy(b.at + 71, "\xff\xd9", 2); /* only tables */
        says(decode_jpeg(&b, 3), LS_CORRUPT, "there is no picture in it");
        free(b.at);
        b = load_image("rgb.jpg");
        b.size -= 20;
        says(decode_jpeg(&b, 3), LS_CORRUPT, "Premature end of JPEG file");
        free(b.at);
    }
}

/* Sampling factors that have no name decode too: the picture is grey, 128 everywhere. */
static void jpegs_of_any_sampling(void **state)
{
    (void)state;
    if (!READS_JPEG)
        skip();
    for (int v = 1; v <= 4; v++)
        for (int h = 1; h <= 4; h++)
            LS_FRAME {
                if (h * v > 8) /* blocks of an MCU: 10 with the other two */
                    continue;
                blob b = plain_jpeg(PLAIN(.width = 37, .height = 21, .components = 3,
                                          .sampling = { h << 4 | v, 0x11, 0x11 }));
                ls_tensor *t = decode_jpeg(&b, 0);
                if (!t)
                    fail_msg("%d x %d: %s", h, v, ls_error_report());
                assert_string_equal(ls_describe(t), "u8[21,37,3]");
                const uint8_t *x = ls_data(t);
                for (int64_t i = 0; i < ls_count(t); i++)
                    assert_int_equal(x[i], 128);
                free(b.at);
            }
}

/* Nothing is asked for before the sizes were looked at. */
static void jpegs_cannot_claim_memory(void **state)
{
    (void)state;
    if (!READS_JPEG)
        skip();
    LS_FRAME {
        size_t before = memory();
        blob b = plain_jpeg(PLAIN(.width = 65500, .height = 65500, .components = 3, .bits = 64));
        says(decode_jpeg(&b, 3), LS_INVALID, "65500 x 65500 pixels, at most 268435456");
        free(b.at);
        b = plain_jpeg(PLAIN(.width = 16000, .height = 16000, .components = 3, .bits = 64));
        says(decode_jpeg(&b, 3), LS_CORRUPT,
             "claims 16000 x 16000 pixels, which take 500000 bytes");
        free(b.at);
        assert_true(memory() - before < 1 << 20);
    }
}

/* The fewest bits that a picture can have are enough. */
static void jpegs_of_few_bits(void **state)
{
    (void)state;
    if (!READS_JPEG)
        skip();
    LS_FRAME {
        blob b = plain_jpeg(PLAIN(.width = 1600, .height = 1608, .components = 1, .kind = 0xC2));
        assert_true(b.size < 5300);
        ls_tensor *t = decode_jpeg(&b, 0);
        assert_non_null(t);
        assert_string_equal(ls_describe(t), "u8[1608,1600,1]");
        free(b.at);
    }
}

/* Hundreds of scans, each of which is a pass over the whole picture, are an attack. */
static void jpegs_of_many_scans(void **state)
{
    (void)state;
    if (!READS_JPEG)
        skip();
    LS_FRAME {
        blob b = plain_jpeg(
            PLAIN(.width = 64, .height = 64, .components = 3, .kind = 0xC2, .scans = 400));
        assert_non_null(decode_jpeg(&b, 0));
        free(b.at);
        b = plain_jpeg(
            PLAIN(.width = 64, .height = 64, .components = 3, .kind = 0xC2, .scans = 600));
        says(decode_jpeg(&b, 0), LS_CORRUPT, "scans");
        free(b.at);
    }
}

/* ---- PNG ------------------------------------------------------------------------------------------- */

static ls_tensor *decode_png(const blob *b, int channels)
{
    return ls_decode_png(file_tensor(b->at, b->size), channels);
}

static void pngs_say_what_is_wrong(void **state)
{
    (void)state;
    if (!READS_PNG)
        skip();
    LS_FRAME {
        says(ls_decode_png(file_tensor("\xff\xd8\xff\xe0", 4), 3), LS_CORRUPT,
             "4 bytes is damaged: it does not begin as a PNG");
        blob b = load_image("rgb8.png");
        b.size -= 12; /* all but the end */
        says(decode_png(&b, 3), LS_CORRUPT, "is damaged: it ends early");
        b.at[b.size - 1] ^= 1; /* of the data's checksum */
        says(decode_png(&b, 3), LS_CORRUPT, "is damaged: ");
        free(b.at);
    }
}

static void pngs_cannot_claim_memory(void **state)
{
    (void)state;
    if (!READS_PNG)
        skip();
    LS_FRAME {
        size_t before = memory();
        blob b = load_image("rgb8.png");
        png_claim(&b, 20000, 20000);
        says(decode_png(&b, 3), LS_INVALID, "20000 x 20000 pixels, at most 268435456");
        png_claim(&b, 16000, 16000);
        says(decode_png(&b, 3), LS_CORRUPT, "claims 16000 x 16000 pixels");
        png_claim(&b, 0, 16000);
        says(decode_png(&b, 3), LS_CORRUPT, "is damaged: ");
        png_claim(&b, 0x80000000u, 1);
        says(decode_png(&b, 3), LS_CORRUPT, "is damaged: ");
        free(b.at);
        assert_true(memory() - before < 1 << 20);
    }
}

static void builds_without_say_so(void **state)
{
    (void)state;
    if (READS_JPEG && READS_PNG)
        skip();
    LS_FRAME {
        if (!READS_JPEG)
            says(ls_decode_image(file_tensor("\xff\xd8\xff", 3), 0), LS_UNSUPPORTED,
                 "libturbojpeg0-dev");
        if (!READS_PNG)
            says(ls_decode_image(file_tensor("\x89PNG\r\n\x1a\n", 8), 0), LS_UNSUPPORTED,
                 "libspng-dev");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(pixels_are_tensorflows, clean),
        cmocka_unit_test_setup(arguments_are_checked, clean),
        cmocka_unit_test_setup(jpegs_say_what_is_wrong, clean),
        cmocka_unit_test_setup(jpegs_of_any_sampling, clean),
        cmocka_unit_test_setup(jpegs_cannot_claim_memory, clean),
        cmocka_unit_test_setup(jpegs_of_few_bits, clean),
        cmocka_unit_test_setup(jpegs_of_many_scans, clean),
        cmocka_unit_test_setup(pngs_say_what_is_wrong, clean),
        cmocka_unit_test_setup(pngs_cannot_claim_memory, clean),
        cmocka_unit_test_setup(builds_without_say_so, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
