/* JSON lines are valid whatever is given. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "cli.h"

static void expect_text(const char *given, const char *expected)
{
    char *line = NULL;
    size_t size;
    FILE *to = open_memstream(&line, &size);
    assert_non_null(to);
    json j = json_open(to);
    json_text(&j, "k", given);
    json_close(&j);
    fclose(to);
    assert_string_equal(line, expected);
    free(line);
}

static void texts_are_escaped(void **state)
{
    (void)state;
    expect_text("", "{\"k\":\"\"}\n");
    expect_text("a \"b\" \\ /", "{\"k\":\"a \\\"b\\\" \\\\ /\"}\n");
    expect_text("1\n2\t\x01\x7f", "{\"k\":\"1\\u000a2\\u0009\\u0001\x7f\"}\n");
}

static void what_is_not_utf8_becomes_a_question_mark(void **state)
{
    (void)state;
    expect_text("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
                "{\"k\":\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"}\n");
    expect_text("a\xffz", "{\"k\":\"a?z\"}\n");
    expect_text("\xc3", "{\"k\":\"?\"}\n");                /* cut off */
    expect_text("\xc0\xaf", "{\"k\":\"??\"}\n");           /* overlong */
    expect_text("\xed\xa0\x80", "{\"k\":\"???\"}\n");      /* a surrogate */
    expect_text("\xf4\x90\x80\x80", "{\"k\":\"????\"}\n"); /* beyond the last one */
    expect_text("\xe2\x82\"", "{\"k\":\"??\\\"\"}\n");     /* the quote is not swallowed */
}

static void bytes_are_counted(void **state)
{
    (void)state;
    char *line = NULL;
    size_t size;
    FILE *to = open_memstream(&line, &size);
    assert_non_null(to);
    json j = json_open(to);
    json_bytes(&j, "k", "a\0b\xe2\x82\xac", 5); /* the last character is cut off */
    json_close(&j);
    fclose(to);
    assert_string_equal(line, "{\"k\":\"a\\u0000b??\"}\n");
    free(line);
}

static void numbers_that_are_not_finite_are_null(void **state)
{
    (void)state;
    char *line = NULL;
    size_t size;
    FILE *to = open_memstream(&line, &size);
    assert_non_null(to);
    json j = json_open(to);
    json_number(&j, "a", 0.25);
    json_number(&j, "b", NAN);
    json_number(&j, "c", INFINITY);
    json_number(&j, "d", -INFINITY);
    json_number(&j, "e", 1e300);
    json_whole(&j, "f", INT64_MIN);
    json_close(&j);
    fclose(to);
    assert_string_equal(line, "{\"a\":0.25,\"b\":null,\"c\":null,\"d\":null,\"e\":1e+300,"
                              "\"f\":-9223372036854775808}\n");
    free(line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_escaped),
        cmocka_unit_test(what_is_not_utf8_becomes_a_question_mark),
        cmocka_unit_test(bytes_are_counted),
        cmocka_unit_test(numbers_that_are_not_finite_are_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
