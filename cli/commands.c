/*
 * Tables of commands: finds the one that was asked for, and what it is called in errors.
 * Leaves what follows the command's name to options.c.
 */
#include <string.h>

#include "cli.h"
#include "options.h"

/* Every command line has it, so that a wrong one can be told as JSON, too. */
static bool wants_json(char **argv)
{
    for (; *argv && strcmp(*argv, "--") != 0; argv++)
        if (strcmp(*argv, "--json") == 0)
            return true;
    return false;
}

/* The rest of a line that names a table's command wrongly. */
static int wrong_command(const cli *c, const command_table *table, const char *given)
{
    char words[1024], nearest[64], hint[256];
    size_t used = (size_t)snprintf(words, sizeof words, "--help");
    for (int i = 0; i < table->count && used < sizeof words; i++)
        if (table->commands[i]->help)
            used += (size_t)snprintf(words + used, sizeof words - used, " %s",
                                     table->commands[i]->name);
    if (cli_nearest(given, words, nearest, sizeof nearest))
        snprintf(hint, sizeof hint, "did you mean '%s %s'?", table->name, nearest);
    else
        snprintf(hint, sizeof hint, "'%s --help' lists what there is", table->name);
    return cli_error(c, EXIT_USAGE, LS_INVALID, hint, "unknown %s '%s'",
                     given[0] == '-' ? "option" : "command", given);
}

static int run_command(const command_table *table, const command *its, int argc, char **argv)
{
    if (its->commands)
        return cli_run(its->commands, argc, argv);
    char name[128];
    snprintf(name, sizeof name, "%s%s%s", table->name, its->name[0] == '-' ? "" : " ",
             its->name[0] == '-' ? "" : its->name);
    const cli c = { .name = name, .json = wants_json(argv) };
    return cli_read_and_run(&c, its, argc, argv);
}

/* The table's own --help stands alone. */
static int print_table(const cli *c, const command_table *table, char **argv)
{
    if (argv[2])
        return cli_error(c, EXIT_USAGE, LS_INVALID, "", "unexpected argument '%s'", argv[2]);
    return cli_print_table(c, table);
}

int cli_run(const command_table *table, int argc, char **argv)
{
    const cli c = { .name = table->name, .json = wants_json(argv) };
    char hint[128];
    snprintf(hint, sizeof hint, "'%s --help' lists what there is", table->name);
    if (argc < 2)
        return cli_error(&c, EXIT_USAGE, LS_INVALID, hint, "no command given");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return print_table(&c, table, argv);
    for (int i = 0; i < table->count; i++)
        if (strcmp(argv[1], table->commands[i]->name) == 0)
            return run_command(table, table->commands[i], argc - 1, argv + 1);
    if (c.json && strcmp(argv[1], "--json") == 0)
        return cli_error(&c, EXIT_USAGE, LS_INVALID, hint, "no command given before --json");
    return wrong_command(&c, table, argv[1]);
}
