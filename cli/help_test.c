/* Texts are filled to the width there is, and what stays as it is stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>

#include "cli.h"

static void expect(const char *text, int indent, int width, const char *expected)
{
    char *out = NULL;
    size_t size;
    FILE *to = open_memstream(&out, &size);
    assert_non_null(to);
    cli_print_text(to, text, indent, width);
    fclose(to);
    assert_string_equal(out, expected);
    free(out);
}

static void paragraphs_are_filled(void **state)
{
    (void)state;
    expect("", 2, 20, "");
    expect("one two three", 0, 80, "one two three\n");
    expect("one two three", 0, 7, "one two\nthree\n");
    expect("one two three", 2, 9, "  one two\n  three\n");
    expect("one\ntwo", 0, 80, "one two\n"); /* one paragraph */
    expect("one\n\ntwo", 0, 80, "one\n\ntwo\n");
    expect("wider-than-all x", 1, 5, " wider-than-all\n x\n");
    expect("\xc3\xa9\xc3\xa9\xc3\xa9 a", 0, 5,
           "\xc3\xa9\xc3\xa9\xc3\xa9 a\n"); /* columns, not bytes */
}

static void lines_that_begin_with_a_space_stay(void **state)
{
    (void)state;
    expect("Do:\n\n  a    b\n  c\n\nor not", 2, 8, "  Do:\n\n    a    b\n    c\n\n  or not\n");
    expect("text\n  as it is", 0, 80, "text\n  as it is\n");
}

static void lines_that_follow_hang(void **state)
{
    (void)state;
    char *out = NULL;
    size_t size;
    FILE *to = open_memstream(&out, &size);
    assert_non_null(to);
    fputs("--x  ", to);
    assert_string_equal(cli_fill(to, "one two three", 5, 5, 12), "");
    fclose(to);
    assert_string_equal(out, "--x  one two\n     three");
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paragraphs_are_filled),
        cmocka_unit_test(lines_that_begin_with_a_space_stay),
        cmocka_unit_test(lines_that_follow_hang),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
