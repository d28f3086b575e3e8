/*
 * What the subcommands of `lockstep` share: exit states, tables of commands, options, errors and
 * JSON lines. Results go to stdout, all else to stderr. Nothing here knows a subcommand.
 */
#ifndef LOCKSTEP_CLI_H
#define LOCKSTEP_CLI_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* 3 (a worker failed) and 130 (interrupted) come with the commands that can end so. */
enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* ---- errors ------------------------------------------------------------------------- */

/* Who speaks, and how. */
typedef struct cli {
    const char *name; /* "lockstep bench allreduce" */
    bool json;
} cli;

/* One line on stderr, "NAME: TEXT; HINT", and with --json the event on stdout, too. Returns
 * `status`, to be the exit status. */
__attribute__((format(printf, 5, 6))) int cli_error(const cli *c, int status, ls_status code,
                                                    const char *hint, const char *format, ...);

/* The same of an error that the library has left pending on this thread: the work failed. */
int cli_failed(const cli *c);

/* The last thing a command does: EXIT_DONE, unless its results could not be written. */
int cli_done(const cli *c);

/* ---- tables of commands ----------------------------------------------------------------- */

typedef struct command {
    const char *name;
    const char *arguments;
    const char *help;
    int (*run)(int argc, char **argv); /* argv[0] is the command's name */
} command;

typedef struct command_table {
    const char *name; /* "lockstep bench" */
    const char *what; /* a sentence for --help */
    int count;
    const command *commands;
} command_table;

int cli_run_command(const command_table *table, int argc, char **argv);
int cli_print_commands(const command_table *table, int argc, char **argv); /* --help */

/* Every command line has it, so that a wrong one can be told as JSON, too. */
bool cli_wants_json(int argc, char **argv);

/* ---- options -------------------------------------------------------------------------------- */

typedef struct cli_option {
    const char *name;     /* "--ranks" */
    const char *argument; /* "N"; NULL: it takes none */
    const char *help;
    const char *expected;                     /* "a whole number from 1 to 1024", for the error */
    bool (*read)(const char *text, void *to); /* false: text is not what is expected */
    void *to;
} cli_option;

/* Reads `--name value`, `--name=value` and flags; of an option given twice the last counts.
 * --help and --json are there without being listed. False: it ends here, with `*status`. */
bool cli_read_options(const cli *c, const char *what, int count, const cli_option *options,
                      int argc, char **argv, int *status);

/* For readers of options: a number and nothing else. */
bool cli_whole(const char *text, int64_t least, int64_t most, int64_t *out);
bool cli_seconds(const char *text, void *to); /* a double: more than 0, at most a day */

#define CLI_SECONDS_EXPECTED "a number of seconds above 0"

/* ---- JSON ----------------------------------------------------------------------------------- */

/* One object a line. */
typedef struct json {
    FILE *to;
    bool any; /* a field was written */
} json;

json json_open(FILE *to);
void json_text(json *j, const char *key, const char *value);
void json_whole(json *j, const char *key, int64_t value);
void json_number(json *j, const char *key, double value); /* null when it is not finite */
void json_close(json *j);                                 /* ends the line */

#endif
