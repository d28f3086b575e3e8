/*
 * The command `lockstep`: finds the subcommand in a table and hands over to it.
 * --help is printed from the same table. Machine output goes to stdout, errors
 * to stderr; a wrong command line is one line that says what to do, and exit 2.
 * Like everything in cli/ it sees the public headers only.
 */
#include <lockstep.h>
#include <stdio.h>
#include <string.h>

enum { EXIT_DONE = 0, EXIT_USAGE = 2 };

typedef struct command {
    const char *name;
    const char *arguments;
    const char *help;
    int (*run)(int argc, char **argv); /* argv[0] is the command's name */
} command;

static int cmd_help(int argc, char **argv);
static int cmd_version(int argc, char **argv);

static const command commands[] = {
    { "--help", "", "show this text", cmd_help },
    { "--version", "", "show the version", cmd_version },
};

#define N_COMMANDS (sizeof commands / sizeof commands[0])

static int usage_error(const char *what, const char *name)
{
    fprintf(stderr, "lockstep: %s '%s'; 'lockstep --help' lists what there is\n", what, name);
    return EXIT_USAGE;
}

static void print_help(FILE *to)
{
    fputs("usage: lockstep COMMAND [OPTION]...\n\n"
          "Synchronous data-parallel training.\n\n",
          to);
    for (size_t i = 0; i < N_COMMANDS; i++) {
        const command *c = &commands[i];
        fprintf(to, "  %-10s %-14s %s\n", c->name, c->arguments, c->help);
    }
}

static int cmd_help(int argc, char **argv)
{
    if (argc > 1)
        return usage_error("unexpected argument", argv[1]);
    print_help(stdout);
    return EXIT_DONE;
}

static int cmd_version(int argc, char **argv)
{
    if (argc > 1)
        return usage_error("unexpected argument", argv[1]);
    printf("lockstep %s\n", ls_version());
    return EXIT_DONE;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fputs("lockstep: no command given; 'lockstep --help' lists what there is\n", stderr);
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    return usage_error(argv[1][0] == '-' ? "unknown option" : "unknown command", argv[1]);
}
