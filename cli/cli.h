/*
 * What the subcommands of `lockstep` share: exit states, errors, tables of commands and options,
 * JSON lines. Results go to stdout, all else to stderr. Nothing here knows a subcommand.
 */
#ifndef LOCKSTEP_CLI_H
#define LOCKSTEP_CLI_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* CLI.md's: done; the work failed; the command line or a file was wrong; a worker or the cluster
 * failed; ended by Ctrl-C or SIGTERM. */
enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_CLUSTER = 3, EXIT_INTERRUPTED = 130 };

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
int cli_failed_with(const cli *c, int status);

/* What that error says to a person who typed a command: without the names of C functions, and no hint
 * that speaks of them. Until the next call. */
const char *cli_error_text(void);
const char *cli_error_hint(void);

/* The last thing a command does: EXIT_DONE, unless its results could not be written. */
int cli_done(const cli *c);

/* fflush, which remembers why stdout could not be written: cli_done tells it. The errno of the first
 * time; 0: there was none. */
void cli_flush(FILE *to);
int cli_not_flushed(void);

/* Control characters become '?', so that one line stays one: what a user gave may hold anything. */
void cli_without_control(char *text);

/* ---- tables --------------------------------------------------------------------------- */

/*
 * All that is known of a command line is in static tables: --help, the man pages and the completions
 * come from them, and so does the reading. A command is
 *
 *     typedef struct request { int64_t ranks; bool quiet; } request;
 *
 *     static const cli_option options[] = {
 *         { "--ranks", "N", "threads that take part (2)", "a whole number from 1 to 1024",
 *           read_ranks, .at = offsetof(request, ranks) },
 *         { "--quiet", .help = "print less", .at = offsetof(request, quiet) },
 *     };
 *
 *     const command cli_fly = { .name = "fly", .help = "fly away", .about = "...",
 *                               CLI_OPTIONS(options), .request_bytes = sizeof(request),
 *                               .defaults = default_request, .run = run };
 *
 * and is listed in the table of main.c (or of bench.c).
 *
 * Texts (`about`, `files`, `examples`) are paragraphs with an empty line between them, which are
 * filled to the width there is; a line that begins with a space stays as it is. So examples read
 * "What it does:\n\n  lockstep fly --ranks 3".
 */
typedef struct cli_option {
    const char *name;     /* "--ranks" */
    const char *argument; /* "N"; NULL: a flag, a bool at `at` that becomes true */
    const char *help;     /* some words, with the default in brackets at their end */
    const char *expected; /* "a whole number from 1 to 1024", for the error */
    bool (*read)(const char *text, void *to); /* false: text is not what is expected */
    size_t at;                                /* of what `read` writes, in the request */
    const char *values; /* for completions: words ("sgd adam"), FILE or DIR among them for names
                         * of files or directories; NULL: none */
    const char *group;  /* begins a group of options with this heading; NULL: as before */
} cli_option;

typedef struct command {
    const char *name;      /* in the table; one that begins with '-' stands like an option */
    const char *arguments; /* positional ones, "CHECKPOINT FILE"; NULL: none */
    const char *help;      /* some words for a list of commands; NULL: hidden there */
    const char *about;     /* text for --help and the man page */
    const char *values;    /* completions of positional arguments, as an option's */
    int n_options;
    const cli_option *options;
    int least, most; /* positional arguments; most -1: any number */
    size_t request_bytes;
    void (*defaults)(void *request);                                   /* NULL: all zero */
    int (*run)(const cli *c, void *request, int n, char **positional); /* an exit status */
    const struct command_table *commands;                              /* or: a table of its own */
    /* For the man page: */
    const char *examples;    /* text; --help shows it, too */
    const char *files;       /* text */
    const char *environment; /* words, each in man.c's list of variables */
} command;

#define CLI_OPTIONS(list) .n_options = sizeof(list) / sizeof(list)[0], .options = (list)

typedef struct command_table {
    const char *name; /* "lockstep bench" */
    const char *what; /* text for --help */
    int count;
    const command *const *commands;
} command_table;

/* Finds the command that argv[1] names, reads its options and positional arguments, which may stand
 * between them, and runs it; nothing runs and nothing is printed before all were read. `--` ends
 * the options; of an option given twice the last counts; --help and --json are there without
 * being listed. Returns the exit status. */
int cli_run(const command_table *table, int argc, char **argv);

/* What --help prints. */
int cli_print_table(const cli *c, const command_table *table);
int cli_print_help(const cli *c, const command *its);

/* Every command has these. */
extern const cli_option cli_common[];
enum { CLI_COMMON = 2 };

/* A text of this page's kind, filled to `width` columns behind `indent` spaces. */
void cli_print_text(FILE *to, const char *text, int indent, int width);

/* Words of one paragraph, from column `at`; lines that follow begin at `indent`. Returns where a line
 * begins that is empty or stays as it is. */
const char *cli_fill(FILE *to, const char *text, int at, int indent, int width);

/* Which of the words (with single spaces between them) was probably meant by what was given, in
 * `out`; false: none is near. */
bool cli_nearest(const char *given, const char *words, char *out, size_t room);

/* ---- for readers of options ----------------------------------------------------------------- */

/* A number and nothing else. */
bool cli_whole(const char *text, int64_t least, int64_t most, int64_t *out);
bool cli_number(const char *text, double least, double most, double *out);

bool cli_seconds(const char *text, void *to); /* a double: more than 0, at most a day */
#define CLI_SECONDS_EXPECTED "a number of seconds above 0"

bool cli_text(const char *text, void *to); /* a const char * that is not empty */

bool cli_ends_with(const char *text, const char *end);

/* ---- JSON ----------------------------------------------------------------------------------- */

/* One object a line. (The names are none of jansson's, which the library uses: a program's names come
 * before a library's.) */
enum { JSON_DEEPEST = 8 };
typedef struct json {
    FILE *to;
    bool any; /* a field was written */
    int depth;
    char close[JSON_DEEPEST]; /* what ends the list or object it is in */
} json;

json json_open(FILE *to);
void json_text(json *j, const char *key, const char *value);
void json_bytes(json *j, const char *key, const char *value, size_t bytes); /* 0 may be among them */
void json_whole(json *j, const char *key, int64_t value);
void json_number(json *j, const char *key, double value); /* null when it is not finite */
void json_bool(json *j, const char *key, bool value);
void json_begin_list(json *j, const char *key);   /* until json_end; in a list keys are NULL */
void json_begin(json *j, const char *key); /* the same */
void json_end(json *j);
void json_close(json *j); /* ends the line */

#endif
