/*
 * UTF-8 against Python's decoder: all two-byte texts, and the borders of longer ones.
 */
#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void borders(void **state)
{
    (void)state;
    static const char *const good[] = { "",
                                        "plain",
                                        "\x7f",
                                        "\xc2\x80",
                                        "\xdf\xbf",
                                        "\xe0\xa0\x80",
                                        "\xed\x9f\xbf",
                                        "\xee\x80\x80",
                                        "\xef\xbf\xbf",
                                        "\xf0\x90\x80\x80",
                                        "\xf4\x8f\xbf\xbf" };
    static const char *const bad[] = { "\x80",
                                       "\xbf",
                                       "\xc0\x80",
                                       "\xc1\xbf",
                                       "\xc2",
                                       "\xc2\x7f",
                                       "\xc2\xc0",
                                       "\xe0\x9f\xbf",
                                       "\xe0\xa0",
                                       "\xe1\x80\x7f",
                                       "\xed\xa0\x80",
                                       "\xf0\x8f\xbf\xbf",
                                       "\xf0\x90\x80",
                                       "\xf4\x90\x80\x80",
                                       "\xf5\x80\x80\x80",
                                       "\xff" };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(ls__utf8_good(good[i]), strlen(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[16];
        assert_int_equal(ls__utf8_next(bad[i]), 0);
        strcat(strcpy(text, "ab"), bad[i]);
        assert_int_equal(ls__utf8_good(text), 2);
    }
}

/* Two of ASCII, or one of two bytes; as many as Python decodes:
 *     sum(ok(bytes([a, b])) for a in range(1, 256) for b in range(1, 256)) */
static void two_bytes(void **state)
{
    (void)state;
    int good = 0;
    for (int a = 1; a < 256; a++)
        for (int b = 1; b < 256; b++) {
            const char text[] = { (char)a, (char)b, '\0' };
            good += ls__utf8_good(text) == 2;
        }
    assert_int_equal(good, 127 * 127 + 30 * 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(borders), cmocka_unit_test(two_bytes) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
