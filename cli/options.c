/*
 * Options from a table: `--name value`, `--name=value`, flags; --help is printed from the same table.
 * Nothing is printed and nothing runs before all of them were read. What a value may be is for
 * the reader in the table; this says in one line which option was wrong, what was given and what
 * was expected.
 */
#include "cli.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool cli_whole(const char *text, int64_t least, int64_t most, int64_t *out)
{
    if (text[0] < '0' || text[0] > '9')
        return false;
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || *end || value < least || value > most)
        return false;
    *out = value;
    return true;
}

bool cli_seconds(const char *text, void *to)
{
    if ((text[0] < '0' || text[0] > '9') && text[0] != '.')
        return false;
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value > 0) || !(value <= 86400))
        return false;
    *(double *)to = value;
    return true;
}

static const cli_option common[] = {
    { .name = "--json", .help = "results as JSON, one object a line" },
    { .name = "--help", .help = "show this text" },
};

enum { COMMON = sizeof common / sizeof common[0] };

static void print_option(const cli_option *o)
{
    char left[64];
    snprintf(left, sizeof left, "%s%s%s", o->name, o->argument ? " " : "",
             o->argument ? o->argument : "");
    printf("  %-20s %s\n", left, o->help);
}

static int print_options(const cli *c, const char *what, int count, const cli_option *options)
{
    printf("usage: %s [OPTION]...\n\n%s\n\n", c->name, what);
    for (int i = 0; i < count; i++)
        print_option(&options[i]);
    for (int i = 0; i < COMMON; i++)
        print_option(&common[i]);
    return cli_done(c);
}

/* The option an argument names, up to its '='; NULL: there is none. */
static const cli_option *find(int count, const cli_option *options, const char *argument)
{
    size_t length = strcspn(argument, "=");
    for (int i = 0; i < count + COMMON; i++) {
        const cli_option *o = i < count ? &options[i] : &common[i - count];
        if (strlen(o->name) == length && strncmp(o->name, argument, length) == 0)
            return o;
    }
    return NULL;
}

/* Where reading stands. */
typedef struct reading {
    const cli *cli;
    char hint[128];
    int argc;
    char **argv;
    int at;
    bool help;
} reading;

/* What is wrong with a command line ends the command. */
#define WRONG(r, ...) cli_error((r)->cli, EXIT_USAGE, LS_INVALID, (r)->hint, __VA_ARGS__)

/* The argument at r->at, and the value that belongs to it; an exit status, EXIT_DONE to go on. */
static int read_one(reading *r, int count, const cli_option *options)
{
    const char *given = r->argv[r->at++];
    if (given[0] != '-')
        return WRONG(r, "unexpected argument '%s'", given);
    const cli_option *o = find(count, options, given);
    if (!o)
        return WRONG(r, "unknown option '%s'", given);
    const char *value = strchr(given, '=');
    if (!o->argument) {
        r->help = r->help || strcmp(o->name, "--help") == 0;
        return value ? WRONG(r, "%s takes no value, but got '%s'", o->name, value + 1) : EXIT_DONE;
    }
    if (value)
        value++;
    else if (r->at < r->argc)
        value = r->argv[r->at++];
    else
        return WRONG(r, "%s has no value: give %s", o->name, o->expected);
    if (!o->read(value, o->to))
        return WRONG(r, "%s: '%s' is not %s", o->name, value, o->expected);
    return EXIT_DONE;
}

bool cli_read_options(const cli *c, const char *what, int count, const cli_option *options,
                      int argc, char **argv, int *status)
{
    reading r = { .cli = c, .argc = argc, .argv = argv, .at = 1 };
    snprintf(r.hint, sizeof r.hint, "'%s --help' lists the options", c->name);
    while (r.at < argc) {
        int ended = read_one(&r, count, options);
        if (ended != EXIT_DONE) {
            *status = ended;
            return false;
        }
    }
    if (r.help)
        *status = print_options(c, what, count, options);
    return !r.help;
}
