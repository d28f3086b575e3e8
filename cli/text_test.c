/* Text that grows, the columns it takes, numbers for people, and what the environment says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "terminal.h"
#include "text.h"

static void grows(void **state)
{
    (void)state;
    textbuf t = { 0 };
    assert_string_equal(text_read(&t), "");
    text_shorten(&t, 0);
    for (int i = 0; i < 1000; i++)
        text_format(&t, "%d,", i % 10);
    assert_int_equal(t.length, 2000);
    text_shorten(&t, 4);
    text_add(&t, "x");
    text_repeat(&t, "ab", 2);
    text_repeat(&t, "ab", -1);
    assert_string_equal(text_read(&t), "0,1,xabab");
    assert_false(t.failed);
    text_free(&t);
    assert_string_equal(text_read(&t), "");
}

static void columns_are_counted(void **state)
{
    (void)state;
    assert_int_equal(text_columns(""), 0);
    assert_int_equal(text_columns("abc"), 3);
    assert_int_equal(text_columns("\033[36m━━╸\033[0m─"), 4);
    assert_int_equal(text_columns("\r\033[?7lab\033[K"), 3); /* the return is for who asks */
    assert_int_equal(text_columns("e\xcc\x81"), 1);          /* a combining accent */
    assert_int_equal(text_columns("漢字"), 4);
    assert_int_equal(text_columns("a\xff"), 2);
    assert_int_equal(text_columns("\033["), 0); /* cut off */
}

static void expect_name(const char *given, bool utf8, int columns, const char *expected)
{
    textbuf t = { 0 };
    text_name(&t, given, utf8, columns);
    assert_string_equal(text_read(&t), expected);
    text_free(&t);
}

static void names_are_harmless(void **state)
{
    (void)state;
    expect_name("accuracy", true, 24, "accuracy");
    expect_name("accuracy", true, 3, "acc");
    expect_name("a\033[2Jb\n\x7f", true, 24, "a?[2Jb??");
    expect_name("naïve", true, 24, "naïve");
    expect_name("naïve", false, 24, "na?ve");
    expect_name("x\xc2\x9by\xffz", true, 24, "x?y?z"); /* a control character beyond ASCII */
    expect_name("漢字", true, 3, "漢");
    expect_name("abc", true, 0, "");
}

static void expect_number(const char *(*write)(text_number, double), double value,
                          const char *expected)
{
    text_number out;
    assert_string_equal(write(out, value), expected);
}

static void values_take_six_columns(void **state)
{
    (void)state;
    expect_number(text_value, 0, "0.0000");
    expect_number(text_value, 0.31214, "0.3121");
    expect_number(text_value, -0.5, "-0.5000");
    expect_number(text_value, 9.99996, "10.000");
    expect_number(text_value, 99.9996, "100.00");
    expect_number(text_value, 999.996, "1000.0");
    expect_number(text_value, 12345.6, "12345.6");
    expect_number(text_value, 99999.6, "1.00e+05");
    expect_number(text_value, 0.0005, "0.0005");
    expect_number(text_value, 1.2e-5, "1.20e-05");
    expect_number(text_value, NAN, "nan");
    expect_number(text_value, INFINITY, "inf");
    expect_number(text_value, -INFINITY, "-inf");
}

static void rates_have_three_digits(void **state)
{
    (void)state;
    expect_number(text_rate, 0.421, "0.42");
    expect_number(text_rate, 9.996, "10.0");
    expect_number(text_rate, 987.4, "987");
    expect_number(text_rate, 999.6, "1.00k");
    expect_number(text_rate, 41234, "41.2k");
    expect_number(text_rate, 412345, "412k");
    expect_number(text_rate, 1.236e6, "1.24M");
    expect_number(text_rate, 1e18, "1000000T");
}

static void durations_read_as_clocks(void **state)
{
    (void)state;
    expect_number(text_duration, 0, "0:00");
    expect_number(text_duration, 7.4, "0:07");
    expect_number(text_duration, 59.6, "1:00");
    expect_number(text_duration, 3599, "59:59");
    expect_number(text_duration, 3723, "1:02:03");
    expect_number(text_duration, 3 * 86400 + 4 * 3600, "3d 04h");
    expect_number(text_duration, -1, "?");
    expect_number(text_duration, NAN, "?");
    expect_number(text_duration, 1e300, "?");
    expect_number(text_elapsed, 0.04, "0.0s");
    expect_number(text_elapsed, 9.94, "9.9s");
    expect_number(text_elapsed, 9.96, "10s");
    expect_number(text_elapsed, 59.6, "1:00");
    expect_number(text_elapsed, NAN, "?");
}

/* ---- the environment ------------------------------------------------------------------- */

static const char *const variables[] = { "LC_ALL",         "LC_CTYPE", "LANG",    "NO_COLOR",
                                         "CLICOLOR_FORCE", "TERM",     "COLUMNS", "LINES" };

/* Of a file that is no terminal, in an environment of these "NAME=value" alone. */
static terminal look(const char *a, const char *b)
{
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        unsetenv(variables[i]);
    if (a)
        putenv((char *)a);
    if (b)
        putenv((char *)b);
    FILE *file = tmpfile();
    assert_non_null(file);
    terminal t = terminal_look(file);
    fclose(file);
    return t;
}

static void the_environment_counts(void **state)
{
    (void)state;
    assert_false(look("TERM=xterm", NULL).live);
    assert_false(look("TERM=xterm", NULL).colour);
    assert_true(look("CLICOLOR_FORCE=1", NULL).colour);
    assert_false(look("CLICOLOR_FORCE=0", NULL).colour);
    assert_false(look("CLICOLOR_FORCE=1", "NO_COLOR=1").colour);
    assert_true(look("CLICOLOR_FORCE=1", "NO_COLOR=").colour); /* empty is not set: no-color.org */
    assert_false(look(NULL, NULL).utf8);
    assert_true(look("LANG=C.UTF-8", NULL).utf8);
    assert_true(look("LC_CTYPE=de_DE.utf8", "LANG=C").utf8);
    assert_false(look("LC_ALL=C", "LANG=C.UTF-8").utf8);
    assert_true(look("LC_ALL=", "LANG=C.UTF-8").utf8);
    assert_int_equal(look(NULL, NULL).columns, 80);
    assert_int_equal(look("COLUMNS=132", NULL).columns, 132);
    assert_int_equal(look("COLUMNS=wide", NULL).columns, 80);
    assert_int_equal(look("COLUMNS=0", NULL).columns, 80);
    assert_int_equal(look("COLUMNS=99999999999", "LINES=50").columns, 80);
    assert_int_equal(look("LINES=50", NULL).rows, 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows),
        cmocka_unit_test(columns_are_counted),
        cmocka_unit_test(names_are_harmless),
        cmocka_unit_test(values_take_six_columns),
        cmocka_unit_test(rates_have_three_digits),
        cmocka_unit_test(durations_read_as_clocks),
        cmocka_unit_test(the_environment_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
