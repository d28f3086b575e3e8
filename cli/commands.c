/*
 * Tables of commands: finds the one that was asked for, and prints the table as --help.
 * Leaves what follows the command's name to the command.
 */
#include "cli.h"

#include <string.h>

bool cli_wants_json(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--json") == 0)
            return true;
    return false;
}

/* The rest of a line that names a table's command wrongly. */
static int wrong_command(const command_table *table, bool wants_json, const char *what,
                         const char *name)
{
    const cli c = { .name = table->name, .json = wants_json };
    char hint[128];
    snprintf(hint, sizeof hint, "'%s --help' lists what there is", table->name);
    if (!name)
        return cli_error(&c, EXIT_USAGE, LS_INVALID, hint, "%s", what);
    return cli_error(&c, EXIT_USAGE, LS_INVALID, hint, "%s '%s'", what, name);
}

int cli_print_commands(const command_table *table, int argc, char **argv)
{
    if (argc > 1)
        return wrong_command(table, cli_wants_json(argc, argv), "unexpected argument", argv[1]);
    printf("usage: %s COMMAND [OPTION]...\n\n%s\n\n", table->name, table->what);
    for (int i = 0; i < table->count; i++) {
        const command *c = &table->commands[i];
        printf("  %-10s %-14s %s\n", c->name, c->arguments, c->help);
    }
    return cli_done(&(cli){ .name = table->name });
}

int cli_run_command(const command_table *table, int argc, char **argv)
{
    bool wants_json = cli_wants_json(argc, argv);
    if (argc < 2)
        return wrong_command(table, wants_json, "no command given", NULL);
    for (int i = 0; i < table->count; i++)
        if (strcmp(argv[1], table->commands[i].name) == 0)
            return table->commands[i].run(argc - 1, argv + 1);
    return wrong_command(table, wants_json,
                         argv[1][0] == '-' ? "unknown option" : "unknown command", argv[1]);
}
