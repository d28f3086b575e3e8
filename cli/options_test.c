/* A command line is read as its table says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "options.h"

typedef struct request {
    int64_t count;
    double rate, seconds;
    const char *name;
    bool quiet;
} request;

static bool read_count(const char *text, void *to)
{
    return cli_whole(text, -5, 100, to);
}

static bool read_rate(const char *text, void *to)
{
    return cli_number(text, -1, 1, to);
}

static const cli_option options[] = {
    { "--count", "N", "how many", "a whole number", read_count, .at = offsetof(request, count) },
    { "--rate", "X", "how much", "a number", read_rate, .at = offsetof(request, rate) },
    { "--seconds", "X", "how long", "seconds", cli_seconds, .at = offsetof(request, seconds) },
    { "--name", "TEXT", "who", "a name", cli_text, .at = offsetof(request, name) },
    { "--quiet", .help = "say less", .at = offsetof(request, quiet) },
};

/* What run was called with. */
static request got;
static int got_n, runs;
static char *got_arguments[8];

static void set_defaults(void *to)
{
    *(request *)to = (request){ .count = 7, .name = "nobody" };
}

static int run(const cli *c, void *request_, int n, char **positional)
{
    (void)c;
    got = *(const request *)request_;
    got_n = n;
    memcpy(got_arguments, positional, (size_t)n * sizeof *positional);
    runs++;
    return EXIT_INTERRUPTED; /* comes through */
}

static const command table = { .name = "fly",
                               .arguments = "FROM [TO]",
                               CLI_OPTIONS(options),
                               .least = 1,
                               .most = 2,
                               .request_bytes = sizeof(request),
                               .defaults = set_defaults,
                               .run = run };

/* The arguments after the command's name, up to NULL. */
#define READ(...) read_line((char *[]){ "fly", __VA_ARGS__, NULL })

static int read_line(char **argv)
{
    const cli c = { .name = "lockstep fly" };
    int argc = 0;
    while (argv[argc])
        argc++;
    return cli_read_and_run(&c, &table, argc, argv);
}

static void options_and_arguments_stand_anywhere(void **state)
{
    (void)state;
    runs = 0;
    assert_int_equal(READ("here", "--count", "3", "there", "--quiet", "--rate=-0.5"),
                     EXIT_INTERRUPTED);
    assert_int_equal(runs, 1);
    assert_int_equal(got.count, 3);
    assert_true(got.rate == -0.5);
    assert_true(got.quiet);
    assert_string_equal(got.name, "nobody");
    assert_int_equal(got_n, 2);
    assert_string_equal(got_arguments[0], "here");
    assert_string_equal(got_arguments[1], "there");
}

static void defaults_hold_and_the_last_counts(void **state)
{
    (void)state;
    assert_int_equal(READ("here"), EXIT_INTERRUPTED);
    assert_int_equal(got.count, 7);
    assert_false(got.quiet);
    assert_int_equal(READ("here", "--count=1", "--count=2", "--name", "--quiet"), EXIT_INTERRUPTED);
    assert_int_equal(got.count, 2);
    assert_string_equal(got.name, "--quiet"); /* a value, where one is due */
    assert_false(got.quiet);
}

static void two_dashes_end_the_options(void **state)
{
    (void)state;
    assert_int_equal(READ("--", "--count", "-"), EXIT_INTERRUPTED);
    assert_int_equal(got_n, 2);
    assert_string_equal(got_arguments[0], "--count");
    assert_string_equal(got_arguments[1], "-");
    assert_int_equal(READ("-"), EXIT_INTERRUPTED); /* standard input, say */
    assert_int_equal(got_n, 1);
}

static void what_is_wrong_does_not_run(void **state)
{
    (void)state;
    runs = 0;
    assert_int_equal(read_line((char *[]){ "fly", NULL }), EXIT_USAGE);
    assert_int_equal(READ("a", "b", "c"), EXIT_USAGE);
    assert_int_equal(READ("a", "--count"), EXIT_USAGE);
    assert_int_equal(READ("a", "--count", "x"), EXIT_USAGE);
    assert_int_equal(READ("a", "--count=-6"), EXIT_USAGE);
    assert_int_equal(READ("a", "--count= 3"), EXIT_USAGE);
    assert_int_equal(READ("a", "--count=3.0"), EXIT_USAGE);
    assert_int_equal(READ("a", "--count=99999999999999999999"), EXIT_USAGE);
    assert_int_equal(READ("a", "--rate=1.5"), EXIT_USAGE);
    assert_int_equal(READ("a", "--rate=nan"), EXIT_USAGE);
    assert_int_equal(READ("a", "--rate=-inf"), EXIT_USAGE);
    assert_int_equal(READ("a", "--rate="), EXIT_USAGE);
    assert_int_equal(READ("a", "--rate=-"), EXIT_USAGE);
    assert_int_equal(READ("a", "--seconds=0"), EXIT_USAGE);
    assert_int_equal(READ("a", "--seconds=1e400"), EXIT_USAGE);
    assert_int_equal(READ("a", "--name="), EXIT_USAGE);
    assert_int_equal(READ("a", "--quiet=yes"), EXIT_USAGE);
    assert_int_equal(READ("a", "--quie"), EXIT_USAGE);
    assert_int_equal(READ("a", "-q"), EXIT_USAGE);
    assert_int_equal(READ("a", "--help", "--fly"), EXIT_USAGE); /* all is read first */
    assert_int_equal(runs, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_and_arguments_stand_anywhere),
        cmocka_unit_test(defaults_hold_and_the_last_counts),
        cmocka_unit_test(two_dashes_end_the_options),
        cmocka_unit_test(what_is_wrong_does_not_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
