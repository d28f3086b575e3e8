/*
 * The command `lockstep`: the table of its subcommands. Machine output goes to stdout, errors
 * to stderr; a wrong command line is one line that says what to do, and exit 2.
 * Like everything in cli/ it sees the public headers only.
 */
#include <lockstep.h>

#include "bench.h"
#include "cli.h"

static int print_version(const cli *c, void *request, int n, char **positional)
{
    (void)request, (void)n, (void)positional;
    printf("lockstep %s\n", ls_version());
    return cli_done(c);
}

static const command version = { .name = "--version",
                                 .help = "show the version",
                                 .run = print_version };

static const command *const commands[] = {
    &cli_bench,
    &version,
};

static const command_table table = { .name = "lockstep",
                                     .what = "Synchronous data-parallel training.",
                                     .count = sizeof commands / sizeof commands[0],
                                     .commands = commands };

int main(int argc, char **argv)
{
    return cli_run(&table, argc, argv);
}
