/*
 * The command `lockstep`: finds the subcommand in a table and hands over to it.
 * --help is printed from the same table. Machine output goes to stdout, errors
 * to stderr; a wrong command line is one line that says what to do, and exit 2.
 * Like everything in cli/ it sees the public headers only.
 */
#include <lockstep.h>

#include "bench.h"
#include "cli.h"

static int cmd_help(int argc, char **argv);
static int cmd_version(int argc, char **argv);

static const command commands[] = {
    { "bench", "WHAT", "measure this machine ('bench --help' lists what)", cmd_bench },
    { "--help", "", "show this text", cmd_help },
    { "--version", "", "show the version", cmd_version },
};

static const command_table table = { .name = "lockstep",
                                     .what = "Synchronous data-parallel training.",
                                     .count = sizeof commands / sizeof commands[0],
                                     .commands = commands };

static int cmd_help(int argc, char **argv)
{
    return cli_print_commands(&table, argc, argv);
}

static int cmd_version(int argc, char **argv)
{
    const cli c = { .name = "lockstep", .json = cli_wants_json(argc, argv) };
    if (argc > 1)
        return cli_error(&c, EXIT_USAGE, LS_INVALID, "'lockstep --help' lists what there is",
                         "unexpected argument '%s'", argv[1]);
    printf("lockstep %s\n", ls_version());
    return cli_done(&c);
}

int main(int argc, char **argv)
{
    return cli_run_command(&table, argc, argv);
}
