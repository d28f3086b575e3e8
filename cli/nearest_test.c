/* Near misses are told, far ones are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "cli.h"

#define OPTIONS "--replicas --devices --batch --epochs --steps --seed --optimizer --json --help"

static void means(const char *given, const char *words, const char *expected)
{
    char out[32] = "";
    assert_int_equal(cli_nearest(given, words, out, sizeof out), expected[0] != 0);
    assert_string_equal(out, expected);
}

static void slips_of_the_fingers(void **state)
{
    (void)state;
    means("--replica", OPTIONS, "--replicas");   /* one is missing */
    means("--replicass", OPTIONS, "--replicas"); /* one too many */
    means("--replocas", OPTIONS, "--replicas");  /* one is wrong */
    means("--bacth", OPTIONS, "--batch");        /* two are swapped */
    means("-batch", OPTIONS, "--batch");         /* a dash is missing */
    means("--steps", OPTIONS, "--steps");
    means("--bach=3", OPTIONS, "--batch"); /* the value does not count */
    means("tarin", "train evaluate", "train");
}

static void beginnings(void **state)
{
    (void)state;
    means("--opt", OPTIONS, "--optimizer");
    means("--op", OPTIONS, "");
    means("eval", "train evaluate", "evaluate");
}

static void nothing_is_guessed_from_afar(void **state)
{
    (void)state;
    means("--fly", OPTIONS, "");
    means("x", "y z", "");
    means("-", OPTIONS, "");
    means("", OPTIONS, "");
    means("--", OPTIONS, "");
    means("train", "", "");
    char wide[300];
    memset(wide, 'a', sizeof wide - 1);
    wide[sizeof wide - 1] = 0;
    means(wide, OPTIONS, "");
    means("aaaa", wide, "");
}

static void a_word_that_does_not_fit_is_not_cut(void **state)
{
    (void)state;
    char out[5] = "kept";
    assert_false(cli_nearest("evaluat", "evaluate", out, sizeof out));
    assert_string_equal(out, "kept");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slips_of_the_fingers),
        cmocka_unit_test(beginnings),
        cmocka_unit_test(nothing_is_guessed_from_afar),
        cmocka_unit_test(a_word_that_does_not_fit_is_not_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
