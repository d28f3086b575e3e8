/*
 * Options and positional arguments of one command, read into its request as its table says.
 * What a value may be is for the reader in the table; this says in one line which option was wrong, what
 * was given and what was expected, and names the option or the value that was probably meant.
 */
#include "options.h"

#include <stdlib.h>
#include <string.h>

const cli_option cli_common[CLI_COMMON] = {
    { .name = "--json", .help = "results as JSON, one object a line" },
    { .name = "--help", .help = "show this text" },
};

/* Where reading stands. */
typedef struct reading {
    const cli *cli;
    const command *command;
    char *request;
    char **positional;
    int n;
    char hint[256];
    bool help, ended; /* `--` was there */
} reading;

/* What is wrong with a command line ends the command. */
#define WRONG(r, ...) cli_error((r)->cli, EXIT_USAGE, LS_INVALID, (r)->hint, __VA_ARGS__)

static const cli_option *option_at(const command *c, int i)
{
    return i < c->n_options ? &c->options[i] : &cli_common[i - c->n_options];
}

/* The option an argument names, up to its '='; NULL: there is none. */
static const cli_option *find(const command *c, const char *argument)
{
    size_t length = strcspn(argument, "=");
    if (strcmp(argument, "-h") == 0)
        return find(c, "--help");
    for (int i = 0; i < c->n_options + CLI_COMMON; i++) {
        const cli_option *o = option_at(c, i);
        if (strlen(o->name) == length && strncmp(o->name, argument, length) == 0)
            return o;
    }
    return NULL;
}

static int unknown_option(reading *r, const char *given)
{
    char words[2048], nearest[64];
    size_t used = 0;
    for (int i = 0; i < r->command->n_options + CLI_COMMON && used < sizeof words; i++)
        used += (size_t)snprintf(words + used, sizeof words - used, "%s%s", i ? " " : "",
                                 option_at(r->command, i)->name);
    if (cli_nearest(given, words, nearest, sizeof nearest))
        snprintf(r->hint, sizeof r->hint, "did you mean %s?", nearest);
    return WRONG(r, "unknown option '%s'", given);
}

static int wrong_value(reading *r, const cli_option *o, const char *value)
{
    char nearest[64];
    if (o->values && cli_nearest(value, o->values, nearest, sizeof nearest))
        snprintf(r->hint, sizeof r->hint, "did you mean %s?", nearest);
    return WRONG(r, "%s: '%s' is not %s", o->name, value, o->expected);
}

/* A flag; an exit status, EXIT_DONE to go on. */
static int set_flag(reading *r, const cli_option *o, const char *value)
{
    if (value)
        return WRONG(r, "%s takes no value, but got '%s'", o->name, value + 1);
    if (o == &cli_common[1])
        r->help = true;
    else if (o != &cli_common[0]) /* --json is in the cli */
        *(bool *)(r->request + o->at) = true;
    return EXIT_DONE;
}

/* What stands at `*next`, and the value that belongs to it; an exit status, EXIT_DONE to go on. */
static int read_one(reading *r, char ***next)
{
    char *given = *(*next)++;
    if (!r->ended && strcmp(given, "--") == 0) {
        r->ended = true;
        return EXIT_DONE;
    }
    if (r->ended || given[0] != '-' || !given[1]) {
        if (r->command->most >= 0 && r->n == r->command->most)
            return WRONG(r, "unexpected argument '%s'", given);
        r->positional[r->n++] = given;
        return EXIT_DONE;
    }
    const cli_option *o = find(r->command, given);
    if (!o)
        return unknown_option(r, given);
    const char *value = strchr(given, '=');
    if (!o->argument)
        return set_flag(r, o, value);
    if (value)
        value++;
    else if (**next)
        value = *(*next)++;
    else
        return WRONG(r, "%s has no value: give %s", o->name, o->expected);
    return o->read(value, r->request + o->at) ? EXIT_DONE : wrong_value(r, o, value);
}

static int read_and_run(reading *r, char **argv)
{
    if (r->command->defaults)
        r->command->defaults(r->request);
    for (char **next = argv + 1; *next;) {
        int ended = read_one(r, &next);
        if (ended != EXIT_DONE)
            return ended;
    }
    if (r->help)
        return cli_print_help(r->cli, r->command);
    if (r->n < r->command->least) {
        snprintf(r->hint, sizeof r->hint, "usage: %s %s [OPTION]...", r->cli->name,
                 r->command->arguments);
        return WRONG(r, "%s", r->n ? "too few arguments" : "no argument given");
    }
    return r->command->run(r->cli, r->request, r->n, r->positional);
}

int cli_read_and_run(const cli *c, const command *its, int argc, char **argv)
{
    reading r = { .cli = c, .command = its };
    snprintf(r.hint, sizeof r.hint, "'%s --help' lists the options", c->name);
    r.request = calloc(1, its->request_bytes + 1);
    r.positional = calloc((size_t)argc + 1, sizeof *r.positional);
    int status = r.request && r.positional
                     ? read_and_run(&r, argv)
                     : cli_error(c, EXIT_FAILED, LS_NO_MEMORY, "", "no memory for the options");
    free(r.positional);
    free(r.request);
    return status;
}
